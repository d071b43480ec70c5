//! Converts a response body that is not streamed.
//!
//! The state machine of the stream reads the body as one line, so that streamed and whole answers
//! give the same events.

use switchboard_domain::{ModelError, ModelEvent};

use super::stream::ChatDecoder;

/// Converts a response body with status 200 into the events of the equivalent stream.
///
/// Fails like the stream: with the server's error if the body contains one, and with
/// [`ModelErrorKind::Protocol`](switchboard_domain::ModelErrorKind::Protocol) if it contains no
/// answer.
pub fn events_from_body(decoder: ChatDecoder, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
    decoder.read_body(body)
}

//! Converts a response body that is not streamed.
//!
//! The state machine of the stream reads the body as one chunk, so that streamed and whole answers
//! give the same events.

use switchboard_domain::{ModelError, ModelEvent};

use super::stream::ChatDecoder;

/// Converts a response body with status 200 into the events of the equivalent stream.
///
/// Fails with the provider's error if the body is an error, and with
/// [`ModelErrorKind::Protocol`](switchboard_domain::ModelErrorKind::Protocol) if it is not an
/// answer.
pub fn events_from_body(decoder: ChatDecoder, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
    decoder.read_body(body)
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;

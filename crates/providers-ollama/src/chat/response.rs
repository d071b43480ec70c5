//! A whole body → a whole answer.
//!
//! A body is what its stream would have said in one line, so the same state machine reads it: an
//! answer is the same whichever way it came.

use switchboard_domain::{ModelError, ModelEvent};

use super::stream::ChatDecoder;

/// Reads a body of status 200 into the events of an equivalent stream.
///
/// Fails like the stream: with the server's error if the body contains one, and with
/// [`ModelErrorKind::Protocol`](switchboard_domain::ModelErrorKind::Protocol) if it contains no
/// answer.
pub fn events_from_body(decoder: ChatDecoder, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
    let mut events = Vec::new();
    decoder.whole(body, &mut events)?;
    Ok(events)
}

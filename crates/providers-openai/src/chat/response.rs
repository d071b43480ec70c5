//! A whole body → a whole answer.
//!
//! A body is what its stream would have said in one chunk, so the same state machine reads it: an
//! answer is the same whichever way it came.

use switchboard_domain::{ChatResponse, ModelError, ModelEvent};
use switchboard_providers_common::assembled;

use super::stream::ChatDecoder;
use crate::answer::AnswerDecoder;

/// Reads a body of status 200 into the events of a stream that says the same.
///
/// Fails like the stream does: with the provider's error if the body is one, and with
/// [`ModelErrorKind::Protocol`](switchboard_domain::ModelErrorKind::Protocol) if there is no answer
/// in it.
pub fn events_from_body(
    mut decoder: ChatDecoder,
    body: &str,
) -> Result<Vec<ModelEvent>, ModelError> {
    let mut events = Vec::new();
    decoder.read_whole(body, &mut events)?;
    Ok(events)
}

impl AnswerDecoder for ChatDecoder {
    fn whole(mut self: Box<Self>, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        self.read_whole(body, &mut events)?;
        Ok(events)
    }
}

/// Reads a body of status 200. See [`events_from_body`].
pub fn from_body(
    provider: &str,
    decoder: ChatDecoder,
    body: &str,
) -> Result<ChatResponse, ModelError> {
    assembled(provider, &events_from_body(decoder, body)?)
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;

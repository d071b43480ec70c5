//! Reading of a whole answer.
//!
//! A body has the form of one chunk of a stream, so the same state machine reads both.

use switchboard_domain::{ModelError, ModelEvent};
use switchboard_providers_common::WireDecoder as _;

use super::stream::GenerateDecoder;

/// Converts a response body with status 200 into the events of the equivalent stream. Accepts a
/// list of chunks too, which is the API's answer to streaming without `alt=sse`.
///
/// Fails with the provider's error if the body is one, and with
/// [`ModelErrorKind::Protocol`](switchboard_domain::ModelErrorKind::Protocol) if the body has no
/// answer.
pub fn events_from_body(
    decoder: GenerateDecoder,
    body: &str,
) -> Result<Vec<ModelEvent>, ModelError> {
    let mut decoder = decoder.for_whole_answer();
    let mut events = Vec::new();
    decoder.frame("", body, &mut events)?;
    decoder.end(&mut events)?;
    Ok(events)
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;

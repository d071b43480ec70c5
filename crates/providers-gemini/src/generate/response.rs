//! Converts a response body that is not streamed.
//!
//! A body has the fields of one chunk, so the state machine of the stream reads it.

use switchboard_domain::{ModelError, ModelEvent};
use switchboard_providers_common::WireDecoder as _;

use super::stream::GenerateDecoder;

/// Converts a response body with status 200 into the events of the equivalent stream. Accepts a
/// list of chunks too, which is the API's answer to streaming without `alt=sse`.
///
/// Fails with the provider's error if the body is an error, and with
/// [`ModelErrorKind::Protocol`](switchboard_domain::ModelErrorKind::Protocol) if the body has no
/// answer.
pub fn events_from_body(
    decoder: GenerateDecoder,
    body: &str,
) -> Result<Vec<ModelEvent>, ModelError> {
    let mut decoder = decoder.allow_missing_finish_reason();
    let mut events = Vec::new();
    decoder.decode_frame("", body, &mut events)?;
    decoder.finish_decoding(&mut events)?;
    Ok(events)
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;

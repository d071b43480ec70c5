//! The answer of a server, read by the decoder of its wire.

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use switchboard_domain::{
    ChatResponse, ModelError, ModelErrorKind, ModelEvent, ModelStream, ResponseAccumulator,
};
use switchboard_providers_common::{
    ByteStream, HttpAnswer, MAX_FRAME_BYTES, WireDecoder, decode_sse, read_to_end,
};

use crate::OpenAiClient;

/// A decoder that also reads an answer which came whole.
pub(crate) trait AnswerDecoder: WireDecoder + Sized + 'static {
    /// The events of a stream that says the same as `body`.
    fn whole(self, body: &str) -> Result<Vec<ModelEvent>, ModelError>;
}

/// The bytes of a request body.
pub(crate) fn written(provider: &str, body: &impl Serialize) -> Result<Vec<u8>, ModelError> {
    serde_json::to_vec(body).map_err(|fault| {
        let kind = ModelErrorKind::InvalidRequest { field: None };
        ModelError::new(provider, kind, "the request cannot be written as JSON").with_source(fault)
    })
}

/// Sends a body to an endpoint and reads what comes back, a stream or not.
pub(crate) async fn ask(
    client: &OpenAiClient,
    endpoint: &str,
    body: Vec<u8>,
    decoder: impl AnswerDecoder,
) -> Result<ModelStream, ModelError> {
    let provider = &client.config().provider;
    let answer = client.post(endpoint, body).await?;
    let (status, request_id) = (answer.status, answer.request_id.clone());
    // An error within the answer does not know which request it is about.
    let about = move |error: ModelError| match error.status() {
        Some(_) => error,
        None => error
            .with_status(status)
            .with_request_id(request_id.clone()),
    };
    match read(provider, answer, decoder).await {
        Ok(stream) => Ok(Box::pin(stream.map_err(about))),
        Err(error) => Err(about(error)),
    }
}

async fn read(
    provider: &str,
    answer: HttpAnswer,
    decoder: impl AnswerDecoder,
) -> Result<ModelStream, ModelError> {
    let is_json = answer.media_type().is_some_and(|it| it.ends_with("json"));
    let mut body = answer.body;
    // Here at once: an answer is handed over with its first bytes.
    let first = body.try_next().await?;
    let is_whole = first.as_ref().and_then(is_whole).unwrap_or(is_json);
    let body: ByteStream = Box::pin(stream::iter(first.map(Ok)).chain(body));
    if !is_whole {
        return Ok(decode_sse(provider, body, decoder));
    }
    let body = read_to_end(provider, body, MAX_FRAME_BYTES).await?;
    let body = std::str::from_utf8(&body).map_err(|fault| {
        ModelError::new(provider, ModelErrorKind::Protocol, "the answer is no text")
            .with_source(fault)
    })?;
    let events = decoder.whole(body)?;
    Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
}

/// Whether a body that begins so is a whole answer, not a stream; `None` if its beginning says
/// nothing (some servers send blank lines while the model works).
fn is_whole(first: &Bytes) -> Option<bool> {
    let visible = first.iter().find(|byte| !byte.is_ascii_whitespace())?;
    Some(matches!(visible, b'{' | b'['))
}

/// What events add up to.
pub(crate) fn assembled(provider: &str, events: &[ModelEvent]) -> Result<ChatResponse, ModelError> {
    let mut answer = ResponseAccumulator::default();
    for event in events {
        answer
            .push(event)
            .map_err(|fault| ModelError::from_grammar(provider, fault))?;
    }
    answer
        .finish()
        .map_err(|fault| ModelError::from_grammar(provider, fault))
}

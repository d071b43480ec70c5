//! The answer of a server, read by the decoder of its wire.

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use switchboard_domain::{
    FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelStream, Warning, WarningKind,
};
use switchboard_providers_common::{
    ByteStream, HttpAnswer, MAX_FRAME_BYTES, WireDecoder, decode_sse, read_text,
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
    let context = answer.context();
    let about = move |error| context.apply(error);
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
    let body = read_text(provider, body, MAX_FRAME_BYTES).await?;
    let events = decoder.whole(&body)?;
    Ok(Box::pin(stream::iter(events.into_iter().map(Ok))))
}

/// Whether a body that begins so is a whole answer, not a stream; `None` if its beginning says
/// nothing (some servers send blank lines while the model works).
fn is_whole(first: &Bytes) -> Option<bool> {
    let visible = first.iter().find(|byte| !byte.is_ascii_whitespace())?;
    Some(matches!(visible, b'{' | b'['))
}

/// What an answer came to, of which its end depends beside the server's word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came {
    /// The model declined.
    pub(crate) refused: bool,
    /// A call with a name came.
    pub(crate) called: bool,
    /// Calls that came without ever being given a name.
    pub(crate) nameless: usize,
}

impl Came {
    /// Says the last event: the reason, in the light of what came.
    pub(crate) fn finish(
        self,
        mut reason: FinishReason,
        raw: Option<String>,
        events: &mut Vec<ModelEvent>,
    ) {
        if self.refused && reason == FinishReason::Stop {
            reason = FinishReason::Refusal;
        }
        if self.nameless > 0 {
            let count = self.nameless;
            let message = format!("{count} call(s) came without a name and were left out");
            let warning = Warning::new(WarningKind::UnknownWireValue, message);
            events.push(ModelEvent::Warning { warning });
            if !self.called && matches!(reason, FinishReason::Stop | FinishReason::ToolUse) {
                reason = FinishReason::MalformedToolCall;
            }
        }
        let reason = reason.given_tool_uses(self.called);
        events.push(ModelEvent::Finished { reason, raw });
    }
}

//! The answer of a server, read by the decoder of its wire.

use futures_util::stream;
use serde::Serialize;
use switchboard_domain::{
    FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelStream, Warning, WarningKind,
};
use switchboard_providers_common::{
    ByteStream, MAX_FRAME_BYTES, WireDecoder, as_text, decode_sse_of, read_to_end,
};

use crate::OpenAiClient;

/// A decoder that also reads an answer which came whole.
pub(crate) trait AnswerDecoder: WireDecoder + Sized + 'static {
    /// The events of a stream that says the same as `body`.
    fn whole(self: Box<Self>, body: &str) -> Result<Vec<ModelEvent>, ModelError>;
}

/// The bytes of a request body, which has about `room` of them.
pub(crate) fn written(
    provider: &str,
    body: &impl Serialize,
    room: usize,
) -> Result<Vec<u8>, ModelError> {
    let mut bytes = Vec::with_capacity(room);
    match serde_json::to_writer(&mut bytes, body) {
        Ok(()) => Ok(bytes),
        Err(fault) => {
            let kind = ModelErrorKind::InvalidRequest { field: None };
            let error = ModelError::new(provider, kind, "the request cannot be written as JSON");
            Err(error.with_source(fault))
        }
    }
}

/// Sends a body to an endpoint and reads what comes back, a stream or not. `streams`: the body asks for
/// a stream. The decoder is in a box: it is big, and would be moved from future to future.
pub(crate) async fn ask(
    client: &OpenAiClient,
    endpoint: &'static str,
    streams: bool,
    body: Vec<u8>,
    decoder: Box<impl AnswerDecoder>,
) -> Result<ModelStream, ModelError> {
    let provider = &client.config().provider;
    let answer = client.post(endpoint, streams, body).await?;
    let context = answer.context();
    if !answer.is_whole() {
        return Ok(decode_sse_of(context, provider, answer.body, *decoder));
    }
    match whole(provider, answer.body, decoder).await {
        Ok(events) => Ok(Box::pin(stream::iter(events.into_iter().map(Ok)))),
        Err(error) => Err(context.apply(error)),
    }
}

async fn whole(
    provider: &str,
    body: ByteStream,
    decoder: Box<impl AnswerDecoder>,
) -> Result<Vec<ModelEvent>, ModelError> {
    let body = read_to_end(provider, body, MAX_FRAME_BYTES).await?;
    decoder.whole(as_text(provider, &body)?)
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

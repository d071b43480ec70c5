//! Reads an answer that the API splits over several responses.
//!
//! A response that reaches the API's limit per request ends with the finish reason `CONTINUATION`
//! and a token. The first request, sent again with that token, returns the rest of the answer. All
//! responses are read as one stream, as in the official SDK.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde_json::{Map, Value};
use switchboard_domain::{ModelError, ModelErrorKind};
use switchboard_providers_common::{
    ByteStream, HttpAnswer, MAX_FRAME_BYTES, provider::SentRequest, read_to_end,
};

use crate::{GeminiModel, generate::Continuation};

/// Data for requesting the rest of an answer that the API splits into several responses: the model,
/// the first request, and the state that is shared with the decoder.
pub(crate) struct ContinuationSource {
    pub(crate) model: GeminiModel,
    /// The request that started the answer. To get the rest of the answer, it is sent again with a
    /// continuation token.
    pub(crate) sent: SentRequest,
    pub(crate) continuation: Continuation,
}

/// Returns the bytes of an answer as one stream of server-sent events. The events of the response
/// `first` are followed by the events of the responses that continue the answer.
pub(crate) fn continue_answer(source: ContinuationSource, first: HttpAnswer) -> ByteStream {
    let parts = ContinuedAnswer {
        current: Some(to_sse_events(source.model.provider(), first)),
        source,
        at_line_end: false,
    };
    Box::pin(stream::unfold(parts, ContinuedAnswer::next))
}

struct ContinuedAnswer {
    source: ContinuationSource,
    /// The response body that is being read. `None` between two requests and after the last one.
    current: Option<ByteStream>,
    at_line_end: bool,
}

impl ContinuedAnswer {
    async fn next(mut self) -> Option<(Result<Bytes, ModelError>, Self)> {
        loop {
            let Some(current) = &mut self.current else {
                let token = self.source.continuation.take_continuation_token()?;
                match self.source.request_continuation(token).await {
                    Ok(rest) => self.current = Some(rest),
                    Err(error) => return Some((Err(error), self)),
                }
                continue;
            };
            match current.next().await {
                Some(Ok(piece)) => {
                    if let Some(last) = piece.last() {
                        self.at_line_end = matches!(last, b'\n' | b'\r');
                    }
                    return Some((Ok(piece), self));
                }
                Some(Err(error)) => {
                    self.current = None;
                    return Some((Err(error), self));
                }
                // The body ended within a line, so it was truncated. No continuation is requested,
                // because its first line would be read as the end of the truncated line.
                None if !self.at_line_end => return None,
                None => {
                    self.current = None;
                    // This blank line completes the last event. The decoder then reads that event
                    // and its continuation token before the next iteration takes the token.
                    return Some((Ok(Bytes::from_static(b"\n\n")), self));
                }
            }
        }
    }
}

impl ContinuationSource {
    /// Sends the first request again with the continuation `token`. Errors have the kind
    /// [`ModelErrorKind::Interrupted`], because the answer has begun.
    async fn request_continuation(&self, token: String) -> Result<ByteStream, ModelError> {
        let provider = self.model.provider();
        let body = add_continuation_token(&self.sent.body, token).map_err(|fault| {
            let message = "the request could not be parsed to continue the answer";
            ModelError::new(provider, ModelErrorKind::Interrupted, message).with_source(fault)
        })?;
        let sent = SentRequest {
            body,
            ..self.sent.clone()
        };
        match self.model.send_follow_up(&sent).await {
            Ok(answer) => Ok(to_sse_events(provider, answer)),
            Err(error) => {
                let message = format!("the rest of the answer is missing: {}", error.message());
                let interrupted = ModelError::new(provider, ModelErrorKind::Interrupted, message)
                    .with_request_id(error.request_id().map(str::to_owned));
                let interrupted = match error.http_status() {
                    Some(status) => interrupted.with_status(status),
                    None => interrupted,
                };
                Err(interrupted.with_source(error))
            }
        }
    }
}

/// Returns the body of an answer as server-sent events. A body that is one JSON document becomes
/// one event.
fn to_sse_events(provider: &str, answer: HttpAnswer) -> ByteStream {
    if !answer.is_json_document() {
        return answer.body;
    }
    let (provider, body) = (provider.to_owned(), answer.body);
    Box::pin(stream::once(async move {
        let document = read_to_end(&provider, body, MAX_FRAME_BYTES).await?;
        Ok(Bytes::from(document_as_event(&document)))
    }))
}

fn document_as_event(document: &[u8]) -> Vec<u8> {
    let mut event = Vec::with_capacity(document.len() + 64);
    // Each line of the document becomes one `data:` line of the event. Splitting at line ends is
    // safe, because JSON strings contain them only in escaped form.
    let lines = document.split(|byte| matches!(byte, b'\n' | b'\r'));
    for line in lines.filter(|line| !line.is_empty()) {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    event
}

fn add_continuation_token(body: &[u8], token: String) -> Result<Bytes, serde_json::Error> {
    let mut body: Map<String, Value> = serde_json::from_slice(body)?;
    body.insert("continuationToken".to_owned(), Value::String(token));
    serde_json::to_vec(&body).map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_requested_with_the_same_body() {
        let body =
            add_continuation_token(br#"{"contents":[1],"tools":[]}"#, "dG9r".into()).unwrap();
        assert_eq!(
            body,
            r#"{"contents":[1],"tools":[],"continuationToken":"dG9r"}"#
        );
    }

    #[test]
    fn a_document_becomes_one_event() {
        let event = document_as_event(b"[{\r\n  \"a\": 1\n\n}]\n");
        assert_eq!(event, b"data: [{\ndata:   \"a\": 1\ndata: }]\n\n");
    }
}

//! Answers that the API gives in several requests.
//!
//! An answer that reaches the API's limit per request ends with `CONTINUATION` and a token. The same
//! request with that token brings the rest, which is read as if one stream had brought it all, as the
//! official SDK does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde_json::{Map, Value};
use switchboard_domain::{Delivery, ModelError, ModelErrorKind};
use switchboard_providers_common::ByteStream;

use crate::GeminiClient;

/// Requests for one answer at most, so that no server keeps a client for ever.
const MAX_HOPS: u32 = 32;

/// What the decoder, which meets the token, and the body, which asks for the rest, share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Continuation(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    token: Option<String>,
    hop: u32,
}

impl Continuation {
    /// Asks for what comes after `token`; `false` if it was asked too often.
    pub(crate) fn ask(&self, token: &str) -> bool {
        let mut state = self.state();
        let may = state.hop.saturating_add(1) < MAX_HOPS;
        if may {
            state.token = Some(token.to_owned());
        }
        may
    }

    /// How many requests were made after the first.
    pub(crate) fn hop(&self) -> u32 {
        self.state().hop
    }

    pub(crate) fn take(&self) -> Option<String> {
        let mut state = self.state();
        let token = state.token.take()?;
        state.hop = state.hop.saturating_add(1);
        Some(token)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock leaves it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the rest of an answer comes from.
pub(crate) struct Source {
    pub(crate) client: GeminiClient,
    /// The model, in the server's words.
    pub(crate) model: Arc<str>,
    /// How the first answer was asked for, and so the rest.
    pub(crate) delivery: Delivery,
    /// The body of the first request.
    pub(crate) body: Bytes,
    pub(crate) continuation: Continuation,
}

/// The events of an answer, of which `first` is the beginning.
pub(crate) fn continued(source: Source, first: ByteStream) -> ByteStream {
    let hops = Hops {
        source,
        current: Some(first),
        at_line_end: false,
    };
    Box::pin(stream::unfold(hops, Hops::next))
}

struct Hops {
    source: Source,
    /// `None` between two requests, and at the end.
    current: Option<ByteStream>,
    at_line_end: bool,
}

impl Hops {
    async fn next(mut self) -> Option<(Result<Bytes, ModelError>, Self)> {
        loop {
            let Some(current) = &mut self.current else {
                let token = self.source.continuation.take()?;
                match self.source.ask(token).await {
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
                // Cut off within a line: the rest would be read into it.
                None if !self.at_line_end => return None,
                None => {
                    self.current = None;
                    // The last event may lack its closing line, and has to be read before the token
                    // in it is asked for.
                    return Some((Ok(Bytes::from_static(b"\n\n")), self));
                }
            }
        }
    }
}

impl Source {
    async fn ask(&self, token: String) -> Result<ByteStream, ModelError> {
        let provider = &self.client.config().provider;
        // The answer has begun, whatever is wrong now.
        let broken_off = |error: ModelError| {
            let message = format!(
                "the rest of the answer could not be had: {}",
                error.message()
            );
            let id = error.request_id().map(str::to_owned);
            let status = error.status();
            let broken = ModelError::new(provider, ModelErrorKind::Interrupted, message)
                .with_request_id(id)
                .with_source(error);
            match status {
                Some(status) => broken.with_status(status),
                None => broken,
            }
        };
        let body = with_token(&self.body, token).map_err(|fault| {
            let message = "the request could not be read again";
            ModelError::new(provider, ModelErrorKind::Interrupted, message).with_source(fault)
        })?;
        let (client, model) = (&self.client, &self.model);
        let opened = client.generate(model, self.delivery, body, false).await;
        Ok(opened.map_err(broken_off)?.events)
    }
}

fn with_token(body: &[u8], token: String) -> Result<Bytes, serde_json::Error> {
    let mut body: Map<String, Value> = serde_json::from_slice(body)?;
    body.insert("continuationToken".to_owned(), Value::String(token));
    serde_json::to_vec(&body).map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_server_keeps_a_client_for_ever() {
        let continuation = Continuation::default();
        let mut hops = 1;
        while continuation.ask("t") {
            assert_eq!(continuation.take().as_deref(), Some("t"));
            hops += 1;
        }
        assert_eq!((hops, continuation.take()), (MAX_HOPS, None));
        assert_eq!(continuation.hop(), MAX_HOPS - 1);
    }

    #[test]
    fn the_rest_is_asked_for_with_the_same_request() {
        let body = with_token(br#"{"contents":[1],"tools":[]}"#, "dG9r".into()).unwrap();
        assert_eq!(
            body,
            r#"{"contents":[1],"tools":[],"continuationToken":"dG9r"}"#
        );
    }
}

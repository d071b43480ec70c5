//! Requests that the server received.

use std::{fmt, sync::Arc};

use axum::{
    body::Bytes,
    http::{HeaderMap, request::Parts},
};
use serde_json::Value;

use super::gate::Latch;

/// Names of headers with secret values. `Debug` hides them, because tests may also use real API
/// keys.
const SECRET_HEADERS: [&str; 5] = [
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
];

/// A received request and the state of its answer. Clones are the same request.
///
/// `Debug` hides the values of headers with API keys and cookies.
#[derive(Clone)]
pub struct Request(Arc<RequestData>);

struct RequestData {
    method: String,
    path: String,
    query: Option<String>,
    headers: HeaderMap,
    body: Bytes,
    json: Value,
    client_gone: Latch,
    answered: Latch,
}

impl Request {
    pub(super) fn new(parts: Parts, body: Bytes) -> Self {
        let mut headers = parts.headers;
        for name in SECRET_HEADERS {
            if let Some(value) = headers.get_mut(name) {
                value.set_sensitive(true);
            }
        }
        Self(Arc::new(RequestData {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(ToOwned::to_owned),
            headers,
            json: serde_json::from_slice(&body).unwrap_or_default(),
            body,
            client_gone: Latch::default(),
            answered: Latch::default(),
        }))
    }

    /// Returns the method, such as `POST`.
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// Returns the path, such as `/v1/messages`.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Returns the query string after `?`, still encoded.
    pub fn query(&self) -> Option<&str> {
        self.0.query.as_deref()
    }

    /// Returns the first value of a header if it is text. Names are case-insensitive.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers.get(name)?.to_str().ok()
    }

    /// Returns the bytes of the body.
    pub fn body(&self) -> &[u8] {
        &self.0.body
    }

    /// Returns the body as JSON, or `null` if it is not JSON.
    pub fn json(&self) -> &Value {
        &self.0.json
    }

    /// Waits until the client has closed the connection before the end of the answer. Dropping a
    /// model's stream must do this.
    pub async fn client_gone(&self) {
        self.0.client_gone.wait().await;
    }

    /// Returns whether the client closed the connection before the end of the answer.
    pub fn is_client_gone(&self) -> bool {
        self.0.client_gone.is_set()
    }

    /// Waits until the answer was sent completely, or up to its [abort](super::Answer::break_off).
    pub async fn answered(&self) {
        self.0.answered.wait().await;
    }

    pub(super) fn create_answer_guard(&self) -> AnswerGuard {
        AnswerGuard(Some(self.clone()))
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.0.method)
            .field("path", &self.0.path)
            .field("query", &self.0.query)
            .field("headers", &self.0.headers)
            .field("body", &String::from_utf8_lossy(&self.0.body))
            .finish_non_exhaustive()
    }
}

/// A guard that the body of an answer owns. If it is dropped before the end of the answer, the
/// client has disconnected, because only the connection drops a body.
pub(super) struct AnswerGuard(Option<Request>);

impl AnswerGuard {
    /// Marks the answer as complete.
    pub(super) fn answered(&mut self) {
        if let Some(request) = self.0.take() {
            request.0.answered.set();
        }
    }

    /// Makes a later drop of this guard not count as a disconnected client, because the fake server
    /// itself ends the answer.
    pub(super) fn abandon(&mut self) {
        self.0 = None;
    }
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        if let Some(request) = &self.0 {
            request.0.client_gone.set();
        }
    }
}

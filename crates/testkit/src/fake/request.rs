//! What the server was asked.

use std::{fmt, sync::Arc};

use axum::{
    body::Bytes,
    http::{HeaderMap, request::Parts},
};
use serde_json::Value;

use super::gate::Latch;

/// Headers whose values are secrets, also in tests against one's own account.
const SECRETS: [&str; 5] = [
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
];

/// A request as it arrived, and what became of its answer. Clones are the same request.
///
/// `Debug` leaves out the values of headers that carry keys.
#[derive(Clone)]
pub struct Request(Arc<Inner>);

struct Inner {
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
        for name in SECRETS {
            if let Some(value) = headers.get_mut(name) {
                value.set_sensitive(true);
            }
        }
        Self(Arc::new(Inner {
            method: parts.method.to_string(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(ToOwned::to_owned),
            headers,
            json: serde_json::from_slice(&body).unwrap_or_default(),
            body,
            client_gone: Latch::new(),
            answered: Latch::new(),
        }))
    }

    /// The method, such as `POST`.
    pub fn method(&self) -> &str {
        &self.0.method
    }

    /// The path, such as `/v1/messages`.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// What stands behind the `?`, still encoded.
    pub fn query(&self) -> Option<&str> {
        self.0.query.as_deref()
    }

    /// The first value of a header, if it is text. Names are compared without regard to case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.headers.get(name)?.to_str().ok()
    }

    /// The body's bytes.
    pub fn body(&self) -> &[u8] {
        &self.0.body
    }

    /// The body as JSON; `null` if it was none.
    pub fn json(&self) -> &Value {
        &self.0.json
    }

    /// Waits until the client has closed the connection before the answer was complete, which is
    /// what dropping a model's stream has to do.
    pub async fn client_gone(&self) {
        self.0.client_gone.wait().await;
    }

    /// Whether the client has closed the connection before the answer was complete.
    pub fn is_client_gone(&self) -> bool {
        self.0.client_gone.is_set()
    }

    /// Waits until the answer was given to its end, be it a [break](super::Answer::break_off).
    pub async fn answered(&self) {
        self.0.answered.wait().await;
    }

    pub(super) fn watch(&self) -> Watch {
        Watch(Some(self.clone()))
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            method,
            path,
            query,
            headers,
            body,
            ..
        } = &*self.0;
        f.debug_struct("Request")
            .field("method", method)
            .field("path", path)
            .field("query", query)
            .field("headers", headers)
            .field("body", &String::from_utf8_lossy(body))
            .finish_non_exhaustive()
    }
}

/// Rides on the answer. Dropped with it before its end, it tells that the client has gone: nobody
/// else drops an answer.
pub(super) struct Watch(Option<Request>);

impl Watch {
    /// The answer was given.
    pub(super) fn answered(&mut self) {
        if let Some(request) = self.0.take() {
            request.0.answered.set();
        }
    }

    /// The server itself ends.
    pub(super) fn abandon(&mut self) {
        self.0 = None;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(request) = &self.0 {
            request.0.client_gone.set();
        }
    }
}

//! What is sent.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use secrecy::{ExposeSecret as _, SecretString};
use switchboard_domain::{ModelError, ModelErrorKind};

use super::redact;

/// Headers that are secret however they are given, such as by a person's configuration.
const SECRET_HEADERS: [&str; 6] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
];

/// The headers of a request, of which some are secret.
///
/// An adapter makes those that never change once and gives them to each request. A name or value
/// that HTTP does not allow is told by [`check`](Headers::check), or when a request with it is sent.
///
/// ```
/// use secrecy::SecretString;
/// use switchboard_providers_common::Headers;
///
/// let headers = Headers::new()
///     .with("anthropic-version", "2023-06-01")
///     .with_bearer(&SecretString::from("sk-do-not-print-me"));
/// assert!(headers.check("anthropic").is_ok());
/// assert!(!format!("{headers:?}").contains("do-not-print-me"));
/// ```
#[derive(Clone, Default)]
pub struct Headers {
    map: HeaderMap,
    /// What is wrong with the first one that is wrong.
    fault: Option<String>,
}

impl Headers {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with another header; one of the same name is replaced. Those that are known for
    /// keys, such as `authorization` and `x-api-key`, are secret in any case.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.insert(name, value, false);
        self
    }

    /// The same with a header whose value is shown nowhere. White space around it, such as the line
    /// end of a file, is dropped.
    #[must_use]
    pub fn with_secret(mut self, name: &str, value: &SecretString) -> Self {
        self.insert(name, value.expose_secret().trim(), true);
        self
    }

    /// The same with `authorization: Bearer …`.
    #[must_use]
    pub fn with_bearer(mut self, token: &SecretString) -> Self {
        let value = format!("Bearer {}", token.expose_secret().trim());
        self.insert(header::AUTHORIZATION.as_str(), &value, true);
        self
    }

    /// The same with all of `others`, which replace those of the same name.
    #[must_use]
    pub fn with_all(mut self, others: &Self) -> Self {
        for (name, value) in &others.map {
            self.map.insert(name.clone(), value.clone());
        }
        self.fault = self.fault.or_else(|| others.fault.clone());
        self
    }

    /// The value of a header, unless it is secret or not text.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.map.get(name).filter(|value| !value.is_sensitive())?;
        value.to_str().ok()
    }

    /// Whether there is such a header.
    pub fn contains(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Fails with [`ModelErrorKind::Configuration`] if HTTP does not allow one of them.
    pub fn check(&self, provider: &str) -> Result<(), ModelError> {
        match &self.fault {
            Some(fault) => Err(ModelError::new(
                provider,
                ModelErrorKind::Configuration,
                fault,
            )),
            None => Ok(()),
        }
    }

    pub(super) fn map(&self) -> &HeaderMap {
        &self.map
    }

    fn insert(&mut self, name: &str, value: &str, secret: bool) {
        let fault = match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(secret || SECRET_HEADERS.contains(&name.as_str()));
                self.map.insert(name, value);
                return;
            }
            (Err(_), _) => format!("`{}` is no name of a header", name.escape_debug()),
            (_, Err(_)) => format!(
                "the value of the header `{name}` holds a character that a header cannot hold, \
                 such as a line end"
            ),
        };
        self.fault.get_or_insert(fault);
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A `HeaderValue` that is sensitive prints as `Sensitive`.
        f.debug_map().entries(&self.map).finish()
    }
}

/// A request. Its body is shared by all attempts to send it.
#[derive(Clone)]
pub struct HttpRequest {
    pub(super) url: String,
    pub(super) headers: Headers,
    pub(super) body: Option<Bytes>,
    pub(super) expected: &'static [&'static str],
}

impl HttpRequest {
    /// A request to `url`, which is checked when it is sent. Errors and logs show the address
    /// without user, password and query.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Headers::new(),
            body: None,
            expected: &[],
        }
    }

    /// The same with another header: [`Headers::with`].
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers = self.headers.with(name, value);
        self
    }

    /// The same with a secret header: [`Headers::with_secret`].
    #[must_use]
    pub fn with_secret(mut self, name: &str, value: &SecretString) -> Self {
        self.headers = self.headers.with_secret(name, value);
        self
    }

    /// The same with `authorization: Bearer …`: [`Headers::with_bearer`].
    #[must_use]
    pub fn with_bearer(mut self, token: &SecretString) -> Self {
        self.headers = self.headers.with_bearer(token);
        self
    }

    /// The same with all of `headers`: [`Headers::with_all`].
    #[must_use]
    pub fn with_headers(mut self, headers: &Headers) -> Self {
        self.headers = self.headers.with_all(headers);
        self
    }

    /// The same with a body of JSON text.
    #[must_use]
    pub fn with_json(mut self, json: impl Into<Bytes>) -> Self {
        self.body = Some(json.into());
        self.of_json()
    }

    /// The same for bodies of JSON text that are given one by one, with
    /// [`post_to`](super::HttpTransport::post_to).
    #[must_use]
    pub fn of_json(mut self) -> Self {
        self.headers = self
            .headers
            .with(header::CONTENT_TYPE.as_str(), "application/json");
        self
    }

    /// The same with the media types that a successful answer may have, such as
    /// `text/event-stream`. They are sent as `accept` unless that header is there. An answer of
    /// another type, such as a proxy's page of HTML, is then an error; one without a type is taken.
    #[must_use]
    pub fn expecting(mut self, media_types: &'static [&'static str]) -> Self {
        self.expected = media_types;
        self
    }

    /// The same for a model's answer, as server-sent events or as one JSON document. Either is taken whatever
    /// was asked for, and under the wrong names that servers give it: what came shows in the body
    /// ([`HttpAnswer::is_whole`](super::HttpAnswer::is_whole)).
    #[must_use]
    pub fn expecting_answer(self, streamed: bool) -> Self {
        let accept = if streamed {
            "text/event-stream"
        } else {
            "application/json"
        };
        self.with_header(header::ACCEPT.as_str(), accept)
            .expecting(&[
                "text/event-stream",
                "application/json",
                "text/plain",
                "application/octet-stream",
            ])
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("url", &redact::shown(&self.url))
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.as_ref().map(Bytes::len))
            .field("expected", &self.expected)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_printed_nowhere() {
        let request =
            HttpRequest::new("https://me:hunter22@models.example/v1?key=hidden-1#hidden-2")
                .with_secret("x-api-key", &SecretString::from("hidden-3\n"))
                .with_bearer(&SecretString::from("hidden-4"))
                .with_header("X-Goog-Api-Key", "hidden-6")
                .with_header("x-shown", "shown")
                .with_json("{\"prompt\":\"hidden-5\"}");
        let debug = format!("{request:?}");
        assert!(
            !debug.contains("hidden") && !debug.contains("hunter22"),
            "{debug}"
        );
        assert!(debug.contains("https://models.example/v1"), "{debug}");
        assert!(debug.contains("x-shown"), "{debug}");
        assert_eq!(request.headers.get("x-api-key"), None);
        assert!(request.headers.contains("X-Api-Key"));
        assert!(request.headers.check("p").is_ok());
    }

    #[test]
    fn a_value_that_no_header_can_hold_is_told_without_the_value() {
        let headers = Headers::new()
            .with("x-good", "1")
            .with_secret("x-api-key", &SecretString::from("sk-\nhidden"))
            .with("bad name", "2");
        let error = headers.check("acme").unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        assert!(error.message().contains("x-api-key"), "{error}");
        assert!(!format!("{error:?}").contains("hidden"), "{error:?}");
        let joined = Headers::new().with_all(&headers);
        assert!(joined.check("acme").is_err());
        assert_eq!(joined.get("x-good"), Some("1"));
    }

    #[test]
    fn a_later_header_replaces_an_earlier_one() {
        let defaults = Headers::new().with("x-version", "2");
        let request = HttpRequest::new("http://a.example")
            .with_header("X-Version", "1")
            .with_headers(&defaults);
        assert_eq!(request.headers.get("x-version"), Some("2"));
        assert_eq!(request.headers.map().len(), 1);
    }
}

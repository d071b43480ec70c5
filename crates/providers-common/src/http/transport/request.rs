//! HTTP requests to providers, and their headers.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use secrecy::{ExposeSecret as _, SecretString};
use switchboard_domain::{ModelError, ModelErrorKind};

use super::redact;

/// Names of the headers whose values are always secret.
const SECRET_HEADERS: [&str; 6] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
];

/// Headers of an HTTP request, some of which are secret.
///
/// If HTTP does not allow the name or value of a header, [`check_headers`](Headers::check_headers)
/// fails, and so does sending the request.
///
/// ```
/// use secrecy::SecretString;
/// use switchboard_providers_common::Headers;
///
/// let headers = Headers::new()
///     .with_header("anthropic-version", "2023-06-01")
///     .with_bearer(&SecretString::from("sk-do-not-print-me"));
/// assert!(headers.check_headers("anthropic").is_ok());
/// assert!(!format!("{headers:?}").contains("do-not-print-me"));
/// ```
// `Debug` prints no secrets, because a sensitive `HeaderValue` prints as `Sensitive`.
#[derive(Debug, Clone, Default)]
pub struct Headers {
    map: HeaderMap,
    /// Description of the first header with an invalid name or value. `None` if all are valid.
    fault: Option<String>,
}

impl Headers {
    /// Creates an empty set of headers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a header. The values of credential headers, such as `authorization` and `x-api-key`,
    /// are always secret.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.insert(name, value, false);
        self
    }

    /// Sets a secret header. White space around the value, such as the line end of a file, is
    /// removed.
    #[must_use]
    pub fn with_secret(mut self, name: &str, value: &SecretString) -> Self {
        self.insert(name, value.expose_secret().trim(), true);
        self
    }

    /// Sets the header `authorization: Bearer …` with a secret token.
    #[must_use]
    pub fn with_bearer(mut self, token: &SecretString) -> Self {
        let value = format!("Bearer {}", token.expose_secret().trim());
        self.insert(header::AUTHORIZATION.as_str(), &value, true);
        self
    }

    /// Sets all headers of `others`. They replace headers with the same names.
    #[must_use]
    pub fn with_all_headers(mut self, others: &Self) -> Self {
        for (name, value) in &others.map {
            self.map.insert(name.clone(), value.clone());
        }
        self.fault = self.fault.or_else(|| others.fault.clone());
        self
    }

    /// Returns the value of a header. Returns `None` if the header is not set, is secret or has a
    /// value that is not text.
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.map.get(name).filter(|value| !value.is_sensitive())?;
        value.to_str().ok()
    }

    /// Returns whether a header is set.
    pub fn contains(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Checks all headers. Fails with [`ModelErrorKind::Configuration`] if HTTP does not allow a
    /// header's name or value.
    pub fn check_headers(&self, provider: &str) -> Result<(), ModelError> {
        match &self.fault {
            Some(fault) => Err(ModelError::new(
                provider,
                ModelErrorKind::Configuration,
                fault,
            )),
            None => Ok(()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty() && self.fault.is_none()
    }

    pub(super) fn header_map(&self) -> &HeaderMap {
        &self.map
    }

    fn insert(&mut self, name: &str, value: &str, secret: bool) {
        let fault = match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(secret || SECRET_HEADERS.contains(&name.as_str()));
                self.map.insert(name, value);
                return;
            }
            (Err(_), _) => format!("`{}` is not a header name", name.escape_debug()),
            (_, Err(_)) => format!(
                "the value of header `{name}` contains an invalid character, such as a line break"
            ),
        };
        self.fault.get_or_insert(fault);
    }
}

/// An HTTP request to a provider. All attempts share its body.
#[derive(Clone, derive_more::Debug)]
pub struct HttpRequest {
    #[debug("{:?}", redact::strip_address_secrets(url))]
    pub(super) url: String,
    pub(super) headers: Headers,
    #[debug("{:?} bytes", body.as_ref().map(Bytes::len))]
    pub(super) body: Option<Bytes>,
    pub(super) expected: &'static [&'static str],
}

impl HttpRequest {
    /// Creates a request to `url`, which is checked when the request is sent. Errors and logs show
    /// the address without user, password and query.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Headers::new(),
            body: None,
            expected: &[],
        }
    }

    /// Sets a header of the request, as [`Headers::with_header`] does.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers = self.headers.with_header(name, value);
        self
    }

    /// Sets a secret header of the request, as [`Headers::with_secret`] does.
    #[must_use]
    pub fn with_secret(mut self, name: &str, value: &SecretString) -> Self {
        self.headers = self.headers.with_secret(name, value);
        self
    }

    /// Sets all of `headers` in the request, as [`Headers::with_all_headers`] does.
    #[must_use]
    pub fn with_headers(mut self, headers: &Headers) -> Self {
        self.headers = self.headers.with_all_headers(headers);
        self
    }

    /// Sets JSON text as the body of the request.
    #[must_use]
    pub fn with_json(mut self, json: impl Into<Bytes>) -> Self {
        self.body = Some(json.into());
        self.with_header(header::CONTENT_TYPE.as_str(), "application/json")
    }

    /// Sets the media types of a successful answer, such as `text/event-stream`. They are sent as
    /// `accept` unless that header is set. An answer of another type, such as a proxy's HTML page,
    /// is an error; an answer without a type is accepted.
    #[must_use]
    pub fn expect_media_types(mut self, media_types: &'static [&'static str]) -> Self {
        self.expected = media_types;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_contains_no_secret() {
        let request =
            HttpRequest::new("https://me:hunter22@models.example/v1?key=hidden-1#hidden-2")
                .with_secret("x-api-key", &SecretString::from("hidden-3\n"))
                .with_headers(&Headers::new().with_bearer(&SecretString::from("hidden-4")))
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
        assert!(request.headers.check_headers("p").is_ok());
    }

    #[test]
    fn an_invalid_value_is_reported_without_the_value() {
        let headers = Headers::new()
            .with_header("x-good", "1")
            .with_secret("x-api-key", &SecretString::from("sk-\nhidden"))
            .with_header("bad name", "2");
        let error = headers.check_headers("acme").unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        assert!(error.message().contains("x-api-key"), "{error}");
        assert!(!format!("{error:?}").contains("hidden"), "{error:?}");
        let joined = Headers::new().with_all_headers(&headers);
        assert!(joined.check_headers("acme").is_err());
        assert_eq!(joined.get("x-good"), Some("1"));
    }

    #[test]
    fn a_later_header_replaces_an_earlier_one() {
        let defaults = Headers::new().with_header("x-version", "2");
        let request = HttpRequest::new("http://a.example")
            .with_header("X-Version", "1")
            .with_headers(&defaults);
        assert_eq!(request.headers.get("x-version"), Some("2"));
        assert_eq!(request.headers.header_map().len(), 1);
    }
}

//! Classification of failed HTTP responses.

use std::time::Duration;

use http::HeaderMap;
use switchboard_domain::{ModelError, ModelErrorKind};

/// Maximum number of characters that an error message quotes from a response body.
const EXCERPT_CHARS: usize = 300;

/// A failed HTTP response. A response with status 200 and an unexpected media type also counts,
/// because some servers send errors this way.
#[derive(Debug, Clone, Copy)]
pub struct HttpFailure<'a> {
    /// HTTP status of the failed response.
    pub status: u16,
    /// Headers of the failed response.
    pub headers: &'a HeaderMap,
    /// First 64 KiB of the response body, as UTF-8. Secrets of the request are redacted.
    pub body: &'a [u8],
    /// Pause before a retry that the provider requests with `retry-after-ms` or `retry-after`.
    pub retry_after: Option<Duration>,
}

/// Classification of a failed HTTP response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassifiedError {
    /// Kind of the error. It contains the name of the invalid request field if the provider sent
    /// it.
    pub kind: ModelErrorKind,
    /// Error message of the provider.
    pub message: String,
    /// Request id from the body. If it is `None`, the transport uses the id from the headers.
    pub request_id: Option<String>,
}

/// Classifier of one provider's failed HTTP responses. An adapter's classifier reads the provider's
/// error bodies and uses [`StatusClassifier`] for other bodies, such as a proxy's.
///
/// The transport repeats only transient errors
/// ([`ModelError::is_transient`](switchboard_domain::ModelError::is_transient)), so the kind
/// decides about retries. A response with status 429 that retries cannot fix, such as an empty
/// account, must become [`ModelErrorKind::QuotaExhausted`].
pub trait ErrorClassifier: Send + Sync {
    /// Classifies a failed HTTP response.
    fn classify_failure(&self, failure: &HttpFailure<'_>) -> ClassifiedError;
}

/// A classifier that uses only the HTTP status. Its message is the beginning of the body.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusClassifier;

impl ErrorClassifier for StatusClassifier {
    fn classify_failure(&self, failure: &HttpFailure<'_>) -> ClassifiedError {
        ClassifiedError {
            kind: classify_status(failure.status, failure.retry_after),
            message: body_excerpt(failure.body),
            request_id: None,
        }
    }
}

/// Returns the error kind for the HTTP status of a failed response. The kinds `RateLimited` and
/// `Overloaded` contain `retry_after`.
///
/// Statuses 408, 409 and all from 500 on give [`ModelErrorKind::Overloaded`], because the official
/// SDKs of Anthropic and OpenAI (anthropic 2.11.0, openai 3.52.0) repeat such requests.
pub fn classify_status(status: u16, retry_after: Option<Duration>) -> ModelErrorKind {
    match status {
        401 => ModelErrorKind::Authentication,
        402 => ModelErrorKind::QuotaExhausted,
        403 => ModelErrorKind::Permission,
        404 => ModelErrorKind::NotFound,
        429 => ModelErrorKind::RateLimited { retry_after },
        408 | 409 | 500.. => ModelErrorKind::Overloaded { retry_after },
        400..=499 => ModelErrorKind::InvalidRequest { field: None },
        _ => ModelErrorKind::Protocol,
    }
}

/// Creates an error of the kind [`ModelErrorKind::Protocol`]. Its message is `problem`, followed by
/// the beginning of `text`, in which the problem was found. For example, `problem` is "a chunk is
/// not a JSON object".
pub fn protocol_error(provider: &str, problem: &str, text: &str) -> ModelError {
    let message = format!("{problem}: {}", body_excerpt(text.as_bytes()));
    ModelError::new(provider, ModelErrorKind::Protocol, message)
}

/// Creates an error of the kind [`ModelErrorKind::Interrupted`] for an answer that is incomplete.
pub fn interrupted_error(provider: &str, message: impl Into<String>) -> ModelError {
    ModelError::new(provider, ModelErrorKind::Interrupted, message)
}

/// Returns the beginning of a response body as one line of an error message. White space and
/// control characters are collapsed, and `…` marks omitted text.
pub fn body_excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(EXCERPT_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_html_becomes_one_short_line() {
        let page = "<html>\r\n<head><title>502 Bad Gateway</title></head>\n\n<body>\tnginx";
        assert_eq!(
            body_excerpt(page.as_bytes()),
            "<html> <head><title>502 Bad Gateway</title></head> <body> nginx"
        );
        let long = body_excerpt("ä".repeat(5000).as_bytes());
        assert_eq!(long.chars().count(), EXCERPT_CHARS + 1);
        assert!(long.ends_with('…'));
        assert_eq!(body_excerpt(b"\xff\x00\x1b[31m"), "\u{fffd} [31m");
    }
}

//! From a failed answer to a typed error.

use std::time::Duration;

use http::HeaderMap;
use switchboard_domain::ModelErrorKind;

/// Characters of a body that is not understood which an error shows.
const EXCERPT_CHARS: usize = 300;

/// An answer that is no success, or that says it is one and has a media type that was not asked
/// for: some servers send an error with status 200.
#[derive(Debug, Clone, Copy)]
pub struct HttpFailure<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body, or the first 64 KiB of it, as UTF-8. What it echoes of the request's secrets is
    /// replaced.
    pub body: &'a [u8],
    /// When the provider says to come back, from `retry-after-ms` or `retry-after`.
    pub retry_after: Option<Duration>,
}

/// What a failed answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// What went wrong; a field that the provider names is in it.
    pub kind: ModelErrorKind,
    /// What the provider says.
    pub message: String,
    /// The provider's id of the request where the body has one. Without it the transport takes
    /// the header's.
    pub request_id: Option<String>,
}

/// Reads the errors of one wire. An adapter has one that knows its provider's error bodies and
/// falls back to [`StatusClassifier`] for bodies from somewhere in between, such as a proxy.
///
/// The transport tries again only what is transient
/// ([`ModelError::is_transient`](switchboard_domain::ModelError::is_transient)), so a classifier
/// makes an answer final by its kind: [`ModelErrorKind::QuotaExhausted`] for a 429 that does not
/// pass.
pub trait ErrorClassifier: Send + Sync {
    /// Says what a failed answer means.
    fn classify(&self, failure: &HttpFailure<'_>) -> Classified;
}

/// Knows nothing but HTTP: the kind by the status, and the beginning of the body as the message.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatusClassifier;

impl ErrorClassifier for StatusClassifier {
    fn classify(&self, failure: &HttpFailure<'_>) -> Classified {
        Classified {
            kind: kind_of_status(failure.status, failure.retry_after),
            message: excerpt(failure.body),
            request_id: None,
        }
    }
}

/// What a status means by itself.
///
/// 408, 409 and everything from 500 on are [`ModelErrorKind::Overloaded`]: both official SDKs
/// (anthropic 2.11.0, openai 3.52.0) try these again.
pub fn kind_of_status(status: u16, retry_after: Option<Duration>) -> ModelErrorKind {
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

/// The beginning of a body that is not understood, fit for one line of a message: white space
/// (control characters too) is collapsed, and what is cut off is marked by `…`.
pub fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let mut line = String::new();
    let mut left = EXCERPT_CHARS;
    let blank = |c: char| c.is_whitespace() || c.is_control();
    for word in text.split(blank).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
            left = left.saturating_sub(1);
        }
        for c in word.chars() {
            if left == 0 {
                line.push('…');
                return line;
            }
            line.push(c);
            left -= 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_html_becomes_one_short_line() {
        let page = "<html>\r\n<head><title>502 Bad Gateway</title></head>\n\n<body>\tnginx";
        assert_eq!(
            excerpt(page.as_bytes()),
            "<html> <head><title>502 Bad Gateway</title></head> <body> nginx"
        );
        let long = excerpt("ä".repeat(5000).as_bytes());
        assert_eq!(long.chars().count(), EXCERPT_CHARS + 1);
        assert!(long.ends_with('…'));
        assert_eq!(excerpt(b"\xff\x00\x1b[31m"), "\u{fffd} [31m");
    }

    #[test]
    fn what_may_pass_is_told_from_what_does_not() {
        let wish = Some(Duration::from_secs(3));
        for status in [408, 409, 500, 502, 503, 504, 529] {
            assert_eq!(
                kind_of_status(status, wish),
                ModelErrorKind::Overloaded { retry_after: wish },
                "{status}"
            );
        }
        assert_eq!(
            kind_of_status(429, wish),
            ModelErrorKind::RateLimited { retry_after: wish }
        );
        for status in [400, 405, 413, 422] {
            assert_eq!(
                kind_of_status(status, None),
                ModelErrorKind::InvalidRequest { field: None },
                "{status}"
            );
        }
        assert_eq!(kind_of_status(302, None), ModelErrorKind::Protocol);
    }
}

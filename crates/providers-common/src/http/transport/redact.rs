//! What must not be shown.

use std::{error::Error, iter};

use http::HeaderMap;
use reqwest::Url;
use switchboard_domain::{ModelError, ModelErrorKind};

/// What stands where a secret stood.
const REDACTED: &str = "[redacted]";

/// Shorter values are placeholders (`ollama`, `none`, `EMPTY`), and words of a message too.
const MIN_SECRET_BYTES: usize = 8;

/// What marks that an excerpt was cut off there.
const CUT: char = '…';

/// So much of a secret's beginning is hidden where an excerpt was cut off within it; less tells
/// nothing.
const MIN_CUT_BYTES: usize = 4;

/// Query parameters that hold keys: Gemini's, Azure's, and what gateways call them.
const SECRET_PARAMETERS: [&str; 10] = [
    "key",
    "api_key",
    "api-key",
    "apikey",
    "token",
    "access_token",
    "sig",
    "signature",
    "subscription-key",
    "secret",
];

/// Takes the secrets of one request out of what came back.
pub(super) struct Redactor {
    /// The longest first, so that none hides in another.
    secrets: Vec<String>,
}

impl Redactor {
    /// The secrets of a request to `url` with `headers`.
    pub(super) fn new(url: &Url, headers: &HeaderMap) -> Self {
        let mut secrets = Vec::new();
        for value in headers.values().filter(|value| value.is_sensitive()) {
            if let Ok(text) = value.to_str() {
                // `Bearer …` and `Basic …` are echoed without the scheme too.
                secrets.push(text.rsplit(' ').next().unwrap_or(text).to_owned());
            }
        }
        for (name, value) in url.query_pairs() {
            if SECRET_PARAMETERS.contains(&name.to_ascii_lowercase().as_str()) {
                secrets.push(value.into_owned());
            }
        }
        secrets.extend(url.password().map(str::to_owned));
        secrets.retain(|secret| secret.len() >= MIN_SECRET_BYTES);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// `text` without them.
    pub(super) fn clean(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.secrets {
            if clean.contains(secret) {
                clean = clean.replace(secret, REDACTED);
            }
            if clean.contains(CUT) {
                clean = without_beginning(&clean, secret);
            }
        }
        clean
    }

    /// `error` without them, in its words and those of its causes.
    pub(super) fn clean_error(&self, error: ModelError) -> ModelError {
        if !self.is_in(&error) {
            return error;
        }
        let kind = match error.kind.clone() {
            ModelErrorKind::InvalidRequest { field: Some(field) } => {
                ModelErrorKind::InvalidRequest {
                    field: Some(self.clean(&field)),
                }
            }
            ModelErrorKind::Unsupported { feature } => ModelErrorKind::Unsupported {
                feature: self.clean(&feature),
            },
            other => other,
        };
        let request_id = error.request_id().map(|id| self.clean(id));
        let mut clean = ModelError::new(error.provider(), kind, self.clean(error.message()))
            .with_request_id(request_id);
        if let Some(status) = error.status() {
            clean = clean.with_status(status);
        }
        // A cause cannot be taken out of an error, and not be changed.
        let causes: Vec<String> = causes(&error)
            .skip(1)
            .map(|cause| self.clean(&cause.to_string()))
            .collect();
        if causes.is_empty() {
            clean
        } else {
            clean.with_source(causes.join(": "))
        }
    }

    /// Whether an error would show one of them.
    fn is_in(&self, error: &ModelError) -> bool {
        let shows = |text: &str| self.clean(text) != text;
        !self.secrets.is_empty()
            && (shows(&format!("{error:?}"))
                || causes(error).any(|cause| shows(&cause.to_string())))
    }
}

/// An error and what caused it.
fn causes(error: &ModelError) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    iter::successors(Some(first), |&cause| cause.source())
}

/// `text` without the beginnings of `secret` at which it was cut off.
fn without_beginning(text: &str, secret: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for piece in text.split_inclusive(CUT) {
        let before = piece.strip_suffix(CUT).and_then(|piece| {
            let lengths = (MIN_CUT_BYTES..secret.len()).rev();
            let mut beginnings = lengths.filter_map(|length| secret.get(..length));
            beginnings.find_map(|beginning| piece.strip_suffix(beginning))
        });
        match before {
            Some(before) => {
                clean.push_str(before);
                clean.push_str(REDACTED);
                clean.push(CUT);
            }
            None => clean.push_str(piece),
        }
    }
    clean
}

/// An address as people may see it: without user, password, query and fragment.
pub(super) fn shown(address: &str) -> String {
    if let Ok(mut url) = Url::parse(address) {
        let hidden = url
            .set_username("")
            .and_then(|()| url.set_password(None))
            .is_ok()
            || !url.has_authority();
        url.set_query(None);
        url.set_fragment(None);
        if hidden && url.has_host() {
            return url.into();
        }
    }
    // It is no address, so where a password would end in it is a guess: what follows the last `@`.
    let start = address.split(['?', '#']).next().unwrap_or_default();
    let end = start.rsplit('@').next().unwrap_or_default();
    end.to_owned()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn sensitive(value: &str) -> HeaderValue {
        let mut value = HeaderValue::try_from(value).unwrap();
        value.set_sensitive(true);
        value
    }

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        let table = [
            ("https://a.example/v1?key=hidden", "https://a.example/v1"),
            (
                "https://hidden:hidden@a.example:8/v1#hidden",
                "https://a.example:8/v1",
            ),
            ("http://hidden@a.example", "http://a.example/"),
            ("https://a.example/@me/v1", "https://a.example/@me/v1"),
            ("user:hidden@a.example/v1?hidden", "a.example/v1"),
            ("hidden@a.example:80:80", "a.example:80:80"),
            ("https://hidden:hidden@", ""),
            ("localhost:8000/v1?hidden", "localhost:8000/v1"),
            ("", ""),
        ];
        for (address, expected) in table {
            assert_eq!(shown(address), expected, "{address}");
        }
    }

    #[test]
    fn every_secret_of_a_request_is_found_and_nothing_else() {
        let url = "https://me:pass-word-1@a.example/?api-version=2026-01-01&Key=query%2Dkey-1";
        let mut headers = HeaderMap::new();
        headers.insert("authorization", sensitive("Bearer token-123"));
        headers.insert("x-api-key", sensitive("token-123-longer"));
        headers.insert("x-short", sensitive("ollama"));
        headers.insert("x-open", HeaderValue::from_static("not-a-secret"));
        let redactor = Redactor::new(&Url::parse(url).unwrap(), &headers);
        assert_eq!(
            redactor.clean("token-123 token-123-longer Bearer token-123 query-key-1 pass-word-1"),
            "[redacted] [redacted] Bearer [redacted] [redacted] [redacted]"
        );
        let harmless = "not-a-secret, 2026-01-01, pull it with ollama";
        assert_eq!(redactor.clean(harmless), harmless);
    }

    fn redactor() -> Redactor {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", sensitive("Bearer token-123"));
        Redactor::new(&Url::parse("https://a.example").unwrap(), &headers)
    }

    #[test]
    fn a_secret_within_which_an_excerpt_was_cut_off_is_found_too() {
        for (text, expected) in [
            ("wrong: token-12…", "wrong: [redacted]…"),
            (
                "wrong: toke… and token-1… (cut)",
                "wrong: [redacted]… and [redacted]… (cut)",
            ),
            ("a token…", "a [redacted]…"),
            ("a tok…", "a tok…"),
            (
                "token-1 is not cut, this is…",
                "token-1 is not cut, this is…",
            ),
            ("…token-12", "…token-12"),
        ] {
            assert_eq!(redactor().clean(text), expected);
        }
    }

    #[test]
    fn an_error_shows_no_secret_in_its_words_and_causes() {
        let field = |text: &str| ModelErrorKind::InvalidRequest {
            field: Some(text.to_owned()),
        };
        let table = [
            ModelError::new("acme", ModelErrorKind::Authentication, "no token-123"),
            ModelError::new("acme", field("token-123"), "no"),
            ModelError::new("acme", ModelErrorKind::Protocol, "no")
                .with_source("invalid type: string \"token-123\""),
            ModelError::new("acme", ModelErrorKind::Protocol, "no").with_source(
                ModelError::new("acme", ModelErrorKind::Protocol, "in").with_source("token-123"),
            ),
        ];
        for error in table {
            let error = error
                .with_status(200)
                .with_request_id(Some("req-1".to_owned()));
            let (shown, causes_before) = (error.to_string(), causes(&error).count());
            let clean = redactor().clean_error(error);
            let all: Vec<String> = causes(&clean).map(ToString::to_string).collect();
            assert!(
                !format!("{clean:?} {all:?}").contains("token-123"),
                "{clean:?}"
            );
            assert!(format!("{clean:?} {all:?}").contains(REDACTED), "{clean:?}");
            assert_eq!(clean.to_string(), shown.replace("token-123", REDACTED));
            assert_eq!(causes_before > 1, all.len() > 1);
        }
    }

    #[test]
    fn an_error_without_a_secret_keeps_its_causes() {
        let fault = serde_json::from_str::<u8>("x").unwrap_err();
        let error = ModelError::new("acme", ModelErrorKind::Protocol, "no").with_source(fault);
        let error = redactor().clean_error(error);
        let cause = error.source().unwrap();
        assert!(cause.is::<serde_json::Error>(), "{cause:?}");
    }
}

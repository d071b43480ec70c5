//! What must not be shown.

use http::HeaderMap;
use reqwest::Url;

/// What stands where a secret stood.
const REDACTED: &str = "[redacted]";

/// Shorter values are placeholders (`ollama`, `none`, `EMPTY`), and words of a message too.
const MIN_SECRET_BYTES: usize = 8;

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
        }
        clean
    }
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
}

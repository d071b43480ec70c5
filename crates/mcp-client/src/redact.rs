//! Keeps configured secrets out of what servers and libraries say.

use std::sync::Arc;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use crate::config::{ServerConfig, ServerTransport};

/// Replaces the configured values of one server wherever they turn up in text from outside.
#[derive(Clone)]
pub(crate) struct Redactor(Arc<[SecretString]>);

impl Redactor {
    /// Shorter values are ordinary settings (`8080`, `debug`); striking them out would only make
    /// messages unreadable.
    const SHORTEST: usize = 8;

    pub(crate) fn new(config: &ServerConfig) -> Self {
        let mut secrets: Vec<String> = Vec::new();
        for (_, value) in config.transport.secrets() {
            let value = value.expose_secret();
            secrets.push(value.to_owned());
            // `Bearer …`: servers repeat the token without its scheme.
            if let Some((_, token)) = value.split_once(' ') {
                secrets.push(token.trim().to_owned());
            }
        }
        if let ServerTransport::StreamableHttp { url, .. } = &config.transport
            && let Ok(url) = Url::parse(url)
        {
            secrets.extend(url.password().map(str::to_owned));
            secrets.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
            secrets.extend(url.query().map(str::to_owned));
        }
        secrets.retain(|secret| secret.len() >= Self::SHORTEST);
        // The longest first, so that no tail of one that contains another stays.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets.into_iter().map(SecretString::from).collect())
    }

    pub(crate) fn clean(&self, text: impl Into<String>) -> String {
        let mut text = text.into();
        for secret in self.0.iter() {
            if text.contains(secret.expose_secret()) {
                text = text.replace(secret.expose_secret(), "[redacted]");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_headers_environment_and_address_are_struck_out() {
        let mut http = ServerConfig::http("a", "https://u:long-password@h/?api=query-secret");
        if let ServerTransport::StreamableHttp { headers, .. } = &mut http.transport {
            headers.push(("Authorization".into(), "Bearer tok-12345678".into()));
        }
        let redactor = Redactor::new(&http);
        assert_eq!(
            redactor.clean("got tok-12345678, long-password and query-secret on 8080"),
            "got [redacted], [redacted] and [redacted] on 8080"
        );
    }
}

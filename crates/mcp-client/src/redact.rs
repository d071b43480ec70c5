//! Keeps configured secrets out of what servers and libraries say.

use std::sync::Arc;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use crate::config::ServerConfig;

/// Replaces the configured values of one server wherever they turn up in text from outside.
#[derive(Clone)]
pub(crate) struct Redactor(Arc<[SecretString]>);

impl Redactor {
    /// Shorter values are ordinary settings (`8080`, `debug`); striking them out would only make
    /// messages unreadable.
    const SHORTEST: usize = 8;

    pub(crate) fn new(config: &ServerConfig) -> Self {
        let mut secrets: Vec<String> = Vec::new();
        for value in config.hidden_values() {
            let value = value.expose_secret();
            secrets.extend(in_address(value));
            secrets.push(value.to_owned());
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

/// A secret as it stands in the path of an address, where that differs.
fn in_address(secret: &str) -> Option<String> {
    let mut address = Url::parse("http://h/").ok()?;
    address.path_segments_mut().ok()?.push(secret);
    let encoded = address.path().trim_start_matches('/');
    (encoded != secret).then(|| encoded.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerTransport;

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

    #[test]
    fn further_secrets_and_those_of_arguments_are_struck_out() {
        let args = [
            "--api-key",
            "sk-12345678",
            "--dsn=db://u:pass-word-1@h/",
            "plain-argument",
        ];
        let mut config = ServerConfig::stdio("a", "c", args);
        config.secrets = vec!["further secret".into(), "short".into()];
        assert_eq!(
            Redactor::new(&config)
                .clean("sk-12345678 pass-word-1 further secret http://h/further%20secret/ short plain-argument"),
            "[redacted] [redacted] [redacted] http://h/[redacted]/ short plain-argument"
        );
    }
}

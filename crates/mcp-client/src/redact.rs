//! Keeps configured secrets out of what servers and libraries say.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use crate::config::ServerConfig;

/// Secrets that become known while servers run, such as values that a client sends for their tools.
///
/// Clones share one list, which holds the newest 1,024. `Debug` prints how many there are.
#[derive(Clone, Default)]
pub struct LiveSecrets(Arc<RwLock<Live>>);

#[derive(Default)]
struct Live {
    /// The longest first, each with the number of its addition.
    secrets: Vec<(u64, SecretString)>,
    added: u64,
}

impl LiveSecrets {
    /// Maximum number of secrets.
    const MAX: usize = 1024;

    /// Adds a secret. A text of fewer than 8 bytes is not a secret.
    pub fn add(&self, secret: &str) {
        if secret.len() < Redactor::SHORTEST {
            return;
        }
        let mut live = self.0.write().unwrap_or_else(PoisonError::into_inner);
        live.added += 1;
        let number = live.added;
        let known = live.secrets.iter_mut();
        let mut known = known.filter(|(_, it)| it.expose_secret() == secret);
        if let Some((place, _)) = known.next() {
            *place = number;
            return;
        }
        if live.secrets.len() == Self::MAX {
            let numbered = live.secrets.iter().enumerate();
            let oldest = numbered.min_by_key(|(_, (number, _))| *number);
            if let Some((oldest, _)) = oldest {
                live.secrets.remove(oldest);
            }
        }
        live.secrets.push((number, SecretString::from(secret)));
        live.secrets
            .sort_by_key(|(_, it)| std::cmp::Reverse(it.expose_secret().len()));
    }

    /// Returns the text without these secrets.
    pub fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        let live = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for (_, secret) in &live.secrets {
            if text.contains(secret.expose_secret()) {
                text = Cow::Owned(text.replace(secret.expose_secret(), "[redacted]"));
            }
        }
        text
    }
}

impl fmt::Debug for LiveSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let live = self.0.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_tuple("LiveSecrets")
            .field(&live.secrets.len())
            .finish()
    }
}

/// Replaces the configured values of one server wherever they turn up in text from outside.
#[derive(Clone)]
pub(crate) struct Redactor {
    configured: Arc<[SecretString]>,
    live: LiveSecrets,
}

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
        Self {
            configured: secrets.into_iter().map(SecretString::from).collect(),
            live: config.live_secrets.clone(),
        }
    }

    pub(crate) fn clean(&self, text: impl Into<String>) -> String {
        let mut text = text.into();
        for secret in self.configured.iter() {
            if text.contains(secret.expose_secret()) {
                text = text.replace(secret.expose_secret(), "[redacted]");
            }
        }
        match self.live.clean(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
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
    fn secrets_that_become_known_later_are_struck_out() {
        let live = LiveSecrets::default();
        let mut config = ServerConfig::stdio("s", "c", [""; 0]);
        config.live_secrets = live.clone();
        let redactor = Redactor::new(&config);
        assert_eq!(redactor.clean("of-a-client"), "of-a-client");
        for secret in ["of-a-client", "of-a-client-too", "port"] {
            live.add(secret);
        }
        assert_eq!(
            redactor.clean("of-a-client of-a-client-too port"),
            "[redacted] [redacted] port"
        );
        assert_eq!(format!("{live:?}"), "LiveSecrets(2)");
        // The oldest go first; what is sent again is not old.
        for n in 0..LiveSecrets::MAX - 1 {
            live.add(&format!("another-{n}"));
            live.add("of-a-client");
        }
        assert_eq!(
            redactor.clean("of-a-client, of-a-client-too another-0"),
            "[redacted], [redacted]-too [redacted]"
        );
        assert_eq!(format!("{live:?}"), "LiveSecrets(1024)");
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

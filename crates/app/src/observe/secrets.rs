//! The secrets that this process knows of.

use secrecy::ExposeSecret;
use switchboard_orchestration::audit::Redactor;

use crate::{config::Config, environment::Environment};

/// Takes out what reads like a secret, and the secrets that configuration and environment hold: the
/// values of variables that are called like one (`…_API_KEY`, `…_TOKEN`) and of those that are filled
/// into servers, and the headers for a collector.
pub fn redactor(config: &Config, environment: &Environment) -> Redactor {
    let by_name = environment
        .names()
        .filter(|name| Redactor::is_secret_name(name))
        .filter_map(|name| environment.get(name));
    let servers = config.servers.iter().flatten();
    let of_servers = servers
        .flat_map(|server| &server.secrets)
        .map(ExposeSecret::expose_secret);
    let of_collector = config.observe.otlp.iter().flat_map(|otlp| &otlp.headers);
    let of_collector = of_collector.map(|(_, value)| value.expose_secret());
    let injected = config.run.context_secrets();
    let injected = injected.iter().map(ExposeSecret::expose_secret);
    let of_store = config.sessions.secrets();
    let of_store = of_store.iter().map(ExposeSecret::expose_secret);
    let known = by_name
        .chain(of_servers)
        .chain(of_collector)
        .chain(injected)
        .chain(of_store);
    // A header is often `Bearer SECRET`; the secret is one alone too.
    let whole: Vec<&str> = known.collect();
    let bare = whole.iter().filter_map(|text| text.rsplit_once(' '));
    let bare: Vec<&str> = bare.map(|(_, secret)| secret).collect();
    Redactor::default().with_secrets(whole.into_iter().chain(bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_are_called_like_secrets_are_known() {
        let environment = Environment::of([
            ("ACME_API_KEY", "value-of-a-key"),
            ("ACME_URL", "value-of-an-address"),
            ("GH_TOKEN", "Bearer value-of-a-token"),
        ]);
        let redactor = redactor(&Config::default(), &environment);
        assert_eq!(
            redactor.text("value-of-a-key value-of-an-address value-of-a-token"),
            "[redacted] value-of-an-address [redacted]"
        );
    }
}

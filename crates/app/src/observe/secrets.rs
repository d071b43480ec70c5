//! The secrets that this process knows of.

use secrecy::ExposeSecret;
use switchboard_domain::redact::Redactor;
use switchboard_mcp_client::config::ServerConfig;

use crate::{config::Config, environment::Environment};

/// Takes out what reads like a secret, and the secrets that configuration and environment hold: the
/// values of variables that are called like one (`…_API_KEY`, `…_TOKEN`) and of those that are filled
/// in somewhere, what servers are given in their environment, their headers and their addresses, and the
/// headers for a collector.
pub fn redactor(config: &Config, environment: &Environment) -> Redactor {
    Redactor::default().with_secrets(known_secrets(config, environment))
}

/// The secrets that configuration and environment hold: see [`redactor`].
pub fn known_secrets(config: &Config, environment: &Environment) -> Vec<String> {
    // The shell's own is the working directory, whose files people want to read of; in all else it is a password.
    let by_name = environment
        .names()
        .filter(|name| Redactor::is_secret_name(name) && *name != "PWD")
        .filter_map(|name| environment.get(name));
    // Whatever the variable is called that a provider has its key from.
    let of_providers = config.providers.iter();
    let of_providers = of_providers.filter_map(|it| environment.get(it.api_key_env.as_deref()?));
    let filled = config.filled.iter().map(ExposeSecret::expose_secret);
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
    let of_clients = config.serve.secrets().iter();
    let of_clients = of_clients.map(ExposeSecret::expose_secret);
    let known = by_name
        .chain(of_providers)
        .chain(of_clients)
        .chain(filled)
        .chain(of_servers)
        .chain(of_collector)
        .chain(injected)
        .chain(of_store);
    // A header is often `Bearer SECRET`; the secret is one alone too.
    let whole: Vec<&str> = known.collect();
    let bare = whole.iter().filter_map(|text| text.rsplit_once(' '));
    let bare: Vec<&str> = bare.map(|(_, secret)| secret).collect();
    let all = whole.iter().copied().chain(bare);
    let mut known: Vec<String> = all.map(str::to_owned).collect();
    for server in config.servers.iter().flatten() {
        known.extend(hidden_of(server));
    }
    known
}

/// What a server is given that must not be shown.
pub(crate) fn hidden_of(server: &ServerConfig) -> impl Iterator<Item = String> {
    let hidden = server.hidden_values().into_iter();
    hidden.map(|value| value.expose_secret().to_owned())
}

#[cfg(test)]
mod tests {
    use switchboard_mcp_client::config::ServerTransport;

    use super::*;
    use crate::config::{ProviderEntry, ProviderKind};

    #[test]
    fn what_was_filled_in_and_keys_under_any_name_are_known() {
        let environment = Environment::of([("ACME_PASS_PHRASE", "correct horse battery")]);
        let mut entry = ProviderEntry::plain("acme", ProviderKind::OpenAiCompatible);
        entry.api_key_env = Some("ACME_PASS_PHRASE".to_owned());
        let config = Config {
            filled: vec!["filled in somewhere".into()],
            providers: vec![entry],
            ..Config::default()
        };
        let known = known_secrets(&config, &environment);
        for secret in ["correct horse battery", "filled in somewhere"] {
            assert!(known.iter().any(|it| it == secret), "{known:?}");
        }
    }

    #[test]
    fn what_servers_are_given_is_known() {
        let mut stdio = ServerConfig::stdio("a", "c", ["--api-key", "of-an-argument"]);
        if let ServerTransport::Stdio { env, .. } = &mut stdio.transport {
            env.push(("GITHUB_TOKEN".into(), "literal-in-the-file".into()));
            env.push((
                "DB".into(),
                "postgres://me:of-a-database@localhost/x".into(),
            ));
        }
        let mut http = ServerConfig::http("b", "https://me:of-the-login@h/mcp?key=of-the-query");
        if let ServerTransport::StreamableHttp { headers, .. } = &mut http.transport {
            headers.push(("X-Key".into(), "Bearer of-a-header".into()));
        }
        let config = Config {
            servers: Some(vec![stdio, http]),
            ..Config::default()
        };
        let redactor = redactor(&config, &Environment::default());
        for secret in [
            "of-an-argument",
            "literal-in-the-file",
            "of-a-database",
            "of-the-login",
            "of-the-query",
            "of-a-header",
        ] {
            assert_eq!(
                redactor.redact_text(&format!("is {secret}!")),
                "is [redacted]!"
            );
        }
    }

    #[test]
    fn variables_that_are_called_like_secrets_are_known() {
        let environment = Environment::of([
            ("ACME_API_KEY", "value-of-a-key"),
            ("ACME_URL", "value-of-an-address"),
            ("GH_TOKEN", "Bearer value-of-a-token"),
        ]);
        let redactor = redactor(&Config::default(), &environment);
        assert_eq!(
            redactor.redact_text("value-of-a-key value-of-an-address value-of-a-token"),
            "[redacted] value-of-an-address [redacted]"
        );
    }

    #[test]
    fn the_working_directory_is_no_password() {
        let environment =
            Environment::of([("PWD", "/home/me/orders"), ("DB_PWD", "of-a-database")]);
        let redactor = redactor(&Config::default(), &environment);
        assert_eq!(
            redactor.redact_text("/home/me/orders/notes.md of-a-database"),
            "/home/me/orders/notes.md [redacted]"
        );
    }
}

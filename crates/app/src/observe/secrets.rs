//! Collects the secrets of the configuration and the environment, which output must not contain.

use secrecy::ExposeSecret;
use switchboard_domain::redact::Redactor;
use switchboard_mcp_client::config::ServerConfig;

use crate::config::{Config, environment::Environment};

/// Builds the redactor for all output. It removes known secrets and text that looks like a secret.
pub(crate) fn build_redactor(config: &Config, environment: &Environment) -> Redactor {
    Redactor::default().with_secrets(collect_known_secrets(config, environment))
}

/// Returns the secrets in the configuration and the environment: variables with secret names
/// (`…_API_KEY`, `…_TOKEN`), expanded variables, settings of MCP servers, and headers for the
/// collector.
fn collect_known_secrets(config: &Config, environment: &Environment) -> Vec<String> {
    let mut known = Vec::new();
    let mut add = |text: &str| {
        known.push(text.to_owned());
        // A header may be `Bearer SECRET`. Its secret must also be redacted without the scheme.
        known.extend(text.rsplit_once(' ').map(|(_, bare)| bare.to_owned()));
    };
    // `PWD` is the working directory and not secret, but other names with `PWD` are passwords.
    let is_secret = |name: &&str| Redactor::is_secret_name(name) && *name != "PWD";
    // The API key of a provider may be in a variable whose name does not look secret.
    let key_variables = config.providers.iter();
    let key_variables = key_variables.filter_map(|it| it.api_key_env.as_deref());
    let names = environment.variable_names().filter(is_secret);
    let names = names.chain(key_variables);
    let values = names.filter_map(|name| environment.get(name));
    values.for_each(&mut add);
    let servers = || config.servers.iter().flatten();
    let server_secrets = servers().flat_map(|server| &server.secrets);
    let collector_headers = config.otlp_headers.iter().flatten();
    let secrets = config.filled.iter().chain(config.serve.token_secrets());
    let secrets = secrets.chain(server_secrets).cloned();
    let secrets = secrets
        .chain(collector_headers.map(|(_, value)| value.clone()))
        .chain(config.context_secrets())
        .chain(config.sessions.database_address_secrets());
    secrets.for_each(|secret| add(secret.expose_secret()));
    let hidden = servers().flat_map(ServerConfig::values_to_redact);
    known.extend(hidden.map(|value| value.expose_secret().to_owned()));
    known
}

#[cfg(test)]
mod tests {
    use switchboard_mcp_client::config::ServerTransport;

    use super::*;
    use crate::config::{ProviderEntry, ProviderKind};

    #[test]
    fn expanded_values_and_provider_keys_are_secrets() {
        let environment =
            Environment::from_variables([("ACME_PASS_PHRASE", "correct horse battery")]);
        let mut entry =
            ProviderEntry::with_default_settings("acme", ProviderKind::OpenAiCompatible);
        entry.api_key_env = Some("ACME_PASS_PHRASE".to_owned());
        let config = Config {
            filled: vec!["filled in somewhere".into()],
            providers: vec![entry],
            ..Config::default()
        };
        let known = collect_known_secrets(&config, &environment);
        for secret in ["correct horse battery", "filled in somewhere"] {
            assert!(known.iter().any(|it| it == secret), "{known:?}");
        }
    }

    #[test]
    fn secrets_of_servers_are_known() {
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
        let redactor = build_redactor(&config, &Environment::default());
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
    fn variables_with_secret_names_are_known_except_the_working_directory() {
        let environment = Environment::from_variables([
            ("ACME_API_KEY", "value-of-a-key"),
            ("ACME_URL", "value-of-an-address"),
            ("GH_TOKEN", "Bearer value-of-a-token"),
            ("PWD", "/home/me/orders"),
            ("DB_PWD", "of-a-database"),
        ]);
        let redactor = build_redactor(&Config::default(), &environment);
        let text =
            "value-of-a-key value-of-an-address value-of-a-token /home/me/orders of-a-database";
        let expected = "[redacted] value-of-an-address [redacted] /home/me/orders [redacted]";
        assert_eq!(redactor.redact_text(text), expected);
    }
}

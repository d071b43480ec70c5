//! Context values: tool arguments that the host fills in and the model never sees.

use std::path::Path;

use switchboard_mcp_client::config::{ServerConfig, ServerTransport};
use switchboard_orchestration::tools::arguments::{ContextInjection, ContextTemplate};

use crate::{config::Config, run_session::servers::program_path};

/// Name of the tool argument through which bundled servers receive the conversation id.
const DATABASE_CONTEXT: &str = "databaseContext";
/// Field of the argument `databaseContext` that contains the conversation id.
const CONVERSATION: &str = "conversationId";
/// Names of the bundled servers that store data separately for each conversation.
const WITH_CONVERSATIONS: [&str; 2] = ["graph", "bte"];

/// Returns the values of the tool arguments that the host fills in and the model does not see: the
/// configured values, and the conversation id for bundled servers that need it.
pub(crate) fn build_context_injection<'s>(
    config: &Config,
    servers: impl IntoIterator<Item = &'s ServerConfig>,
) -> ContextInjection {
    let mut injected = ContextInjection::new().with_hidden_argument(DATABASE_CONTEXT);
    for (name, value) in config.context.iter().flatten() {
        injected = injected.with_template(name, value.clone());
    }
    if let Some(servers) = &config.context_servers {
        injected = injected.with_allowed_servers(servers.iter().cloned());
    }
    for server in servers
        .into_iter()
        .filter(|it| is_stateful_bundled_server(it))
    {
        let conversation = ContextTemplate::with_session_id(CONVERSATION);
        injected = injected.with_default(&server.name, DATABASE_CONTEXT, conversation);
    }
    injected
}

/// Returns the configured values of the tool arguments that the host fills in and the model does
/// not see.
pub(crate) fn configured_context_values(config: &Config) -> ContextInjection {
    build_context_injection(config, config.servers.iter().flatten())
}

/// Returns whether a server is a bundled one that stores data for each conversation.
fn is_stateful_bundled_server(server: &ServerConfig) -> bool {
    let ServerTransport::Stdio { command, args, .. } = &server.transport else {
        return false;
    };
    let command = Path::new(command);
    let mut pairs = args.windows(2);
    pairs.any(|pair| pair[0] == "mcp-server" && WITH_CONVERSATIONS.contains(&pair[1].as_str()))
        && (command
            .file_stem()
            .is_some_and(|name| name == "switchboard")
            || program_path().is_ok_and(|program| program == command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bundled_servers_with_conversations_get_the_session() {
        let server =
            |command: &str, args: &[&str]| ServerConfig::stdio("s", command, args.iter().copied());
        for (command, args, expected) in [
            ("switchboard", &["mcp-server", "graph"][..], true),
            (
                "/opt/bin/switchboard",
                &["mcp-server", "bte", "--url", "http://b"],
                true,
            ),
            ("switchboard", &["mcp-server", "customer-service"], false),
            (
                "switchboard",
                &["mcp-server", "workspace", "--root", "graph"],
                false,
            ),
            ("npx", &["mcp-server", "graph"], false),
            ("switchboard", &["graph"], false),
        ] {
            let server = server(command, args);
            assert_eq!(
                is_stateful_bundled_server(&server),
                expected,
                "{command} {args:?}"
            );
        }
        let http = ServerConfig::http("s", "http://localhost:1/mcp");
        assert!(!is_stateful_bundled_server(&http));
    }
}

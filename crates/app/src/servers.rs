//! Which MCP servers run.

use std::path::Path;

use switchboard_mcp_client::config::ServerConfig;

use crate::config::Config;

/// The bundled server that runs where none is configured, so that there is something to try.
pub const DEFAULT_BUNDLED: &str = "customer-service";

/// The servers to start.
#[derive(Debug)]
pub struct Servers {
    /// What they are.
    pub configs: Vec<ServerConfig>,
    /// None were configured, so the bundled one runs.
    pub bundled: bool,
}

impl Servers {
    /// The configured ones; the bundled one, as another process of `program`, if no file says
    /// anything about servers.
    pub fn of(config: &Config, program: &Path) -> Self {
        match &config.servers {
            Some(configs) => Self {
                configs: with_timeout(configs.clone(), config),
                bundled: false,
            },
            None => Self {
                configs: with_timeout(vec![bundled(DEFAULT_BUNDLED, program)], config),
                bundled: true,
            },
        }
    }

    /// None at all.
    pub fn none() -> Self {
        Self {
            configs: Vec::new(),
            bundled: false,
        }
    }
}

/// A bundled server over stdio.
fn bundled(name: &str, program: &Path) -> ServerConfig {
    let program = program.to_string_lossy();
    ServerConfig::stdio(name, program, ["mcp-server", name])
}

fn with_timeout(mut servers: Vec<ServerConfig>, config: &Config) -> Vec<ServerConfig> {
    use switchboard_mcp_client::config::DEFAULT_CALL_TIMEOUT;
    if let Some(timeout) = config.tool_timeout {
        for server in &mut servers {
            // What a server's own entry says is closer to the matter.
            if server.call_timeout == DEFAULT_CALL_TIMEOUT {
                server.call_timeout = timeout;
            }
        }
    }
    servers
}

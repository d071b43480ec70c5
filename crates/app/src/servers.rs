//! Which MCP servers run.

use std::{path::Path, sync::Arc};

use switchboard_mcp_client::{
    HostOptions,
    auth::{AuthOptions, FileStore},
    config::ServerConfig,
};

use crate::{config::Config, environment::Environment};

/// The bundled server that runs where none is configured, so that there is something to try.
pub const DEFAULT_BUNDLED: &str = "customer-service";

/// The servers to start.
#[derive(Debug)]
pub struct Servers {
    /// What they are.
    pub configs: Vec<ServerConfig>,
    /// None were configured, so the bundled one runs.
    pub bundled: bool,
    /// What holds for all of them.
    pub options: HostOptions,
}

impl Servers {
    /// The configured ones; the bundled one, as another process of `program`, if no file says
    /// anything about servers.
    pub fn of(config: &Config, program: &Path, environment: &Environment) -> Self {
        let mut options = HostOptions::default();
        // Without such a place, logins hold for one run.
        if let Some(folder) = &environment.data_dir {
            let store = FileStore::new(folder.join("logins"));
            options.auth = AuthOptions::with_store(Arc::new(store));
        }
        if let Some(timeout) = config.tool_timeout {
            options.call_timeout = timeout;
        }
        match &config.servers {
            Some(configs) => Self {
                configs: configs.clone(),
                bundled: false,
                options,
            },
            None => Self {
                configs: vec![bundled(DEFAULT_BUNDLED, program)],
                bundled: true,
                options,
            },
        }
    }

    /// None at all.
    pub fn none() -> Self {
        Self {
            configs: Vec::new(),
            bundled: false,
            options: HostOptions::default(),
        }
    }
}

/// A bundled server over stdio.
fn bundled(name: &str, program: &Path) -> ServerConfig {
    let program = program.to_string_lossy();
    ServerConfig::stdio(name, program, ["mcp-server", name])
}

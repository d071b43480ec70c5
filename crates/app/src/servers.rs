//! Which MCP servers run.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use switchboard_mcp_client::{
    HostOptions, ToolPinFile, ToolPinStoreError,
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
    /// Why it is not known what their tools were in earlier runs.
    pub forgotten: Option<ToolPinStoreError>,
}

impl Servers {
    /// The configured ones; the bundled one, as another process of `program`, if no file says
    /// anything about servers.
    pub fn of(config: &Config, program: &Path, environment: &Environment) -> Self {
        let mut options = HostOptions::default();
        let mut forgotten = None;
        // Without such a place, logins hold for one run.
        if let Some(folder) = &environment.data_dir {
            let store = FileStore::new(folder.join("logins"));
            options.auth = AuthOptions::with_store(Arc::new(store));
            let memory = ToolPinFile::new(folder.join("tools/known.json"), places(config));
            match memory.load() {
                Ok(known) => {
                    options.tool_pins = known;
                    options.tool_pin_store = Some(Arc::new(memory));
                }
                Err(error) => forgotten = Some(error),
            }
        }
        if let Some(timeout) = config.tool_timeout {
            options.call_timeout = timeout;
        }
        match &config.servers {
            Some(configs) => Self {
                configs: configs.clone(),
                bundled: false,
                options,
                forgotten,
            },
            None => Self {
                configs: vec![bundled(DEFAULT_BUNDLED, program)],
                bundled: true,
                options,
                forgotten,
            },
        }
    }

    /// None at all.
    pub fn none() -> Self {
        Self {
            configs: Vec::new(),
            bundled: false,
            options: HostOptions::default(),
            forgotten: None,
        }
    }
}

/// Where each server is configured. The bundled one is not among them: its tools are those of this program,
/// and change with it.
fn places(config: &Config) -> BTreeMap<String, String> {
    let servers = config.servers.iter().flatten();
    let places = servers.filter_map(|server| {
        let file = config.server_files.get(&server.name)?;
        // A file that is reached in two ways is one.
        let file = file.canonicalize().unwrap_or_else(|_| file.clone());
        Some((server.name.clone(), file.display().to_string()))
    });
    places.collect()
}

/// A bundled server over stdio.
fn bundled(name: &str, program: &Path) -> ServerConfig {
    let program = program.to_string_lossy();
    ServerConfig::stdio(name, program, ["mcp-server", name])
}

//! The MCP servers of a command.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use switchboard_mcp_client::{
    HostOptions, ToolPinFile, ToolPinStoreError,
    auth::{AuthOptions, FileStore},
    config::ServerConfig,
};

use crate::config::{Config, environment::Environment};

/// The bundled server that runs if no server is configured.
pub(crate) const DEFAULT_BUNDLED: &str = "customer-service";

/// The servers to start.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) configs: Vec<ServerConfig>,
    /// No server is configured, so the bundled one runs.
    pub(crate) bundled: bool,
    /// Options of the host.
    pub(crate) options: HostOptions,
    /// The tool pins of earlier runs could not be read.
    pub(crate) pin_error: Option<ToolPinStoreError>,
}

impl Servers {
    /// Returns the configured servers, or the bundled one as a process of `program` if no file
    /// mentions servers.
    pub(crate) fn of(config: &Config, program: &Path, environment: &Environment) -> Self {
        let mut options = HostOptions::default();
        let mut pin_error = None;
        // Without a data folder, logins last for one run.
        if let Some(folder) = &environment.data_dir {
            let store = FileStore::new(folder.join("logins"));
            options.auth = AuthOptions::with_store(Arc::new(store));
            let memory = ToolPinFile::new(folder.join("tools/known.json"), places(config));
            match memory.load() {
                Ok(known) => {
                    options.tool_pins = known;
                    options.tool_pin_store = Some(Arc::new(memory));
                }
                Err(error) => pin_error = Some(error),
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
                pin_error,
            },
            None => Self {
                configs: vec![bundled(DEFAULT_BUNDLED, program)],
                bundled: true,
                options,
                pin_error,
            },
        }
    }

    /// Returns no servers.
    pub(crate) fn none() -> Self {
        Self {
            configs: Vec::new(),
            bundled: false,
            options: HostOptions::default(),
            pin_error: None,
        }
    }
}

/// Returns the file of each configured server. The bundled server is missing: its tools change with
/// this program.
fn places(config: &Config) -> BTreeMap<String, String> {
    let servers = config.servers.iter().flatten();
    let places = servers.filter_map(|server| {
        let file = config.server_files.get(&server.name)?;
        // Two paths of one file count as one.
        let file = file.canonicalize().unwrap_or_else(|_| file.clone());
        Some((server.name.clone(), file.display().to_string()))
    });
    places.collect()
}

fn bundled(name: &str, program: &Path) -> ServerConfig {
    let program = program.to_string_lossy();
    ServerConfig::stdio(name, program, ["mcp-server", name])
}

//! Selects the MCP servers that a command starts.

pub(crate) mod status;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use switchboard_mcp_client::{
    HostOptions, ToolPinFile, ToolPinStoreError,
    auth::{AuthOptions, FileStore},
    config::ServerConfig,
};

use super::failure::Failure;
use crate::config::{Config, environment::Environment};

/// The bundled server that runs if no server is configured.
const DEFAULT_BUNDLED: &str = "customer-service";

/// The MCP servers to start, with their options.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    pub(crate) configs: Vec<ServerConfig>,
    /// `true` if no server is configured, so that the bundled server runs.
    pub(crate) bundled: bool,
    pub(crate) options: HostOptions,
    /// Error if the stored tool definitions of earlier runs could not be read.
    pub(crate) pin_error: Option<ToolPinStoreError>,
}

impl Servers {
    /// Returns the configured servers. If no file configures servers, returns the bundled server as
    /// a process of `program`.
    pub(crate) fn from_config(config: &Config, program: &Path, environment: &Environment) -> Self {
        let mut options = HostOptions::default();
        let mut pin_error = None;
        // Without a data folder, logins are lost at the end of the process.
        if let Some(folder) = &environment.data_dir {
            let store = FileStore::new(folder.join("logins"));
            options.auth = AuthOptions::with_store(Arc::new(store));
            let pins =
                ToolPinFile::new(folder.join("tools/known.json"), server_config_files(config));
            match pins.load() {
                Ok(known) => {
                    options.tool_pins = known;
                    options.tool_pin_store = Some(Arc::new(pins));
                }
                Err(error) => pin_error = Some(error),
            }
        }
        if let Some(timeout) = config.tool_timeout {
            options.call_timeout = timeout;
        }
        let bundled = || {
            let args = ["mcp-server", DEFAULT_BUNDLED];
            vec![ServerConfig::stdio(
                DEFAULT_BUNDLED,
                program.to_string_lossy(),
                args,
            )]
        };
        Self {
            configs: config.servers.clone().unwrap_or_else(bundled),
            bundled: config.servers.is_none(),
            options,
            pin_error,
        }
    }
}

/// Returns the configuration file of each server. The bundled server has no entry, because its
/// tools change with this program.
fn server_config_files(config: &Config) -> BTreeMap<String, String> {
    let servers = config.servers.iter().flatten();
    let files = servers.filter_map(|server| {
        let file = config.server_files.get(&server.name)?;
        // Canonical paths, so that different paths to one file compare equal.
        let file = file.canonicalize().unwrap_or_else(|_| file.clone());
        Some((server.name.clone(), file.display().to_string()))
    });
    files.collect()
}

pub(crate) fn program_path() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::runtime_error(error).add_context("this program cannot find itself")
    })?;
    // After an update the path contains another program. The kernel still provides the running one.
    let replaced = cfg!(target_os = "linux") && !program.exists();
    Ok(if replaced {
        "/proc/self/exe".into()
    } else {
        program
    })
}

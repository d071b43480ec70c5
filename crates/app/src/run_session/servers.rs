//! Selects the MCP servers that a command starts.

pub(crate) mod recipe_servers;
pub(crate) mod status;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use switchboard_mcp_client::{
    HostOptions, ToolPinFile, ToolPinStoreError,
    auth::{AuthOptions, FileStore},
    config::ServerConfig,
};

use super::failure::Failure;
use crate::config::{Config, environment::Environment};

/// Name of the bundled server that a command starts if no server is configured.
const DEFAULT_BUNDLED: &str = "customer-service";

/// The MCP servers that a command starts, and their common options.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    pub(crate) configs: Vec<ServerConfig>,
    /// `true` if no server is configured, so that the bundled server is started instead.
    pub(crate) bundled: bool,
    pub(crate) options: HostOptions,
    /// Error if the tool definitions that earlier runs stored could not be read.
    pub(crate) pin_error: Option<ToolPinStoreError>,
}

impl Servers {
    /// Returns the configured servers. If no file configures servers, returns the bundled server,
    /// which runs as a process of `program`.
    pub(crate) fn from_config(config: &Config, program: &Path, environment: &Environment) -> Self {
        let mut options = HostOptions::default();
        let mut pin_error = None;
        // Without a data folder, logins to servers are lost when the process ends, and tool
        // definitions are not compared with those of earlier runs.
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
        options.circuits = config.circuit_breaker.circuit_options();
        let bundled = || {
            let (name, args) = (DEFAULT_BUNDLED, ["mcp-server", DEFAULT_BUNDLED]);
            vec![ServerConfig::stdio(name, program.to_string_lossy(), args)]
        };
        Self {
            configs: config.servers.clone().unwrap_or_else(bundled),
            bundled: config.servers.is_none(),
            options,
            pin_error,
        }
    }
}

/// Returns the path of the configuration file of each configured server, by server name. The
/// bundled server is omitted, because its tools change with this program and not with a file.
fn server_config_files(config: &Config) -> BTreeMap<String, String> {
    let servers = config.servers.iter().flatten();
    let files = servers.filter_map(|server| {
        let file = config.server_files.get(&server.name)?;
        // The paths are canonical, so that two paths to one file are equal.
        let file = file.canonicalize().unwrap_or_else(|_| file.clone());
        Some((server.name.clone(), file.display().to_string()))
    });
    files.collect()
}

pub(crate) fn program_path() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()
        .context("cannot find the path of this program")
        .map_err(Failure::runtime_error)?;
    // If an update has replaced the program, its old file no longer exists at this path. Linux
    // still provides the file as `/proc/self/exe`.
    let replaced = cfg!(target_os = "linux") && !program.exists();
    Ok(if replaced {
        "/proc/self/exe".into()
    } else {
        program
    })
}

//! The configuration.
//!
//! The user's file and the project's file are parsed, expanded and checked one by one, so that
//! every error names its file. Then they are merged, and the project's file takes precedence. Flags
//! and `SWITCHBOARD_…` variables are applied by the commands.

mod adapter;
mod document;
mod env_file;
pub(crate) mod environment;
mod error;
mod files;
mod interpolate;
mod observe;
mod providers;
mod run;
mod serve;
mod sessions;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use secrecy::SecretString;
use switchboard_domain::ReasoningEffort;
use switchboard_mcp_client::config::ServerConfig;
use switchboard_orchestration::ApprovalPolicy;

pub(crate) use adapter::{PromptedTools, TextCalling};
pub(crate) use error::ConfigError;
pub(crate) use files::{CONFIG_FILE_NAMES, Sources, load};
pub(crate) use files::{from_text, servers_of, text_of};
#[cfg(all(test, feature = "otlp"))]
pub(crate) use observe::OtlpEndpoint;
pub(crate) use observe::{AuditPlace, ObserveConfig};
pub(crate) use providers::{ProviderEntry, ProviderKind};
pub(crate) use run::RunConfig;
pub(crate) use serve::ServeConfig;
pub(crate) use sessions::{SessionsConfig, StorePlace};

use environment::Environment;

/// The merged configuration of all files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    /// The files in ascending precedence.
    pub(crate) files: Vec<PathBuf>,
    /// The default model, `provider/model`.
    pub(crate) model: Option<String>,
    /// The system prompt of every conversation.
    pub(crate) instructions: Option<String>,
    /// The approval policy.
    pub(crate) approve: Option<ApprovalPolicy>,
    /// Maximum number of model calls in one run.
    pub(crate) max_steps: Option<u32>,
    /// Maximum number of tokens in one answer.
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) temperature: Option<f64>,
    /// Whether answers are streamed.
    pub(crate) stream: Option<bool>,
    /// The reasoning effort.
    pub(crate) reasoning: Option<ReasoningEffort>,
    /// Time limit of one tool call, for every server.
    pub(crate) tool_timeout: Option<Duration>,
    /// How long a question waits for optional servers that are starting.
    pub(crate) startup_wait: Option<Duration>,
    pub(crate) run: RunConfig,
    /// Audit, logs and traces.
    pub(crate) observe: ObserveConfig,
    pub(crate) sessions: SessionsConfig,
    pub(crate) serve: ServeConfig,
    /// Changed and additional providers, in the order of the files.
    pub(crate) providers: Vec<ProviderEntry>,
    /// The MCP servers. `None` if no file mentions servers.
    pub(crate) servers: Option<Vec<ServerConfig>>,
    /// The file of each server, by name.
    pub(crate) server_files: BTreeMap<String, PathBuf>,
    /// The values of all expanded variables, which may be secrets.
    pub(crate) filled: Vec<SecretString>,
}

impl Config {
    /// Merges `over` into this configuration. `over` takes precedence. Providers and servers are
    /// replaced as a whole, by name.
    #[must_use]
    fn merged_with(mut self, over: Self) -> Self {
        self.files.extend(over.files);
        self.filled.extend(over.filled);
        self.model = over.model.or(self.model);
        self.instructions = over.instructions.or(self.instructions);
        self.approve = over.approve.or(self.approve);
        self.max_steps = over.max_steps.or(self.max_steps);
        self.max_output_tokens = over.max_output_tokens.or(self.max_output_tokens);
        self.temperature = over.temperature.or(self.temperature);
        self.stream = over.stream.or(self.stream);
        self.reasoning = over.reasoning.or(self.reasoning);
        self.tool_timeout = over.tool_timeout.or(self.tool_timeout);
        self.startup_wait = over.startup_wait.or(self.startup_wait);
        self.server_files.extend(over.server_files);
        self.observe = self.observe.merged_with(over.observe);
        self.run = self.run.merged_with(over.run);
        self.serve = self.serve.merged_with(over.serve);
        self.sessions = self.sessions.merged_with(over.sessions);
        replace_by_name(&mut self.providers, over.providers, |entry| &entry.name);
        match over.servers {
            // `mcp_servers: {}` disables all servers.
            Some(servers) if servers.is_empty() => self.servers = Some(servers),
            Some(servers) => self.add_servers(servers),
            None => {}
        }
        self
    }

    /// Adds the servers of a file and replaces those with the same name.
    fn add_servers_of(&mut self, file: PathBuf, servers: Vec<ServerConfig>) {
        let names = servers.iter().map(|server| server.name.clone());
        self.server_files
            .extend(names.map(|name| (name, file.clone())));
        self.add_servers(servers);
        self.files.push(file);
    }

    /// Adds servers and replaces those with the same name.
    pub(crate) fn add_servers(&mut self, servers: Vec<ServerConfig>) {
        replace_by_name(self.servers.get_or_insert_default(), servers, |server| {
            &server.name
        });
    }
}

fn replace_by_name<T>(base: &mut Vec<T>, over: Vec<T>, name: impl Fn(&T) -> &String) {
    for item in over {
        match base.iter_mut().find(|old| name(old) == name(&item)) {
            Some(old) => *old = item,
            None => base.push(item),
        }
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;

/// Reads a document that is already parsed, as the file `file` would be. Of the sections `optional_sections` what needs a
/// variable that is not set is left out.
fn from_value(
    file: &std::path::Path,
    mut value: serde_json::Value,
    optional_sections: &[&str],
    environment: &Environment,
) -> Result<Config, ConfigError> {
    // Servers in the form of another program, as its own file would have them.
    switchboard_mcp_client::config::select_servers(&mut value);
    let used = files::fill(&mut value, file, optional_sections, environment);
    let used = used.map_err(|error| error.in_file(file))?;
    let mut config = document::read(&value, file).map_err(|error| error.in_file(file))?;
    for server in config.servers.iter_mut().flatten() {
        server.secrets.extend(used.iter().cloned());
        let (name, file) = (server.name.clone(), file.to_owned());
        config.server_files.insert(name, file);
    }
    config.filled = used;
    Ok(config)
}

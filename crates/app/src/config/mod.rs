//! What the user configured.
//!
//! The user's own file and the project's file are read one by one: parsed, `${VAR}` filled in, keys
//! checked, so that every error names the file it is in. Only then are they laid over each other,
//! the project's above the user's. Flags and `SWITCHBOARD_…` variables come on top in
//! [`crate::cli`].

mod adapter;
mod document;
mod env_file;
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

pub use adapter::{AdapterOptions, InWords, TextCalling};
pub use error::ConfigError;
pub use files::{CONFIG_FILE_NAMES, Sources, load, load_servers};
pub(crate) use files::{from_text, servers_of, text_of};
pub use observe::{AuditPlace, ObserveConfig, OtlpEndpoint};
pub use providers::{ProviderEntry, ProviderKind};
pub use run::{ApprovalsConfig, LimitsConfig, RunConfig};
pub use serve::ServeConfig;
pub use sessions::{SessionsConfig, StorePlace};

use crate::environment::Environment;

/// Everything that was configured in files, merged.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The files it came from, the one that wins last.
    pub files: Vec<PathBuf>,
    /// The model to ask, `provider/model`.
    pub model: Option<String>,
    /// What every conversation begins with.
    pub instructions: Option<String>,
    /// Which tool calls need a person's word.
    pub approve: Option<ApprovalPolicy>,
    /// Calls of the model in one run at most.
    pub max_steps: Option<u32>,
    /// Tokens of one answer at most.
    pub max_output_tokens: Option<u32>,
    /// How tokens are drawn.
    pub temperature: Option<f64>,
    /// Whether answers come piece by piece, as they are written.
    pub stream: Option<bool>,
    /// How much thinking is wanted.
    pub reasoning: Option<ReasoningEffort>,
    /// How long one tool call may take, for every server.
    pub tool_timeout: Option<Duration>,
    /// How long a question waits for servers that are starting and are not required.
    pub startup_wait: Option<Duration>,
    /// What a run may do and how it comes to its answer.
    pub run: RunConfig,
    /// What is kept and told of runs.
    pub observe: ObserveConfig,
    /// Where conversations are kept, and for how long.
    pub sessions: SessionsConfig,
    /// How the HTTP server is set up.
    pub serve: ServeConfig,
    /// Providers that were changed or added, by name, in the order given.
    pub providers: Vec<ProviderEntry>,
    /// The MCP servers; `None` if no file says anything about them.
    pub servers: Option<Vec<ServerConfig>>,
    /// Which file each of them is from, by its name.
    pub server_files: BTreeMap<String, PathBuf>,
    /// The values of the variables that were filled in anywhere: any may be a secret.
    pub filled: Vec<SecretString>,
}

impl Config {
    /// Lays `over` on top: what it says wins. Providers and servers are replaced whole, by name: a
    /// command of one file with the arguments of another would be nobody's server.
    #[must_use]
    fn overlaid_by(mut self, over: Self) -> Self {
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
        self.observe = self.observe.overlaid_by(over.observe);
        self.run = self.run.overlaid_by(over.run);
        self.serve = self.serve.overlaid_by(over.serve);
        self.sessions = self.sessions.overlaid_by(over.sessions);
        replace_by_name(&mut self.providers, over.providers, |entry| &entry.name);
        match over.servers {
            // `mcp_servers: {}` says that there are none.
            Some(servers) if servers.is_empty() => self.servers = Some(servers),
            Some(servers) => self.add_servers(servers),
            None => {}
        }
        self
    }

    /// Adds the servers of a file; one of the same name is replaced.
    fn add_servers_of(&mut self, file: PathBuf, servers: Vec<ServerConfig>) {
        let names = servers.iter().map(|server| server.name.clone());
        self.server_files
            .extend(names.map(|name| (name, file.clone())));
        self.add_servers(servers);
        self.files.push(file);
    }

    /// Adds servers; one of the same name is replaced.
    pub fn add_servers(&mut self, servers: Vec<ServerConfig>) {
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

/// Reads a document that is already parsed, as the file `file` would be. Of the sections `left_out` what needs a
/// variable that is not set is left out.
fn from_value(
    file: &std::path::Path,
    mut value: serde_json::Value,
    left_out: &[&str],
    environment: &Environment,
) -> Result<Config, ConfigError> {
    // Servers in the form of another program, as its own file would have them.
    switchboard_mcp_client::config::select_servers(&mut value);
    let used = files::fill(&mut value, file, left_out, environment);
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

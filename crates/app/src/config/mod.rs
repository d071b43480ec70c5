//! The configuration.
//!
//! The user's file and the project's file are parsed, expanded and checked one by one, so that
//! every error names its file. Then they are merged, and the project's file takes precedence. Flags
//! and `SWITCHBOARD_…` variables are applied by the commands.

mod document;
mod env_file;
pub(crate) mod environment;
mod error;
mod fields;
mod files;
mod interpolate;
mod providers;
mod run;
mod serve;
mod sessions;

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use switchboard_domain::ReasoningEffort;
use switchboard_mcp_client::config::ServerConfig;
use switchboard_orchestration::{
    ApprovalPolicy,
    policy::{guard::Guard, history::HistoryPolicy},
    strategy::Strategy,
    tools::{arguments::ContextTemplate, results::ResultLimit, search::SearchPolicy},
};

pub(crate) use error::ConfigError;
pub(crate) use files::{CONFIG_FILE_NAMES, Sources, from_text, load, servers_of, text_of};
pub(crate) use providers::{
    AdapterOptions, KINDS, PromptedTools, ProviderEntry, ProviderKind, TextCalling,
};
pub(crate) use sessions::{SessionsConfig, StorePlace};

use fields::{amount, converted, count, http_url, or_default, seconds, text};
use run::{ApprovalsConfig, LimitsConfig};
use serve::ServeConfig;

/// The merged configuration of all files. `None` is not configured.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a map of keys")]
pub(crate) struct Config {
    /// The default model, `provider/model`.
    #[serde(deserialize_with = "text")]
    pub(crate) model: Option<String>,
    /// The system prompt of every conversation.
    #[serde(deserialize_with = "text")]
    pub(crate) instructions: Option<String>,
    /// The approval policy.
    pub(crate) approve: Option<ApprovalPolicy>,
    /// Maximum number of model calls in one run.
    #[serde(deserialize_with = "count")]
    pub(crate) max_steps: Option<u32>,
    /// Maximum number of tokens in one answer.
    #[serde(deserialize_with = "count")]
    pub(crate) max_output_tokens: Option<u32>,
    #[serde(deserialize_with = "amount")]
    pub(crate) temperature: Option<f64>,
    /// Whether answers are streamed.
    pub(crate) stream: Option<bool>,
    /// The reasoning effort.
    pub(crate) reasoning: Option<ReasoningEffort>,
    /// Time limit of one tool call, for every server.
    #[serde(deserialize_with = "seconds")]
    pub(crate) tool_timeout: Option<Duration>,
    /// How long a question waits for optional servers that are starting.
    #[serde(deserialize_with = "seconds")]
    pub(crate) startup_wait: Option<Duration>,
    pub(crate) strategy: Option<Strategy>,
    /// The recipe's name or file.
    #[serde(deserialize_with = "text")]
    pub(crate) recipe: Option<String>,
    /// Models that are used when the previous one fails.
    pub(crate) fallback_models: Option<Vec<String>>,
    pub(crate) limits: Option<LimitsConfig>,
    pub(crate) approvals: Option<ApprovalsConfig>,
    /// Conditions on results that stop later calls.
    pub(crate) guards: Option<Vec<Guard>>,
    /// Maximum size of a result in the prompt.
    pub(crate) results: Option<ResultLimit>,
    pub(crate) history: Option<HistoryPolicy>,
    pub(crate) tool_search: Option<SearchPolicy>,
    /// How long results of read-only tools are cached. Zero disables the cache.
    #[serde(deserialize_with = "run::lifetime")]
    pub(crate) cache_results: Option<Duration>,
    /// Arguments that the host fills in and the model does not see, by name.
    #[serde(deserialize_with = "run::context")]
    pub(crate) context: Option<BTreeMap<String, ContextTemplate>>,
    /// The servers that receive context values. `None` is all servers.
    pub(crate) context_servers: Option<Vec<String>>,
    #[serde(deserialize_with = "document::audit")]
    pub(crate) audit: Option<AuditPlace>,
    /// Whether the audit includes tool results.
    pub(crate) audit_results: Option<bool>,
    /// The log file. `None` logs to standard error.
    #[serde(deserialize_with = "text")]
    pub(crate) log_file: Option<PathBuf>,
    /// The base address of the OpenTelemetry collector, without `/v1/traces`.
    #[serde(deserialize_with = "http_url")]
    pub(crate) otlp_endpoint: Option<String>,
    /// Headers of requests to `otlp_endpoint`, such as a key.
    #[serde(deserialize_with = "headers")]
    pub(crate) otlp_headers: Option<Vec<(String, SecretString)>>,
    /// Whether spans include message content.
    pub(crate) otlp_content: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) sessions: SessionsConfig,
    #[serde(deserialize_with = "or_default")]
    pub(crate) serve: ServeConfig,
    /// Changed and additional providers, in the order of the files.
    #[serde(skip)]
    pub(crate) providers: Vec<ProviderEntry>,
    /// The MCP servers. `None` if no file mentions servers.
    #[serde(skip)]
    pub(crate) servers: Option<Vec<ServerConfig>>,
    /// The file of each server, by name.
    #[serde(skip)]
    pub(crate) server_files: BTreeMap<String, PathBuf>,
    /// The files in ascending precedence.
    #[serde(skip)]
    pub(crate) files: Vec<PathBuf>,
    /// The values of all expanded variables, which may be secrets.
    #[serde(skip)]
    pub(crate) filled: Vec<SecretString>,
}

/// The location of the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuditPlace {
    Off,
    /// The default file in the user's state folder.
    Default,
    File(PathBuf),
}

/// Minimum length of a secret. Shorter values, such as a port, are common in output.
const MIN_SECRET_LENGTH: usize = 8;

/// Values may be secrets, so only the files are shown.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
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
        self.strategy = over.strategy.or(self.strategy);
        self.recipe = over.recipe.or(self.recipe);
        self.fallback_models = over.fallback_models.or(self.fallback_models);
        self.limits = both(self.limits, over.limits, LimitsConfig::merged_with);
        self.approvals = both(self.approvals, over.approvals, ApprovalsConfig::merged_with);
        self.guards = both(self.guards, over.guards, |base, over| [base, over].concat());
        self.results = over.results.or(self.results);
        self.history = over.history.or(self.history);
        self.tool_search = over.tool_search.or(self.tool_search);
        self.cache_results = over.cache_results.or(self.cache_results);
        self.context = over.context.or(self.context);
        self.context_servers = over.context_servers.or(self.context_servers);
        self.audit = over.audit.or(self.audit);
        self.audit_results = over.audit_results.or(self.audit_results);
        self.log_file = over.log_file.or(self.log_file);
        // Headers are sent only to the address beside them.
        if over.otlp_endpoint.is_some() {
            (self.otlp_endpoint, self.otlp_headers) = (over.otlp_endpoint, over.otlp_headers);
        }
        self.otlp_content = over.otlp_content.or(self.otlp_content);
        self.serve = self.serve.merged_with(over.serve);
        self.sessions = self.sessions.merged_with(over.sessions);
        self.server_files.extend(over.server_files);
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

    /// Returns the context values that may be secrets.
    pub(crate) fn context_secrets(&self) -> Vec<SecretString> {
        let values = self.context.iter().flatten();
        let texts = values.flat_map(|(_, value)| value.literals());
        let texts = texts.filter(|text| text.len() >= MIN_SECRET_LENGTH);
        texts.map(SecretString::from).collect()
    }

    /// Adds servers and replaces those with the same name.
    pub(crate) fn add_servers(&mut self, servers: Vec<ServerConfig>) {
        replace_by_name(self.servers.get_or_insert_default(), servers, |server| {
            &server.name
        });
    }
}

/// Combines the values of two files.
fn both<T>(base: Option<T>, over: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (base, over) {
        (Some(base), Some(over)) => Some(join(base, over)),
        (base, over) => over.or(base),
    }
}

fn headers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<(String, SecretString)>>, D::Error> {
    converted(deserializer, "a map of names and texts", |value| {
        let headers = value.as_object()?.iter();
        let headers = headers.map(|(name, value)| Some((name.clone(), value.as_str()?.into())));
        headers.collect()
    })
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

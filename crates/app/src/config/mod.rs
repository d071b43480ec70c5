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
use serde_json::{Map, Value};
use switchboard_domain::ReasoningEffort;
use switchboard_mcp_client::config::ServerConfig;
use switchboard_orchestration::{
    ApprovalPolicy,
    policy::{guard::Guard, history::HistoryPolicy},
    strategy::Strategy,
    tools::{arguments::ContextTemplate, results::ResultLimit, search::SearchPolicy},
};

pub(crate) use error::ConfigError;
pub(crate) use files::{CONFIG_FILE_NAMES, Sources, from_text, load, plain, servers_of, text_of};
pub(crate) use providers::{AdapterOptions, KINDS, ProviderEntry, ProviderKind};
pub(crate) use sessions::{SessionsConfig, StorePlace};

use error::Problem;
use fields::{amount, converted, count, http_url, or_default, seconds, section, text};
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
    /// The settings as JSON, without providers and servers.
    #[serde(skip)]
    pub(crate) settings: Map<String, Value>,
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
    fn merged_with(self, over: Self) -> Result<Self, Problem> {
        let mut settings = self.settings;
        document::merge(&mut settings, over.settings);
        let mut merged: Self = section("", &Value::Object(settings.clone()))?;
        merged.settings = settings;
        merged.approvals = match (self.approvals, over.approvals) {
            (Some(base), Some(over)) => Some(base.merged_with(over)),
            (base, over) => over.or(base),
        };
        // Each path is relative to its own file.
        merged.audit = over.audit.or(self.audit);
        merged.log_file = over.log_file.or(self.log_file);
        merged.sessions.store = over.sessions.store.or(self.sessions.store);
        merged.files = [self.files, over.files].concat();
        merged.filled = [self.filled, over.filled].concat();
        merged.server_files = self.server_files;
        merged.server_files.extend(over.server_files);
        merged.providers = self.providers;
        replace_by_name(&mut merged.providers, over.providers, |entry| &entry.name);
        merged.servers = self.servers;
        match over.servers {
            // `mcp_servers: {}` disables all servers.
            Some(servers) if servers.is_empty() => merged.servers = Some(servers),
            Some(servers) => merged.add_servers(servers),
            None => {}
        }
        Ok(merged)
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

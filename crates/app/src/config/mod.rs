//! Loads and merges the configuration.
//!
//! The user's file and the project's file are parsed, expanded and checked one by one, so that
//! every error names its file. Then they are merged, and the project's file takes precedence. Flags
//! and `SWITCHBOARD_…` variables are applied by the commands.

mod document_to_config;
mod env_file;
pub(crate) mod environment;
mod error;
mod field_parsing;
mod files;
mod limits_and_approvals;
mod providers;
mod serve;
mod sessions;
mod variable_expansion;

use std::{collections::BTreeMap, num::NonZeroU32, path::PathBuf, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use switchboard_domain::ReasoningEffort;
use switchboard_mcp_client::config::ServerConfig;
use switchboard_orchestration::{
    ApprovalPolicy,
    policy::{history::HistoryPolicy, tool_guard::ToolGuard},
    strategy::Strategy,
    tools::{arguments::ContextTemplate, results::ResultLimit, search::SearchPolicy},
};

pub(crate) use error::ConfigError;
pub(crate) use files::{
    CONFIG_FILE_NAMES, ConfigSources, load_config, parse_document, parse_servers, read_text_file,
    remove_os_error_code,
};
pub(crate) use providers::{AdapterOptions, KINDS, ProviderEntry, ProviderKind};
pub(crate) use sessions::{SessionsConfig, StoreLocation};

use error::Problem;
use field_parsing::{
    deserialize_converted, deserialize_http_url, deserialize_non_negative_number,
    deserialize_or_default, deserialize_seconds, deserialize_section, deserialize_text,
};
use limits_and_approvals::{ApprovalsConfig, CircuitBreakerConfig, LimitsConfig};
use serve::ServeConfig;

/// The configuration, merged from all files. A setting is `None` if no file contains it. `Debug`
/// shows only the names of the files, because the settings may contain secrets.
#[derive(Clone, Default, Deserialize, derive_more::Debug)]
#[debug("Config {{ files: {files:?}, .. }}")]
#[serde(default, deny_unknown_fields, expecting = "a map of keys")]
pub(crate) struct Config {
    /// Default model, such as `anthropic/claude-sonnet-5-5`.
    #[serde(deserialize_with = "deserialize_text")]
    pub(crate) model: Option<String>,
    /// System prompt that every conversation starts with.
    #[serde(deserialize_with = "deserialize_text")]
    pub(crate) instructions: Option<String>,
    /// Policy for tool calls that no approval rule matches: run all, ask the user, or run read-only
    /// tools only.
    pub(crate) approve: Option<ApprovalPolicy>,
    /// Maximum number of model calls in one run, including those after tool calls.
    pub(crate) max_steps: Option<NonZeroU32>,
    /// Maximum number of tokens that a model may generate for one answer.
    pub(crate) max_output_tokens: Option<NonZeroU32>,
    #[serde(deserialize_with = "deserialize_non_negative_number")]
    pub(crate) temperature: Option<f64>,
    /// Whether models stream their answers or return each answer as a whole.
    pub(crate) stream: Option<bool>,
    /// How much a model reasons before it answers.
    pub(crate) reasoning: Option<ReasoningEffort>,
    /// Time limit of one tool call, if the entry of the MCP server has no `timeout`. Configuration
    /// files contain the limit in seconds.
    #[serde(deserialize_with = "deserialize_seconds")]
    pub(crate) tool_timeout: Option<Duration>,
    /// Time that a question waits for optional MCP servers that are still starting. Configuration
    /// files contain the time in seconds.
    #[serde(deserialize_with = "deserialize_seconds")]
    pub(crate) startup_wait: Option<Duration>,
    /// Limits after which calls to a tool or server that does not respond are paused.
    #[serde(deserialize_with = "deserialize_or_default")]
    pub(crate) circuit_breaker: CircuitBreakerConfig,
    pub(crate) strategy: Option<Strategy>,
    /// Name or file of the recipe that runs use by default.
    #[serde(deserialize_with = "deserialize_text")]
    pub(crate) recipe: Option<String>,
    /// Fallback models, in the order of their use. If a model fails before any of its output is
    /// shown, the next model is tried.
    pub(crate) fallback_models: Option<Vec<String>>,
    pub(crate) limits: Option<LimitsConfig>,
    pub(crate) approvals: Option<ApprovalsConfig>,
    /// Guards: conditions on a tool result. If the result meets the condition, the later tool calls
    /// of the same model answer are not executed.
    pub(crate) guards: Option<Vec<ToolGuard>>,
    /// Size limit of a tool result in the prompt, in estimated tokens. A longer result is
    /// truncated.
    pub(crate) results: Option<ResultLimit>,
    pub(crate) history: Option<HistoryPolicy>,
    pub(crate) tool_search: Option<SearchPolicy>,
    /// Time for which results of read-only tools are cached. `None` and a zero duration disable the
    /// cache.
    #[serde(deserialize_with = "limits_and_approvals::deserialize_cache_lifetime")]
    pub(crate) cache_results: Option<Duration>,
    /// Values of tool arguments by name. The host fills them in, and the model does not see them.
    #[serde(deserialize_with = "limits_and_approvals::deserialize_context_values")]
    pub(crate) context: Option<BTreeMap<String, ContextTemplate>>,
    /// Names of the MCP servers that receive the values of `context`. `None` means all servers.
    pub(crate) context_servers: Option<Vec<String>>,
    #[serde(deserialize_with = "document_to_config::deserialize_audit")]
    pub(crate) audit: Option<AuditLocation>,
    /// Whether the audit includes the results of tool calls.
    pub(crate) audit_results: Option<bool>,
    /// File to which log lines are written. `None` means standard error.
    #[serde(deserialize_with = "deserialize_text")]
    pub(crate) log_file: Option<PathBuf>,
    /// Base address of the OpenTelemetry collector, without `/v1/traces`.
    #[serde(deserialize_with = "deserialize_http_url")]
    pub(crate) otlp_endpoint: Option<String>,
    /// Headers of requests to the OpenTelemetry collector, such as an API key.
    #[serde(deserialize_with = "deserialize_headers")]
    pub(crate) otlp_headers: Option<Vec<(String, SecretString)>>,
    /// Whether exported spans include the content of messages.
    pub(crate) otlp_content: Option<bool>,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub(crate) sessions: SessionsConfig,
    #[serde(deserialize_with = "deserialize_or_default")]
    pub(crate) serve: ServeConfig,
    /// Model providers in the configuration, in the order of the files.
    #[serde(skip)]
    pub(crate) providers: Vec<ProviderEntry>,
    /// MCP servers in the configuration. `None` if no file lists servers.
    #[serde(skip)]
    pub(crate) servers: Option<Vec<ServerConfig>>,
    /// Configuration file that lists each MCP server, by server name.
    #[serde(skip)]
    pub(crate) server_files: BTreeMap<String, PathBuf>,
    /// Paths of the configuration files that were read, lowest precedence first.
    #[serde(skip)]
    pub(crate) files: Vec<PathBuf>,
    /// Settings as JSON, without providers and MCP servers. [`Config::merge_config`] merges them
    /// with the settings of other files.
    #[serde(skip)]
    pub(crate) settings: Map<String, Value>,
    /// Values of all variables that were expanded in the files. They may be secrets.
    #[serde(skip)]
    pub(crate) filled: Vec<SecretString>,
}

/// Location of the audit file, or `Off` for no audit in a file or the session store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuditLocation {
    Off,
    /// The audit file is `audit.jsonl` in the user's state folder.
    Default,
    File(PathBuf),
}

/// Minimum length in bytes of a context value that is redacted. Shorter values, such as a port,
/// also occur in ordinary output.
const MIN_SECRET_LENGTH: usize = 8;

impl Config {
    /// Merges `over` into this configuration. Values of `over` take precedence. A provider or
    /// server in `over` completely replaces the one with the same name.
    fn merge_config(self, over: Self) -> Result<Self, Problem> {
        let mut settings = self.settings;
        document_to_config::merge_settings(&mut settings, over.settings);
        let mut merged: Self = deserialize_section("", &Value::Object(settings.clone()))?;
        merged.settings = settings;
        merged.approvals = match (self.approvals, over.approvals) {
            (Some(base), Some(over)) => Some(base.merge_approvals(over)),
            (base, over) => over.or(base),
        };
        // The paths in the merged settings are still as the user wrote them. They are replaced by
        // the absolute paths of the two configurations.
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
            // The setting `mcp_servers: {}` of a file disables all servers of earlier files.
            Some(servers) if servers.is_empty() => merged.servers = Some(servers),
            Some(servers) => merged.add_servers(servers),
            None => {}
        }
        Ok(merged)
    }

    /// Adds the servers of a configuration file. They replace earlier servers of the same names.
    fn add_servers_from_file(&mut self, file: PathBuf, servers: Vec<ServerConfig>) {
        let names = servers.iter().map(|server| server.name.clone());
        self.server_files
            .extend(names.map(|name| (name, file.clone())));
        self.add_servers(servers);
        self.files.push(file);
    }

    /// Returns the configured values of `context` that are redacted in output, because they may be
    /// secrets. Omits values shorter than [`MIN_SECRET_LENGTH`].
    pub(crate) fn context_secrets(&self) -> Vec<SecretString> {
        let values = self.context.iter().flatten();
        let texts = values.flat_map(|(_, value)| value.literal_texts());
        let texts = texts.filter(|text| text.len() >= MIN_SECRET_LENGTH);
        texts.map(SecretString::from).collect()
    }

    /// Adds servers to the configuration. They replace earlier servers of the same names.
    pub(crate) fn add_servers(&mut self, servers: Vec<ServerConfig>) {
        replace_by_name(self.servers.get_or_insert_default(), servers, |server| {
            &server.name
        });
    }
}

fn deserialize_headers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<(String, SecretString)>>, D::Error> {
    deserialize_converted(deserializer, "a map of names and texts", |value| {
        let headers = value.as_object()?.iter();
        let headers = headers.map(|(name, value)| Some((name.clone(), value.as_str()?.into())));
        headers.collect()
    })
}

/// Adds the items of `over` to `base`. They replace items of `base` that have the same name.
pub(crate) fn replace_by_name<T>(base: &mut Vec<T>, over: Vec<T>, name: impl Fn(&T) -> &String) {
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

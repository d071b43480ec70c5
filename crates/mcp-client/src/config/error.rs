//! Errors in the configuration of MCP servers.

use switchboard_domain::similar_names::{did_you_mean, find_nearest};

/// Error in the configuration of MCP servers. No variant contains a value that may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A server in the Switchboard format has a key that the format does not define.
    #[error(
        "`{path}` is not a known key{}; known keys: {}",
        suggest_key(path, known),
        known.join(", ")
    )]
    UnknownKey {
        /// Path of the unknown key, such as `mcp_servers.crm.comand`.
        path: String,
        /// All keys that the format allows at this path.
        known: Vec<String>,
    },
    /// A value in the configuration is invalid, or several keys contradict each other.
    #[error("`{path}` {reason}")]
    Invalid {
        /// Path of the invalid value, such as `mcp_servers.crm.url`.
        path: String,
        /// Clause that follows the path in the error message, such as `must be text`.
        reason: String,
    },
    /// Two configured servers have the same name.
    #[error("duplicate server name `{name}`: give each server a unique name")]
    DuplicateName {
        /// Name that two or more servers have.
        name: String,
    },
    /// The document contains no list of MCP servers.
    #[error("no MCP servers found: list them under `mcp_servers`, `mcpServers` or `servers`")]
    NoServers,
}

impl ConfigError {
    pub(super) fn invalid_value(path: &str, reason: impl Into<String>) -> Self {
        Self::Invalid {
            path: if path.is_empty() { "document" } else { path }.to_owned(),
            reason: reason.into(),
        }
    }

    /// Creates the error for a message of serde, such as "unknown field `a`, expected `b` or `c`".
    /// Omits the quoted value in messages such as "invalid type: string "secret", expected a
    /// boolean", because the value may be a secret.
    pub(super) fn from_serde(path: &str, message: &str) -> Self {
        if let Some(rest) = message.strip_prefix("unknown field `") {
            let mut names = rest.split('`').step_by(2).map(str::to_owned);
            let key = names.next().unwrap_or_default();
            let is_in_path = path == key || path.ends_with(&format!(".{key}"));
            return Self::UnknownKey {
                path: if is_in_path {
                    path.to_owned()
                } else {
                    format!("{path}.{key}")
                },
                known: names.collect(),
            };
        }
        let Some((_, expected)) = message.rsplit_once(", expected ") else {
            return Self::invalid_value(path, message);
        };
        let expected = match expected {
            "a boolean" => "true or false",
            "a string" => "text",
            "a nonzero usize" => "a whole number of at least 1",
            other => other,
        };
        Self::invalid_value(path, format!("must be {expected}"))
    }
}

fn suggest_key(path: &str, known: &[String]) -> String {
    let key = path.rsplit('.').next().unwrap_or(path);
    did_you_mean(find_nearest(key, known.iter().map(String::as_str)))
}

//! Errors of the configuration of servers.

use switchboard_domain::nearest::{did_you_mean, nearest};

/// An error in the configuration of servers. No variant contains a value that may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// An unknown key in our own form.
    #[error("`{path}` is not a known key{}; known keys: {}", suggestion(path, known), known.join(", "))]
    UnknownKey {
        /// The path, such as `mcp_servers.crm.comand`.
        path: String,
        /// All known keys.
        known: Vec<String>,
    },
    /// An invalid value, or keys that do not fit together.
    #[error("`{path}` {reason}")]
    Invalid {
        /// The path.
        path: String,
        /// The rest of the sentence, such as `must be text`.
        reason: String,
    },
    /// Two servers have the same name.
    #[error("two servers are named `{name}`: give every server a different name")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A document without servers.
    #[error("no MCP servers found: list them under `mcp_servers`, `mcpServers` or `servers`")]
    NoServers,
}

impl ConfigError {
    pub(super) fn invalid(path: &str, reason: impl Into<String>) -> Self {
        Self::Invalid {
            path: if path.is_empty() { "document" } else { path }.to_owned(),
            reason: reason.into(),
        }
    }

    /// Converts a message of serde, such as "unknown field `a`, expected `b` or `c`" or "invalid
    /// type: string "secret", expected a boolean". The found value is omitted.
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
            return Self::invalid(path, message);
        };
        let expected = match expected {
            "a boolean" => "true or false",
            "a string" => "text",
            other => other,
        };
        Self::invalid(path, format!("must be {expected}"))
    }
}

fn suggestion(path: &str, known: &[String]) -> String {
    let key = path.rsplit('.').next().unwrap_or(path);
    did_you_mean(nearest(key, known.iter().map(String::as_str)))
}

//! Errors in configuration files.

use std::path::{Path, PathBuf};

use switchboard_domain::similar_names::{did_you_mean, find_nearest};

/// An error in a configuration file. Messages omit values from the file, which may be secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{file}: {problem}", file = file.display())]
    InFile { file: PathBuf, problem: Problem },
    #[error("{file}: {source}", file = file.display())]
    Unreadable {
        file: PathBuf,
        source: std::io::Error,
    },
    /// A folder contains two configuration files, and only one is allowed.
    #[error(
        "both {} and {} exist: keep one of them, or choose one with --config",
        first.display(),
        second.display()
    )]
    Ambiguous { first: PathBuf, second: PathBuf },
}

/// The problem in the content of a configuration file, without the file name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("not valid {format}: {message}")]
    Syntax {
        format: &'static str,
        /// Message of the parser, with the line number of the syntax error in the file.
        message: String,
    },
    #[error("unknown file extension: use .yaml, .yml, .toml or .json")]
    UnknownFormat,
    #[error("unknown key `{path}`{}. Available: {}", suggest_key(path, known), known.join(", "))]
    UnknownKey {
        /// Path of the unknown key in the file, such as `providers.litellm.base_ulr`.
        path: String,
        known: Vec<String>,
    },
    /// The value at `path` has the wrong type or is out of range.
    #[error("`{path}` must be {expected}")]
    WrongValue { path: String, expected: String },
    /// The value at `path` cannot be parsed. `reason` is the message of its parser.
    #[error("`{path}` is not valid: {reason}. See docs/configuration.md")]
    Invalid { path: String, reason: String },
    /// The environment variable of a `${…}` is not set, and the `${…}` contains no default.
    #[error("the variable `{name}` is not set: set it, or write ${{{name}:-default}}")]
    UnsetVariable { name: String },
    /// The file that the key `envFile` of an MCP server names cannot be read or parsed.
    #[error("its `envFile` `{}` cannot be read: {reason}", file.display())]
    EnvFile { file: PathBuf, reason: String },
    #[error(
        "`{name}` in ${{…}} is not the name of an environment variable; write $${{ for a literal \
         ${{"
    )]
    BadVariable { name: String },
    #[error("a ${{ has no closing }}; write $${{ for a literal ${{")]
    OpenVariable,
    /// The list of MCP servers in the file is invalid.
    #[error(transparent)]
    Servers(#[from] switchboard_mcp_client::config::ConfigError),
    #[error("`{first}` and `{second}` both list MCP servers: keep one of them")]
    ServersTwice {
        first: &'static str,
        second: &'static str,
    },
}

fn suggest_key(path: &str, known: &[String]) -> String {
    let key = path.rsplit('.').next().unwrap_or(path);
    did_you_mean(find_nearest(key, known.iter().map(String::as_str)))
}

impl Problem {
    pub(super) fn into_config_error(self, file: &Path) -> ConfigError {
        ConfigError::InFile {
            file: file.to_owned(),
            problem: self,
        }
    }

    pub(super) fn wrong_value(path: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::WrongValue {
            path: path.into(),
            expected: expected.into(),
        }
    }

    /// Converts the message of a serde error at `path` to a problem. The message is, for example,
    /// "unknown field `a`, expected `b` or `c`" or "invalid type: string "secret", expected a map".
    /// Omits the invalid value, which may be a secret.
    pub(super) fn from_serde(mut path: String, message: &str) -> Self {
        let Some((found, expected)) = message.rsplit_once(", expected ") else {
            let reason = message.to_owned();
            return Self::Invalid { path, reason };
        };
        let Some(key) = found.strip_prefix("unknown field `") else {
            let expected = match expected {
                "a boolean" => "true or false",
                "a string" => "text",
                "a sequence" => "a list",
                "u32" => "a whole number of at least 0",
                number if number.starts_with("a nonzero ") => "a whole number of at least 1",
                other => other,
            };
            return Self::wrong_value(path, expected);
        };
        let key = key.trim_end_matches('`');
        if path != key && !path.ends_with(&format!(".{key}")) {
            path = format!("{path}.{key}");
        }
        let known = expected.split('`').skip(1).step_by(2);
        let known = known.map(str::to_owned).collect();
        Self::UnknownKey { path, known }
    }
}

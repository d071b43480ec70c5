//! What is wrong with a configuration.

use std::path::{Path, PathBuf};

/// What is wrong with a configuration, and in which file. Values are not shown: any may be a key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Something in a file is wrong.
    #[error("{file}: {problem}", file = file.display())]
    InFile {
        /// The file.
        file: PathBuf,
        /// What.
        problem: Problem,
    },
    /// A file that was asked for cannot be read.
    #[error("{file}: cannot be read: {source}", file = file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Two files in one folder.
    #[error(
        "{} and {} are both there: keep one of them, or name the one you mean with --config",
        first.display(),
        second.display()
    )]
    Ambiguous {
        /// The one.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
}

/// What is wrong in a file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It is not what its name says.
    #[error("is not valid {format}: {message}")]
    Syntax {
        /// YAML, TOML or JSON.
        format: &'static str,
        /// The parser's message, with the line.
        message: String,
    },
    /// Its name does not say what it is.
    #[error("has no known ending: name it .yaml, .yml, .toml or .json")]
    UnknownFormat,
    /// A key that does not exist.
    #[error(
        "`{path}` is no known key{}; there are: {}",
        switchboard_domain::nearest::did_you_mean(nearest.as_deref()),
        known.join(", ")
    )]
    UnknownKey {
        /// Where, such as `providers.litellm.base_ulr`.
        path: String,
        /// The known key most like it.
        nearest: Option<String>,
        /// All known keys at this place.
        known: Vec<String>,
    },
    /// A value of the wrong type or range.
    #[error("`{path}` must be {expected}")]
    WrongValue {
        /// Where.
        path: String,
        /// What it must be.
        expected: String,
    },
    /// A variable that is not set and has no default.
    #[error("the variable `{name}` is not set: set it, or write ${{{name}:-default}}")]
    UnsetVariable {
        /// Its name.
        name: String,
    },
    /// A file of variables for a server that cannot be read.
    #[error("its `envFile` `{}` cannot be read: {reason}", file.display())]
    EnvFile {
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Something in `${…}` that is no name of a variable.
    #[error(
        "`{name}` in ${{…}} is no name of an environment variable; write $${{ for a literal ${{"
    )]
    BadVariable {
        /// What is written.
        name: String,
    },
    /// `${` without `}`.
    #[error("a ${{ has no closing }}; write $${{ for a literal ${{")]
    OpenVariable,
    /// Something in the MCP servers.
    #[error(transparent)]
    Servers(#[from] switchboard_mcp_client::config::ConfigError),
    /// The servers are given under several keys.
    #[error("`{first}` and `{second}` both list MCP servers: keep one of them")]
    ServersTwice {
        /// One key.
        first: &'static str,
        /// Another.
        second: &'static str,
    },
}

impl Problem {
    pub(super) fn in_file(self, file: &Path) -> ConfigError {
        ConfigError::InFile {
            file: file.to_owned(),
            problem: self,
        }
    }

    pub(super) fn wrong(path: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::WrongValue {
            path: path.into(),
            expected: expected.into(),
        }
    }
}

//! What can go wrong with a host and with starting a server.

use std::{fmt, path::PathBuf, time::Duration};

use crate::server::stderr::last_words;

/// Why a host cannot be started or cannot do without a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Two servers of one name.
    #[error("two servers are named `{name}`: every server needs a name of its own")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// [`McpHost::start`](crate::McpHost::start) was called outside a tokio runtime.
    #[error("an MCP host needs a running tokio runtime")]
    NoRuntime,
    /// The program of a server was not found.
    #[error("server `{server}` cannot start: {reason}")]
    NoProgram {
        /// The server.
        server: String,
        /// Which program was not found, and what to do.
        reason: String,
    },
    /// A server that is required is not there.
    #[error(
        "required server `{server}` is not available: {reason}{}",
        told(last_words(stderr_tail))
    )]
    RequiredServer {
        /// The server.
        server: String,
        /// Why it is not there.
        reason: String,
        /// What it last wrote to its standard error. The end of it is part of this error's text.
        stderr_tail: Vec<String>,
    },
}

/// Why a server did not come up. Its text is the cause shown with the server's state.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(
        "`{command}` was not found{}",
        advice(command, *holds_arguments)
    )]
    NoExecutable {
        command: String,
        holds_arguments: bool,
    },
    #[error("its working directory `{}` does not exist", path.display())]
    NoDirectory { path: PathBuf },
    #[error("`{command}` could not be started: {source}")]
    Spawn {
        command: String,
        source: std::io::Error,
    },
    #[error("{how}")]
    Exited { how: String },
    #[error("it was not ready within {after:?}: {waiting_for}")]
    TimedOut {
        after: Duration,
        waiting_for: &'static str,
    },
    #[error(
        "it asks for authorization ({challenge}): set `authorization` or `headers` in its configuration"
    )]
    Unauthorized { challenge: String },
    /// There is no token for it; `needs_person`: and there will be none without a person.
    #[error("{reason}")]
    Login { reason: String, needs_person: bool },
    #[error("no protocol version in common: it speaks {}", server_supports.join(", "))]
    NoCommonVersion { server_supports: Vec<String> },
    #[error("the handshake failed: {reason}")]
    Handshake { reason: String },
    #[error("it did not list its tools: {reason}")]
    Listing { reason: String },
    #[error("its configuration cannot be used: {reason}")]
    Configuration { reason: String },
}

impl StartError {
    /// Whether the server itself may have said more on its standard error.
    pub(crate) fn has_last_words(&self) -> bool {
        matches!(
            self,
            Self::Exited { .. } | Self::TimedOut { .. } | Self::Handshake { .. }
        )
    }
}

/// Why a server is not ready: the cause, and what it last wrote to its standard error. As text it is
/// both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) cause: String,
    pub(crate) last_words: Vec<String>,
    /// The server's program was not found.
    pub(crate) lacks_program: bool,
}

impl Reason {
    /// A cause about which the server itself says nothing.
    pub(crate) fn of(cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            ..Self::default()
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.cause, told(&self.last_words))
    }
}

/// The end of what a server wrote to its standard error, for the end of a sentence.
fn told(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("; its last words were: {}", lines.join(" | "))
}

fn advice(command: &str, holds_arguments: bool) -> String {
    if holds_arguments {
        return "; it seems to hold arguments, which belong in `args`".to_owned();
    }
    let product = match command {
        "npx" | "node" | "npm" => Some("Node.js, https://nodejs.org"),
        "uvx" | "uv" => Some("uv, https://docs.astral.sh/uv"),
        "docker" => Some("Docker, https://docs.docker.com"),
        "python" | "python3" => Some("Python, https://www.python.org"),
        "bunx" | "bun" => Some("Bun, https://bun.sh"),
        "deno" => Some("Deno, https://deno.com"),
        _ => None,
    };
    match product {
        Some(product) => format!(" on PATH: install it ({product}), or give its full path"),
        None if command.contains(['/', '\\']) => {
            ": check the path, and that the file may be executed".to_owned()
        }
        None => " on PATH: install it, or give its full path".to_owned(),
    }
}

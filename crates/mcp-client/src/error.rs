//! What can go wrong with a host and with starting a server.

use std::{path::PathBuf, time::Duration};

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
    /// A server that is required is not there.
    #[error("required server `{server}` is not available: {reason}")]
    RequiredServer {
        /// The server.
        server: String,
        /// Why it is not there.
        reason: String,
        /// What it last wrote to its standard error.
        stderr_tail: Vec<String>,
    },
}

/// Why a server did not come up. Its text is the reason shown with the server's state.
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
    #[error("{how}{}", last_lines(stderr_tail))]
    Exited {
        how: String,
        stderr_tail: Vec<String>,
    },
    #[error(
        "it was not ready within {after:?}: {waiting_for}{}",
        last_lines(stderr_tail)
    )]
    TimedOut {
        after: Duration,
        waiting_for: &'static str,
        stderr_tail: Vec<String>,
    },
    #[error(
        "it asks for authorization ({challenge}): set `authorization` or `headers` in its configuration"
    )]
    Unauthorized { challenge: String },
    #[error("no protocol version in common: it speaks {}", server_supports.join(", "))]
    NoCommonVersion { server_supports: Vec<String> },
    #[error("the handshake failed: {reason}{}", last_lines(stderr_tail))]
    Handshake {
        reason: String,
        stderr_tail: Vec<String>,
    },
    #[error("it did not list its tools: {reason}")]
    Listing { reason: String },
    #[error("its configuration cannot be used: {reason}")]
    Configuration { reason: String },
}

/// The end of what a server wrote to its standard error, for the end of a sentence.
pub(crate) fn last_lines(lines: &[String]) -> String {
    const SHOWN: usize = 5;
    if lines.is_empty() {
        return String::new();
    }
    let shown = &lines[lines.len().saturating_sub(SHOWN)..];
    format!("; its last words were: {}", shown.join(" | "))
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

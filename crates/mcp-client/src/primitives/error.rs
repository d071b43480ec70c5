//! Errors of an MCP host and of starting a server, and helpers for error texts.

use std::{error::Error, fmt, path::PathBuf, time::Duration};

/// Number of lines of a server's standard error that an error message contains.
const STDERR_LINES: usize = 5;

/// Error of starting an [`McpHost`](crate::McpHost) or of waiting for its servers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Two configured servers have the same name.
    #[error("duplicate server name `{name}`: give each server a unique name")]
    DuplicateName {
        /// Name that two or more servers have.
        name: String,
    },
    /// [`McpHost::start`](crate::McpHost::start) was called outside a tokio runtime.
    #[error("an MCP host requires a running tokio runtime")]
    NoRuntime,
    /// A server that the configuration marks as `required` is not available.
    #[error(
        "required server `{server}` is not available: {reason}{}",
        format_stderr(last_stderr_lines(stderr_tail))
    )]
    RequiredServer {
        /// Configured name of the server.
        server: String,
        /// Reason why the required server is not available.
        reason: String,
        /// Last lines of the standard error of the server, at most 20. The error message contains
        /// the last five of them.
        stderr_tail: Vec<String>,
    },
}

/// Reason why a server did not start. The server's status contains the text of this error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("`{command}` was not found{}", install_hint(command, *contains_arguments))]
    NoExecutable {
        command: String,
        contains_arguments: bool,
    },
    #[error("the working directory `{}` does not exist", path.display())]
    NoDirectory { path: PathBuf },
    #[error("`{command}` could not be started: {source}")]
    Spawn {
        command: String,
        source: std::io::Error,
    },
    #[error("{status}")]
    Exited { status: String },
    #[error("not ready within {after:?}: {waiting_for}")]
    TimedOut {
        after: Duration,
        waiting_for: &'static str,
    },
    /// The server requires authorization. `needs_person` is set if a person must act, for example
    /// log in.
    #[error("{reason}")]
    Unauthorized { reason: String, needs_person: bool },
    #[error("no common protocol version: the server supports {}", server_supports.join(", "))]
    NoCommonVersion { server_supports: Vec<String> },
    #[error("the handshake failed: {reason}")]
    Handshake {
        reason: String,
        /// Whether the connection broke during the handshake. The exit status of the process then
        /// explains the failure better than `reason`.
        broke: bool,
        /// Whether the server answered the handshake with `Method not found`. As an answer to
        /// `initialize`, this means that the server supports only protocol versions without
        /// `initialize` (2026-07-28).
        is_modern: bool,
    },
    #[error("listing the tools failed: {reason}")]
    Listing { reason: String },
    #[error("invalid configuration: {reason}")]
    Configuration { reason: String },
}

impl StartError {
    /// Returns whether the server's standard error may explain the failure and should be shown.
    pub(crate) fn includes_stderr(&self) -> bool {
        matches!(
            self,
            Self::Exited { .. } | Self::TimedOut { .. } | Self::Handshake { .. }
        )
    }

    /// Returns whether a second attempt with another handshake may succeed.
    pub(crate) fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Exited { .. } | Self::Handshake { .. } | Self::NoCommonVersion { .. }
        )
    }

    /// Returns whether a person must act (for example log in) before the server can start.
    pub(crate) fn needs_user_action(&self) -> bool {
        matches!(
            self,
            Self::Unauthorized {
                needs_person: true,
                ..
            }
        )
    }
}

/// Reason why a server is not ready. `Display` shows the cause and the last lines of the server's
/// standard error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StatusReason {
    pub(crate) cause: String,
    pub(crate) stderr_lines: Vec<String>,
}

impl StatusReason {
    /// Creates a status reason without lines of standard error.
    pub(crate) fn new(cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            ..Self::default()
        }
    }
}

impl fmt::Display for StatusReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.cause, format_stderr(&self.stderr_lines))
    }
}

/// Returns the last [`STDERR_LINES`] lines of a server's standard error, for an error message.
pub(crate) fn last_stderr_lines(lines: &[String]) -> &[String] {
    &lines[lines.len().saturating_sub(STDERR_LINES)..]
}

fn format_stderr(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("; last lines of stderr: {}", lines.join(" | "))
}

fn install_hint(command: &str, contains_arguments: bool) -> String {
    if contains_arguments {
        return "; the command seems to contain arguments, which belong in `args`".to_owned();
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
        Some(product) => format!(" on PATH: install it ({product}), or set its full path"),
        None if command.contains(['/', '\\']) => {
            ": check the path, and that the file is executable".to_owned()
        }
        None => " on PATH: install it, or set its full path".to_owned(),
    }
}

/// Returns the message of the innermost error, which is the actual cause of the failure.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Shortens untrusted text to one line of at most 200 characters and removes control characters. A
/// server that does not speak MCP often answers with a whole web page.
pub(crate) fn shorten(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.retain(|c| !c.is_control());
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened_to_one_line() {
        assert_eq!(
            shorten("HTTP 404:\n  <p>\tno\u{7}</p>\n"),
            "HTTP 404: <p> no</p>"
        );
        assert_eq!(shorten(&"ä\n".repeat(500)).chars().count(), 201);
    }
}

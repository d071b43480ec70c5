//! The status of an MCP server, as shown to users.

use std::time::Duration;

use serde::Serialize;

use crate::{server::stderr_and_logs::LogMessage, tools::pagination::Freshness};

/// Status of one MCP server at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    /// Configured name of the server.
    pub name: String,
    /// State of the server, for example ready or failed.
    pub state: ServerState,
    /// Reason for the state, without the lines in `stderr_tail`. `None` for a ready server.
    pub reason: Option<String>,
    /// MCP protocol version that the host and the server negotiated in the last handshake.
    pub protocol_version: Option<String>,
    /// Name and version that the server reported in the last handshake.
    pub server_info: Option<ServerIdentity>,
    /// Instructions of the server for the use of its tools. Untrusted text.
    pub instructions: Option<String>,
    /// Number of tools that models may call.
    pub tools: usize,
    /// Number of tools that only HTML pages of MCP Apps may call.
    #[serde(skip_serializing_if = "is_zero")]
    pub app_tools: usize,
    /// Lists of the server that are in the cache, each with its time to live.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<ListFreshness>,
    /// Problems that do not prevent the use of the server, such as an invalid tool.
    pub warnings: Vec<String>,
    /// Original names (on the server) of the tools whose [definition has
    /// changed](crate::McpHost::changed_tools).
    pub changed_tools: Vec<String>,
    /// Process id of a stdio server while its process runs.
    pub pid: Option<u32>,
    /// Last 20 lines of the standard error of a stdio server, the oldest first.
    pub stderr_tail: Vec<String>,
    /// Last 50 log messages that the server sent through MCP, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogMessage>,
    /// Command line or URL of the server, without secrets.
    pub transport: String,
    /// Whether the configuration marks the server as required.
    pub required: bool,
}

/// Time to live of one cached list of a server (MCP 2026-07-28, "Caching").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ListFreshness {
    /// Name of the list: `tools`, `prompts`, `resources` or `resource_templates`.
    pub list: &'static str,
    /// Time to live in milliseconds that the server declared for the list.
    pub ttl_ms: u64,
    /// Remaining time in milliseconds until the list expires.
    pub fresh_for_ms: u64,
}

impl ListFreshness {
    pub(crate) fn new(list: &'static str, freshness: Freshness) -> Self {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            list,
            ttl_ms: milliseconds(freshness.ttl),
            fresh_for_ms: milliseconds(freshness.remaining_ttl()),
        }
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires this signature"
)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// State of an MCP server, which determines whether calls are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerState {
    /// The server is starting or restarting.
    Starting,
    /// The server is connected and accepts calls.
    Ready,
    /// The server accepts calls, but has a problem, for example a tool that does not answer.
    Degraded,
    /// A person must authorize the server, or the server's circuit breaker is open.
    Blocked,
    /// The server did not start, or it ended and is not restarted immediately.
    Failed,
    /// The host was closed, so the server was stopped.
    Stopped,
}

impl ServerState {
    /// Returns whether the server accepts calls in this state.
    pub fn takes_calls(self) -> bool {
        matches!(self, Self::Ready | Self::Degraded)
    }

    /// Returns the name of the state in JSON, in HTTP responses and in
    /// [`ToolHostChange::ServerState`](switchboard_domain::ToolHostChange).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// Name and version that an MCP server reports about itself. Untrusted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerIdentity {
    /// Name of the server software.
    pub name: String,
    /// Version of the server software.
    pub version: String,
}

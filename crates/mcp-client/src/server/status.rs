//! The status of a server.

use std::time::Duration;

use serde::Serialize;

use crate::{server::output::LogMessage, tools::pagination::Freshness};

/// The status of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    /// The configured name.
    pub name: String,
    /// The state.
    pub state: ServerState,
    /// Why it is in this state. Does not repeat `stderr_tail`.
    pub reason: Option<String>,
    /// The negotiated protocol version.
    pub protocol_version: Option<String>,
    /// The name and version that the server reports.
    pub server_info: Option<ServerIdentity>,
    /// The server's instructions for its use. Untrusted text.
    pub instructions: Option<String>,
    /// Number of tools for models.
    pub tools: usize,
    /// Number of tools only for pages of MCP Apps.
    #[serde(skip_serializing_if = "is_zero")]
    pub app_tools: usize,
    /// The validity of cached lists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<ListFreshness>,
    /// Problems of a usable server, for example an invalid tool.
    pub warnings: Vec<String>,
    /// Original names of [changed tools](crate::McpHost::changed_tools).
    pub changed_tools: Vec<String>,
    /// The id of its process.
    pub pid: Option<u32>,
    /// The last 20 lines of its standard error.
    pub stderr_tail: Vec<String>,
    /// The last 50 log messages through the protocol.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogMessage>,
    /// The transport, without secrets.
    pub transport: String,
    /// Whether the server is required.
    pub required: bool,
}

/// The validity of a list (2026-07-28, "Caching").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ListFreshness {
    /// The list: `tools`, `prompts`, `resources` or `resource_templates`.
    pub list: &'static str,
    /// The time to live in milliseconds.
    pub ttl_ms: u64,
    /// The remaining time in milliseconds.
    pub fresh_for_ms: u64,
}

impl ListFreshness {
    pub(crate) fn new(list: &'static str, freshness: Freshness) -> Self {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            list,
            ttl_ms: milliseconds(freshness.ttl),
            fresh_for_ms: milliseconds(freshness.remaining()),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The state of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServerState {
    /// The server is starting or restarting.
    Starting,
    /// The server accepts calls.
    Ready,
    /// The server accepts calls, but has a problem, for example a tool that does not answer.
    Degraded,
    /// The server needs the authorization of a person, or its circuit breaker is open.
    Blocked,
    /// The server did not start, or ended and did not restart.
    Failed,
    /// The server was closed with the host.
    Stopped,
}

impl ServerState {
    /// Returns whether the server accepts calls.
    pub fn takes_calls(self) -> bool {
        matches!(self, Self::Ready | Self::Degraded)
    }

    /// Returns the name in JSON, HTTP and
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

/// The name and version that a server reports. Untrusted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerIdentity {
    /// The name.
    pub name: String,
    /// The version.
    pub version: String,
}

//! The state of a server, for people.

use serde::Serialize;

use crate::server::logs::LogLine;

/// One server as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    /// Its name in the configuration.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// Why it is in this state, where there is something to say. What stands in `stderr_tail` is not
    /// said again.
    pub reason: Option<String>,
    /// The protocol version spoken with it, once it is known.
    pub protocol_version: Option<String>,
    /// What it says it is.
    pub server_info: Option<ServerIdentity>,
    /// What it says about how it is to be used; untrusted text.
    pub instructions: Option<String>,
    /// How many tools it offers to models now.
    pub tools: usize,
    /// How many tools it has for pages of MCP Apps, which are not for models.
    #[serde(skip_serializing_if = "is_zero")]
    pub app_tools: usize,
    /// How long what it listed is good for, where it says so. Until then it is not asked again, unless it
    /// tells of a change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<ListFreshness>,
    /// What is wrong though it works, such as a tool that had to be left out.
    pub warnings: Vec<String>,
    /// Tools of it, by their own names, whose definitions are not what they were when they were first
    /// seen; see [`McpHost::changed_tools`](crate::McpHost::changed_tools).
    pub changed_tools: Vec<String>,
    /// The id of its process, while there is one.
    pub pid: Option<u32>,
    /// The last lines, at most 20, that it wrote to its standard error.
    pub stderr_tail: Vec<String>,
    /// The last messages, at most 50, that it logged through the protocol.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogLine>,
    /// How it is reached, without secrets.
    pub transport: String,
    /// Whether it is required.
    pub required: bool,
}

/// How long a list is good for (2026-07-28, "Caching").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ListFreshness {
    /// Which list: `tools`, `prompts`, `resources` or `resource_templates`.
    pub list: &'static str,
    /// In all, in milliseconds, from when it came.
    pub ttl_ms: u64,
    /// From now on, in milliseconds.
    pub fresh_for_ms: u64,
    /// For whom.
    pub scope: CacheScope,
}

/// For whom an answer of a server may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheScope {
    /// For everybody: it is the same whoever asks.
    Public,
    /// For whom it was given to.
    Private,
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
    /// It is being started and asked for its tools, for the first time or again.
    Starting,
    /// It takes calls.
    Ready,
    /// It takes calls, but something is wrong, such as a tool that gives no answers and is not called
    /// for a while.
    Degraded,
    /// It is there and takes no calls until something happens: a person gives it the authorization that
    /// it asks for; or, where it answered nothing any more, a call that is let through now and then is
    /// answered.
    Blocked,
    /// It did not come up, or went away and did not come back.
    Failed,
    /// It was closed with the host.
    Stopped,
}

impl ServerState {
    /// Whether calls are made to it as they come.
    pub fn takes_calls(self) -> bool {
        matches!(self, Self::Ready | Self::Degraded)
    }

    /// The word used in JSON, HTTP and [`ToolHostChange::ServerState`](switchboard_domain::ToolHostChange).
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

/// What a server says it is; untrusted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerIdentity {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

//! The state of a server, for people.

use serde::Serialize;

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
    /// What is wrong though it works, such as a tool that had to be left out.
    pub warnings: Vec<String>,
    /// The id of its process, while there is one.
    pub pid: Option<u32>,
    /// The last lines, at most 20, that it wrote to its standard error.
    pub stderr_tail: Vec<String>,
    /// How it is reached, without secrets.
    pub transport: String,
    /// Whether it is required.
    pub required: bool,
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
    /// It did not come up, or went away and did not come back.
    Failed,
    /// It was closed with the host.
    Stopped,
}

impl ServerState {
    /// The word used in JSON, HTTP and [`ToolHostChange::ServerState`](switchboard_domain::ToolHostChange).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
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

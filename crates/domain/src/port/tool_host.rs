use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{SharedObject, ToolContent, ToolDefinition, ToolResult, message::check_result_depth};

/// A source of tools: MCP servers, functions of the program, or several of these together.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ToolHost: Send + Sync {
    /// Returns the current tools, and the servers whose tools are unavailable. An unavailable
    /// server does not affect the tools of other servers.
    async fn list_tools(&self) -> ToolCatalog;

    /// Runs a tool. If the tool reports a failure, returns `Ok` with [`ToolOutput::is_error`] set.
    /// Returns `Err` if the call has no valid result, for example after a time-out. Dropping the
    /// future cancels the call.
    async fn call_tool(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError>;

    /// Returns a stream of the future changes of servers and tools. The stream ends when the tool
    /// host ends.
    fn watch_changes(&self) -> ToolHostChanges;
}

/// A stream of the changes of a tool host.
pub type ToolHostChanges = Pin<Box<dyn Stream<Item = ToolHostChange> + Send>>;

/// The tools of a tool host at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolCatalog {
    /// The tools with unique names, in a stable order.
    pub tools: Vec<Arc<ToolDefinition>>,
    /// The servers whose tools are missing in `tools`, because they are unavailable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ServerProblem>,
}

/// An MCP server that is unavailable, so that the catalog does not list its tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerProblem {
    /// The server's name in the configuration.
    pub server: String,
    /// Description of the problem and its remedy, for the user.
    pub message: String,
}

/// A change of the servers or tools of a tool host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variant explains its field")]
pub enum ToolHostChange {
    /// The list of a server's tools may have changed.
    ToolsChanged { server: String },
    /// A tool's definition has changed since it was last seen. Earlier approvals do not apply to
    /// the new definition.
    ToolRedefined {
        /// The name of the server.
        server: String,
        /// The tool's name as in [`ToolCatalog::tools`].
        tool: String,
        /// A hash of the tool's earlier definition, to compare with `now`.
        before: String,
        /// A hash of the tool's current definition.
        now: String,
    },
    /// The list of a server's prompts may have changed.
    PromptsChanged { server: String },
    /// The list of a server's resources, or of their templates, may have changed.
    ResourcesChanged { server: String },
    /// A server started, stopped or failed.
    ServerState {
        /// The name of the server.
        server: String,
        /// The state of the server, such as `ready` or `failed`.
        state: String,
        /// The reason for the state, such as an error message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// A call of one tool, as the tool host receives it.
#[derive(Debug, Clone, Default)]
pub struct ToolCall {
    /// The tool's name as in [`ToolCatalog::tools`].
    pub name: String,
    /// The input of the tool.
    pub input: SharedObject,
    /// Maximum duration of the call. `None` means the time limit that the tool host applies by
    /// default.
    pub deadline: Option<Duration>,
    /// A key that is the same for all attempts of one call. A server can recognize a repeated call
    /// by this key.
    pub idempotency_key: Option<String>,
    /// Receiver of the progress and the retries of the call.
    pub progress: ProgressSink,
}

/// The output of one tool call, before it becomes a [`ToolResult`] of a conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The content for the model.
    pub content: Vec<ToolContent>,
    /// The output as structured JSON, if the tool returns any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Whether the tool reports a failure.
    #[serde(default)]
    pub is_error: bool,
}

impl ToolOutput {
    /// Returns an output of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ToolContent::text(text)],
            ..Self::default()
        }
    }

    /// Returns the output as the result of a tool use.
    pub fn into_result(
        self,
        tool_use_id: impl Into<String>,
        name: impl Into<String>,
    ) -> ToolResult {
        ToolResult {
            tool_use_id: tool_use_id.into(),
            name: name.into(),
            content: self.content.into(),
            structured: self.structured.map(Arc::new),
            is_error: self.is_error,
        }
    }
}

impl ToolOutput {
    /// Returns the output unchanged. If a JSON value in the output is nested more deeply than
    /// [`check_depth`](crate::check_depth) allows, returns an error message for the model instead.
    #[must_use]
    pub fn replace_too_deep_output(self) -> Self {
        match check_result_depth(&self.content, self.structured.as_ref()) {
            Ok(()) => self,
            Err(too_deep) => Self {
                is_error: true,
                ..Self::text(format!(
                    "The tool ran, but its result cannot be used: it is {too_deep}."
                ))
            },
        }
    }
}

impl From<&ToolResult> for ToolOutput {
    /// Converts a tool result of a conversation back to the output of the tool.
    fn from(result: &ToolResult) -> Self {
        Self {
            content: result.content.to_vec(),
            structured: result.structured.as_deref().cloned(),
            is_error: result.is_error,
        }
    }
}

/// A progress report of a running tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolProgress {
    /// Completed work in the tool's own unit. The number increases during the call.
    pub progress: f64,
    /// Total work in the unit of `progress`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// A description of the current step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A repetition of a failed call. The host repeats only calls that are safe to repeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRetry {
    /// Number of the next attempt: 2 for the first repetition.
    pub attempt: u32,
    /// The reason for the failure of the previous attempt.
    pub reason: String,
}

/// Receiver of the progress and the retries of a call. The default discards both.
#[derive(Clone, Default)]
pub struct ProgressSink {
    progress: Option<Arc<dyn Fn(ToolProgress) + Send + Sync>>,
    retries: Option<Arc<dyn Fn(ToolRetry) + Send + Sync>>,
}

impl ProgressSink {
    /// Returns a sink that calls `listener` for each progress report. `listener` must not block.
    pub fn new(listener: impl Fn(ToolProgress) + Send + Sync + 'static) -> Self {
        Self {
            progress: Some(Arc::new(listener)),
            retries: None,
        }
    }

    /// Returns a sink that also calls `listener` before a call is repeated. `listener` must not
    /// block.
    #[must_use]
    pub fn on_retry(mut self, listener: impl Fn(ToolRetry) + Send + Sync + 'static) -> Self {
        self.retries = Some(Arc::new(listener));
        self
    }

    /// Reports progress to the listener, if there is one.
    pub fn report_progress(&self, progress: ToolProgress) {
        if let Some(listener) = &self.progress {
            listener(progress);
        }
    }

    /// Reports the next repetition of the call to the retry listener, if there is one.
    pub fn report_retry(&self, retry: ToolRetry) {
        if let Some(listener) = &self.retries {
            listener(retry);
        }
    }

    /// Returns whether a listener receives progress. Otherwise a host requests no progress from its
    /// server.
    pub fn has_progress_listener(&self) -> bool {
        self.progress.is_some()
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressSink")
            .field("progress", &self.progress.is_some())
            .field("retries", &self.retries.is_some())
            .finish()
    }
}

/// The error of a tool call that returned no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the message explains the fields")]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolCallError {
    /// The tool host has no tool of this name. `available` lists the names of its tools.
    #[error("unknown tool `{name}`. Available: {}", available.join(", "))]
    UnknownTool {
        name: String,
        available: Vec<String>,
    },
    /// The server is unavailable. The call was not sent.
    #[error("server `{server}` is not available: {reason}")]
    Unavailable { server: String, reason: String },
    /// The time limit passed. It is unknown whether the tool ran.
    #[error("`{tool}` of server `{server}` did not respond within {after:?}")]
    Timeout {
        server: String,
        tool: String,
        after: Duration,
    },
    /// The server answered with a protocol error: the tool did not run.
    #[error("server `{server}` refused `{tool}`: {message} (code {code})")]
    Refused {
        server: String,
        tool: String,
        code: i64,
        message: String,
    },
    /// The connection broke during the call. It is unknown whether the tool ran.
    #[error("the call of `{tool}` on server `{server}` was interrupted: {reason}")]
    Broken {
        server: String,
        tool: String,
        reason: String,
    },
    /// The server's answer is invalid. It is unknown whether the tool ran.
    #[error("server `{server}` sent an answer to `{tool}` that {reason}")]
    InvalidAnswer {
        server: String,
        tool: String,
        /// The fault as a clause, such as `is not valid JSON: …`.
        reason: String,
    },
}

impl ToolCallError {
    /// Returns whether the tool certainly did not run, so that a retry has no second effect.
    pub fn did_not_run(&self) -> bool {
        match self {
            Self::UnknownTool { .. } | Self::Unavailable { .. } | Self::Refused { .. } => true,
            Self::Timeout { .. } | Self::Broken { .. } | Self::InvalidAnswer { .. } => false,
        }
    }
}

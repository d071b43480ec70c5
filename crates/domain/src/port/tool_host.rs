use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{SharedObject, ToolContent, ToolDefinition, ToolResult};

/// Where tools live: MCP servers, functions of the program, or several of these together.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ToolHost: Send + Sync {
    /// Returns the current tools, and the servers whose tools are unavailable. One dead server does not
    /// affect the tools of others.
    async fn tools(&self) -> ToolCatalog;

    /// Runs a tool. A failure that the tool reports is `Ok` with [`ToolOutput::is_error`]. `Err` means
    /// that the tool did not answer. Dropping the future cancels the call.
    async fn call(&self, call: ToolCall) -> Result<ToolOutput, ToolCallError>;

    /// Returns the changes from now on. The stream ends with the host.
    fn changes(&self) -> ToolHostChanges;
}

/// Changes of a host, as they happen.
pub type ToolHostChanges = Pin<Box<dyn Stream<Item = ToolHostChange> + Send>>;

/// The tools of a host at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolCatalog {
    /// The tools, their names unique, in a stable order.
    pub tools: Vec<Arc<ToolDefinition>>,
    /// The servers whose tools are missing.
    pub problems: Vec<ServerProblem>,
}

/// A server with missing tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerProblem {
    /// The server's name in the configuration.
    pub server: String,
    /// The problem and its remedy.
    pub message: String,
}

/// A change of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolHostChange {
    /// The list of tools may differ from before.
    ToolsChanged {
        /// The server.
        server: String,
    },
    /// A tool's definition has changed since it was last seen. Earlier approvals concern another
    /// definition.
    ToolRedefined {
        /// The server.
        server: String,
        /// The tool's name as in the catalog.
        tool: String,
        /// A fingerprint of the earlier definition.
        before: String,
        /// A fingerprint of the current definition.
        now: String,
    },
    /// The list of a server's prompts may differ from before.
    PromptsChanged {
        /// The server.
        server: String,
    },
    /// The list of a server's resources, or of their templates, may differ from before.
    ResourcesChanged {
        /// The server.
        server: String,
    },
    /// A server came up, went away or failed.
    ServerState {
        /// The server.
        server: String,
        /// Its state in one word, such as `ready` or `failed`.
        state: String,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// One call of one tool.
#[derive(Debug, Clone, Default)]
pub struct ToolCall {
    /// The tool's name as in the catalog.
    pub name: String,
    /// Its input.
    pub input: SharedObject,
    /// Maximum time of the call. `None` means the limit of the host.
    pub deadline: Option<Duration>,
    /// Equal for all attempts of one call, so that a server recognizes a repetition.
    pub idempotency_key: Option<String>,
    /// Receives progress.
    pub progress: ProgressSink,
}

/// The output of a tool.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The content for the model.
    pub content: Vec<ToolContent>,
    /// The output as data.
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

impl From<&ToolResult> for ToolOutput {
    /// A result in a conversation, as its tool gave it.
    fn from(result: &ToolResult) -> Self {
        Self {
            content: result.content.to_vec(),
            structured: result.structured.as_deref().cloned(),
            is_error: result.is_error,
        }
    }
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolProgress {
    /// Work done so far, in the tool's own unit; grows.
    pub progress: f64,
    /// Work in all, in the same unit, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A call did not get through and is made again by the host, which knows that this does no harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRetry {
    /// Which attempt is coming: 2 for the first repetition.
    pub attempt: u32,
    /// Why the one before failed.
    pub reason: String,
}

/// Where a call tells how it goes. The default tells nobody.
#[derive(Clone, Default)]
pub struct ProgressSink {
    progress: Option<Arc<dyn Fn(ToolProgress) + Send + Sync>>,
    retries: Option<Arc<dyn Fn(ToolRetry) + Send + Sync>>,
}

impl ProgressSink {
    /// A sink that calls `listener` for progress, which must not block.
    pub fn new(listener: impl Fn(ToolProgress) + Send + Sync + 'static) -> Self {
        Self {
            progress: Some(Arc::new(listener)),
            retries: None,
        }
    }

    /// Also calls `listener`, which must not block, before the host makes the call again.
    #[must_use]
    pub fn with_retries(mut self, listener: impl Fn(ToolRetry) + Send + Sync + 'static) -> Self {
        self.retries = Some(Arc::new(listener));
        self
    }

    /// Tells progress.
    pub fn report(&self, progress: ToolProgress) {
        if let Some(listener) = &self.progress {
            listener(progress);
        }
    }

    /// Tells that the call is about to be made again.
    pub fn retrying(&self, retry: ToolRetry) {
        if let Some(listener) = &self.retries {
            listener(retry);
        }
    }

    /// Whether anybody listens to progress; if not, a host need not ask its server for it.
    pub fn is_listening(&self) -> bool {
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

/// Why there is no answer from a tool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolCallError {
    /// No tool of this name is there now.
    #[error("there is no tool `{name}`; there are: {}", available.join(", "))]
    UnknownTool {
        /// The name asked for.
        name: String,
        /// The names there are.
        available: Vec<String>,
    },
    /// The server cannot be reached. The call did not leave.
    #[error("server `{server}` is not available: {reason}")]
    Unavailable {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// No answer in time. Whether the tool did its work is not known.
    #[error("`{tool}` of server `{server}` did not answer within {after:?}")]
    Timeout {
        /// The server.
        server: String,
        /// The tool's own name.
        tool: String,
        /// How long it was waited.
        after: Duration,
    },
    /// The server answered with a protocol error: the tool did not run.
    #[error("server `{server}` refused `{tool}`: {message} (code {code})")]
    Refused {
        /// The server.
        server: String,
        /// The tool's own name.
        tool: String,
        /// The JSON-RPC error code.
        code: i64,
        /// The server's message.
        message: String,
    },
    /// The connection broke during the call. Whether the tool did its work is not known.
    #[error("the connection to server `{server}` broke during `{tool}`: {reason}")]
    Broken {
        /// The server.
        server: String,
        /// The tool's own name.
        tool: String,
        /// What broke.
        reason: String,
    },
    /// The server answered, and the answer cannot be used. Whether the tool did its work is not known.
    #[error("server `{server}` sent an answer to `{tool}` that {reason}")]
    InvalidAnswer {
        /// The server.
        server: String,
        /// The tool's own name.
        tool: String,
        /// What is wrong with the answer: a clause such as `is not valid JSON: …`.
        reason: String,
    },
}

impl ToolCallError {
    /// Whether the tool certainly did not run, so that trying again repeats nothing.
    pub fn did_not_run(&self) -> bool {
        match self {
            Self::UnknownTool { .. } | Self::Unavailable { .. } | Self::Refused { .. } => true,
            Self::Timeout { .. } | Self::Broken { .. } | Self::InvalidAnswer { .. } => false,
        }
    }
}

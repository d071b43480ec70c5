//! How a run ended.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    FinishReason, ModelError, ModelErrorKind, ModelId, ToolContent, Usage, Warning,
};

use crate::{ToolFailure, policy::limits::LimitHit};

/// The result of a run: the object that `--output json` prints and `POST /chat` returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run.
    pub run_id: String,
    /// The session, if any.
    pub session_id: Option<String>,
    /// The model of the last call.
    pub model: ModelId,
    /// The answer as text. It may be incomplete if the run ended early.
    pub answer: String,
    /// The items of the answer.
    pub content: Vec<AnswerItem>,
    /// The outcome.
    pub outcome: Outcome,
    /// The last finish reason.
    pub finish_reason: Option<FinishReason>,
    /// Number of model calls.
    pub steps: u32,
    /// Tokens of all model calls.
    pub usage: Usage,
    /// The tool calls, in the order of the model.
    pub tool_calls: Vec<ToolCallRecord>,
    /// The warnings.
    pub warnings: Vec<Warning>,
    /// The error or the reached limit.
    pub error: Option<RunError>,
}

/// One item of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerItem {
    /// Text, in Markdown if the model wrote Markdown.
    Text {
        /// The text.
        text: String,
    },
    /// A self-contained artifact: a table, a diagram, a program, a page.
    #[serde(rename_all = "camelCase")]
    Artifact {
        /// The kind as named by the model: `table`, `mermaid`, `code`, `html`…
        artifact_type: String,
        /// Its title.
        title: String,
        /// Its content.
        content: String,
        /// The language of code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<String>,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The run has an answer.
    Completed,
    /// A limit ended the run. Partial results are kept.
    Limited,
    /// An error ended the run.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

/// The error of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// The kind of the error.
    pub kind: RunErrorKind,
    /// A message with the cause and the remedy.
    pub message: String,
    /// The provider that reported the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The kind of an error. A plain string in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunErrorKind {
    /// [`Limits::max_steps`](crate::policy::limits::Limits::max_steps) was reached.
    StepLimit,
    /// The run's limit of tool calls was reached.
    ToolCallLimit,
    /// A limit of tokens was reached.
    TokenLimit,
    /// The cost limit was reached, or the price of the model is unknown.
    CostLimit,
    /// The wall-time limit was reached.
    TimeLimit,
    /// The answer reached the model's output limit, or
    /// [`Limits::max_answer_bytes`](crate::policy::limits::Limits::max_answer_bytes), and is cut off.
    OutputLimit,
    /// The conversation no longer fits the model's context window.
    ContextOverflow,
    /// The model declined to answer.
    Refusal,
    /// The provider's filter withheld the answer.
    ContentFilter,
    /// The provider could not read the tool call that its model wrote.
    MalformedToolCall,
    /// The answer is empty.
    EmptyAnswer,
    /// The answer does not fit the requested schema. The report keeps its text.
    MalformedAnswer,
    /// The requested schema is not a usable JSON Schema.
    InvalidSchema,
    /// A required server did not start.
    ServerUnavailable,
    /// A defect of this program.
    Internal,
    /// The model call failed. The value is the name of the [`ModelErrorKind`].
    #[serde(untagged)]
    Model(String),
}

impl RunErrorKind {
    /// Returns the outcome of a run with this error.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::StepLimit
            | Self::ToolCallLimit
            | Self::TokenLimit
            | Self::CostLimit
            | Self::TimeLimit
            | Self::OutputLimit
            | Self::ContextOverflow => Outcome::Limited,
            _ => Outcome::Failed,
        }
    }
}

impl RunError {
    pub(crate) fn new(kind: RunErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            provider: None,
            status: None,
            request_id: None,
        }
    }
}

impl From<&LimitHit> for RunError {
    fn from(hit: &LimitHit) -> Self {
        let kind = match hit {
            LimitHit::Steps { .. } => RunErrorKind::StepLimit,
            LimitHit::ToolCalls { .. }
            | LimitHit::CallsPerResponse { .. }
            | LimitHit::CallsPerMinute { .. } => RunErrorKind::ToolCallLimit,
            LimitHit::Cost { .. } | LimitHit::PriceUnknown { .. } => RunErrorKind::CostLimit,
            LimitHit::WallTime { .. } => RunErrorKind::TimeLimit,
            LimitHit::AnswerBytes { .. } => RunErrorKind::OutputLimit,
            _ => RunErrorKind::TokenLimit,
        };
        Self::new(kind, hit.to_string())
    }
}

impl From<&ModelError> for RunError {
    fn from(error: &ModelError) -> Self {
        Self {
            kind: RunErrorKind::from(&error.kind),
            message: error.to_string(),
            provider: Some(error.provider().to_owned()),
            status: error.status(),
            request_id: error.request_id().map(ToOwned::to_owned),
        }
    }
}

impl From<&ModelErrorKind> for RunErrorKind {
    fn from(kind: &ModelErrorKind) -> Self {
        match kind {
            ModelErrorKind::ContextOverflow => Self::ContextOverflow,
            ModelErrorKind::ContentFilter => Self::ContentFilter,
            other => Self::Model(other.as_str().to_owned()),
        }
    }
}

/// A tool call of a run, for people and scripts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallRecord {
    /// The tool use it belongs to.
    pub id: String,
    /// The server that offers the tool; `None` for a tool of the program itself.
    pub server: Option<String>,
    /// The tool's own name.
    pub tool: String,
    /// The input of the call, or the text of the model if it is not an object.
    pub input: Arc<Value>,
    /// Whether the tool did not run or returned an error.
    pub is_error: bool,
    /// The reason for a missing result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ToolFailure>,
    /// Whether the result came from the cache.
    pub cached: bool,
    /// Number of attempts; 0 if the tool did not run.
    pub attempts: u32,
    /// Duration of all attempts in milliseconds.
    pub duration_ms: u64,
    /// The result.
    pub result: RecordedResult,
}

/// The result of a tool call as the model reads it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecordedResult {
    /// The content.
    pub content: Arc<[ToolContent]>,
    /// The structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Arc<Value>>,
}

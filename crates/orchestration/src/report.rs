//! How a run ended.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    FinishReason, ModelError, ModelErrorKind, ModelId, ToolContent, Usage, Warning,
};

use crate::ToolFailure;

/// The result of a run, which `--output json` prints and `POST /chat` returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Id of the run.
    pub run_id: String,
    /// Id of the session, if the run belongs to one.
    pub session_id: Option<String>,
    /// Id of the model of the last call.
    pub model: ModelId,
    /// The answer as text. It may be incomplete if the run ended early.
    pub answer: String,
    /// The answer as separate items: texts and artifacts.
    pub content: Vec<AnswerItem>,
    /// How the run ended.
    pub outcome: Outcome,
    /// Why the model stopped in the last call.
    pub finish_reason: Option<FinishReason>,
    /// Number of model calls in the run.
    pub steps: u32,
    /// Token usage of all model calls.
    pub usage: Usage,
    /// Records of the tool calls, in the order in which the model requested them.
    pub tool_calls: Vec<ToolCallRecord>,
    /// Warnings of the run, each reported once.
    pub warnings: Vec<Warning>,
    /// The error or the reached limit that ended the run; `None` if it completed.
    pub error: Option<RunError>,
}

/// One part of an answer: a text or an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerItem {
    /// A text, in Markdown if the model wrote Markdown.
    Text {
        /// The text that the model wrote.
        text: String,
    },
    /// A self-contained artifact: a table, a diagram, a program, a page.
    #[serde(rename_all = "camelCase")]
    Artifact {
        /// The artifact kind that the model chose: `table`, `mermaid`, `code`, `html`…
        artifact_type: String,
        /// Display title of the artifact.
        title: String,
        /// Source text of the artifact.
        content: String,
        /// Programming language of a `code` artifact.
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

/// An error that ended a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// Machine-readable kind of the error.
    pub kind: RunErrorKind,
    /// Message for people, with the cause and the remedy.
    pub message: String,
    /// The provider that reported the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// HTTP status of the provider's response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's id of the failed request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The kinds of errors that end a run. Serialized as a plain string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunErrorKind {
    /// [`Limits::max_steps`](crate::policy::limits::Limits::max_steps) was reached.
    StepLimit,
    /// The run's limit of tool calls was reached.
    ToolCallLimit,
    /// A limit on tokens was reached.
    TokenLimit,
    /// The cost limit was reached, or the price of the model is unknown.
    CostLimit,
    /// The wall-time limit was reached.
    TimeLimit,
    /// The answer is cut off, because it reached the model's output limit or
    /// [`Limits::max_answer_bytes`](crate::policy::limits::Limits::max_answer_bytes).
    OutputLimit,
    /// The conversation no longer fits the model's context window.
    ContextOverflow,
    /// The model declined to answer.
    Refusal,
    /// The provider's filter withheld the answer.
    ContentFilter,
    /// The provider could not parse the tool call that its model wrote.
    MalformedToolCall,
    /// The model returned an empty answer.
    EmptyAnswer,
    /// The answer does not match the requested schema. The report still contains its text.
    MalformedAnswer,
    /// The requested schema is not a usable JSON Schema.
    InvalidSchema,
    /// A required server did not start.
    ServerUnavailable,
    /// The program has a defect, which is not the user's fault.
    Internal,
    /// The model call failed. The value is the serialized [`ModelErrorKind`].
    #[serde(untagged)]
    Model(String),
}

impl RunErrorKind {
    /// Returns the outcome of a run with this error.
    pub fn to_outcome(&self) -> Outcome {
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

impl From<&ModelError> for RunError {
    fn from(error: &ModelError) -> Self {
        Self {
            kind: RunErrorKind::from(&error.kind),
            message: error.to_string(),
            provider: Some(error.provider_name().to_owned()),
            status: error.http_status(),
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

/// A record of one tool call in a run, for people and scripts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolCallRecord {
    /// Id of the tool use that requested the call.
    pub id: String,
    /// Name of the server that offers the tool; `None` for a tool of the program itself.
    pub server: Option<String>,
    /// Name of the tool on its server.
    pub tool: String,
    /// The input of the call, or the model's text if it is not a JSON object.
    pub input: Arc<Value>,
    /// Whether the tool did not run or returned an error.
    pub is_error: bool,
    /// Why the tool use has no proper result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ToolFailure>,
    /// Whether the result came from the cache.
    pub cached: bool,
    /// Number of attempts to execute the call; 0 if the tool did not run.
    pub attempts: u32,
    /// Duration of all attempts in milliseconds.
    pub duration_ms: u64,
    /// The result that the model reads.
    pub result: RecordedResult,
}

/// The result of a tool call as the model reads it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecordedResult {
    /// Texts and media of the tool result.
    pub content: Arc<[ToolContent]>,
    /// The tool result as structured JSON, if the tool returned any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Arc<Value>>,
}

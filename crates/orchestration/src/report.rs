//! How a run ended.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    FinishReason, ModelError, ModelErrorKind, ModelId, ToolContent, Usage, Warning,
};

use crate::{ToolFailure, policy::limits::LimitHit};

/// How a run ended and what it did: the object that `--output json` prints and `POST /chat` gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run.
    pub run_id: String,
    /// The session it belongs to, if any.
    pub session_id: Option<String>,
    /// The model that was asked.
    pub model: ModelId,
    /// The answer as text; what there is of it if the run ended early.
    pub answer: String,
    /// The answer in its items.
    pub content: Vec<AnswerItem>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why the model stopped last.
    pub finish_reason: Option<FinishReason>,
    /// Calls of the model.
    pub steps: u32,
    /// Tokens of all steps together.
    pub usage: Usage,
    /// The tool calls, in the order in which the model asked.
    pub tool_calls: Vec<ToolCallRecord>,
    /// What was not done as asked.
    pub warnings: Vec<Warning>,
    /// Why it failed or which limit it met.
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
    /// Something that stands for itself: a table, a diagram, a program, a page.
    #[serde(rename_all = "camelCase")]
    Artifact {
        /// What it is, in the model's words: `table`, `mermaid`, `code`, `html`…
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
    /// With an answer.
    Completed,
    /// At a limit; what there is was kept.
    Limited,
    /// With an error.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

/// Why a run has no proper answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// What sort of thing.
    pub kind: RunErrorKind,
    /// What happened and what to do.
    pub message: String,
    /// The provider that said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// What sort of thing ended a run. A plain string in JSON.
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
    /// The cost limit was reached, or nobody knows what the model costs.
    CostLimit,
    /// The run's time is up.
    TimeLimit,
    /// The answer reached the model's output limit, or
    /// [`Limits::max_answer_bytes`](crate::policy::limits::Limits::max_answer_bytes), and is cut off.
    OutputLimit,
    /// The conversation no longer fits the model's context window.
    ContextOverflow,
    /// The model declined.
    Refusal,
    /// The provider's filter withheld the answer.
    ContentFilter,
    /// The provider could not read the tool call that its model wrote.
    MalformedToolCall,
    /// The model said nothing.
    EmptyAnswer,
    /// The answer does not fit the schema that was asked for. The report keeps its text.
    MalformedAnswer,
    /// The schema that the answer must fit is not a usable JSON Schema.
    InvalidSchema,
    /// A server that is required did not come up.
    ServerUnavailable,
    /// A fault of this program.
    Internal,
    /// The model could not be asked or did not answer: the name of the [`ModelErrorKind`].
    #[serde(untagged)]
    Model(String),
}

impl RunErrorKind {
    /// The outcome of a run that ended so.
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

/// One tool call of a run, for people and scripts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallRecord {
    /// The tool use it belongs to.
    pub id: String,
    /// The server that offers the tool; `None` for a tool of the program itself.
    pub server: Option<String>,
    /// The tool's own name.
    pub tool: String,
    /// The input with which it ran, or what the model wrote if that was no object.
    pub input: Arc<Value>,
    /// The tool did not run or says that it failed.
    pub is_error: bool,
    /// Why there is no proper result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ToolFailure>,
    /// The result came from the cache.
    pub cached: bool,
    /// How often it was tried; 0 if it did not run.
    pub attempts: u32,
    /// How long it took, in milliseconds, all attempts together.
    pub duration_ms: u64,
    /// What it gave.
    pub result: RecordedResult,
}

/// What a tool gave.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecordedResult {
    /// What the model read.
    pub content: Arc<[ToolContent]>,
    /// The same as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Arc<Value>>,
}

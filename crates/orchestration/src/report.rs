//! The report of a finished run: its answer, outcome, usage and tool calls.

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
    /// Id of the model that the run called last.
    pub model: ModelId,
    /// The answer as text. It may be incomplete if the run ended early.
    pub answer: String,
    /// The answer as a list of texts and artifacts.
    pub content: Vec<AnswerItem>,
    /// Notes of the model on how it reached a formatted answer. They are not part of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// How the run ended.
    pub outcome: Outcome,
    /// Why the model stopped writing the last response.
    pub finish_reason: Option<FinishReason>,
    /// Number of model calls in the run. Calls that summarize older messages are not counted.
    pub steps: u32,
    /// Token usage of all model calls, including calls that summarize older messages.
    pub usage: Usage,
    /// Records of the tool calls, in the order in which the model requested them.
    pub tool_calls: Vec<ToolCallRecord>,
    /// Warnings that the run emitted, without duplicates.
    pub warnings: Vec<Warning>,
    /// The error or the reached limit that ended the run. `None` if the run completed or was
    /// cancelled.
    pub error: Option<RunError>,
}

/// One part of an answer: a text or an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerItem {
    /// A text of the answer, which may contain Markdown.
    Text {
        /// The text that the model wrote. Its former name in JSON is `text`.
        #[serde(alias = "text")]
        content: String,
    },
    /// A self-contained artifact of the answer: a table, a diagram, a program or a page.
    #[serde(rename_all = "camelCase")]
    Artifact {
        /// The artifact kind that the model chose: `table`, `mermaid`, `code`, `html`…
        artifact_type: String,
        /// Display title of the artifact.
        title: String,
        /// Source text of the artifact, such as the HTML of a page.
        content: String,
        /// Programming language of a `code` artifact, if the model named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<String>,
    },
}

impl AnswerItem {
    /// Returns the text of the item: Markdown, or the source of an artifact.
    pub fn content(&self) -> &str {
        match self {
            Self::Text { content } | Self::Artifact { content, .. } => content,
        }
    }
}

/// The outcome of a run: an answer, a reached limit, an error or a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The run completed and has an answer.
    Completed,
    /// A reached limit ended the run. The report contains the partial answer and tool calls.
    Limited,
    /// An error ended the run before it completed.
    Failed,
    /// The caller cancelled the run before it completed.
    Cancelled,
}

/// The error or the reached limit that ended a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// Machine-readable kind of the error, such as `step_limit`.
    pub kind: RunErrorKind,
    /// Message for people, with the cause and the remedy.
    pub message: String,
    /// Configured name of the provider that reported the error, if a provider did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// HTTP status of the provider's error response, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Id that the provider assigned to the failed request, for questions to the provider's
    /// support.
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
    /// The number of tool calls reached
    /// [`Limits::max_tool_calls`](crate::policy::limits::Limits::max_tool_calls), and the model
    /// requested another call.
    ToolCallLimit,
    /// A limit of input tokens, of output tokens, or of their sum was reached (see
    /// [`Limits`](crate::policy::limits::Limits)).
    TokenLimit,
    /// The cost limit was reached, or it cannot be checked because the price of a model is unknown.
    CostLimit,
    /// The run's limit of wall time was reached.
    TimeLimit,
    /// The answer is cut off, because it reached the model's output limit or
    /// [`Limits::max_answer_bytes`](crate::policy::limits::Limits::max_answer_bytes).
    OutputLimit,
    /// The conversation does not fit the context window of the model.
    ContextOverflow,
    /// The model refused to answer.
    Refusal,
    /// The provider's filter withheld the answer.
    ContentFilter,
    /// The provider could not parse a tool call that the model wrote.
    MalformedToolCall,
    /// The model returned an empty answer.
    EmptyAnswer,
    /// The answer does not match the requested schema. The report still contains the text of the
    /// answer.
    MalformedAnswer,
    /// The requested schema is not a usable JSON Schema.
    InvalidSchema,
    /// A tool server that the run requires did not start.
    ServerUnavailable,
    /// A defect of this program ended the run.
    Internal,
    /// The model call failed. The value is the serialized [`ModelErrorKind`], such as
    /// `rate_limited`.
    #[serde(untagged)]
    Model(String),
}

impl RunErrorKind {
    /// Returns [`Outcome::Limited`] if this error is a reached limit, and [`Outcome::Failed`]
    /// otherwise.
    pub fn to_run_outcome(&self) -> Outcome {
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
    /// Name of the server that offers the tool. `None` for a tool without a server, such as a Rust
    /// function, and for a tool that does not exist.
    pub server: Option<String>,
    /// Name of the tool on its server.
    pub tool: String,
    /// Input of the call, normally a JSON object. If the model wrote a text that is not a JSON
    /// object, the input is a JSON string with this text.
    pub input: Arc<Value>,
    /// Whether the result is an error, because the tool returned an error or the call has no
    /// output, for example after a denial or a time-out.
    pub is_error: bool,
    /// Why the tool failed or did not run, such as `denied`, `timeout` or `repeated`. `None` if the
    /// tool succeeded or the result came from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<ToolFailure>,
    /// Whether the result came from the result cache, so that the tool did not run.
    pub cached: bool,
    /// Number of attempts to execute the call. 0 if there was none, for example because the call
    /// was denied or its result was cached.
    pub attempts: u32,
    /// Duration of all attempts in milliseconds.
    pub duration_ms: u64,
    /// The content of the tool result, as the model reads it.
    pub result: RecordedResult,
}

/// The content of a tool result as the model reads it, possibly truncated.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecordedResult {
    /// Texts and media of the tool result, in order.
    pub content: Arc<[ToolContent]>,
    /// The tool result as structured JSON, if the tool returned structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Arc<Value>>,
}

//! Responses of models.

use serde::{Deserialize, Serialize};

use crate::{FinishReason, Message, ToolChoiceOutcome, Usage};

/// A complete answer, assembled from [`ModelEvent`](crate::ModelEvent)s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatResponse {
    /// The assistant's message, with all parts of the answer.
    pub message: Message,
    /// The reason why the model stopped.
    pub finish: FinishReason,
    /// The provider's own value for the finish reason, such as `end_turn`.
    #[serde(default)]
    pub finish_raw: Option<String>,
    /// The token counts of the request and its answer.
    #[serde(default)]
    pub usage: Usage,
    /// How the provider treated the request's tool choice.
    #[serde(default)]
    pub tool_choice: ToolChoiceOutcome,
    /// Deviations of the answer from the request, and unknown values from the provider.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// The provider's id of the response.
    #[serde(default)]
    pub response_id: Option<String>,
    /// The provider's name of the model that answered.
    #[serde(default)]
    pub model: Option<String>,
}

/// A deviation from the request that did not prevent the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The kind of deviation.
    pub kind: WarningKind,
    /// A description that names the affected option, part or tool.
    pub message: String,
}

impl Warning {
    /// Returns a warning of this kind with a message.
    pub fn new(kind: WarningKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// The kind of deviation that a [`Warning`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarningKind {
    /// A tool choice could not be enforced.
    ToolChoiceRelaxed,
    /// An option that the model or the provider's API does not support was omitted.
    OptionDropped,
    /// A message part that the API does not support, or that another provider issued, was omitted.
    PartDropped,
    /// A message part was sent in a simpler form, such as text.
    PartDowngraded,
    /// The provider sent a value that the adapter does not support.
    UnknownWireValue,
    /// An MCP server or a tool is unavailable, or a provider's own tool was omitted from the
    /// request.
    ToolUnavailable,
    /// The conversation exceeds its token limit and cannot be shortened further, or the summary of
    /// its omitted messages failed.
    HistoryTooLong,
    /// The state of the run could not be written to the run store.
    NotStored,
    /// An MCP server requested input from a person, but it was unclear which run the request
    /// belongs to. No person saw it.
    QuestionNotAsked,
}

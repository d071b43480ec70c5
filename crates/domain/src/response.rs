//! What a model answered.

use serde::{Deserialize, Serialize};

use crate::{FinishReason, Message, ToolChoiceOutcome, Usage};

/// A whole answer: what a stream of [`ModelEvent`](crate::ModelEvent)s adds up to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatResponse {
    /// The assistant's message.
    pub message: Message,
    /// Why it ended.
    pub finish: FinishReason,
    /// The provider's own word for that, if it said one.
    #[serde(default)]
    pub finish_raw: Option<String>,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
    /// What became of the request's tool choice.
    #[serde(default)]
    pub tool_choice: ToolChoiceOutcome,
    /// What could not be said on this wire, or came back odd.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// The provider's id of the answer.
    #[serde(default)]
    pub response_id: Option<String>,
    /// The model that answered, in the provider's words.
    #[serde(default)]
    pub model: Option<String>,
}

/// Something that was not done as asked, though the answer came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// What sort of thing.
    pub kind: WarningKind,
    /// What happened, naming the thing.
    pub message: String,
}

impl Warning {
    /// A warning.
    pub fn new(kind: WarningKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// What sort of thing was not done as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WarningKind {
    /// A tool choice could not be enforced.
    ToolChoiceRelaxed,
    /// An option that this model or wire does not take was left out.
    OptionDropped,
    /// A part that this wire cannot carry, or that another provider minted, was left out.
    PartDropped,
    /// A part was sent in a poorer form, such as text.
    PartDowngraded,
    /// The provider sent something that we do not know.
    UnknownWireValue,
    /// A server or tool is not available.
    ToolUnavailable,
    /// The conversation is longer than it may be, or what was left out of it has no summary.
    HistoryTooLong,
    /// A run could not be stored on its way.
    NotStored,
    /// What a server wanted to know was asked of nobody.
    QuestionNotAsked,
}

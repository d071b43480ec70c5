//! An answer as it streams.

use serde::{Deserialize, Serialize};

use crate::{FinishReason, Part, ProviderState, ToolChoiceOutcome, Usage, Warning};

/// One event of a streamed answer.
///
/// The grammar, which [`ResponseAccumulator`](crate::ResponseAccumulator) checks:
///
/// ```text
/// stream  = (begun Retrying)* begun Finished (Usage | Warning)*
/// begun   = Started? (part | Usage | Warning)*
/// part    = PartStarted{i} (delta{i} | PartState{i})* PartFinished{i}?
/// ```
///
/// [`Retrying`](ModelEvent::Retrying) voids everything before it. It comes only while nothing of the
/// answer was [shown](ModelEvent::shows_output).
///
/// Indices are unique within the answer and grow; parts may interleave. A text or reasoning part
/// may stay open at the end. A tool use that stays open was cut off, and its input is malformed
/// whatever it reads like. Adapters hold no assembled content: only the accumulator does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelEvent {
    /// The provider began to answer.
    Started {
        /// The provider's id of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_id: Option<String>,
        /// The model that answers, in the provider's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// What became of the request's tool choice.
        tool_choice: ToolChoiceOutcome,
    },
    /// A part begins.
    PartStarted {
        /// Its index.
        index: u32,
        /// What begins.
        part: PartStart,
    },
    /// More text of a text part.
    TextDelta {
        /// The part.
        index: u32,
        /// The text to append.
        text: String,
    },
    /// More text of a reasoning part.
    ReasoningDelta {
        /// The part.
        index: u32,
        /// The text to append.
        text: String,
    },
    /// More JSON text of a tool use's input.
    ToolInputDelta {
        /// The part.
        index: u32,
        /// The text to append.
        json: String,
    },
    /// Opaque state of a part that streams. A later one replaces an earlier one.
    PartState {
        /// The part.
        index: u32,
        /// The state.
        state: Box<ProviderState>,
    },
    /// A part is complete.
    PartFinished {
        /// The part.
        index: u32,
    },
    /// Tokens so far, cumulative. What a later report leaves out stays as it was.
    Usage {
        /// The counts.
        usage: Box<Usage>,
    },
    /// Something was not done as asked.
    Warning {
        /// What.
        warning: Warning,
    },
    /// An attempt failed before it showed anything, and the request is sent again after a pause. The
    /// event comes before the pause. All events before it are void.
    Retrying {
        /// The attempt that follows.
        retry: Box<ModelRetry>,
    },
    /// The answer is complete. A stream that ends without it was interrupted.
    Finished {
        /// Why it ended.
        reason: FinishReason,
        /// The provider's own word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
    },
}

impl ModelEvent {
    /// Returns whether a reader sees content of this event: text, reasoning, or a whole part other than
    /// a tool use. Input of a tool use does not count: nothing runs before the answer is complete.
    pub fn shows_output(&self) -> bool {
        match self {
            Self::TextDelta { text, .. } | Self::ReasoningDelta { text, .. } => !text.is_empty(),
            Self::PartStarted {
                part: PartStart::Whole { part },
                ..
            } => !matches!(**part, Part::ToolUse(_)),
            _ => false,
        }
    }
}

/// A repeated attempt of one model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRetry {
    /// Number of the attempt that follows. 2 for the first repetition.
    pub attempt: u32,
    /// Pause before that attempt, in milliseconds.
    pub delay_ms: u64,
    /// Why the attempt before it failed.
    pub reason: String,
}

/// What begins with [`ModelEvent::PartStarted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PartStart {
    /// Text, filled by [`ModelEvent::TextDelta`].
    Text,
    /// Reasoning, filled by [`ModelEvent::ReasoningDelta`].
    Reasoning,
    /// A tool use, its input filled by [`ModelEvent::ToolInputDelta`].
    ToolUse {
        /// Its id.
        id: String,
        /// The tool's name as declared.
        name: String,
    },
    /// A part that came whole and takes no deltas.
    Whole {
        /// The part.
        part: Box<Part>,
    },
}

//! An answer as it streams.

use serde::{Deserialize, Serialize};

use crate::{FinishReason, Part, ProviderState, ToolChoiceOutcome, Usage, Warning};

/// One event of a streamed answer.
///
/// The grammar, which [`ResponseAccumulator`](crate::ResponseAccumulator) checks:
///
/// ```text
/// stream  = Started? (part | Usage | Warning)* Finished (Usage | Warning)*
/// part    = PartStarted{i} (delta{i} | PartState{i})* PartFinished{i}?
/// ```
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
    /// The answer is complete. A stream that ends without it was interrupted.
    Finished {
        /// Why it ended.
        reason: FinishReason,
        /// The provider's own word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
    },
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

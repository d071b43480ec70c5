//! Events of a streamed answer.

use serde::{Deserialize, Serialize};

use crate::{FinishReason, Part, ProviderState, ToolChoiceOutcome, Usage, Warning};

/// One event of a streamed answer.
///
/// The grammar of the stream, which [`ResponseAccumulator`](crate::ResponseAccumulator) checks:
///
/// ```text
/// stream  = (begun Retrying)* begun Finished (Usage | Warning)*
/// begun   = Started? (part | Usage | Warning)*
/// part    = PartStarted{i} (delta{i} | PartState{i})* PartFinished{i}?
/// ```
///
/// [`Retrying`](ModelEvent::Retrying) invalidates all events before it. It is emitted only before
/// the first event that [shows output](ModelEvent::shows_output).
///
/// Indices are unique within the answer and increase. Parts may interleave. A text or reasoning
/// part may stay open at the end. The input of a tool use that stays open is malformed, because it
/// was cut off. Only the accumulator assembles content, not the adapters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variant explains its field")]
pub enum ModelEvent {
    /// The provider started the answer.
    Started {
        /// The provider's id of the response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        response_id: Option<String>,
        /// The provider's name of the model that answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// How the provider treated the request's tool choice.
        tool_choice: ToolChoiceOutcome,
    },
    /// A part of the answer starts.
    PartStarted { index: u32, part: PartStart },
    /// Text to append to a text part.
    TextDelta {
        /// The index of the text part.
        index: u32,
        /// The text to append to the text part.
        text: String,
    },
    /// Text to append to a reasoning part.
    ReasoningDelta {
        /// The index of the reasoning part.
        index: u32,
        /// The text to append to the reasoning.
        text: String,
    },
    /// JSON text to append to the input of a tool use.
    ToolInputDelta {
        /// The index of the tool use.
        index: u32,
        /// The JSON text to append to the tool input.
        json: String,
    },
    /// Provider state, such as a signature, of an unfinished part. It replaces earlier state.
    PartState {
        /// The index of the open part.
        index: u32,
        /// The new provider state of the part.
        state: Box<ProviderState>,
    },
    /// A part of the answer is complete.
    PartFinished {
        /// The index of the complete part.
        index: u32,
    },
    /// Token counts of the answer so far. A count that an event omits keeps its earlier value.
    Usage {
        /// The token counts of the answer so far.
        usage: Box<Usage>,
    },
    /// A deviation of the answer from the request, such as an option that was omitted.
    Warning { warning: Warning },
    /// An attempt failed before it showed output, and the request is repeated after a delay. The
    /// event is emitted before the delay. All events before it are invalid.
    Retrying {
        /// Number of the next attempt, the delay before it, and the reason why the previous attempt
        /// failed.
        retry: Box<ModelRetry>,
    },
    /// End of the answer. A stream that ends without this event was interrupted.
    Finished {
        /// The reason why the model stopped.
        reason: FinishReason,
        /// The provider's own value for the finish reason, such as `end_turn`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
    },
}

impl ModelEvent {
    /// Appends `next` to this event and returns `None` if both are deltas of the same kind and
    /// part. Otherwise returns `next` unchanged.
    pub fn append_delta(&mut self, mut next: Self) -> Option<Self> {
        if std::mem::discriminant(self) == std::mem::discriminant(&next)
            && let (Some((index, text)), Some((same, more))) = (self.delta_mut(), next.delta_mut())
            && index == same
        {
            text.push_str(more);
            return None;
        }
        Some(next)
    }

    /// Returns the part index and the text of a delta, or `None` for any other event.
    pub fn delta_mut(&mut self) -> Option<(u32, &mut String)> {
        match self {
            Self::TextDelta { index, text }
            | Self::ReasoningDelta { index, text }
            | Self::ToolInputDelta { index, json: text } => Some((*index, text)),
            _ => None,
        }
    }

    /// Returns whether the event has visible content: text, reasoning, or a whole part other than a
    /// tool use.
    ///
    /// Tool inputs do not count, because no tool runs before the answer is complete.
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

/// Information about the repetition of a failed model request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRetry {
    /// Number of the next attempt: 2 for the first repetition.
    pub attempt: u32,
    /// Delay before that attempt in milliseconds.
    pub delay_ms: u64,
    /// The reason for the failure of the previous attempt.
    pub reason: String,
}

/// The kind of a part that [`ModelEvent::PartStarted`] starts, and its first data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variant explains its field")]
pub enum PartStart {
    /// A text part, which [`ModelEvent::TextDelta`] extends.
    Text,
    /// A reasoning part, which [`ModelEvent::ReasoningDelta`] extends.
    Reasoning,
    /// A tool use, whose input [`ModelEvent::ToolInputDelta`] extends.
    ToolUse {
        /// The id of the tool use.
        id: String,
        /// The tool's name, as the request declared it.
        name: String,
    },
    /// A complete part without deltas.
    Whole { part: Box<Part> },
}

//! Reasons why a model stopped.

use serde::{Deserialize, Serialize};

/// The reason why a model stopped.
///
/// [`ChatResponse::finish_raw`](crate::ChatResponse::finish_raw) contains the provider's own value.
/// If that value contradicts the output, the reason is derived from the output: see
/// [`FinishReason::adjust_to_tool_uses`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model completed its answer or produced a stop sequence.
    Stop,
    /// The model requests tool calls.
    ToolUse,
    /// The answer reached the limit of output tokens. Its last tool input may be incomplete.
    Length,
    /// The provider's filter withheld the output.
    ContentFilter,
    /// The model declined to answer.
    Refusal,
    /// The provider paused a long turn; sending the conversation again continues it.
    Paused,
    /// The conversation no longer fits the model's context window.
    ContextOverflow,
    /// The provider could not parse the tool call that its model wrote.
    MalformedToolCall,
    /// The answer is incomplete: an error occurred after its start, or its stream ended early.
    Interrupted,
    /// The model stopped for another reason. The text is the provider's name for this reason.
    Other(String),
}

impl FinishReason {
    /// Corrects a finish reason that contradicts the output. `any` states whether the output
    /// contains a tool use.
    ///
    /// Gemini, Ollama and Chat Completions with a named tool report "stop" although there are tool
    /// uses. vLLM reports `tool_calls` with an empty list. Other reasons do not change: at the
    /// output limit, for example, the tool uses may be cut off.
    #[must_use]
    pub fn adjust_to_tool_uses(self, any: bool) -> Self {
        match (self, any) {
            (Self::Stop, true) => Self::ToolUse,
            (Self::ToolUse, false) => Self::Stop,
            (reason, _) => reason,
        }
    }

    /// Returns the name of the reason in configuration, JSON and HTTP. For [`FinishReason::Other`],
    /// returns the provider's own name for the reason.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolUse => "tool_use",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Refusal => "refusal",
            Self::Paused => "paused",
            Self::ContextOverflow => "context_overflow",
            Self::MalformedToolCall => "malformed_tool_call",
            Self::Interrupted => "interrupted",
            Self::Other(word) => word,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FinishReason::{Length, Refusal, Stop, ToolUse};

    #[test]
    fn the_output_decides_between_stop_and_tool_use_only() {
        assert_eq!(Stop.adjust_to_tool_uses(true), ToolUse);
        assert_eq!(ToolUse.adjust_to_tool_uses(false), Stop);
        assert_eq!(Length.adjust_to_tool_uses(true), Length);
        assert_eq!(Refusal.adjust_to_tool_uses(true), Refusal);
        assert_eq!(Stop.adjust_to_tool_uses(false), Stop);
    }
}

//! Why a model stopped.

use serde::{Deserialize, Serialize};

/// Why a model stopped.
///
/// An adapter gives the provider's own word beside it
/// ([`ChatResponse::finish_raw`](crate::ChatResponse::finish_raw)). Where a wire's own value is
/// wrong the reason is derived from the output: see [`FinishReason::given_tool_uses`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// It said all it wanted to, or met a stop sequence.
    Stop,
    /// It wants tools to be run.
    ToolUse,
    /// It reached the output limit. A tool input that was being written is cut off.
    Length,
    /// The provider's filter withheld the output.
    ContentFilter,
    /// The model declined.
    Refusal,
    /// The provider paused a long turn; sending the conversation again continues it.
    Paused,
    /// The conversation no longer fits the model's context window.
    ContextOverflow,
    /// The provider could not read the tool call that its model wrote.
    MalformedToolCall,
    /// The answer broke off: an error after it had begun, or an end without a closing event.
    Interrupted,
    /// Something else, in the provider's own word.
    Other(String),
}

impl FinishReason {
    /// Brings the reason in line with the output.
    ///
    /// Gemini, Ollama and Chat Completions with a named tool say "stop" though there are calls;
    /// vLLM says "`tool_calls`" with an empty list. Every other reason stays: an output limit beats
    /// the calls it may have cut off.
    #[must_use]
    pub fn given_tool_uses(self, any: bool) -> Self {
        match (self, any) {
            (Self::Stop, true) => Self::ToolUse,
            (Self::ToolUse, false) => Self::Stop,
            (reason, _) => reason,
        }
    }

    /// The name used in configuration, JSON and HTTP; a provider's own word for
    /// [`FinishReason::Other`].
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
        assert_eq!(Stop.given_tool_uses(true), ToolUse);
        assert_eq!(ToolUse.given_tool_uses(false), Stop);
        assert_eq!(Length.given_tool_uses(true), Length);
        assert_eq!(Refusal.given_tool_uses(true), Refusal);
        assert_eq!(Stop.given_tool_uses(false), Stop);
    }
}

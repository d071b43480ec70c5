//! What a model is asked.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{JsonObject, Message, ToolChoice, ToolDefinition};

/// One call of a model. History and tools are shared, so that making the next step's request
/// copies pointers and no text.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The tools declared.
    #[serde(default)]
    pub tools: Vec<Arc<ToolDefinition>>,
    /// Which of them may or must be used.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// Whether several tool uses in one answer are welcome; `None` leaves it to the provider.
    #[serde(default)]
    pub parallel_tool_use: Option<bool>,
    /// The form of the answer.
    #[serde(default)]
    pub response_format: ResponseFormat,
    /// How tokens are drawn.
    #[serde(default)]
    pub sampling: Sampling,
    /// Tokens to write at most; `None` takes the adapter's default for the model.
    #[serde(default)]
    pub max_output_tokens: Option<u32>,
    /// How much thinking is wanted; `None` leaves it to the provider.
    #[serde(default)]
    pub reasoning: Option<ReasoningEffort>,
    /// Whether the answer is wanted as it is written, or once it is complete.
    #[serde(default, skip_serializing_if = "Delivery::is_streamed")]
    pub delivery: Delivery,
    /// Further fields for the request body, under the names of the provider's own wire. They are
    /// merged in last and win.
    #[serde(default)]
    pub extra: JsonObject,
}

impl ChatRequest {
    /// A request with these messages and nothing else.
    pub fn new<M: Into<Arc<Message>>>(messages: impl IntoIterator<Item = M>) -> Self {
        Self {
            messages: messages.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Declares tools.
    #[must_use]
    pub fn with_tools<T: Into<Arc<ToolDefinition>>>(
        mut self,
        tools: impl IntoIterator<Item = T>,
    ) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Says which tools may or must be used.
    #[must_use]
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }
}

/// When an answer is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delivery {
    /// Piece by piece, as the model writes it.
    #[default]
    Streamed,
    /// At once, when it is complete: the provider is asked for one document, which is less work for both
    /// sides and all that some servers and models can do. Nothing is shown until then, and the time for
    /// the first byte is the time for the whole answer. A server that streams all the same is understood.
    Whole,
}

impl Delivery {
    /// Whether it is [`Delivery::Streamed`].
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
    fn is_streamed(&self) -> bool {
        *self == Self::Streamed
    }
}

/// The form of the answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResponseFormat {
    /// Free text.
    #[default]
    Text,
    /// JSON of this schema.
    JsonSchema {
        /// A name for the schema, `[A-Za-z0-9_-]{1,64}`.
        name: String,
        /// The schema.
        schema: Value,
    },
}

/// How tokens are drawn. `None` leaves a value to the provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sampling {
    /// 0.0 is the most predictable; the upper end depends on the provider (1.0 or 2.0).
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Nucleus sampling, 0.0 to 1.0.
    #[serde(default)]
    pub top_p: Option<f64>,
    /// Texts at which the answer ends.
    #[serde(default)]
    pub stop: Vec<String>,
    /// For answers that can be had again, where the provider supports it.
    #[serde(default)]
    pub seed: Option<u64>,
}

/// How much thinking is wanted before the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// None, where it can be switched off.
    None,
    /// A little.
    Low,
    /// A middling amount.
    Medium,
    /// Much.
    High,
}

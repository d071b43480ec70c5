//! Requests to models.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{JsonObject, Message, ToolChoice, ToolDefinition};

/// One request to a model. Messages and tools are reference-counted, so that the next request of a
/// conversation shares them instead of copying them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The messages of the conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The tools that the request declares to the model.
    #[serde(default)]
    pub tools: Vec<Arc<ToolDefinition>>,
    /// Whether the model may or must use tools, and which of them.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// Whether one answer may contain several tool uses. `None` means the provider's default.
    #[serde(default)]
    pub parallel_tool_use: Option<bool>,
    /// The format of the answer: free text, or JSON that conforms to a schema.
    #[serde(default)]
    pub response_format: ResponseFormat,
    /// The sampling parameters, such as the temperature.
    #[serde(default)]
    pub sampling: Sampling,
    /// Maximum number of output tokens. `None` means the adapter's default for the model.
    #[serde(default)]
    pub max_output_tokens: Option<u32>,
    /// The reasoning effort. `None` means the provider's default.
    #[serde(default)]
    pub reasoning: Option<ReasoningEffort>,
    /// Whether the answer is streamed or sent as one document.
    #[serde(default, skip_serializing_if = "Delivery::is_streamed")]
    pub delivery: Delivery,
    /// Additional fields of the request body, named as in the provider's API. Such a field replaces
    /// a field with the same name that the adapter sets, except `stream`. For some names, the
    /// adapter merges the two lists or objects instead.
    #[serde(default)]
    pub extra: JsonObject,
}

impl ChatRequest {
    /// Returns a request with these messages and default settings.
    pub fn new<M: Into<Arc<Message>>>(messages: impl IntoIterator<Item = M>) -> Self {
        Self {
            messages: messages.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Sets the tools that the request declares to the model.
    #[must_use]
    pub fn with_tools<T: Into<Arc<ToolDefinition>>>(
        mut self,
        tools: impl IntoIterator<Item = T>,
    ) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether the model may or must use tools, and which of them.
    #[must_use]
    pub fn with_tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }
}

/// The way in which the provider delivers an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Delivery {
    /// The answer arrives as a stream, while the model generates it.
    #[default]
    Streamed,
    /// The answer arrives as one document, when it is complete. Some servers and models cannot
    /// stream. The time limit for the first byte then applies to the whole answer. If the server
    /// streams the answer nevertheless, the stream is accepted.
    Whole,
}

impl Delivery {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
    fn is_streamed(&self) -> bool {
        *self == Self::Streamed
    }
}

/// The format of an answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResponseFormat {
    /// The answer is free text, without a schema.
    #[default]
    Text,
    /// The answer is JSON that conforms to a schema.
    JsonSchema {
        /// The name of the schema, `[A-Za-z0-9_-]{1,64}`.
        name: String,
        /// The JSON Schema of the answer.
        schema: Value,
    },
}

/// Sampling parameters of a model request. `None` means the provider's default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sampling {
    /// Sampling temperature: 0.0 (most predictable) to 1.0 or 2.0, depending on the provider.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Probability mass for nucleus sampling, 0.0 to 1.0.
    #[serde(default)]
    pub top_p: Option<f64>,
    /// Stop sequences: texts that end the answer when the model generates them.
    #[serde(default)]
    pub stop: Vec<String>,
    /// The seed for reproducible answers, where the provider supports one.
    #[serde(default)]
    pub seed: Option<u64>,
}

/// The amount of reasoning before the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// The model does not reason, if its reasoning can be disabled.
    None,
    /// The model uses few tokens for reasoning.
    Low,
    /// The model uses a medium number of tokens for reasoning.
    Medium,
    /// The model uses many tokens for reasoning.
    High,
}

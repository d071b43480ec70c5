//! Messages and their parts.

mod json_depth;
mod media;
mod provider_state;
mod shared_object;
mod tool_result;
mod tool_use;

pub(crate) use json_depth::check_result_depth;
pub use media::{Document, Media, MediaSource};
pub use provider_state::ProviderState;
pub use shared_object::SharedObject;
pub use tool_result::{ToolContent, ToolResult};
pub use tool_use::{JsonObject, ToolInput, ToolUse};

use serde::{Deserialize, Serialize};

/// The author of a message: the program, the user, the model or a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The program wrote the message as an instruction to the model. Provider adapters send it in
    /// the place that their API requires.
    System,
    /// The person who uses the program wrote the message.
    User,
    /// The model wrote the message.
    Assistant,
    /// The message contains only results of tool uses ([`Part::ToolResult`]).
    Tool,
}

/// A message of a conversation: its author and its parts, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The author of the message.
    pub role: Role,
    /// The parts of the message, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// Returns a message with these parts.
    pub fn new(role: Role, parts: impl IntoIterator<Item = Part>) -> Self {
        Self {
            role,
            parts: parts.into_iter().collect(),
        }
    }

    /// Returns a system message with one text part.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, [Part::text(text)])
    }

    /// Returns a user message with one text part.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, [Part::text(text)])
    }

    /// Returns an assistant message with one text part.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, [Part::text(text)])
    }

    /// Returns a [`Role::Tool`] message with these results. One message contains the results of all
    /// tool uses of an answer, in call order.
    pub fn from_tool_results(results: impl IntoIterator<Item = ToolResult>) -> Self {
        Self::new(Role::Tool, results.into_iter().map(Part::ToolResult))
    }

    /// Returns the text parts of the message, joined without a separator. Omits reasoning and all
    /// other parts.
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }

    /// Returns the tool uses of the message, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolUse(tool_use) => Some(tool_use),
            _ => None,
        })
    }

    /// Returns the tool results of the message, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}

/// One part of a message: text, media, reasoning, a tool use, a tool result or a provider-specific
/// block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Text that the author of the message wrote.
    Text(Text),
    /// An image for the model to see.
    Image(Media),
    /// A document for the model to read.
    Document(Document),
    /// Audio for the model to process.
    Audio(Media),
    /// The model's reasoning, as text or as opaque provider data.
    Reasoning(Reasoning),
    /// A call of a tool, requested by the model.
    ToolUse(ToolUse),
    /// The result of a tool use, for the model.
    ToolResult(ToolResult),
    /// A provider-specific block. The program stores, sends and displays it, but never executes it.
    Opaque(Opaque),
}

impl Part {
    /// Returns a text part without provider state.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text {
            text: text.into(),
            provider_state: None,
        })
    }

    /// Returns the kind of the part for messages to people: `text`, `an image`, `a tool use`. For
    /// an opaque part, returns the block type.
    pub fn describe_kind(&self) -> &str {
        match self {
            Self::Text(_) => "text",
            Self::Image(_) => "an image",
            Self::Document(_) => "a document",
            Self::Audio(_) => "audio",
            Self::Reasoning(_) => "reasoning",
            Self::ToolUse(_) => "a tool use",
            Self::ToolResult(_) => "a tool result",
            Self::Opaque(opaque) => &opaque.kind,
        }
    }

    /// Returns the text of a text part, or `None` for another part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// Returns the provider state of the part, if it has any.
    pub fn provider_state(&self) -> Option<&ProviderState> {
        match self {
            Self::Text(text) => text.provider_state.as_ref(),
            Self::Reasoning(reasoning) => reasoning.provider_state.as_ref(),
            Self::ToolUse(tool_use) => tool_use.provider_state.as_ref(),
            Self::Opaque(opaque) => Some(&opaque.provider_state),
            Self::Image(_) | Self::Document(_) | Self::Audio(_) | Self::ToolResult(_) => None,
        }
    }
}

/// Text with optional provider state (citations, a trailing signature).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Text {
    /// The text of the part.
    pub text: String,
    /// Opaque provider data that later requests must contain unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<ProviderState>,
}

/// The model's reasoning. Redacted or encrypted reasoning has state but no text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The reasoning itself or a summary of it.
    pub text: String,
    /// Signature or encrypted form of the reasoning, which later requests must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<ProviderState>,
}

/// A block that only its provider understands, such as the result of a provider-side tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opaque {
    /// The provider's name for the block type, such as `web_search_tool_result`.
    pub kind: String,
    /// Readable text of the block, for people and for other providers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The block in the provider's format.
    pub provider_state: ProviderState,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModelId, ToolInput};
    use serde_json::json;

    #[test]
    fn a_message_survives_storage() {
        let model = ModelId::new("anthropic", "claude");
        let message = Message::new(
            Role::Assistant,
            [
                Part::Reasoning(Reasoning {
                    text: String::new(),
                    provider_state: Some(ProviderState::new_for_model(
                        &model,
                        json!({"data": "x"}),
                    )),
                }),
                Part::text("I look it up."),
                Part::ToolUse(ToolUse::new(
                    "call_1",
                    "lookup",
                    ToolInput::parse_input("{\"z\":1,\"a\":2}"),
                )),
                Part::Image(Media::from_base64("image/png", "AA==")),
            ],
        );
        let stored = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&stored).unwrap(), message);
        // The order of a model's arguments is kept: prompt caches need the same bytes again.
        assert!(stored.contains(r#"{"z":1,"a":2}"#), "{stored}");
    }

    #[test]
    fn text_leaves_reasoning_out() {
        let message = Message::new(
            Role::Assistant,
            [
                Part::Reasoning(Reasoning {
                    text: "hm".into(),
                    provider_state: None,
                }),
                Part::text("a"),
                Part::text("b"),
            ],
        );
        assert_eq!(message.text(), "ab");
    }
}

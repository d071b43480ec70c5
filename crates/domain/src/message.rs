//! Messages and their parts.

use serde::{Deserialize, Serialize};

use crate::{Document, Media, ProviderState, ToolResult, ToolUse};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions from the host. Adapters put the leading ones where their wire wants them.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The results of tools. Holds [`Part::ToolResult`] only.
    Tool,
}

/// A role and what it said, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What was said.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of any parts.
    pub fn new(role: Role, parts: impl IntoIterator<Item = Part>) -> Self {
        Self {
            role,
            parts: parts.into_iter().collect(),
        }
    }

    /// Instructions as text.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, [Part::text(text)])
    }

    /// The person's text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, [Part::text(text)])
    }

    /// The model's text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, [Part::text(text)])
    }

    /// The results of one step's tool uses, together, in call order.
    pub fn tool_results(results: impl IntoIterator<Item = ToolResult>) -> Self {
        Self::new(Role::Tool, results.into_iter().map(Part::ToolResult))
    }

    /// All text parts joined; reasoning is not text.
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }

    /// The tool uses in it, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolUse(tool_use) => Some(tool_use),
            _ => None,
        })
    }

    /// The tool results in it, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Text.
    Text(Text),
    /// An image.
    Image(Media),
    /// A document.
    Document(Document),
    /// Audio.
    Audio(Media),
    /// What the model thought before it answered.
    Reasoning(Reasoning),
    /// The model asks for a tool.
    ToolUse(ToolUse),
    /// What the tool gave.
    ToolResult(ToolResult),
    /// A provider's own block, kept for it and shown, never executed by us.
    Opaque(Opaque),
}

impl Part {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text {
            text: text.into(),
            provider_state: None,
        })
    }

    /// What it is, to be named in a message: `text`, `an image`, `a tool use`. An opaque part is
    /// called by its own kind.
    pub fn in_words(&self) -> &str {
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

    /// The text if it is a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// The opaque state riding on it, if any.
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

/// Text, with whatever its provider wants back (citations, a trailing signature).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Text {
    /// The text.
    pub text: String,
    /// See [`ProviderState`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<ProviderState>,
}

/// The model's thinking. The text may be empty while the state is not: redacted or encrypted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// What may be read of it: the thinking itself or a summary.
    pub text: String,
    /// Signature or encrypted form. See [`ProviderState`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<ProviderState>,
}

/// A block that only its provider understands: a tool that ran on its side, a new kind of content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opaque {
    /// The provider's own word for it, such as `web_search_tool_result`.
    pub kind: String,
    /// What can be shown to a person or told to another provider, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The block itself.
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
                    provider_state: Some(ProviderState::minted_by(&model, json!({"data": "x"}))),
                }),
                Part::text("I look it up."),
                Part::ToolUse(ToolUse::new(
                    "call_1",
                    "lookup",
                    ToolInput::parse("{\"z\":1,\"a\":2}"),
                )),
                Part::Image(Media::base64("image/png", "AA==")),
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

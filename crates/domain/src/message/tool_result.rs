//! Results of tool uses.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Media;

/// The result of one [`ToolUse`](crate::ToolUse). Every tool use gets exactly one, also after a
/// denial, a time-out, an error or a cancellation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The [`ToolUse::id`](crate::ToolUse::id) of the tool use.
    pub tool_use_id: String,
    /// The tool's name. Some providers match results by name instead of by id.
    pub name: String,
    /// The content for the model. It is shared with events and records, because it can be large.
    pub content: Arc<[ToolContent]>,
    /// The structured result, if the tool returns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Arc<Value>>,
    /// Whether the tool failed. The content then describes the error.
    #[serde(default)]
    pub is_error: bool,
}

impl ToolResult {
    /// Returns a successful result with one text.
    pub fn text(
        tool_use_id: impl Into<String>,
        name: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            name: name.into(),
            content: Arc::new([ToolContent::text(text)]),
            structured: None,
            is_error: false,
        }
    }

    /// Returns a failed result with a message for the model.
    pub fn from_error_message(
        tool_use_id: impl Into<String>,
        name: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            is_error: true,
            ..Self::text(tool_use_id, name, message)
        }
    }

    /// Returns the result with additional content at its end.
    #[must_use]
    pub fn with_content(mut self, more: impl IntoIterator<Item = ToolContent>) -> Self {
        let before = self.content.iter().cloned();
        self.content = before.chain(more).collect();
        self
    }

    /// Returns the result as text, for providers that accept only text results.
    ///
    /// Joins text parts and embedded text with line breaks, and describes other parts in brackets.
    /// If there is no content, returns the structured result.
    pub fn as_text(&self) -> String {
        let text: Vec<String> = self.content.iter().map(ToolContent::as_text).collect();
        match (&self.structured, text.is_empty()) {
            (Some(structured), true) => structured.to_string(),
            _ => text.join("\n"),
        }
    }
}

/// One part of a tool result, as in MCP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolContent {
    /// A text that the tool returned.
    Text {
        /// The text for the model.
        text: String,
    },
    /// An image that the tool returned.
    Image(Media),
    /// Audio that the tool returned.
    Audio(Media),
    /// An embedded resource with its text or bytes.
    Resource {
        /// The URI of the resource.
        uri: String,
        /// The media type of the resource.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// The text of a text resource.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The bytes of a binary resource, as base64.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<String>,
    },
    /// A link to a resource, without its content.
    ResourceLink {
        /// The URI of the resource.
        uri: String,
        /// The name of the resource.
        name: String,
        /// The media type of the resource.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// Description of the resource.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// Content of a type that this program does not support.
    Unknown {
        /// The content, unchanged as the server sent it.
        value: Value,
    },
}

impl ToolContent {
    /// Returns text content.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns the text of text content or of a text resource. Returns unsupported content as JSON,
    /// and all other content as a short description such as `[image image/png]`.
    pub fn as_text(&self) -> String {
        match self {
            Self::Text { text }
            | Self::Resource {
                text: Some(text), ..
            } => text.clone(),
            Self::Image(media) => format!("[image {}]", media.media_type),
            Self::Audio(media) => format!("[audio {}]", media.media_type),
            Self::Resource { uri, .. } => format!("[resource {uri}]"),
            Self::ResourceLink { uri, name, .. } => format!("[resource {name}: {uri}]"),
            Self::Unknown { value } => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_content_has_a_text_form() {
        let mut result = ToolResult::text("1", "t", "one");
        result = result.with_content([ToolContent::Image(Media::from_base64("image/png", "AA=="))]);
        result = result.with_content([ToolContent::ResourceLink {
            uri: "file:///a".into(),
            name: "a".into(),
            media_type: None,
            description: None,
        }]);
        assert_eq!(
            result.as_text(),
            "one\n[image image/png]\n[resource a: file:///a]"
        );
    }

    #[test]
    fn structured_data_is_the_text_of_a_result_without_content() {
        let mut result = ToolResult::text("1", "t", "");
        result.content = Arc::default();
        result.structured = Some(json!({"sum": 3}).into());
        assert_eq!(result.as_text(), r#"{"sum":3}"#);
    }
}

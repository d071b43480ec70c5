//! What a tool gave back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Media;

/// The one answer to one [`ToolUse`](crate::ToolUse); also after a denial, a time-out, an error or
/// a cancellation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The [`ToolUse::id`](crate::ToolUse::id) it answers.
    pub tool_use_id: String,
    /// The tool's name: some wires pair by name.
    pub name: String,
    /// What the model reads. Shared: it is also in what is told and recorded, and may be long.
    pub content: Arc<[ToolContent]>,
    /// The same as data, where the tool gives data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Arc<Value>>,
    /// The tool failed, and the content says how.
    #[serde(default)]
    pub is_error: bool,
}

impl ToolResult {
    /// A text result.
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

    /// A failure that the model is told about.
    pub fn error(
        tool_use_id: impl Into<String>,
        name: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            is_error: true,
            ..Self::text(tool_use_id, name, message)
        }
    }

    /// The same with more pieces behind those that it has.
    #[must_use]
    pub fn with_content(mut self, more: impl IntoIterator<Item = ToolContent>) -> Self {
        let before = self.content.iter().cloned();
        self.content = before.chain(more).collect();
        self
    }

    /// The result as text, for wires that carry text only: text parts and embedded text joined by
    /// new lines, other parts named in brackets. With no content at all, the structured form.
    pub fn as_text(&self) -> String {
        let text: Vec<String> = self.content.iter().map(ToolContent::as_text).collect();
        match (&self.structured, text.is_empty()) {
            (Some(structured), true) => structured.to_string(),
            _ => text.join("\n"),
        }
    }
}

/// One piece of a tool result, as MCP has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(Media),
    /// Audio.
    Audio(Media),
    /// A resource given along, as text or as bytes.
    Resource {
        /// Its address.
        uri: String,
        /// Its media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// Its text, if it is text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Its bytes as base64, if it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<String>,
    },
    /// A resource that may be read later.
    ResourceLink {
        /// Its address.
        uri: String,
        /// Its name.
        name: String,
        /// Its media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
        /// What it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// Content of a kind we do not know, kept whole.
    Unknown {
        /// The content as it came.
        value: Value,
    },
}

impl ToolContent {
    /// Text content.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The piece as text: itself, or its name in brackets where it is not text.
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
    fn every_kind_of_content_has_words_for_a_text_only_wire() {
        let mut result = ToolResult::text("1", "t", "one");
        result = result.with_content([ToolContent::Image(Media::base64("image/png", "AA=="))]);
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
    fn structured_data_speaks_when_nothing_else_does() {
        let mut result = ToolResult::text("1", "t", "");
        result.content = Arc::default();
        result.structured = Some(json!({"sum": 3}).into());
        assert_eq!(result.as_text(), r#"{"sum":3}"#);
    }
}

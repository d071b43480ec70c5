//! The content of a message.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use switchboard_domain::{JsonObject, ToolInput};

/// A block of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block<'a> {
    /// Text. The API refuses blank text.
    Text {
        text: Cow<'a, str>,
        /// The citations, as the API sent them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        citations: Vec<Cow<'a, Value>>,
    },
    Image {
        /// The bytes or the address.
        source: Source<'a>,
    },
    Document {
        /// The bytes, the text or the address.
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    /// The model's thinking, unchanged.
    Thinking {
        /// The text, which may be empty.
        thinking: &'a str,
        /// The signature of the text.
        signature: &'a str,
    },
    /// The model's thinking, encrypted.
    RedactedThinking { data: &'a str },
    ToolUse {
        /// `^[a-zA-Z0-9_-]+$`.
        id: Cow<'a, str>,
        /// The name of the tool.
        name: Cow<'a, str>,
        /// The input, always an object.
        input: Input<'a>,
        /// Further fields as the API sent them, such as `caller`.
        #[serde(flatten)]
        further: Option<&'a JsonObject>,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        tool_use_id: Cow<'a, str>,
        /// Texts, images and documents.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Block<'a>>,
        /// Whether the call failed. The content of a failed call is text.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A block that only this API has, unchanged.
    #[serde(untagged)]
    Native(&'a Value),
}

impl<'a> Block<'a> {
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text {
            text: text.into(),
            citations: Vec::new(),
        }
    }

    /// Returns whether the block is thinking.
    pub(crate) fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }

    /// Returns whether `cache_control` is allowed on the block. It is not allowed on thinking and
    /// blank text. The rules for the API's own blocks differ, so they never get it.
    pub(crate) fn allows_cache_control(&self) -> bool {
        match self {
            Self::Text { text, .. } => !text.trim().is_empty(),
            Self::Image { .. }
            | Self::Document { .. }
            | Self::ToolUse { .. }
            | Self::ToolResult { .. } => true,
            Self::Thinking { .. } | Self::RedactedThinking { .. } | Self::Native(_) => false,
        }
    }
}

/// The source of an image or a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source<'a> {
    /// Bytes as base64.
    Base64 {
        /// `image/jpeg`, `image/png`, `image/gif` or `image/webp` for an image, `application/pdf`
        /// for a document.
        media_type: &'a str,
        /// The base64 text.
        data: &'a str,
    },
    /// An address, from which the API downloads.
    Url { url: &'a str },
    /// The text of a document.
    Text {
        /// `text/plain`.
        media_type: &'static str,
        data: Cow<'a, str>,
    },
}

/// A tool input: an object with its keys in their original order.
///
/// Malformed input is sent as `{"malformed_input": …}`, because the API accepts only objects and
/// the model must see its own text.
#[derive(Debug, Clone, PartialEq)]
pub struct Input<'a>(pub &'a ToolInput);

impl Serialize for Input<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ToolInput::Object(object) => object.serialize(serializer),
            ToolInput::Malformed { raw, .. } => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("malformed_input", raw)?;
                map.end()
            }
        }
    }
}

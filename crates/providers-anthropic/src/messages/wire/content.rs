//! What a message holds.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use switchboard_domain::{JsonObject, ToolInput};

/// One block of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block<'a> {
    /// Text. The API refuses a blank one.
    Text {
        /// The text.
        text: Cow<'a, str>,
        /// What it cites, as the API said it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        citations: Vec<Cow<'a, Value>>,
    },
    /// An image.
    Image {
        /// Its bytes or address.
        source: Source<'a>,
    },
    /// A document.
    Document {
        /// Its bytes, text or address.
        source: Source<'a>,
        /// Its title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    /// The model's own thinking, exactly as it came.
    Thinking {
        /// The text, which may be empty.
        thinking: &'a str,
        /// Proves that the model thought so.
        signature: &'a str,
    },
    /// The model's own thinking, encrypted.
    RedactedThinking {
        /// The encrypted form.
        data: &'a str,
    },
    /// A call of a tool.
    ToolUse {
        /// `^[a-zA-Z0-9_-]+$`.
        id: Cow<'a, str>,
        /// The tool's name.
        name: Cow<'a, str>,
        /// Always an object.
        input: Input<'a>,
        /// Further fields as the API said them, such as `caller`.
        #[serde(flatten)]
        more: Option<&'a JsonObject>,
    },
    /// The result of a call.
    ToolResult {
        /// The call.
        tool_use_id: Cow<'a, str>,
        /// What the tool gave: texts, images and documents.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Block<'a>>,
        /// It failed. The content is text only then.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A block of the API's own, exactly as it came.
    #[serde(untagged)]
    Native(&'a Value),
}

impl<'a> Block<'a> {
    /// A text.
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text {
            text: text.into(),
            citations: Vec::new(),
        }
    }

    /// Whether it is the model's thinking.
    pub(crate) fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }

    /// Whether the API takes a mark on it, for its prompt cache: on anything but thinking and blank
    /// texts. What it takes on the blocks of its own differs, so that they are left alone.
    pub(crate) fn takes_mark(&self) -> bool {
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

/// Where an image or a document is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source<'a> {
    /// Bytes.
    Base64 {
        /// For an image `image/jpeg`, `image/png`, `image/gif` or `image/webp`; for a document
        /// `application/pdf`.
        media_type: &'a str,
        /// The bytes as base64.
        data: &'a str,
    },
    /// An address that the API fetches.
    Url {
        /// The address.
        url: &'a str,
    },
    /// The text of a document.
    Text {
        /// `text/plain`.
        media_type: &'static str,
        /// The text.
        data: Cow<'a, str>,
    },
}

/// A tool input as this wire has it: an object, keys in the order given.
///
/// Input that was malformed goes back as `{"malformed_input": …}`: the API refuses anything but an
/// object, and the model should see what it wrote.
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

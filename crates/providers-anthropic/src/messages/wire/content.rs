//! Request types for the content of a message.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::ToolUseInput;

/// A content block of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block<'a> {
    /// A text block. The API refuses blank text.
    Text {
        text: Cow<'a, str>,
        /// Citations of the text, sent back as the API returned them, but without `file_id`, which
        /// the API refuses in requests.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        citations: Vec<Cow<'a, Value>>,
    },
    Image {
        /// The bytes or the URL of the image.
        source: BlockSource<'a>,
    },
    Document {
        /// The bytes, the text or the URL of the document.
        source: BlockSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    /// Thinking of an earlier answer, which must be sent back unchanged to the model that created
    /// it.
    Thinking {
        /// Text of the thinking. Empty if the API did not return the text.
        thinking: &'a str,
        /// Signature with which the API verifies the thinking.
        signature: &'a str,
    },
    /// Encrypted thinking of an earlier answer, which must be sent back unchanged to the model that
    /// created it.
    RedactedThinking { data: &'a str },
    ToolUse {
        /// Id of the tool use. It matches `^[a-zA-Z0-9_-]+$`.
        id: Cow<'a, str>,
        /// Name of the called tool.
        name: Cow<'a, str>,
        /// Input of the tool, always an object.
        input: ToolUseInput<'a>,
        /// Additional fields of the call, sent back as the API returned them, such as `caller`.
        #[serde(flatten)]
        further: Option<&'a JsonObject>,
    },
    /// The result of a tool call.
    ToolResult {
        /// Id of the tool use that this result belongs to.
        tool_use_id: Cow<'a, str>,
        /// Content of the result: texts, images and documents.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Block<'a>>,
        /// Whether the call failed. The content of a failed call is only text.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A block of an earlier answer without its own part type in the domain, such as a call of a
    /// server tool. It is sent back unchanged.
    #[serde(untagged)]
    Native(&'a Value),
}

impl<'a> Block<'a> {
    pub(crate) fn from_text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text {
            text: text.into(),
            citations: Vec::new(),
        }
    }

    /// Returns whether the block contains thinking.
    pub(crate) fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::RedactedThinking { .. })
    }

    /// Returns whether the block may have `cache_control`. Thinking and blank text may not. Blocks
    /// of server tools never get it, because their rules vary.
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
pub enum BlockSource<'a> {
    /// The source is bytes in the request, as base64 text.
    Base64 {
        /// Media type: `image/jpeg`, `image/png`, `image/gif` or `image/webp` for an image,
        /// `application/pdf` for a document.
        media_type: &'a str,
        /// The bytes of the file as base64 text.
        data: &'a str,
    },
    /// The source is a URL from which the API downloads the file.
    Url { url: &'a str },
    /// The source is the text of a plain-text document.
    Text {
        /// Media type of the text, always `text/plain`.
        media_type: &'static str,
        data: Cow<'a, str>,
    },
}

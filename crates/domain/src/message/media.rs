//! Images, audio and documents.
//!
//! Bytes stay base64 text, because MCP and all providers transfer them in this form. Decoding and
//! encoding them again would only cost time and memory.

use serde::{Deserialize, Serialize};

/// The content of an image, audio or document: its bytes or an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MediaSource {
    /// The bytes as standard base64 with padding (RFC 4648 section 4), without line breaks.
    Base64(String),
    /// The URL of the content, which the provider fetches.
    Url(String),
}

/// An image or a piece of audio.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// The media type, such as `image/png` or `audio/wav`.
    pub media_type: String,
    /// The bytes or the address of the content.
    pub source: MediaSource,
}

impl Media {
    /// Returns an image or a piece of audio with the base64 content `data`, which is not checked.
    pub fn from_base64(media_type: impl Into<String>, data: impl Into<String>) -> Self {
        Self {
            media_type: media_type.into(),
            source: MediaSource::Base64(data.into()),
        }
    }

    /// Returns an image or a piece of audio that the provider fetches from `url`.
    pub fn from_url(media_type: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            media_type: media_type.into(),
            source: MediaSource::Url(url.into()),
        }
    }
}

/// A document, such as a PDF or a plain text file, given to the model to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// The content of the document and its media type, such as `application/pdf`.
    #[serde(flatten)]
    pub media: Media,
    /// The title or file name of the document, which the model sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

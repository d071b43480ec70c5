//! Media as the APIs accept them: a URL or base64 data.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer};
use switchboard_domain::{Document, Media, MediaSource};

/// URL of an image, audio or document: an address, or the data as a `data:` URL.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "the names are those of a URL")]
pub enum MediaUrl<'a> {
    Address(&'a str),
    Data {
        media_type: &'a str,
        /// Bytes of the media as base64 text.
        base64: &'a str,
    },
}

impl<'a> MediaUrl<'a> {
    /// Returns the URL of media, or `None` if the kind of source is unknown.
    pub(crate) fn convert_media(media: &'a Media) -> Option<Self> {
        match &media.source {
            MediaSource::Base64(base64) => Some(Self::Data {
                media_type: &media.media_type,
                base64,
            }),
            MediaSource::Url(url) => Some(Self::Address(url)),
            _ => None,
        }
    }
}

impl fmt::Display for MediaUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(url) => f.write_str(url),
            Self::Data { media_type, base64 } => write!(f, "data:{media_type};base64,{base64}"),
        }
    }
}

impl Serialize for MediaUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns OpenAI's name of an audio format, or `None` if the API does not support `media_type`.
pub(crate) fn audio_format(media_type: &str) -> Option<&'static str> {
    match media_type.to_ascii_lowercase().as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

/// Returns the title of a document as its file name. Without a title, returns a default name for
/// the media type, such as `document.pdf`.
pub(crate) fn document_filename(document: &Document) -> Cow<'_, str> {
    match (&document.title, document.media.media_type.as_str()) {
        (Some(title), _) => Cow::Borrowed(title),
        (None, "application/pdf") => Cow::Borrowed("document.pdf"),
        (None, "text/plain") => Cow::Borrowed("document.txt"),
        (None, "text/markdown") => Cow::Borrowed("document.md"),
        (None, _) => Cow::Borrowed("document"),
    }
}

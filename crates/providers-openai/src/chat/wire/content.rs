//! What a message holds: text, and media in the person's messages.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer};
use switchboard_domain::{Media, MediaSource};

/// Text in pieces, written as one string.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(Vec<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// Appends `text`, after `separator` if there is text before it.
    pub(crate) fn push(&mut self, separator: &'static str, text: impl Into<Cow<'a, str>>) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        if !self.0.is_empty() && !separator.is_empty() {
            self.0.push(Cow::Borrowed(separator));
        }
        self.0.push(text);
    }

    /// Appends another text, after `separator` if there is text before it.
    pub(crate) fn append(&mut self, separator: &'static str, other: Self) {
        let mut separator = separator;
        for piece in other.0 {
            self.push(std::mem::take(&mut separator), piece);
        }
    }

    /// Whether nothing would be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first piece.
    pub(crate) fn first(&self) -> &str {
        self.0.first().map_or("", AsRef::as_ref)
    }

    /// Puts `text` before all else.
    pub(crate) fn prepend(&mut self, text: &'static str) {
        self.0.insert(0, Cow::Borrowed(text));
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Text<'a> {
    fn from(text: T) -> Self {
        Self(vec![text.into()])
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| f.write_str(piece))
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => serializer.serialize_str(one),
            _ => serializer.collect_str(self),
        }
    }
}

/// What the person said and showed.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum UserContent<'a> {
    /// Text alone, as a string: some servers know nothing else.
    Text(Text<'a>),
    /// Text and media.
    Parts(Vec<ContentPart<'a>>),
}

/// One part of a user message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart<'a> {
    /// Text.
    Text {
        /// The text.
        text: Cow<'a, str>,
    },
    /// An image.
    ImageUrl {
        /// Where it is.
        image_url: ImageUrl<'a>,
    },
    /// Audio.
    InputAudio {
        /// The sound.
        input_audio: InputAudio<'a>,
    },
    /// A document.
    File {
        /// The document.
        file: FileData<'a>,
    },
}

/// An image.
#[derive(Debug, Serialize)]
pub struct ImageUrl<'a> {
    /// An address or a `data:` URL.
    pub url: DataUrl<'a>,
}

/// Audio.
#[derive(Debug, Serialize)]
pub struct InputAudio<'a> {
    /// Base64.
    pub data: &'a str,
    /// `wav` or `mp3`.
    pub format: &'static str,
}

/// A document.
#[derive(Debug, Serialize)]
pub struct FileData<'a> {
    /// Its name; the API wants one beside `file_data`.
    pub filename: Cow<'a, str>,
    /// A `data:` URL.
    pub file_data: DataUrl<'a>,
}

/// An address, or bytes as a `data:` URL.
#[derive(Debug, Clone, Copy)]
pub enum DataUrl<'a> {
    /// An address.
    Address(&'a str),
    /// Bytes.
    Data {
        /// Their media type.
        media_type: &'a str,
        /// The bytes as base64.
        base64: &'a str,
    },
}

impl<'a> DataUrl<'a> {
    /// The address of a medium; `None` for a source that this adapter does not know.
    pub(crate) fn of(media: &'a Media) -> Option<Self> {
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

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(url) => f.write_str(url),
            Self::Data { media_type, base64 } => write!(f, "data:{media_type};base64,{base64}"),
        }
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

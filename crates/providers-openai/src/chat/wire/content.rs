//! What a message holds: text, and media in the person's messages.

use std::borrow::Cow;

use serde::Serialize;

use crate::{media::DataUrl, text::Text};

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

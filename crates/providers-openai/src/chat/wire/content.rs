//! The content of user messages.

use std::borrow::Cow;

use serde::Serialize;

use switchboard_providers_common::JoinedText;

use crate::wire::media::DataUrl;

/// The content of a user message.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum UserContent<'a> {
    /// Text as a string, which every server supports.
    Text(JoinedText<'a>),
    Parts(Vec<ContentPart<'a>>),
}

/// One part of a user message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
    InputAudio { input_audio: InputAudio<'a> },
    File { file: FileData<'a> },
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
    /// The base64 text.
    pub data: &'a str,
    /// `wav` or `mp3`.
    pub format: &'static str,
}

/// A document.
#[derive(Debug, Serialize)]
pub struct FileData<'a> {
    /// The file name, which the API requires with `file_data`.
    pub filename: Cow<'a, str>,
    /// A `data:` URL.
    pub file_data: DataUrl<'a>,
}

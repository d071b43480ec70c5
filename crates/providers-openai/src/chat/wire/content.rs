//! Request types for the content of user messages.

use std::borrow::Cow;

use serde::Serialize;

use switchboard_providers_common::JoinedText;

use crate::wire::media::MediaUrl;

/// Content of a user message.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum UserContent<'a> {
    /// The content is a plain string, which every server supports.
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

/// An image in a user message.
#[derive(Debug, Serialize)]
pub struct ImageUrl<'a> {
    /// Address of the image, or its data as a `data:` URL.
    pub url: MediaUrl<'a>,
}

/// Audio in a user message.
#[derive(Debug, Serialize)]
pub struct InputAudio<'a> {
    /// Audio data as base64 text.
    pub data: &'a str,
    /// Format of the audio: `wav` or `mp3`.
    pub format: &'static str,
}

/// A document in a user message.
#[derive(Debug, Serialize)]
pub struct FileData<'a> {
    /// File name of the document, which the API requires with `file_data`.
    pub filename: Cow<'a, str>,
    /// Document data as a `data:` URL.
    pub file_data: MediaUrl<'a>,
}

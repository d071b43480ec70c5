//! What a tool gave, in words.

use switchboard_domain::{ToolContent, ToolResult};

use crate::{media::DataUrl, text::Text};

/// A piece of a result.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    /// Words.
    Text(Text<'a>),
    /// What the wire takes as it is.
    Media(&'a ToolContent),
}

/// A result in words: its texts, each other piece named in brackets, the structured form where there
/// is no text. A failure says that it is one, since the wire has no mark for it.
pub(crate) fn result_text(result: &ToolResult) -> Text<'_> {
    // Almost every result is one text.
    if let [ToolContent::Text { text }] = &*result.content
        && !text.is_empty()
        && !result.is_error
    {
        return text.as_str().into();
    }
    let mut pieces = result_pieces(result, |_| false);
    match pieces.pop() {
        Some(Piece::Text(text)) => text,
        _ => Text::default(),
    }
}

/// A result in words, with what `is_media` in its place among them.
pub(crate) fn result_pieces(
    result: &ToolResult,
    is_media: impl Fn(&ToolContent) -> bool,
) -> Vec<Piece<'_>> {
    let is_text = |content: &ToolContent| match content {
        ToolContent::Text { text }
        | ToolContent::Resource {
            text: Some(text), ..
        } => !text.is_empty(),
        _ => false,
    };
    let (mut pieces, mut text) = (Vec::new(), Text::default());
    if let Some(structured) = &result.structured
        && !result.content.iter().any(is_text)
    {
        text.push("", structured.to_string());
    }
    for content in &*result.content {
        match content {
            media if is_media(media) => {
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(Piece::Media(media));
            }
            ToolContent::Text { text: piece }
            | ToolContent::Resource {
                text: Some(piece), ..
            } => text.push("\n", piece),
            other => text.push("\n", other.as_text()),
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    if result.is_error {
        say_error(&mut pieces);
    }
    pieces
}

fn say_error(pieces: &mut Vec<Piece<'_>>) {
    match pieces.first_mut() {
        Some(Piece::Text(text)) if says_error(text.first()) => {}
        Some(Piece::Text(text)) => text.prepend("Error: "),
        Some(Piece::Media(_)) => pieces.insert(0, Piece::Text("Error:".into())),
        None => {
            let message = "Error: the tool failed without saying why";
            pieces.push(Piece::Text(message.into()));
        }
    }
}

/// Whether a text begins with the word "error".
fn says_error(text: &str) -> bool {
    let text = text.trim_start().as_bytes();
    let (word, rest) = text.split_at(text.len().min(5));
    word.eq_ignore_ascii_case(b"error")
        && rest
            .first()
            .is_none_or(|next| *next == b':' || next.is_ascii_whitespace())
}

/// The image in a piece of a result: one that is meant as such, or a resource of a type that the API
/// takes for one.
pub(crate) fn as_image(content: &ToolContent) -> Option<DataUrl<'_>> {
    match content {
        ToolContent::Image(media) => DataUrl::of(media),
        ToolContent::Resource {
            media_type: Some(media_type),
            text: None,
            blob: Some(base64),
            ..
        } if is_image(media_type) => Some(DataUrl::Data { media_type, base64 }),
        _ => None,
    }
}

/// Whether a piece holds more than the words that stand for it where it cannot be sent.
pub(crate) fn is_more_than_words(content: &ToolContent) -> bool {
    match content {
        ToolContent::Image(_) | ToolContent::Audio(_) => true,
        ToolContent::Resource { text, blob, .. } => text.is_none() && blob.is_some(),
        _ => false,
    }
}

fn is_image(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    ["image/png", "image/jpeg", "image/gif", "image/webp"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence))
}

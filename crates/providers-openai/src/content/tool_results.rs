//! The text and media of tool results.

use switchboard_domain::{ToolContent, ToolResult};
use switchboard_providers_common::JoinedText;

use crate::wire::media::DataUrl;

/// A piece of a tool result.
#[derive(Debug)]
pub(crate) enum ResultPiece<'a> {
    Text(JoinedText<'a>),
    /// Media that the wire supports.
    Media(&'a ToolContent),
}

/// Returns a tool result as text: its texts, and the names of its media in brackets. A result
/// without text is its structured content. A failed result starts with "Error", because the wire
/// has no field for it.
pub(crate) fn result_text(result: &ToolResult) -> JoinedText<'_> {
    match result_pieces(result, |_| false).pop() {
        Some(ResultPiece::Text(text)) => text,
        _ => JoinedText::default(),
    }
}

/// Returns a tool result as text, with supported media in their places.
pub(crate) fn result_pieces(
    result: &ToolResult,
    is_supported: impl Fn(&ToolContent) -> bool,
) -> Vec<ResultPiece<'_>> {
    let is_text = |content: &ToolContent| match content {
        ToolContent::Text { text }
        | ToolContent::Resource {
            text: Some(text), ..
        } => !text.is_empty(),
        _ => false,
    };
    let (mut pieces, mut text) = (Vec::new(), JoinedText::default());
    if let Some(structured) = &result.structured
        && !result.content.iter().any(is_text)
    {
        text.push("", structured.to_string());
    }
    for content in &*result.content {
        match content {
            media if is_supported(media) => {
                if !text.is_empty() {
                    pieces.push(ResultPiece::Text(std::mem::take(&mut text)));
                }
                pieces.push(ResultPiece::Media(media));
            }
            ToolContent::Text { text: piece }
            | ToolContent::Resource {
                text: Some(piece), ..
            } => text.push("\n", piece),
            other => text.push("\n", other.as_text()),
        }
    }
    if !text.is_empty() {
        pieces.push(ResultPiece::Text(text));
    }
    if result.is_error {
        mark_error(&mut pieces);
    }
    pieces
}

fn mark_error(pieces: &mut Vec<ResultPiece<'_>>) {
    match pieces.first_mut() {
        Some(ResultPiece::Text(text)) if starts_with_error(text.as_str()) => {}
        Some(ResultPiece::Text(text)) => text.prepend("Error: "),
        Some(ResultPiece::Media(_)) => pieces.insert(0, ResultPiece::Text("Error:".into())),
        None => {
            let message = "Error: the tool failed without saying why";
            pieces.push(ResultPiece::Text(message.into()));
        }
    }
}

/// Returns whether a text starts with the word "error".
fn starts_with_error(text: &str) -> bool {
    let text = text.trim_start().as_bytes();
    let (word, rest) = text.split_at(text.len().min(5));
    word.eq_ignore_ascii_case(b"error")
        && rest
            .first()
            .is_none_or(|next| *next == b':' || next.is_ascii_whitespace())
}

/// Returns an image of a tool result: image content, or a resource of a supported image type.
pub(crate) fn as_image(content: &ToolContent) -> Option<DataUrl<'_>> {
    match content {
        ToolContent::Image(media) => DataUrl::of(media),
        ToolContent::Resource {
            media_type: Some(media_type),
            text: None,
            blob: Some(base64),
            ..
        } if is_image_type(media_type) => Some(DataUrl::Data { media_type, base64 }),
        _ => None,
    }
}

/// Returns whether content is more than its text.
pub(crate) fn is_media(content: &ToolContent) -> bool {
    match content {
        ToolContent::Image(_) | ToolContent::Audio(_) => true,
        ToolContent::Resource { text, blob, .. } => text.is_none() && blob.is_some(),
        _ => false,
    }
}

fn is_image_type(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    ["image/png", "image/jpeg", "image/gif", "image/webp"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence))
}

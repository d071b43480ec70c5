//! Converts the content of tool results to text and media.

use switchboard_domain::{ToolContent, ToolResult};
use switchboard_providers_common::{
    JoinedText,
    media::media_type_essence,
    result_text::{mark_failed_result, push_result_content, structured_content_text},
};

use crate::wire::media::MediaUrl;

/// A piece of a tool result: text or media.
#[derive(Debug)]
pub(crate) enum ResultPiece<'a> {
    Text(JoinedText<'a>),
    /// Media that the API supports in tool results.
    Media(&'a ToolContent),
}

/// Returns a tool result as text. Media become descriptions, such as `[image image/png]`. If the
/// content has no text, the structured content is used. The text of a failed result starts with the
/// word "Error", because the API has no field for a failure.
pub(crate) fn tool_result_text(result: &ToolResult) -> JoinedText<'_> {
    match tool_result_pieces(result, |_| false).pop() {
        Some(ResultPiece::Text(text)) => text,
        _ => JoinedText::default(),
    }
}

/// Returns the texts and the media of a tool result, in their original order. Media for which
/// `is_supported` returns `false` become text.
pub(crate) fn tool_result_pieces(
    result: &ToolResult,
    is_supported: impl Fn(&ToolContent) -> bool,
) -> Vec<ResultPiece<'_>> {
    let (mut pieces, mut text) = (Vec::new(), structured_content_text(result));
    for content in &*result.content {
        match content {
            media if is_supported(media) => {
                if !text.is_empty() {
                    pieces.push(ResultPiece::Text(std::mem::take(&mut text)));
                }
                pieces.push(ResultPiece::Media(media));
            }
            other => push_result_content(&mut text, other),
        }
    }
    if !text.is_empty() {
        pieces.push(ResultPiece::Text(text));
    }
    if result.is_error {
        match pieces.first_mut() {
            Some(ResultPiece::Text(text)) => mark_failed_result(text),
            Some(ResultPiece::Media(_)) => pieces.insert(0, ResultPiece::Text("Error:".into())),
            None => {
                let mut text = JoinedText::default();
                mark_failed_result(&mut text);
                pieces.push(ResultPiece::Text(text));
            }
        }
    }
    pieces
}

/// Returns the image in one piece of content of a tool result: image content, or binary data of a
/// supported image type, such as `image/png`. Returns `None` for other content.
pub(crate) fn as_image(content: &ToolContent) -> Option<MediaUrl<'_>> {
    match content {
        ToolContent::Image(media) => MediaUrl::convert_media(media),
        ToolContent::Resource {
            media_type: Some(media_type),
            text: None,
            blob: Some(base64),
            ..
        } if is_image_type(media_type) => Some(MediaUrl::Data { media_type, base64 }),
        _ => None,
    }
}

/// Returns the text before the images of a tool result. `tool` is the tool's name, `call` the id.
pub(crate) fn result_images_heading(tool: &str, call: &str) -> String {
    format!("Image(s) from the result of tool `{tool}` (call {call}):")
}

fn is_image_type(media_type: &str) -> bool {
    let essence = media_type_essence(media_type);
    ["image/png", "image/jpeg", "image/gif", "image/webp"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(essence))
}

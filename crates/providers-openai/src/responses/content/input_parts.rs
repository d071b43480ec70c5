//! Builds the content parts of the input items of a Responses request.

use std::borrow::Cow;

use serde_json::{Value, json};
use switchboard_domain::{JsonObject, Text as TextPart, ToolContent};

use switchboard_providers_common::JoinedText;

use crate::{
    content::tool_results::{ResultPiece, as_image},
    responses::{
        state::ItemState,
        wire::{Content, InputPart, Item, MediaUrl, OutputContent, TypedItem},
    },
};

/// Returns the stored reasoning item, with the fields `type` and `summary` added if they are
/// missing. `text` is the reasoning text, which becomes the added summary.
pub(crate) fn to_reasoning_item<'a>(item: &'a JsonObject, text: &str) -> Cow<'a, JsonObject> {
    if item.contains_key("type") && item.contains_key("summary") {
        return Cow::Borrowed(item);
    }
    let mut complete = item.clone();
    complete.insert("type".to_owned(), json!("reasoning"));
    if !complete.contains_key("summary") {
        let summary = match text {
            "" => json!([]),
            text => json!([{"type": "summary_text", "text": text}]),
        };
        complete.insert("summary".to_owned(), summary);
    }
    Cow::Owned(complete)
}

/// Returns the text of a message item, so that the caller can append to it, and the item's phase,
/// such as `commentary`. Returns `None` for an item with an id or without text at its end.
pub(crate) fn appendable_text<'i, 'a>(
    item: &'i mut Item<'a>,
) -> Option<(&'i mut JoinedText<'a>, Option<&'a str>)> {
    match item {
        Item::Message {
            content: Content::Text(text),
            phase,
            ..
        } => Some((text, *phase)),
        Item::Output(TypedItem::Message {
            id: None,
            content,
            phase,
            ..
        }) => match content.last_mut() {
            Some(OutputContent::OutputText { text, .. }) => Some((text, *phase)),
            _ => None,
        },
        _ => None,
    }
}

/// Builds the content of an assistant message from a text part and its provider state: a refusal,
/// or text with its annotations.
pub(crate) fn output_content<'a>(part: &'a TextPart, state: &ItemState<'a>) -> OutputContent<'a> {
    if state.is_refusal() {
        return OutputContent::Refusal {
            refusal: &part.text,
        };
    }
    let annotations = state.content.and_then(|it| it.get("annotations"));
    let annotations = annotations.and_then(Value::as_array);
    OutputContent::OutputText {
        text: part.text.as_str().into(),
        annotations: annotations.map(Vec::as_slice).unwrap_or_default(),
    }
}

/// Joins parts to one string if all are text, because some servers support only strings.
pub(crate) fn join_input_parts<'a>(parts: Vec<InputPart<'a>>, separator: &str) -> Content<'a> {
    let is_text = |part: &InputPart<'_>| matches!(part, InputPart::InputText { .. });
    if !parts.iter().all(is_text) {
        return Content::Parts(parts);
    }
    let mut joined = JoinedText::default();
    for part in parts {
        if let InputPart::InputText { text } = part {
            joined.append(separator, text);
        }
    }
    Content::Text(joined)
}

/// Converts a piece of a tool result to an input part. Returns `None` for media that are neither an
/// image nor a PDF document.
pub(crate) fn to_input_part(piece: ResultPiece<'_>) -> Option<InputPart<'_>> {
    match piece {
        ResultPiece::Text(text) => Some(InputPart::InputText { text }),
        ResultPiece::Media(content) => {
            if let Some(image) = as_image(content) {
                return Some(image_part(image));
            }
            let (uri, data) = as_pdf(content)?;
            let name = uri.rsplit('/').find(|name| !name.is_empty());
            Some(file_part(name.unwrap_or("document.pdf").into(), data))
        }
    }
}

/// Returns the URI and the data of a PDF document in a tool result. Returns `None` for other
/// content.
pub(crate) fn as_pdf(content: &ToolContent) -> Option<(&str, MediaUrl<'_>)> {
    match content {
        ToolContent::Resource {
            uri,
            media_type: Some(media_type),
            text: None,
            blob: Some(base64),
        } if media_type == "application/pdf" => Some((uri, MediaUrl::Data { media_type, base64 })),
        _ => None,
    }
}

pub(crate) fn text_part<'a>(text: impl Into<JoinedText<'a>>) -> InputPart<'a> {
    InputPart::InputText { text: text.into() }
}

pub(crate) fn image_part(image_url: MediaUrl<'_>) -> InputPart<'_> {
    InputPart::InputImage {
        detail: "auto",
        image_url,
    }
}

pub(crate) fn file_part<'a>(filename: Cow<'a, str>, data: MediaUrl<'a>) -> InputPart<'a> {
    InputPart::InputFile {
        filename: Some(filename),
        file_data: Some(data),
        file_url: None,
    }
}

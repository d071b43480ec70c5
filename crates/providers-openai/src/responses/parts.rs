//! The pieces of items, domain → wire.

use std::borrow::Cow;

use serde_json::{Value, json};
use switchboard_domain::{JsonObject, Text as TextPart, ToolContent};

use super::{
    state::Own,
    wire::{Content, DataUrl, InputPart, Item, Output, OutputContent, Text},
};
use crate::results::{Piece, as_image};

/// The item as it came. One that was stored without its type or summary gets them.
pub(crate) fn reasoning_item<'a>(item: &'a JsonObject, text: &str) -> Cow<'a, JsonObject> {
    if item.contains_key("type") && item.contains_key("summary") {
        return Cow::Borrowed(item);
    }
    let mut own = item.clone();
    own.insert("type".to_owned(), json!("reasoning"));
    if !own.contains_key("summary") {
        let summary = match text {
            "" => json!([]),
            text => json!([{"type": "summary_text", "text": text}]),
        };
        own.insert("summary".to_owned(), summary);
    }
    Cow::Owned(own)
}

/// The text and the phase of a message without an id, to be gone on with.
pub(crate) fn open_text<'i, 'a>(
    item: &'i mut Item<'a>,
) -> Option<(&'i mut Text<'a>, Option<&'a str>)> {
    match item {
        Item::Message {
            content: Content::Text(text),
            phase,
            ..
        } => Some((text, *phase)),
        Item::Output(Output::Message {
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

pub(crate) fn output_content<'a>(part: &'a TextPart, own: &Own<'a>) -> OutputContent<'a> {
    if own.is_refusal() {
        return OutputContent::Refusal {
            refusal: &part.text,
        };
    }
    let annotations = own.content.and_then(|it| it.get("annotations"));
    let annotations = annotations.and_then(Value::as_array);
    OutputContent::OutputText {
        text: part.text.as_str().into(),
        annotations: annotations.map(Vec::as_slice).unwrap_or_default(),
    }
}

/// Text alone is a string: some servers know nothing else.
pub(crate) fn content_of<'a>(parts: Vec<InputPart<'a>>, separator: &'static str) -> Content<'a> {
    let is_text = |part: &InputPart<'_>| matches!(part, InputPart::InputText { .. });
    if !parts.iter().all(is_text) {
        return Content::Parts(parts);
    }
    let mut joined = Text::default();
    for part in parts {
        if let InputPart::InputText { text } = part {
            joined.append(separator, text);
        }
    }
    Content::Text(joined)
}

pub(crate) fn result_part(piece: Piece<'_>) -> Option<InputPart<'_>> {
    match piece {
        Piece::Text(text) => Some(InputPart::InputText { text }),
        Piece::Media(content) => {
            if let Some(image) = as_image(content) {
                return Some(image_part(image));
            }
            let (uri, data) = as_pdf(content)?;
            let name = uri.rsplit('/').find(|name| !name.is_empty());
            Some(file_part(name.unwrap_or("document.pdf").into(), data))
        }
    }
}

/// The address and the bytes of a PDF.
pub(crate) fn as_pdf(content: &ToolContent) -> Option<(&str, DataUrl<'_>)> {
    match content {
        ToolContent::Resource {
            uri,
            media_type: Some(media_type),
            text: None,
            blob: Some(base64),
        } if media_type == "application/pdf" => Some((uri, DataUrl::Data { media_type, base64 })),
        _ => None,
    }
}

pub(crate) fn text_part<'a>(text: impl Into<Text<'a>>) -> InputPart<'a> {
    InputPart::InputText { text: text.into() }
}

pub(crate) fn image_part(image_url: DataUrl<'_>) -> InputPart<'_> {
    InputPart::InputImage {
        detail: "auto",
        image_url,
    }
}

pub(crate) fn file_part<'a>(filename: Cow<'a, str>, data: DataUrl<'a>) -> InputPart<'a> {
    InputPart::InputFile {
        filename: Some(filename),
        file_data: Some(data),
        file_url: None,
    }
}

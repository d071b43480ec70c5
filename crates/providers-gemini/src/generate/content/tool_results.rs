//! Maps tool results to function responses.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{ModelCapabilities, ToolContent, ToolResult};

use super::parts::{PartMapper, WireMedia};
use crate::capabilities::ModelSeries;
use crate::generate::wire::{
    self, FunctionResponse, FunctionResponseContent, FunctionResponsePart, OutputOrError, PartData,
};

/// Media types that a tool result may contain, according to the API's guide to multimodal function
/// responses.
const IN_RESULTS: [&str; 5] = [
    "image/png",
    "image/jpeg",
    "image/webp",
    "application/pdf",
    "text/plain",
];

impl PartMapper<'_> {
    /// Maps the result of the tool call with the API's `id` and `name` to a function response.
    /// Appends media that a function response cannot contain to `beside`. The caller adds `beside`
    /// after all function responses, because the API requires the function responses first.
    pub(crate) fn map_tool_result<'a>(
        &mut self,
        result: &'a ToolResult,
        id: Option<&'a str>,
        name: Cow<'a, str>,
        beside: &mut Vec<wire::Part<'a>>,
    ) -> FunctionResponse<'a> {
        let takes_media = self
            .series
            .is_some_and(ModelSeries::supports_media_in_results);
        let mut parts = Vec::new();
        let mut after = Vec::new();
        for content in &*result.content {
            let Some(medium) = content_media(content) else {
                if let ToolContent::Resource {
                    text: None,
                    blob: Some(_),
                    ..
                } = content
                {
                    let message = format!(
                        "{} of the result of tool `{}` was sent as text: its media type is unknown",
                        content.as_text(),
                        result.name
                    );
                    self.warnings.add_downgrade(message);
                }
                continue;
            };
            if !is_supported_media(medium.media_type(), self.capabilities) {
                let message = format!(
                    "{} of the result of tool `{}` was sent as this text: the model does not \
                     support {}",
                    content.as_text(),
                    result.name,
                    medium.media_type()
                );
                self.warnings.add_downgrade(message);
            } else if takes_media && IN_RESULTS.contains(&medium.media_type()) {
                parts.push(match medium {
                    WireMedia::Inline(blob) => FunctionResponsePart::InlineData(blob),
                    WireMedia::Url(file) => FunctionResponsePart::FileData(file),
                });
            } else {
                after.push(wire::Part::from_data(match medium {
                    WireMedia::Inline(blob) => PartData::InlineData(blob),
                    WireMedia::Url(file) => PartData::FileData(file),
                }));
            }
        }
        if !after.is_empty() {
            let from = format!("the result of tool `{}`", result.name);
            let message = format!(
                "{} media part(s) of {from} were sent after it: this model does not support them \
                 in a result",
                after.len()
            );
            self.warnings.add_downgrade(message);
            beside.push(wire::Part::from_text(format!("From {from}:")));
            beside.append(&mut after);
        }
        FunctionResponse {
            id,
            name,
            response: result_object(result),
            parts,
        }
    }
}

/// Converts a tool result to the field `response` of a function response. Text becomes the field
/// `output`, or the field `error` if the tool failed. Structured content is sent instead of text
/// that has the same content.
pub(crate) fn result_object(result: &ToolResult) -> FunctionResponseContent<'_> {
    let data = result.structured.as_deref();
    let content = match data.filter(|_| structured_content_includes_text(result)) {
        Some(Value::Object(object))
            if !result.is_error
                && !object.contains_key("output")
                && !object.contains_key("error") =>
        {
            return FunctionResponseContent::Whole(object);
        }
        Some(data) => OutputOrError::Data(data),
        None => OutputOrError::Text(result_text(result)),
    };
    match content {
        OutputOrError::Text(text) if result.is_error && text.trim().is_empty() => {
            let text = Cow::Borrowed("the tool failed without an error message");
            let error = OutputOrError::Text(text);
            FunctionResponseContent::Error { error }
        }
        error if result.is_error => FunctionResponseContent::Error { error },
        output => FunctionResponseContent::Output { output },
    }
}

/// Returns whether the structured content can replace the other content of the result. This is the
/// case if the result has no other content, or only one text that is blank or contains the same
/// JSON value.
fn structured_content_includes_text(result: &ToolResult) -> bool {
    match &*result.content {
        [] => true,
        [ToolContent::Text { text }] => {
            text.trim().is_empty()
                || serde_json::from_str::<Value>(text).ok().as_ref() == result.structured.as_deref()
        }
        _ => false,
    }
}

/// Returns the text of a tool result. Media and links become descriptions in brackets, such as
/// `[image image/png]`. A result without content returns its structured content as JSON.
pub(crate) fn result_text(result: &ToolResult) -> Cow<'_, str> {
    match &*result.content {
        [] => result
            .structured
            .as_ref()
            .map_or(Cow::Borrowed(""), |data| Cow::Owned(data.to_string())),
        [
            ToolContent::Text { text }
            | ToolContent::Resource {
                text: Some(text), ..
            },
        ] => Cow::Borrowed(text),
        several => {
            let words: Vec<String> = several.iter().map(ToolContent::as_text).collect();
            Cow::Owned(words.join("\n"))
        }
    }
}

/// Returns the media in one content block of a tool result. Returns `None` for text, links, and
/// resources of unknown media type.
fn content_media(content: &ToolContent) -> Option<WireMedia<'_>> {
    match content {
        ToolContent::Image(media) | ToolContent::Audio(media) => WireMedia::convert_media(media),
        ToolContent::Resource {
            media_type: Some(media_type),
            text: None,
            blob: Some(data),
            ..
        } => Some(WireMedia::from_base64(media_type, data)),
        _ => None,
    }
}

/// Returns whether the API supports the media type and the model is not known to refuse it.
fn is_supported_media(media_type: &str, capabilities: &ModelCapabilities) -> bool {
    let takes = |capability: Option<bool>| capability != Some(false);
    match media_type.split('/').next().unwrap_or_default() {
        "image" => takes(capabilities.images),
        "audio" => takes(capabilities.audio),
        "video" => true,
        "text" => takes(capabilities.documents),
        _ => media_type == "application/pdf" && takes(capabilities.documents),
    }
}

//! Conversion of the calls and results of a conversation into text.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_domain::{Document, Media, Message, Part, Role, ToolContent, ToolResult, ToolUse};

const CLOSE_RESPONSE: &str = "</tool_response";
/// Replacement of `</tool_response` in the text of a result, so that the text cannot close the
/// `<tool_response>` element around it.
const HARMLESS_CLOSE: &str = "<\\/tool_response";

/// Replaces the tool uses and results of messages by text. Results become part of a user message,
/// together with the user message that follows: many templates require alternating roles.
pub(super) fn convert_tool_messages(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut texts: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    let mut results: Option<Vec<Part>> = None;
    for message in messages {
        if message.role == Role::Tool {
            let parts = results.get_or_insert_default();
            parts.extend(tool_result_parts(message));
            continue;
        }
        if let Some(mut parts) = results.take() {
            if message.role == Role::User {
                parts.extend(message.parts.iter().cloned());
                texts.push(Arc::new(Message::new(Role::User, parts)));
                continue;
            }
            texts.push(Arc::new(Message::new(Role::User, parts)));
        }
        texts.push(if message.tool_uses().next().is_some() {
            Arc::new(Message::new(message.role, convert_calls_to_text(message)))
        } else {
            Arc::clone(message)
        });
    }
    if let Some(parts) = results {
        texts.push(Arc::new(Message::new(Role::User, parts)));
    }
    texts
}

/// Returns the parts of a message, with its tool uses converted to text.
fn convert_calls_to_text(message: &Message) -> Vec<Part> {
    let mut parts = Vec::with_capacity(message.parts.len());
    // Text parts are joined without a separator, so a line break must be part of the text.
    let mut needs_break = false;
    for part in &message.parts {
        match part {
            Part::ToolUse(tool_use) => {
                let before = if needs_break { "\n" } else { "" };
                parts.push(Part::text(format!("{before}{}", call_text(tool_use))));
                needs_break = true;
            }
            other => {
                if let Some(text) = other.as_text()
                    && !text.is_empty()
                {
                    needs_break = !text.ends_with('\n');
                }
                parts.push(other.clone());
            }
        }
    }
    parts
}

fn call_text(tool_use: &ToolUse) -> String {
    // Malformed input is repeated as the model wrote it, so that the model understands the error.
    let input = tool_use.input.to_display_value();
    let call = json!({"name": tool_use.name, "arguments": input});
    format!("<tool_call>\n{call}\n</tool_call>")
}

/// Returns the text of all tool results in a message, and their media.
fn tool_result_parts(message: &Message) -> Vec<Part> {
    let mut parts = Vec::new();
    for result in message.tool_results() {
        parts.push(Part::text(result_text(result)));
        parts.extend(result.content.iter().filter_map(|content| match content {
            ToolContent::Image(media) => Some(Part::Image(media.clone())),
            ToolContent::Audio(media) => Some(Part::Audio(media.clone())),
            ToolContent::Resource {
                uri,
                media_type: Some(media_type),
                text: None,
                blob: Some(data),
            } => resource_part(uri, media_type, data),
            _ => None,
        }));
    }
    parts
}

/// Returns an image, audio, text or PDF resource as a part of a user message; text and PDF become a
/// document. Returns `None` for other media types.
fn resource_part(uri: &str, media_type: &str, data: &str) -> Option<Part> {
    let media = || Media::from_base64(media_type, data);
    let sort = media_type.split(['/', ';']).next().unwrap_or_default();
    match sort.to_ascii_lowercase().as_str() {
        "image" => Some(Part::Image(media())),
        "audio" => Some(Part::Audio(media())),
        sort if sort == "text" || media_type.starts_with("application/pdf") => {
            Some(Part::Document(Document {
                media: media(),
                title: Some(uri.to_owned()),
            }))
        }
        _ => None,
    }
}

fn result_text(result: &ToolResult) -> String {
    let name = Value::String(result.name.clone());
    let error = if result.is_error {
        " error=\"true\""
    } else {
        ""
    };
    let text = result.as_text().replace(CLOSE_RESPONSE, HARMLESS_CLOSE);
    format!("<tool_response name={name}{error}>\n{text}\n</tool_response>\n")
}

//! The calls and results of a conversation as text.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_domain::{Document, Media, Message, Part, Role, ToolContent, ToolResult, ToolUse};

const CLOSE_RESPONSE: &str = "</tool_response";
/// What a closing tag within a result becomes, so that a result cannot end itself and speak on.
const HARMLESS_CLOSE: &str = "<\\/tool_response";

/// The messages with text in place of tool uses and results. Results become the user's, together
/// with what the user says right after: many templates want the two roles in turn. A message without
/// either is shared, not copied.
pub(super) fn as_text(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut texts: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    let mut results: Option<Vec<Part>> = None;
    for message in messages {
        if message.role == Role::Tool {
            let parts = results.get_or_insert_default();
            parts.extend(response_parts(message));
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
            Arc::new(Message::new(message.role, call_parts(message)))
        } else {
            Arc::clone(message)
        });
    }
    if let Some(parts) = results {
        texts.push(Arc::new(Message::new(Role::User, parts)));
    }
    texts
}

/// The parts of a message with its tool uses as text.
fn call_parts(message: &Message) -> Vec<Part> {
    let mut parts = Vec::with_capacity(message.parts.len());
    // Text parts are joined as they are: what is between a text and a call must be in one of them.
    let mut needs_break = false;
    for part in &message.parts {
        match part {
            Part::ToolUse(tool_use) => {
                let before = if needs_break { "\n" } else { "" };
                parts.push(Part::text(format!("{before}{}", call(tool_use))));
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

fn call(tool_use: &ToolUse) -> String {
    // Of malformed input what the model wrote, so that it sees what its error was about.
    let input = tool_use.input.shown();
    let call = json!({"name": tool_use.name, "arguments": input});
    format!("<tool_call>\n{call}\n</tool_call>")
}

/// The results of a message: the text of all of them, and what they show.
fn response_parts(message: &Message) -> Vec<Part> {
    let mut parts = Vec::new();
    for result in message.results() {
        parts.push(Part::text(response(result)));
        parts.extend(result.content.iter().filter_map(|content| match content {
            ToolContent::Image(media) => Some(Part::Image(media.clone())),
            ToolContent::Audio(media) => Some(Part::Audio(media.clone())),
            ToolContent::Resource {
                uri,
                media_type: Some(media_type),
                text: None,
                blob: Some(data),
            } => resource(uri, media_type, data),
            _ => None,
        }));
    }
    parts
}

/// The bytes of a resource as the person would show them, where they are such: what becomes of them
/// is then the wire's to do or to tell.
fn resource(uri: &str, media_type: &str, data: &str) -> Option<Part> {
    let media = || Media::base64(media_type, data);
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

fn response(result: &ToolResult) -> String {
    let name = Value::String(result.name.clone());
    let error = if result.is_error {
        " error=\"true\""
    } else {
        ""
    };
    let text = result.as_text().replace(CLOSE_RESPONSE, HARMLESS_CLOSE);
    format!("<tool_response name={name}{error}>\n{text}\n</tool_response>\n")
}

//! Converts the messages of a conversation to messages of the Ollama API.

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Document, Media, MediaSource, Message, ModelCapabilities, ModelId, Part,
    Reasoning, Role, ToolContent, ToolResult, Warning, WarningKind,
};

use switchboard_providers_common::{
    ContentWarnings, JoinedText, ToolUseInput,
    media::{decode_text, is_text_media_type},
    result_text::{mark_failed_result, push_result_content, structured_content_text},
};

use super::wire::{self, RoleName};

/// Separator that joins several text parts of a message into one string.
const PARAGRAPH: &str = "\n\n";
/// Name of the response field with the reasoning. The provider state of a reasoning part contains
/// this name, as a mark that the part came from the Ollama API.
const THINKING: &str = "thinking";

/// Returns the provider state that marks a reasoning part as created by the Ollama API.
pub(crate) fn thinking_part_state() -> Value {
    serde_json::json!({ "field": THINKING })
}

/// Maps the messages of a request to messages of the Ollama API. `instructions` are appended to the
/// leading system message, which is created if there is none.
pub(crate) fn map_messages<'a>(
    request: &'a ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    instructions: Option<String>,
    warnings: &mut Vec<Warning>,
) -> Vec<wire::Message<'a>> {
    let mut mapper = MessageMapper {
        model,
        capabilities,
        warnings: ContentWarnings::new(warnings),
        out: Vec::with_capacity(request.messages.len()),
        reasoning_dropped: 0,
    };
    for message in &request.messages {
        mapper.map_message(message);
    }
    if let Some(instructions) = instructions {
        mapper.append_instructions(instructions);
    }
    let why = "another model created them";
    let warnings = &mut mapper.warnings;
    warnings.warn_dropped_reasoning(mapper.reasoning_dropped, why);
    warnings.warn_dropped_part_states();
    mapper.out
}

struct MessageMapper<'a, 'm> {
    model: &'m ModelId,
    capabilities: &'m ModelCapabilities,
    warnings: ContentWarnings<'m>,
    out: Vec<wire::Message<'a>>,
    reasoning_dropped: usize,
}

impl<'a> MessageMapper<'a, '_> {
    fn map_message(&mut self, message: &'a Message) {
        // Tool results come first, because they must directly follow the message with their calls.
        for result in message.tool_results() {
            self.push_tool_result(result);
        }
        let parts = || {
            let is_result = |part: &&Part| matches!(part, Part::ToolResult(_));
            message.parts.iter().filter(move |part| !is_result(part))
        };
        if parts().next().is_none() {
            return;
        }
        match message.role {
            Role::System => self.push_system_message(parts()),
            Role::User | Role::Tool => self.push_user_message(parts()),
            Role::Assistant => self.push_assistant_message(parts()),
        }
    }

    fn push_system_message(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut content = JoinedText::default();
        for part in parts {
            match part {
                Part::Text(text) => content.push(PARAGRAPH, &text.text),
                other => self
                    .warnings
                    .warn_dropped_part(other, "instructions can contain only text"),
            }
        }
        if content.is_empty() {
            return;
        }
        // Many chat templates accept only one system message, so the texts are joined.
        match self.out.last_mut() {
            Some(before) if before.role == RoleName::System => {
                let said = before.content.get_or_insert_default();
                said.append(PARAGRAPH, content);
            }
            _ => {
                let message = wire::Message::new(RoleName::System, Some(content));
                self.out.push(message);
            }
        }
    }

    /// Appends `instructions` to the leading system message. Creates this message if there is none.
    fn append_instructions(&mut self, instructions: String) {
        match self.out.first_mut() {
            Some(first) if first.role == RoleName::System => {
                let said = first.content.get_or_insert_default();
                said.push(PARAGRAPH, instructions);
            }
            _ => {
                let content = Some(instructions.into());
                let message = wire::Message::new(RoleName::System, content);
                self.out.insert(0, message);
            }
        }
    }

    fn push_user_message(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut content = JoinedText::default();
        let mut images = Vec::new();
        for part in parts {
            match part {
                Part::Text(text) => content.push(PARAGRAPH, &text.text),
                Part::Image(media) | Part::Audio(media) => {
                    let is_image = matches!(part, Part::Image(_));
                    match self.map_media(if is_image { "image" } else { "audio" }, media) {
                        Ok(bytes) => images.push(bytes),
                        Err(words) => content.push(PARAGRAPH, words),
                    }
                }
                Part::Document(document) => {
                    let words = self.map_document(document);
                    content.push(PARAGRAPH, words);
                }
                Part::Opaque(opaque) if opaque.text.is_some() => {
                    self.warnings.warn_downgraded_part(&opaque.kind, "its text");
                    content.push(PARAGRAPH, opaque.text.as_deref().unwrap_or_default());
                }
                other => self
                    .warnings
                    .warn_dropped_part(other, "a user message cannot contain it"),
            }
        }
        let content = Some(content).filter(|content| !content.is_empty());
        if content.is_none() && images.is_empty() {
            return;
        }
        self.out.push(wire::Message {
            images,
            ..wire::Message::new(RoleName::User, content)
        });
    }

    fn push_assistant_message(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut content = JoinedText::default();
        let mut thinking = JoinedText::default();
        let mut tool_calls = Vec::new();
        // Consecutive text parts are joined without a separator: some APIs split text at citations.
        let mut separator = "";
        for part in parts {
            match part {
                Part::Text(text) => {
                    content.push(separator, &text.text);
                    if !text.text.is_empty() {
                        separator = "";
                    }
                    self.warnings.dropped_states += usize::from(text.provider_state.is_some());
                }
                Part::ToolUse(tool_use) => {
                    self.warnings.dropped_states += usize::from(tool_use.provider_state.is_some());
                    let function = wire::FunctionCall {
                        index: tool_calls.len(),
                        name: &tool_use.name,
                        arguments: ToolUseInput(&tool_use.input),
                    };
                    tool_calls.push(wire::ToolCall { function });
                }
                Part::Reasoning(reasoning) if self.is_from_requested_model(reasoning) => {
                    thinking.push("", &reasoning.text);
                }
                Part::Reasoning(_) => self.reasoning_dropped += 1,
                Part::Opaque(opaque) if opaque.text.is_some() => {
                    self.warnings.warn_downgraded_part(&opaque.kind, "its text");
                    content.push(PARAGRAPH, opaque.text.as_deref().unwrap_or_default());
                    separator = PARAGRAPH;
                }
                other => self
                    .warnings
                    .warn_dropped_part(other, "an assistant message cannot contain it"),
            }
        }
        let content = Some(content).filter(|content| !content.is_empty());
        if content.is_some() || !tool_calls.is_empty() {
            self.out.push(wire::Message {
                thinking,
                tool_calls,
                ..wire::Message::new(RoleName::Assistant, content)
            });
        } else if !thinking.is_empty() {
            let message =
                "reasoning was dropped: the answer has no other content, which the API requires";
            self.warnings.add_warning(WarningKind::PartDropped, message);
        }
    }

    /// Returns whether the requested model created the reasoning through the Ollama API.
    fn is_from_requested_model(&self, reasoning: &Reasoning) -> bool {
        let state = reasoning.provider_state.as_ref();
        state
            .and_then(|state| state.data_for_model(self.model))
            .and_then(|data| data.get("field"))
            .is_some_and(|field| field == THINKING)
    }

    fn push_tool_result(&mut self, result: &'a ToolResult) {
        let mut content = structured_content_text(result);
        let mut images = Vec::new();
        for piece in &*result.content {
            let sent = match piece {
                ToolContent::Image(media) => self.map_media("image", media),
                ToolContent::Audio(media) => self.map_media("audio", media),
                ToolContent::Resource {
                    uri,
                    media_type,
                    text: None,
                    blob: Some(data),
                } => self.map_blob(uri, media_type.as_deref().unwrap_or_default(), data),
                other => {
                    push_result_content(&mut content, other);
                    continue;
                }
            };
            match sent {
                Ok(bytes) => images.push(bytes),
                Err(words) => content.push("\n", words),
            }
        }
        if result.is_error {
            mark_failed_result(&mut content);
        }
        self.out.push(wire::Message {
            images,
            tool_name: Some(&result.name),
            ..wire::Message::new(RoleName::Tool, Some(content))
        });
    }

    /// Returns the base64 data of an image or an audio clip or, as `Err`, the text that replaces
    /// it. The server accepts audio in the field for images.
    fn map_media(&mut self, what: &str, media: &'a Media) -> Result<&'a str, String> {
        let (is_supported, plural) = match what {
            "image" => (self.capabilities.images, "images"),
            _ => (self.capabilities.audio, "audio"),
        };
        let why = match &media.source {
            _ if is_supported == Some(false) => format!("the model does not support {plural}"),
            MediaSource::Base64(data) => return Ok(data),
            _ => format!("the API supports {plural} only as base64"),
        };
        Err(self.describe_media(what, media, &why))
    }

    /// Returns the base64 data of an image or audio resource. For other resources, returns as `Err`
    /// the text to send: the content of a text resource, or the name of the resource.
    fn map_blob(&mut self, uri: &str, media_type: &str, data: &'a str) -> Result<&'a str, String> {
        let sort = media_type.split('/').next().unwrap_or_default();
        let is_taken = match sort.to_ascii_lowercase().as_str() {
            // SVG images are sent as XML text, because the server cannot decode them as images.
            "image" => !is_text_media_type(media_type) && self.capabilities.images != Some(false),
            "audio" => self.capabilities.audio != Some(false),
            _ => false,
        };
        if is_taken {
            return Ok(data);
        }
        if is_text_media_type(media_type)
            && let Some(text) = decode_text(data)
        {
            return Err(text);
        }
        let name = format!("[resource {}]", format!("{uri} {media_type}").trim_end());
        let why = "the model does not support its media type";
        Err(self.warnings.warn_sent_as_text(name, why))
    }

    /// Returns the text of a document in a text format. For any other document, returns a
    /// description such as `[document "Report" application/pdf]`.
    fn map_document(&mut self, document: &Document) -> String {
        let media = &document.media;
        let what = document.title.as_ref().map_or_else(
            || "document".to_owned(),
            |title| format!("document \"{title}\""),
        );
        let text = match &media.source {
            MediaSource::Base64(data) if is_text_media_type(&media.media_type) => decode_text(data),
            _ => None,
        };
        match text {
            Some(text) => {
                let name = format!("[{what} {}]", media.media_type);
                self.warnings
                    .warn_downgraded_part(&name, "text: the API does not support documents");
                format!("{name}\n{text}")
            }
            None => self.describe_media(&what, media, "the API does not support documents"),
        }
    }

    /// Returns a text to send instead of media, such as `[image image/bmp]`, and adds a warning.
    fn describe_media(&mut self, what: &str, media: &Media, why: &str) -> String {
        let name = match &media.source {
            MediaSource::Url(url) => format!("[{what} {}: {url}]", media.media_type),
            _ => format!("[{what} {}]", media.media_type),
        };
        self.warnings.warn_sent_as_text(name, why)
    }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;

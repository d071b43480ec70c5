//! Converts the messages of a conversation to messages of Chat Completions.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Document, Media, ModelCapabilities, ModelId, Part, ReasoningEffort, ToolContent,
    ToolResult, ToolUse, Warning,
};
use switchboard_providers_common::{ContentWarnings, JoinedText, tool_names::ToolNames};

use super::{
    reasoning,
    tool_calls::STATE_FIELDS,
    wire::{self, ContentPart, MediaUrl},
};
use crate::{
    content::{
        PARAGRAPH,
        conversation_mapper::ConversationMapper,
        tool_results::{as_image, result_images_heading, tool_result_text},
    },
    server_profile::{InstructionsRole, Profile, ReasoningReplay},
    tools::choice_disables_reasoning,
    wire::media::{audio_format, document_filename},
};

/// Converts the messages of a conversation to messages of Chat Completions.
pub(crate) fn map_messages<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    names: &ToolNames,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> Vec<wire::Message<'a>> {
    // The server requires the reasoning of earlier answers only if this request allows reasoning.
    let requires_reasoning = profile.reasoning_replay == ReasoningReplay::Required
        && request.reasoning != Some(ReasoningEffort::None)
        && !choice_disables_reasoning(request, profile);
    let mut mapper = MessageMapper {
        model,
        names,
        requires_reasoning,
        capabilities,
        profile,
        warnings: ContentWarnings::new(warnings),
        messages: Vec::with_capacity(request.messages.len()),
        result_images: Vec::new(),
        dropped_reasoning: 0,
        lone_reasoning: 0,
    };
    for message in &request.messages {
        mapper.map_message(message);
    }
    mapper.flush_pending_results();
    let why = match profile.reasoning_replay {
        ReasoningReplay::Never => "this API does not accept it",
        _ => "another model created it",
    };
    let MessageMapper {
        mut warnings,
        messages,
        dropped_reasoning,
        lone_reasoning,
        ..
    } = mapper;
    warnings.warn_dropped_reasoning(dropped_reasoning, why);
    let why = "the answer has no other content, which the API requires";
    warnings.warn_dropped_reasoning(lone_reasoning, why);
    warnings.warn_dropped_part_states();
    messages
}

struct MessageMapper<'a, 'm> {
    model: &'m ModelId,
    names: &'m ToolNames,
    /// Whether every assistant message must have the field `reasoning_content`. If a message has no
    /// reasoning to send, the field contains a space.
    requires_reasoning: bool,
    capabilities: &'m ModelCapabilities,
    profile: &'m Profile,
    warnings: ContentWarnings<'m>,
    messages: Vec<wire::Message<'a>>,
    /// Images of the last tool results. They are sent in a user message after the results, because
    /// tool messages contain only text.
    result_images: Vec<ContentPart<'a>>,
    dropped_reasoning: usize,
    /// Number of reasoning parts that were dropped because their assistant message has neither text
    /// nor tool calls.
    lone_reasoning: usize,
}

impl<'a, 'm> ConversationMapper<'a, 'm> for MessageMapper<'a, 'm> {
    type Piece = ContentPart<'a>;

    fn content_warnings(&mut self) -> &mut ContentWarnings<'m> {
        &mut self.warnings
    }

    fn pending_result_parts(&mut self) -> &mut Vec<ContentPart<'a>> {
        &mut self.result_images
    }

    fn push_instructions(&mut self, content: JoinedText<'a>) {
        // Consecutive messages with instructions are joined, because many open models allow only
        // one such message.
        if let Some(
            wire::Message::System { content: before }
            | wire::Message::Developer { content: before },
        ) = self.messages.last_mut()
        {
            before.append(PARAGRAPH, content);
            return;
        }
        self.messages.push(match self.profile.instructions_role {
            InstructionsRole::System => wire::Message::System { content },
            InstructionsRole::Developer => wire::Message::Developer { content },
        });
    }

    fn push_user_message(&mut self, pieces: Vec<ContentPart<'a>>) {
        let is_text = |part: &ContentPart<'_>| matches!(part, ContentPart::Text { .. });
        let content = if pieces.iter().all(is_text) {
            let mut joined = JoinedText::default();
            for piece in pieces {
                if let ContentPart::Text { text } = piece {
                    joined.push(PARAGRAPH, text);
                }
            }
            wire::UserContent::Text(joined)
        } else {
            wire::UserContent::Parts(pieces)
        };
        self.messages.push(wire::Message::User { content });
    }

    fn push_assistant_message(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut content = JoinedText::default();
        let mut tool_calls = Vec::new();
        let mut reasoning = wire::ReasoningFields::default();
        let mut replayed = 0;
        // Consecutive text parts are joined without a separator, because some APIs split one text
        // into several parts at its citations.
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
                Part::ToolUse(tool_use) => tool_calls.push(self.map_tool_call(tool_use)),
                Part::Reasoning(part) => {
                    let replays = self.profile.reasoning_replay != ReasoningReplay::Never;
                    if replays && reasoning::replay_reasoning(part, self.model, &mut reasoning) {
                        replayed += 1;
                    } else {
                        self.dropped_reasoning += 1;
                    }
                }
                Part::Opaque(opaque) if let Some(text) = &opaque.text => {
                    self.warnings.warn_downgraded_part(&opaque.kind, "its text");
                    content.push(PARAGRAPH, text);
                    separator = PARAGRAPH;
                }
                other => {
                    let why = "an assistant message cannot contain it";
                    self.warnings.warn_dropped_part(other, why);
                }
            }
        }
        let has_no_reasoning = reasoning.is_empty();
        if self.requires_reasoning && reasoning.reasoning_content.is_empty() {
            reasoning.reasoning_content.push("", " ");
        }
        let content = Some(content).filter(|content| !content.is_empty());
        // The API refuses an assistant message that has neither content nor tool calls.
        if content.is_some() || !tool_calls.is_empty() {
            let reasoning = Some(reasoning).filter(|reasoning| !reasoning.is_empty());
            self.messages.push(wire::Message::Assistant {
                content,
                reasoning: reasoning.map(Box::new),
                tool_calls,
            });
        } else if !has_no_reasoning {
            self.lone_reasoning += replayed;
        }
    }

    fn push_tool_result(&mut self, result: &'a ToolResult) {
        let call = self.profile.tool_ids.to_valid_call_id(&result.tool_use_id);
        self.messages.push(wire::Message::Tool {
            tool_call_id: call.clone(),
            content: tool_result_text(result),
        });
        let is_text = |content: &ToolContent| matches!(content, ToolContent::Text { .. });
        if result.content.iter().all(is_text) {
            return;
        }
        let of_result = format!("the result of tool `{}`", result.name);
        let others = result.content.iter().filter(|it| as_image(it).is_none());
        self.warnings.warn_result_media_as_text(others, &of_result);
        let images: Vec<MediaUrl<'a>> = result.content.iter().filter_map(as_image).collect();
        if images.is_empty() {
            return;
        }
        if self.capabilities.images == Some(false) {
            self.warnings.warn_dropped_images(images.len(), &of_result);
            return;
        }
        self.warnings.warn_moved_images(images.len(), &of_result);
        let lead = result_images_heading(&self.names.wire_name(&result.name), &call);
        self.add_result_images(lead, images.into_iter());
    }

    fn map_text(&mut self, text: Cow<'a, str>) -> ContentPart<'a> {
        ContentPart::Text { text }
    }

    fn map_image(&mut self, media: &'a Media) -> ContentPart<'a> {
        match MediaUrl::convert_media(media) {
            Some(url) if self.capabilities.images != Some(false) => self.map_result_image(url),
            _ => self.media_as_text("image", media, "the model does not support images"),
        }
    }

    fn map_result_image(&mut self, url: MediaUrl<'a>) -> ContentPart<'a> {
        ContentPart::ImageUrl {
            image_url: wire::ImageUrl { url },
        }
    }

    fn map_audio(&mut self, media: &'a Media) -> ContentPart<'a> {
        if self.capabilities.audio == Some(false) {
            return self.media_as_text("audio", media, "the model does not support audio");
        }
        match (
            audio_format(&media.media_type),
            MediaUrl::convert_media(media),
        ) {
            (Some(format), Some(MediaUrl::Data { base64, .. })) => ContentPart::InputAudio {
                input_audio: wire::InputAudio {
                    data: base64,
                    format,
                },
            },
            _ => self.media_as_text("audio", media, "this API supports WAV and MP3 as base64"),
        }
    }

    fn map_document(&mut self, document: &'a Document) -> ContentPart<'a> {
        let media = &document.media;
        let supported = self.capabilities.documents != Some(false);
        match (supported, MediaUrl::convert_media(media)) {
            (true, Some(file_data @ MediaUrl::Data { .. })) => ContentPart::File {
                file: wire::FileData {
                    filename: document_filename(document),
                    file_data,
                },
            },
            (true, Some(MediaUrl::Address(url))) => {
                self.warnings
                    .warn_downgraded_part("the URL of a document", "text");
                let title = document.title.as_deref().unwrap_or("document");
                self.map_text(format!("[{title}: {url}]").into())
            }
            _ => self.media_as_text("document", media, "the model does not support documents"),
        }
    }
}

impl<'a> MessageMapper<'a, '_> {
    fn map_tool_call(&mut self, tool_use: &'a ToolUse) -> wire::ToolCall<'a> {
        let state = tool_use.provider_state.as_ref();
        let fields = state
            .and_then(|state| state.data_for_model(self.model))
            .and_then(Value::as_object)
            // Provider state from the Responses API is ignored, because its fields do not exist in
            // a tool call of Chat Completions.
            .filter(|data| data.keys().all(|name| STATE_FIELDS.contains(&name.as_str())));
        self.warnings.dropped_states += usize::from(state.is_some() && fields.is_none());
        wire::ToolCall::Function {
            state: fields,
            id: self.profile.tool_ids.to_valid_call_id(&tool_use.id),
            function: wire::FunctionCall {
                name: self.names.wire_name(&tool_use.name),
                arguments: wire::CallArguments(&tool_use.input),
            },
        }
    }
}

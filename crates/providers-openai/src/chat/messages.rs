//! The conversation, domain → wire.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Document, Media, ModelCapabilities, ModelId, Part, ReasoningEffort, ToolContent,
    ToolResult, ToolUse, Warning,
};
use switchboard_providers_common::tool_names::ToolNames;

use super::{
    calls::CARRIED,
    thoughts,
    wire::{self, ContentPart, DataUrl, Text},
};
use crate::{
    conversation::Conversation,
    losses::{Losses, lead},
    media::{audio_format, filename},
    profile::{InstructionsRole, Profile, ReasoningReplay},
    results::{as_image, result_text},
    text::PARAGRAPH,
    tools::{switches_reasoning_off, wire_name},
};

/// Maps the whole conversation.
pub(crate) fn messages<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    names: &ToolNames,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> Vec<wire::Message<'a>> {
    // Without reasoning in this answer, the server asks for none of earlier ones.
    let blank_reasoning = profile.reasoning_replay == ReasoningReplay::Required
        && request.reasoning != Some(ReasoningEffort::None)
        && !switches_reasoning_off(request, profile);
    let mut mapper = Mapper {
        model,
        names,
        blank_reasoning,
        capabilities,
        profile,
        losses: Losses::new(warnings),
        out: Vec::with_capacity(request.messages.len()),
        shown: Vec::new(),
        reasoning_dropped: 0,
        loose_reasoning: 0,
    };
    for message in &request.messages {
        mapper.message(message);
    }
    mapper.flush();
    let why = match profile.reasoning_replay {
        ReasoningReplay::Never => "this wire takes none back",
        _ => "another model wrote them",
    };
    mapper.losses.reasoning(mapper.reasoning_dropped, why);
    let loose = "nothing came of them, and the API takes no answer of reasoning alone";
    mapper.losses.reasoning(mapper.loose_reasoning, loose);
    mapper.losses.sum_up();
    mapper.out
}

struct Mapper<'a, 'm> {
    model: &'m ModelId,
    names: &'m ToolNames,
    /// Whether an assistant message must have reasoning, if only a blank.
    blank_reasoning: bool,
    capabilities: &'m ModelCapabilities,
    profile: &'m Profile,
    losses: Losses<'m>,
    out: Vec<wire::Message<'a>>,
    /// Images of the tool results sent last. They wait until all results of the group are sent: a
    /// call must be answered before any other message comes.
    shown: Vec<ContentPart<'a>>,
    reasoning_dropped: usize,
    /// Reasoning of answers that hold nothing else.
    loose_reasoning: usize,
}

impl<'a, 'm> Conversation<'a, 'm> for Mapper<'a, 'm> {
    type Piece = ContentPart<'a>;

    fn losses(&mut self) -> &mut Losses<'m> {
        &mut self.losses
    }

    fn waiting(&mut self) -> &mut Vec<ContentPart<'a>> {
        &mut self.shown
    }

    fn instructions(&mut self, content: Text<'a>) {
        // Chat templates of open models often take one such message and no more.
        if let Some(
            wire::Message::System { content: before }
            | wire::Message::Developer { content: before },
        ) = self.out.last_mut()
        {
            before.append(PARAGRAPH, content);
            return;
        }
        self.out.push(match self.profile.instructions_role {
            InstructionsRole::System => wire::Message::System { content },
            InstructionsRole::Developer => wire::Message::Developer { content },
        });
    }

    fn person(&mut self, pieces: Vec<ContentPart<'a>>) {
        let only_text = |part: &ContentPart<'_>| matches!(part, ContentPart::Text { .. });
        let content = if pieces.iter().all(only_text) {
            let mut joined = Text::default();
            for piece in pieces {
                if let ContentPart::Text { text } = piece {
                    joined.push(PARAGRAPH, text);
                }
            }
            wire::UserContent::Text(joined)
        } else {
            wire::UserContent::Parts(pieces)
        };
        self.out.push(wire::Message::User { content });
    }

    fn person_says(&mut self, text: &'a str) {
        let content = wire::UserContent::Text(text.into());
        self.out.push(wire::Message::User { content });
    }

    fn assistant(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut content = Text::default();
        let mut tool_calls = Vec::new();
        let mut thoughts = wire::Thoughts::default();
        let mut replayed = 0;
        // Texts are pieces of one: other wires split it where a citation ends.
        let mut separator = "";
        for part in parts {
            match part {
                Part::Text(text) => {
                    content.push(separator, &text.text);
                    if !text.text.is_empty() {
                        separator = "";
                    }
                    self.losses.states += usize::from(text.provider_state.is_some());
                }
                Part::ToolUse(tool_use) => tool_calls.push(self.tool_call(tool_use)),
                Part::Reasoning(reasoning) => {
                    let replays = self.profile.reasoning_replay != ReasoningReplay::Never;
                    if replays && thoughts::replay(reasoning, self.model, &mut thoughts) {
                        replayed += 1;
                    } else {
                        self.reasoning_dropped += 1;
                    }
                }
                Part::Opaque(opaque) if opaque.text.is_some() => {
                    self.losses.downgraded(&opaque.kind, "its text");
                    content.push(PARAGRAPH, opaque.text.as_deref().unwrap_or_default());
                    separator = PARAGRAPH;
                }
                other => self
                    .losses
                    .dropped(other, "an assistant message is text and calls"),
            }
        }
        let thought_nothing = thoughts.is_empty();
        if self.blank_reasoning && thoughts.reasoning_content.is_empty() {
            thoughts.reasoning_content.push("", " ");
        }
        let content = Some(content).filter(|content| !content.is_empty());
        // The API wants one of the two.
        if content.is_some() || !tool_calls.is_empty() {
            let thoughts = Some(thoughts).filter(|thoughts| !thoughts.is_empty());
            self.out.push(wire::Message::Assistant {
                content,
                thoughts: thoughts.map(Box::new),
                tool_calls,
            });
        } else if !thought_nothing {
            self.loose_reasoning += replayed;
        }
    }

    fn tool_result(&mut self, result: &'a ToolResult) {
        self.out.push(wire::Message::Tool {
            tool_call_id: self.profile.tool_ids.apply(&result.tool_use_id),
            content: result_text(result),
        });
        let is_text = |content: &ToolContent| matches!(content, ToolContent::Text { .. });
        if result.content.iter().all(is_text) {
            return;
        }
        let from = format!("the result of tool `{}`", result.name);
        let others = result.content.iter().filter(|it| as_image(it).is_none());
        self.losses.in_words_only(others, &from);
        let images: Vec<DataUrl<'a>> = result.content.iter().filter_map(as_image).collect();
        if images.is_empty() {
            return;
        }
        if self.capabilities.images == Some(false) {
            self.losses.unseen(images.len(), &from);
            return;
        }
        let call = self.profile.tool_ids.apply(&result.tool_use_id);
        self.losses.shown_after(images.len(), &from, "wire");
        let lead = lead(&wire_name(self.names, &result.name), &call);
        self.show(lead, images.into_iter());
    }

    fn text(&mut self, text: Cow<'a, str>) -> ContentPart<'a> {
        ContentPart::Text { text }
    }

    fn image(&mut self, media: &'a Media) -> ContentPart<'a> {
        match DataUrl::of(media) {
            Some(url) if self.capabilities.images != Some(false) => ContentPart::ImageUrl {
                image_url: wire::ImageUrl { url },
            },
            _ => self.in_words("image", media, "the model sees no images"),
        }
    }

    fn shown(&mut self, url: DataUrl<'a>) -> ContentPart<'a> {
        ContentPart::ImageUrl {
            image_url: wire::ImageUrl { url },
        }
    }

    fn audio(&mut self, media: &'a Media) -> ContentPart<'a> {
        if self.capabilities.audio == Some(false) {
            return self.in_words("audio", media, "the model hears no audio");
        }
        match (audio_format(&media.media_type), DataUrl::of(media)) {
            (Some(format), Some(DataUrl::Data { base64, .. })) => ContentPart::InputAudio {
                input_audio: wire::InputAudio {
                    data: base64,
                    format,
                },
            },
            _ => self.in_words("audio", media, "this wire takes WAV and MP3 as base64 only"),
        }
    }

    fn document(&mut self, document: &'a Document) -> ContentPart<'a> {
        let media = &document.media;
        let supported = self.capabilities.documents != Some(false);
        match (supported, DataUrl::of(media)) {
            (true, Some(file_data @ DataUrl::Data { .. })) => ContentPart::File {
                file: wire::FileData {
                    filename: filename(document),
                    file_data,
                },
            },
            (true, Some(DataUrl::Address(url))) => {
                self.losses
                    .downgraded("a document given by its address", "text");
                let title = document.title.as_deref().unwrap_or("document");
                self.text(format!("[{title}: {url}]").into())
            }
            _ => self.in_words("document", media, "the model reads no documents"),
        }
    }
}

impl<'a> Mapper<'a, '_> {
    fn tool_call(&mut self, tool_use: &'a ToolUse) -> wire::ToolCall<'a> {
        let state = tool_use.provider_state.as_ref();
        let carried = state
            .and_then(|state| state.for_model(self.model))
            .and_then(Value::as_object)
            // The same model may have been asked over the Responses API.
            .filter(|data| data.keys().all(|name| CARRIED.contains(&name.as_str())));
        self.losses.states += usize::from(state.is_some() && carried.is_none());
        wire::ToolCall::Function {
            carried,
            id: self.profile.tool_ids.apply(&tool_use.id),
            function: wire::FunctionCall {
                name: wire_name(self.names, &tool_use.name),
                arguments: wire::Arguments(&tool_use.input),
            },
        }
    }
}

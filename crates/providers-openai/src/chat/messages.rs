//! The conversation, domain → wire.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Document, Media, Message, ModelCapabilities, ModelId, Part, ReasoningEffort, Role,
    ToolResult, ToolUse, Warning, WarningKind,
};

use super::{
    calls::CARRIED,
    thoughts,
    wire::{self, ContentPart, DataUrl, Text},
};
use crate::{
    media::{audio_format, filename},
    profile::{InstructionsRole, Profile, ReasoningReplay},
    results::{as_image, result_text},
    text::PARAGRAPH,
    tools::{as_name, switches_reasoning_off},
};

/// Maps the whole conversation.
pub(crate) fn messages<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
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
        blank_reasoning,
        capabilities,
        profile,
        warnings,
        out: Vec::with_capacity(request.messages.len()),
        shown: Vec::new(),
        reasoning_dropped: 0,
        states_dropped: 0,
    };
    for message in &request.messages {
        mapper.message(message);
    }
    mapper.flush_shown();
    if mapper.reasoning_dropped > 0 {
        let why = match profile.reasoning_replay {
            ReasoningReplay::Never => "this wire takes none back",
            _ => "another model wrote them",
        };
        let message = format!(
            "{} reasoning part(s) left out: {why}",
            mapper.reasoning_dropped
        );
        mapper.warn(WarningKind::PartDropped, message);
    }
    if mapper.states_dropped > 0 {
        let message = format!(
            "{} part(s) sent without what another model had attached for itself",
            mapper.states_dropped
        );
        mapper.warn(WarningKind::PartDowngraded, message);
    }
    mapper.out
}

struct Mapper<'a, 'm> {
    model: &'m ModelId,
    /// Whether an assistant message must have reasoning, if only a blank.
    blank_reasoning: bool,
    capabilities: &'m ModelCapabilities,
    profile: &'m Profile,
    warnings: &'m mut Vec<Warning>,
    out: Vec<wire::Message<'a>>,
    /// Images of the tool results sent last. They wait until all results of the group are sent: a
    /// call must be answered before any other message comes.
    shown: Vec<ContentPart<'a>>,
    reasoning_dropped: usize,
    /// Texts and calls that go without their state.
    states_dropped: usize,
}

impl<'a> Mapper<'a, '_> {
    fn message(&mut self, message: &'a Message) {
        for result in message.results() {
            self.tool_result(result);
        }
        let parts = || {
            let is_result = |part: &&Part| matches!(part, Part::ToolResult(_));
            message.parts.iter().filter(move |part| !is_result(part))
        };
        if parts().next().is_none() {
            return;
        }
        self.flush_shown();
        match message.role {
            Role::System => self.instructions(parts()),
            Role::User | Role::Tool => self.user(parts()),
            Role::Assistant => self.assistant(parts()),
        }
    }

    fn instructions(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut content = Text::default();
        for part in parts {
            match part {
                Part::Text(text) => content.push(PARAGRAPH, &text.text),
                other => self.dropped(other, "instructions are text"),
            }
        }
        if content.is_empty() {
            return;
        }
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

    fn user(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut content = Vec::new();
        for part in parts {
            match part {
                Part::Text(text) if text.text.is_empty() => {}
                Part::Text(text) => content.push(text_part(&text.text)),
                Part::Image(media) => content.push(self.image(media)),
                Part::Audio(media) => content.push(self.audio(media)),
                Part::Document(document) => content.push(self.document(document)),
                Part::Opaque(opaque) if opaque.text.is_some() => {
                    self.downgraded(&opaque.kind, "its text");
                    content.push(text_part(opaque.text.as_deref().unwrap_or_default()));
                }
                other => self.dropped(other, "a user message cannot hold it"),
            }
        }
        self.push_user(content);
    }

    fn push_user(&mut self, content: Vec<ContentPart<'a>>) {
        let only_text = |part: &ContentPart<'_>| matches!(part, ContentPart::Text { .. });
        if content.is_empty() {
            return;
        }
        let content = if content.iter().all(only_text) {
            let mut joined = Text::default();
            for part in content {
                if let ContentPart::Text { text } = part {
                    joined.push(PARAGRAPH, text);
                }
            }
            wire::UserContent::Text(joined)
        } else {
            wire::UserContent::Parts(content)
        };
        self.out.push(wire::Message::User { content });
    }

    fn assistant(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut content = Text::default();
        let mut tool_calls = Vec::new();
        let mut thoughts = wire::Thoughts::default();
        // Texts are pieces of one: other wires split it where a citation ends.
        let mut separator = "";
        for part in parts {
            match part {
                Part::Text(text) => {
                    content.push(separator, &text.text);
                    if !text.text.is_empty() {
                        separator = "";
                    }
                    self.states_dropped += usize::from(text.provider_state.is_some());
                }
                Part::ToolUse(tool_use) => tool_calls.push(self.tool_call(tool_use)),
                Part::Reasoning(reasoning) => {
                    let replays = self.profile.reasoning_replay != ReasoningReplay::Never;
                    if !(replays && thoughts::replay(reasoning, self.model, &mut thoughts)) {
                        self.reasoning_dropped += 1;
                    }
                }
                Part::Opaque(opaque) if opaque.text.is_some() => {
                    self.downgraded(&opaque.kind, "its text");
                    content.push(PARAGRAPH, opaque.text.as_deref().unwrap_or_default());
                    separator = PARAGRAPH;
                }
                other => self.dropped(other, "an assistant message is text and calls"),
            }
        }
        if self.blank_reasoning && thoughts.reasoning_content.is_empty() {
            thoughts.reasoning_content.push("", " ");
        }
        let content = Some(content).filter(|content| !content.is_empty());
        // The API wants one of the two.
        if content.is_some() || !tool_calls.is_empty() {
            self.out.push(wire::Message::Assistant {
                content,
                thoughts,
                tool_calls,
            });
        }
    }

    fn tool_call(&mut self, tool_use: &'a ToolUse) -> wire::ToolCall<'a> {
        let name = as_name(&tool_use.name);
        if matches!(name, Cow::Owned(_)) {
            let what = format!("a call of `{}`", tool_use.name);
            self.downgraded(&what, &format!("a call of `{name}`"));
        }
        let state = tool_use.provider_state.as_ref();
        let carried = state
            .and_then(|state| state.for_model(self.model))
            .and_then(Value::as_object)
            // The same model may have been asked over the Responses API.
            .filter(|data| data.keys().all(|name| CARRIED.contains(&name.as_str())));
        self.states_dropped += usize::from(state.is_some() && carried.is_none());
        wire::ToolCall::Function {
            carried,
            id: self.profile.tool_ids.apply(&tool_use.id),
            function: wire::FunctionCall {
                name,
                arguments: wire::Arguments(&tool_use.input),
            },
        }
    }

    fn tool_result(&mut self, result: &'a ToolResult) {
        self.out.push(wire::Message::Tool {
            tool_call_id: self.profile.tool_ids.apply(&result.tool_use_id),
            content: result_text(result),
        });
        let images: Vec<&Media> = result.content.iter().filter_map(as_image).collect();
        if images.is_empty() {
            return;
        }
        let from = format!("the result of tool `{}`", result.name);
        if self.capabilities.images == Some(false) {
            let message = format!(
                "the model sees no images: {} left out of {from}",
                images.len()
            );
            self.warn(WarningKind::PartDropped, message);
            return;
        }
        self.downgraded(
            &format!("{} image(s) of {from}", images.len()),
            "a user message after it: results are text on this wire",
        );
        let lead = format!(
            "Image(s) from {from} (call {}):",
            self.profile.tool_ids.apply(&result.tool_use_id)
        );
        self.shown.push(text_part(lead));
        for media in images {
            let part = self.image(media);
            self.shown.push(part);
        }
    }

    fn flush_shown(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        self.push_user(shown);
    }

    fn image(&mut self, media: &'a Media) -> ContentPart<'a> {
        match DataUrl::of(media) {
            Some(url) if self.capabilities.images != Some(false) => ContentPart::ImageUrl {
                image_url: wire::ImageUrl { url },
            },
            _ => self.in_words("image", media, "the model sees no images"),
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
                self.downgraded("a document given by its address", "text");
                let title = document.title.as_deref().unwrap_or("document");
                text_part(format!("[{title}: {url}]"))
            }
            _ => self.in_words("document", media, "the model reads no documents"),
        }
    }

    /// A medium that cannot be sent is named, so that the model knows of it.
    fn in_words(&mut self, what: &str, media: &Media, why: &str) -> ContentPart<'a> {
        let name = format!("[{what} {}]", media.media_type);
        let message = format!("{name} was sent as these words: {why}");
        self.warn(WarningKind::PartDowngraded, message);
        text_part(name)
    }

    fn dropped(&mut self, part: &Part, why: &str) {
        let what = part.in_words();
        self.warn(WarningKind::PartDropped, format!("{what} left out: {why}"));
    }

    fn downgraded(&mut self, what: &str, to: &str) {
        let message = format!("{what} was sent as {to}");
        self.warn(WarningKind::PartDowngraded, message);
    }

    fn warn(&mut self, kind: WarningKind, message: String) {
        self.warnings.push(Warning::new(kind, message));
    }
}

fn text_part<'a>(text: impl Into<Cow<'a, str>>) -> ContentPart<'a> {
    ContentPart::Text { text: text.into() }
}

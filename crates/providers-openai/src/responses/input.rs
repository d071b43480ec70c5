//! The conversation, domain → wire.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Document, Media, Message, ModelCapabilities, ModelId, Opaque, Part, Reasoning,
    Role, Text as TextPart, ToolContent, ToolResult, ToolUse, Warning, WarningKind,
};

use super::{
    parts::{
        as_pdf, content_of, file_part, image_part, open_text, output_content, reasoning_item,
        result_part, text_part,
    },
    state::{Own, goes_back},
    wire::{self, Content, DataUrl, InputPart, Item, Output, OutputContent, Text},
};
use crate::{
    media::filename,
    profile::{InstructionsRole, Profile},
    results::{as_image, result_pieces, result_text},
    text::PARAGRAPH,
    tools::as_name,
};

/// Maps the whole conversation.
pub(crate) fn input<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> Vec<Item<'a>> {
    let mut mapper = Mapper {
        model,
        capabilities,
        profile,
        warnings,
        out: Vec::with_capacity(request.messages.len()),
        shown: Vec::new(),
        sent: HashSet::new(),
        callers: HashMap::new(),
        foreign_reasoning: 0,
        loose_reasoning: 0,
        states_dropped: 0,
    };
    for message in &request.messages {
        mapper.message(message);
    }
    mapper.flush_shown();
    mapper.sum_up();
    mapper.out
}

struct Mapper<'a, 'm> {
    model: &'m ModelId,
    capabilities: &'m ModelCapabilities,
    profile: &'m Profile,
    warnings: &'m mut Vec<Warning>,
    out: Vec<Item<'a>>,
    /// Images of the tool results sent last, where results are text. They wait until all results of
    /// the group are sent.
    shown: Vec<InputPart<'a>>,
    /// The ids of items sent. The API refuses one that comes twice.
    sent: HashSet<&'a str>,
    /// What made a call, by the call's id: its result must say so too.
    callers: HashMap<&'a str, &'a Value>,
    foreign_reasoning: usize,
    /// Reasoning that no item follows.
    loose_reasoning: usize,
    /// Texts and calls that go without their state.
    states_dropped: usize,
}

/// What is being said by the model.
#[derive(Default)]
struct Turn<'a> {
    /// Reasoning that waits for the item that it led to. The API refuses it alone: "'reasoning' was
    /// provided without its required following item".
    waiting: Vec<Item<'a>>,
    /// The ids of the reasoning before.
    reasoned: Vec<&'a str>,
    /// Comes before the next text that is no piece of the one before.
    separator: &'static str,
    /// Whether the last item takes more text.
    open: bool,
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
        let role = match self.profile.instructions_role {
            InstructionsRole::System => wire::Role::System,
            InstructionsRole::Developer => wire::Role::Developer,
        };
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
        if let Some(Item::Message {
            role: before,
            content: Content::Text(said),
            ..
        }) = self.out.last_mut()
            && *before == role
        {
            said.append(PARAGRAPH, content);
            return;
        }
        self.say(role, Content::Text(content));
    }

    fn user(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut content = Vec::new();
        for part in parts {
            match part {
                Part::Text(text) if text.text.is_empty() => {}
                Part::Text(text) => content.push(text_part(&text.text)),
                Part::Image(media) => content.push(self.image(media)),
                Part::Audio(media) => {
                    content.push(self.in_words("audio", media, "this wire takes no audio"));
                }
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

    fn push_user(&mut self, content: Vec<InputPart<'a>>) {
        if !content.is_empty() {
            self.say(wire::Role::User, content_of(content, PARAGRAPH));
        }
    }

    fn say(&mut self, role: wire::Role, content: Content<'a>) {
        self.out.push(Item::Message {
            role,
            content,
            phase: None,
        });
    }

    fn assistant(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut turn = Turn::default();
        for part in parts {
            match part {
                Part::Text(text) => self.text(text, &mut turn),
                Part::ToolUse(tool_use) => {
                    let call = self.tool_call(tool_use, &turn);
                    self.push(call, &mut turn);
                }
                Part::Reasoning(reasoning) => self.reasoning(reasoning, &mut turn),
                Part::Opaque(opaque) => self.opaque(opaque, &mut turn),
                other => self.dropped(other, "an answer is text, calls and reasoning"),
            }
        }
        self.loose_reasoning += turn.waiting.len();
    }

    /// Sends an item after the reasoning that led to it.
    fn push(&mut self, item: Item<'a>, turn: &mut Turn<'a>) {
        self.out.append(&mut turn.waiting);
        turn.open = false;
        self.out.push(item);
    }

    /// The id under which an item may be sent.
    fn id(&mut self, own: Option<&Own<'a>>, turn: &Turn<'a>) -> Option<&'a str> {
        let own = own?;
        let has_its_reasoning = own.after.is_none_or(|after| turn.reasoned.contains(&after));
        let id = own.text("id").filter(|_| has_its_reasoning)?;
        self.sent.insert(id).then_some(id)
    }

    fn text(&mut self, part: &'a TextPart, turn: &mut Turn<'a>) {
        let state = part.provider_state.as_ref();
        let own = Own::of(state, self.model);
        self.states_dropped += usize::from(state.is_some() && own.is_none());
        if part.text.is_empty() {
            return;
        }
        // Texts under one id are pieces of one message.
        if let Some(own) = &own
            && let Some(Item::Output(Output::Message { id, content, .. })) = self.out.last_mut()
            && turn.waiting.is_empty()
            && id.is_some()
            && own.text("id") == *id
        {
            content.push(output_content(part, own));
            return;
        }
        if let Some(own) = &own
            && let Some(id) = self.id(Some(own), turn)
        {
            let message = Output::Message {
                id: Some(id),
                role: wire::Role::Assistant,
                status: Some(own.text("status").unwrap_or("completed")),
                phase: own.text("phase"),
                content: vec![output_content(part, own)],
            };
            self.push(Item::Output(message), turn);
            return;
        }
        let phase = own.and_then(|own| own.text("phase"));
        self.assistant_text(&part.text, phase, turn);
    }

    /// Text without an id. It is a piece of the text before it: other wires split it where a
    /// citation ends.
    fn assistant_text(&mut self, text: &'a str, said_as: Option<&'a str>, turn: &mut Turn<'a>) {
        let separator = std::mem::take(&mut turn.separator);
        if turn.open
            && turn.waiting.is_empty()
            && let Some((said, phase)) = self.out.last_mut().and_then(open_text)
            && phase == said_as
        {
            said.push(separator, text);
            return;
        }
        let role = wire::Role::Assistant;
        let item = if self.profile.typed_answers {
            let text = OutputContent::OutputText {
                text: text.into(),
                annotations: &[],
            };
            Item::Output(Output::Message {
                id: None,
                role,
                status: None,
                phase: said_as,
                content: vec![text],
            })
        } else {
            Item::Message {
                role,
                content: Content::Text(text.into()),
                phase: said_as,
            }
        };
        self.push(item, turn);
        turn.open = true;
    }

    fn tool_call(&mut self, tool_use: &'a ToolUse, turn: &Turn<'a>) -> Item<'a> {
        let name = as_name(&tool_use.name);
        if matches!(name, Cow::Owned(_)) {
            let what = format!("a call of `{}`", tool_use.name);
            self.downgraded(&what, &format!("a call of `{name}`"));
        }
        let state = tool_use.provider_state.as_ref();
        let own = Own::of(state, self.model);
        self.states_dropped += usize::from(state.is_some() && own.is_none());
        let caller = own.and_then(|own| own.item.get("caller"));
        if let Some(caller) = caller {
            self.callers.insert(&tool_use.id, caller);
        }
        Item::Output(Output::FunctionCall {
            id: self.id(own.as_ref(), turn),
            call_id: self.profile.tool_ids.apply(&tool_use.id),
            name,
            arguments: wire::Arguments(&tool_use.input),
            status: own.and_then(|own| own.text("status")),
            caller,
            namespace: own.and_then(|own| own.text("namespace")),
        })
    }

    fn reasoning(&mut self, reasoning: &'a Reasoning, turn: &mut Turn<'a>) {
        let state = reasoning.provider_state.as_ref();
        let item = state
            .and_then(|state| state.for_model(self.model))
            .and_then(Value::as_object)
            .filter(|item| goes_back(item));
        let id = item.and_then(|item| item.get("id")).and_then(Value::as_str);
        let (Some(item), Some(id)) = (item, id) else {
            self.foreign_reasoning += 1;
            return;
        };
        if !self.sent.insert(id) {
            return;
        }
        turn.reasoned.push(id);
        turn.waiting
            .push(Item::AsItCame(reasoning_item(item, &reasoning.text)));
    }

    fn opaque(&mut self, opaque: &'a Opaque, turn: &mut Turn<'a>) {
        if let Some(own) = Own::of(Some(&opaque.provider_state), self.model) {
            let without_id = own.text("id").is_none();
            if without_id || self.id(Some(&own), turn).is_some() {
                self.push(Item::AsItCame(Cow::Borrowed(own.item)), turn);
                return;
            }
        }
        let Some(text) = opaque.text.as_deref().filter(|text| !text.is_empty()) else {
            let why = "another model's own block without a text";
            self.warn(
                WarningKind::PartDropped,
                format!("{} left out: {why}", opaque.kind),
            );
            return;
        };
        self.downgraded(&opaque.kind, "its text");
        turn.separator = PARAGRAPH;
        self.assistant_text(text, None, turn);
        turn.separator = PARAGRAPH;
    }

    fn tool_result(&mut self, result: &'a ToolResult) {
        let call_id = self.profile.tool_ids.apply(&result.tool_use_id);
        let images = result.content.iter().filter_map(as_image).count();
        let sees = self.capabilities.images != Some(false);
        let reads = self.capabilities.documents != Some(false);
        let output = if self.profile.result_media {
            let is_media = |content: &ToolContent| match content {
                ToolContent::Image(media) => sees && DataUrl::of(media).is_some(),
                other => reads && as_pdf(other).is_some(),
            };
            let pieces = result_pieces(result, is_media).into_iter();
            content_of(pieces.filter_map(result_part).collect(), "\n")
        } else {
            Content::Text(result_text(result))
        };
        self.out.push(Item::Output(Output::FunctionCallOutput {
            call_id: call_id.clone(),
            output,
            caller: self.callers.get(result.tool_use_id.as_str()).copied(),
        }));
        if images == 0 {
            return;
        }
        let from = format!("the result of tool `{}`", result.name);
        if !sees {
            let message = format!("the model sees no images: {images} left out of {from}");
            self.warn(WarningKind::PartDropped, message);
        } else if !self.profile.result_media {
            self.downgraded(
                &format!("{images} image(s) of {from}"),
                "a user message after it: results are text on this server",
            );
            let lead = format!("Image(s) from {from} (call {call_id}):");
            self.shown.push(text_part(lead));
            for media in result.content.iter().filter_map(as_image) {
                let part = self.image(media);
                self.shown.push(part);
            }
        }
    }

    fn flush_shown(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        self.push_user(shown);
    }

    fn image(&mut self, media: &'a Media) -> InputPart<'a> {
        match DataUrl::of(media) {
            Some(image_url) if self.capabilities.images != Some(false) => image_part(image_url),
            _ => self.in_words("image", media, "the model sees no images"),
        }
    }

    fn document(&mut self, document: &'a Document) -> InputPart<'a> {
        let media = &document.media;
        let supported = self.capabilities.documents != Some(false);
        match (supported, DataUrl::of(media)) {
            (true, Some(data @ DataUrl::Data { .. })) => file_part(filename(document), data),
            (true, Some(DataUrl::Address(url))) => InputPart::InputFile {
                filename: None,
                file_data: None,
                file_url: Some(url),
            },
            _ => self.in_words("document", media, "the model reads no documents"),
        }
    }

    /// A medium that cannot be sent is named, so that the model knows of it.
    fn in_words(&mut self, what: &str, media: &Media, why: &str) -> InputPart<'a> {
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

    fn sum_up(&mut self) {
        let told = [
            (
                self.foreign_reasoning,
                WarningKind::PartDropped,
                "reasoning part(s) left out: another model wrote them, or they hold nothing that \
                 this wire takes back",
            ),
            (
                self.loose_reasoning,
                WarningKind::PartDropped,
                "reasoning part(s) left out: nothing came of them, and the API refuses them alone",
            ),
            (
                self.states_dropped,
                WarningKind::PartDowngraded,
                "part(s) sent without what another model had attached for itself",
            ),
        ];
        for (count, kind, message) in told {
            if count > 0 {
                self.warn(kind, format!("{count} {message}"));
            }
        }
    }
}

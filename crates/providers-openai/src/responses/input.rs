//! The conversation, domain → wire.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Document, Media, ModelCapabilities, ModelId, Opaque, Part, Reasoning,
    Text as TextPart, ToolContent, ToolResult, ToolUse, Warning,
};
use switchboard_providers_common::tool_names::ToolNames;

use super::{
    parts::{
        as_pdf, content_of, file_part, image_part, open_text, output_content, reasoning_item,
        result_part, text_part,
    },
    state::{Own, goes_back},
    wire::{self, Content, DataUrl, InputPart, Item, Output, OutputContent, Text},
};
use crate::{
    conversation::Conversation,
    losses::{Losses, lead},
    media::filename,
    profile::{InstructionsRole, Profile},
    results::{as_image, result_pieces, result_text},
    text::PARAGRAPH,
    tools::wire_name,
};

/// Maps the whole conversation.
pub(crate) fn input<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    names: &ToolNames,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> Vec<Item<'a>> {
    let mut mapper = Mapper {
        model,
        names,
        capabilities,
        profile,
        losses: Losses::new(warnings),
        out: Vec::with_capacity(request.messages.len()),
        shown: Vec::new(),
        sent: HashSet::new(),
        callers: HashMap::new(),
        foreign_reasoning: 0,
        loose_reasoning: 0,
    };
    for message in &request.messages {
        mapper.message(message);
    }
    mapper.flush();
    mapper.sum_up();
    mapper.out
}

struct Mapper<'a, 'm> {
    model: &'m ModelId,
    names: &'m ToolNames,
    capabilities: &'m ModelCapabilities,
    profile: &'m Profile,
    losses: Losses<'m>,
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

impl<'a, 'm> Conversation<'a, 'm> for Mapper<'a, 'm> {
    type Piece = InputPart<'a>;

    fn losses(&mut self) -> &mut Losses<'m> {
        &mut self.losses
    }

    fn waiting(&mut self) -> &mut Vec<InputPart<'a>> {
        &mut self.shown
    }

    fn instructions(&mut self, content: Text<'a>) {
        let role = match self.profile.instructions_role {
            InstructionsRole::System => wire::Role::System,
            InstructionsRole::Developer => wire::Role::Developer,
        };
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

    fn person(&mut self, pieces: Vec<InputPart<'a>>) {
        self.say(wire::Role::User, content_of(pieces, PARAGRAPH));
    }

    fn assistant(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut turn = Turn::default();
        for part in parts {
            match part {
                Part::Text(text) => self.said(text, &mut turn),
                Part::ToolUse(tool_use) => {
                    let call = self.tool_call(tool_use, &turn);
                    self.push(call, &mut turn);
                }
                Part::Reasoning(reasoning) => self.reasoning(reasoning, &mut turn),
                Part::Opaque(opaque) => self.opaque(part, opaque, &mut turn),
                other => self
                    .losses
                    .dropped(other, "an answer is text, calls and reasoning"),
            }
        }
        self.loose_reasoning += turn.waiting.len();
    }

    fn tool_result(&mut self, result: &'a ToolResult) {
        let call_id = self.profile.tool_ids.apply(&result.tool_use_id);
        let images = result.content.iter().filter_map(as_image).count();
        let sees = self.capabilities.images != Some(false);
        let reads = self.capabilities.documents != Some(false);
        let from = format!("the result of tool `{}`", result.name);
        let is_media = |content: &ToolContent| match as_image(content) {
            Some(_) => sees,
            None => reads && as_pdf(content).is_some(),
        };
        // What becomes of images is told below.
        let in_words = result.content.iter().filter(|content| {
            as_image(content).is_none() && !(self.profile.result_media && is_media(content))
        });
        self.losses.in_words_only(in_words, &from);
        let output = if self.profile.result_media {
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
        if !sees {
            self.losses.unseen(images, &from);
        } else if !self.profile.result_media {
            self.losses.shown_after(images, &from, "server");
            let lead = lead(&wire_name(self.names, &result.name), &call_id);
            self.show(lead, result.content.iter().filter_map(as_image));
        }
    }

    fn text(&mut self, text: Cow<'a, str>) -> InputPart<'a> {
        text_part(text)
    }

    fn image(&mut self, media: &'a Media) -> InputPart<'a> {
        match DataUrl::of(media) {
            Some(image_url) if self.capabilities.images != Some(false) => image_part(image_url),
            _ => self.in_words("image", media, "the model sees no images"),
        }
    }

    fn shown(&mut self, image: DataUrl<'a>) -> InputPart<'a> {
        image_part(image)
    }

    fn audio(&mut self, media: &'a Media) -> InputPart<'a> {
        self.in_words("audio", media, "this wire takes no audio")
    }

    fn document(&mut self, document: &'a Document) -> InputPart<'a> {
        let media = &document.media;
        let supported = self.capabilities.documents != Some(false);
        match (supported, DataUrl::of(media)) {
            (true, Some(data @ DataUrl::Data { .. })) => file_part(filename(document), data),
            (true, Some(DataUrl::Address(url))) => InputPart::InputFile {
                filename: document.title.as_deref().map(Cow::Borrowed),
                file_data: None,
                file_url: Some(url),
            },
            _ => self.in_words("document", media, "the model reads no documents"),
        }
    }
}

impl<'a> Mapper<'a, '_> {
    fn say(&mut self, role: wire::Role, content: Content<'a>) {
        self.out.push(Item::Message {
            role,
            content,
            phase: None,
        });
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

    fn said(&mut self, part: &'a TextPart, turn: &mut Turn<'a>) {
        let state = part.provider_state.as_ref();
        let own = Own::of(state, self.model);
        self.losses.states += usize::from(state.is_some() && own.is_none());
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
        let state = tool_use.provider_state.as_ref();
        let own = Own::of(state, self.model);
        self.losses.states += usize::from(state.is_some() && own.is_none());
        let caller = own.and_then(|own| own.item.get("caller"));
        if let Some(caller) = caller {
            self.callers.insert(&tool_use.id, caller);
        }
        Item::Output(Output::FunctionCall {
            id: self.id(own.as_ref(), turn),
            call_id: self.profile.tool_ids.apply(&tool_use.id),
            name: wire_name(self.names, &tool_use.name),
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

    fn opaque(&mut self, part: &Part, opaque: &'a Opaque, turn: &mut Turn<'a>) {
        if let Some(own) = Own::of(Some(&opaque.provider_state), self.model) {
            let without_id = own.text("id").is_none();
            if without_id || self.id(Some(&own), turn).is_some() {
                self.push(Item::AsItCame(Cow::Borrowed(own.item)), turn);
                return;
            }
        }
        let Some(text) = opaque.text.as_deref().filter(|text| !text.is_empty()) else {
            let why = "another model's own block without a text";
            self.losses.dropped(part, why);
            return;
        };
        self.losses.downgraded(&opaque.kind, "its text");
        turn.separator = PARAGRAPH;
        self.assistant_text(text, None, turn);
        turn.separator = PARAGRAPH;
    }

    fn sum_up(&mut self) {
        let foreign = "another model wrote them, or they hold nothing that this wire takes back";
        let loose = "nothing came of them, and the API refuses them alone";
        self.losses.reasoning(self.foreign_reasoning, foreign);
        self.losses.reasoning(self.loose_reasoning, loose);
        self.losses.sum_up();
    }
}

//! Converts the messages of a conversation to input items of the Responses API.

mod input_parts;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Document, Media, ModelCapabilities, ModelId, Opaque, Part, Reasoning,
    Text as TextPart, ToolContent, ToolResult, ToolUse, Warning,
};
use switchboard_providers_common::{ContentWarnings, JoinedText, tool_names::ToolNames};

use self::input_parts::{
    appendable_text, as_pdf, file_part, image_part, join_input_parts, output_content, text_part,
    to_input_part, to_reasoning_item,
};
use super::{
    state::{ItemState, is_replayable_reasoning},
    wire::{self, Content, InputPart, Item, MediaUrl, OutputContent, TypedItem},
};
use crate::{
    content::{
        PARAGRAPH,
        conversation_mapper::ConversationMapper,
        tool_results::{as_image, result_images_heading, tool_result_pieces, tool_result_text},
    },
    server_profile::{InstructionsRole, Profile},
    wire::media::document_filename,
};

/// Converts the messages of a conversation to input items of the Responses API.
pub(crate) fn map_input_items<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    names: &ToolNames,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> Vec<Item<'a>> {
    let mut mapper = InputItemMapper {
        model,
        names,
        capabilities,
        profile,
        warnings: ContentWarnings::new(warnings),
        items: Vec::with_capacity(request.messages.len()),
        result_images: Vec::new(),
        sent_ids: HashSet::new(),
        callers: HashMap::new(),
        dropped_reasoning: 0,
        lone_reasoning: 0,
    };
    for message in &request.messages {
        mapper.map_message(message);
    }
    mapper.flush_pending_results();
    mapper.warn_dropped_content();
    mapper.items
}

struct InputItemMapper<'a, 'm> {
    model: &'m ModelId,
    names: &'m ToolNames,
    capabilities: &'m ModelCapabilities,
    profile: &'m Profile,
    warnings: ContentWarnings<'m>,
    items: Vec<Item<'a>>,
    /// Images of the last tool results, if the server accepts only text in results. They are sent
    /// in a user message after the results.
    result_images: Vec<InputPart<'a>>,
    /// Ids of the items that were added to the request. The API refuses duplicates.
    sent_ids: HashSet<&'a str>,
    /// Maps the id of a tool call to its field `caller`. The API requires the same field in the
    /// result of the call.
    callers: HashMap<&'a str, &'a Value>,
    dropped_reasoning: usize,
    /// Number of dropped reasoning items. The API refuses a reasoning item if no other item of its
    /// message follows it.
    lone_reasoning: usize,
}

/// Progress of the conversion of one assistant message.
#[derive(Default)]
struct AssistantTurn<'a> {
    /// Reasoning items that are added together with the next item. The API refuses them alone:
    /// "'reasoning' was provided without its required following item".
    waiting: Vec<Item<'a>>,
    /// Ids of the sent reasoning items of this message. A later item is sent with its id only if
    /// this list contains the reasoning item that the API requires with it (`ItemState::after`).
    reasoning_ids: Vec<&'a str>,
    /// Separator before text that is appended to the text of the last input item.
    separator: &'static str,
    /// Whether text without an item id may be appended to the text of the last input item.
    is_open: bool,
}

impl<'a, 'm> ConversationMapper<'a, 'm> for InputItemMapper<'a, 'm> {
    type Piece = InputPart<'a>;

    fn content_warnings(&mut self) -> &mut ContentWarnings<'m> {
        &mut self.warnings
    }

    fn pending_result_parts(&mut self) -> &mut Vec<InputPart<'a>> {
        &mut self.result_images
    }

    fn push_instructions(&mut self, content: JoinedText<'a>) {
        let role = match self.profile.instructions_role {
            InstructionsRole::System => wire::Role::System,
            InstructionsRole::Developer => wire::Role::Developer,
        };
        // Consecutive messages with instructions are joined, because many open models allow only
        // one such message.
        if let Some(Item::Message {
            role: before,
            content: Content::Text(text),
            ..
        }) = self.items.last_mut()
            && *before == role
        {
            text.append(PARAGRAPH, content);
            return;
        }
        self.add_message(role, Content::Text(content));
    }

    fn push_user_message(&mut self, pieces: Vec<InputPart<'a>>) {
        self.add_message(wire::Role::User, join_input_parts(pieces, PARAGRAPH));
    }

    fn push_assistant_message(&mut self, parts: impl Iterator<Item = &'a Part>) {
        let mut turn = AssistantTurn::default();
        for part in parts {
            match part {
                Part::Text(text) => self.push_assistant_text(text, &mut turn),
                Part::ToolUse(tool_use) => {
                    let call = self.map_tool_call(tool_use, &turn);
                    self.push_item(call, &mut turn);
                }
                Part::Reasoning(reasoning) => self.push_reasoning(reasoning, &mut turn),
                Part::Opaque(opaque) => self.push_opaque_part(part, opaque, &mut turn),
                other => {
                    let why = "an assistant message cannot contain it";
                    self.warnings.warn_dropped_part(other, why);
                }
            }
        }
        self.lone_reasoning += turn.waiting.len();
    }

    fn push_tool_result(&mut self, result: &'a ToolResult) {
        let call_id = self.profile.tool_ids.to_valid_call_id(&result.tool_use_id);
        let images = result.content.iter().filter_map(as_image).count();
        let supports_images = self.capabilities.images != Some(false);
        let supports_documents = self.capabilities.documents != Some(false);
        let of_result = format!("the result of tool `{}`", result.name);
        let is_media = |content: &ToolContent| match as_image(content) {
            Some(_) => supports_images,
            None => supports_documents && as_pdf(content).is_some(),
        };
        // Media of the result that are sent as text and need a warning. Images are excluded,
        // because they have other warnings below.
        let as_text = result.content.iter().filter(|content| {
            as_image(content).is_none() && !(self.profile.result_media && is_media(content))
        });
        self.warnings.warn_result_media_as_text(as_text, &of_result);
        let output = if self.profile.result_media {
            let pieces = tool_result_pieces(result, is_media).into_iter();
            join_input_parts(pieces.filter_map(to_input_part).collect(), "\n")
        } else {
            Content::Text(tool_result_text(result))
        };
        self.items.push(Item::Output(TypedItem::FunctionCallOutput {
            call_id: call_id.clone(),
            output,
            caller: self.callers.get(result.tool_use_id.as_str()).copied(),
        }));
        if images == 0 {
            return;
        }
        if !supports_images {
            self.warnings.warn_dropped_images(images, &of_result);
        } else if !self.profile.result_media {
            self.warnings.warn_moved_images(images, &of_result);
            let lead = result_images_heading(&self.names.wire_name(&result.name), &call_id);
            self.add_result_images(lead, result.content.iter().filter_map(as_image));
        }
    }

    fn map_text(&mut self, text: Cow<'a, str>) -> InputPart<'a> {
        text_part(text)
    }

    fn map_image(&mut self, media: &'a Media) -> InputPart<'a> {
        match MediaUrl::convert_media(media) {
            Some(image_url) if self.capabilities.images != Some(false) => image_part(image_url),
            _ => self.media_as_text("image", media, "the model does not support images"),
        }
    }

    fn map_result_image(&mut self, image: MediaUrl<'a>) -> InputPart<'a> {
        image_part(image)
    }

    fn map_audio(&mut self, media: &'a Media) -> InputPart<'a> {
        self.media_as_text("audio", media, "this API does not support audio")
    }

    fn map_document(&mut self, document: &'a Document) -> InputPart<'a> {
        let media = &document.media;
        let supported = self.capabilities.documents != Some(false);
        match (supported, MediaUrl::convert_media(media)) {
            (true, Some(data @ MediaUrl::Data { .. })) => {
                file_part(document_filename(document), data)
            }
            (true, Some(MediaUrl::Address(url))) => InputPart::InputFile {
                filename: document.title.as_deref().map(Cow::Borrowed),
                file_data: None,
                file_url: Some(url),
            },
            _ => self.media_as_text("document", media, "the model does not support documents"),
        }
    }
}

impl<'a> InputItemMapper<'a, '_> {
    fn add_message(&mut self, role: wire::Role, content: Content<'a>) {
        self.items.push(Item::Message {
            role,
            content,
            phase: None,
        });
    }

    /// Adds the reasoning items that wait for a following item, and then `item`.
    fn push_item(&mut self, item: Item<'a>, turn: &mut AssistantTurn<'a>) {
        self.items.append(&mut turn.waiting);
        turn.is_open = false;
        self.items.push(item);
    }

    /// Returns the item id in `state` and marks it as sent. Returns `None` if the item must be sent
    /// without an id: `state` has no id, the request lacks the reasoning item that this item
    /// requires, or the request already contains the id.
    fn claim_item_id(
        &mut self,
        state: Option<&ItemState<'a>>,
        turn: &AssistantTurn<'a>,
    ) -> Option<&'a str> {
        let state = state?;
        let has_reasoning = state
            .after
            .is_none_or(|after| turn.reasoning_ids.contains(&after));
        let id = state.text_field("id").filter(|_| has_reasoning)?;
        self.sent_ids.insert(id).then_some(id)
    }

    fn push_assistant_text(&mut self, part: &'a TextPart, turn: &mut AssistantTurn<'a>) {
        let state = part.provider_state.as_ref();
        let own = ItemState::from_provider_state(state, self.model);
        self.warnings.dropped_states += usize::from(state.is_some() && own.is_none());
        if part.text.is_empty() {
            return;
        }
        // Text parts with the same item id are pieces of one message, so they share an item.
        if let Some(own) = &own
            && let Some(Item::Output(TypedItem::Message { id, content, .. })) =
                self.items.last_mut()
            && turn.waiting.is_empty()
            && id.is_some()
            && own.text_field("id") == *id
        {
            content.push(output_content(part, own));
            return;
        }
        if let Some(own) = &own
            && let Some(id) = self.claim_item_id(Some(own), turn)
        {
            let message = TypedItem::Message {
                id: Some(id),
                role: wire::Role::Assistant,
                status: Some(own.text_field("status").unwrap_or("completed")),
                phase: own.text_field("phase"),
                content: vec![output_content(part, own)],
            };
            self.push_item(Item::Output(message), turn);
            return;
        }
        let phase = own.and_then(|own| own.text_field("phase"));
        self.push_text_without_id(&part.text, phase, turn);
    }

    /// Adds assistant text without an item id. If the last item is such text too, the text is
    /// appended to it, because some APIs split text at citations.
    fn push_text_without_id(
        &mut self,
        text: &'a str,
        phase: Option<&'a str>,
        turn: &mut AssistantTurn<'a>,
    ) {
        let separator = std::mem::take(&mut turn.separator);
        if turn.is_open
            && turn.waiting.is_empty()
            && let Some((before, phase_before)) = self.items.last_mut().and_then(appendable_text)
            && phase_before == phase
        {
            before.push(separator, text);
            return;
        }
        let role = wire::Role::Assistant;
        let item = if self.profile.typed_answers {
            let text = OutputContent::OutputText {
                text: text.into(),
                annotations: &[],
            };
            Item::Output(TypedItem::Message {
                id: None,
                role,
                status: None,
                phase,
                content: vec![text],
            })
        } else {
            Item::Message {
                role,
                content: Content::Text(text.into()),
                phase,
            }
        };
        self.push_item(item, turn);
        turn.is_open = true;
    }

    fn map_tool_call(&mut self, tool_use: &'a ToolUse, turn: &AssistantTurn<'a>) -> Item<'a> {
        let state = tool_use.provider_state.as_ref();
        let own = ItemState::from_provider_state(state, self.model);
        self.warnings.dropped_states += usize::from(state.is_some() && own.is_none());
        let caller = own.and_then(|own| own.item.get("caller"));
        if let Some(caller) = caller {
            self.callers.insert(&tool_use.id, caller);
        }
        Item::Output(TypedItem::FunctionCall {
            id: self.claim_item_id(own.as_ref(), turn),
            call_id: self.profile.tool_ids.to_valid_call_id(&tool_use.id),
            name: self.names.wire_name(&tool_use.name),
            arguments: wire::CallArguments(&tool_use.input),
            status: own.and_then(|own| own.text_field("status")),
            caller,
            namespace: own.and_then(|own| own.text_field("namespace")),
        })
    }

    fn push_reasoning(&mut self, reasoning: &'a Reasoning, turn: &mut AssistantTurn<'a>) {
        let state = reasoning.provider_state.as_ref();
        let item = state
            .and_then(|state| state.data_for_model(self.model))
            .and_then(Value::as_object)
            .filter(|item| is_replayable_reasoning(item));
        let id = item.and_then(|item| item.get("id")).and_then(Value::as_str);
        let (Some(item), Some(id)) = (item, id) else {
            self.dropped_reasoning += 1;
            return;
        };
        if !self.sent_ids.insert(id) {
            return;
        }
        turn.reasoning_ids.push(id);
        turn.waiting
            .push(Item::Unchanged(to_reasoning_item(item, &reasoning.text)));
    }

    fn push_opaque_part(&mut self, part: &Part, opaque: &'a Opaque, turn: &mut AssistantTurn<'a>) {
        if let Some(own) = ItemState::from_provider_state(Some(&opaque.provider_state), self.model)
        {
            let has_no_id = own.text_field("id").is_none();
            if has_no_id || self.claim_item_id(Some(&own), turn).is_some() {
                self.push_item(Item::Unchanged(Cow::Borrowed(own.item)), turn);
                return;
            }
        }
        let Some(text) = opaque.text.as_deref().filter(|text| !text.is_empty()) else {
            let why = "another model created it, and it has no text";
            self.warnings.warn_dropped_part(part, why);
            return;
        };
        self.warnings.warn_downgraded_part(&opaque.kind, "its text");
        turn.separator = PARAGRAPH;
        self.push_text_without_id(text, None, turn);
        turn.separator = PARAGRAPH;
    }

    fn warn_dropped_content(&mut self) {
        let why = "another model created them, or the API does not accept them back";
        self.warnings
            .warn_dropped_reasoning(self.dropped_reasoning, why);
        let why = "no item follows them, which the API requires";
        self.warnings
            .warn_dropped_reasoning(self.lone_reasoning, why);
        self.warnings.warn_dropped_part_states();
    }
}

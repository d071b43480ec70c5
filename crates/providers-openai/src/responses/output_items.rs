//! Assembles the output items of a streamed answer, and their parts.

use switchboard_domain::{JsonObject, ModelEvent, ModelId, Opaque, Part, PartStart, ProviderState};
use switchboard_providers_common::{
    AnswerEvents, AnswerSummary, JsonShapeRestorer, ToolMapping, ToolUseIds, emit_part_state,
    opaque_block_text, provider::value_to_text,
};

use super::{
    json_fields::{object_array_field, text_field},
    state,
    wire::Event,
};
use crate::content::PARAGRAPH;

/// Reference of a stream event to an output item: the item's id, and its index in the answer's list
/// of items. Some servers send only one of them, or neither.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ItemAddress<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) index: Option<u64>,
}

impl<'a> ItemAddress<'a> {
    /// Returns the id and the index of the item that an event refers to. The id in the event's
    /// `item` takes precedence over its `item_id`.
    pub(crate) fn from_stream_event(event: &'a Event) -> Self {
        let own = event.item.as_ref().and_then(|item| text_field(item, "id"));
        let named = event.item_id.as_deref().filter(|id| !id.is_empty());
        Self {
            id: own.or(named),
            index: event.output_index,
        }
    }
}

/// Maximum number of recent items that are compared with an event, to find the item that the event
/// refers to. The limit keeps the total time linear in the number of items.
const MAX_SEARCHED: usize = 256;

/// Content of an output item that is streamed in pieces, such as a text. The number is the index of
/// the content in the item, or `None` if the server did not send the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Text(Option<u64>),
    Refusal(Option<u64>),
    /// Part of the reasoning summary, by its index in the item's `summary`.
    Summary(u64),
    /// Part of the reasoning text itself, by its index in the item's `content`.
    Reasoning(u64),
    /// Arguments of a function call, as JSON text.
    Arguments,
}

impl Content {
    fn item_type(self) -> ItemType {
        match self {
            Self::Text(_) | Self::Refusal(_) => ItemType::Message,
            Self::Summary(_) | Self::Reasoning(_) => ItemType::Reasoning,
            Self::Arguments => ItemType::Call,
        }
    }

    /// Returns whether two references to contents of the same item mean the same content. A text or
    /// refusal without an index matches every index.
    fn is_same_content(self, other: Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) | (Self::Refusal(one), Self::Refusal(other)) => {
                one == other || one.is_none() || other.is_none()
            }
            _ => self == other,
        }
    }
}

/// Items of one answer, assembled from stream events.
#[derive(Debug)]
pub(crate) struct OutputItems {
    pub(crate) answer: AnswerEvents,
    model: ModelId,
    ids: ToolUseIds,
    tool_mapping: ToolMapping,
    list: Vec<Item>,
    /// Indexes in `list` of calls that ended without a status, such as `completed`. The start of
    /// another item shows that their input is complete. If the answer ends first, it may be
    /// incomplete.
    ended_calls: Vec<usize>,
    /// Id of the last reasoning item. Items that start later store this id in `after`.
    reasoning_id: Option<String>,
    summary: AnswerSummary,
}

#[derive(Debug)]
struct Item {
    kind: ItemType,
    id: Option<String>,
    index: Option<u64>,
    is_complete: bool,
    /// Whether this call ended without a status, such as `completed`. The start of another item
    /// then shows that its input is complete.
    has_ended: bool,
    /// Id of the last reasoning item before this item. A later request that contains the id of this
    /// item must also contain that reasoning item.
    after: Option<String>,
    /// Message parts that were emitted for the item. A message has one part for each text or
    /// refusal. A reasoning item or a call has one part. A call has none until the tool's name is
    /// known.
    parts: Vec<EmittedPart>,
    /// Contents of this reasoning item or call that were already emitted. If the server sends the
    /// whole text again at the end of the item, that text is ignored.
    received: Vec<Content>,
}

/// A message part that was emitted for an item.
#[derive(Debug)]
struct EmittedPart {
    /// Index of the part in the answer, as in the emitted events.
    number: u32,
    content: Content,
    restorer: JsonShapeRestorer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemType {
    Message,
    Reasoning,
    Call,
    Opaque,
}

impl ItemType {
    fn from_item_json(item: &JsonObject) -> Self {
        match text_field(item, "type") {
            Some("message") => Self::Message,
            Some("reasoning") => Self::Reasoning,
            Some("function_call") => Self::Call,
            _ => Self::Opaque,
        }
    }
}

impl Item {
    /// Returns whether the item has exactly the id and index of `address`.
    fn matches_address(&self, address: ItemAddress<'_>) -> bool {
        address.id.is_some() && self.id.as_deref() == address.id && self.index == address.index
    }

    /// Returns whether any text of `content` has arrived.
    fn has_content(&self, content: Content) -> bool {
        let mut texts = self.parts.iter().rev();
        match self.kind {
            ItemType::Message => texts.any(|part| part.content.is_same_content(content)),
            _ => self.received.contains(&content),
        }
    }
}

impl EmittedPart {
    /// Emits the text as a delta of this part. Emits nothing for `None`.
    fn emit_text(&self, text: Option<String>, events: &mut Vec<ModelEvent>) {
        let index = self.number;
        events.extend(text.map(|text| match self.content.item_type() {
            ItemType::Reasoning => ModelEvent::ReasoningDelta { index, text },
            ItemType::Call => ModelEvent::ToolInputDelta { index, json: text },
            _ => ModelEvent::TextDelta { index, text },
        }));
    }

    fn emit_part_state(&self, state: Option<ProviderState>, events: &mut Vec<ModelEvent>) {
        if let Some(state) = state {
            emit_part_state(self.number, state, events);
        }
    }

    fn finish_part(&mut self, state: Option<ProviderState>, events: &mut Vec<ModelEvent>) {
        let rest = self.restorer.restore_buffer();
        self.emit_text(rest, events);
        self.emit_part_state(state, events);
        events.push(ModelEvent::PartFinished { index: self.number });
    }

    /// Emits the buffered text of an incomplete part unchanged, and does not finish the part.
    fn emit_buffered_text(&mut self, events: &mut Vec<ModelEvent>) {
        let rest = self.restorer.take_raw_buffer();
        self.emit_text(rest, events);
    }
}

impl OutputItems {
    pub(crate) fn new(model: ModelId, ids: ToolUseIds, answer: AnswerEvents) -> Self {
        Self {
            answer,
            model,
            ids,
            tool_mapping: ToolMapping::default(),
            list: Vec::new(),
            ended_calls: Vec::new(),
            reasoning_id: None,
            summary: AnswerSummary::default(),
        }
    }

    /// Sets the changes that the request mapping made to tool names and schemas. They are reversed
    /// in the items.
    pub(crate) fn set_tool_mapping(&mut self, tool_mapping: ToolMapping) {
        self.tool_mapping = tool_mapping;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the facts that decide the finish reason: whether the answer has a refusal or tool
    /// calls, and the number of calls without a tool name.
    pub(crate) fn answer_summary(&self) -> AnswerSummary {
        self.summary
    }

    /// Starts an item of the answer, unless it has already started.
    pub(crate) fn ensure_item_started(
        &mut self,
        address: ItemAddress<'_>,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        let is_started =
            |(_, item): (usize, &Item)| !item.is_complete && item.matches_address(address);
        if !self.recent_items().any(is_started) {
            self.start_item(address, ItemType::from_item_json(item), Some(item), events);
        }
    }

    /// Adds streamed text to one content of the item at `address`. If no such item is open, starts
    /// a new item, except for arguments: they are ignored, because a call needs the name of a tool.
    pub(crate) fn add_content(
        &mut self,
        address: ItemAddress<'_>,
        content: Content,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        if text.is_empty() {
            return;
        }
        let at = match self.find_item(address, content.item_type()) {
            Some(at) => at,
            None if content == Content::Arguments => return,
            None => self.start_item(address, content.item_type(), None, events),
        };
        self.add_content_at(at, content, text, events);
    }

    /// Emits the whole text of one content of an item, unless a piece of it was already streamed or
    /// the item is complete.
    pub(crate) fn add_whole_content(
        &mut self,
        address: ItemAddress<'_>,
        content: Content,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        let is_new = match self.find_item(address, content.item_type()) {
            Some(at) => !self.list[at].has_content(content),
            None => !self.is_item_complete(address, content.item_type()),
        };
        if is_new {
            self.add_content(address, content, text, events);
        }
    }

    /// Completes an item: emits content that was not streamed, and the provider state with which
    /// later requests send the item back. A call with the status `incomplete` gets no
    /// `PartFinished`, so that it is not executed.
    pub(crate) fn complete_item(
        &mut self,
        address: ItemAddress<'_>,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        let item_type = ItemType::from_item_json(item);
        let at = match self.find_item(address, item_type) {
            Some(at) => at,
            // Some servers send the complete item twice. The second copy is ignored.
            None if self.is_item_complete(address, item_type) => return,
            None => self.start_item(address, item_type, Some(item), events),
        };
        self.list[at].is_complete = true;
        match item_type {
            ItemType::Message => self.complete_message(at, item, events),
            ItemType::Reasoning => self.complete_reasoning(at, item, events),
            ItemType::Call => self.complete_call(at, item, events),
            ItemType::Opaque => {
                let part = Part::Opaque(Opaque {
                    kind: text_field(item, "type").unwrap_or("item").to_owned(),
                    text: opaque_block_text(item),
                    provider_state: state::opaque_part_state(
                        &self.model,
                        item,
                        self.list[at].after.as_deref(),
                    ),
                });
                self.answer.emit_whole_part(part, events);
            }
        }
    }

    /// Completes all items at the end of the answer. If the answer is incomplete, a call without
    /// the status `completed` gets no `PartFinished`, so that it is not executed.
    pub(crate) fn finish_items(&mut self, is_incomplete: bool, events: &mut Vec<ModelEvent>) {
        for item in &mut self.list {
            let is_open = !std::mem::replace(&mut item.is_complete, true);
            let has_ended = std::mem::take(&mut item.has_ended);
            if !is_open && !has_ended {
                continue;
            }
            let is_call = item.kind == ItemType::Call;
            self.summary.nameless_calls += usize::from(is_call && item.parts.is_empty());
            for part in &mut item.parts {
                if is_call && is_incomplete {
                    part.emit_buffered_text(events);
                } else {
                    part.finish_part(None, events);
                }
            }
        }
    }

    /// Emits the texts that are still buffered when the answer is interrupted.
    pub(crate) fn emit_buffered_text(&mut self, events: &mut Vec<ModelEvent>) {
        for part in self.list.iter_mut().flat_map(|item| &mut item.parts) {
            part.emit_buffered_text(events);
        }
    }

    fn add_content_at(
        &mut self,
        at: usize,
        content: Content,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        if text.is_empty() {
            return;
        }
        let is_message = content.item_type() == ItemType::Message;
        if is_message && !self.list[at].has_content(content) {
            let is_refusal = matches!(content, Content::Refusal(_));
            self.summary.has_refusal |= is_refusal;
            let restorer = if is_refusal {
                JsonShapeRestorer::default()
            } else {
                self.tool_mapping.answer_restorer()
            };
            self.start_part(at, PartStart::Text, content, restorer, events);
        }
        let Item {
            parts, received, ..
        } = &mut self.list[at];
        let mut parts = parts.iter_mut().rev();
        let Some(part) = parts.find(|part| !is_message || part.content.is_same_content(content))
        else {
            return;
        };
        if !is_message && received.last() != Some(&content) {
            if !received.is_empty() {
                part.emit_text(Some(PARAGRAPH.to_owned()), events);
            }
            received.push(content);
        }
        let text = part.restorer.push(text);
        part.emit_text(text, events);
    }

    fn complete_message(&mut self, at: usize, item: &JsonObject, events: &mut Vec<ModelEvent>) {
        let contents = object_array_field(item, "content");
        for (index, content) in (0..).zip(&contents) {
            let (content, whole) = match text_field(content, "refusal") {
                Some(refusal) => (Content::Refusal(Some(index)), refusal),
                None => (
                    Content::Text(Some(index)),
                    text_field(content, "text").unwrap_or_default(),
                ),
            };
            if !self.list[at].has_content(content) {
                self.add_content_at(at, content, whole, events);
            }
        }
        let Item { after, parts, .. } = &mut self.list[at];
        for (position, part) in (0..).zip(parts) {
            let (Content::Text(index) | Content::Refusal(index)) = part.content else {
                continue;
            };
            let index = usize::try_from(index.unwrap_or(position)).ok();
            let content = index.and_then(|index| contents.get(index)).copied();
            let state = state::text_part_state(&self.model, item, content, after.as_deref());
            part.finish_part(state, events);
        }
    }

    fn complete_reasoning(&mut self, at: usize, item: &JsonObject, events: &mut Vec<ModelEvent>) {
        let summaries = (0..)
            .map(Content::Summary)
            .zip(object_array_field(item, "summary"));
        let contents = (0..)
            .map(Content::Reasoning)
            .zip(object_array_field(item, "content"));
        for (content, object) in summaries.chain(contents) {
            if !self.list[at].has_content(content) {
                let whole = text_field(object, "text").unwrap_or_default();
                self.add_content_at(at, content, whole, events);
            }
        }
        for part in &mut self.list[at].parts {
            part.finish_part(state::reasoning_part_state(&self.model, item), events);
        }
        // Some servers change the id of an item while it is streamed. The last id is stored.
        if let Some(id) = text_field(item, "id") {
            self.reasoning_id = Some(id.to_owned());
        }
    }

    fn complete_call(&mut self, at: usize, item: &JsonObject, events: &mut Vec<ModelEvent>) {
        if self.list[at].parts.is_empty() {
            self.start_call(at, item, events);
        }
        if !self.list[at].has_content(Content::Arguments) {
            let json = value_to_text(item.get("arguments"));
            self.add_content_at(at, Content::Arguments, &json, events);
        }
        let known = &mut self.list[at];
        let Some(part) = known.parts.first_mut() else {
            self.summary.nameless_calls += 1;
            return;
        };
        let state = state::tool_call_state(&self.model, item, known.after.as_deref());
        part.emit_part_state(state, events);
        match text_field(item, "status") {
            Some("completed") => part.finish_part(None, events),
            // An incomplete call stays open, so that it is not executed.
            Some("incomplete") => part.emit_buffered_text(events),
            // Without a final status, the start of another item shows that the call is complete.
            _ => {
                known.has_ended = true;
                self.ended_calls.push(at);
            }
        }
    }

    /// Returns the recent items with their positions, from the last to the first.
    fn recent_items(&self) -> impl Iterator<Item = (usize, &Item)> {
        self.list.iter().enumerate().rev().take(MAX_SEARCHED)
    }

    /// Returns the position in `list` of the open item of the type `item_type` that an event refers
    /// to. Searches by id and then by index. Otherwise takes the last open item whose index and id
    /// do not contradict the event. Returns `None` without such an item.
    fn find_item(&self, address: ItemAddress<'_>, item_type: ItemType) -> Option<usize> {
        let find = |is_meant: &dyn Fn(&Item) -> bool| {
            let is_open = |item: &Item| !item.is_complete && item.kind == item_type;
            let mut items = self.recent_items();
            items
                .find(|(_, item)| is_open(item) && is_meant(item))
                .map(|(at, _)| at)
        };
        let by_id = || find(&|item| address.id.is_some() && item.id.as_deref() == address.id);
        let by_index = || find(&|item| address.index.is_some() && item.index == address.index);
        // Some servers (LiteLLM, vLLM) send a new id in each event. The item is then found by its
        // index or, without an index, as the last open item of its type.
        let current = || {
            find(&|item| {
                let is_other_index = address.index.is_some() && item.index.is_some();
                let is_other_id =
                    address.index.is_some() && address.id.is_some() && item.id.is_some();
                !is_other_index && !is_other_id
            })
        };
        by_id().or_else(by_index).or_else(current)
    }

    /// Returns whether the item that an event refers to is already complete.
    fn is_item_complete(&self, address: ItemAddress<'_>, item_type: ItemType) -> bool {
        self.recent_items().any(|(_, item)| {
            item.is_complete && item.kind == item_type && item.matches_address(address)
        })
    }

    fn start_item(
        &mut self,
        address: ItemAddress<'_>,
        item_type: ItemType,
        item: Option<&JsonObject>,
        events: &mut Vec<ModelEvent>,
    ) -> usize {
        // The start of another item shows that calls without a status are complete.
        for at in std::mem::take(&mut self.ended_calls) {
            let ended = &mut self.list[at];
            if std::mem::take(&mut ended.has_ended) {
                ended.parts[0].finish_part(None, events);
            }
        }
        let at = self.list.len();
        self.list.push(Item {
            kind: item_type,
            id: address.id.map(str::to_owned),
            index: address.index,
            is_complete: false,
            has_ended: false,
            after: self.reasoning_id.clone(),
            parts: Vec::new(),
            received: Vec::new(),
        });
        match (item_type, item) {
            (ItemType::Reasoning, _) => {
                self.reasoning_id = address.id.map(str::to_owned);
                let (start, content) = (PartStart::Reasoning, Content::Reasoning(0));
                self.start_part(at, start, content, JsonShapeRestorer::default(), events);
            }
            (ItemType::Call, Some(item)) => self.start_call(at, item, events),
            _ => {}
        }
        at
    }

    /// Starts the message part of a call. Does nothing if the item does not contain the name of the
    /// tool.
    fn start_call(&mut self, at: usize, item: &JsonObject, events: &mut Vec<ModelEvent>) {
        let Some(name) = text_field(item, "name") else {
            return;
        };
        let name = self.tool_mapping.declared_name(name).to_owned();
        let restorer = self.tool_mapping.input_restorer(&name);
        let id = self
            .ids
            .claim_tool_use_id(text_field(item, "call_id").or(text_field(item, "id")));
        self.summary.has_calls = true;
        let start = PartStart::ToolUse { id, name };
        self.start_part(at, start, Content::Arguments, restorer, events);
    }

    fn start_part(
        &mut self,
        at: usize,
        start: PartStart,
        content: Content,
        restorer: JsonShapeRestorer,
        events: &mut Vec<ModelEvent>,
    ) {
        let number = self.answer.start_part(start, events);
        self.list[at].parts.push(EmittedPart {
            number,
            content,
            restorer,
        });
    }
}

//! The items of an answer and their parts.

mod completion;

use serde_json::Value;
use switchboard_domain::{JsonObject, ModelEvent, ModelId, PartStart};
use switchboard_providers_common::{AnswerSummary, LocalIds, ShapeRestorer, ToolMapping};

use super::{
    fields::{json_text, text},
    wire::Event,
};
use crate::content::PARAGRAPH;

/// Id and index of the item that an event refers to. Some servers send only one of them, or
/// neither.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ItemAddress<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) index: Option<u64>,
}

impl<'a> ItemAddress<'a> {
    /// Returns the address of the item that an event refers to.
    pub(crate) fn of(event: &'a Event) -> Self {
        let own = event.item.as_ref().and_then(|item| text(item, "id"));
        let named = event.item_id.as_deref().filter(|id| !id.is_empty());
        Self {
            id: own.or(named),
            index: event.output_index,
        }
    }
}

/// Maximum number of recent items that an event may refer to. Earlier items are not searched, so
/// that the time is linear in the number of items.
const MAX_SEARCHED: usize = 256;

/// A text of a reasoning item, with its index in the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReasoningText {
    Summary(u64),
    /// Text of the reasoning itself, not of a summary.
    Content(u64),
}

/// Items of one answer, assembled from stream events.
#[derive(Debug)]
pub(crate) struct Items {
    model: ModelId,
    ids: LocalIds,
    tool_mapping: ToolMapping,
    list: Vec<Item>,
    /// Positions of calls that ended without a status and may be incomplete.
    ended_calls: Vec<usize>,
    next_part: u32,
    /// Id of the last reasoning item.
    reasoning_id: Option<String>,
    /// Number of calls without a name.
    nameless_calls: usize,
    has_refusal: bool,
    has_calls: bool,
}

#[derive(Debug)]
struct Item {
    id: Option<String>,
    index: Option<u64>,
    is_complete: bool,
    /// Id of the reasoning item before this item.
    after: Option<String>,
    kind: ItemKind,
}

#[derive(Debug)]
enum ItemKind {
    Message(Vec<MessageText>),
    Reasoning {
        part: u32,
        /// Indices of the texts that have content.
        texts: Vec<ReasoningText>,
    },
    Call {
        /// Index of the emitted part. `None` until the name of the tool is known.
        part: Option<u32>,
        /// Whether arguments of the call were streamed.
        has_arguments: bool,
        /// Whether the call ended without a status, so that it may be incomplete.
        has_ended: bool,
        restorer: ShapeRestorer,
    },
    Opaque,
}

/// A text or a refusal in a message item.
#[derive(Debug)]
struct MessageText {
    part: u32,
    index: Option<u64>,
    is_refusal: bool,
    restorer: ShapeRestorer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemType {
    Message,
    Reasoning,
    Call,
    Opaque,
}

impl ItemType {
    fn of(item: &JsonObject) -> Self {
        match text(item, "type") {
            Some("message") => Self::Message,
            Some("reasoning") => Self::Reasoning,
            Some("function_call") => Self::Call,
            _ => Self::Opaque,
        }
    }
}

impl Item {
    /// Returns whether the item has exactly the id and index of `address`.
    fn is_at(&self, address: ItemAddress<'_>) -> bool {
        address.id.is_some() && self.id.as_deref() == address.id && self.index == address.index
    }
}

impl ItemKind {
    fn item_type(&self) -> ItemType {
        match self {
            Self::Message(_) => ItemType::Message,
            Self::Reasoning { .. } => ItemType::Reasoning,
            Self::Call { .. } => ItemType::Call,
            Self::Opaque => ItemType::Opaque,
        }
    }
}

impl MessageText {
    fn matches(&self, index: Option<u64>, is_refusal: bool) -> bool {
        let same_index = self.index == index || self.index.is_none() || index.is_none();
        same_index && self.is_refusal == is_refusal
    }
}

fn finish_call(index: u32, restorer: &mut ShapeRestorer, events: &mut Vec<ModelEvent>) {
    let json = restorer.finish();
    events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
    events.push(ModelEvent::PartFinished { index });
}

/// Emits the buffered input of an incomplete call, whose part stays open.
fn interrupt_call(index: u32, restorer: &mut ShapeRestorer, events: &mut Vec<ModelEvent>) {
    let json = restorer.interrupt();
    events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
}

impl Items {
    /// Creates the empty list of items for an answer of `model`.
    pub(crate) fn new(model: ModelId, ids: LocalIds) -> Self {
        Self {
            model,
            ids,
            tool_mapping: ToolMapping::default(),
            list: Vec::new(),
            ended_calls: Vec::new(),
            next_part: 0,
            reasoning_id: None,
            nameless_calls: 0,
            has_refusal: false,
            has_calls: false,
        }
    }

    /// Sets the changes of the request's tools and answer schema, which are reversed in the items.
    pub(crate) fn set_tool_mapping(&mut self, tool_mapping: ToolMapping) {
        self.tool_mapping = tool_mapping;
    }

    /// Returns whether the answer has no items.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the facts that decide the finish reason of the answer.
    pub(crate) fn summary(&self) -> AnswerSummary {
        AnswerSummary {
            has_refusal: self.has_refusal,
            has_calls: self.has_calls,
            nameless_calls: self.nameless_calls,
        }
    }

    /// Starts an item of the answer.
    pub(crate) fn add(
        &mut self,
        address: ItemAddress<'_>,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        let is_open = self
            .recent_items()
            .any(|(_, item)| !item.is_complete && item.is_at(address));
        if !is_open {
            self.start_item(address, ItemType::of(item), Some(item), events);
        }
    }

    /// Completes an item of the answer. The item may be cut off.
    pub(crate) fn complete(
        &mut self,
        address: ItemAddress<'_>,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        let item_type = ItemType::of(item);
        let at = match self.find_item(address, item_type) {
            Some(at) => at,
            // Some servers send the same item twice.
            None if self.is_known(address, item_type) => return,
            None => self.start_item(address, item_type, Some(item), events),
        };
        match item_type {
            ItemType::Message => self.complete_message(at, item, events),
            ItemType::Reasoning => self.complete_reasoning(at, item, events),
            ItemType::Call => self.complete_call(at, item, events),
            ItemType::Opaque => self.complete_opaque(at, item, events),
        }
    }

    /// Adds streamed text of a message or of a refusal.
    pub(crate) fn add_text(
        &mut self,
        address: ItemAddress<'_>,
        content_index: Option<u64>,
        is_refusal: bool,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        if text.is_empty() {
            return;
        }
        let at = self.find_or_start(address, ItemType::Message, events);
        if self.message_text(at, content_index, is_refusal).is_none() {
            self.start_message_text(at, content_index, is_refusal, events);
        }
        if let Some(message_text) = self.message_text_mut(at, content_index, is_refusal) {
            let index = message_text.part;
            let text = message_text.restorer.push(text);
            events.extend(text.map(|text| ModelEvent::TextDelta { index, text }));
        }
    }

    /// Adds a whole text of a message unless parts of it were streamed.
    pub(crate) fn add_whole_text(
        &mut self,
        address: ItemAddress<'_>,
        content_index: Option<u64>,
        is_refusal: bool,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        let known = self.find_item(address, ItemType::Message);
        let is_new =
            known.is_none_or(|at| self.message_text(at, content_index, is_refusal).is_none());
        if is_new && !(known.is_none() && self.is_known(address, ItemType::Message)) {
            self.add_text(address, content_index, is_refusal, text, events);
        }
    }

    pub(crate) fn add_reasoning(
        &mut self,
        address: ItemAddress<'_>,
        kind: ReasoningText,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        if text.is_empty() {
            return;
        }
        let at = self.find_or_start(address, ItemType::Reasoning, events);
        let Some(Item {
            kind: ItemKind::Reasoning { part, texts },
            ..
        }) = self.list.get_mut(at)
        else {
            return;
        };
        let index = *part;
        if texts.last() != Some(&kind) {
            if !texts.is_empty() {
                let text = PARAGRAPH.to_owned();
                events.push(ModelEvent::ReasoningDelta { index, text });
            }
            texts.push(kind);
        }
        let text = text.to_owned();
        events.push(ModelEvent::ReasoningDelta { index, text });
    }

    /// Adds a whole reasoning text unless parts of it were streamed.
    pub(crate) fn add_whole_reasoning(
        &mut self,
        address: ItemAddress<'_>,
        kind: ReasoningText,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        let known = self.find_item(address, ItemType::Reasoning);
        let is_new = known.is_none_or(|at| !self.has_reasoning_text(at, kind));
        if is_new && !(known.is_none() && self.is_known(address, ItemType::Reasoning)) {
            self.add_reasoning(address, kind, text, events);
        }
    }

    /// Adds streamed arguments of a call.
    pub(crate) fn add_arguments(
        &mut self,
        address: ItemAddress<'_>,
        json: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        let at = self.find_item(address, ItemType::Call);
        let call = at.and_then(|at| self.list.get_mut(at));
        if let Some(Item {
            kind:
                ItemKind::Call {
                    part: Some(index),
                    has_arguments,
                    restorer,
                    ..
                },
            ..
        }) = call
            && !json.is_empty()
        {
            *has_arguments = true;
            let index = *index;
            let json = restorer.push(json);
            events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
        }
    }

    /// Adds the whole arguments of a call unless parts of them were streamed.
    pub(crate) fn add_whole_arguments(
        &mut self,
        address: ItemAddress<'_>,
        arguments: &Value,
        events: &mut Vec<ModelEvent>,
    ) {
        let at = self.find_item(address, ItemType::Call);
        if let Some(ItemKind::Call {
            has_arguments: false,
            ..
        }) = at.and_then(|at| self.list.get(at)).map(|item| &item.kind)
        {
            self.add_arguments(address, &json_text(arguments), events);
        }
    }

    /// Returns the items that an event may refer to, from the last to the first.
    fn recent_items(&self) -> impl Iterator<Item = (usize, &Item)> {
        self.list.iter().enumerate().rev().take(MAX_SEARCHED)
    }

    /// Returns the position of the open item that an event refers to.
    fn find_item(&self, address: ItemAddress<'_>, item_type: ItemType) -> Option<usize> {
        let find = |is_meant: &dyn Fn(&Item) -> bool| {
            let is_open = |item: &Item| !item.is_complete && item.kind.item_type() == item_type;
            let mut items = self.recent_items();
            items
                .find(|(_, item)| is_open(item) && is_meant(item))
                .map(|(at, _)| at)
        };
        let by_id = || find(&|item| address.id.is_some() && item.id.as_deref() == address.id);
        let by_index = || find(&|item| address.index.is_some() && item.index == address.index);
        // Some servers (LiteLLM, vLLM) send a new id in each event. The index then decides, and
        // without an index the current item of the type.
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
    fn is_known(&self, address: ItemAddress<'_>, item_type: ItemType) -> bool {
        self.recent_items().any(|(_, item)| {
            item.is_complete && item.kind.item_type() == item_type && item.is_at(address)
        })
    }

    /// Marks the item at position `at` as complete.
    fn mark_complete(&mut self, at: usize) {
        if let Some(item) = self.list.get_mut(at) {
            item.is_complete = true;
        }
    }

    fn find_or_start(
        &mut self,
        address: ItemAddress<'_>,
        item_type: ItemType,
        events: &mut Vec<ModelEvent>,
    ) -> usize {
        match self.find_item(address, item_type) {
            Some(at) => at,
            None => self.start_item(address, item_type, None, events),
        }
    }

    fn start_item(
        &mut self,
        address: ItemAddress<'_>,
        item_type: ItemType,
        item: Option<&JsonObject>,
        events: &mut Vec<ModelEvent>,
    ) -> usize {
        self.finish_ended_calls(events);
        let kind = match item_type {
            ItemType::Message => ItemKind::Message(Vec::new()),
            ItemType::Reasoning => ItemKind::Reasoning {
                part: self.start_part(PartStart::Reasoning, events),
                texts: Vec::new(),
            },
            ItemType::Call => ItemKind::Call {
                part: item.and_then(|item| self.start_call(item, events)),
                has_arguments: false,
                has_ended: false,
                restorer: item
                    .map(|item| self.input_restorer(item))
                    .unwrap_or_default(),
            },
            ItemType::Opaque => ItemKind::Opaque,
        };
        let after = self.reasoning_id.clone();
        if item_type == ItemType::Reasoning {
            self.reasoning_id = address.id.map(str::to_owned);
        }
        let at = self.list.len();
        self.list.push(Item {
            id: address.id.map(str::to_owned),
            index: address.index,
            is_complete: false,
            after,
            kind,
        });
        at
    }

    /// Finishes calls that ended without a status. The start of another item shows that they are
    /// complete.
    fn finish_ended_calls(&mut self, events: &mut Vec<ModelEvent>) {
        for at in std::mem::take(&mut self.ended_calls) {
            if let Some(ItemKind::Call {
                part: Some(index),
                has_ended,
                restorer,
                ..
            }) = self.list.get_mut(at).map(|item| &mut item.kind)
                && std::mem::take(has_ended)
            {
                finish_call(*index, restorer, events);
            }
        }
    }

    fn start_part(&mut self, part: PartStart, events: &mut Vec<ModelEvent>) -> u32 {
        let index = self.next_part;
        self.next_part = index.saturating_add(1);
        events.push(ModelEvent::PartStarted { index, part });
        index
    }

    fn start_call(&mut self, item: &JsonObject, events: &mut Vec<ModelEvent>) -> Option<u32> {
        let name = self
            .tool_mapping
            .declared_name(text(item, "name")?)
            .to_owned();
        let id = self.ids.claim(text(item, "call_id").or(text(item, "id")));
        self.has_calls = true;
        Some(self.start_part(PartStart::ToolUse { id, name }, events))
    }

    /// Returns the restorer for the arguments of a call.
    fn input_restorer(&self, item: &JsonObject) -> ShapeRestorer {
        let name = text(item, "name").unwrap_or_default();
        let name = self.tool_mapping.declared_name(name);
        self.tool_mapping.input_restorer(name)
    }

    fn message_text(
        &self,
        at: usize,
        index: Option<u64>,
        is_refusal: bool,
    ) -> Option<&MessageText> {
        match &self.list.get(at)?.kind {
            ItemKind::Message(texts) => texts.iter().rfind(|it| it.matches(index, is_refusal)),
            _ => None,
        }
    }

    fn message_text_mut(
        &mut self,
        at: usize,
        index: Option<u64>,
        is_refusal: bool,
    ) -> Option<&mut MessageText> {
        match &mut self.list.get_mut(at)?.kind {
            ItemKind::Message(texts) => texts.iter_mut().rfind(|it| it.matches(index, is_refusal)),
            _ => None,
        }
    }

    fn start_message_text(
        &mut self,
        at: usize,
        index: Option<u64>,
        is_refusal: bool,
        events: &mut Vec<ModelEvent>,
    ) {
        let restorer = if is_refusal {
            ShapeRestorer::default()
        } else {
            self.tool_mapping.answer_restorer()
        };
        let part = self.start_part(PartStart::Text, events);
        self.has_refusal |= is_refusal;
        if let Some(Item {
            kind: ItemKind::Message(texts),
            ..
        }) = self.list.get_mut(at)
        {
            texts.push(MessageText {
                part,
                index,
                is_refusal,
                restorer,
            });
        }
    }

    fn has_reasoning_text(&self, at: usize, kind: ReasoningText) -> bool {
        match self.list.get(at).map(|item| &item.kind) {
            Some(ItemKind::Reasoning { texts, .. }) => texts.contains(&kind),
            _ => false,
        }
    }
}

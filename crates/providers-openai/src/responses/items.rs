//! The items of an answer, and which part is what of them.

mod closing;
mod places;

use serde_json::Value;
use switchboard_domain::{JsonObject, ModelEvent, ModelId, PartStart};
use switchboard_providers_common::LocalIds;

use self::places::Places;
use super::{
    members::{json_text, text},
    wire::Event,
};
use crate::{
    answer::Came,
    reshaped::{Held, Reshaped, broken, pass, rest},
    text::PARAGRAPH,
};

/// Which item an event is about. Servers number them, name them, do both, or (with one item at a time)
/// neither.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Address<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) index: Option<u64>,
}

impl<'a> Address<'a> {
    /// The item that an event speaks of.
    pub(crate) fn of(event: &'a Event) -> Self {
        let own = event.item.as_ref().and_then(|item| text(item, "id"));
        let named = event.item_id.as_deref().filter(|id| !id.is_empty());
        Self {
            id: own.or(named),
            index: event.output_index,
        }
    }
}

/// A text that reasoning holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thought {
    /// A summary, by its number.
    Summary(u64),
    /// The thinking itself, by its number.
    Content(u64),
}

/// The items of one answer.
#[derive(Debug)]
pub(crate) struct Items {
    model: ModelId,
    ids: LocalIds,
    reshaped: Reshaped,
    list: Vec<Item>,
    places: Places,
    /// Calls that were said to be complete, but may have been cut off.
    ended: Vec<usize>,
    next_part: u32,
    /// The id of the last reasoning.
    reasoned: Option<String>,
    /// Calls that came without ever being given a name.
    nameless: usize,
    refused: bool,
    called: bool,
}

#[derive(Debug)]
struct Item {
    id: Option<String>,
    index: Option<u64>,
    done: bool,
    /// The reasoning before it.
    after: Option<String>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Message(Vec<Piece>),
    Reasoning {
        part: u32,
        /// What was said of it.
        said: Vec<Thought>,
    },
    Call {
        /// The part that it became, as soon as its name is known.
        part: Option<u32>,
        /// Whether some of its arguments came.
        said: bool,
        /// It was said to be complete, but not in so many words: it may have been cut off.
        ended: bool,
        /// Arguments that are to be given another shape.
        held: Option<Held>,
    },
    Opaque,
}

/// A piece of a message that says something.
#[derive(Debug)]
struct Piece {
    part: u32,
    index: Option<u64>,
    refusal: bool,
    /// Text that is to be given another shape.
    held: Option<Held>,
}

/// What an item is, by its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sort {
    Message,
    Reasoning,
    Call,
    Opaque,
}

impl Sort {
    fn of(item: &JsonObject) -> Self {
        match text(item, "type") {
            Some("message") => Self::Message,
            Some("reasoning") => Self::Reasoning,
            Some("function_call") => Self::Call,
            _ => Self::Opaque,
        }
    }
}

impl Kind {
    fn sort(&self) -> Sort {
        match self {
            Self::Message(_) => Sort::Message,
            Self::Reasoning { .. } => Sort::Reasoning,
            Self::Call { .. } => Sort::Call,
            Self::Opaque => Sort::Opaque,
        }
    }
}

impl Piece {
    fn is(&self, index: Option<u64>, refusal: bool) -> bool {
        let agree = self.index == index || self.index.is_none() || index.is_none();
        agree && self.refusal == refusal
    }
}

/// A call is complete.
fn end_call(index: u32, held: &mut Option<Held>, events: &mut Vec<ModelEvent>) {
    let json = rest(held);
    events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
    events.push(ModelEvent::PartFinished { index });
}

/// A call was cut off: it stays open.
fn break_call(index: u32, held: &mut Option<Held>, events: &mut Vec<ModelEvent>) {
    let json = broken(held);
    events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
}

impl Items {
    /// The items of an answer of `model`.
    pub(crate) fn new(model: ModelId, ids: LocalIds) -> Self {
        Self {
            model,
            ids,
            reshaped: Reshaped::default(),
            list: Vec::new(),
            places: Places::default(),
            ended: Vec::new(),
            next_part: 0,
            reasoned: None,
            nameless: 0,
            refused: false,
            called: false,
        }
    }

    /// Gives some tools another name, and their inputs or the answer another shape.
    pub(crate) fn reshape(&mut self, reshaped: Reshaped) {
        self.reshaped = reshaped;
    }

    /// Whether none came.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What came.
    pub(crate) fn came(&self) -> Came {
        Came {
            refused: self.refused,
            called: self.called,
            nameless: self.nameless,
        }
    }

    /// An item begins.
    pub(crate) fn added(
        &mut self,
        address: Address<'_>,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        if !self.places.has_begun(address) {
            self.begin(address, Sort::of(item), Some(item), events);
        }
    }

    /// An item is complete, or cut off.
    pub(crate) fn done(
        &mut self,
        address: Address<'_>,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        let sort = Sort::of(item);
        let at = match self.find(address, sort) {
            Some(at) => at,
            // Some servers say the same item twice.
            None if self.knows(address, sort) => return,
            None => self.begin(address, sort, Some(item), events),
        };
        match sort {
            Sort::Message => self.message_done(at, item, events),
            Sort::Reasoning => self.reasoning_done(at, item, events),
            Sort::Call => self.call_done(at, item, events),
            Sort::Opaque => self.opaque_done(at, item, events),
        }
    }

    /// More text of a message, or of a refusal.
    pub(crate) fn say(
        &mut self,
        address: Address<'_>,
        content_index: Option<u64>,
        refusal: bool,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        if text.is_empty() {
            return;
        }
        let at = self.find_or_begin(address, Sort::Message, events);
        if self.piece(at, content_index, refusal).is_none() {
            self.open_piece(at, content_index, refusal, events);
        }
        if let Some(piece) = self.piece_mut(at, content_index, refusal) {
            let index = piece.part;
            let text = pass(&mut piece.held, text);
            events.extend(text.map(|text| ModelEvent::TextDelta { index, text }));
        }
    }

    /// A whole text of a message, which counts if none of it came before.
    pub(crate) fn said(
        &mut self,
        address: Address<'_>,
        content_index: Option<u64>,
        refusal: bool,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        let known = self.find(address, Sort::Message);
        let is_new = known.is_none_or(|at| self.piece(at, content_index, refusal).is_none());
        if is_new && !(known.is_none() && self.knows(address, Sort::Message)) {
            self.say(address, content_index, refusal, text, events);
        }
    }

    /// More of what was thought.
    pub(crate) fn think(
        &mut self,
        address: Address<'_>,
        thought: Thought,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        if text.is_empty() {
            return;
        }
        let at = self.find_or_begin(address, Sort::Reasoning, events);
        let Some(Item {
            kind: Kind::Reasoning { part, said },
            ..
        }) = self.list.get_mut(at)
        else {
            return;
        };
        let index = *part;
        if said.last() != Some(&thought) {
            if !said.is_empty() {
                let text = PARAGRAPH.to_owned();
                events.push(ModelEvent::ReasoningDelta { index, text });
            }
            said.push(thought);
        }
        let text = text.to_owned();
        events.push(ModelEvent::ReasoningDelta { index, text });
    }

    /// The whole of a thought, which counts if none of it came before.
    pub(crate) fn thought(
        &mut self,
        address: Address<'_>,
        thought: Thought,
        text: &str,
        events: &mut Vec<ModelEvent>,
    ) {
        let known = self.find(address, Sort::Reasoning);
        let is_new = known.is_none_or(|at| !self.has_said(at, thought));
        if is_new && !(known.is_none() && self.knows(address, Sort::Reasoning)) {
            self.think(address, thought, text, events);
        }
    }

    /// More of a call's arguments.
    pub(crate) fn argue(&mut self, address: Address<'_>, json: &str, events: &mut Vec<ModelEvent>) {
        let at = self.find(address, Sort::Call);
        let call = at.and_then(|at| self.list.get_mut(at));
        if let Some(Item {
            kind:
                Kind::Call {
                    part: Some(index),
                    said,
                    held,
                    ..
                },
            ..
        }) = call
            && !json.is_empty()
        {
            *said = true;
            let index = *index;
            let json = pass(held, json);
            events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
        }
    }

    /// A call's whole arguments, which count if none of them came before.
    pub(crate) fn argued(
        &mut self,
        address: Address<'_>,
        arguments: &Value,
        events: &mut Vec<ModelEvent>,
    ) {
        let at = self.find(address, Sort::Call);
        if let Some(Kind::Call { said: false, .. }) =
            at.and_then(|at| self.list.get(at)).map(|item| &item.kind)
        {
            self.argue(address, &json_text(arguments), events);
        }
    }

    /// The item that an event is about, if it is not complete.
    fn find(&self, address: Address<'_>, sort: Sort) -> Option<usize> {
        self.places.find(address, sort)
    }

    /// Whether that item is complete.
    fn knows(&self, address: Address<'_>, sort: Sort) -> bool {
        self.places.is_done(address, sort)
    }

    /// The item at `at` is complete.
    fn complete(&mut self, at: usize) {
        if let Some(item) = self.list.get_mut(at)
            && !std::mem::replace(&mut item.done, true)
        {
            let address = Address {
                id: item.id.as_deref(),
                index: item.index,
            };
            self.places.end(at, item.kind.sort(), address);
        }
    }

    fn find_or_begin(
        &mut self,
        address: Address<'_>,
        sort: Sort,
        events: &mut Vec<ModelEvent>,
    ) -> usize {
        match self.find(address, sort) {
            Some(at) => at,
            None => self.begin(address, sort, None, events),
        }
    }

    fn begin(
        &mut self,
        address: Address<'_>,
        sort: Sort,
        item: Option<&JsonObject>,
        events: &mut Vec<ModelEvent>,
    ) -> usize {
        self.settle(events);
        let kind = match sort {
            Sort::Message => Kind::Message(Vec::new()),
            Sort::Reasoning => Kind::Reasoning {
                part: self.open(PartStart::Reasoning, events),
                said: Vec::new(),
            },
            Sort::Call => Kind::Call {
                part: item.and_then(|item| self.open_call(item, events)),
                said: false,
                ended: false,
                held: item.and_then(|item| self.hold_input(item)),
            },
            Sort::Opaque => Kind::Opaque,
        };
        let after = self.reasoned.clone();
        if sort == Sort::Reasoning {
            self.reasoned = address.id.map(str::to_owned);
        }
        let at = self.list.len();
        self.places.begin(at, sort, address);
        self.list.push(Item {
            id: address.id.map(str::to_owned),
            index: address.index,
            done: false,
            after,
            kind,
        });
        at
    }

    /// Something else begins: a call before it that was said to be over was not cut off.
    fn settle(&mut self, events: &mut Vec<ModelEvent>) {
        for at in std::mem::take(&mut self.ended) {
            if let Some(Kind::Call {
                part: Some(index),
                ended,
                held,
                ..
            }) = self.list.get_mut(at).map(|item| &mut item.kind)
                && std::mem::take(ended)
            {
                end_call(*index, held, events);
            }
        }
    }

    fn open(&mut self, part: PartStart, events: &mut Vec<ModelEvent>) -> u32 {
        let index = self.next_part;
        self.next_part = index.saturating_add(1);
        events.push(ModelEvent::PartStarted { index, part });
        index
    }

    fn open_call(&mut self, item: &JsonObject, events: &mut Vec<ModelEvent>) -> Option<u32> {
        let name = self.reshaped.declared(text(item, "name")?).to_owned();
        let id = self.ids.claim(text(item, "call_id").or(text(item, "id")));
        self.called = true;
        Some(self.open(PartStart::ToolUse { id, name }, events))
    }

    /// What holds back the arguments of a call.
    fn hold_input(&self, item: &JsonObject) -> Option<Held> {
        let name = self.reshaped.declared(text(item, "name")?);
        self.reshaped.hold_input(name)
    }

    /// A piece of a message that has said something.
    fn piece(&self, at: usize, index: Option<u64>, refusal: bool) -> Option<&Piece> {
        match &self.list.get(at)?.kind {
            Kind::Message(pieces) => pieces.iter().rfind(|it| it.is(index, refusal)),
            _ => None,
        }
    }

    fn piece_mut(&mut self, at: usize, index: Option<u64>, refusal: bool) -> Option<&mut Piece> {
        match &mut self.list.get_mut(at)?.kind {
            Kind::Message(pieces) => pieces.iter_mut().rfind(|it| it.is(index, refusal)),
            _ => None,
        }
    }

    fn open_piece(
        &mut self,
        at: usize,
        index: Option<u64>,
        refusal: bool,
        events: &mut Vec<ModelEvent>,
    ) {
        let held = self.reshaped.hold_answer().filter(|_| !refusal);
        let part = self.open(PartStart::Text, events);
        self.refused |= refusal;
        if let Some(Item {
            kind: Kind::Message(pieces),
            ..
        }) = self.list.get_mut(at)
        {
            pieces.push(Piece {
                part,
                index,
                refusal,
                held,
            });
        }
    }

    fn has_said(&self, at: usize, thought: Thought) -> bool {
        match self.list.get(at).map(|item| &item.kind) {
            Some(Kind::Reasoning { said, .. }) => said.contains(&thought),
            _ => false,
        }
    }
}

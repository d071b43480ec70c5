//! How items end: what was not said before is said, and what must go back is attached.

use switchboard_domain::{JsonObject, ModelEvent, Opaque, Part, PartStart, ProviderState};

use super::{Address, Item, Items, Kind, Thought, break_call, end_call};
use crate::{
    reshaped::{Held, broken, pass, rest},
    responses::{
        members::{json_text, objects, text},
        shown::shown,
        state,
    },
};

impl Items {
    /// The answer is over. What is open is complete, unless the answer was `cut_off`: then a call
    /// that nobody said to be complete stays open.
    pub(crate) fn finish(&mut self, cut_off: bool, events: &mut Vec<ModelEvent>) {
        for at in 0..self.list.len() {
            let was_done = self.list.get(at).is_some_and(|item| item.done);
            self.complete(at);
            let Some(item) = self.list.get_mut(at) else {
                continue;
            };
            match &mut item.kind {
                Kind::Message(pieces) if !was_done => {
                    for piece in pieces {
                        close(piece.part, &mut piece.held, None, events);
                    }
                }
                Kind::Reasoning { part, .. } if !was_done => {
                    events.push(ModelEvent::PartFinished { index: *part });
                }
                Kind::Call {
                    part, ended, held, ..
                } if *ended || !was_done => {
                    *ended = false;
                    match part {
                        Some(index) if cut_off => break_call(*index, held, events),
                        Some(index) => end_call(*index, held, events),
                        None => self.nameless += 1,
                    }
                }
                _ => {}
            }
        }
    }

    /// The answer broke off: gives out what was held back.
    pub(crate) fn release(&mut self, events: &mut Vec<ModelEvent>) {
        for item in &mut self.list {
            match &mut item.kind {
                Kind::Message(pieces) => {
                    for piece in pieces {
                        let (index, text) = (piece.part, broken(&mut piece.held));
                        events.extend(text.map(|text| ModelEvent::TextDelta { index, text }));
                    }
                }
                Kind::Call {
                    part: Some(index),
                    held,
                    ..
                } => break_call(*index, held, events),
                _ => {}
            }
        }
    }

    pub(super) fn message_done(
        &mut self,
        at: usize,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        let contents = objects(item, "content");
        for (index, content) in (0..).zip(&contents) {
            let (refusal, words) = match text(content, "refusal") {
                Some(words) => (true, words),
                None => (false, text(content, "text").unwrap_or_default()),
            };
            if !words.is_empty() && self.piece(at, Some(index), refusal).is_none() {
                self.open_piece(at, Some(index), refusal, events);
                if let Some(piece) = self.piece_mut(at, Some(index), refusal) {
                    let (index, text) = (piece.part, pass(&mut piece.held, words));
                    events.extend(text.map(|text| ModelEvent::TextDelta { index, text }));
                }
            }
        }
        self.complete(at);
        let Some(known) = self.list.get_mut(at) else {
            return;
        };
        let after = known.after.as_deref();
        let Kind::Message(pieces) = &mut known.kind else {
            return;
        };
        for (place, piece) in (0..).zip(pieces) {
            let place = piece.index.unwrap_or(place);
            let content = usize::try_from(place).ok().and_then(|at| contents.get(at));
            let state = state::of_text(&self.model, item, content.copied(), after);
            close(piece.part, &mut piece.held, state, events);
        }
    }

    pub(super) fn reasoning_done(
        &mut self,
        at: usize,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        let (id, index) = self.address(at);
        let address = Address {
            id: id.as_deref(),
            index,
        };
        for (index, summary) in (0..).zip(objects(item, "summary")) {
            let words = text(summary, "text").unwrap_or_default();
            self.thought(address, Thought::Summary(index), words, events);
        }
        for (index, content) in (0..).zip(objects(item, "content")) {
            let words = text(content, "text").unwrap_or_default();
            self.thought(address, Thought::Content(index), words, events);
        }
        self.complete(at);
        if let Some(Kind::Reasoning { part, .. }) = self.list.get(at).map(|it| &it.kind) {
            let state = state::of_reasoning(&self.model, item);
            close(*part, &mut None, state, events);
        }
        // The id at the end is the one that is replayed.
        if let Some(id) = text(item, "id") {
            self.reasoned = Some(id.to_owned());
        }
    }

    pub(super) fn call_done(&mut self, at: usize, item: &JsonObject, events: &mut Vec<ModelEvent>) {
        if let Some(Kind::Call { part: None, .. }) = self.list.get(at).map(|it| &it.kind) {
            let opened = self.open_call(item, events);
            let holds = self.hold_input(item);
            self.nameless += usize::from(opened.is_none());
            if let Some(Item {
                kind: Kind::Call { part, held, .. },
                ..
            }) = self.list.get_mut(at)
            {
                *part = opened;
                *held = holds;
            }
        }
        self.complete(at);
        let Some(known) = self.list.get_mut(at) else {
            return;
        };
        let Kind::Call {
            part: Some(index),
            said,
            ended,
            held,
        } = &mut known.kind
        else {
            return;
        };
        let index = *index;
        let json = item.get("arguments").map(json_text).unwrap_or_default();
        if !*said {
            let json = pass(held, &json);
            events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
        }
        let state = state::of_call(&self.model, item, known.after.as_deref());
        events.extend(state.map(|state| {
            let state = Box::new(state);
            ModelEvent::PartState { index, state }
        }));
        match text(item, "status") {
            Some("completed") => end_call(index, held, events),
            // It was cut off, and stays open.
            Some("incomplete") => break_call(index, held, events),
            // Nothing, or not what an item is when it is done.
            _ => {
                *ended = true;
                self.ended.push(at);
            }
        }
    }

    pub(super) fn opaque_done(
        &mut self,
        at: usize,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        self.complete(at);
        let after = self.list.get(at).and_then(|known| known.after.clone());
        let part = Part::Opaque(Opaque {
            kind: text(item, "type").unwrap_or("item").to_owned(),
            text: shown(item),
            provider_state: state::of_opaque(&self.model, item, after.as_deref()),
        });
        let index = self.open(
            PartStart::Whole {
                part: Box::new(part),
            },
            events,
        );
        events.push(ModelEvent::PartFinished { index });
    }

    fn address(&self, at: usize) -> (Option<String>, Option<u64>) {
        let item = self.list.get(at);
        item.map(|item| (item.id.clone(), item.index))
            .unwrap_or_default()
    }
}

fn close(
    index: u32,
    held: &mut Option<Held>,
    state: Option<ProviderState>,
    events: &mut Vec<ModelEvent>,
) {
    let text = rest(held);
    events.extend(text.map(|text| ModelEvent::TextDelta { index, text }));
    events.extend(state.map(|state| {
        let state = Box::new(state);
        ModelEvent::PartState { index, state }
    }));
    events.push(ModelEvent::PartFinished { index });
}

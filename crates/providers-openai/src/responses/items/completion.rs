//! Completes items: emits content that was not streamed, and the state that is sent back.

use switchboard_domain::{JsonObject, ModelEvent, Opaque, Part, PartStart, ProviderState};
use switchboard_providers_common::{ShapeRestorer, opaque_text};

use super::{Item, ItemAddress, ItemKind, Items, ReasoningText, finish_call, interrupt_call};
use crate::responses::{
    fields::{json_text, objects, text},
    state,
};

impl Items {
    /// Completes all items at the end of the answer. If the answer is incomplete, a call without
    /// the status `completed` stays open.
    pub(crate) fn finish(&mut self, is_incomplete: bool, events: &mut Vec<ModelEvent>) {
        for at in 0..self.list.len() {
            let was_complete = self.list.get(at).is_some_and(|item| item.is_complete);
            self.mark_complete(at);
            let Some(item) = self.list.get_mut(at) else {
                continue;
            };
            match &mut item.kind {
                ItemKind::Message(texts) if !was_complete => {
                    for text in texts {
                        finish_text(text.part, &mut text.restorer, None, events);
                    }
                }
                ItemKind::Reasoning { part, .. } if !was_complete => {
                    events.push(ModelEvent::PartFinished { index: *part });
                }
                ItemKind::Call {
                    part,
                    has_ended,
                    restorer,
                    ..
                } if *has_ended || !was_complete => {
                    *has_ended = false;
                    match part {
                        Some(index) if is_incomplete => interrupt_call(*index, restorer, events),
                        Some(index) => finish_call(*index, restorer, events),
                        None => self.nameless_calls += 1,
                    }
                }
                _ => {}
            }
        }
    }

    /// Emits the buffered texts of an interrupted answer.
    pub(crate) fn interrupt(&mut self, events: &mut Vec<ModelEvent>) {
        for item in &mut self.list {
            match &mut item.kind {
                ItemKind::Message(texts) => {
                    for text in texts {
                        let (index, text) = (text.part, text.restorer.interrupt());
                        events.extend(text.map(|text| ModelEvent::TextDelta { index, text }));
                    }
                }
                ItemKind::Call {
                    part: Some(index),
                    restorer,
                    ..
                } => interrupt_call(*index, restorer, events),
                _ => {}
            }
        }
    }

    pub(super) fn complete_message(
        &mut self,
        at: usize,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        let contents = objects(item, "content");
        for (index, content) in (0..).zip(&contents) {
            let index = Some(index);
            let (is_refusal, whole) = match text(content, "refusal") {
                Some(refusal) => (true, refusal),
                None => (false, text(content, "text").unwrap_or_default()),
            };
            if !whole.is_empty() && self.message_text(at, index, is_refusal).is_none() {
                self.start_message_text(at, index, is_refusal, events);
                if let Some(text) = self.message_text_mut(at, index, is_refusal) {
                    let (index, text) = (text.part, text.restorer.push(whole));
                    events.extend(text.map(|text| ModelEvent::TextDelta { index, text }));
                }
            }
        }
        self.mark_complete(at);
        let Some(known) = self.list.get_mut(at) else {
            return;
        };
        let after = known.after.as_deref();
        let ItemKind::Message(texts) = &mut known.kind else {
            return;
        };
        for (position, text) in (0..).zip(texts) {
            let index = text.index.unwrap_or(position);
            let content = usize::try_from(index).ok().and_then(|at| contents.get(at));
            let state = state::of_text(&self.model, item, content.copied(), after);
            finish_text(text.part, &mut text.restorer, state, events);
        }
    }

    pub(super) fn complete_reasoning(
        &mut self,
        at: usize,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        let known = self.list.get(at);
        let (id, index) = known
            .map(|known| (known.id.clone(), known.index))
            .unwrap_or_default();
        let address = ItemAddress {
            id: id.as_deref(),
            index,
        };
        for (index, summary) in (0..).zip(objects(item, "summary")) {
            let whole = text(summary, "text").unwrap_or_default();
            self.add_whole_reasoning(address, ReasoningText::Summary(index), whole, events);
        }
        for (index, content) in (0..).zip(objects(item, "content")) {
            let whole = text(content, "text").unwrap_or_default();
            self.add_whole_reasoning(address, ReasoningText::Content(index), whole, events);
        }
        self.mark_complete(at);
        if let Some(ItemKind::Reasoning { part, .. }) = self.list.get(at).map(|it| &it.kind) {
            let state = state::of_reasoning(&self.model, item);
            finish_text(*part, &mut ShapeRestorer::default(), state, events);
        }
        // If the id of an item changes, the last one is sent back.
        if let Some(id) = text(item, "id") {
            self.reasoning_id = Some(id.to_owned());
        }
    }

    pub(super) fn complete_call(
        &mut self,
        at: usize,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        if let Some(ItemKind::Call { part: None, .. }) = self.list.get(at).map(|it| &it.kind) {
            let started = self.start_call(item, events);
            let new_restorer = self.input_restorer(item);
            self.nameless_calls += usize::from(started.is_none());
            if let Some(Item {
                kind: ItemKind::Call { part, restorer, .. },
                ..
            }) = self.list.get_mut(at)
            {
                *part = started;
                *restorer = new_restorer;
            }
        }
        self.mark_complete(at);
        let Some(known) = self.list.get_mut(at) else {
            return;
        };
        let ItemKind::Call {
            part: Some(index),
            has_arguments,
            has_ended,
            restorer,
        } = &mut known.kind
        else {
            return;
        };
        let index = *index;
        if !*has_arguments {
            let json = item.get("arguments").map(json_text).unwrap_or_default();
            let json = restorer.push(&json);
            events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
        }
        let state = state::of_call(&self.model, item, known.after.as_deref());
        emit_state(index, state, events);
        match text(item, "status") {
            Some("completed") => finish_call(index, restorer, events),
            // An incomplete call stays open, so that it is not executed.
            Some("incomplete") => interrupt_call(index, restorer, events),
            // Without a final status, the next event shows whether the call is complete.
            _ => {
                *has_ended = true;
                self.ended_calls.push(at);
            }
        }
    }

    pub(super) fn complete_opaque(
        &mut self,
        at: usize,
        item: &JsonObject,
        events: &mut Vec<ModelEvent>,
    ) {
        self.mark_complete(at);
        let after = self.list.get(at).and_then(|known| known.after.clone());
        let part = Part::Opaque(Opaque {
            kind: text(item, "type").unwrap_or("item").to_owned(),
            text: opaque_text(item),
            provider_state: state::of_opaque(&self.model, item, after.as_deref()),
        });
        let part = PartStart::Whole {
            part: Box::new(part),
        };
        let index = self.start_part(part, events);
        events.push(ModelEvent::PartFinished { index });
    }
}

fn finish_text(
    index: u32,
    restorer: &mut ShapeRestorer,
    state: Option<ProviderState>,
    events: &mut Vec<ModelEvent>,
) {
    let text = restorer.finish();
    events.extend(text.map(|text| ModelEvent::TextDelta { index, text }));
    emit_state(index, state, events);
    events.push(ModelEvent::PartFinished { index });
}

fn emit_state(index: u32, state: Option<ProviderState>, events: &mut Vec<ModelEvent>) {
    events.extend(state.map(|state| {
        let state = Box::new(state);
        ModelEvent::PartState { index, state }
    }));
}

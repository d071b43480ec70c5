//! The transformer of events.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::Arc,
};

use switchboard_domain::{ModelEvent, PartStart, ToolInput};

use super::{
    Recovery,
    call::{CallState, FoundCall},
    scan::{Piece, TextScan},
};

/// Turns the calls in the text of an answer into tool uses, event by event. No I/O inside: see
/// [`recover`](super::recover) for a stream.
///
/// The events that come out keep the grammar if those that go in do. Parts get new indices.
pub struct EventRecovery {
    recovery: Recovery,
    /// What it begins with when an attempt is repeated.
    pristine: Recovery,
    /// The texts that are open, by their index on the way in.
    texts: BTreeMap<u32, TextPart>,
    /// The index on the way out of every other part.
    moved: HashMap<u32, u32>,
    next_index: u32,
    ids: HashSet<String>,
    next_id: u32,
    found_any: bool,
    /// Text was handed on that is more than blanks.
    has_said: bool,
    has_begun: bool,
    has_finished: bool,
}

struct TextPart {
    scan: TextScan,
    /// The text on the way out that is open.
    index: Option<u32>,
}

impl fmt::Debug for EventRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecovery")
            .field("recovery", &self.recovery)
            .field("found_any", &self.found_any)
            .finish_non_exhaustive()
    }
}

impl EventRecovery {
    /// A transformer for one answer.
    pub fn new(recovery: Recovery) -> Self {
        Self {
            ids: recovery.used_ids.iter().cloned().collect(),
            pristine: recovery.clone(),
            recovery,
            texts: BTreeMap::new(),
            moved: HashMap::new(),
            next_index: 0,
            next_id: 1,
            found_any: false,
            has_said: false,
            has_begun: false,
            has_finished: false,
        }
    }

    /// Takes the next event and appends what becomes of it to `events`.
    pub fn push(&mut self, event: ModelEvent, events: &mut Vec<ModelEvent>) {
        if let ModelEvent::Retrying { .. } = event {
            *self = Self::new(self.pristine.clone());
            events.push(event);
            return;
        }
        let event = self.begin(event, events);
        match event {
            None => {}
            Some(ModelEvent::PartStarted {
                index,
                part: PartStart::Text,
            }) => {
                let Recovery {
                    known,
                    forms,
                    limit,
                    ..
                } = &self.recovery;
                let scan = TextScan::new(Arc::clone(known), *forms, *limit, self.has_said);
                self.open_texts(events);
                self.texts.insert(index, TextPart { scan, index: None });
            }
            Some(ModelEvent::PartStarted { index, part }) => {
                self.open_texts(events);
                if let PartStart::ToolUse { id, .. } = &part {
                    self.ids.insert(id.clone());
                }
                let moved = take_index(&mut self.next_index);
                self.moved.insert(index, moved);
                events.push(ModelEvent::PartStarted { index: moved, part });
            }
            Some(ModelEvent::TextDelta { index, text }) => {
                if let Some(mut part) = self.texts.remove(&index) {
                    let mut pieces = Vec::new();
                    part.scan.push(&text, &mut pieces);
                    self.emit(pieces, &mut part, events);
                    self.texts.insert(index, part);
                } else {
                    let index = self.moved(index);
                    events.push(ModelEvent::TextDelta { index, text });
                }
            }
            Some(ModelEvent::PartState { index, state }) => {
                let index = match self.texts.get_mut(&index) {
                    Some(text) => text.open(&mut self.next_index, events),
                    None => self.moved(index),
                };
                events.push(ModelEvent::PartState { index, state });
            }
            Some(ModelEvent::PartFinished { index }) => {
                if self.texts.contains_key(&index) {
                    if let Some(index) = self.end_text(index, events) {
                        events.push(ModelEvent::PartFinished { index });
                    }
                } else {
                    let index = self.moved(index);
                    events.push(ModelEvent::PartFinished { index });
                }
            }
            Some(ModelEvent::ReasoningDelta { index, text }) => {
                let index = self.moved(index);
                events.push(ModelEvent::ReasoningDelta { index, text });
            }
            Some(ModelEvent::ToolInputDelta { index, json }) => {
                let index = self.moved(index);
                events.push(ModelEvent::ToolInputDelta { index, json });
            }
            Some(ModelEvent::Finished { reason, raw }) => {
                self.end(events);
                self.has_finished = true;
                let reason = if self.found_any {
                    reason.given_tool_uses(true)
                } else {
                    reason
                };
                events.push(ModelEvent::Finished { reason, raw });
            }
            Some(other) => events.push(other),
        }
    }

    /// No more events come, whether the answer finished or broke off: appends what was held back.
    pub fn end(&mut self, events: &mut Vec<ModelEvent>) {
        if self.has_finished {
            return;
        }
        let open: Vec<u32> = self.texts.keys().copied().collect();
        for index in open {
            self.end_text(index, events);
        }
    }

    /// Says what became of the tool choice, where that is known here.
    fn begin(&mut self, event: ModelEvent, events: &mut Vec<ModelEvent>) -> Option<ModelEvent> {
        if self.has_begun {
            return Some(event);
        }
        self.has_begun = true;
        let outcome = self.recovery.outcome.take();
        let warnings = std::mem::take(&mut self.recovery.warnings);
        let warnings = warnings
            .into_iter()
            .map(|warning| ModelEvent::Warning { warning });
        let event = match (event, outcome) {
            (
                ModelEvent::Started {
                    response_id, model, ..
                },
                Some(tool_choice),
            ) => {
                events.push(ModelEvent::Started {
                    response_id,
                    model,
                    tool_choice,
                });
                None
            }
            (event @ ModelEvent::Started { .. }, None) => {
                events.push(event);
                None
            }
            (event, outcome) => {
                events.extend(outcome.map(|tool_choice| ModelEvent::Started {
                    response_id: None,
                    model: None,
                    tool_choice,
                }));
                Some(event)
            }
        };
        events.extend(warnings);
        event
    }

    /// Another part begins: what was held back of a text keeps its place before it.
    fn open_texts(&mut self, events: &mut Vec<ModelEvent>) {
        for text in self.texts.values_mut() {
            text.open(&mut self.next_index, events);
        }
    }

    /// Ends a text. Gives the index of what of it is open on the way out.
    fn end_text(&mut self, index: u32, events: &mut Vec<ModelEvent>) -> Option<u32> {
        let mut part = self.texts.remove(&index)?;
        let mut pieces = Vec::new();
        part.scan.end(&mut pieces);
        self.emit(pieces, &mut part, events);
        part.index
    }

    fn emit(&mut self, pieces: Vec<Piece>, part: &mut TextPart, events: &mut Vec<ModelEvent>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    self.has_said |= text.chars().any(|c| !c.is_whitespace());
                    let index = part.open(&mut self.next_index, events);
                    events.push(ModelEvent::TextDelta { index, text });
                }
                Piece::Call(call) => {
                    if let Some(index) = part.index.take() {
                        events.push(ModelEvent::PartFinished { index });
                    }
                    self.call(&call, events);
                }
            }
        }
    }

    fn call(&mut self, call: &FoundCall, events: &mut Vec<ModelEvent>) {
        self.found_any = true;
        let index = take_index(&mut self.next_index);
        let name = self.recovery.known.declared(&call.name).to_owned();
        let id = self.new_id();
        events.push(ModelEvent::PartStarted {
            index,
            part: PartStart::ToolUse { id, name },
        });
        if !call.input.is_empty() {
            events.push(ModelEvent::ToolInputDelta {
                index,
                json: call.input.clone(),
            });
        }
        let is_complete = match call.state {
            CallState::Whole => true,
            CallState::CutOff => false,
            // It must be malformed, and an input that reads well is only if it is left open.
            CallState::Broken => ToolInput::parse(&call.input).as_object().is_none(),
        };
        if is_complete {
            events.push(ModelEvent::PartFinished { index });
        }
    }

    fn new_id(&mut self) -> String {
        loop {
            let id = format!("call_text_{}", self.next_id);
            self.next_id = self.next_id.saturating_add(1);
            if self.ids.insert(id.clone()) {
                return id;
            }
        }
    }

    /// An index that nobody announced stays what it is: the accumulator tells whose fault it is.
    fn moved(&self, index: u32) -> u32 {
        self.moved.get(&index).copied().unwrap_or(index)
    }
}

impl TextPart {
    /// The text on the way out, begun if there is none.
    fn open(&mut self, next_index: &mut u32, events: &mut Vec<ModelEvent>) -> u32 {
        *self.index.get_or_insert_with(|| {
            let index = take_index(next_index);
            let part = PartStart::Text;
            events.push(ModelEvent::PartStarted { index, part });
            index
        })
    }
}

fn take_index(next: &mut u32) -> u32 {
    let index = *next;
    *next = next.saturating_add(1);
    index
}

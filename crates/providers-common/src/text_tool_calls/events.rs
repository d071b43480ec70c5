//! Conversion of an answer's events.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::Arc,
};

use switchboard_domain::{ModelEvent, PartStart, ProviderState};

use super::{
    Recovery,
    json_calls::FoundCall,
    scan::{Piece, TextScanner},
};

/// Converts the calls in the text of an answer into tool uses, event by event.
/// [`recover`](super::recover) does so for a stream.
///
/// The output follows the event grammar if the input does. Parts get new indices.
pub struct EventRecovery {
    recovery: Recovery,
    /// The initial state, for a repeated attempt.
    initial: Recovery,
    /// The open texts, by their input index.
    texts: BTreeMap<u32, TextPart>,
    /// The output index of every other part, by its input index.
    indices: HashMap<u32, u32>,
    next_index: u32,
    ids: HashSet<String>,
    next_id: u32,
    found_any: bool,
    /// Text other than white space was emitted.
    has_text: bool,
    has_started: bool,
    has_finished: bool,
}

struct TextPart {
    scanner: TextScanner,
    /// State of the text, which belongs to its last part.
    states: Vec<ProviderState>,
    /// The output index, if the text is open there.
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
    /// Creates the converter of one answer.
    pub fn new(recovery: Recovery) -> Self {
        Self {
            ids: recovery.used_ids.iter().cloned().collect(),
            initial: recovery.clone(),
            recovery,
            texts: BTreeMap::new(),
            indices: HashMap::new(),
            next_index: 0,
            next_id: 1,
            found_any: false,
            has_text: false,
            has_started: false,
            has_finished: false,
        }
    }

    /// Converts the next event and appends the result to `events`.
    pub fn push(&mut self, event: ModelEvent, events: &mut Vec<ModelEvent>) {
        if let ModelEvent::Retrying { .. } = event {
            *self = Self::new(self.initial.clone());
            events.push(event);
            return;
        }
        let event = self.start(event, events);
        match event {
            None => {}
            Some(ModelEvent::PartStarted {
                index,
                part: PartStart::Text,
            }) => {
                let Recovery {
                    tools,
                    forms,
                    limit,
                    ..
                } = &self.recovery;
                let scanner = TextScanner::new(Arc::clone(tools), *forms, *limit, self.has_text);
                self.open_texts(events);
                let part = TextPart {
                    scanner,
                    states: Vec::new(),
                    index: None,
                };
                self.texts.insert(index, part);
            }
            Some(ModelEvent::PartStarted { index, part }) => {
                self.open_texts(events);
                if let PartStart::ToolUse { id, .. } = &part {
                    self.ids.insert(id.clone());
                }
                let output = take_index(&mut self.next_index);
                self.indices.insert(index, output);
                events.push(ModelEvent::PartStarted {
                    index: output,
                    part,
                });
            }
            Some(ModelEvent::TextDelta { index, text }) => {
                if let Some(mut part) = self.texts.remove(&index) {
                    let mut pieces = Vec::new();
                    part.scanner.push(&text, &mut pieces);
                    self.emit(pieces, &mut part, events);
                    self.texts.insert(index, part);
                } else {
                    let index = self.output_index(index);
                    events.push(ModelEvent::TextDelta { index, text });
                }
            }
            Some(ModelEvent::PartState { index, state }) => {
                if let Some(text) = self.texts.get_mut(&index) {
                    text.states.push(*state);
                } else {
                    let index = self.output_index(index);
                    events.push(ModelEvent::PartState { index, state });
                }
            }
            Some(ModelEvent::PartFinished { index }) => {
                if self.texts.contains_key(&index) {
                    if let Some(index) = self.end_text(index, events) {
                        events.push(ModelEvent::PartFinished { index });
                    }
                } else {
                    let index = self.output_index(index);
                    events.push(ModelEvent::PartFinished { index });
                }
            }
            Some(ModelEvent::ReasoningDelta { index, text }) => {
                let index = self.output_index(index);
                events.push(ModelEvent::ReasoningDelta { index, text });
            }
            Some(ModelEvent::ToolInputDelta { index, json }) => {
                let index = self.output_index(index);
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

    /// Ends the answer, complete or not, and appends the buffered text and calls to `events`.
    pub fn end(&mut self, events: &mut Vec<ModelEvent>) {
        if self.has_finished {
            return;
        }
        let open: Vec<u32> = self.texts.keys().copied().collect();
        for index in open {
            self.end_text(index, events);
        }
    }

    /// Emits the outcome of the tool choice and the warnings before the first event.
    fn start(&mut self, event: ModelEvent, events: &mut Vec<ModelEvent>) -> Option<ModelEvent> {
        if self.has_started {
            return Some(event);
        }
        self.has_started = true;
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

    /// Opens the texts in the output before another part begins, so that buffered text keeps its
    /// place.
    fn open_texts(&mut self, events: &mut Vec<ModelEvent>) {
        for text in self.texts.values_mut() {
            text.open(&mut self.next_index, events);
        }
    }

    /// Ends a text. Returns its output index if it is open there.
    fn end_text(&mut self, index: u32, events: &mut Vec<ModelEvent>) -> Option<u32> {
        let mut part = self.texts.remove(&index)?;
        let mut pieces = Vec::new();
        part.scanner.end(&mut pieces);
        self.emit(pieces, &mut part, events);
        for state in std::mem::take(&mut part.states) {
            let index = part.open(&mut self.next_index, events);
            events.push(ModelEvent::PartState {
                index,
                state: Box::new(state),
            });
        }
        part.index
    }

    fn emit(&mut self, pieces: Vec<Piece>, part: &mut TextPart, events: &mut Vec<ModelEvent>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    self.has_text |= text.chars().any(|c| !c.is_whitespace());
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
        let name = self.recovery.tools.declared(&call.name).to_owned();
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
        // A part without an end is malformed.
        if call.is_complete {
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

    /// Returns the output index of a part. An unknown index stays: the accumulator reports it.
    fn output_index(&self, index: u32) -> u32 {
        self.indices.get(&index).copied().unwrap_or(index)
    }
}

impl TextPart {
    /// Returns the output index, and begins the output part if there is none.
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

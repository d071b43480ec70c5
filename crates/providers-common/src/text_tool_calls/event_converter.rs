//! Conversion of the events of an answer whose text contains tool calls.

use std::collections::{BTreeMap, HashMap};

use switchboard_domain::{ModelEvent, PartStart, ProviderState, ToolChoiceOutcome};

use super::{
    CallRecoverySettings,
    json_calls::FoundCall,
    scan::{ScannedPiece, TextScanner},
};
use crate::{AnswerEvents, ToolUseIds, emit_part_state};

/// Converter of the events of one answer, which replaces tool calls in the text by tool uses.
/// [`recover_tool_calls`](super::recover_tool_calls) applies it to a whole stream.
///
/// If the input events are in an order that
/// [`EventOrderChecker`](switchboard_domain::EventOrderChecker) allows, the output events are too.
/// Parts get new indices, because a text with calls becomes several parts.
#[derive(Debug)]
pub struct TextCallConverter {
    recovery: CallRecoverySettings,
    /// Unfinished text parts of the original answer, by their index in that answer.
    texts: BTreeMap<u32, TextPart>,
    /// Indices of the parts that are not text. Each key is an index in the original answer, and its
    /// value is the index in the converted answer.
    indices: HashMap<u32, u32>,
    next_index: u32,
    ids: ToolUseIds,
    found_any: bool,
    /// Whether text other than white space was emitted.
    has_text: bool,
    has_started: bool,
    has_finished: bool,
}

#[derive(Debug)]
struct TextPart {
    scanner: TextScanner,
    /// Provider states of this text part. They are emitted with the last part that it becomes in
    /// the converted answer.
    states: Vec<ProviderState>,
    /// Index, in the converted answer, of the part to which this text is added. `None` if no such
    /// part is open.
    index: Option<u32>,
}

impl TextCallConverter {
    /// Creates the converter for one answer.
    pub fn new(recovery: CallRecoverySettings) -> Self {
        Self {
            ids: recovery.ids.clone(),
            recovery,
            texts: BTreeMap::new(),
            indices: HashMap::new(),
            next_index: 0,
            found_any: false,
            has_text: false,
            has_started: false,
            has_finished: false,
        }
    }

    /// Converts the next event of the answer and appends the result to `events`.
    pub fn push(&mut self, mut event: ModelEvent, events: &mut Vec<ModelEvent>) {
        if let ModelEvent::Retrying { .. } = event {
            *self = Self::new(self.recovery.clone());
            events.push(event);
            return;
        }
        if !std::mem::replace(&mut self.has_started, true)
            && let Some(outcome) = self.recovery.outcome.clone()
        {
            self.emit_start(outcome, &mut event, events);
            if let ModelEvent::Started { .. } = event {
                return;
            }
        }
        let event = match event {
            ModelEvent::PartStarted { index, part } => {
                self.start_text_parts(events);
                if part == PartStart::Text {
                    let text = TextPart {
                        scanner: TextScanner::new(self.recovery.clone(), self.has_text),
                        states: Vec::new(),
                        index: None,
                    };
                    self.texts.insert(index, text);
                    return;
                }
                if let PartStart::ToolUse { id, .. } = &part {
                    self.ids.claim_tool_use_id(Some(id));
                }
                let output = take_part_index(&mut self.next_index);
                self.indices.insert(index, output);
                ModelEvent::PartStarted {
                    index: output,
                    part,
                }
            }
            ModelEvent::TextDelta { index, text }
                if let Some(part) = self.texts.get_mut(&index) =>
            {
                let text = part.scanner.push(&text);
                if !text.is_empty() {
                    self.has_text = true;
                    let index = start_text(&mut part.index, &mut self.next_index, events);
                    events.push(ModelEvent::TextDelta { index, text });
                }
                return;
            }
            ModelEvent::PartState { index, state }
                if let Some(text) = self.texts.get_mut(&index) =>
            {
                text.states.push(*state);
                return;
            }
            ModelEvent::PartFinished { index } if let Some(part) = self.texts.remove(&index) => {
                let Some(index) = self.end_text_part(part, events) else {
                    return;
                };
                ModelEvent::PartFinished { index }
            }
            ModelEvent::Finished { reason, raw } => {
                self.end_answer(events);
                self.has_finished = true;
                let reason = if self.found_any {
                    reason.adjust_to_tool_uses(true)
                } else {
                    reason
                };
                ModelEvent::Finished { reason, raw }
            }
            mut other => {
                if let ModelEvent::TextDelta { index, .. }
                | ModelEvent::ReasoningDelta { index, .. }
                | ModelEvent::ToolInputDelta { index, .. }
                | ModelEvent::PartState { index, .. }
                | ModelEvent::PartFinished { index } = &mut other
                {
                    // An event of a part that was never started is invalid. It keeps its index, and
                    // `ResponseAccumulator` then reports the error.
                    *index = self.indices.get(index).copied().unwrap_or(*index);
                }
                other
            }
        };
        events.push(event);
    }

    /// Ends the answer, complete or not, and appends the buffered text and calls to `events`.
    pub fn end_answer(&mut self, events: &mut Vec<ModelEvent>) {
        if !self.has_finished {
            for part in std::mem::take(&mut self.texts).into_values() {
                self.end_text_part(part, events);
            }
        }
    }

    /// Emits `Started`, which states how the tool choice was applied (`outcome`), and the warnings.
    fn emit_start(
        &self,
        outcome: ToolChoiceOutcome,
        event: &mut ModelEvent,
        events: &mut Vec<ModelEvent>,
    ) {
        let (response_id, model) = match event {
            ModelEvent::Started {
                response_id, model, ..
            } => (response_id.take(), model.take()),
            _ => (None, None),
        };
        let mut answer = AnswerEvents::new(outcome, self.recovery.warnings.clone());
        answer.emit_start(response_id, model, events);
    }

    /// Starts a part of the converted answer for each unfinished text, so that the buffered text
    /// stays before the part that begins next.
    fn start_text_parts(&mut self, events: &mut Vec<ModelEvent>) {
        for text in self.texts.values_mut() {
            start_text(&mut text.index, &mut self.next_index, events);
        }
    }

    /// Ends a text and emits its buffered content. Returns the index, in the converted answer, of
    /// the text part that is still open, or `None` if there is none.
    fn end_text_part(&mut self, part: TextPart, events: &mut Vec<ModelEvent>) -> Option<u32> {
        let TextPart {
            scanner,
            states,
            mut index,
        } = part;
        for piece in scanner.into_pieces() {
            match piece {
                ScannedPiece::Text(text) => {
                    self.has_text |= text.chars().any(|c| !c.is_whitespace());
                    let index = start_text(&mut index, &mut self.next_index, events);
                    events.push(ModelEvent::TextDelta { index, text });
                }
                ScannedPiece::Call(call) => {
                    if let Some(index) = index.take() {
                        events.push(ModelEvent::PartFinished { index });
                    }
                    self.emit_call(call, events);
                }
            }
        }
        for state in states {
            let index = start_text(&mut index, &mut self.next_index, events);
            emit_part_state(index, state, events);
        }
        index
    }

    fn emit_call(&mut self, call: FoundCall, events: &mut Vec<ModelEvent>) {
        self.found_any = true;
        let index = take_part_index(&mut self.next_index);
        let name = self.recovery.tools.declared_name(&call.name).to_owned();
        let id = self.ids.claim_tool_use_id(None);
        let part = PartStart::ToolUse { id, name };
        events.push(ModelEvent::PartStarted { index, part });
        if !call.input.is_empty() {
            let json = call.input;
            events.push(ModelEvent::ToolInputDelta { index, json });
        }
        // An incomplete call gets no `PartFinished` event, so that it counts as malformed and is
        // not executed.
        if call.is_complete {
            events.push(ModelEvent::PartFinished { index });
        }
    }
}

/// Returns the index in `index`. If it is `None`, starts a text part and stores its index there.
fn start_text(index: &mut Option<u32>, next_index: &mut u32, events: &mut Vec<ModelEvent>) -> u32 {
    *index.get_or_insert_with(|| {
        let index = take_part_index(next_index);
        let part = PartStart::Text;
        events.push(ModelEvent::PartStarted { index, part });
        index
    })
}

fn take_part_index(next: &mut u32) -> u32 {
    let index = *next;
    *next = next.saturating_add(1);
    index
}

//! Wire chunks → domain events.

use serde_json::Value;
use switchboard_domain::{
    FinishReason, JsonObject, ModelError, ModelErrorKind, ModelEvent, ModelId, PartStart,
    ToolChoiceOutcome, Usage, Warning, WarningKind,
};
use switchboard_providers_common::{LocalIds, WireDecoder, http::classify::excerpt};

use super::{
    calls::Calls,
    thoughts::{Details, readable, state},
    wire::{Chunk, Delta, UsageReport},
};
use crate::{
    answer::Came,
    error::{ApiError, is_error},
    reshaped::{Held, Reshaped, broken, pass, rest},
};

/// Words for an end that was not the model's: of OpenRouter, vLLM and `DeepSeek`.
const BROKEN_OFF: [&str; 3] = ["error", "abort", "insufficient_system_resource"];

/// The stream's state machine: chunks in, domain events out.
///
/// `Finished` is said when the wire is done (`[DONE]` or the end of the transport), not with the
/// `finish_reason`: servers send more after that, and the usage always.
#[derive(Debug)]
pub struct ChatDecoder {
    model: ModelId,
    tool_choice: ToolChoiceOutcome,
    warnings: Vec<Warning>,
    started: bool,
    next_part: u32,
    text: Option<u32>,
    /// Text that is to be given another shape.
    held: Option<Held>,
    reshaped: Reshaped,
    refusal: Option<u32>,
    reasoning: Option<u32>,
    /// The field that the reasoning came in. Some servers send the same under two names.
    reasoning_field: Option<&'static str>,
    /// What the open reasoning part must carry back.
    details: Details,
    blocks: Details,
    calls: Calls,
    finish: Option<String>,
    /// Whether the end counts though no `finish_reason` came: a whole body needs none.
    finish_optional: bool,
    done: bool,
    /// Whether a choice came.
    answered: bool,
    other_answers: bool,
    chunk: u64,
}

impl ChatDecoder {
    /// A decoder for one answer of `model`, whose request came to `tool_choice` and `warnings`.
    /// `ids` knows which tool-use ids the conversation has used up.
    pub fn new(
        model: ModelId,
        tool_choice: ToolChoiceOutcome,
        warnings: Vec<Warning>,
        ids: LocalIds,
    ) -> Self {
        let calls = Calls::new(model.clone(), ids);
        Self {
            model,
            tool_choice,
            warnings,
            started: false,
            next_part: 0,
            text: None,
            held: None,
            reshaped: Reshaped::default(),
            refusal: None,
            reasoning: None,
            reasoning_field: None,
            details: Details::default(),
            blocks: Details::default(),
            calls,
            finish: None,
            finish_optional: false,
            done: false,
            answered: false,
            other_answers: false,
            chunk: 0,
        }
    }

    /// The same for a request whose answer has other names or another shape than was asked for, as its
    /// [`WireRequest::reshaped`](super::WireRequest::reshaped) says.
    #[must_use]
    pub fn reshaping(mut self, reshaped: Reshaped) -> Self {
        self.calls.reshape(reshaped.clone());
        self.reshaped = reshaped;
        self
    }

    /// A whole body is one chunk that needs no `finish_reason`.
    pub(crate) fn read_whole(
        &mut self,
        body: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        self.finish_optional = true;
        self.frame("", body, events)?;
        if self.answered {
            self.end(events)
        } else {
            let message = format!("no answer in the body: {}", excerpt(body.as_bytes()));
            Err(self.error(ModelErrorKind::Protocol, message))
        }
    }

    /// Takes the reason of the end. One that says more than "stop" is not replaced.
    fn ended(&mut self, reason: Option<String>) {
        if reason.is_some() && self.finish.as_deref().is_none_or(|said| said == "stop") {
            self.finish = reason;
        }
    }

    fn chunk(&mut self, chunk: Chunk, events: &mut Vec<ModelEvent>) {
        self.chunk = self.chunk.saturating_add(1);
        let id = chunk.id.filter(|id| !id.is_empty());
        // Azure begins with a chunk about the prompt, which has neither an id nor an answer.
        let says_something = id.is_some() || !chunk.choices.is_empty() || chunk.usage.is_some();
        if !self.started && says_something {
            let model = chunk.model.filter(|model| !model.is_empty());
            self.start(id, model, events);
        }
        for choice in chunk.choices {
            if choice.index.is_some_and(|index| index != 0) {
                self.other_answer(events);
                continue;
            }
            self.answered = true;
            if let Some(delta) = choice.delta.or(choice.message) {
                self.delta(*delta, events);
            }
            self.ended(choice.finish_reason.filter(|reason| !reason.is_empty()));
        }
        report(chunk.usage.map(|usage| *usage), events);
    }

    fn start(
        &mut self,
        response_id: Option<String>,
        model: Option<String>,
        events: &mut Vec<ModelEvent>,
    ) {
        self.started = true;
        events.push(ModelEvent::Started {
            response_id,
            model,
            tool_choice: std::mem::take(&mut self.tool_choice),
        });
        let warnings = std::mem::take(&mut self.warnings);
        events.extend(
            warnings
                .into_iter()
                .map(|warning| ModelEvent::Warning { warning }),
        );
    }

    fn delta(&mut self, delta: Delta, events: &mut Vec<ModelEvent>) {
        let readable = |details: &[JsonObject]| details.iter().map(readable).collect::<String>();
        let thoughts = [
            (
                "reasoning_details",
                Some(readable(&delta.reasoning_details)),
            ),
            ("thinking_blocks", Some(readable(&delta.thinking_blocks))),
        ];
        let thoughts = [
            ("reasoning_content", delta.reasoning_content),
            ("reasoning", delta.reasoning),
        ]
        .into_iter()
        .chain(thoughts);
        for (field, text) in thoughts {
            self.think(field, text.as_deref().unwrap_or_default(), events);
        }
        for detail in delta.reasoning_details {
            self.reasoning_part(events);
            self.details.push(detail);
        }
        for block in delta.thinking_blocks {
            self.reasoning_part(events);
            self.blocks.push(block);
        }
        if let Some(content) = delta.content {
            content.for_each_text(|thought, text| {
                if thought {
                    self.think("content", text, events);
                } else {
                    self.say(text, events);
                }
            });
        }
        self.refuse(delta.refusal.as_deref().unwrap_or_default(), events);
        for call in &delta.tool_calls {
            self.end_reasoning(events);
            let next_part = &mut self.next_part;
            self.calls.delta(call, self.chunk, next_part, events);
        }
        if let Some(function) = delta.function_call {
            self.end_reasoning(events);
            let next_part = &mut self.next_part;
            self.calls.legacy(function, self.chunk, next_part, events);
        }
    }

    fn think(&mut self, field: &'static str, text: &str, events: &mut Vec<ModelEvent>) {
        if text.is_empty() || self.reasoning_field.is_some_and(|known| known != field) {
            return;
        }
        self.reasoning_field = Some(field);
        self.calls.settle();
        let index = self.reasoning_part(events);
        let text = text.to_owned();
        events.push(ModelEvent::ReasoningDelta { index, text });
    }

    /// The open reasoning part.
    fn reasoning_part(&mut self, events: &mut Vec<ModelEvent>) -> u32 {
        if let Some(index) = self.reasoning {
            return index;
        }
        let index = self.open(PartStart::Reasoning, events);
        self.reasoning = Some(index);
        index
    }

    /// The answer proper has begun; thoughts that come later are another part.
    fn end_reasoning(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some(index) = self.reasoning.take() {
            // Servers that want their reasoning back want it under the same name.
            let (details, blocks) = (&mut self.details, &mut self.blocks);
            let state = state(&self.model, self.reasoning_field, details, blocks);
            events.extend(state.map(|state| {
                let state = Box::new(state);
                ModelEvent::PartState { index, state }
            }));
            events.push(ModelEvent::PartFinished { index });
        }
    }

    fn say(&mut self, text: &str, events: &mut Vec<ModelEvent>) {
        if text.is_empty() {
            return;
        }
        self.end_reasoning(events);
        self.calls.settle();
        let index = if let Some(index) = self.text {
            index
        } else {
            self.held = self.reshaped.hold_answer();
            self.open(PartStart::Text, events)
        };
        self.text = Some(index);
        let text = pass(&mut self.held, text);
        events.extend(text.map(|text| ModelEvent::TextDelta { index, text }));
    }

    fn refuse(&mut self, text: &str, events: &mut Vec<ModelEvent>) {
        if text.is_empty() {
            return;
        }
        self.end_reasoning(events);
        self.calls.settle();
        let index = self
            .refusal
            .unwrap_or_else(|| self.open(PartStart::Text, events));
        self.refusal = Some(index);
        let text = text.to_owned();
        events.push(ModelEvent::TextDelta { index, text });
    }

    fn open(&mut self, part: PartStart, events: &mut Vec<ModelEvent>) -> u32 {
        let index = self.next_part;
        self.next_part = index.saturating_add(1);
        events.push(ModelEvent::PartStarted { index, part });
        index
    }

    fn other_answer(&mut self, events: &mut Vec<ModelEvent>) {
        if !std::mem::replace(&mut self.other_answers, true) {
            let message = "the server sent several answers (`n`); only the first is read";
            let warning = Warning::new(WarningKind::UnknownWireValue, message);
            events.push(ModelEvent::Warning { warning });
        }
    }

    /// The wire is done.
    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let raw = self.finish.take();
        if raw.is_none() && !self.finish_optional {
            let message = "the stream ended without a finish_reason";
            return Err(self.error(ModelErrorKind::Interrupted, message));
        }
        if let Some(word) = raw.as_deref().filter(|word| BROKEN_OFF.contains(word)) {
            let message = format!("the server ended the answer with finish_reason `{word}`");
            return Err(self.error(ModelErrorKind::Interrupted, message));
        }
        self.done = true;
        if !self.started {
            self.start(None, None, events);
        }
        let reason = finish_reason(raw.as_deref().unwrap_or("stop"));
        let cut_off = matches!(
            reason,
            FinishReason::Length | FinishReason::ContentFilter | FinishReason::ContextOverflow
        );
        self.end_reasoning(events);
        let held = self.text.zip(rest(&mut self.held));
        events.extend(held.map(|(index, text)| ModelEvent::TextDelta { index, text }));
        let texts = [self.text.take(), self.refusal.take()];
        for index in texts.into_iter().flatten() {
            events.push(ModelEvent::PartFinished { index });
        }
        self.calls.finish(cut_off, events);
        let came = Came {
            refused: texts[1].is_some(),
            called: self.calls.any(),
            nameless: self.calls.nameless(),
        };
        came.finish(reason, raw, events);
        Ok(())
    }

    /// The answer broke off: gives out what was held back.
    fn release(&mut self, events: &mut Vec<ModelEvent>) {
        let held = self.text.zip(broken(&mut self.held));
        events.extend(held.map(|(index, text)| ModelEvent::TextDelta { index, text }));
        self.calls.release(events);
    }

    fn error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError::new(&*self.model.provider, kind, message)
    }

    fn in_band(&self, error: &ApiError) -> ModelError {
        error.in_band(&self.model.provider)
    }
}

impl WireDecoder for ChatDecoder {
    fn frame(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let read = self.read(name, data, events);
        read.inspect_err(|_| self.release(events))
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        let finished = self.finish(events);
        finished.inspect_err(|_| self.release(events))
    }
}

impl ChatDecoder {
    /// Reads a frame.
    fn read(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        if data == "[DONE]" {
            return self.finish(events);
        }
        let unreadable = || {
            let message = format!("a chunk is not a JSON object: {}", excerpt(data.as_bytes()));
            self.error(ModelErrorKind::Protocol, message)
        };
        // serde would read a list as the fields in order.
        if data.starts_with('[') {
            let body: Value = serde_json::from_str(data).unwrap_or_default();
            let error = ApiError::from_body(&body);
            return Err(error.map_or_else(unreadable, |error| self.in_band(&error)));
        }
        let chunk: Chunk =
            serde_json::from_str(data).map_err(|fault| unreadable().with_source(fault))?;
        if let Some(error) = chunk.error.as_ref().filter(|error| is_error(error)) {
            return Err(self.in_band(&ApiError::from_error(error)));
        }
        if name == "error" || chunk.object.as_deref() == Some("error") {
            let body: Value = serde_json::from_str(data).unwrap_or_default();
            let error = ApiError::from_body(&body).unwrap_or_default();
            return Err(self.in_band(&error));
        }
        self.chunk(chunk, events);
        Ok(())
    }
}

/// Says the tokens, if any are known.
fn report(usage: Option<UsageReport>, events: &mut Vec<ModelEvent>) {
    let usage = usage.map(Usage::from).filter(Usage::is_known);
    events.extend(usage.map(|usage| {
        let usage = Box::new(usage);
        ModelEvent::Usage { usage }
    }));
}

/// The reason in the server's word. `tool_calls` and `function_call` are brought in line with the
/// output later.
fn finish_reason(word: &str) -> FinishReason {
    match word {
        // The last four are those of servers built on other engines.
        "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => FinishReason::Stop,
        "tool_calls" | "function_call" => FinishReason::ToolUse,
        "length" | "max_tokens" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        "model_length" => FinishReason::ContextOverflow,
        other => FinishReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;

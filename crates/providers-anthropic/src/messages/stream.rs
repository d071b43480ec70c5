//! Wire events → domain events.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use switchboard_domain::{
    FinishReason, JsonObject, ModelError, ModelErrorKind, ModelEvent, ModelId, PartStart,
    ProviderState, ToolChoiceOutcome, Usage, Warning, WarningKind,
    accumulator::DEFAULT_MAX_TOOL_INPUT_BYTES as MAX_INPUT,
};
use switchboard_providers_common::{LocalIds, WireDecoder, http::classify::excerpt};

use super::{
    blocks::{self, OpenBlock},
    content::{CONTAINER, REDACTED, SIGNATURE},
    restore::{Held, Reshaped},
    wire::{Envelope, MessageHead, StopDetails, UsageReport, WireDelta},
};
use crate::error::{ApiError, says_something};

/// Odd things that are warned of at most.
const MAX_ODD: usize = 32;

/// The stream's state machine: wire events in, domain events out.
///
/// A call is finished not with its own end but with what comes after it: when the output limit
/// strikes, the API ends the call that it cut off like any other, and only then says why.
#[derive(Debug)]
pub struct MessagesDecoder {
    model: ModelId,
    tool_choice: ToolChoiceOutcome,
    warnings: Vec<Warning>,
    ids: LocalIds,
    reshaped: Reshaped,
    started: bool,
    done: bool,
    next_part: u32,
    /// The blocks being written, by the wire's number for them.
    open: BTreeMap<u64, OpenBlock>,
    /// The call that ended last, as long as it may have been cut off.
    last_call: Option<u32>,
    any_call: bool,
    /// Calls that came without a name, which nobody could run.
    nameless: usize,
    stop_reason: Option<String>,
    stop_details: Option<StopDetails>,
    container: Option<JsonObject>,
    usage: UsageReport,
    /// What was warned of: once is enough.
    odd: BTreeSet<String>,
}

impl MessagesDecoder {
    /// A decoder for one answer of `model`, whose request came to `tool_choice` and `warnings`.
    /// `ids` knows which tool-use ids the conversation has used up.
    pub fn new(
        model: ModelId,
        tool_choice: ToolChoiceOutcome,
        warnings: Vec<Warning>,
        ids: LocalIds,
    ) -> Self {
        Self {
            model,
            tool_choice,
            warnings,
            ids,
            reshaped: Reshaped::default(),
            started: false,
            done: false,
            next_part: 0,
            open: BTreeMap::new(),
            last_call: None,
            any_call: false,
            nameless: 0,
            stop_reason: None,
            stop_details: None,
            container: None,
            usage: UsageReport::default(),
            odd: BTreeSet::new(),
        }
    }

    /// The same for a request with tools whose names or inputs come in another shape.
    #[must_use]
    pub fn reshaping(mut self, reshaped: Reshaped) -> Self {
        self.reshaped = reshaped;
        self
    }

    /// A whole body says at once what a stream says in pieces.
    pub(crate) fn whole(
        mut self,
        body: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        self.frame("message", body, events)?;
        if self.done {
            return Ok(());
        }
        let message = format!("no answer in the body: {}", excerpt(body.as_bytes()));
        Err(self.error(ModelErrorKind::Protocol, message))
    }

    fn event(
        &mut self,
        kind: &str,
        envelope: Envelope,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let index = envelope.index.unwrap_or(0);
        match kind {
            "message_start" => self.head(envelope.message.unwrap_or_default(), events),
            "content_block_start" => {
                self.begin(index, envelope.content_block.unwrap_or_default(), events);
            }
            "content_block_delta" => {
                self.delta(index, envelope.delta.unwrap_or_default(), events);
            }
            "content_block_stop" => self.end_block(index, events),
            "message_delta" => {
                if !self.started {
                    self.start(None, None, events);
                }
                let delta = Value::Object(envelope.delta.unwrap_or_default());
                self.ending(serde_json::from_value(delta).unwrap_or_default());
                self.count(envelope.usage, events);
            }
            "message_stop" => self.finish(events),
            // A server that does not stream answers with the whole message.
            "message" => {
                let message: MessageHead = serde_json::from_str(data).unwrap_or_default();
                if message.content.is_empty() && message.end.stop_reason.is_none() {
                    let message = format!("no message in it: {}", excerpt(data.as_bytes()));
                    return Err(self.error(ModelErrorKind::Protocol, message));
                }
                self.head(message, events);
                self.finish(events);
            }
            "ping" => {}
            other => self.odd(&format!("event `{other}`"), events),
        }
        Ok(())
    }

    /// How the message begins, or all of it.
    fn head(&mut self, message: MessageHead, events: &mut Vec<ModelEvent>) {
        if self.started {
            self.odd("a second beginning", events);
        } else {
            self.start(message.id, message.model, events);
        }
        for (index, block) in (0..).zip(message.content) {
            self.begin(index, block, events);
            self.end_block(index, events);
        }
        self.ending(message.end);
        self.count(message.usage, events);
    }

    fn start(
        &mut self,
        response_id: Option<String>,
        model: Option<String>,
        events: &mut Vec<ModelEvent>,
    ) {
        self.started = true;
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        events.push(ModelEvent::Started {
            response_id: said(response_id),
            model: said(model),
            tool_choice: std::mem::take(&mut self.tool_choice),
        });
        let warnings = std::mem::take(&mut self.warnings);
        events.extend(
            warnings
                .into_iter()
                .map(|warning| ModelEvent::Warning { warning }),
        );
    }

    fn ending(&mut self, end: WireDelta) {
        let reason = end.stop_reason.filter(|reason| !reason.is_empty());
        self.stop_reason = reason.or(self.stop_reason.take());
        self.stop_details = end.stop_details.or(self.stop_details.take());
        self.container = end.container.or(self.container.take());
    }

    fn count(&mut self, report: Option<UsageReport>, events: &mut Vec<ModelEvent>) {
        let Some(report) = report else {
            return;
        };
        self.usage.update(report);
        let usage = Usage::from(self.usage);
        if usage.is_known() {
            let usage = Box::new(usage);
            events.push(ModelEvent::Usage { usage });
        }
    }

    fn begin(&mut self, index: u64, mut block: JsonObject, events: &mut Vec<ModelEvent>) {
        if self.open.contains_key(&index) {
            self.odd("two blocks under one number", events);
            self.end_block(index, events);
        }
        if !self.started {
            self.start(None, None, events);
        }
        self.settle(events);
        let kind = block.get("type").and_then(Value::as_str);
        let kind = kind.unwrap_or_default().to_owned();
        let opened = match kind.as_str() {
            "text" => {
                let part = self.open(PartStart::Text, events);
                push_text(part, text(&mut block, "text"), events);
                let citations = match block.shift_remove("citations") {
                    Some(Value::Array(citations)) => citations,
                    _ => Vec::new(),
                };
                OpenBlock::Text { part, citations }
            }
            "thinking" => {
                let part = self.open(PartStart::Reasoning, events);
                push_thought(part, text(&mut block, "thinking"), events);
                self.sign(part, SIGNATURE, &text(&mut block, "signature"), events);
                OpenBlock::Reasoning { part }
            }
            "redacted_thinking" => {
                let part = self.open(PartStart::Reasoning, events);
                self.sign(part, REDACTED, &text(&mut block, "data"), events);
                OpenBlock::Reasoning { part }
            }
            "tool_use" => self.begin_call(block, events),
            // Kept as it came, for it goes back so.
            _ => OpenBlock::Opaque {
                block,
                input: String::new(),
            },
        };
        self.open.insert(index, opened);
    }

    fn begin_call(&mut self, mut block: JsonObject, events: &mut Vec<ModelEvent>) -> OpenBlock {
        let name = text(&mut block, "name");
        if name.trim().is_empty() {
            self.nameless += 1;
            return OpenBlock::LeftOut;
        }
        let more = blocks::more_of_call(&block);
        let id = self.ids.claim(Some(text(&mut block, "id").trim()));
        let name = self.reshaped.declared(&name).to_owned();
        let held = self.reshaped.hold(&name);
        let part = self.open(PartStart::ToolUse { id, name }, events);
        self.any_call = true;
        if !more.is_empty() {
            let state = blocks::for_any_model(&self.model, Value::Object(more));
            let state = Box::new(state);
            events.push(ModelEvent::PartState { index: part, state });
        }
        OpenBlock::ToolUse {
            part,
            input: block.shift_remove("input"),
            held,
        }
    }

    fn delta(&mut self, index: u64, mut delta: JsonObject, events: &mut Vec<ModelEvent>) {
        let kind = text(&mut delta, "type");
        if !self.open.contains_key(&index) {
            // Some servers do not say that a block begins.
            let block = match kind.as_str() {
                "text_delta" => json!({"type": "text"}),
                "thinking_delta" => json!({"type": "thinking"}),
                _ => Value::Null,
            };
            let Value::Object(block) = block else {
                return self.odd(&format!("`{kind}` outside of a block"), events);
            };
            self.odd("a block without a beginning", events);
            self.begin(index, block, events);
        }
        let Some(block) = self.open.get_mut(&index) else {
            return;
        };
        match (&mut *block, kind.as_str()) {
            (OpenBlock::Text { part, .. }, "text_delta") => {
                push_text(*part, text(&mut delta, "text"), events);
            }
            (OpenBlock::Text { citations, .. }, "citations_delta") => {
                citations.extend(delta.shift_remove("citation"));
            }
            (OpenBlock::Reasoning { part }, "thinking_delta") => {
                push_thought(*part, text(&mut delta, "thinking"), events);
            }
            (OpenBlock::Reasoning { part }, "signature_delta") => {
                let part = *part;
                self.sign(part, SIGNATURE, &text(&mut delta, "signature"), events);
            }
            (OpenBlock::ToolUse { part, input, held }, "input_json_delta") => {
                let json = text(&mut delta, "partial_json");
                push_input(*part, input, held, json, events);
            }
            (OpenBlock::Opaque { input, .. }, "input_json_delta") => {
                let json = text(&mut delta, "partial_json");
                if input.len().saturating_add(json.len()) <= MAX_INPUT {
                    input.push_str(&json);
                } else {
                    *block = OpenBlock::LeftOut;
                    let message = format!(
                        "a call of the provider's own tool was left out: its input is longer than \
                         {MAX_INPUT} bytes"
                    );
                    let warning = Warning::new(WarningKind::PartDropped, message);
                    events.push(ModelEvent::Warning { warning });
                }
            }
            (OpenBlock::LeftOut, _) => {}
            (OpenBlock::Opaque { block, .. }, _) => blocks::merge(block, delta),
            (_, other) => self.odd(&format!("`{other}` in a block of another type"), events),
        }
    }

    fn end_block(&mut self, index: u64, events: &mut Vec<ModelEvent>) {
        match self.open.remove(&index) {
            Some(block) => self.close(block, events),
            None => self.odd("the end of a block that had not begun", events),
        }
    }

    fn close(&mut self, block: OpenBlock, events: &mut Vec<ModelEvent>) {
        match block {
            OpenBlock::Text { part, citations } => {
                blocks::cite(&self.model, part, citations, events);
                events.push(ModelEvent::PartFinished { index: part });
            }
            OpenBlock::Reasoning { part } => {
                events.push(ModelEvent::PartFinished { index: part });
            }
            OpenBlock::ToolUse { part, input, held } => {
                blocks::give_input(part, input, held, events);
                self.settle(events);
                self.last_call = Some(part);
            }
            OpenBlock::LeftOut => {}
            OpenBlock::Opaque { block, input } => {
                let index = self.next_index();
                blocks::opaque(&self.model, index, block, &input, events);
            }
        }
    }

    /// Something came after the call that ended last: it was not cut off.
    fn settle(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some(index) = self.last_call.take() {
            events.push(ModelEvent::PartFinished { index });
        }
    }

    /// What the model, and only this one, must see again beside a thought.
    fn sign(&self, part: u32, what: &str, value: &str, events: &mut Vec<ModelEvent>) {
        if !value.is_empty() {
            let state = ProviderState::minted_by(&self.model, json!({ what: value }));
            let state = Box::new(state);
            events.push(ModelEvent::PartState { index: part, state });
        }
    }

    fn open(&mut self, part: PartStart, events: &mut Vec<ModelEvent>) -> u32 {
        let index = self.next_index();
        events.push(ModelEvent::PartStarted { index, part });
        index
    }

    fn next_index(&mut self) -> u32 {
        let index = self.next_part;
        self.next_part = index.saturating_add(1);
        index
    }

    /// The wire is done.
    fn finish(&mut self, events: &mut Vec<ModelEvent>) {
        self.done = true;
        if !self.started {
            self.start(None, None, events);
        }
        let raw = self.stop_reason.take();
        let reason = raw.as_deref().map_or(FinishReason::Stop, finish_reason);
        let cut_off = matches!(
            reason,
            FinishReason::Length | FinishReason::ContextOverflow | FinishReason::Refusal
        );
        for block in std::mem::take(&mut self.open).into_values() {
            match (cut_off, block) {
                // It stays open, and with that malformed.
                (true, OpenBlock::ToolUse { part, held, .. }) => {
                    self.settle(events);
                    let json = held.map(Held::raw).unwrap_or_default();
                    if !json.is_empty() {
                        events.push(ModelEvent::ToolInputDelta { index: part, json });
                    }
                }
                (true, OpenBlock::Opaque { block, .. }) => {
                    let kind = block.get("type").and_then(Value::as_str);
                    let message =
                        format!("an unfinished `{}` was left out", kind.unwrap_or("block"));
                    let warning = Warning::new(WarningKind::PartDropped, message);
                    events.push(ModelEvent::Warning { warning });
                }
                (_, block) => self.close(block, events),
            }
        }
        if !cut_off {
            self.settle(events);
        }
        if reason == FinishReason::Refusal {
            self.explain_refusal(events);
        }
        if let Some(mut container) = self.container.take() {
            container.insert("type".to_owned(), Value::String(CONTAINER.to_owned()));
            let index = self.next_index();
            blocks::opaque(&self.model, index, container, "", events);
        }
        let reason = self.without_nameless(reason, events);
        let reason = reason.given_tool_uses(self.any_call);
        events.push(ModelEvent::Finished { reason, raw });
    }

    /// Tells of calls without a name. If no other call came, the reason is that they were malformed.
    fn without_nameless(&self, reason: FinishReason, events: &mut Vec<ModelEvent>) -> FinishReason {
        if self.nameless == 0 {
            return reason;
        }
        let count = self.nameless;
        let message = format!("{count} call(s) came without a name and were left out");
        let warning = Warning::new(WarningKind::UnknownWireValue, message);
        events.push(ModelEvent::Warning { warning });
        let meant = matches!(reason, FinishReason::Stop | FinishReason::ToolUse);
        if meant && !self.any_call {
            FinishReason::MalformedToolCall
        } else {
            reason
        }
    }

    /// The provider's words for why the model declined.
    fn explain_refusal(&mut self, events: &mut Vec<ModelEvent>) {
        let details = self.stop_details.take().unwrap_or_default();
        let said = |text: &String| !text.trim().is_empty();
        let category = details.category.filter(said);
        let words = match (details.explanation.filter(said), category) {
            (Some(explanation), Some(category)) => {
                Some(format!("{explanation} (policy: {category})"))
            }
            (Some(explanation), None) => Some(explanation),
            (None, Some(category)) => Some(format!("Declined under the policy `{category}`.")),
            (None, None) => None,
        };
        if let Some(words) = words {
            let part = self.open(PartStart::Text, events);
            push_text(part, words, events);
            events.push(ModelEvent::PartFinished { index: part });
        }
    }

    fn odd(&mut self, what: &str, events: &mut Vec<ModelEvent>) {
        // Names of events are the server's: there may be any number of them.
        if self.odd.len() >= MAX_ODD || !self.odd.insert(what.to_owned()) {
            return;
        }
        let message = format!("the server sent {what}, which was not expected");
        let warning = Warning::new(WarningKind::UnknownWireValue, message);
        if self.started {
            events.push(ModelEvent::Warning { warning });
        } else {
            self.warnings.push(warning);
        }
    }

    fn error(&self, kind: ModelErrorKind, message: impl Into<String>) -> ModelError {
        ModelError::new(&*self.model.provider, kind, message)
    }
}

impl WireDecoder for MessagesDecoder {
    fn frame(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        // Some gateways end every stream like OpenAI's.
        if self.done || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let unreadable = || {
            let message = format!(
                "an event is not a JSON object: {}",
                excerpt(data.as_bytes())
            );
            self.error(ModelErrorKind::Protocol, message)
        };
        // serde would read a list as the fields in order.
        if data.starts_with('[') {
            return Err(unreadable());
        }
        let envelope: Envelope =
            serde_json::from_str(data).map_err(|fault| unreadable().with_source(fault))?;
        let kind = match envelope.kind.as_deref() {
            Some(kind) if !kind.is_empty() => kind.to_owned(),
            _ => name.to_owned(),
        };
        if kind == "error" || envelope.error.as_ref().is_some_and(says_something) {
            let body: Value = serde_json::from_str(data).unwrap_or_default();
            let error = ApiError::from_body(&body).unwrap_or_default();
            return Err(error.in_band(&self.model.provider));
        }
        self.event(&kind, envelope, data, events)
    }

    fn end(&mut self, _events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        let message = "the stream ended without `message_stop`";
        Err(self.error(ModelErrorKind::Interrupted, message))
    }
}

fn finish_reason(word: &str) -> FinishReason {
    match word {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolUse,
        "max_tokens" => FinishReason::Length,
        // After its conversation was compacted the model goes on when it is asked again, too.
        "pause_turn" | "compaction" => FinishReason::Paused,
        "refusal" => FinishReason::Refusal,
        "model_context_window_exceeded" => FinishReason::ContextOverflow,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// Takes a text out of an object; empty if it is none.
fn text(object: &mut JsonObject, name: &str) -> String {
    match object.shift_remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn push_text(part: u32, text: String, events: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        events.push(ModelEvent::TextDelta { index: part, text });
    }
}

fn push_thought(part: u32, text: String, events: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        events.push(ModelEvent::ReasoningDelta { index: part, text });
    }
}

/// More of the input of a call. What its block began with does not count then.
fn push_input(
    part: u32,
    input: &mut Option<Value>,
    held: &mut Option<Held>,
    json: String,
    events: &mut Vec<ModelEvent>,
) {
    if json.is_empty() {
        return;
    }
    *input = None;
    let index = part;
    if let Some(holder) = held {
        if let Some(json) = holder.push(&json) {
            *held = None;
            events.push(ModelEvent::ToolInputDelta { index, json });
        }
    } else {
        events.push(ModelEvent::ToolInputDelta { index, json });
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "stream_cases_tests.rs"]
mod cases;

#[cfg(test)]
#[path = "stream_laws_tests.rs"]
mod laws;

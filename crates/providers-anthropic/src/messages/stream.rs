//! Converts the events of a stream to domain events.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use switchboard_domain::{
    DEFAULT_MAX_TOOL_INPUT_BYTES as MAX_INPUT, FinishReason, JsonObject, ModelError, ModelEvent,
    ModelId, PartStart, ProviderState, ToolChoiceOutcome, Warning, WarningKind,
};
use switchboard_providers_common::{
    AnswerEvents, AnswerSummary, ToolMapping, ToolUseIds, WireDecoder, emit_part_state, emit_usage,
    interrupted_error, protocol_error, provider::is_error,
};

use super::{
    blocks::{self, OpenBlock},
    content::{CONTAINER, REDACTED, SIGNATURE},
    wire::{MessageDelta, MessageStart, StopDetails, StreamEvent, UsageReport},
};
use crate::error::ERRORS;

/// Maximum number of warnings about unexpected events in one answer. Further ones are omitted.
const MAX_UNEXPECTED: usize = 32;

/// A state machine that converts the events of the API's stream to domain events.
///
/// `PartFinished` of a tool call is emitted only when another content block starts or a complete
/// answer ends. The reason: at the output limit, the API ends an incomplete call like a complete
/// one, and reports the stop reason afterwards.
#[derive(Debug)]
pub struct MessagesDecoder {
    model: ModelId,
    answer: AnswerEvents,
    ids: ToolUseIds,
    tool_mapping: ToolMapping,
    done: bool,
    /// The content blocks that have not ended, by their index in the API's stream.
    open: BTreeMap<u64, OpenBlock>,
    /// Message part index of a tool call whose content block has ended, but whose `PartFinished`
    /// was not emitted yet. `None` without such a call.
    last_call: Option<u32>,
    has_calls: bool,
    /// Number of tool calls for which the API sent no name. They cannot be executed.
    nameless_calls: usize,
    stop_reason: Option<String>,
    stop_details: Option<StopDetails>,
    container: Option<JsonObject>,
    usage: UsageReport,
    /// Unexpected events that got a warning. Each event gets a warning only once.
    unexpected: BTreeSet<String>,
}

impl MessagesDecoder {
    /// Creates a decoder for one answer of `model`. The request mapping returns the other arguments
    /// in [`WireRequest`](super::WireRequest): the outcome of the tool choice, the warnings, and
    /// the tool-use ids of the conversation, which the answer must not reuse.
    pub fn new(
        model: ModelId,
        tool_choice: ToolChoiceOutcome,
        warnings: Vec<Warning>,
        ids: ToolUseIds,
    ) -> Self {
        Self {
            model,
            answer: AnswerEvents::new(tool_choice, warnings),
            ids,
            tool_mapping: ToolMapping::default(),
            done: false,
            open: BTreeMap::new(),
            last_call: None,
            has_calls: false,
            nameless_calls: 0,
            stop_reason: None,
            stop_details: None,
            container: None,
            usage: UsageReport::default(),
            unexpected: BTreeSet::new(),
        }
    }

    /// Sets the changes that the request mapping made to tool names and schemas. The decoder
    /// reverses them in tool calls.
    #[must_use]
    pub fn with_tool_mapping(mut self, tool_mapping: ToolMapping) -> Self {
        self.tool_mapping = tool_mapping;
        self
    }

    /// Converts a response body that is not streamed. The body is read as a single event of the
    /// type `message`.
    pub(crate) fn read_body(mut self, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        self.decode_frame("message", body, &mut events)?;
        if self.done {
            return Ok(events);
        }
        let problem = "the body does not contain an answer";
        Err(protocol_error(&self.model.provider, problem, body))
    }

    fn read_event(
        &mut self,
        kind: &str,
        envelope: StreamEvent,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let index = envelope.index.unwrap_or(0);
        match kind {
            "message_start" => self.start_message(envelope.message.unwrap_or_default(), events),
            "content_block_start" => {
                self.start_block(index, envelope.content_block.unwrap_or_default(), events);
            }
            "content_block_delta" => {
                self.read_delta(index, envelope.delta.unwrap_or_default(), events);
            }
            "content_block_stop" => self.stop_block(index, events),
            "message_delta" => {
                self.answer.emit_start(None, None, events);
                let delta = Value::Object(envelope.delta.unwrap_or_default());
                self.update_message(serde_json::from_value(delta).unwrap_or_default());
                self.update_usage(envelope.usage, events);
            }
            "message_stop" => self.finish_answer(events),
            // A server without support for streaming sends one complete message.
            "message" => {
                let message: MessageStart = serde_json::from_str(data).unwrap_or_default();
                if message.content.is_empty() && message.stop_reason.is_none() {
                    let problem = "the event has no message";
                    return Err(protocol_error(&self.model.provider, problem, data));
                }
                self.start_message(message, events);
                self.finish_answer(events);
            }
            "ping" => {}
            other => self.warn_unexpected(&format!("event `{other}`"), events),
        }
        Ok(())
    }

    /// Reads a `message_start` event or a complete message.
    fn start_message(&mut self, message: MessageStart, events: &mut Vec<ModelEvent>) {
        if self.answer.has_started() {
            self.warn_unexpected("a second `message_start`", events);
        }
        self.answer.emit_start(message.id, message.model, events);
        for (index, block) in (0..).zip(message.content) {
            self.start_block(index, block, events);
            self.stop_block(index, events);
        }
        self.update_message(MessageDelta {
            stop_reason: message.stop_reason,
            stop_details: message.stop_details,
            container: message.container,
        });
        self.update_usage(message.usage, events);
    }

    fn update_message(&mut self, delta: MessageDelta) {
        let reason = delta.stop_reason.filter(|reason| !reason.is_empty());
        self.stop_reason = reason.or(self.stop_reason.take());
        self.stop_details = delta.stop_details.or(self.stop_details.take());
        self.container = delta.container.or(self.container.take());
    }

    fn update_usage(&mut self, report: Option<UsageReport>, events: &mut Vec<ModelEvent>) {
        let Some(report) = report else {
            return;
        };
        self.usage.merge_later_usage(report);
        emit_usage(self.usage.into(), events);
    }

    fn start_block(&mut self, index: u64, mut block: JsonObject, events: &mut Vec<ModelEvent>) {
        if self.open.contains_key(&index) {
            self.warn_unexpected("two blocks with the same index", events);
            self.stop_block(index, events);
        }
        self.answer.emit_start(None, None, events);
        self.finish_last_call(events);
        let kind = block.get("type").and_then(Value::as_str);
        let kind = kind.unwrap_or_default().to_owned();
        let opened = match kind.as_str() {
            "text" => {
                let part = self.answer.start_part(PartStart::Text, events);
                emit_text(part, take_text_field(&mut block, "text"), events);
                let citations = match block.shift_remove("citations") {
                    Some(Value::Array(citations)) => citations,
                    _ => Vec::new(),
                };
                OpenBlock::Text { part, citations }
            }
            "thinking" => {
                let part = self.answer.start_part(PartStart::Reasoning, events);
                emit_reasoning(part, take_text_field(&mut block, "thinking"), events);
                let signature = take_text_field(&mut block, "signature");
                self.emit_state(part, SIGNATURE, &signature, events);
                OpenBlock::Reasoning { part }
            }
            "redacted_thinking" => {
                let part = self.answer.start_part(PartStart::Reasoning, events);
                self.emit_state(part, REDACTED, &take_text_field(&mut block, "data"), events);
                OpenBlock::Reasoning { part }
            }
            "tool_use" => self.start_call(block, events),
            _ => OpenBlock::Opaque {
                block,
                input: String::new(),
            },
        };
        self.open.insert(index, opened);
    }

    fn start_call(&mut self, mut block: JsonObject, events: &mut Vec<ModelEvent>) -> OpenBlock {
        let name = take_text_field(&mut block, "name");
        if name.trim().is_empty() {
            self.nameless_calls += 1;
            return OpenBlock::Ignored;
        }
        let further = blocks::additional_call_fields(&block);
        let id = self
            .ids
            .claim_tool_use_id(Some(take_text_field(&mut block, "id").trim()));
        let name = self.tool_mapping.declared_name(&name).to_owned();
        let restorer = self.tool_mapping.input_restorer(&name);
        let part = self
            .answer
            .start_part(PartStart::ToolUse { id, name }, events);
        self.has_calls = true;
        if !further.is_empty() {
            let state = blocks::provider_wide_state(&self.model, Value::Object(further));
            emit_part_state(part, state, events);
        }
        OpenBlock::ToolUse {
            part,
            input: block.shift_remove("input"),
            restorer,
        }
    }

    fn read_delta(&mut self, index: u64, mut delta: JsonObject, events: &mut Vec<ModelEvent>) {
        let kind = take_text_field(&mut delta, "type");
        if !self.open.contains_key(&index) {
            // Some compatible servers omit `content_block_start`, so the delta starts its block.
            let block = match kind.as_str() {
                "text_delta" => json!({"type": "text"}),
                "thinking_delta" => json!({"type": "thinking"}),
                _ => Value::Null,
            };
            let Value::Object(block) = block else {
                return self.warn_unexpected(&format!("`{kind}` outside a block"), events);
            };
            self.warn_unexpected("a delta before `content_block_start`", events);
            self.start_block(index, block, events);
        }
        let Some(block) = self.open.get_mut(&index) else {
            return;
        };
        match (&mut *block, kind.as_str()) {
            (OpenBlock::Text { part, .. }, "text_delta") => {
                emit_text(*part, take_text_field(&mut delta, "text"), events);
            }
            (OpenBlock::Text { citations, .. }, "citations_delta") => {
                citations.extend(delta.shift_remove("citation"));
            }
            (OpenBlock::Reasoning { part }, "thinking_delta") => {
                emit_reasoning(*part, take_text_field(&mut delta, "thinking"), events);
            }
            (OpenBlock::Reasoning { part }, "signature_delta") => {
                let part = *part;
                let signature = take_text_field(&mut delta, "signature");
                self.emit_state(part, SIGNATURE, &signature, events);
            }
            (
                OpenBlock::ToolUse {
                    part,
                    input,
                    restorer,
                },
                "input_json_delta",
            ) => {
                let json = take_text_field(&mut delta, "partial_json");
                if !json.is_empty() {
                    *input = None;
                    let index = *part;
                    let json = restorer.push(&json);
                    events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
                }
            }
            (OpenBlock::Opaque { input, .. }, "input_json_delta") => {
                let json = take_text_field(&mut delta, "partial_json");
                if input.len().saturating_add(json.len()) <= MAX_INPUT {
                    input.push_str(&json);
                } else {
                    *block = OpenBlock::Ignored;
                    let message = format!(
                        "a call of a provider's tool was dropped: its input is longer than \
                         {MAX_INPUT} bytes"
                    );
                    self.answer.warn(WarningKind::PartDropped, message, events);
                }
            }
            (OpenBlock::Ignored, _) => {}
            (OpenBlock::Opaque { block, .. }, _) => blocks::apply_unknown_delta(block, delta),
            (_, other) => {
                self.warn_unexpected(&format!("`{other}` in a block of another type"), events);
            }
        }
    }

    fn stop_block(&mut self, index: u64, events: &mut Vec<ModelEvent>) {
        match self.open.remove(&index) {
            Some(block) => self.close_block(block, events),
            None => self.warn_unexpected("`content_block_stop` without a block", events),
        }
    }

    fn close_block(&mut self, block: OpenBlock, events: &mut Vec<ModelEvent>) {
        match block {
            OpenBlock::Text { part, citations } => {
                blocks::emit_citations(&self.model, part, citations, events);
                events.push(ModelEvent::PartFinished { index: part });
            }
            OpenBlock::Reasoning { part } => {
                events.push(ModelEvent::PartFinished { index: part });
            }
            OpenBlock::ToolUse {
                part,
                input,
                restorer,
            } => {
                blocks::emit_call_input(part, input, restorer, events);
                self.finish_last_call(events);
                self.last_call = Some(part);
            }
            OpenBlock::Ignored => {}
            OpenBlock::Opaque { block, input } => {
                let part = blocks::to_opaque_part(&self.model, block, &input);
                self.answer.emit_whole_part(part, events);
            }
        }
    }

    /// Emits `PartFinished` for the last tool call, unless it was already emitted. Must be called
    /// only after a later event has shown that the input of the call is complete.
    fn finish_last_call(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some(index) = self.last_call.take() {
            events.push(ModelEvent::PartFinished { index });
        }
    }

    /// Emits the provider state of a reasoning part: an object that maps `name` to `value`. Later
    /// requests send the state back only to this model. Emits nothing if `value` is empty.
    fn emit_state(&self, part: u32, name: &str, value: &str, events: &mut Vec<ModelEvent>) {
        if !value.is_empty() {
            let state = ProviderState::new_for_model(&self.model, json!({ name: value }));
            emit_part_state(part, state, events);
        }
    }

    /// Emits the last events of the answer at the end of the stream. If the answer is incomplete, a
    /// tool call at its end gets no `PartFinished`, so that the call is not executed.
    fn finish_answer(&mut self, events: &mut Vec<ModelEvent>) {
        self.done = true;
        self.answer.emit_start(None, None, events);
        let raw = self.stop_reason.take();
        let reason = raw.as_deref().map_or(FinishReason::Stop, finish_reason);
        let is_incomplete = matches!(
            reason,
            FinishReason::Length | FinishReason::ContextOverflow | FinishReason::Refusal
        );
        for block in std::mem::take(&mut self.open).into_values() {
            match (is_incomplete, block) {
                // The call gets no `PartFinished`, so that its incomplete input is not executed.
                (
                    true,
                    OpenBlock::ToolUse {
                        part, mut restorer, ..
                    },
                ) => {
                    self.finish_last_call(events);
                    let json = restorer.take_raw_buffer();
                    events
                        .extend(json.map(|json| ModelEvent::ToolInputDelta { index: part, json }));
                }
                (true, OpenBlock::Opaque { block, .. }) => {
                    let kind = block.get("type").and_then(Value::as_str);
                    let kind = kind.unwrap_or("block");
                    let message = format!("an incomplete `{kind}` was dropped");
                    self.answer.warn(WarningKind::PartDropped, message, events);
                }
                (_, block) => self.close_block(block, events),
            }
        }
        if !is_incomplete {
            self.finish_last_call(events);
        }
        if reason == FinishReason::Refusal {
            self.emit_refusal(events);
        }
        if let Some(mut container) = self.container.take() {
            container.insert("type".to_owned(), Value::String(CONTAINER.to_owned()));
            let part = blocks::to_opaque_part(&self.model, container, "");
            self.answer.emit_whole_part(part, events);
        }
        let summary = AnswerSummary {
            has_refusal: false,
            has_calls: self.has_calls,
            nameless_calls: self.nameless_calls,
        };
        summary.emit_finish(reason, raw, events);
    }

    /// Emits the provider's explanation of a refusal as text.
    fn emit_refusal(&mut self, events: &mut Vec<ModelEvent>) {
        let details = self.stop_details.take().unwrap_or_default();
        let is_visible = |text: &String| !text.trim().is_empty();
        let category = details.category.filter(is_visible);
        let explanation = match (details.explanation.filter(is_visible), category) {
            (Some(explanation), Some(category)) => format!("{explanation} (policy: {category})"),
            (Some(explanation), None) => explanation,
            (None, Some(category)) => format!("Declined under the policy `{category}`."),
            (None, None) => return,
        };
        let part = self.answer.start_part(PartStart::Text, events);
        emit_text(part, explanation, events);
        events.push(ModelEvent::PartFinished { index: part });
    }

    fn warn_unexpected(&mut self, what: &str, events: &mut Vec<ModelEvent>) {
        // The server chooses the event names, so the number of warnings is limited.
        if self.unexpected.len() >= MAX_UNEXPECTED || !self.unexpected.insert(what.to_owned()) {
            return;
        }
        let message = format!("the server sent {what}, which was not expected");
        let kind = WarningKind::UnknownWireValue;
        self.answer.warn(kind, message, events);
    }
}

impl WireDecoder for MessagesDecoder {
    fn decode_frame(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        // Some gateways end every stream with `[DONE]`, as OpenAI does.
        if self.done || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let unreadable =
            || protocol_error(&self.model.provider, "an event is not a JSON object", data);
        // An array is not parsed as an event: serde would read its elements as the fields in order.
        if data.starts_with('[') {
            return Err(unreadable());
        }
        let envelope: StreamEvent =
            serde_json::from_str(data).map_err(|fault| unreadable().with_source(fault))?;
        let kind = match envelope.kind.as_deref() {
            Some(kind) if !kind.is_empty() => kind.to_owned(),
            _ => name.to_owned(),
        };
        if kind == "error" || envelope.error.as_ref().is_some_and(is_error) {
            let body: Value = serde_json::from_str(data).unwrap_or_default();
            let error = ERRORS.find_api_error(&body).unwrap_or_default();
            return Err(ERRORS.in_band_error(&self.model.provider, error));
        }
        self.read_event(&kind, envelope, data, events)
    }

    fn is_decoder_state_unchanged(&self) -> bool {
        !self.done
    }

    fn finish_decoding(&mut self, _events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        let message = "the stream ended without `message_stop`";
        Err(interrupted_error(&self.model.provider, message))
    }

    fn emit_buffered_output(&mut self, events: &mut Vec<ModelEvent>) {
        for block in self.open.values_mut() {
            if let OpenBlock::ToolUse { part, restorer, .. } = block {
                let (index, json) = (*part, restorer.take_raw_buffer());
                events.extend(json.map(|json| ModelEvent::ToolInputDelta { index, json }));
            }
        }
    }
}

fn finish_reason(stop_reason: &str) -> FinishReason {
    match stop_reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolUse,
        "max_tokens" => FinishReason::Length,
        // Both reasons mean that the model continues its answer in the next request.
        "pause_turn" | "compaction" => FinishReason::Paused,
        "refusal" => FinishReason::Refusal,
        "model_context_window_exceeded" => FinishReason::ContextOverflow,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// Removes a string field from an object and returns it. Returns "" if it is not a string.
fn take_text_field(object: &mut JsonObject, name: &str) -> String {
    match object.shift_remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn emit_text(index: u32, text: String, events: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        events.push(ModelEvent::TextDelta { index, text });
    }
}

fn emit_reasoning(index: u32, text: String, events: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        events.push(ModelEvent::ReasoningDelta { index, text });
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

//! Converts the chunks of a stream to domain events.

use serde_json::Value;
use switchboard_domain::{
    FinishReason, JsonObject, ModelError, ModelEvent, ModelId, PartStart, ToolChoiceOutcome, Usage,
    Warning, WarningKind,
};
use switchboard_providers_common::{
    AnswerEvents, AnswerSummary, JsonShapeRestorer, ToolMapping, ToolUseIds, WireDecoder,
    emit_part_state, emit_usage, interrupted_error, protocol_error,
    provider::{ApiError, is_error},
};

use super::{
    reasoning::{self, ReasoningBlocks, readable_text},
    tool_calls::CallAssembler,
    wire::{Chunk, Delta},
};
use crate::error::ERRORS;

/// Values of `finish_reason` that report an interrupted answer: of OpenRouter, vLLM and `DeepSeek`,
/// in this order.
const INTERRUPTED: [&str; 3] = ["error", "abort", "insufficient_system_resource"];

/// State machine that converts the chunks of a stream into domain events.
///
/// `Finished` is emitted at the end of the stream (`[DONE]` or the end of the transport), not with
/// the `finish_reason`, because servers send the usage and other fields after it.
#[derive(Debug)]
pub struct ChatDecoder {
    model: ModelId,
    answer: AnswerEvents,
    text: Option<u32>,
    text_restorer: JsonShapeRestorer,
    tool_mapping: ToolMapping,
    refusal: Option<u32>,
    reasoning: Option<u32>,
    /// Name of the first response field with reasoning text. Reasoning text in other fields is
    /// ignored, because some servers send the same text in two fields.
    reasoning_field: Option<&'static str>,
    /// Blocks from the field `reasoning_details` that belong to the open reasoning part.
    details: ReasoningBlocks,
    /// Blocks from the field `thinking_blocks` that belong to the open reasoning part.
    blocks: ReasoningBlocks,
    calls: CallAssembler,
    finish_reason: Option<String>,
    /// Whether the answer may end without a `finish_reason`. True for bodies without streaming.
    finish_reason_optional: bool,
    done: bool,
    /// Whether any chunk contained the alternative answer with index 0. Only this alternative is
    /// read. A response body without it is an error.
    has_choice: bool,
    has_other_choices: bool,
    /// Number of chunks that were read.
    chunk: u64,
}

impl ChatDecoder {
    /// Creates a decoder for one answer of `model`. The request mapping returns the other arguments
    /// in [`WireRequest`](super::WireRequest): the outcome of the tool choice, the warnings, and
    /// the tool-use ids of the conversation, which the answer must not reuse.
    pub fn new(
        model: ModelId,
        tool_choice: ToolChoiceOutcome,
        warnings: Vec<Warning>,
        ids: ToolUseIds,
    ) -> Self {
        let calls = CallAssembler::new(model.clone(), ids);
        Self {
            model,
            answer: AnswerEvents::new(tool_choice, warnings),
            text: None,
            text_restorer: JsonShapeRestorer::default(),
            tool_mapping: ToolMapping::default(),
            refusal: None,
            reasoning: None,
            reasoning_field: None,
            details: ReasoningBlocks::default(),
            blocks: ReasoningBlocks::default(),
            calls,
            finish_reason: None,
            finish_reason_optional: false,
            done: false,
            has_choice: false,
            has_other_choices: false,
            chunk: 0,
        }
    }

    /// Sets the changes that the request mapping made to tool names and schemas. The decoder
    /// reverses them in the answer.
    #[must_use]
    pub fn with_tool_mapping(mut self, tool_mapping: ToolMapping) -> Self {
        self.calls.set_tool_mapping(tool_mapping.clone());
        self.tool_mapping = tool_mapping;
        self
    }

    /// Converts a response body that is not streamed. The body is read as the only chunk of a
    /// stream, and may lack a `finish_reason`.
    pub(crate) fn read_body(mut self, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        self.finish_reason_optional = true;
        self.decode_frame("", body, &mut events)?;
        if !self.has_choice {
            let problem = "the body does not contain an answer";
            return Err(protocol_error(&self.model.provider, problem, body));
        }
        self.finish_decoding(&mut events)?;
        Ok(events)
    }

    fn read_chunk(&mut self, chunk: Chunk<'_>, events: &mut Vec<ModelEvent>) {
        self.chunk = self.chunk.saturating_add(1);
        let id = chunk.id.filter(|id| !id.0.is_empty());
        // Azure's first chunk describes only the prompt. It has no id and does not start the
        // answer.
        let is_of_answer = id.is_some() || !chunk.choices.is_empty() || chunk.usage.is_some();
        if is_of_answer && !self.answer.has_started() {
            let [id, model] = [id, chunk.model].map(|text| text.map(|text| text.0.into_owned()));
            self.answer.emit_start(id, model, events);
        }
        for choice in chunk.choices {
            if choice.index.is_some_and(|index| index != 0) {
                self.warn_extra_choices(events);
                continue;
            }
            self.has_choice = true;
            if let Some(delta) = choice.delta.or(choice.message) {
                self.read_delta(*delta, events);
            }
            // The first `finish_reason` is kept, unless it is "stop": all other values are more
            // specific.
            let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
            let current = self.finish_reason.as_deref();
            if reason.is_some() && current.is_none_or(|current| current == "stop") {
                self.finish_reason = reason;
            }
        }
        let usage = chunk.usage.map(|usage| Usage::from(*usage));
        emit_usage(usage.unwrap_or_default(), events);
    }

    fn read_delta(&mut self, delta: Delta, events: &mut Vec<ModelEvent>) {
        let readable = |blocks: &[JsonObject]| blocks.iter().map(readable_text).collect::<String>();
        let details = readable(&delta.reasoning_details);
        let blocks = readable(&delta.thinking_blocks);
        for (field, text) in [
            ("reasoning_content", delta.reasoning_content),
            ("reasoning", delta.reasoning),
            ("reasoning_details", Some(details)),
            ("thinking_blocks", Some(blocks)),
        ] {
            self.add_reasoning(field, text.as_deref().unwrap_or_default(), events);
        }
        for detail in delta.reasoning_details {
            self.open_reasoning_part(events);
            self.details.push_piece(detail);
        }
        for block in delta.thinking_blocks {
            self.open_reasoning_part(events);
            self.blocks.push_piece(block);
        }
        if let Some(content) = delta.content {
            content.for_each_text_piece(|is_thinking, text| {
                if is_thinking {
                    self.add_reasoning("content", text, events);
                } else {
                    self.add_text(text, events);
                }
            });
        }
        self.add_refusal(delta.refusal.as_deref().unwrap_or_default(), events);
        for call in &delta.tool_calls {
            self.end_reasoning(events);
            let answer = &mut self.answer;
            self.calls.add_call_piece(call, self.chunk, answer, events);
        }
        if let Some(function) = delta.function_call {
            self.end_reasoning(events);
            let answer = &mut self.answer;
            self.calls
                .add_function_call(function, self.chunk, answer, events);
        }
    }

    fn add_reasoning(&mut self, field: &'static str, text: &str, events: &mut Vec<ModelEvent>) {
        if text.is_empty() || self.reasoning_field.is_some_and(|known| known != field) {
            return;
        }
        self.reasoning_field = Some(field);
        self.calls.end_current_call();
        let index = self.open_reasoning_part(events);
        let text = text.to_owned();
        events.push(ModelEvent::ReasoningDelta { index, text });
    }

    /// Returns the index of the open reasoning part. Starts a part if none is open.
    fn open_reasoning_part(&mut self, events: &mut Vec<ModelEvent>) -> u32 {
        if let Some(index) = self.reasoning {
            return index;
        }
        let index = self.answer.start_part(PartStart::Reasoning, events);
        self.reasoning = Some(index);
        index
    }

    /// Finishes the open reasoning part. Reasoning that arrives later starts a new part.
    fn end_reasoning(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some(index) = self.reasoning.take() {
            // The state contains the name of the response field that had the reasoning text,
            // because servers expect the text back in that field.
            let (details, blocks) = (&mut self.details, &mut self.blocks);
            let state =
                reasoning::take_provider_state(&self.model, self.reasoning_field, details, blocks);
            if let Some(state) = state {
                emit_part_state(index, state, events);
            }
            events.push(ModelEvent::PartFinished { index });
        }
    }

    fn add_text(&mut self, text: &str, events: &mut Vec<ModelEvent>) {
        if text.is_empty() {
            return;
        }
        self.end_reasoning(events);
        self.calls.end_current_call();
        let index = if let Some(index) = self.text {
            index
        } else {
            self.text_restorer = self.tool_mapping.answer_restorer();
            self.answer.start_part(PartStart::Text, events)
        };
        self.text = Some(index);
        let text = self.text_restorer.push(text);
        events.extend(text.map(|text| ModelEvent::TextDelta { index, text }));
    }

    fn add_refusal(&mut self, text: &str, events: &mut Vec<ModelEvent>) {
        if text.is_empty() {
            return;
        }
        self.end_reasoning(events);
        self.calls.end_current_call();
        let index = self
            .refusal
            .unwrap_or_else(|| self.answer.start_part(PartStart::Text, events));
        self.refusal = Some(index);
        let text = text.to_owned();
        events.push(ModelEvent::TextDelta { index, text });
    }

    fn warn_extra_choices(&mut self, events: &mut Vec<ModelEvent>) {
        if !std::mem::replace(&mut self.has_other_choices, true) {
            let message = "the server sent several answers (`n`): only the first is read";
            let kind = WarningKind::UnknownWireValue;
            self.answer.warn(kind, message, events);
        }
    }

    /// Emits the last events of the answer at the end of the stream.
    ///
    /// Fails with `ModelErrorKind::Interrupted` if a required `finish_reason` is missing, or if the
    /// `finish_reason` reports an interruption.
    fn finish_answer(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let raw = self.finish_reason.take();
        if raw.is_none() && !self.finish_reason_optional {
            let message = "the stream ended without a finish_reason";
            return Err(interrupted_error(&self.model.provider, message));
        }
        if let Some(reason) = raw.as_deref().filter(|it| INTERRUPTED.contains(it)) {
            let message = format!("the server ended the answer with finish_reason `{reason}`");
            return Err(interrupted_error(&self.model.provider, message));
        }
        self.done = true;
        self.answer.emit_start(None, None, events);
        let reason = finish_reason(raw.as_deref().unwrap_or("stop"));
        let is_incomplete = matches!(
            reason,
            FinishReason::Length | FinishReason::ContentFilter | FinishReason::ContextOverflow
        );
        self.end_reasoning(events);
        let rest = self.text.zip(self.text_restorer.restore_buffer());
        events.extend(rest.map(|(index, text)| ModelEvent::TextDelta { index, text }));
        let texts = [self.text.take(), self.refusal.take()];
        for index in texts.into_iter().flatten() {
            events.push(ModelEvent::PartFinished { index });
        }
        self.calls.finish_calls(is_incomplete, events);
        let summary = AnswerSummary {
            has_refusal: texts[1].is_some(),
            has_calls: self.calls.has_named_call(),
            nameless_calls: self.calls.count_nameless_calls(),
        };
        summary.emit_finish(reason, raw, events);
        Ok(())
    }

    fn in_band_error(&self, error: ApiError) -> ModelError {
        ERRORS.in_band_error(&self.model.provider, error)
    }
}

impl WireDecoder for ChatDecoder {
    fn decode_frame(
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
            return self.finish_answer(events);
        }
        let unreadable =
            || protocol_error(&self.model.provider, "a chunk is not a JSON object", data);
        // An array is not parsed as a chunk: serde would read its elements as the fields in order.
        if data.starts_with('[') {
            let body: Value = serde_json::from_str(data).unwrap_or_default();
            let error = ERRORS.find_api_error(&body);
            return Err(error.map_or_else(unreadable, |error| self.in_band_error(error)));
        }
        let chunk: Chunk<'_> =
            serde_json::from_str(data).map_err(|fault| unreadable().with_source(fault))?;
        if let Some(error) = chunk.error.as_ref().filter(|error| is_error(error)) {
            return Err(self.in_band_error(ERRORS.read_error_object(error)));
        }
        if name == "error" || chunk.object.as_ref().is_some_and(|it| it.0 == "error") {
            let body: Value = serde_json::from_str(data).unwrap_or_default();
            return Err(self.in_band_error(ERRORS.find_api_error(&body).unwrap_or_default()));
        }
        self.read_chunk(chunk, events);
        Ok(())
    }

    fn is_decoder_state_unchanged(&self) -> bool {
        // Later text frames may be converted without the decoder only if they would not change its
        // state. They change it while a tool call or reasoning blocks are open, or while the
        // restorer buffers text.
        !self.done
            && !self.calls.has_current_call()
            && self.details.is_empty()
            && self.blocks.is_empty()
            && !self.text_restorer.is_buffering()
    }

    fn finish_decoding(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        self.finish_answer(events)
    }

    fn emit_buffered_output(&mut self, events: &mut Vec<ModelEvent>) {
        let rest = self.text.zip(self.text_restorer.take_raw_buffer());
        events.extend(rest.map(|(index, text)| ModelEvent::TextDelta { index, text }));
        self.calls.emit_buffered_inputs(events);
    }
}

/// Maps the server's `finish_reason`. [`AnswerSummary::emit_finish`] later corrects `ToolUse` or
/// `Stop` if it contradicts the content, such as `Stop` for an answer with tool calls.
fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        // OpenAI sends "stop". The other values come from compatible servers with other inference
        // engines.
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

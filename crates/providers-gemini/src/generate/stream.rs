//! Converts the chunks of a response stream into domain events.

pub(crate) mod answer_continuation;
mod finish_reasons;
mod part_fields;
mod usage;

use serde_json::{Map, Value, json};
use switchboard_domain::{
    FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelId, Opaque, Part, PartStart,
    ProviderState, ToolChoiceOutcome, Usage, Warning, WarningKind,
};
use switchboard_providers_common::{
    AnswerEvents, ToolMapping, ToolUseIds, WireDecoder, emit_part_state, emit_usage,
    interrupted_error, opaque_block_text, protocol_error, provider::is_error,
};

use self::{
    answer_continuation::Continuation,
    finish_reasons::{CONTINUATION, finish_reason, is_finish_reason},
    part_fields::{find_data_field_name, parse_media_part, string_field},
    usage::UsageReport,
};
use super::content::parts::{BESIDE_CONTENT, ID, PIECE, SIGNATURE};
use crate::error::ERRORS;

/// A state machine that converts the chunks of an answer to domain events.
///
/// The API has no closing event: `Finished` is emitted when the transport ends, if a
/// `finishReason` or a blocked prompt came before. Calls arrive whole. A text or thought with a
/// signature is a separate part, so it is sent back unchanged. Other adjacent texts are joined.
#[derive(Debug)]
pub struct GenerateDecoder {
    model: ModelId,
    answer: AnswerEvents,
    ids: ToolUseIds,
    tool_mapping: ToolMapping,
    /// State that the decoder and the response stream share. The stream requests the rest of an
    /// answer that the API split. With `None`, such an answer ends with the first response.
    continuation: Option<Continuation>,
    /// Number of the request whose chunks are read: 0 for the first request of the answer, 1 for
    /// its first continuation.
    request_number: u32,
    /// Latest continuation token in the current response, with which the rest of a split answer is
    /// requested.
    token: Option<String>,
    /// Continuation token of the last request for the rest of the answer.
    used_token: Option<String>,
    /// Token usage of the earlier requests of this answer, without the current request.
    earlier_usage: Usage,
    usage: UsageReport,
    /// The index and the kind of the text or thought part that is still open.
    open: Option<(u32, OpenPartKind)>,
    calls: usize,
    /// Number of tool calls without a name, which cannot be executed.
    nameless: usize,
    /// Latest values of the response fields in [`BESIDE_CONTENT`], in this order: the sources of
    /// the answer, and the web pages that the model read.
    reports: [Option<Value>; BESIDE_CONTENT.len()],
    finish: Option<String>,
    finish_message: Option<String>,
    blocked: Option<String>,
    /// Whether the answer may end without a `finishReason`. `true` for a response that is not
    /// streamed.
    finish_optional: bool,
    done: bool,
    /// Whether the API sent an answer (a candidate), or a reason why there is none.
    has_answer: bool,
    has_other_candidates: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenPartKind {
    Text,
    Thought,
}

impl GenerateDecoder {
    /// Creates a decoder for one answer of `model`. `tool_choice` and `warnings` come from the
    /// request mapping, and `ids` are the tool use ids of the conversation.
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
            continuation: None,
            request_number: 0,
            token: None,
            used_token: None,
            earlier_usage: Usage::default(),
            usage: UsageReport::default(),
            open: None,
            calls: 0,
            nameless: 0,
            reports: Default::default(),
            finish: None,
            finish_message: None,
            blocked: None,
            finish_optional: false,
            done: false,
            has_answer: false,
            has_other_candidates: false,
        }
    }

    /// Sets the tool mapping, which restores the original tool names and input shapes in calls.
    #[must_use]
    pub fn with_tool_mapping(mut self, tool_mapping: ToolMapping) -> Self {
        self.tool_mapping = tool_mapping;
        self
    }

    /// Sets the state that is shared with the response stream, to request the rest of an answer
    /// that the API split.
    pub(crate) fn with_continuation(mut self, continuation: Continuation) -> Self {
        self.continuation = Some(continuation);
        self
    }

    /// Accepts an answer that ends without a `finishReason`, as bodies without streaming may.
    pub(crate) fn allow_missing_finish_reason(mut self) -> Self {
        self.finish_optional = true;
        self
    }

    fn read_chunk(
        &mut self,
        mut chunk: Map<String, Value>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if let Some(error) = chunk.get("error").filter(|error| is_error(error)) {
            return Err(ERRORS.in_band_error(&self.model.provider, ERRORS.read_error_object(error)));
        }
        self.reset_for_continuation();
        let known = [
            "candidates",
            "promptFeedback",
            "usageMetadata",
            "responseId",
            "modelVersion",
        ];
        if !self.answer.has_started() && known.iter().any(|name| chunk.contains_key(*name)) {
            self.answer.emit_start(
                string_field(&chunk, "responseId"),
                string_field(&chunk, "modelVersion"),
                events,
            );
        }
        if let Some(Value::Array(candidates)) = chunk.remove("candidates") {
            for candidate in candidates {
                if let Value::Object(candidate) = candidate {
                    self.read_candidate(candidate, events);
                }
            }
        }
        let feedback = chunk.get("promptFeedback").and_then(Value::as_object);
        if let Some(feedback) = feedback
            && let Some(word) = string_field(feedback, "blockReason")
        {
            self.has_answer = true;
            self.blocked = Some(word);
            self.finish_message =
                string_field(feedback, "blockReasonMessage").or(self.finish_message.take());
        }
        if let Some(report) = chunk.get("usageMetadata").filter(|it| !it.is_null()) {
            self.update_usage(UsageReport::from_json(report), events);
        }
        Ok(())
    }

    /// Merges a usage report of the current request, and emits the sum of the token usage of all
    /// requests of this answer.
    fn update_usage(&mut self, report: UsageReport, events: &mut Vec<ModelEvent>) {
        self.usage.merge_later_usage(report);
        let mut usage = self.earlier_usage;
        usage.add_usage(self.usage.into());
        emit_usage(usage, events);
    }

    /// Prepares for the next response if the current chunk is the first one of a continuation:
    /// removes the used continuation token, and adds the token usage of the previous response to
    /// `earlier_usage`.
    fn reset_for_continuation(&mut self) {
        let number = self
            .continuation
            .as_ref()
            .map_or(0, Continuation::count_continuations);
        if number != self.request_number {
            self.request_number = number;
            self.token = None;
            self.earlier_usage
                .add_usage(std::mem::take(&mut self.usage).into());
        }
    }

    fn read_candidate(&mut self, mut candidate: Map<String, Value>, events: &mut Vec<ModelEvent>) {
        let index = candidate.get("index").and_then(Value::as_u64);
        if index.is_some_and(|index| index != 0) {
            self.warn_about_other_candidates(events);
            return;
        }
        self.has_answer = true;
        let parts = candidate
            .get_mut("content")
            .and_then(|content| content.get_mut("parts"))
            .map(Value::take);
        if let Some(Value::Array(parts)) = parts {
            for part in parts {
                if let Value::Object(part) = part {
                    self.read_part(part, events);
                }
            }
        }
        for (known, kind) in self.reports.iter_mut().zip(BESIDE_CONTENT) {
            let report = candidate.remove(kind);
            let report = report.filter(|it| it.as_object().is_some_and(|it| !it.is_empty()));
            // The field of a later chunk replaces the field of an earlier chunk, whose content it
            // repeats.
            *known = report.or(known.take());
        }
        self.finish_message =
            string_field(&candidate, "finishMessage").or(self.finish_message.take());
        self.token = string_field(&candidate, "continuationToken").or(self.token.take());
        if let Some(word) = string_field(&candidate, "finishReason") {
            self.set_finish_reason(&word);
        }
    }

    /// Stores the API's finish reason `word`. If it is `CONTINUATION`, requests the rest of the
    /// answer instead if possible. A stored reason other than `STOP` is not replaced.
    fn set_finish_reason(&mut self, word: &str) {
        if is_finish_reason(word)
            && self.finish.as_deref().is_none_or(|reason| reason == "STOP")
            && !self.request_continuation(word)
        {
            self.finish = Some(word.to_owned());
        }
    }

    /// Requests the continuation of an answer if its finish reason `word` is `CONTINUATION`, which
    /// means that the answer reached the API's limit per request. Returns whether a continuation
    /// was requested.
    fn request_continuation(&mut self, word: &str) -> bool {
        let (Some(continuation), Some(token)) = (&self.continuation, &self.token) else {
            return false;
        };
        // A token that was already used would return the same chunks again.
        let is_new = self.used_token.as_ref() != Some(token);
        let is_requested =
            word == CONTINUATION && is_new && continuation.schedule_continuation(token);
        if is_requested {
            self.used_token = self.token.clone();
        }
        is_requested
    }

    fn read_part(&mut self, mut part: Map<String, Value>, events: &mut Vec<ModelEvent>) {
        let signature = string_field(&part, SIGNATURE);
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        let kind = if is_thought {
            OpenPartKind::Thought
        } else {
            OpenPartKind::Text
        };
        if let Some(Value::Object(call)) = part.get_mut("functionCall") {
            self.read_call(std::mem::take(call), signature.as_deref(), events);
            return;
        }
        if let Some(Value::String(text)) = part.get("text") {
            self.add_text(kind, text, signature.as_deref(), events);
            return;
        }
        let Some(name) = find_data_field_name(&part).map(str::to_owned) else {
            // A thought signature without content belongs to a text part whose text is empty.
            if signature.is_some() {
                self.add_text(kind, "", signature.as_deref(), events);
            }
            return;
        };
        self.close_part(events);
        let whole = match part.get("inlineData").and_then(Value::as_object) {
            // Media with a signature become an opaque part, because media parts of the domain
            // cannot store a signature.
            Some(blob) if signature.is_none() && !is_thought => parse_media_part(blob),
            _ => None,
        };
        let whole = whole.unwrap_or_else(|| {
            let data = part.get(&name).and_then(Value::as_object);
            let text = data.and_then(opaque_block_text);
            let state = Map::from_iter([(PIECE.to_owned(), Value::Object(part))]);
            self.build_opaque_part(name, text, Value::Object(state))
        });
        self.answer.emit_whole_part(whole, events);
    }

    fn read_call(
        &mut self,
        mut call: Map<String, Value>,
        signature: Option<&str>,
        events: &mut Vec<ModelEvent>,
    ) {
        let name = string_field(&call, "name").unwrap_or_default();
        let id = string_field(&call, ID);
        // The API sends arguments in fragments only if the request asks for it. A call in fragments
        // gets no `PartFinished` event, so it counts as malformed and is not executed.
        let in_pieces = call.contains_key("partialArgs")
            || call.get("willContinue") == Some(&Value::Bool(true));
        let input = call.remove("args").filter(|args| !args.is_null());
        match self.begin_call(&name, id.as_deref(), signature, input, events) {
            _ if in_pieces => {}
            Some(index) => events.push(ModelEvent::PartFinished { index }),
            None => self.nameless += 1,
        }
    }

    /// Starts a tool call and emits its input. Returns the index of its part, or `None` if the call
    /// has no name.
    fn begin_call(
        &mut self,
        name: &str,
        id: Option<&str>,
        signature: Option<&str>,
        input: Option<Value>,
        events: &mut Vec<ModelEvent>,
    ) -> Option<u32> {
        self.close_part(events);
        let name = Some(name.trim()).filter(|name| !name.is_empty())?;
        self.calls += 1;
        let name = self.tool_mapping.declared_name(name).to_owned();
        let wire_id = id.filter(|id| !id.trim().is_empty());
        let mut restorer = self.tool_mapping.input_restorer(&name);
        let json = input.and_then(|input| {
            let json = restorer.push(&input.to_string());
            json.or_else(|| restorer.restore_buffer())
        });
        let id = self.ids.claim_tool_use_id(wire_id);
        let part = PartStart::ToolUse { id, name };
        let index = self.answer.start_part(part, events);
        let mut state = Map::new();
        for (field, value) in [(ID, wire_id), (SIGNATURE, signature)] {
            if let Some(value) = value {
                state.insert(field.to_owned(), value.into());
            }
        }
        if !state.is_empty() {
            emit_part_state(index, self.provider_state(Value::Object(state)), events);
        }
        if let Some(json) = json {
            events.push(ModelEvent::ToolInputDelta { index, json });
        }
        Some(index)
    }

    fn add_text(
        &mut self,
        kind: OpenPartKind,
        text: &str,
        signature: Option<&str>,
        events: &mut Vec<ModelEvent>,
    ) {
        if text.is_empty() && signature.is_none() {
            return;
        }
        let index = match self.open {
            Some((index, known)) if known == kind && signature.is_none() => index,
            _ => self.begin_text(kind, signature, events),
        };
        if !text.is_empty() {
            let text = text.to_owned();
            events.push(match kind {
                OpenPartKind::Text => ModelEvent::TextDelta { index, text },
                OpenPartKind::Thought => ModelEvent::ReasoningDelta { index, text },
            });
        }
        // A thought signature belongs to exactly one text part, so the part ends after this text.
        if signature.is_some() {
            self.close_part(events);
        }
    }

    fn begin_text(
        &mut self,
        kind: OpenPartKind,
        signature: Option<&str>,
        events: &mut Vec<ModelEvent>,
    ) -> u32 {
        self.close_part(events);
        let part = match kind {
            OpenPartKind::Text => PartStart::Text,
            OpenPartKind::Thought => PartStart::Reasoning,
        };
        let index = self.answer.start_part(part, events);
        let data = match (kind, signature) {
            (_, Some(signature)) => Some(json!({ SIGNATURE: signature })),
            // An empty provider state records which model created the thought, so that no other
            // model receives the thought.
            (OpenPartKind::Thought, None) => Some(json!({})),
            (OpenPartKind::Text, None) => None,
        };
        if let Some(data) = data {
            emit_part_state(index, self.provider_state(data), events);
        }
        self.open = Some((index, kind));
        index
    }

    fn close_part(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some((index, _)) = self.open.take() {
            events.push(ModelEvent::PartFinished { index });
        }
    }

    fn build_opaque_part(&self, kind: String, text: Option<String>, data: Value) -> Part {
        Part::Opaque(Opaque {
            kind,
            text,
            provider_state: self.provider_state(data),
        })
    }

    fn provider_state(&self, data: Value) -> ProviderState {
        ProviderState::new_for_model(&self.model, data)
    }

    fn warn_about_other_candidates(&mut self, events: &mut Vec<ModelEvent>) {
        if !std::mem::replace(&mut self.has_other_candidates, true) {
            let message = "the server sent several candidates: only the first is read";
            self.answer
                .warn(WarningKind::UnknownWireValue, message, events);
        }
    }

    /// Emits the last parts and `Finished` at the end of the stream. Fails with
    /// [`ModelErrorKind::Interrupted`] if a required `finishReason` is missing, and with
    /// [`ModelErrorKind::Protocol`] if the body contains no answer.
    fn finish_answer(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let blocked = self.blocked.take().filter(|_| self.finish.is_none());
        let is_blocked = blocked.is_some();
        let raw = self.finish.take().or(blocked);
        if raw.is_none() && !self.finish_optional {
            let message = "the stream ended without a finishReason";
            return Err(interrupted_error(&self.model.provider, message));
        }
        if !self.has_answer {
            let (kind, message) = (
                ModelErrorKind::Protocol,
                "the body does not contain an answer",
            );
            return Err(ModelError::new(&*self.model.provider, kind, message));
        }
        self.done = true;
        self.answer.emit_start(None, None, events);
        self.close_part(events);
        for (report, kind) in std::mem::take(&mut self.reports)
            .into_iter()
            .zip(BESIDE_CONTENT)
        {
            if let Some(report) = report {
                let text = report.as_object().and_then(opaque_block_text);
                let part = self.build_opaque_part(kind.to_owned(), text, json!({ kind: report }));
                self.answer.emit_whole_part(part, events);
            }
        }
        let mut reason = if is_blocked {
            FinishReason::ContentFilter
        } else {
            finish_reason(raw.as_deref().unwrap_or("STOP"))
        };
        let explanation = self.finish_message.take();
        if let Some(message) = explanation
            && !matches!(reason, FinishReason::Stop | FinishReason::Length)
        {
            let message = format!("output was withheld: {message}");
            self.answer.warn(WarningKind::PartDropped, message, events);
        }
        if self.nameless > 0 {
            let message = format!("{} call(s) without a name were dropped", self.nameless);
            self.answer
                .warn(WarningKind::UnknownWireValue, message, events);
            if self.calls == 0 && reason == FinishReason::Stop {
                reason = FinishReason::MalformedToolCall;
            }
        }
        let reason = reason.adjust_to_tool_uses(self.calls > 0);
        events.push(ModelEvent::Finished { reason, raw });
        Ok(())
    }
}

impl WireDecoder for GenerateDecoder {
    fn decode_frame(
        &mut self,
        name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        // Compatible servers may end the stream with `[DONE]`, as OpenAI does.
        if self.done || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        let unreadable =
            || protocol_error(&self.model.provider, "a chunk is not a JSON object", data);
        let body: Value =
            serde_json::from_str(data).map_err(|fault| unreadable().with_source(fault))?;
        if name == "error" {
            let error = ERRORS.find_api_error(&body).unwrap_or_default();
            return Err(ERRORS.in_band_error(&self.model.provider, error));
        }
        match body {
            Value::Object(chunk) => self.read_chunk(chunk, events),
            // An array of chunks: the API sends errors in this form, and also the whole answer to a
            // streaming request without `alt=sse`.
            Value::Array(list) if list.iter().all(Value::is_object) => {
                list.into_iter().try_for_each(|chunk| match chunk {
                    Value::Object(chunk) => self.read_chunk(chunk, events),
                    _ => Ok(()),
                })
            }
            _ => Err(unreadable()),
        }
    }

    fn finish_decoding(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        self.finish_answer(events)
    }
}

#[cfg(test)]
#[path = "stream_laws_tests.rs"]
mod laws;
#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;

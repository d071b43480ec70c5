//! Converts the lines of a stream to domain events.

use switchboard_domain::{
    FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelId, PartStart, ProviderState,
    ToolChoiceOutcome, Warning, WarningKind,
};
use switchboard_providers_common::{
    AnswerEvents, AnswerSummary, ToolUseIds, WireDecoder, emit_part_state, emit_usage,
    http::error_classifier::body_excerpt,
    interrupted_error, protocol_error,
    provider::{is_error, value_to_text},
};

use super::{
    constrained_answer::parse_answer,
    content::thinking_part_state,
    tool_choice_emulation::AnswerForm,
    wire::{Chunk, ResponseMessage, ResponseToolCall},
};
use crate::error::{ERRORS, is_malformed_call_error};

/// Maximum number of buffered bytes of an answer that `format` constrains to a tool call in JSON. A
/// longer answer is emitted as text and is not parsed.
const MAX_BUFFERED_BYTES: usize = 4 * 1024 * 1024;

/// State machine that converts the lines of a stream into domain events.
///
/// The last line has `"done": true` and causes [`ModelEvent::Finished`]. A stream that ends without
/// such a line fails with [`ModelErrorKind::Interrupted`]. The server never reports tool use as the
/// finish reason, so the decoder sets this reason if the answer has tool calls.
#[derive(Debug)]
pub struct ChatDecoder {
    model: ModelId,
    answer: AnswerEvents,
    ids: ToolUseIds,
    /// Index and type of the text or reasoning part that is currently being emitted.
    open: Option<(u32, PartStart)>,
    /// JSON that `format` requires as the answer, such as a tool call. The buffered text is parsed
    /// as this JSON when the answer ends. `None` for an answer that need not be parsed.
    form: Option<AnswerForm>,
    /// Buffered text of an answer that is parsed when it ends. Empty if `form` is `None`.
    content: String,
    /// Reasoning in an answer that is parsed when it ends. It is emitted and also buffered, because
    /// some servers report the answer itself as reasoning and send no other text.
    thoughts: String,
    calls: u32,
    nameless: usize,
    done: bool,
    /// Whether the answer may end without a line that has `done`, as in a body that is not
    /// streamed.
    done_optional: bool,
}

impl ChatDecoder {
    /// Creates a decoder for one answer of `model`. `tool_choice` and `warnings` result from the
    /// mapping of the request. `ids` contains the tool-use ids of the conversation.
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
            open: None,
            form: None,
            content: String::new(),
            thoughts: String::new(),
            calls: 0,
            nameless: 0,
            done: false,
            done_optional: false,
        }
    }

    /// Sets the JSON that `format` requires as the answer, from
    /// [`WireRequest::form`](super::WireRequest::form).
    #[must_use]
    pub fn with_answer_form(mut self, form: Option<AnswerForm>) -> Self {
        self.form = form;
        self
    }

    /// Decodes a body that is not streamed, as a single line. The answer is complete even if the
    /// line has no `done`. Fails if the body contains no answer.
    pub(crate) fn read_body(mut self, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        self.done_optional = true;
        self.decode_frame("", body, &mut events)?;
        if !self.answer.has_started() {
            let problem = "the body does not contain an answer";
            return Err(protocol_error(&self.model.provider, problem, body));
        }
        self.finish_decoding(&mut events)?;
        Ok(events)
    }

    fn read_chunk(&mut self, chunk: Chunk, events: &mut Vec<ModelEvent>) {
        let usage = chunk.to_usage();
        let done = chunk.done == Some(true);
        if chunk.message.is_some() || done {
            // Ollama's API has no id for an answer.
            self.answer.emit_start(None, chunk.model, events);
        }
        self.read_message(chunk.message.unwrap_or_default(), events);
        emit_usage(usage, events);
        if done {
            self.finish_answer(chunk.done_reason, events);
        }
    }

    fn read_message(&mut self, message: ResponseMessage, events: &mut Vec<ModelEvent>) {
        let content = message.content.unwrap_or_default();
        let thinking = message.thinking.unwrap_or_default();
        self.read_text(content, thinking, events);
        for ResponseToolCall { id, function } in message.tool_calls {
            let function = function.unwrap_or_default();
            let name = function.name.unwrap_or_default();
            let json = || value_to_text(Some(&function.arguments));
            self.emit_call(id.as_deref(), &name, json, events);
        }
    }

    /// Emits the reasoning and the text of one line. The text of an answer that must be parsed is
    /// not emitted but buffered, up to [`MAX_BUFFERED_BYTES`].
    fn read_text(&mut self, content: String, thinking: String, events: &mut Vec<ModelEvent>) {
        if self.form.is_none() {
            self.emit_delta(PartStart::Reasoning, thinking, events);
            return self.emit_delta(PartStart::Text, content, events);
        }
        self.content.push_str(&content);
        self.thoughts.push_str(&thinking);
        self.emit_delta(PartStart::Reasoning, thinking, events);
        if self.content.len() + self.thoughts.len() > MAX_BUFFERED_BYTES {
            self.form = None;
            let content = std::mem::take(&mut self.content);
            self.emit_delta(PartStart::Text, content, events);
        }
    }

    /// Adds `text` to the open part of the type `part`, which is text or reasoning. Begins such a
    /// part if none is open.
    fn emit_delta(&mut self, part: PartStart, text: String, events: &mut Vec<ModelEvent>) {
        if text.is_empty() {
            return;
        }
        let index = match &self.open {
            Some((index, open)) if *open == part => *index,
            _ => self.begin_part(part.clone(), events),
        };
        events.push(match part {
            PartStart::Reasoning => ModelEvent::ReasoningDelta { index, text },
            _ => ModelEvent::TextDelta { index, text },
        });
        self.open = Some((index, part));
    }

    /// Emits the buffered answer as a tool call or as text. Returns whether the answer has the JSON
    /// form `form` and no text after it.
    fn read_constrained_answer(&mut self, form: &AnswerForm, events: &mut Vec<ModelEvent>) -> bool {
        let content = std::mem::take(&mut self.content);
        let thoughts = std::mem::take(&mut self.thoughts);
        let answer = if content.trim().is_empty() {
            let answer = parse_answer(form, &thoughts);
            answer.filter(|answer| answer.is_complete && answer.rest.is_empty())
        } else {
            parse_answer(form, &content)
        };
        let Some(answer) = answer else {
            if !content.trim().is_empty() {
                self.emit_delta(PartStart::Text, content, events);
            }
            return false;
        };
        match answer.tool {
            None => self.emit_delta(PartStart::Text, answer.value.to_owned(), events),
            Some(name) => {
                let index = self.begin_call(None, name, events);
                if !answer.value.is_empty() {
                    let json = answer.value.to_owned();
                    events.push(ModelEvent::ToolInputDelta { index, json });
                }
                // A call with incomplete input gets no `PartFinished` event, so that it is not
                // executed.
                if answer.is_complete {
                    events.push(ModelEvent::PartFinished { index });
                }
            }
        }
        self.emit_delta(PartStart::Text, answer.rest.to_owned(), events);
        answer.rest.is_empty()
    }

    /// Emits a whole tool call, because the API does not stream the input. A call without a name is
    /// only counted.
    fn emit_call(
        &mut self,
        id: Option<&str>,
        name: &str,
        json: impl FnOnce() -> String,
        events: &mut Vec<ModelEvent>,
    ) {
        let name = name.trim();
        if name.is_empty() {
            self.nameless = self.nameless.saturating_add(1);
            return;
        }
        let index = self.begin_call(id, name.to_owned(), events);
        let json = json();
        if !json.is_empty() {
            events.push(ModelEvent::ToolInputDelta { index, json });
        }
        events.push(ModelEvent::PartFinished { index });
    }

    fn begin_call(
        &mut self,
        wire_id: Option<&str>,
        name: String,
        events: &mut Vec<ModelEvent>,
    ) -> u32 {
        self.calls = self.calls.saturating_add(1);
        let id = self.ids.claim_tool_use_id(wire_id);
        self.begin_part(PartStart::ToolUse { id, name }, events)
    }

    /// Begins a part, and finishes the text or reasoning part before it.
    fn begin_part(&mut self, part: PartStart, events: &mut Vec<ModelEvent>) -> u32 {
        self.close_parts(events);
        self.answer.start_part(part, events)
    }

    fn close_parts(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some((index, part)) = self.open.take() {
            if part == PartStart::Reasoning {
                let state = ProviderState::new_for_model(&self.model, thinking_part_state());
                emit_part_state(index, state, events);
            }
            events.push(ModelEvent::PartFinished { index });
        }
    }

    /// Finishes the answer. `raw` is the server's `done_reason`, the reason why it ended.
    fn finish_answer(&mut self, raw: Option<String>, events: &mut Vec<ModelEvent>) {
        self.done = true;
        let raw = raw.filter(|word| !word.is_empty());
        let reason = finish_reason(raw.as_deref());
        if let Some(form) = self.form.take()
            && !self.read_constrained_answer(&form, events)
            && self.calls == 0
            && reason == FinishReason::Stop
        {
            let message = "the answer does not match the requested `format`";
            self.answer
                .warn(WarningKind::ToolChoiceRelaxed, message, events);
        }
        self.close_parts(events);
        let summary = AnswerSummary {
            has_calls: self.calls > 0,
            nameless_calls: self.nameless,
            ..AnswerSummary::default()
        };
        summary.emit_finish(reason, raw, events);
    }

    /// Finishes the answer as `MalformedToolCall`: the server could not parse the model's call.
    fn finish_with_malformed_call(&mut self, message: String, events: &mut Vec<ModelEvent>) {
        self.answer.emit_start(None, None, events);
        self.done = true;
        self.close_parts(events);
        self.answer
            .warn(WarningKind::UnknownWireValue, message, events);
        events.push(ModelEvent::Finished {
            reason: FinishReason::MalformedToolCall,
            raw: Some("error".to_owned()),
        });
    }

    fn unreadable_line_error(&self, line: &str, fault: Option<serde_json::Error>) -> ModelError {
        // serde reports a truncated line as EOF, unless the line ends within a number.
        let at_end = |fault: &serde_json::Error| {
            fault.is_eof() || (fault.column() >= line.len() && !line.ends_with('}'))
        };
        let cut = fault.as_ref().is_some_and(at_end);
        let (kind, what) = if cut {
            (ModelErrorKind::Interrupted, "a line is incomplete")
        } else {
            (ModelErrorKind::Protocol, "a line is not a JSON object")
        };
        let message = format!("{what}: {}", body_excerpt(line.as_bytes()));
        let error = ModelError::new(&*self.model.provider, kind, message);
        match fault {
            Some(fault) => error.with_source(fault),
            None => error,
        }
    }
}

impl WireDecoder for ChatDecoder {
    fn decode_frame(
        &mut self,
        _name: &str,
        data: &str,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        if self.done || data.is_empty() {
            return Ok(());
        }
        // An array is an error: serde would accept it as a `Chunk` and take its elements as the
        // fields in order.
        let chunk = if data.starts_with('{') {
            serde_json::from_str::<Chunk>(data).map_err(Some)
        } else {
            Err(None)
        };
        let chunk = chunk.map_err(|fault| self.unreadable_line_error(data, fault))?;
        if let Some(error) = chunk.error.as_ref().filter(|error| is_error(error)) {
            let error = ERRORS.read_error_object(error);
            if is_malformed_call_error(&error.message) {
                self.finish_with_malformed_call(error.message, events);
                return Ok(());
            }
            return Err(ERRORS.in_band_error(&self.model.provider, error));
        }
        self.read_chunk(chunk, events);
        Ok(())
    }

    fn finish_decoding(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        if self.done_optional {
            self.finish_answer(None, events);
            return Ok(());
        }
        let message = "the stream ended without `done`";
        Err(interrupted_error(&self.model.provider, message))
    }
}

/// Maps the server's `done_reason` to a finish reason.
fn finish_reason(word: Option<&str>) -> FinishReason {
    match word {
        // Old servers send no reason. New servers omit reasons for which the API has no name.
        None | Some("stop") => FinishReason::Stop,
        Some("length") => FinishReason::Length,
        // `load` and `unload` need no separate arm: the server sends these reasons only for
        // requests without messages.
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;

//! Encodes a run as a stream of OpenAI's `chat.completion.chunk`s, or as one `chat.completion`.
//!
//! The formats are those of the package `openai` 3.54.0 (`types/chat/chat_completion_chunk.py`,
//! `chat_completion.py`, `types/completion_usage.py`, errors in a stream: `_streaming.py`).
//!
//! The server's own tools run on the server. Their events are in the field `switchboard` of chunks,
//! which SDKs keep or ignore, in the format of `GET /runs/{id}/events`. Reasoning is in
//! `reasoning_content`, the name that compatible servers use.

use axum::http::StatusCode;
use serde_json::{Value, json};
use switchboard_domain::{FinishReason, Usage};
use switchboard_orchestration::{Outcome, RunErrorKind, RunEvent, RunReport};

use super::super::{
    event_encoder::EventEncoder,
    event_sequencer::{AnswerPartKind, ClientEvent, ToolCallView},
    response::collected_response::{CollectedResponse, run_details_json},
    response::response_state::ResponseState,
    response::run_failure::RunFailure,
    response::sse_frames::{SseFrames, remove_null_fields},
};

/// Prefix of completion ids in OpenAI's format. The run id follows it.
const ID: &str = "chatcmpl-";

/// An encoder that converts the events of one run to chunks of OpenAI's Chat Completions API.
#[derive(Debug, Default)]
pub(crate) struct OpenAiChatStream {
    /// The model name in the chunks: from the request, or else from the start of the run.
    model: Option<String>,
    with_usage: bool,
    id: String,
    /// The start of the run in seconds since 1970.
    created: i64,
    has_text: bool,
    state: ResponseState,
}

impl OpenAiChatStream {
    /// Creates an encoder. `with_usage` is the client's `stream_options.include_usage`.
    pub(crate) fn new(model: Option<String>, with_usage: bool, state: ResponseState) -> Self {
        Self {
            model,
            with_usage,
            state,
            ..Self::default()
        }
    }
}

impl EventEncoder for OpenAiChatStream {
    fn encode_event(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames) {
        self.state.update_from_event(event);
        match event {
            ClientEvent::RunStarted { event, model } => {
                self.id = self.state.response_id(ID);
                self.created = event.time.as_second();
                self.model.get_or_insert_with(|| model.to_string());
                let delta = json!({"role": "assistant", "content": ""});
                self.write_chunk(&delta, None, Some(event), out);
            }
            ClientEvent::PartStarted(part) if part.kind == AnswerPartKind::Text => {
                // OpenAI's format has one text for all steps, so text after a tool call starts a
                // new paragraph.
                if part.starts_paragraph && self.has_text {
                    self.write_delta(&json!({"content": "\n\n"}), out);
                }
                self.has_text = true;
            }
            ClientEvent::PartDelta(part, text) => match part.kind {
                AnswerPartKind::Text => self.write_delta(&json!({"content": text}), out),
                AnswerPartKind::Reasoning => {
                    self.write_delta(&json!({"reasoning_content": text}), out);
                }
            },
            ClientEvent::Other(event) => self.write_chunk(&json!({}), None, Some(event), out),
            ClientEvent::RunFinished(report) => self.write_run_end(report, out),
            _ => {}
        }
    }

    fn encode_run_pause(&mut self, waiting: &[&ToolCallView], out: &mut SseFrames) {
        let calls = waiting.iter().filter(|call| call.is_client_tool());
        for (index, call) in calls.enumerate() {
            let mut call = tool_call_json(&self.state, call);
            call["index"] = json!(index);
            self.write_delta(&json!({"tool_calls": [call]}), out);
        }
        self.write_finish_chunk("tool_calls", self.state.response_usage(None), out);
    }

    fn encode_run_interruption(&mut self, reason: &str, out: &mut SseFrames) {
        write_error(&RunFailure::from_interruption(reason), out);
    }
}

impl OpenAiChatStream {
    fn write_run_end(&self, report: &RunReport, out: &mut SseFrames) {
        if let Some(failure) = self.state.run_failure(report) {
            return write_error(&failure, out);
        }
        if let Some(refusal) = refusal_message(report) {
            self.write_delta(&json!({"refusal": refusal}), out);
        }
        let usage = self.state.response_usage(Some(report));
        self.write_finish_chunk(finish_reason(report), usage, out);
    }

    fn write_finish_chunk(&self, reason: &str, usage: &Usage, out: &mut SseFrames) {
        self.write_chunk(&json!({}), Some(reason), None, out);
        if self.with_usage {
            let mut chunk = self.chunk_json(&json!([]));
            chunk["usage"] = usage_counts(usage);
            out.push_unnamed_event(&chunk);
        }
        out.push_text_event("[DONE]");
    }

    fn write_delta(&self, delta: &Value, out: &mut SseFrames) {
        self.write_chunk(delta, None, None, out);
    }

    fn write_chunk(
        &self,
        delta: &Value,
        finish_reason: Option<&str>,
        event: Option<&RunEvent>,
        out: &mut SseFrames,
    ) {
        let mut chunk = self.chunk_json(&json!([{
            "index": 0,
            "delta": delta,
            "logprobs": null,
            "finish_reason": finish_reason,
        }]));
        if let Some(event) = event {
            chunk["switchboard"] = json!(event);
        }
        out.push_unnamed_event(&chunk);
    }

    fn chunk_json(&self, choices: &Value) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model.as_deref().unwrap_or_default(),
            "choices": choices,
        })
    }
}

fn write_error(failure: &RunFailure<'_>, out: &mut SseFrames) {
    let kind = error_kind(failure.status);
    out.push_unnamed_event(&error_body(kind, failure.message, None, &failure.code));
    out.push_text_event("[DONE]");
}

/// Returns OpenAI's error type for an HTTP status, as in `_exceptions.py` of the package `openai`.
pub(crate) fn error_kind(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

fn refusal_message(report: &RunReport) -> Option<&str> {
    let error = report.error.as_ref()?;
    (error.kind == RunErrorKind::Refusal).then_some(error.message.as_str())
}

/// Returns OpenAI's finish reason of a run. Every limit that ended a run becomes `length`; the
/// response field `switchboard` names the limit.
fn finish_reason(report: &RunReport) -> &'static str {
    match (report.outcome, &report.finish_reason) {
        (Outcome::Limited, _) | (_, Some(FinishReason::Length)) => "length",
        (_, Some(FinishReason::ContentFilter)) => "content_filter",
        _ => "stop",
    }
}

/// Creates the JSON of a response that is not streamed. `report` is `None` while the run waits for
/// the client; the response then contains the tool calls that the client must execute.
pub(crate) fn completion_json(
    response: &CollectedResponse,
    report: Option<&RunReport>,
    model: &str,
) -> Value {
    let refusal = report.and_then(refusal_message);
    let text = report.map_or(response.text.as_str(), |report| report.answer.as_str());
    let may_be_empty = report.is_some() && refusal.is_none();
    let mut message = json!({
        "role": "assistant",
        "content": (may_be_empty || !text.is_empty()).then_some(text),
        "refusal": refusal,
    });
    if !response.reasoning.is_empty() {
        message["reasoning_content"] = json!(response.reasoning);
    }
    let call_json = |call| tool_call_json(&response.state, call);
    let calls: Vec<Value> = response.calls.iter().map(call_json).collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let usage = response.state.response_usage(report);
    remove_null_fields(json!({
        "id": response.state.response_id(ID),
        "object": "chat.completion",
        "created": response.started_at,
        "model": model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": report.map_or("tool_calls", finish_reason),
        }],
        "usage": usage.is_known().then(|| usage_counts(usage)),
        "switchboard": report.map(|report| run_details_json(report, true)),
    }))
}

/// Creates the JSON of a tool call that the client must execute.
fn tool_call_json(state: &ResponseState, call: &ToolCallView) -> Value {
    json!({
        "id": state.client_call_id(call),
        "type": "function",
        "function": {"name": call.name, "arguments": call.client_input},
    })
}

/// Returns token counts in OpenAI's format. OpenAI requires the prompt, completion and total count,
/// so unknown counts of these become 0.
fn usage_counts(usage: &Usage) -> Value {
    let prompt = usage.input_tokens.unwrap_or(0);
    let completion = usage.output_tokens.unwrap_or(0);
    let has_cache = usage.cache_read_tokens.is_some() || usage.cache_write_tokens.is_some();
    let cache = json!({
        "cached_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    });
    let reasoning = usage.reasoning_tokens;
    remove_null_fields(json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt.saturating_add(completion),
        "prompt_tokens_details": has_cache.then(|| remove_null_fields(cache)),
        "completion_tokens_details": reasoning.map(|count| json!({"reasoning_tokens": count})),
    }))
}

/// Creates the JSON of an error in OpenAI's format.
pub(crate) fn error_body(kind: &str, message: &str, param: Option<&str>, code: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

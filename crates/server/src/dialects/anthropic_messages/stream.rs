//! Encodes a run as Anthropic's stream of message events, or as one message.
//!
//! The formats and their order are those of the package `anthropic` 2.12.0
//! (`types/raw_*_event.py`, `types/message.py`, `types/usage.py`, `accumulate_event` of
//! `lib/streaming/_messages.py`, errors in a stream: `_streaming.py`).
//!
//! The server's own tools run on the server. The text of each step is a separate block. Other run
//! events are in the field `switchboard` of `ping` events, which every client skips, in the format
//! of `GET /runs/{id}/events`.

use serde_json::{Value, json};
use switchboard_domain::{FinishReason, Usage};
use switchboard_orchestration::{Outcome, RunErrorKind, RunEvent, RunReport};

use super::super::{
    event_encoder::EventEncoder,
    event_sequencer::{AnswerPartKind, ClientEvent, ToolCallView},
    response::collected_response::{CollectedResponse, run_details_json},
    response::response_state::ResponseState,
    response::run_failure::{self, RunFailure},
    response::sse_frames::{SseFrames, remove_null_fields},
};

/// Prefix of message ids in Anthropic's format. The run id follows it.
const ID: &str = "msg_";

/// An encoder that converts the events of one run to Anthropic's streaming events.
#[derive(Debug)]
pub(crate) struct AnthropicMessagesStream {
    /// The model name in the response: from the request, or else from the start of the run.
    model: Option<String>,
    /// The index of the content block that is open or starts next.
    next: usize,
    state: ResponseState,
}

impl AnthropicMessagesStream {
    pub(crate) fn new(model: Option<String>, state: ResponseState) -> Self {
        Self {
            model,
            next: 0,
            state,
        }
    }
}

impl EventEncoder for AnthropicMessagesStream {
    fn encode_event(&mut self, event: &ClientEvent<'_>, out: &mut SseFrames) {
        self.state.update_from_event(event);
        match *event {
            ClientEvent::RunStarted { event, model } => {
                let model = self.model.get_or_insert_with(|| model.to_string());
                // The token usage is unknown until the run has finished, so its counts are 0 here.
                let id = self.state.response_id(ID);
                let message = message_json(&id, model, &[], None, &Usage::default());
                write_event(&json!({"type": "message_start", "message": message}), out);
                write_ping(event, out);
            }
            ClientEvent::PartStarted(part) => {
                self.write_block_start(&content_block(part.kind, ""), out);
            }
            ClientEvent::PartDelta(part, text) => {
                let delta = match part.kind {
                    AnswerPartKind::Text => json!({"type": "text_delta", "text": text}),
                    AnswerPartKind::Reasoning => {
                        json!({"type": "thinking_delta", "thinking": text})
                    }
                };
                self.write_block_delta(&delta, out);
            }
            ClientEvent::PartFinished(_) => self.write_block_stop(out),
            ClientEvent::Other(event) => write_ping(event, out),
            ClientEvent::RunFinished(report) => self.write_run_end(report, out),
            _ => {}
        }
    }

    fn encode_run_pause(&mut self, waiting: &[&ToolCallView], out: &mut SseFrames) {
        for call in waiting.iter().filter(|call| call.is_client_tool()) {
            self.write_block_start(&tool_use_block(&self.state, call, &json!({})), out);
            let delta = json!({"type": "input_json_delta", "partial_json": call.client_input});
            self.write_block_delta(&delta, out);
            self.write_block_stop(out);
        }
        self.write_message_end("tool_use", None, out);
    }

    fn encode_run_interruption(&mut self, reason: &str, out: &mut SseFrames) {
        write_error(&RunFailure::from_interruption(reason), out);
    }
}

impl AnthropicMessagesStream {
    fn write_block_start(&self, block: &Value, out: &mut SseFrames) {
        let start =
            json!({"type": "content_block_start", "index": self.next, "content_block": block});
        write_event(&start, out);
    }

    fn write_block_delta(&self, delta: &Value, out: &mut SseFrames) {
        let event = json!({"type": "content_block_delta", "index": self.next, "delta": delta});
        write_event(&event, out);
    }

    fn write_block_stop(&mut self, out: &mut SseFrames) {
        let stop = json!({"type": "content_block_stop", "index": self.next});
        write_event(&stop, out);
        self.next += 1;
    }

    fn write_run_end(&self, report: &RunReport, out: &mut SseFrames) {
        match self.state.run_failure(report) {
            Some(failure) => write_error(&failure, out),
            None => self.write_message_end(stop_reason(report), Some(report), out),
        }
    }

    fn write_message_end(
        &self,
        stop_reason: &str,
        report: Option<&RunReport>,
        out: &mut SseFrames,
    ) {
        let mut delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
        if let Some(details) = report.and_then(stop_details) {
            delta["stop_details"] = details;
        }
        let end = json!({
            "type": "message_delta",
            "delta": delta,
            "usage": usage_counts(self.state.response_usage(report)),
            "switchboard": report.map(|report| run_details_json(report, false)),
        });
        write_event(&remove_null_fields(end), out);
        write_event(&json!({"type": "message_stop"}), out);
    }
}

fn write_error(failure: &RunFailure<'_>, out: &mut SseFrames) {
    let kind = error_kind(failure.status.as_u16());
    write_event(&error_body(kind, failure.message), out);
}

/// Appends a server-sent event. The event name is the value of the field `type` in `event`.
fn write_event(event: &Value, out: &mut SseFrames) {
    out.push_named_event(event["type"].as_str().unwrap_or_default(), event);
}

fn write_ping(event: &RunEvent, out: &mut SseFrames) {
    write_event(&json!({"type": "ping", "switchboard": event}), out);
}

/// Returns Anthropic's stop reason of a run. Every limit that ended a run, except the context
/// window, becomes `max_tokens`; the response field `switchboard` names the limit.
fn stop_reason(report: &RunReport) -> &'static str {
    if run_failure::is_refused_or_filtered(report) {
        return "refusal";
    }
    let error = report.error.as_ref().map(|error| &error.kind);
    match (report.outcome, &report.finish_reason, error) {
        (Outcome::Limited, _, Some(RunErrorKind::ContextOverflow)) => {
            "model_context_window_exceeded"
        }
        (Outcome::Limited, ..) | (_, Some(FinishReason::Length), _) => "max_tokens",
        _ => "end_turn",
    }
}

/// Returns Anthropic's error type for an HTTP status, as in `_exceptions.py` and `types/error_*.py`
/// of the Python package `anthropic`.
pub(crate) fn error_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    }
}

/// Creates the JSON of a response that is not streamed. `report` is `None` while the run waits for
/// the client; the response then contains the tool calls that the client must execute.
pub(crate) fn response_json(
    response: &CollectedResponse,
    report: Option<&RunReport>,
    model: &str,
) -> Value {
    let state = &response.state;
    let text = report.map_or(&response.text, |report| &report.answer);
    let parts = [
        (AnswerPartKind::Reasoning, &response.reasoning),
        (AnswerPartKind::Text, text),
    ];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
    let mut content: Vec<Value> = parts
        .map(|(kind, text)| content_block(kind, text))
        .collect();
    content.extend(response.calls.iter().map(|call| {
        let input: Value = serde_json::from_str(&call.client_input).unwrap_or_default();
        tool_use_block(state, call, &input)
    }));
    let reason = report.map_or("tool_use", stop_reason);
    let (id, usage) = (state.response_id(ID), state.response_usage(report));
    let mut message = message_json(&id, model, &content, Some(reason), usage);
    if let Some(report) = report {
        message["switchboard"] = run_details_json(report, true);
        if let Some(details) = stop_details(report) {
            message["stop_details"] = details;
        }
    }
    message
}

fn message_json(
    id: &str,
    model: &str,
    content: &[Value],
    stop_reason: Option<&str>,
    usage: &Usage,
) -> Value {
    json!({
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage_counts(usage),
    })
}

/// Creates a content block of text or reasoning. The signature is empty, because only the provider
/// that created the reasoning could verify it.
fn content_block(kind: AnswerPartKind, text: &str) -> Value {
    match kind {
        AnswerPartKind::Text => json!({"type": "text", "text": text}),
        AnswerPartKind::Reasoning => json!({"type": "thinking", "thinking": text, "signature": ""}),
    }
}

/// Creates the content block of a tool call that the client must execute.
fn tool_use_block(state: &ResponseState, call: &ToolCallView, input: &Value) -> Value {
    json!({"type": "tool_use", "id": state.client_call_id(call), "name": call.name, "input": input})
}

/// Returns the response field `stop_details`. Returns `None` unless the model refused to answer or
/// a content filter removed the answer.
fn stop_details(report: &RunReport) -> Option<Value> {
    let reason = &report.error.as_ref()?.message;
    let details = json!({"type": "refusal", "category": null, "explanation": reason});
    run_failure::is_refused_or_filtered(report).then_some(details)
}

/// Returns token counts in Anthropic's format. `input_tokens` excludes cached tokens. Anthropic
/// requires `input_tokens` and `output_tokens`, so unknown counts of these become 0.
fn usage_counts(usage: &Usage) -> Value {
    let (read, written) = (usage.cache_read_tokens, usage.cache_write_tokens);
    let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    remove_null_fields(json!({
        "input_tokens": usage.input_tokens.unwrap_or(0).saturating_sub(cached),
        "output_tokens": usage.output_tokens.unwrap_or(0),
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }))
}

/// Creates the JSON of an error in Anthropic's format.
pub(crate) fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

//! Answers in the format of each wire, and functions that read them.

use serde_json::{Value, json};
use switchboard_domain::{ChatRequest, ChatResponse, ResponseAccumulator};
use switchboard_testkit::replay::{Arrival, Cutting, Delivery, Replayed, play};

use crate::wires::{Target, Wire};

/// A part of a model's answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Said<'a> {
    Text(&'a str),
    /// A call: id, tool, and the arguments as the model writes them.
    Call(&'a str, &'a str, &'a str),
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The answer ends with the finish reason for its parts.
    Complete,
    /// The answer ends at the output limit. If arguments arrive in pieces, the last call is
    /// incomplete.
    Limit,
    /// The final event is missing.
    Missing,
}

/// Formats events with their names, as Anthropic and the Responses API send them.
pub(crate) fn named(events: &[Value]) -> String {
    let line = |event: &Value| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(line).collect()
}

/// Formats events without names.
pub(crate) fn data(frames: &[Value]) -> String {
    let line = |frame: &Value| format!("data: {frame}\n\n");
    frames.iter().map(line).collect()
}

/// Formats one JSON object per line.
pub(crate) fn lines(frames: &[Value]) -> String {
    let line = |frame: &Value| format!("{frame}\n");
    frames.iter().map(line).collect()
}

impl Wire {
    /// Returns a streamed answer without usage.
    pub(crate) fn answer(self, said: &[Said<'_>], end: End) -> String {
        match self {
            Self::Anthropic => anthropic(said, end),
            Self::Chat => chat_completions(said, end),
            Self::Responses => openai_responses(said, end),
            Self::Gemini => gemini(said, end),
            Self::Ollama => ollama(said, end),
        }
    }

    /// Returns a frame with an error within an answer.
    pub(crate) fn error(self) -> String {
        let message = "It broke.";
        match self {
            Self::Anthropic => named(&[json!({
                "type": "error", "error": {"type": "api_error", "message": message},
            })]),
            Self::Chat => data(&[json!({"error": {"message": message, "type": "server_error"}})]),
            Self::Responses => named(&[json!({
                "type": "error", "code": "server_error", "message": message, "param": null,
            })]),
            Self::Gemini => data(&[json!({"error": {"message": message, "status": "INTERNAL"}})]),
            Self::Ollama => lines(&[json!({"error": message})]),
        }
    }

    /// Reads a streamed answer of [the model](Self::model) to a request.
    pub(crate) fn read(self, request: &ChatRequest, text: &str) -> Replayed {
        self.target().read(request, text)
    }

    /// Reads a complete answer. Panics if the answer has an error.
    pub(crate) fn read_whole(self, request: &ChatRequest, text: &str) -> ChatResponse {
        let replayed = self.read(request, text);
        assert_eq!(replayed.failure, None, "{self:?}: {text}");
        replayed.response
    }
}

impl Target {
    /// Reads a streamed answer to a request, in one piece and byte by byte.
    pub(crate) fn read(&self, request: &ChatRequest, text: &str) -> Replayed {
        let read = |cutting, arrival| {
            let delivery = Delivery { cutting, arrival };
            let decode = |body| self.decode(request, body);
            play(text.as_bytes(), delivery, decode).unwrap()
        };
        let whole = read(Cutting::Whole, Arrival::AtOnce);
        let wire = self.wire;
        let by_bytes = read(Cutting::Bytes, Arrival::Later);
        // The events may differ, because text that arrives in one piece is one event. The responses
        // are equal.
        assert_eq!(by_bytes.response, whole.response, "{wire:?}: {text}");
        assert_eq!(by_bytes.failure, whole.failure, "{wire:?}: {text}");
        by_bytes
    }
}

/// Assembles the events of a whole body to a response.
pub(crate) fn assembled(events: &[switchboard_domain::ModelEvent]) -> ChatResponse {
    let mut answer = ResponseAccumulator::default();
    for event in events {
        answer.push(event).unwrap();
    }
    answer.finish().unwrap()
}

fn calls(said: &[Said<'_>]) -> bool {
    said.iter().any(|one| matches!(one, Said::Call(..)))
}

fn anthropic(said: &[Said<'_>], end: End) -> String {
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
    }})];
    for (index, one) in said.iter().enumerate() {
        let (block, delta) = match *one {
            Said::Text(text) => (
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": text}),
            ),
            Said::Call(id, name, arguments) => (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": arguments}),
            ),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        if end == End::Complete || index + 1 < said.len() {
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
    }
    let reason = match end {
        End::Missing => return named(&events),
        End::Limit => "max_tokens",
        End::Complete if calls(said) => "tool_use",
        End::Complete => "end_turn",
    };
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}}));
    events.push(json!({"type": "message_stop"}));
    named(&events)
}

/// Returns a chunk of Chat Completions.
pub(crate) fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn chat_completions(said: &[Said<'_>], end: End) -> String {
    let mut chunks = Vec::new();
    let mut index = 0;
    for one in said {
        chunks.push(match *one {
            Said::Text(text) => chunk(&json!({"content": text}), None),
            Said::Call(id, name, arguments) => {
                let function = json!({"name": name, "arguments": arguments});
                let call = json!({"index": index, "id": id, "function": function});
                index += 1;
                chunk(&json!({"tool_calls": [call]}), None)
            }
        });
    }
    let reason = match end {
        End::Missing => return data(&chunks),
        End::Limit => "length",
        End::Complete if calls(said) => "tool_calls",
        End::Complete => "stop",
    };
    chunks.push(chunk(&json!({}), Some(reason)));
    data(&chunks) + "data: [DONE]\n\n"
}

fn openai_responses(said: &[Said<'_>], end: End) -> String {
    let mut events =
        vec![json!({"type": "response.created", "response": {"id": "resp_1", "output": []}})];
    for (index, one) in said.iter().enumerate() {
        let is_open = end != End::Complete && index + 1 == said.len();
        let status = if is_open { "incomplete" } else { "completed" };
        let (begun, delta, done) = match *one {
            Said::Text(text) => {
                let id = format!("msg_{index}");
                let message = |content: Value, status: &str| {
                    json!({"type": "message", "id": id, "role": "assistant", "status": status,
                           "content": content})
                };
                let delta = json!({"type": "response.output_text.delta", "item_id": id,
                                   "content_index": 0, "delta": text});
                let whole = json!([{"type": "output_text", "text": text, "annotations": []}]);
                (
                    message(json!([]), "in_progress"),
                    delta,
                    message(whole, status),
                )
            }
            Said::Call(call_id, name, arguments) => {
                let id = format!("fc_{index}");
                let call = |arguments: &str, status: &str| {
                    json!({"type": "function_call", "id": id, "call_id": call_id, "name": name,
                           "arguments": arguments, "status": status})
                };
                let delta = json!({"type": "response.function_call_arguments.delta",
                                   "item_id": id, "delta": arguments});
                (call("", "in_progress"), delta, call(arguments, status))
            }
        };
        let mut delta = delta;
        delta["output_index"] = json!(index);
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": begun}),
        );
        events.push(delta);
        if !is_open {
            events.push(
                json!({"type": "response.output_item.done", "output_index": index, "item": done}),
            );
        }
    }
    events.push(match end {
        End::Missing => return named(&events),
        End::Limit => json!({"type": "response.incomplete", "response": {
            "id": "resp_1", "status": "incomplete", "output": [],
            "incomplete_details": {"reason": "max_output_tokens"},
        }}),
        End::Complete => json!({"type": "response.completed", "response": {
            "id": "resp_1", "status": "completed", "output": [],
        }}),
    });
    named(&events)
}

/// Returns a chunk of Gemini.
pub(crate) fn candidate(parts: &Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({"candidates": [candidate], "responseId": "resp-1"})
}

/// Returns the arguments as a JSON value, or as a string if they are not valid JSON.
fn value(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments))
}

fn gemini(said: &[Said<'_>], end: End) -> String {
    let part = |one: &Said<'_>| match *one {
        Said::Text(text) => json!({"text": text}),
        Said::Call(id, name, arguments) => {
            json!({"functionCall": {"id": id, "name": name, "args": value(arguments)}})
        }
    };
    let reason = match end {
        End::Missing => None,
        End::Limit => Some("MAX_TOKENS"),
        End::Complete => Some("STOP"),
    };
    let last = said.len().saturating_sub(1);
    let chunks = said.iter().enumerate();
    let chunks: Vec<Value> = chunks
        .map(|(at, one)| candidate(&json!([part(one)]), reason.filter(|_| at == last)))
        .collect();
    data(&chunks)
}

/// Returns a line of Ollama.
pub(crate) fn line(message: &Value, done_reason: Option<&str>) -> Value {
    let mut line = json!({"model": "m", "message": message, "done": done_reason.is_some()});
    line["message"]["role"] = json!("assistant");
    if let Some(reason) = done_reason {
        line["done_reason"] = json!(reason);
    }
    line
}

fn ollama(said: &[Said<'_>], end: End) -> String {
    let mut index = 0;
    let mut frames = Vec::new();
    for one in said {
        frames.push(match *one {
            Said::Text(text) => line(&json!({"content": text}), None),
            Said::Call(id, name, arguments) => {
                let function = json!({"index": index, "name": name, "arguments": value(arguments)});
                index += 1;
                let call = json!({"id": id, "function": function});
                line(&json!({"content": "", "tool_calls": [call]}), None)
            }
        });
    }
    let reason = match end {
        End::Missing => return lines(&frames),
        End::Limit => "length",
        End::Complete => "stop",
    };
    frames.push(line(&json!({"content": ""}), Some(reason)));
    lines(&frames)
}

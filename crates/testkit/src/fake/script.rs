//! Answers in the format of a wire, for tests that are not about the wire.

use serde_json::{Value, json};

use super::Answer;
use crate::transcripts::Form;

/// A piece of a scripted model's output.
#[derive(Debug, Clone, PartialEq)]
pub enum Say {
    /// A text delta. Consecutive deltas belong to the same text.
    Text(String),
    /// A tool use.
    Call {
        /// The id.
        id: String,
        /// The name of the tool.
        name: String,
        /// The input, an object.
        input: Value,
    },
}

impl Say {
    /// Creates a text delta.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Creates a tool use.
    pub fn call(id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        Self::Call {
            id: id.into(),
            name: name.into(),
            input,
        }
    }

    fn is_call(&self) -> bool {
        matches!(self, Self::Call { .. })
    }
}

/// Numbers of input tokens and output tokens that every answer reports.
const TOKENS: (u32, u32) = (20, 10);

impl Answer {
    /// Creates a streamed answer of OpenAI's Chat Completions: one frame per piece, the usage in a
    /// separate chunk (20 input tokens, 10 output tokens), `[DONE]` at the end.
    pub fn openai_chat(said: impl IntoIterator<Item = Say>) -> Self {
        let said: Vec<Say> = said.into_iter().collect();
        let has_calls = said.iter().any(Say::is_call);
        let finish = if has_calls { "tool_calls" } else { "stop" };
        let chunk = |choices: Value, usage: Value| {
            json!({
                "id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1_790_000_000,
                "model": "fake-model", "choices": choices, "usage": usage,
            })
        };
        let choice = |delta: Value, finish: Option<&str>| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            chunk(json!([choice]), Value::Null)
        };
        let mut chunks = vec![choice(json!({"role": "assistant", "content": ""}), None)];
        let mut calls = 0;
        for one in said {
            chunks.push(match one {
                Say::Text(text) => choice(json!({"content": text}), None),
                Say::Call { id, name, input } => {
                    let function = json!({"name": name, "arguments": input.to_string()});
                    let call =
                        json!({"index": calls, "id": id, "type": "function", "function": function});
                    calls += 1;
                    choice(json!({"tool_calls": [call]}), None)
                }
            });
        }
        let (prompt, completion) = TOKENS;
        let usage = json!({
            "prompt_tokens": prompt, "completion_tokens": completion,
            "total_tokens": prompt + completion,
        });
        chunks.push(choice(json!({}), Some(finish)));
        chunks.push(chunk(json!([]), usage));
        let frames = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
        stream_answer(Form::Sse, frames.chain(["data: [DONE]\n\n".to_owned()]))
    }

    /// Creates a streamed answer of OpenAI's Responses: one event per piece, 20 input tokens, 10
    /// output tokens.
    pub fn openai_responses(said: impl IntoIterator<Item = Say>) -> Self {
        let response = |status: &str, usage: Value| {
            json!({
                "id": "resp_fake", "object": "response", "created_at": 1_790_000_000,
                "status": status, "model": "fake-model", "output": [], "usage": usage,
            })
        };
        let about = |kind: &str, index: usize, id: &str, fields: &[(&str, Value)]| {
            let mut event = json!({"type": kind, "output_index": index, "item_id": id});
            for (name, value) in fields {
                event[*name] = value.clone();
            }
            event
        };
        let message = |id: &str, status: &str, text: Option<&str>| {
            let piece = |text| json!({"type": "output_text", "text": text, "annotations": []});
            let content: Vec<Value> = text.map(piece).into_iter().collect();
            json!({"id": id, "type": "message", "role": "assistant", "status": status,
                "content": content})
        };
        let mut events = vec![json!({
            "type": "response.created", "response": response("in_progress", Value::Null),
        })];
        let mut items = 0;
        // Text so far of the message that is not finished.
        let mut text: Option<String> = None;
        let finish = |text: String, index: usize, events: &mut Vec<Value>| {
            let id = format!("msg_fake_{index}");
            let place = ("content_index", json!(0));
            let whole = [place, ("text", json!(text))];
            events.push(about("response.output_text.done", index, &id, &whole));
            let item = ("item", message(&id, "completed", Some(&text)));
            events.push(about("response.output_item.done", index, &id, &[item]));
        };
        for one in said {
            if one.is_call()
                && let Some(text) = text.take()
            {
                finish(text, items, &mut events);
                items += 1;
            }
            match one {
                Say::Text(more) => {
                    let id = format!("msg_fake_{items}");
                    if text.is_none() {
                        let item = ("item", message(&id, "in_progress", None));
                        events.push(about("response.output_item.added", items, &id, &[item]));
                    }
                    let delta = [("content_index", json!(0)), ("delta", json!(more))];
                    events.push(about("response.output_text.delta", items, &id, &delta));
                    text.get_or_insert_default().push_str(&more);
                }
                Say::Call { id, name, input } => {
                    let own = format!("fc_fake_{items}");
                    let item = |status: &str, arguments: &str| {
                        json!({"id": own, "type": "function_call", "status": status,
                               "call_id": id, "name": name, "arguments": arguments})
                    };
                    let arguments = input.to_string();
                    let begun = ("item", item("in_progress", ""));
                    let delta = ("delta", json!(arguments));
                    let done = ("item", item("completed", &arguments));
                    for (kind, field) in [
                        ("response.output_item.added", begun),
                        ("response.function_call_arguments.delta", delta),
                        ("response.output_item.done", done),
                    ] {
                        events.push(about(kind, items, &own, &[field]));
                    }
                    items += 1;
                }
            }
        }
        if let Some(text) = text {
            finish(text, items, &mut events);
        }
        let (input, output) = TOKENS;
        let usage = json!({
            "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
        });
        events.push(json!({
            "type": "response.completed", "response": response("completed", usage),
        }));
        stream_named_events(&events)
    }

    /// Creates a streamed answer of Anthropic's Messages: one event per piece, 20 input tokens, 10
    /// output tokens.
    pub fn anthropic(said: impl IntoIterator<Item = Say>) -> Self {
        let said: Vec<Say> = said.into_iter().collect();
        let has_calls = said.iter().any(Say::is_call);
        let stop_reason = if has_calls { "tool_use" } else { "end_turn" };
        let (input_tokens, output_tokens) = TOKENS;
        let mut events = vec![json!({"type": "message_start", "message": {
            "id": "msg_fake", "type": "message", "role": "assistant", "model": "fake-model",
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": input_tokens, "output_tokens": 1},
        }})];
        let mut index = 0_u32;
        let mut text_is_open = false;
        for one in said {
            if text_is_open && one.is_call() {
                events.push(json!({"type": "content_block_stop", "index": index}));
                text_is_open = false;
                index += 1;
            }
            match one {
                Say::Text(text) => {
                    if !text_is_open {
                        let block = json!({"type": "text", "text": ""});
                        events.push(block_start(index, &block));
                        text_is_open = true;
                    }
                    let delta = json!({"type": "text_delta", "text": text});
                    events.push(block_delta(index, &delta));
                }
                Say::Call { id, name, input } => {
                    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                    events.push(block_start(index, &block));
                    let delta =
                        json!({"type": "input_json_delta", "partial_json": input.to_string()});
                    events.push(block_delta(index, &delta));
                    events.push(json!({"type": "content_block_stop", "index": index}));
                    index += 1;
                }
            }
        }
        if text_is_open {
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        events.push(json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": null},
            "usage": {"output_tokens": output_tokens},
        }));
        events.push(json!({"type": "message_stop"}));
        stream_named_events(&events)
    }

    /// Creates a streamed answer of Gemini: one frame per piece, 20 input tokens, 10 output tokens.
    /// The calls use the given ids.
    pub fn gemini(said: impl IntoIterator<Item = Say>) -> Self {
        let chunk = |parts: Value, finish: Option<&str>| {
            let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
            if let Some(finish) = finish {
                candidate["finishReason"] = finish.into();
            }
            json!({"candidates": [candidate], "modelVersion": "fake-model", "responseId": "fake"})
        };
        let mut chunks: Vec<Value> = said
            .into_iter()
            .map(|one| {
                let part = match one {
                    Say::Text(text) => json!({"text": text}),
                    Say::Call { id, name, input } => {
                        json!({"functionCall": {"id": id, "name": name, "args": input}})
                    }
                };
                chunk(json!([part]), None)
            })
            .collect();
        let (prompt, output) = TOKENS;
        // Gemini reports `STOP` also for answers with function calls.
        let mut last = chunk(json!([{"text": ""}]), Some("STOP"));
        last["usageMetadata"] = json!({
            "promptTokenCount": prompt, "candidatesTokenCount": output,
            "totalTokenCount": prompt + output,
        });
        chunks.push(last);
        stream_answer(
            Form::Sse,
            chunks.iter().map(|chunk| format!("data: {chunk}\n\n")),
        )
    }

    /// Creates a streamed answer of Ollama's `/api/chat`: one line per piece, 20 input tokens, 10
    /// output tokens.
    pub fn ollama(said: impl IntoIterator<Item = Say>) -> Self {
        let line = |message: Value| {
            json!({
                "model": "fake-model", "created_at": "2026-10-01T00:00:00Z", "message": message,
                "done": false,
            })
        };
        let mut lines: Vec<Value> = said
            .into_iter()
            .map(|one| {
                line(match one {
                    Say::Text(text) => json!({"role": "assistant", "content": text}),
                    Say::Call { id, name, input } => json!({
                        "role": "assistant", "content": "",
                        "tool_calls": [{"id": id, "function": {"name": name, "arguments": input}}],
                    }),
                })
            })
            .collect();
        let (prompt, output) = TOKENS;
        let mut last = line(json!({"role": "assistant", "content": ""}));
        last["done"] = true.into();
        // Ollama reports `stop` also for answers with tool calls.
        last["done_reason"] = "stop".into();
        last["prompt_eval_count"] = prompt.into();
        last["eval_count"] = output.into();
        lines.push(last);
        stream_answer(Form::Ndjson, lines.iter().map(|line| format!("{line}\n")))
    }
}

fn block_start(index: u32, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn block_delta(index: u32, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

/// Creates an answer of server-sent events. The name of each is the value of its field `type`.
fn stream_named_events(events: &[Value]) -> Answer {
    let frames = events.iter().map(|event| {
        let name = event["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    });
    stream_answer(Form::Sse, frames)
}

/// Creates an answer with one piece for each frame.
fn stream_answer(form: Form, frames: impl Iterator<Item = String>) -> Answer {
    let answer = Answer::new(200).header("content-type", form.media_type());
    frames.fold(answer, Answer::piece)
}

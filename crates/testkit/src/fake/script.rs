//! Answers in the words of a wire, for tests that are not about the wire.

use serde_json::{Value, json};

use super::Answer;

/// What a scripted model says.
#[derive(Debug, Clone, PartialEq)]
pub enum Say {
    /// A piece of text; several in a row go on with the same text.
    Text(String),
    /// A tool use.
    Call {
        /// Its id.
        id: String,
        /// The tool's name.
        name: String,
        /// Its input, an object.
        input: Value,
    },
}

impl Say {
    /// A piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A tool use.
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

/// What both wires report: 20 tokens in, 10 out.
const TOKENS: (u32, u32) = (20, 10);

impl Answer {
    /// A streamed answer of OpenAI's Chat Completions: one piece per frame, the usage in a chunk of
    /// its own (20 tokens in, 10 out), `[DONE]` at the end.
    pub fn openai_chat(said: impl IntoIterator<Item = Say>) -> Self {
        let said: Vec<Say> = said.into_iter().collect();
        let finish = if said.iter().any(Say::is_call) {
            "tool_calls"
        } else {
            "stop"
        };
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
        streamed(frames.chain(["data: [DONE]\n\n".to_owned()]))
    }

    /// A streamed answer of Anthropic's Messages: one piece per event, 20 tokens in, 10 out.
    pub fn anthropic(said: impl IntoIterator<Item = Say>) -> Self {
        let said: Vec<Say> = said.into_iter().collect();
        let stop_reason = if said.iter().any(Say::is_call) {
            "tool_use"
        } else {
            "end_turn"
        };
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
        let named = events.iter().map(|event| {
            let name = event["type"].as_str().unwrap_or_default();
            format!("event: {name}\ndata: {event}\n\n")
        });
        streamed(named)
    }
}

fn block_start(index: u32, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn block_delta(index: u32, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn streamed(frames: impl Iterator<Item = String>) -> Answer {
    let answer = Answer::new(200).header("content-type", "text/event-stream");
    frames.fold(answer, Answer::piece)
}

//! Long answers of every wire, as its servers write them, for the benches of what reads them.
//!
//! What is in a frame beside the text (ids, numbers, times, padding) is as in the stored
//! transcripts: it is most of the bytes, and what a decoder has to get past. A frame brings as much
//! as the wire's own servers mostly put into one: a token with OpenAI and Ollama, some with
//! Anthropic, some dozens with Gemini.

use std::hint::black_box;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, ModelError, ModelId, ModelStream, ToolChoiceOutcome, ToolDefinition, Warning,
};
use switchboard_providers_anthropic::messages::{LocalIds, MessagesDecoder};
use switchboard_providers_common::{ByteStream, WireDecoder, decode_ndjson, decode_sse};
use switchboard_providers_gemini::{
    GeminiOptions,
    generate::{GenerateDecoder, ToolMapping},
};
use switchboard_providers_openai::{chat::ChatDecoder, responses::ResponsesDecoder};

/// Bytes that arrive at once: what one packet of a network mostly brings.
const PACKET: usize = 1_400;

/// What an answer says, of which each frame brings a little.
const PROSE: &str = "Here is what I found about the **late orders**:\n\n1. Order 4711 of customer 42 left the \
    warehouse on Monday, and the carrier says \"in transit\" since then. It should have been there by \
    Wednesday at the latest.\n2. Order 4712 waits for a part; the supplier in Zürich promised it for the 14th \
    – see the note below.\n\n```sql\nSELECT id, state FROM orders WHERE customer = 42 AND due < '2026-11-20';\n\
    ```\n\nI would tell the customer about both at once, since the second one cannot be sent before next week. \
    Shall I write the message, or do you want to call them yourself? 🙂\n\n";

/// An answer, and what reads it.
pub(crate) struct Answer {
    /// Its wire: the name of a folder of the transcripts.
    pub(crate) wire: &'static str,
    /// What there is in it, and how.
    pub(crate) about: &'static str,
    /// The body, in the pieces in which it arrives.
    pieces: Vec<Bytes>,
    /// What each frame holds: JSON.
    payloads: Vec<String>,
    decode: fn(ByteStream) -> ModelStream,
}

impl Answer {
    fn of(
        wire: &'static str,
        about: &'static str,
        decode: fn(ByteStream) -> ModelStream,
        frames: Vec<Frame>,
    ) -> Self {
        let body: String = frames.iter().map(Frame::to_string).collect();
        let body = Bytes::from(body);
        let starts = (0..body.len()).step_by(PACKET);
        let pieces = starts.map(|at| body.slice(at..body.len().min(at + PACKET)));
        Self {
            wire,
            about,
            pieces: pieces.collect(),
            payloads: frames.into_iter().map(|frame| frame.payload).collect(),
            decode,
        }
    }

    /// Bytes of the body.
    pub(crate) fn size(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// The JSON of the frames.
    pub(crate) fn payloads(&self) -> &[String] {
        &self.payloads
    }

    /// Fails if what is measured is not what is meant: an event for each frame, or nearly.
    pub(crate) fn check(&self) -> Result<(), Box<dyn std::error::Error>> {
        let (events, frames) = (self.read()?, self.payloads().len());
        if events + 8 < frames {
            let (wire, about) = (self.wire, self.about);
            return Err(format!("{wire}, {about}: {events} events of {frames} frames").into());
        }
        Ok(())
    }

    /// Reads the body as an adapter does, up to the last event, and says how many there were.
    pub(crate) fn read(&self) -> Result<usize, ModelError> {
        let pieces: Vec<Result<Bytes, ModelError>> = self.pieces.iter().cloned().map(Ok).collect();
        let mut events = (self.decode)(Box::pin(stream::iter(pieces)));
        let mut count = 0;
        // The body is there: nothing is waited for.
        while let Some(Some(event)) = events.next().now_or_never() {
            black_box(event?);
            count += 1;
        }
        Ok(count)
    }
}

/// One event of a body, or one line.
struct Frame {
    /// `None` for a line.
    event: Option<&'static str>,
    payload: String,
}

impl std::fmt::Display for Frame {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let payload = &self.payload;
        match self.event {
            None => writeln!(formatter, "{payload}"),
            Some("") => write!(formatter, "data: {payload}\n\n"),
            Some(event) => write!(formatter, "event: {event}\ndata: {payload}\n\n"),
        }
    }
}

fn data(payload: &Value) -> Frame {
    let payload = payload.to_string();
    let event = Some("");
    Frame { event, payload }
}

fn line(payload: &Value) -> Frame {
    let payload = payload.to_string();
    let event = None;
    Frame { event, payload }
}

/// Every answer.
pub(crate) fn all() -> Vec<Answer> {
    let mut answers = Vec::from(anthropic());
    answers.extend(chat());
    answers.extend(responses());
    answers.extend(gemini());
    answers.extend(ollama());
    answers
}

/// The prose, several times, in pieces of so many words.
fn prose(words: usize) -> Vec<String> {
    let text = PROSE.repeat(8);
    let tokens: Vec<&str> = text.split_inclusive(' ').collect();
    tokens.chunks(words).map(<[&str]>::concat).collect()
}

/// What a tool is given: a list of records.
fn arguments(records: usize) -> Value {
    let record = |number: usize| {
        json!({"id": 4700 + number, "customer": {"name": "Müller & Söhne", "city": "Kiel"},
            "items": ["lamp \"Astra\"", "cable"], "total": 129.9, "urgent": number.is_multiple_of(3)})
    };
    json!({"orders": (0..records).map(record).collect::<Vec<_>>(), "note": "Late.\nCall first."})
}

/// The same as text, in pieces of so many characters.
fn argument_text(characters: usize) -> Vec<String> {
    let text: Vec<char> = arguments(60).to_string().chars().collect();
    let pieces = text.chunks(characters);
    pieces.map(|piece| piece.iter().collect()).collect()
}

fn decoder<D>(new: fn(ModelId, ToolChoiceOutcome, Vec<Warning>, LocalIds) -> D) -> D {
    let model = ModelId::new("bench", "model");
    let ids = LocalIds::default();
    new(model, ToolChoiceOutcome::Native, Vec::new(), ids)
}

fn sse(body: ByteStream, decoder: impl WireDecoder + 'static) -> ModelStream {
    decode_sse("bench", body, decoder)
}

fn anthropic() -> [Answer; 3] {
    let of = |about, block: Value, deltas: Vec<Value>| {
        let event = |name: &'static str, payload: &Value| Frame {
            event: Some(name),
            payload: payload.to_string(),
        };
        let mut frames = vec![
            event(
                "message_start",
                &json!({"type": "message_start", "message": {"id": "msg_01Hk3Wq7", "type": "message",
                    "role": "assistant", "model": "claude-haiku-4-5-20251001", "content": [], "stop_reason": null,
                    "stop_sequence": null, "usage": {"input_tokens": 25, "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0, "output_tokens": 1, "service_tier": "standard"}}}),
            ),
            event(
                "content_block_start",
                &json!({"type": "content_block_start", "index": 0, "content_block": block}),
            ),
            event("ping", &json!({"type": "ping"})),
        ];
        frames.extend(deltas.into_iter().map(|delta| {
            let payload = json!({"type": "content_block_delta", "index": 0, "delta": delta});
            event("content_block_delta", &payload)
        }));
        frames.extend([
            event("content_block_stop", &json!({"type": "content_block_stop", "index": 0})),
            event(
                "message_delta",
                &json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
                    "usage": {"output_tokens": 1200}}),
            ),
            event("message_stop", &json!({"type": "message_stop"})),
        ]);
        let decode = |body| sse(body, decoder(MessagesDecoder::new));
        Answer::of("anthropic", about, decode, frames)
    };
    let text = prose(3).into_iter();
    let thoughts = prose(3).into_iter();
    let input = argument_text(14).into_iter();
    [
        of(
            "text",
            json!({"type": "text", "text": ""}),
            text.map(|text| json!({"type": "text_delta", "text": text}))
                .collect(),
        ),
        of(
            "reasoning",
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            thoughts
                .map(|text| json!({"type": "thinking_delta", "thinking": text}))
                .collect(),
        ),
        of(
            "arguments",
            json!({"type": "tool_use", "id": "toolu_01A", "name": "save", "input": {}}),
            input
                .map(|text| json!({"type": "input_json_delta", "partial_json": text}))
                .collect(),
        ),
    ]
}

/// Characters that make all frames as long as each other, so that nobody reads an encrypted answer
/// from their lengths: OpenAI's own servers send them.
fn padding(number: usize) -> &'static str {
    let letters = "xK3fQ9aZ1LmP7tRw";
    &letters[..=number * 7 % letters.len()]
}

fn chat() -> [Answer; 5] {
    let of = |about, padded: bool, deltas: Vec<Value>| {
        let chunk = |number: usize, delta: &Value, finish: Option<&str>| {
            let mut chunk = json!({"id": "chatcmpl-C9q1", "object": "chat.completion.chunk", "created": 1_790_000_000,
                "model": "gpt-6-luna-2026-08-01", "service_tier": "default", "system_fingerprint": "fp_1",
                "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]});
            if padded {
                chunk["usage"] = Value::Null;
                chunk["obfuscation"] = padding(number).into();
            }
            data(&chunk)
        };
        let first = json!({"role": "assistant", "content": "", "refusal": null});
        let mut frames = vec![chunk(0, &first, None)];
        frames.extend(
            (1..)
                .zip(&deltas)
                .map(|(number, delta)| chunk(number, delta, None)),
        );
        frames.push(chunk(0, &json!({}), Some("stop")));
        frames.push(data(
            &json!({"id": "chatcmpl-C9q1", "object": "chat.completion.chunk",
            "created": 1_790_000_000, "model": "gpt-6-luna-2026-08-01", "choices": [],
            "usage": {"prompt_tokens": 42, "completion_tokens": 1200, "total_tokens": 1242,
            "prompt_tokens_details": {"cached_tokens": 32, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 3, "audio_tokens": 0}}}),
        ));
        let decode = |body| sse(body, decoder(ChatDecoder::new));
        let mut answer = Answer::of("openai-chat", about, decode, frames);
        answer.close_with("data: [DONE]\n\n");
        answer
    };
    let text = || prose(1).into_iter().map(|text| json!({"content": text}));
    let thoughts = prose(1).into_iter();
    let thoughts = thoughts.map(|text| json!({"reasoning_content": text}));
    let begin = json!({"tool_calls": [{"index": 0, "id": "call_a", "type": "function",
        "function": {"name": "save", "arguments": ""}}]});
    let input = || {
        let pieces = argument_text(4).into_iter();
        let more = pieces
            .map(|text| json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}));
        std::iter::once(begin.clone()).chain(more)
    };
    [
        of("text", false, text().collect()),
        of("text, padded", true, text().collect()),
        of("reasoning", false, thoughts.collect()),
        of("arguments", false, input().collect()),
        of("arguments, padded", true, input().collect()),
    ]
}

impl Answer {
    /// Appends what is no JSON.
    fn close_with(&mut self, words: &'static str) {
        self.pieces.push(Bytes::from_static(words.as_bytes()));
    }
}

/// An item that Responses writes in pieces.
struct Written {
    about: &'static str,
    /// As it begins, and as it is when it is complete.
    item: [Value; 2],
    event: &'static str,
    done: &'static str,
    /// What its pieces say of their place.
    place: Value,
    pieces: Vec<String>,
}

fn responses() -> [Answer; 3] {
    let (text, input) = (prose(1), argument_text(4));
    let part = |text: &str| json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text});
    let message = |status: &str, content: Vec<Value>| json!({"id": "msg_1", "type": "message", "status": status, "content": content, "role": "assistant"});
    let thinking = |summary: Vec<Value>| json!({"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": "gAAA"});
    let call = |status: &str, arguments: String| {
        json!({"id": "fc_1", "type": "function_call", "status": status, "arguments": arguments,
            "call_id": "call_a", "name": "save"})
    };
    let whole = text.concat();
    [
        Written {
            about: "text",
            item: [
                message("in_progress", Vec::new()),
                message("completed", vec![part(&whole)]),
            ],
            event: "response.output_text.delta",
            done: "response.output_text.done",
            place: json!({"content_index": 0, "logprobs": []}),
            pieces: text.clone(),
        },
        Written {
            about: "reasoning",
            item: [
                thinking(Vec::new()),
                thinking(vec![json!({"type": "summary_text", "text": &whole})]),
            ],
            event: "response.reasoning_summary_text.delta",
            done: "response.reasoning_summary_text.done",
            place: json!({"summary_index": 0}),
            pieces: text,
        },
        Written {
            about: "arguments",
            item: [
                call("in_progress", String::new()),
                call("completed", input.concat()),
            ],
            event: "response.function_call_arguments.delta",
            done: "response.function_call_arguments.done",
            place: json!({}),
            pieces: input,
        },
    ]
    .map(Written::answer)
}

impl Written {
    fn answer(self) -> Answer {
        let response = |status: &str, output: &[&Value], usage: Value| {
            json!({"id": "resp_68f1", "object": "response", "status": status, "error": null,
                "incomplete_details": null, "model": "gpt-6-luna-2026-08-01", "output": output, "usage": usage,
                "created_at": 1_795_000_000, "instructions": null, "parallel_tool_calls": true, "store": false,
                "tool_choice": "auto", "tools": []})
        };
        let mut frames = Vec::new();
        let mut tell = |name: &'static str, more: &Value| {
            let mut payload = json!({"type": name, "sequence_number": frames.len()});
            for (field, value) in more.as_object().into_iter().flatten() {
                payload[field] = value.clone();
            }
            frames.push(Frame {
                event: Some(name),
                payload: payload.to_string(),
            });
        };
        let [begun, complete] = &self.item;
        for name in ["response.created", "response.in_progress"] {
            let response = response("in_progress", &[], Value::Null);
            tell(name, &json!({"response": response}));
        }
        tell(
            "response.output_item.added",
            &json!({"output_index": 0, "item": begun}),
        );
        let place = |mut more: Value| {
            more["item_id"] = begun["id"].clone();
            more["output_index"] = 0.into();
            for (field, value) in self.place.as_object().into_iter().flatten() {
                more[field] = value.clone();
            }
            more
        };
        for (number, piece) in self.pieces.iter().enumerate() {
            let mut more = place(json!({}));
            more["delta"] = piece.as_str().into();
            more["obfuscation"] = padding(number).into();
            tell(self.event, &more);
        }
        let field = if self.about == "arguments" {
            "arguments"
        } else {
            "text"
        };
        tell(self.done, &place(json!({field: self.pieces.concat()})));
        tell(
            "response.output_item.done",
            &json!({"output_index": 0, "item": complete}),
        );
        let usage = json!({"input_tokens": 40, "input_tokens_details": {"cached_tokens": 32}, "output_tokens": 1200,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1240});
        let response = response("completed", &[complete], usage);
        tell("response.completed", &json!({"response": response}));
        let decode = |body| sse(body, decoder(ResponsesDecoder::new));
        Answer::of("openai-responses", self.about, decode, frames)
    }
}

fn gemini() -> [Answer; 3] {
    let of = |about, parts: Vec<Value>| {
        let last = parts.len().saturating_sub(1);
        let frames = parts.into_iter().enumerate().map(|(number, part)| {
            let mut candidate = json!({"content": {"parts": [part], "role": "model"}});
            if number == last {
                candidate["finishReason"] = "STOP".into();
            }
            candidate["index"] = 0.into();
            data(
                &json!({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 42,
                "candidatesTokenCount": number * 24, "totalTokenCount": 42 + number * 24,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 42}]},
                "modelVersion": "gemini-3.8-flash", "responseId": "resp-1"}),
            )
        });
        // The tool is declared: what a call gives it may have to come back in another form.
        let decode = |body| {
            let tool = ToolDefinition::new("save", "Saves orders.", json!({"type": "object"}));
            let request = ChatRequest::default().with_tools([tool]);
            let declared = ToolMapping::of(&request, GeminiOptions::default().schemas);
            sse(
                body,
                decoder(GenerateDecoder::new).with_tool_mapping(declared),
            )
        };
        Answer::of("gemini", about, decode, frames.collect())
    };
    let said = || prose(20).into_iter().cycle().take(120);
    let call = |number: usize| {
        json!({"functionCall": {"name": "save", "args": arguments(3), "id": format!("hx7k2p9q{number}")},
            "thoughtSignature": "CpQBAdHtim9kZWVwIHRob3VnaHQtMQ=="})
    };
    [
        of("text", said().map(|text| json!({"text": text})).collect()),
        of(
            "reasoning",
            said()
                .map(|text| json!({"text": text, "thought": true}))
                .collect(),
        ),
        of("calls", (0..60).map(call).collect()),
    ]
}

fn ollama() -> [Answer; 3] {
    use switchboard_providers_ollama::chat::ChatDecoder;

    let of = |about, messages: Vec<Value>| {
        let count = messages.len();
        let mut frames: Vec<Frame> = (0..)
            .zip(messages)
            .map(|(number, message): (u64, Value)| {
                let time = format!("2026-11-20T09:15:30.{:06}Z", 100_000 + number * 1_111 % 899_999);
                line(&json!({"model": "qwen3:8b", "created_at": time, "message": message, "done": false}))
            })
            .collect();
        frames.push(line(&json!({"model": "qwen3:8b", "created_at": "2026-11-20T09:15:31.133455Z",
            "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop",
            "total_duration": 2_412_035_917_u64, "load_duration": 48_211_625, "prompt_eval_count": 26,
            "prompt_eval_duration": 310_221_000, "eval_count": count, "eval_duration": 2_031_882_000_u64})));
        let decode = |body| decode_ndjson("bench", body, decoder(ChatDecoder::new));
        Answer::of("ollama", about, decode, frames)
    };
    let text = prose(1).into_iter();
    let thoughts = prose(1).into_iter();
    let call = |number: usize| {
        json!({"role": "assistant", "content": "", "tool_calls": [{"id": format!("call_k2v9x1q{number}"),
            "function": {"index": number, "name": "save", "arguments": arguments(3)}}]})
    };
    [
        of(
            "text",
            text.map(|text| json!({"role": "assistant", "content": text}))
                .collect(),
        ),
        of(
            "reasoning",
            thoughts
                .map(|text| json!({"role": "assistant", "content": "", "thinking": text}))
                .collect(),
        ),
        of("calls", (0..60).map(call).collect()),
    ]
}

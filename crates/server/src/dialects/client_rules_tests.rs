//! Rules of the official client SDK of each dialect, which a response must not violate. They are
//! written here in Rust.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// A server-sent event as a client receives it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    pub(super) name: Option<String>,
    /// The data as JSON. `None` stands for `[DONE]`.
    pub(super) data: Option<Value>,
}

/// Splits the body of a response into frames.
pub(super) fn frames(body: &[u8]) -> Vec<Frame> {
    let text = std::str::from_utf8(body).unwrap();
    assert!(text.is_empty() || text.ends_with("\n\n"), "half a frame");
    let pieces = text.split("\n\n").filter(|piece| !piece.is_empty());
    pieces
        .map(|piece| {
            let (name, data) = match piece.split_once('\n') {
                Some((name, data)) => (name.strip_prefix("event: "), data),
                None => (None, piece),
            };
            let data = data.strip_prefix("data: ").unwrap();
            assert!(!data.contains('\n'), "{data}");
            let data = (data != "[DONE]").then(|| serde_json::from_str(data).unwrap());
            let name = name.map(ToOwned::to_owned);
            Frame { name, data }
        })
        .collect()
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    let found = value.get(field).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text `{field}` in {value}"))
}

/// The rules of `processUIMessageStream` of `ai` 7.0.173, and of `useChat` for the responses of one
/// message.
#[derive(Debug, Default)]
pub(super) struct Ui {
    /// States of the message's tool calls in all its responses, by call id.
    calls: HashMap<String, &'static str>,
    /// All text parts, including those of a step that was discarded.
    pub(super) texts: Vec<String>,
    message: Option<String>,
}

impl Ui {
    /// Reads a response. `is_over` states whether the run ended in this response.
    #[expect(clippy::too_many_lines, reason = "it is a list of rules")]
    pub(super) fn read(&mut self, frames: &[Frame], is_over: bool) {
        let (done, chunks) = frames.split_last().expect("there is something");
        assert_eq!(done.name, None, "it ends with [DONE]");
        assert_eq!(done.data, None, "it ends with [DONE]");
        let mut open: HashMap<String, String> = HashMap::new();
        let mut used: BTreeSet<String> = BTreeSet::new();
        let mut written: BTreeSet<String> = BTreeSet::new();
        let mut in_step = false;
        let mut step_began_at = self.texts.len();
        let mut ended = None;
        for (place, frame) in chunks.iter().enumerate() {
            assert_eq!(frame.name, None);
            let chunk = frame.data.as_ref().expect("[DONE] comes once");
            let kind = text(chunk, "type");
            assert_eq!(kind == "start", place == 0, "{chunk}");
            assert!(
                ended.is_none() || (ended == Some("error") && kind == "finish"),
                "{chunk}"
            );
            let call = |id: &str, calls: &HashMap<String, &'static str>| -> &'static str {
                calls
                    .get(id)
                    .copied()
                    .unwrap_or_else(|| panic!("no call {id}: {chunk}"))
            };
            match kind {
                "start" => {
                    let id = text(chunk, "messageId").to_owned();
                    assert!(
                        self.message
                            .replace(id.clone())
                            .is_none_or(|before| before == id)
                    );
                }
                "start-step" => {
                    assert!(!in_step);
                    in_step = true;
                    step_began_at = self.texts.len();
                }
                "finish-step" => {
                    assert!(in_step && open.is_empty(), "{open:?}");
                    in_step = false;
                }
                "text-start" | "reasoning-start" => {
                    let id = text(chunk, "id").to_owned();
                    assert!(used.insert(id.clone()), "{chunk}");
                    assert!(open.is_empty(), "parts do not overlap: {chunk}");
                    open.insert(id, kind.trim_end_matches("-start").to_owned());
                    if kind == "text-start" {
                        self.texts.push(String::new());
                    }
                }
                "text-delta" | "reasoning-delta" => {
                    assert_eq!(open[text(chunk, "id")], kind.trim_end_matches("-delta"));
                    let delta = text(chunk, "delta");
                    if kind == "text-delta" {
                        self.texts.last_mut().unwrap().push_str(delta);
                    }
                }
                "text-end" | "reasoning-end" => {
                    let was = open.remove(text(chunk, "id"));
                    assert_eq!(was.as_deref(), Some(kind.trim_end_matches("-end")));
                }
                "tool-input-start" => {
                    let id = text(chunk, "toolCallId").to_owned();
                    assert!(in_step && written.insert(id.clone()));
                    assert!(self.calls.insert(id, "streaming").is_none(), "{chunk}");
                    assert!(!text(chunk, "toolName").is_empty());
                }
                "tool-input-delta" => {
                    assert_eq!(call(text(chunk, "toolCallId"), &self.calls), "streaming");
                    text(chunk, "inputTextDelta");
                }
                "tool-input-available" => {
                    let id = text(chunk, "toolCallId");
                    let before = self.calls.insert(id.to_owned(), "available");
                    assert!(
                        matches!(before, None | Some("streaming" | "available" | "requested")),
                        "{before:?}: {chunk}"
                    );
                    assert!(chunk.get("input").is_some());
                }
                "tool-input-error" => {
                    let id = text(chunk, "toolCallId");
                    assert_eq!(self.calls.insert(id.to_owned(), "done"), Some("streaming"));
                    text(chunk, "errorText");
                }
                "tool-approval-request" => {
                    let id = text(chunk, "toolCallId");
                    assert_eq!(
                        self.calls.insert(id.to_owned(), "requested"),
                        Some("available")
                    );
                    assert!(!text(chunk, "approvalId").is_empty());
                }
                "tool-output-available" | "tool-output-error" => {
                    let id = text(chunk, "toolCallId");
                    let before = call(id, &self.calls);
                    assert!(
                        matches!(before, "available" | "requested"),
                        "{before}: {chunk}"
                    );
                    self.calls.insert(id.to_owned(), "done");
                    assert!(chunk.get("output").is_some() || chunk.get("errorText").is_some());
                }
                "tool-output-denied" => {
                    let id = text(chunk, "toolCallId");
                    let before = self.calls.insert(id.to_owned(), "done");
                    assert!(
                        matches!(before, Some("available" | "requested")),
                        "{before:?}: {chunk}"
                    );
                }
                "message-metadata" => assert!(chunk["messageMetadata"].is_object()),
                "finish" => {
                    let reason = text(chunk, "finishReason");
                    let known = [
                        "stop",
                        "length",
                        "content-filter",
                        "tool-calls",
                        "error",
                        "other",
                    ];
                    assert!(known.contains(&reason), "{chunk}");
                    assert_eq!(reason == "tool-calls", !is_over, "{chunk}");
                    ended = Some("finish");
                }
                "error" => {
                    text(chunk, "errorText");
                    ended = Some("error");
                }
                "abort" => ended = Some("abort"),
                "data-superseded" => self.texts.truncate(step_began_at),
                data => {
                    assert!(
                        data.starts_with("data-") && chunk.get("data").is_some(),
                        "{chunk}"
                    );
                }
            }
        }
        assert!(ended.is_some(), "it has an end");
        assert!(open.is_empty() && !in_step);
        if is_over {
            let left: Vec<_> = self
                .calls
                .iter()
                .filter(|(_, state)| **state != "done")
                .collect();
            assert!(left.is_empty(), "{left:?}");
        } else {
            assert!(self.calls.values().any(|state| *state == "requested"));
        }
    }
}

/// Reads `chat.completion.chunk`s by the rules of `openai` 3.54.0. Returns the content, or the code
/// of the error.
pub(super) fn chat(frames: &[Frame]) -> Result<String, String> {
    let (done, chunks) = frames.split_last().expect("there is something");
    assert_eq!(done.name, None, "it ends with [DONE]");
    assert_eq!(done.data, None, "it ends with [DONE]");
    let mut content = String::new();
    let mut same: Option<(Value, Value, Value)> = None;
    let mut finished = false;
    let mut calls = 0;
    for (place, frame) in chunks.iter().enumerate() {
        assert_eq!(frame.name, None);
        let chunk = frame.data.as_ref().expect("[DONE] comes once");
        if let Some(error) = chunk.get("error") {
            assert_eq!(place, chunks.len() - 1);
            assert!(!finished && !text(error, "message").is_empty());
            return Err(text(error, "code").to_owned());
        }
        assert_eq!(text(chunk, "object"), "chat.completion.chunk");
        let [id, created, model] = ["id", "created", "model"].map(|field| chunk[field].clone());
        assert!(
            id.is_string() && created.is_i64() && model.is_string(),
            "{chunk}"
        );
        let these = (id, created, model);
        assert_eq!(*same.get_or_insert_with(|| these.clone()), these);
        let choices = chunk["choices"].as_array().unwrap();
        if choices.is_empty() {
            assert!(finished && place == chunks.len() - 1);
            let usage = &chunk["usage"];
            for field in ["prompt_tokens", "completion_tokens", "total_tokens"] {
                assert!(usage[field].is_u64(), "{chunk}");
            }
            continue;
        }
        assert!(!finished, "{chunk}");
        let [choice] = choices.as_slice() else {
            panic!("{chunk}");
        };
        let delta = &choice["delta"];
        assert_eq!(choice["index"], 0);
        assert_eq!(delta.get("role").is_some(), place == 0, "{chunk}");
        for call in delta
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            assert_eq!(call["index"], Value::from(calls));
            assert_eq!(call["type"], Value::from("function"));
            assert!(!text(call, "id").is_empty() && !text(&call["function"], "name").is_empty());
            let input: Value = serde_json::from_str(text(&call["function"], "arguments")).unwrap();
            assert!(input.is_object());
            calls += 1;
        }
        if let Some(more) = delta.get("content") {
            content.push_str(more.as_str().unwrap());
        }
        match choice["finish_reason"].as_str() {
            None => assert!(choice["finish_reason"].is_null()),
            Some("stop" | "length" | "content_filter") => finished = true,
            Some("tool_calls") => {
                assert!(calls > 0);
                finished = true;
            }
            Some(other) => panic!("{other}"),
        }
    }
    assert!(finished, "it has an end");
    Ok(content)
}

/// Reads message events by the rules of `accumulate_event` of `anthropic` 2.12.0. Returns the text
/// blocks, or the kind of the error.
pub(super) fn messages(frames: &[Frame]) -> Result<Vec<String>, String> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut is_open = false;
    let (mut has_delta, mut has_stop) = (false, false);
    for (place, frame) in frames.iter().enumerate() {
        let event = frame.data.as_ref().expect("there is no [DONE] here");
        let kind = text(event, "type");
        assert_eq!(frame.name.as_deref(), Some(kind));
        assert_eq!(kind == "message_start", place == 0, "{event}");
        assert!(!has_stop, "{event}");
        match kind {
            "message_start" => {
                let message = &event["message"];
                assert_eq!(text(message, "type"), "message");
                assert_eq!(text(message, "role"), "assistant");
                assert!(message["content"].as_array().unwrap().is_empty());
                assert!(
                    message["stop_reason"].is_null() && message["usage"]["input_tokens"].is_u64()
                );
                assert!(text(message, "id").starts_with("msg_") && message["model"].is_string());
            }
            "ping" => {}
            "content_block_start" => {
                assert!(!is_open && !has_delta);
                assert_eq!(event["index"], blocks.len());
                let block = text(&event["content_block"], "type");
                if block == "tool_use" {
                    assert_eq!(event["content_block"]["input"], serde_json::json!({}));
                    text(&event["content_block"], "id");
                    text(&event["content_block"], "name");
                } else {
                    assert!(["text", "thinking"].contains(&block));
                    assert_eq!(event["content_block"][block], "");
                }
                blocks.push((block.to_owned(), String::new()));
                is_open = true;
            }
            "content_block_delta" => {
                assert!(is_open);
                assert_eq!(event["index"], blocks.len() - 1);
                let (block, content) = blocks.last_mut().unwrap();
                let (kind, field) = match block.as_str() {
                    "tool_use" => ("input_json_delta", "partial_json"),
                    "text" => ("text_delta", "text"),
                    _ => ("thinking_delta", "thinking"),
                };
                assert_eq!(text(&event["delta"], "type"), kind);
                content.push_str(text(&event["delta"], field));
            }
            "content_block_stop" => {
                assert!(std::mem::take(&mut is_open));
                assert_eq!(event["index"], blocks.len() - 1);
            }
            "message_delta" => {
                assert!(!is_open && !has_delta);
                has_delta = true;
                assert!(event["usage"]["output_tokens"].is_u64());
                let reason = text(&event["delta"], "stop_reason");
                let known = [
                    "end_turn",
                    "max_tokens",
                    "refusal",
                    "model_context_window_exceeded",
                    "tool_use",
                ];
                let has_calls = blocks.iter().any(|(kind, _)| kind == "tool_use");
                assert_eq!(reason == "tool_use", has_calls, "{event}");
                assert!(known.contains(&reason), "{event}");
            }
            "message_stop" => {
                assert!(has_delta);
                has_stop = true;
            }
            "error" => {
                assert!(!is_open && !has_delta && place == frames.len() - 1);
                return Err(text(&event["error"], "type").to_owned());
            }
            other => panic!("{other}"),
        }
    }
    assert!(has_stop, "it has an end");
    let texts = blocks.into_iter().filter(|(kind, _)| kind == "text");
    Ok(texts.map(|(_, text)| text).collect())
}

/// The rules of `verifyEvents` of `@ag-ui/client` 1.0.0.
#[derive(Debug, Default)]
pub(super) struct AgUi {
    /// Calls in all runs of the thread by id. The value states whether the call has a result.
    calls: BTreeMap<String, bool>,
    pub(super) interrupts: Vec<(String, String)>,
}

impl AgUi {
    #[expect(clippy::too_many_lines, reason = "it is a list of rules")]
    pub(super) fn read(&mut self, frames: &[Frame], is_over: bool) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        let mut step_began_at = 0;
        let mut open: BTreeSet<(&str, String)> = BTreeSet::new();
        let mut ids: BTreeSet<String> = BTreeSet::new();
        let mut ended = false;
        for (place, frame) in frames.iter().enumerate() {
            assert_eq!(frame.name, None);
            let event = frame.data.as_ref().expect("there is no [DONE] here");
            let kind = text(event, "type");
            assert_eq!(kind == "RUN_STARTED", place == 0, "{event}");
            assert!(!ended, "{event}");
            assert!(event["timestamp"].is_i64(), "{event}");
            let mut opens = |what, field| {
                let id = text(event, field).to_owned();
                assert!(open.insert((what, id)), "{event}");
            };
            match kind {
                "RUN_STARTED" => {
                    text(event, "threadId");
                    text(event, "runId");
                    assert_eq!(event["protocolVersion"], "1.0");
                }
                "STEP_STARTED" => {
                    opens("step", "stepName");
                    step_began_at = texts.len();
                }
                "TEXT_MESSAGE_START" => {
                    opens("text", "messageId");
                    assert!(ids.insert(text(event, "messageId").to_owned()), "{event}");
                    assert_eq!(event["role"], "assistant");
                    texts.push(String::new());
                }
                "REASONING_START" => opens("span", "messageId"),
                "REASONING_MESSAGE_START" => {
                    opens("reasoning", "messageId");
                    assert_eq!(event["role"], "reasoning");
                }
                "TOOL_CALL_START" => {
                    opens("call", "toolCallId");
                    let id = text(event, "toolCallId").to_owned();
                    assert!(self.calls.insert(id, false).is_none(), "{event}");
                    assert!(!text(event, "toolCallName").is_empty());
                    text(event, "parentMessageId");
                }
                "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" | "TOOL_CALL_ARGS" => {
                    let (what, field) = match kind {
                        "TEXT_MESSAGE_CONTENT" => ("text", "messageId"),
                        "TOOL_CALL_ARGS" => ("call", "toolCallId"),
                        _ => ("reasoning", "messageId"),
                    };
                    let key = (what, text(event, field).to_owned());
                    assert!(open.contains(&key), "{event}");
                    let delta = text(event, "delta");
                    if what == "text" {
                        texts.last_mut().unwrap().push_str(delta);
                    }
                }
                "STEP_FINISHED"
                | "TEXT_MESSAGE_END"
                | "REASONING_MESSAGE_END"
                | "REASONING_END"
                | "TOOL_CALL_END" => {
                    let (what, field) = match kind {
                        "STEP_FINISHED" => ("step", "stepName"),
                        "TEXT_MESSAGE_END" => ("text", "messageId"),
                        "TOOL_CALL_END" => ("call", "toolCallId"),
                        "REASONING_END" => ("span", "messageId"),
                        _ => ("reasoning", "messageId"),
                    };
                    let key = (what, text(event, field).to_owned());
                    assert!(open.remove(&key), "{event}");
                }
                "TOOL_CALL_RESULT" => {
                    let id = text(event, "toolCallId");
                    assert!(!open.contains(&("call", id.to_owned())), "{event}");
                    assert_eq!(
                        self.calls.insert(id.to_owned(), true),
                        Some(false),
                        "{event}"
                    );
                    assert!(event["content"].is_string() && !text(event, "messageId").is_empty());
                }
                "CUSTOM" => {
                    assert!(text(event, "name").starts_with("switchboard."));
                    assert!(event.get("value").is_some());
                    if event["name"] == "switchboard.superseded" {
                        texts.truncate(step_began_at);
                    }
                }
                "RUN_FINISHED" => {
                    assert!(open.is_empty(), "{open:?}");
                    ended = true;
                    let interrupts = match text(&event["outcome"], "type") {
                        "interrupt" => event["outcome"]["interrupts"].as_array().unwrap().clone(),
                        "success" | "cancelled" => Vec::new(),
                        other => panic!("{other}"),
                    };
                    assert_eq!(interrupts.is_empty(), is_over, "{event}");
                    self.interrupts = interrupts
                        .iter()
                        .map(|it| (text(it, "id").to_owned(), text(it, "toolCallId").to_owned()))
                        .collect();
                }
                "RUN_ERROR" => {
                    text(event, "message");
                    ended = true;
                }
                other => panic!("{other}"),
            }
        }
        assert!(ended, "it has an end");
        if is_over {
            // The client must execute each call without a result.
            assert!(
                self.calls.values().all(|has_result| *has_result),
                "{:?}",
                self.calls
            );
        }
        texts
    }
}

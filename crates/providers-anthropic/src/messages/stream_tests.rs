use std::sync::Arc;

use switchboard_domain::{ChatResponse, Part, ResponseAccumulator, ToolInput};
use switchboard_providers_common::schema::ToolSchemas;

use super::*;

macro_rules! transcript {
    ($name:literal) => {
        include_str!(concat!("../../../testkit/transcripts/anthropic/", $name))
    };
}

pub(super) fn decoder() -> MessagesDecoder {
    MessagesDecoder::new(
        ModelId::new("anthropic", "claude-haiku-4-5"),
        ToolChoiceOutcome::Native,
        Vec::new(),
        LocalIds::default(),
    )
}

/// The names and payloads of stored server-sent events.
fn frames(transcript: &str) -> impl Iterator<Item = (&str, &str)> {
    transcript.split_terminator("\n\n").map(|frame| {
        let (name, data) = frame.split_once('\n').unwrap();
        let name = name.strip_prefix("event: ").unwrap();
        (name, data.strip_prefix("data: ").unwrap())
    })
}

/// The events before the end, and the error.
fn run<'a>(
    frames: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let (mut decoder, mut events) = (decoder(), Vec::new());
    for (name, data) in frames {
        if let Err(error) = decoder.frame(name, data, &mut events) {
            return (events, Err(error));
        }
    }
    let end = decoder.end(&mut events);
    (events, end)
}

pub(super) fn assemble(events: &[ModelEvent]) -> ResponseAccumulator {
    let mut answer = ResponseAccumulator::default();
    for event in events {
        answer.push(event).unwrap();
    }
    answer
}

pub(super) fn answer(transcript: &str) -> ChatResponse {
    let (events, end) = run(frames(transcript));
    end.unwrap();
    assemble(&events).finish().unwrap()
}

fn failure(transcript: &str) -> (ModelError, ChatResponse) {
    let (events, end) = run(frames(transcript));
    let answer = assemble(&events);
    assert!(!answer.is_finished(), "{events:?}");
    (end.unwrap_err(), answer.interrupted())
}

/// Events without an SSE name, as some gateways send them.
pub(super) fn of(values: &[Value]) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let texts: Vec<String> = values.iter().map(Value::to_string).collect();
    run(texts.iter().map(|text| ("", text.as_str())))
}

fn state(part: &Part) -> (&Option<Arc<str>>, &Value) {
    let state = part.provider_state().unwrap();
    assert_eq!(&*state.provider, "anthropic");
    (&state.model, &state.data)
}

pub(super) fn inputs(response: &ChatResponse) -> Vec<Option<Value>> {
    let calls = response.message.tool_uses();
    calls
        .map(|call| call.input.as_object().cloned().map(Value::Object))
        .collect()
}

#[test]
fn text_is_streamed() {
    let (events, end) = run(frames(transcript!("text.sse")));
    end.unwrap();
    let texts: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::TextDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["Hel", "lo, ", "wörld."]);
    let response = assemble(&events).finish().unwrap();
    assert_eq!(response.finish, FinishReason::Stop);
    assert_eq!(response.finish_raw.as_deref(), Some("end_turn"));
    assert_eq!(response.response_id.as_deref(), Some("msg_01Hk3Wq7"));
    assert_eq!(response.model.as_deref(), Some("claude-haiku-4-5-20251001"));
    assert_eq!(
        (response.usage.input_tokens, response.usage.output_tokens),
        (Some(25), Some(15))
    );
    assert!(response.warnings.is_empty());
}

#[test]
fn the_first_events_report_the_changes_of_the_request() {
    let warning = Warning::new(WarningKind::OptionDropped, "no seed");
    let outcome = ToolChoiceOutcome::Relaxed {
        why: "because".into(),
    };
    let model = ModelId::new("anthropic", "m");
    let mut decoder = MessagesDecoder::new(
        model,
        outcome.clone(),
        vec![warning.clone()],
        LocalIds::default(),
    );
    let mut events = Vec::new();
    for (name, data) in frames(transcript!("ping-and-unknown.sse")).take(2) {
        decoder.frame(name, data, &mut events).unwrap();
    }
    let ModelEvent::Started { tool_choice, .. } = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(*tool_choice, outcome);
    assert_eq!(events[1], ModelEvent::Warning { warning });
}

#[test]
fn two_calls_in_one_answer_are_read() {
    let response = answer(transcript!("two-calls.sse"));
    assert_eq!(response.finish, FinishReason::ToolUse);
    let calls: Vec<_> = response
        .message
        .tool_uses()
        .map(|call| (call.id.as_str(), call.name.as_str()))
        .collect();
    assert_eq!(
        calls,
        [("toolu_01A", "get_weather"), ("toolu_01B", "get_weather")]
    );
    assert_eq!(
        inputs(&response),
        [
            Some(json!({"city": "Hamburg"})),
            Some(json!({"city": "Kiel", "unit": "c"}))
        ]
    );
}

#[test]
fn a_call_is_finished_when_the_next_block_starts() {
    let (events, _) = run(frames(transcript!("two-calls.sse")));
    let at = |wanted: &dyn Fn(&ModelEvent) -> bool| events.iter().position(wanted).unwrap();
    let finished = at(&|it| matches!(it, ModelEvent::PartFinished { index: 0 }));
    let next = at(&|it| matches!(it, ModelEvent::PartStarted { index: 1, .. }));
    assert_eq!(finished + 1, next);
}

#[test]
fn case_11_empty_thinking_keeps_its_signature() {
    let response = answer(transcript!("thinking-then-call.sse"));
    let [Part::Reasoning(thought), Part::Text(_), Part::ToolUse(_)] = &response.message.parts[..]
    else {
        panic!("{:?}", response.message.parts);
    };
    assert_eq!(thought.text, "The weather of Hamburg is asked for.");
    let (model, data) = state(&response.message.parts[0]);
    assert_eq!(model.as_deref(), Some("claude-haiku-4-5"));
    assert!(data["signature"].as_str().unwrap().starts_with("EqQBCg"));
    assert_eq!(response.usage.reasoning_tokens, Some(61));

    let omitted = answer(transcript!("thinking-omitted.sse"));
    let Part::Reasoning(thought) = &omitted.message.parts[0] else {
        panic!("empty thinking with a signature was lost");
    };
    assert_eq!(thought.text, "");
    assert!(thought.provider_state.is_some());
}

#[test]
fn redacted_thinking_is_kept() {
    let response = answer(transcript!("redacted-thinking.sse"));
    let parts = &response.message.parts;
    assert_eq!(parts.len(), 3);
    assert_eq!(
        state(&parts[0]).1,
        &json!({"redacted": "EmwKAhgBEgy3va3pzix"})
    );
    assert_eq!(response.message.text(), "42.");
}

#[test]
fn case_20_a_refusal_has_its_explanation() {
    let response = answer(transcript!("refusal.sse"));
    assert_eq!(response.finish, FinishReason::Refusal);
    let texts: Vec<_> = response
        .message
        .parts
        .iter()
        .filter_map(Part::as_text)
        .collect();
    let why = "The request could enable cyber harm. (policy: cyber)";
    assert_eq!(texts, ["Let me", why]);
    let silent = answer(transcript!("refusal-without-words.sse"));
    assert_eq!(silent.finish, FinishReason::Refusal);
    assert!(silent.message.parts.is_empty());
    let only_category = json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": {"category": "bio"}}});
    let (events, end) = of(&[only_category, json!({"type": "message_stop"})]);
    end.unwrap();
    let response = assemble(&events).finish().unwrap();
    assert_eq!(response.message.text(), "Declined under the policy `bio`.");
}

#[test]
fn case_17_a_call_at_the_output_limit_is_malformed() {
    let inside = answer(transcript!("length-inside-arguments.sse"));
    assert_eq!(inside.finish, FinishReason::Length);
    let calls: Vec<_> = inside.message.tool_uses().collect();
    let ToolInput::Malformed { raw, .. } = &calls[0].input else {
        panic!("executed: {:?}", calls[0]);
    };
    assert_eq!(raw, r#"{"city": "Hamb"#);
    // The input parses as an object but may be incomplete.
    for transcript in [
        transcript!("length-after-whole-arguments.sse"),
        transcript!("length-before-arguments.sse"),
    ] {
        let response = answer(transcript);
        assert_eq!(response.finish, FinishReason::Length);
        assert_eq!(inputs(&response), [None]);
    }
    // A call with another block after it is complete.
    assert_eq!(
        inputs(&answer(transcript!("length-inside-second-call.sse"))),
        [Some(json!({"city": "Hamburg"})), None]
    );
    assert_eq!(
        answer(transcript!("length-inside-text.sse")).finish,
        FinishReason::Length
    );
    assert_eq!(
        answer(transcript!("context-window-exceeded.sse")).finish,
        FinishReason::ContextOverflow
    );
}

#[test]
fn blocks_of_server_tools_become_opaque_parts() {
    let paused = answer(transcript!("pause-turn.sse"));
    assert_eq!(paused.finish, FinishReason::Paused);
    let Part::Opaque(search) = &paused.message.parts[1] else {
        panic!("{:?}", paused.message.parts);
    };
    assert_eq!(search.kind, "server_tool_use");
    let shown = search.text.as_deref();
    assert_eq!(
        shown,
        Some(r#"{"name":"web_search","input":{"query":"weather Hamburg"}}"#)
    );
    assert_eq!(
        state(&paused.message.parts[1]),
        (
            &None,
            &json!({"type": "server_tool_use", "id": "srvtoolu_01A", "name": "web_search",
                    "input": {"query": "weather Hamburg"}})
        )
    );
    insta::assert_json_snapshot!(answer(transcript!("web-search.sse")));
    insta::assert_json_snapshot!(
        "code_that_the_provider_ran",
        answer(transcript!("code-execution.sse"))
    );
    insta::assert_json_snapshot!(
        "pages_that_the_provider_fetched",
        answer(transcript!("web-fetch.sse"))
    );
}

#[test]
fn a_call_by_the_providers_code_keeps_its_caller() {
    let response = answer(transcript!("programmatic-call.sse"));
    let [_, by_code, direct, container] = &response.message.parts[..] else {
        panic!("{:?}", response.message.parts);
    };
    assert_eq!(
        state(by_code).1,
        &json!({"caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_01A"}})
    );
    assert!(direct.provider_state().is_none());
    let id = &state(container).1["id"];
    assert_eq!(id, "container_01");
    assert_eq!(
        inputs(&response),
        [
            Some(json!({"city": "Hamburg"})),
            Some(json!({"city": "Kiel"}))
        ]
    );
}

#[test]
fn case_15_an_error_in_the_stream_does_not_finish_the_answer() {
    let (error, so_far) = failure(transcript!("error-mid-stream.sse"));
    assert_eq!(error.kind, ModelErrorKind::Overloaded { retry_after: None });
    assert_eq!(error.message(), "Overloaded");
    assert_eq!(error.request_id(), Some("req_011CK"));
    assert_eq!(so_far.message.text(), "Half an ans");
    let (error, so_far) = failure(transcript!("error-at-once.sse"));
    assert_eq!(error.kind, ModelErrorKind::Overloaded { retry_after: None });
    assert!(so_far.message.parts.is_empty());
}

#[test]
fn case_15_an_end_without_message_stop_is_an_interruption() {
    for transcript in [
        "",
        transcript!("eof-early.sse"),
        transcript!("eof-inside-arguments.sse"),
        transcript!("eof-without-message-stop.sse"),
    ] {
        let (error, so_far) = failure(transcript);
        assert_eq!(error.kind, ModelErrorKind::Interrupted);
        assert_eq!(error.provider(), "anthropic");
        assert!(inputs(&so_far).iter().all(Option::is_none));
    }
}

#[test]
fn unknown_events_and_blocks_are_preserved() {
    let response = answer(transcript!("ping-and-unknown.sse"));
    assert_eq!(response.message.text(), "42.");
    assert_eq!(response.finish, FinishReason::Other("a_new_reason".into()));
    let warned: Vec<_> = response.warnings.iter().map(|it| &*it.message).collect();
    assert_eq!(
        warned,
        [
            "the server sent event `mood_changed`, which was not expected",
            "the server sent `sparkle_delta` in a block of another type, which was not expected",
        ]
    );
    let hologram = &response.message.parts[1];
    assert_eq!(
        state(hologram).1,
        &json!({"type": "hologram", "shape": "cube", "note": "ab", "frames": 3})
    );
}

#[test]
fn case_10_a_call_without_arguments_has_an_empty_input() {
    let response = answer(transcript!("empty-input.sse"));
    assert_eq!(inputs(&response), [Some(json!({})), Some(json!({}))]);
    assert_eq!(response.finish, FinishReason::ToolUse);
}

#[test]
fn case_21_usage_includes_the_cache_and_missing_counts_are_not_zero() {
    let usage = answer(transcript!("cache-usage.sse")).usage;
    assert_eq!(usage.input_tokens, Some(3208));
    assert_eq!(usage.cache_read_tokens, Some(3000));
    assert_eq!(usage.cache_write_tokens, Some(200));
    assert_eq!(usage.output_tokens, Some(12));
    assert_eq!(answer(transcript!("no-usage.sse")).usage, Usage::default());
    // Zeros at the end do not replace earlier counts.
    let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 9}}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                     "usage": {"input_tokens": 0, "output_tokens": 4}});
    let (events, end) = of(&[start, end, json!({"type": "message_stop"})]);
    end.unwrap();
    let usage = assemble(&events).finish().unwrap().usage;
    assert_eq!(
        (usage.input_tokens, usage.output_tokens),
        (Some(9), Some(4))
    );
}

#[test]
fn every_stop_reason_is_mapped() {
    for (word, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("pause_turn", FinishReason::Paused),
        ("compaction", FinishReason::Paused),
        ("refusal", FinishReason::Refusal),
        (
            "model_context_window_exceeded",
            FinishReason::ContextOverflow,
        ),
        // There is no call.
        ("tool_use", FinishReason::Stop),
    ] {
        let delta = json!({"type": "message_delta", "delta": {"stop_reason": word}});
        let (events, end) = of(&[delta, json!({"type": "message_stop"})]);
        end.unwrap();
        let response = assemble(&events).finish().unwrap();
        assert_eq!(response.finish, expected, "{word}");
        assert_eq!(response.finish_raw.as_deref(), Some(word));
    }
}

#[test]
fn deviations_of_compatible_servers_are_accepted() {
    // No `message_start`, no `content_block_start` or `_stop`, and `[DONE]` at the end.
    let text = json!({"type": "content_block_delta", "index": 3,
                      "delta": {"type": "text_delta", "text": "Hi."}});
    let stop = json!({"type": "message_stop"});
    let (events, end) = of(&[text, stop.clone(), json!("[DONE]")]);
    end.unwrap();
    let response = assemble(&events).finish().unwrap();
    assert_eq!(response.message.text(), "Hi.");
    assert_eq!(
        (response.finish, response.finish_raw),
        (FinishReason::Stop, None)
    );
    assert_eq!(response.warnings.len(), 1);
    // The input as text in `content_block_start`, a blank id, and an index that is used twice.
    let call = |input: Value| {
        json!({"type": "content_block_start", "index": 0,
               "content_block": {"type": "tool_use", "id": "", "name": "f", "input": input}})
    };
    let (events, end) = of(&[call(json!({"a": 1})), call(json!("{\"a\": 2}")), stop]);
    end.unwrap();
    let response = assemble(&events).finish().unwrap();
    assert_eq!(response.finish, FinishReason::ToolUse);
    assert_eq!(
        inputs(&response),
        [Some(json!({"a": 1})), Some(json!({"a": 2}))]
    );
    let ids: Vec<_> = response.message.tool_uses().map(|it| &*it.id).collect();
    assert_eq!(ids, ["call_local_1", "call_local_2"]);
}

#[test]
fn an_unreadable_event_is_an_error() {
    for data in ["<html>", "[]", "[1]", "\"x\"", "3"] {
        let (_, end) = run([("message_start", data)]);
        assert_eq!(end.unwrap_err().kind, ModelErrorKind::Protocol, "{data}");
    }
    // Fields of the wrong type count as missing.
    let odd = json!({"type": "message_start", "message": {"id": 3, "content": "x", "usage": []}});
    let (events, _) = of(&[odd]);
    assert!(matches!(
        &events[..],
        [ModelEvent::Started {
            response_id: None,
            ..
        }]
    ));
}

#[test]
fn a_fetched_page_is_shown_as_json() {
    for (source, json) in [
        (
            json!({"type": "text", "media_type": "text/plain", "data": "12 degrees, rain.\n"}),
            r#"{"media_type":"text/plain","data":"12 degrees, rain.\n"}"#,
        ),
        (
            json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}),
            r#"{"media_type":"application/pdf","data":"[data]"}"#,
        ),
    ] {
        let page = json!({"type": "web_fetch_result", "url": "https://example.org/a",
                          "content": {"type": "document", "title": "A", "source": source}});
        let block = json!({"type": "web_fetch_tool_result", "tool_use_id": "s", "content": page});
        let (events, end) = of(&[
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_stop"}),
        ]);
        end.unwrap();
        let response = assemble(&events).finish().unwrap();
        let Part::Opaque(shown) = &response.message.parts[0] else {
            panic!("{:?}", response.message.parts);
        };
        let text = format!(
            r#"{{"content":{{"url":"https://example.org/a","content":{{"title":"A","source":{json}}}}}}}"#
        );
        assert_eq!(shown.text, Some(text));
        assert_eq!(shown.provider_state.data, block);
    }
}

#[test]
fn cache_writes_are_counted_from_the_counts_by_lifetime() {
    let start = |usage: Value| json!({"type": "message_start", "message": {"usage": usage}});
    let written = |usage: Value| {
        let (events, end) = of(&[start(usage), json!({"type": "message_stop"})]);
        end.unwrap();
        let usage = assemble(&events).finish().unwrap().usage;
        (usage.input_tokens, usage.cache_write_tokens)
    };
    let split = json!({"ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 200});
    let only = json!({"input_tokens": 8, "cache_creation": split});
    assert_eq!(written(only), (Some(708), Some(700)));
    let both = json!({"input_tokens": 8, "cache_creation_input_tokens": 700,
                      "cache_creation": {"ephemeral_1h_input_tokens": 9}});
    assert_eq!(written(both), (Some(708), Some(700)));
    assert_eq!(written(json!({"input_tokens": 8})), (Some(8), None));
}

/// The input of the only call, and the number of its deltas.
fn restored_input(ending: &[Value]) -> (ToolInput, usize) {
    let schema = json!({"type": "object", "properties": {"größe": {"type": "string"}}});
    let tool = switchboard_domain::ToolDefinition::new("measure", "", schema);
    let request = switchboard_domain::ChatRequest::new([switchboard_domain::Message::user("hi")])
        .with_tools([tool]);
    let model = ModelId::new("anthropic", "claude-haiku-4-5");
    let capabilities = crate::capabilities(&model.name);
    let options = crate::MessagesOptions::default();
    let wire = crate::to_wire(
        &request,
        &model,
        &capabilities,
        &options,
        &ToolSchemas::default(),
    )
    .unwrap();
    let sent = serde_json::to_value(&wire.body).unwrap();
    let names: Vec<_> = sent["tools"][0]["input_schema"]["properties"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(names, ["gr__e"], "the API takes no other letters");
    let mut decoder = decoder().with_tool_mapping(wire.tool_mapping);
    let delta = |json: &str| {
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "input_json_delta", "partial_json": json}})
    };
    let call = json!({"type": "tool_use", "id": "t", "name": "measure", "input": {}});
    let begin = json!({"type": "content_block_start", "index": 0, "content_block": call});
    let mut events = Vec::new();
    let frames = [begin, delta("{\"gr__e\": "), delta("\"5\"")];
    for frame in frames.iter().chain(ending) {
        decoder.frame("", &frame.to_string(), &mut events).unwrap();
    }
    let is_delta = |event: &&ModelEvent| matches!(event, ModelEvent::ToolInputDelta { .. });
    let deltas = events.iter().filter(is_delta).count();
    let response = assemble(&events).finish().unwrap();
    let call = response.message.tool_uses().next().unwrap();
    (call.input.clone(), deltas)
}

#[test]
fn an_input_in_another_shape_is_restored() {
    let whole = [
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "input_json_delta", "partial_json": "}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ];
    let asked_for = ToolInput::parse("{\"größe\": \"5\"}");
    assert_eq!(restored_input(&whole), (asked_for, 1));
    // An incomplete input is malformed and keeps its text.
    let cut_off = [
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
        json!({"type": "message_stop"}),
    ];
    let (input, deltas) = restored_input(&cut_off);
    let ToolInput::Malformed { raw, .. } = input else {
        panic!("{input:?}");
    };
    assert_eq!((raw.as_str(), deltas), ("{\"gr__e\": \"5\"", 1));
}

//! Answers that other libraries handle wrongly and for which no transcript is stored.

use std::sync::Arc;

use switchboard_domain::{ChatResponse, ModelErrorKind, ToolDefinition};
use switchboard_providers_common::schema::Dialect;

use super::{
    tests::{assemble, decoder, inputs, of},
    *,
};

fn start(usage: &Value) -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "usage": usage}})
}

fn begin(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn call(index: u64, id: &str, input: &Value) -> Value {
    begin(
        index,
        &json!({"type": "tool_use", "id": id, "name": "f", "input": input}),
    )
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn arguments(index: u64, json: &str) -> Value {
    delta(
        index,
        &json!({"type": "input_json_delta", "partial_json": json}),
    )
}

fn end(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn stopped(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}})
}

fn last() -> Value {
    json!({"type": "message_stop"})
}

fn read(events: &[Value]) -> ChatResponse {
    let (events, end) = of(events);
    end.unwrap();
    assemble(&events).finish().unwrap()
}

#[test]
fn requests_of_server_tools_are_summed() {
    let asked = |counts: Value| {
        let usage = json!({"input_tokens": 8, "server_tool_use": counts});
        read(&[start(&usage), stopped("end_turn"), last()])
            .usage
            .server_tool_requests
    };
    assert_eq!(
        asked(json!({"web_search_requests": 2, "web_fetch_requests": 3})),
        Some(5)
    );
    assert_eq!(asked(json!({"code_execution_requests": 1})), Some(1));
    assert_eq!(asked(json!({"web_search_requests": 0})), Some(0));
    for unsaid in [
        json!({"web_search_requests": "2", "execution_time_seconds": 9}),
        json!({}),
        json!(null),
        json!([1]),
    ] {
        assert_eq!(asked(unsaid.clone()), None, "{unsaid}");
    }
    let most = json!({"a_requests": u64::MAX, "b_requests": 1});
    assert_eq!(asked(most), Some(u64::MAX));
}

#[test]
fn cache_writes_for_one_hour_are_counted_separately() {
    let written = |usage: Value| {
        let usage = read(&[start(&usage), stopped("end_turn"), last()]).usage;
        (usage.cache_write_tokens, usage.cache_write_long_tokens)
    };
    let split = |five: u64, hour: u64| {
        json!({"cache_creation_input_tokens": five + hour, "cache_creation":
               {"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour}})
    };
    assert_eq!(written(split(100, 200)), (Some(300), Some(200)));
    assert_eq!(written(split(100, 0)), (Some(100), Some(0)));
    let expected = (Some(9), None);
    assert_eq!(written(json!({"cache_creation_input_tokens": 9})), expected);
    // The report has only the counts by cache lifetime, without the total.
    let only = json!({"cache_creation": {"ephemeral_5m_input_tokens": 500,
                                         "ephemeral_1h_input_tokens": 200}});
    assert_eq!(written(only), (Some(700), Some(200)));
    assert_eq!(written(json!({"input_tokens": 8})), (None, None));
}

#[test]
fn case_20_a_call_before_a_refusal_is_not_complete() {
    let stop = json!({"type": "message_delta", "delta": {"stop_reason": "refusal",
                      "stop_details": {"category": "cyber", "explanation": "No."}}});
    let response = read(&[call(0, "toolu_1", &json!({"a": 1})), end(0), stop, last()]);
    assert_eq!(response.finish, FinishReason::Refusal);
    assert_eq!(inputs(&response), [None]);
    assert_eq!(response.message.text(), "No. (policy: cyber)");
}

#[test]
fn an_interrupted_answer_keeps_the_buffered_input_of_a_call() {
    // The optional property is required and nullable in a strict schema, so the decoder buffers
    // the input until it can remove a null.
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut mapping = ToolMapping::default();
    let tool = Arc::new(ToolDefinition::new("f", "", schema));
    mapping.add_tool(&tool, Dialect::AnthropicStrict);
    let mut decoder = decoder().with_tool_mapping(mapping);
    let mut events = Vec::new();
    let input = r#"{"a": "half"#;
    for event in [
        start(&json!({})),
        call(0, "1", &json!({})),
        arguments(0, input),
    ] {
        let frame = event.to_string();
        decoder.decode_frame("", &frame, &mut events).unwrap();
    }
    decoder.emit_buffered_output(&mut events);
    let Some(ModelEvent::ToolInputDelta { json, .. }) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(json, input);
}

#[test]
fn a_call_without_a_name_is_dropped_with_a_warning() {
    let nameless = |index| {
        begin(
            index,
            &json!({"type": "tool_use", "id": "t", "name": " ", "input": {}}),
        )
    };
    let events = [
        start(&json!({})),
        nameless(0),
        arguments(0, "{\"x\":1}"),
        end(0),
        nameless(1),
        stopped("tool_use"),
        last(),
    ];
    let answer = read(&events);
    assert_eq!(answer.message.parts, []);
    assert_eq!(answer.finish, FinishReason::MalformedToolCall);
    assert_eq!(answer.warnings.len(), 1, "{:?}", answer.warnings);
    assert!(answer.warnings[0].message.starts_with("2 call(s)"));

    // The answer also has a valid call.
    let events = [
        start(&json!({})),
        nameless(0),
        end(0),
        call(1, "u", &json!({"x": 1})),
        end(1),
        stopped("tool_use"),
        last(),
    ];
    let answer = read(&events);
    assert_eq!(answer.finish, FinishReason::ToolUse);
    assert_eq!(inputs(&answer), [Some(json!({"x": 1}))]);
    assert_eq!(answer.warnings.len(), 1);
}

/// Fails by a time-out if each call needs a linear search, which would take minutes.
#[test]
fn many_open_calls_take_linear_time() {
    let count = 60_000;
    let mut events = vec![start(&json!({}))];
    for index in 0..count {
        events.push(call(index, &format!("t{index}"), &json!({})));
        events.push(arguments(0, " "));
    }
    let (events, end) = of(&events);
    assert_eq!(end.unwrap_err().kind, ModelErrorKind::Interrupted);
    let started = events
        .iter()
        .filter(|event| matches!(event, ModelEvent::PartStarted { .. }));
    assert_eq!(u64::try_from(started.count()).unwrap(), count);
}

#[test]
fn the_input_of_a_server_tool_call_is_limited() {
    let block = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let long = "x".repeat(MAX_INPUT / 2);
    let read = |pieces: usize| {
        let mut events = vec![
            start(&json!({})),
            begin(0, &block),
            arguments(0, "{\"q\":\""),
        ];
        events.extend((0..pieces).map(|_| arguments(0, &long)));
        events.extend([arguments(0, "\"}"), end(0), stopped("end_turn"), last()]);
        read(&events)
    };
    let answer = read(1);
    assert_eq!((answer.message.parts.len(), answer.warnings.len()), (1, 0));
    let answer = read(5);
    assert_eq!(answer.message.parts, []);
    let kinds: Vec<_> = answer.warnings.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [WarningKind::PartDropped]);
}

#[test]
fn warnings_about_unknown_events_are_limited() {
    let mut events = vec![start(&json!({}))];
    events.extend((0..200).map(|number| json!({ "type": format!("new_{number}") })));
    events.extend([stopped("end_turn"), last()]);
    assert_eq!(read(&events).warnings.len(), MAX_UNEXPECTED);
}

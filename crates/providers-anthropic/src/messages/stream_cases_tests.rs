//! Mapping cases of answers that other libraries handle wrongly and that have no stored transcript.

use switchboard_domain::{
    ChatRequest, ChatResponse, Message, Part, PartStart, Role, ToolDefinition, ToolInput, ToolUse,
};
use switchboard_providers_common::schema::ToolSchemas;

use super::{
    tests::{assemble, inputs, of},
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
fn case_09_deltas_belong_to_the_block_with_their_index() {
    let interleaved = super::tests::answer(include_str!(
        "../../../testkit/transcripts/anthropic/interleaved.sse"
    ));
    let cities = ["Hamburg", "Kiel"].map(|city| Some(json!({"city": city})));
    assert_eq!(inputs(&interleaved), cities);
    // Only the index of a delta decides its block, not the order of the blocks.
    let response = read(&[
        begin(7, &json!({"type": "thinking", "thinking": ""})),
        begin(2, &json!({"type": "text", "text": ""})),
        call(4, "toolu_1", &json!({})),
        begin(
            5,
            &json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        ),
        arguments(4, "{\"a\""),
        arguments(5, "{\"query\""),
        delta(2, &json!({"type": "text_delta", "text": "said"})),
        arguments(4, ":1}"),
        delta(7, &json!({"type": "thinking_delta", "thinking": "thought"})),
        arguments(5, ":\"q\"}"),
        end(5),
        end(7),
        end(4),
        end(2),
        stopped("tool_use"),
        last(),
    ]);
    let [
        Part::Reasoning(thought),
        Part::Text(text),
        Part::ToolUse(_),
        Part::Opaque(search),
    ] = &response.message.parts[..]
    else {
        panic!("{:?}", response.message.parts);
    };
    assert_eq!(
        (thought.text.as_str(), text.text.as_str()),
        ("thought", "said")
    );
    assert_eq!(inputs(&response), [Some(json!({"a": 1}))]);
    assert_eq!(search.provider_state.data["input"], json!({"query": "q"}));
    assert!(response.warnings.is_empty());
}

#[test]
fn case_11_empty_thinking_is_kept_only_with_a_signature() {
    let signature = json!({"type": "signature_delta", "signature": "EqQB"});
    let response = read(&[
        begin(
            0,
            &json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        end(0),
        begin(
            1,
            &json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(1, &signature),
        end(1),
        begin(2, &json!({"type": "text", "text": ""})),
        end(2),
        begin(3, &json!({"type": "text", "text": "42"})),
        end(3),
        stopped("end_turn"),
        last(),
    ]);
    let [Part::Reasoning(thought), Part::Text(_)] = &response.message.parts[..] else {
        panic!("{:?}", response.message.parts);
    };
    let state = thought.provider_state.as_ref().unwrap();
    assert_eq!(
        (thought.text.as_str(), &state.data),
        ("", &json!({"signature": "EqQB"}))
    );
    // It is sent back.
    let request = ChatRequest::new([response.message]);
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
    let body = serde_json::to_value(&wire.body).unwrap();
    let sent = json!([{"type": "thinking", "thinking": "", "signature": "EqQB"},
                      {"type": "text", "text": "42"}]);
    assert_eq!(body["messages"][1]["content"], sent);
}

#[test]
fn case_14_cache_counts_of_message_start_are_kept() {
    let first = json!({
        "input_tokens": 8, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 3000,
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
        "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 2}, "output_tokens": 1,
    });
    let all = Usage {
        input_tokens: Some(3308),
        output_tokens: Some(12),
        cache_read_tokens: Some(3000),
        cache_write_tokens: Some(300),
        cache_write_long_tokens: Some(200),
        reasoning_tokens: None,
        server_tool_requests: Some(3),
    };
    let usage = |later: Value| {
        let mut stop = stopped("end_turn");
        stop["usage"] = later;
        read(&[start(&first), stop, last()]).usage
    };
    assert_eq!(usage(json!({"output_tokens": 12})), all);
    let nulls = json!({
        "output_tokens": 12, "input_tokens": null, "cache_creation_input_tokens": null,
        "cache_read_input_tokens": null, "cache_creation": null, "server_tool_use": null,
    });
    assert_eq!(usage(nulls), all);
    // Its counts are cumulative.
    let more = json!({
        "output_tokens": 12, "cache_read_input_tokens": 3500,
        "server_tool_use": {"web_search_requests": 4, "web_fetch_requests": 2},
    });
    let expected = Usage {
        input_tokens: Some(3808),
        cache_read_tokens: Some(3500),
        server_tool_requests: Some(6),
        ..all
    };
    assert_eq!(usage(more), expected);
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
    assert_eq!(
        written(json!({"cache_creation_input_tokens": 9})),
        (Some(9), None)
    );
}

#[test]
fn case_16_an_alias_is_replaced_by_the_declared_name() {
    let tools = ["a/b", "a_b"].map(|name| ToolDefinition::new(name, "", json!({"type": "object"})));
    let call = ToolUse::new("t", "a/b", ToolInput::parse(""));
    let request = ChatRequest::new([
        Message::user("?"),
        Message::new(Role::Assistant, [Part::ToolUse(call)]),
    ])
    .with_tools(tools);
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
    let body = serde_json::to_value(&wire.body).unwrap();
    let sent = body["tools"][0]["name"].clone();
    assert_eq!(sent, "a_b_c14cddc0");
    assert_eq!(body["messages"][1]["content"][0]["name"], sent);
    let mut decoder = super::tests::decoder().with_tool_mapping(wire.tool_mapping);
    let mut events = Vec::new();
    for (index, name) in [(0, sent), (1, json!("a_b")), (2, json!("made_up"))] {
        let call = json!({"type": "tool_use", "id": "", "name": name, "input": {}});
        for frame in [begin(index, &call), end(index)] {
            decoder.frame("", &frame.to_string(), &mut events).unwrap();
        }
    }
    for frame in [stopped("tool_use"), last()] {
        decoder.frame("", &frame.to_string(), &mut events).unwrap();
    }
    let response = assemble(&events).finish().unwrap();
    let names: Vec<_> = response.message.tool_uses().map(|it| &*it.name).collect();
    assert_eq!(names, ["a/b", "a_b", "made_up"]);
}

#[test]
fn case_17_a_call_overrides_the_stop_reason() {
    for reason in ["end_turn", "stop_sequence"] {
        let events = [
            call(0, "toolu_1", &json!({"a": 1})),
            end(0),
            stopped(reason),
            last(),
        ];
        let response = read(&events);
        assert_eq!(response.finish, FinishReason::ToolUse, "{reason}");
        assert_eq!(response.finish_raw.as_deref(), Some(reason));
        assert_eq!(inputs(&response), [Some(json!({"a": 1}))]);
    }
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
fn case_21_usage_may_come_after_the_reason() {
    let only = json!({"type": "message_delta", "usage": {"output_tokens": 9}});
    let text = begin(0, &json!({"type": "text", "text": "Hi."}));
    let response = read(&[text, end(0), stopped("end_turn"), only, last()]);
    assert_eq!(response.finish, FinishReason::Stop);
    assert_eq!(response.usage.output_tokens, Some(9));
    assert_eq!(response.usage.input_tokens, None, "absent is not zero");
}

#[test]
fn case_26_missing_arguments_are_an_empty_input() {
    for input in [json!({}), json!(null), json!(""), json!(" ")] {
        let response = read(&[
            call(0, "toolu_1", &input),
            end(0),
            stopped("tool_use"),
            last(),
        ]);
        assert_eq!(inputs(&response), [Some(json!({}))], "{input}");
    }
    for json in ["", "null", "\"\"", "{}", " "] {
        let events = [
            call(0, "toolu_1", &json!({})),
            arguments(0, json),
            end(0),
            stopped("tool_use"),
            last(),
        ];
        assert_eq!(inputs(&read(&events)), [Some(json!({}))], "{json:?}");
    }
}

#[test]
fn case_27_a_call_that_ends_with_the_message_is_kept() {
    // Without `content_block_stop` the stop reason shows that the call is complete.
    let response = read(&[
        call(0, "toolu_1", &json!({})),
        arguments(0, "{\"a\":1}"),
        stopped("tool_use"),
        last(),
    ]);
    assert_eq!(response.finish, FinishReason::ToolUse);
    assert_eq!(inputs(&response), [Some(json!({"a": 1}))]);
    // The whole call is in `message_start`.
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}});
    let head =
        json!({"type": "message_start", "message": {"content": [call], "stop_reason": "tool_use"}});
    let (events, end) = of(&[head, last()]);
    end.unwrap();
    let begun = |event: &&ModelEvent| {
        matches!(
            event,
            ModelEvent::PartStarted {
                part: PartStart::ToolUse { .. },
                ..
            }
        )
    };
    assert_eq!(events.iter().filter(begun).count(), 1);
    let response = assemble(&events).finish().unwrap();
    assert_eq!(inputs(&response), [Some(json!({"a": 1}))]);
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

    // Another call is valid.
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

/// A linear search per call would take minutes.
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

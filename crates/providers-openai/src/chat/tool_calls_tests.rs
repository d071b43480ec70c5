use serde_json::json;
use switchboard_domain::{ChatResponse, FinishReason, ToolChoiceOutcome, ToolInput};
use switchboard_providers_common::assemble_response;

use super::*;

fn no_events() -> AnswerEvents {
    AnswerEvents::new(ToolChoiceOutcome::Native, Vec::new())
}

fn model() -> ModelId {
    ModelId::new("acme", "acme-1")
}

/// Returns the answer for chunks of `tool_calls`.
fn read(chunks: &Value, is_incomplete: bool) -> ChatResponse {
    let mut calls = CallAssembler::new(model(), ToolUseIds::default());
    let (mut events, mut answer) = (Vec::new(), no_events());
    for (number, chunk) in (1..).zip(chunks.as_array().unwrap()) {
        for delta in chunk.as_array().unwrap() {
            let delta = serde_json::from_value(delta.clone()).unwrap();
            calls.add_call_piece(&delta, number, &mut answer, &mut events);
        }
    }
    calls.finish_calls(is_incomplete, &mut events);
    let reason = FinishReason::ToolUse;
    events.push(ModelEvent::Finished { reason, raw: None });
    collect(&events)
}

fn collect(events: &[ModelEvent]) -> ChatResponse {
    assemble_response("acme", events).unwrap()
}

#[test]
fn pieces_are_assigned_to_calls() {
    let cases = json!([
        // Calls with the same id are different calls.
        [[[{"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}},
           {"index": 1, "id": "x", "function": {"name": "f", "arguments": "{\"a\":1}"}}]],
         [["x", "f", {}], ["call_local_1", "f", {"a": 1}]]],
        // Pieces with a new id in every chunk belong to one call.
        [[[{"index": 0, "id": "r1", "function": {"name": "f", "arguments": "{\"x\""}}],
          [{"index": 0, "id": "r2", "function": {"arguments": ":1"}}],
          [{"index": 0, "id": "r3", "function": {"name": "f", "arguments": "}"}}],
          [{"index": 0, "id": "r4", "function": {"arguments": ""}}]],
         [["r1", "f", {"x": 1}]]],
        // A call that is repeated at the end is one call.
        [[[{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}],
          [{"index": 0, "function": {"arguments": "1}"}}],
          [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}}]],
         [["a", "f", {"x": 1}]]],
        // Without an index, the current call continues.
        [[[{"id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}],
          [{"function": {"arguments": "1}"}}],
          [{"id": "b", "function": {"name": "f", "arguments": "{}"}}]],
         [["a", "f", {"x": 1}], ["b", "f", {}]]],
        // Without index and id, the entries of one chunk are different calls.
        [[[{"function": {"name": "f", "arguments": {}}},
           {"function": {"name": "f", "arguments": null}},
           {"function": {"name": "g"}}]],
         [["call_local_1", "f", {}], ["call_local_2", "f", {}], ["call_local_3", "g", {}]]],
        // The arguments may be an object or malformed.
        [[[{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"z": 1, "a": [2]}}},
           {"index": 1, "id": "b", "function": {"name": "f", "arguments": [1]}}]],
         [["a", "f", {"z": 1, "a": [2]}], ["b", "f", "[1]"]]],
        // Arguments before the name are kept.
        [[[{"index": 0, "id": "a"}],
          [{"index": 0, "function": {"arguments": "{\"x\":"}}],
          [{"index": 0, "function": {"name": "f", "arguments": "1}"}}]],
         [["a", "f", {"x": 1}]]],
        // Text after a complete input makes it malformed.
        [[[{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":\"}\\\"{\"}"}}],
          [{"index": 0, "function": {"arguments": " and then"}}]],
         [["a", "f", "{\"x\":\"}\\\"{\"} and then"]]],
    ]);
    for case in cases.as_array().unwrap() {
        let answer = read(&case[0], false);
        let calls = answer.message.tool_uses().map(|it| {
            let input = match &it.input {
                ToolInput::Object(object) => json!(object),
                ToolInput::Malformed { raw, .. } => json!(raw),
            };
            json!([it.id, it.name, input])
        });
        assert_eq!(calls.collect::<Value>(), case[1], "{}", case[0]);
    }
}

#[test]
fn fields_that_a_server_requires_back_are_stored_with_the_call() {
    let signed = json!({"google": {"thought_signature": "sig"}});
    for chunks in [
        json!([{"index": 0, "id": "a", "extra_content": signed, "function": {"name": "f"}}]),
        // The signature arrives before the name and after it.
        json!([
            {"index": 0, "id": "a", "extra_content": signed},
            {"index": 0, "function": {"name": "f"}},
        ]),
        json!([
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
            {"index": 0, "extra_content": signed, "provider_specific_fields": null},
        ]),
    ] {
        let chunks: Vec<Value> = chunks
            .as_array()
            .unwrap()
            .iter()
            .map(|it| json!([it]))
            .collect();
        let response = read(&json!(chunks), false);
        let tool_use = response.message.tool_uses().next().unwrap();
        let state = tool_use.provider_state.as_ref().unwrap();
        assert_eq!(
            state.data_for_model(&model()),
            Some(&json!({"extra_content": signed}))
        );
    }
}

/// Returns an answer with this many bytes of arguments before the name. `named` selects whether the
/// name follows.
fn nameless_at_first(bytes: usize, named: bool) -> ChatResponse {
    let mut decoder = super::super::ChatDecoder::new(
        model(),
        switchboard_domain::ToolChoiceOutcome::Native,
        Vec::new(),
        ToolUseIds::default(),
    );
    let mut events = Vec::new();
    let mut feed = |function: Value, reason: Option<&str>| {
        let delta = json!({"tool_calls": [{"index": 0, "id": "a", "function": function}]});
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        let chunk = json!({"id": "c", "choices": [choice]}).to_string();
        switchboard_providers_common::WireDecoder::decode_frame(
            &mut decoder,
            "",
            &chunk,
            &mut events,
        )
        .unwrap();
    };
    // The arguments are `{}` and blanks, so a truncated copy would still be a valid object.
    let arguments = format!("{{}}{}", " ".repeat(bytes - 2));
    let piece = MAX_INPUT / 4 + 1;
    for piece in arguments.as_bytes().chunks(piece) {
        feed(
            json!({"arguments": std::str::from_utf8(piece).unwrap()}),
            None,
        );
    }
    let name = if named { json!("f") } else { Value::Null };
    feed(json!({"name": name}), Some("tool_calls"));
    switchboard_providers_common::WireDecoder::finish_decoding(&mut decoder, &mut events).unwrap();
    collect(&events)
}

#[test]
fn arguments_before_the_name_are_kept_up_to_the_input_limit() {
    let answer = nameless_at_first(MAX_INPUT, true);
    let input = &answer.message.tool_uses().next().unwrap().input;
    assert!(
        matches!(input, ToolInput::Object(_)),
        "the most that an input may have"
    );
    for bytes in [MAX_INPUT + 1, 2 * MAX_INPUT] {
        let answer = nameless_at_first(bytes, true);
        let input = &answer.message.tool_uses().next().unwrap().input;
        let ToolInput::Malformed { raw, reason } = input else {
            panic!("{bytes} bytes are an input");
        };
        assert_eq!(reason, &format!("longer than {MAX_INPUT} bytes"));
        assert_eq!(raw.len(), MAX_INPUT);
    }
    let answer = nameless_at_first(2 * MAX_INPUT, false);
    assert_eq!(answer.finish, FinishReason::MalformedToolCall);
    assert_eq!(answer.warnings.len(), 1);
}

#[test]
fn early_arguments_are_kept_up_to_one_character_over_the_limit() {
    let mut call = AssembledCall::default();
    call.buffer_early_arguments(&"a".repeat(MAX_INPUT - 1));
    for piece in ["é", "é", "é"] {
        call.buffer_early_arguments(piece);
    }
    assert_eq!(call.early_arguments.len(), MAX_INPUT + 1);
    assert!(call.early_arguments.ends_with("aé"));
}

#[test]
fn a_call_without_input_is_incomplete_at_the_output_limit() {
    let deltas = json!([
        [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}},
         {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}},
         {"index": 2, "id": "c", "function": {"name": "h", "arguments": ""}}],
        [{"index": 2, "function": {"arguments": "{\"city\":\"Ki"}}],
    ]);
    for (cut_off, expected) in [(true, [false, true, false]), (false, [true, true, false])] {
        let response = read(&deltas, cut_off);
        let whole: Vec<bool> = response
            .message
            .tool_uses()
            .map(|it| it.input.as_object().is_some())
            .collect();
        assert_eq!(whole, expected, "cut off: {cut_off}");
    }
}

/// Fails by a time-out if each call needs a search through all calls, which would take minutes.
#[test]
fn many_calls_take_linear_time() {
    let count = 60_000_u64;
    let mut calls = CallAssembler::new(model(), ToolUseIds::default());
    let (mut events, mut answer) = (Vec::new(), no_events());
    for index in 0..count {
        let deltas = [
            json!({"index": index, "id": "t", "function": {"name": "f", "arguments": ""}}),
            json!({"index": 0, "function": {"arguments": " "}}),
        ];
        for delta in deltas {
            let delta = serde_json::from_value(delta).unwrap();
            calls.add_call_piece(&delta, index, &mut answer, &mut events);
        }
    }
    let is_start = |event: &&ModelEvent| matches!(event, ModelEvent::PartStarted { .. });
    let started = events.iter().filter(is_start).count();
    assert_eq!(started as u64, count);
}

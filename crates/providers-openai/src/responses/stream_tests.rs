use std::sync::Arc;

use serde_json::json;
use switchboard_domain::{ChatResponse, Part, ToolDefinition, ToolInput, WarningKind};
use switchboard_providers_common::{assemble_response, schema::Dialect};

use super::*;

fn decoder() -> ResponsesDecoder {
    ResponsesDecoder::new(
        ModelId::new("openai", "m"),
        ToolChoiceOutcome::Native,
        vec![Warning::new(WarningKind::OptionDropped, "w")],
        ToolUseIds::default(),
    )
}

/// Returns a mapping in which the answer and the input of tool `f` have another shape.
fn tool_mapping() -> ToolMapping {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut mapping = ToolMapping::default();
    mapping.set_answer_schema(&schema, Dialect::OpenAiStrict);
    let tool = Arc::new(ToolDefinition::new("f", "", schema));
    mapping.add_tool(&tool, Dialect::OpenAiStrict);
    mapping
}

fn run(frames: &[Value]) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    run_with(decoder(), frames)
}

fn run_with(
    mut decoder: ResponsesDecoder,
    frames: &[Value],
) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let mut events = Vec::new();
    for frame in frames {
        let name = frame["type"].as_str().unwrap_or_default().to_owned();
        if let Err(error) = decoder.decode_frame(&name, &frame.to_string(), &mut events) {
            return (events, Err(error));
        }
    }
    let end = decoder.finish_decoding(&mut events);
    (events, end)
}

fn answer(frames: &[Value]) -> ChatResponse {
    let (events, end) = run(frames);
    end.unwrap();
    assemble_response("openai", &events).unwrap()
}

fn error(frames: &[Value]) -> ModelError {
    run(frames).1.unwrap_err()
}

fn done(item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": 0, "item": item})
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"id": "r", "status": "completed"}})
}

#[test]
fn streamed_content_is_not_repeated_by_the_final_item() {
    let at = |kind: &str, fields: Value| {
        let mut event =
            json!({"type": kind, "item_id": "m1", "output_index": 0, "content_index": 0});
        event
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        event
    };
    let item =
        json!({"type": "message", "id": "m1", "content": [{"type": "output_text", "text": "ab"}]});
    let frames = [
        at("response.output_text.delta", json!({"delta": "a"})),
        at("response.output_text.delta", json!({"delta": "b"})),
        at("response.output_text.done", json!({"text": "ab"})),
        done(&item),
        // Some servers send an item twice, or repeat its text.
        done(&item),
        at("response.output_text.done", json!({"text": "ab"})),
        completed(),
    ];
    assert_eq!(answer(&frames).message.text(), "ab");
}

#[test]
fn summaries_and_thinking_are_paragraphs() {
    let think = |kind: &str, field: &str, index: u64, text: &str| json!({"type": kind, "item_id": "rs", "output_index": 0, field: index, "delta": text});
    let summary = "response.reasoning_summary_text.delta";
    let frames = [
        think(summary, "summary_index", 0, "a"),
        think(summary, "summary_index", 0, "b"),
        think(summary, "summary_index", 1, "c"),
        think("response.reasoning_text.delta", "content_index", 0, "d"),
        completed(),
    ];
    let response = answer(&frames);
    let Part::Reasoning(reasoning) = &response.message.parts[0] else {
        panic!("{response:?}");
    };
    assert_eq!(reasoning.text, "ab\n\nc\n\nd");
    assert_eq!(reasoning.provider_state, None, "nothing that could go back");
}

#[test]
fn a_call_id_that_is_taken_or_missing_is_replaced() {
    let call = |id: &Value, index: u64| {
        json!({"type": "response.output_item.done", "output_index": index, "item": {
            "type": "function_call", "call_id": id, "name": "f", "arguments": "{}", "status": "completed",
        }})
    };
    let same = json!("call_1");
    let frames = [
        call(&same, 0),
        call(&same, 1),
        call(&Value::Null, 2),
        completed(),
    ];
    let response = answer(&frames);
    let ids: Vec<_> = response
        .message
        .tool_uses()
        .map(|it| it.id.as_str())
        .collect();
    assert_eq!(ids, ["call_1", "call_local_1", "call_local_2"]);
    assert_eq!(response.finish, FinishReason::ToolUse);
}

#[test]
fn an_interrupted_call_is_malformed_even_if_it_parses() {
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": {
        "type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "",
    }});
    let delta =
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"});
    let end = |reason: &str| {
        json!({"type": "response.incomplete", "response": {
            "status": "incomplete", "incomplete_details": {"reason": reason},
        }})
    };
    for (reason, finish) in [
        ("max_output_tokens", FinishReason::Length),
        ("content_filter", FinishReason::ContentFilter),
        ("max_messages", FinishReason::Other("max_messages".into())),
    ] {
        let response = answer(&[added.clone(), delta.clone(), end(reason)]);
        assert_eq!(response.finish, finish);
        assert_eq!(response.finish_raw.as_deref(), Some(reason));
        let call = response.message.tool_uses().next().unwrap();
        assert!(
            matches!(call.input, ToolInput::Malformed { .. }),
            "{call:?}"
        );
    }
    // In a complete answer, an item without `output_item.done` is complete too.
    let whole = answer(&[added, delta, completed()]);
    assert!(
        whole
            .message
            .tool_uses()
            .next()
            .unwrap()
            .input
            .as_object()
            .is_some()
    );
}

#[test]
fn the_status_of_the_answer_overrides_the_name_of_the_event() {
    let odd = json!({"type": "response.completed", "response": {
        "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
    }});
    assert_eq!(answer(&[odd]).finish, FinishReason::Length);
    let failed = json!({"type": "response.completed", "response": {
        "status": "failed", "error": {"code": "server_error", "message": "m"},
    }});
    assert!(matches!(
        error(&[failed]).kind,
        ModelErrorKind::Overloaded { .. }
    ));
}

#[test]
fn the_token_count_reveals_an_unreported_output_limit() {
    let read = |limit: Option<u32>, written: u64| {
        let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
        let body =
            json!({"status": "completed", "output": [call], "usage": {"output_tokens": written}});
        let decoder = decoder().with_unreported_token_limit(limit);
        let events = decoder.read_body(&body.to_string()).unwrap();
        let answer = assemble_response("p", &events).unwrap();
        let call = answer.message.tool_uses().next().unwrap();
        (answer.finish.clone(), call.input.as_object().is_some())
    };
    assert_eq!(read(Some(60), 60), (FinishReason::Length, false));
    assert_eq!(read(Some(60), 59), (FinishReason::ToolUse, true));
    assert_eq!(read(None, 60), (FinishReason::ToolUse, true));
}

#[test]
fn failures_are_classified() {
    let failed = |code: &str| {
        error(&[json!({"type": "response.failed", "response": {
            "status": "failed", "error": {"code": code, "message": "m"},
        }})])
    };
    for (code, kind) in [
        (
            "rate_limit_exceeded",
            ModelErrorKind::RateLimited { retry_after: None },
        ),
        (
            "invalid_prompt",
            ModelErrorKind::InvalidRequest { field: None },
        ),
        (
            "image_too_large",
            ModelErrorKind::InvalidRequest { field: None },
        ),
        (
            "invalid_base64_image",
            ModelErrorKind::InvalidRequest { field: None },
        ),
        (
            "image_content_policy_violation",
            ModelErrorKind::ContentFilter,
        ),
        ("bio_policy", ModelErrorKind::ContentFilter),
        ("insufficient_quota", ModelErrorKind::QuotaExhausted),
        ("something_new", ModelErrorKind::Interrupted),
    ] {
        let error = failed(code);
        assert_eq!((error.kind, code), (kind, code));
    }
    let flat =
        json!({"type": "error", "code": "context_length_exceeded", "message": "m", "param": null});
    assert_eq!(error(&[flat]).kind, ModelErrorKind::ContextOverflow);
    let untyped = json!({"error": {"message": "m", "code": "invalid_api_key"}});
    assert_eq!(error(&[untyped]).kind, ModelErrorKind::Authentication);
    let cancelled = json!({"type": "response.cancelled", "response": {"status": "cancelled"}});
    assert_eq!(error(&[cancelled]).kind, ModelErrorKind::Interrupted);
}

#[test]
fn frames_that_are_no_objects_are_errors() {
    for (data, kind) in [
        ("3", ModelErrorKind::Protocol),
        ("{\"type\":", ModelErrorKind::Protocol),
        ("[1]", ModelErrorKind::Protocol),
        (
            "[{\"error\":{\"code\":\"server_error\"}}]",
            ModelErrorKind::Overloaded { retry_after: None },
        ),
    ] {
        let error = decoder()
            .decode_frame("", data, &mut Vec::new())
            .unwrap_err();
        assert_eq!(error.kind, kind, "{data}");
    }
}

#[test]
fn nothing_counts_after_the_end() {
    let (mut decoder, mut events) = (decoder(), Vec::new());
    decoder
        .decode_frame("", &completed().to_string(), &mut events)
        .unwrap();
    let count = events.len();
    for data in ["[DONE]", "{\"type\":\"error\"}", "no json"] {
        decoder.decode_frame("", data, &mut events).unwrap();
    }
    decoder.finish_decoding(&mut events).unwrap();
    assert_eq!(events.len(), count);
}

/// Properties of every input.
mod laws {
    use proptest::prelude::*;

    use super::*;

    fn any_item() -> impl Strategy<Value = Value> {
        let kind = prop::sample::select(vec![
            "message",
            "reasoning",
            "function_call",
            "web_search_call",
            "",
        ]);
        let id = prop_oneof![Just(json!(null)), Just(json!("a")), Just(json!("b"))];
        let name = prop_oneof![Just(json!(null)), Just(json!("f"))];
        let status = prop_oneof![
            Just(json!(null)),
            Just(json!("completed")),
            Just(json!("incomplete"))
        ];
        let arguments = prop_oneof![
            Just(json!("{}")),
            Just(json!("{\"x\"")),
            Just(json!({"x": 1}))
        ];
        let content = prop_oneof![
            Just(json!([])),
            Just(json!([{"type": "output_text", "text": "t"}])),
            Just(
                json!([{"type": "refusal", "refusal": "r"}, {"type": "output_text", "text": "t"}])
            ),
            Just(json!("odd")),
        ];
        (kind, id.clone(), id, name, status, arguments, content).prop_map(
            |(kind, id, call_id, name, status, arguments, content)| {
                json!({"type": kind, "id": id, "call_id": call_id, "name": name, "status": status,
                       "arguments": arguments, "content": content, "summary": content,
                       "encrypted_content": "e"})
            },
        )
    }

    fn any_event() -> impl Strategy<Value = Value> {
        let kind = prop::sample::select(vec![
            "response.created",
            "response.output_item.added",
            "response.output_item.done",
            "response.content_part.done",
            "response.output_text.delta",
            "response.output_text.done",
            "response.refusal.delta",
            "response.refusal.done",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_text.delta",
            "response.reasoning_text.done",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.hologram.delta",
        ]);
        let id = prop_oneof![Just(json!(null)), Just(json!("a")), Just(json!("b"))];
        let index = prop_oneof![Just(json!(null)), (0..3_u32).prop_map(|it| json!(it))];
        let text = prop_oneof![Just(""), Just("t"), Just("{}")];
        (kind, any_item(), id, index.clone(), index, text).prop_map(
            |(kind, item, id, output, content, text)| {
                // Only events about items have the field `item`.
                let item = kind.contains("output_item").then_some(item);
                let response = (kind == "response.created").then(|| json!({"id": "r"}));
                json!({"type": kind, "item": item, "item_id": id, "output_index": output,
                       "content_index": content, "summary_index": content, "delta": text,
                       "text": text, "refusal": text, "arguments": text, "response": response})
            },
        )
    }

    fn any_end() -> impl Strategy<Value = Value> {
        let status = prop::sample::select(vec!["completed", "incomplete"]);
        (status, prop::collection::vec(any_item(), 0..3)).prop_map(|(status, output)| {
            json!({"type": format!("response.{status}"), "response": {
                "status": status, "output": output,
                "incomplete_details": {"reason": "max_output_tokens"},
            }})
        })
    }

    proptest! {
        #[test]
        fn any_order_of_events_gives_a_valid_event_sequence(
            mut frames in prop::collection::vec(any_event(), 0..14),
            end in any_end(),
            restores in any::<bool>(),
        ) {
            frames.push(end);
            let mapping = if restores { tool_mapping() } else { ToolMapping::default() };
            let (events, outcome) = run_with(decoder().with_tool_mapping(mapping), &frames);
            prop_assert!(outcome.is_ok());
            let response = assemble_response("openai", &events).unwrap();
            let mut ids: Vec<_> = response.message.tool_uses().map(|it| it.id.clone()).collect();
            let count = ids.len();
            ids.sort();
            ids.dedup();
            prop_assert_eq!(ids.len(), count, "ids are unique");
        }

        #[test]
        fn any_text_is_read_without_a_panic(
            name in ".{0,8}",
            frames in prop::collection::vec(".{0,40}", 0..4),
        ) {
            let (mut decoder, mut events) = (decoder(), Vec::new());
            for frame in frames {
                let _ = decoder.decode_frame(&name, &frame, &mut events);
            }
            let _ = decoder.finish_decoding(&mut events);
        }
    }
}

/// Fails by a time-out if each call needs a search through all calls, which would take minutes.
#[test]
fn many_calls_take_linear_time() {
    let count = 30_000;
    let mut decoder = decoder();
    let mut events = Vec::new();
    let mut send = |frame: Value| {
        let name = frame["type"].as_str().unwrap().to_owned();
        decoder
            .decode_frame(&name, &frame.to_string(), &mut events)
            .unwrap();
    };
    for index in 0..count {
        let item = json!({"type": "function_call", "id": format!("fc{index}"), "call_id": "t",
                          "name": "f", "arguments": ""});
        send(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        send(
            json!({"type": "response.function_call_arguments.delta", "item_id": "fc0",
                    "output_index": 0, "delta": " "}),
        );
        // Every second call ends without a status, so it may be incomplete.
        if index % 2 == 1 {
            send(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
        }
    }
    let started = |event: &&ModelEvent| matches!(event, ModelEvent::PartStarted { .. });
    assert_eq!(events.iter().filter(started).count(), count);
}

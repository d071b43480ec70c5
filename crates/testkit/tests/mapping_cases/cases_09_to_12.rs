//! Interleaved pieces, empty pieces, and reasoning.

use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, FinishReason, Message, ModelErrorKind, Part, ProviderState, Reasoning, Role,
    ToolInput, WarningKind,
};
use switchboard_testkit::fake::{Answer, FakeModel};

use crate::{
    answers::{End, Said, candidate, chunk, data, named},
    calls, nothing, question,
    wires::{WIRES, Wire},
};

/// Returns two calls of Anthropic with interleaved pieces.
fn interleaved_blocks() -> String {
    let start = |index: u32, id: &str| {
        let block = json!({"type": "tool_use", "id": id, "name": "get_weather", "input": {}});
        json!({"type": "content_block_start", "index": index, "content_block": block})
    };
    let delta = |index: u32, json: &str| {
        let delta = json!({"type": "input_json_delta", "partial_json": json});
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    };
    let stop = |index: u32| json!({"type": "content_block_stop", "index": index});
    named(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "content": []}}),
        start(0, "call_0"),
        start(1, "call_1"),
        delta(1, r#"{"city":"#),
        delta(0, r#"{"city":"Ki"#),
        delta(1, r#""Bremen"}"#),
        stop(1),
        delta(0, r#"el"}"#),
        stop(0),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ])
}

/// Returns two calls of the Responses API with interleaved pieces, distinguished by `output_index`.
fn interleaved_items() -> String {
    let item = |index: u32, arguments: &str| {
        json!({"type": "function_call", "id": format!("fc_{index}"), "name": "get_weather",
               "call_id": format!("call_{index}"), "arguments": arguments})
    };
    let about = |kind: &str, index: u32, field: &str, value: Value| {
        let mut event = json!({"type": kind, "output_index": index});
        event["item_id"] = json!(format!("fc_{index}"));
        event[field] = value;
        event
    };
    let added = |index| about("response.output_item.added", index, "item", item(index, ""));
    let delta = |index, json: &str| {
        about(
            "response.function_call_arguments.delta",
            index,
            "delta",
            json!(json),
        )
    };
    let done = |index, json: &str| {
        about(
            "response.output_item.done",
            index,
            "item",
            item(index, json),
        )
    };
    named(&[
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        added(0),
        added(1),
        delta(1, r#"{"city":"#),
        delta(0, r#"{"city":"Ki"#),
        delta(1, r#""Bremen"}"#),
        done(1, r#"{"city":"Bremen"}"#),
        delta(0, r#"el"}"#),
        done(0, r#"{"city":"Kiel"}"#),
        json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
    ])
}

/// Returns two calls of Chat Completions with interleaved pieces, distinguished by the index of the
/// call.
fn interleaved_deltas() -> String {
    let begin = |index: u32| {
        let function = json!({"name": "get_weather", "arguments": ""});
        let call = json!({"index": index, "id": format!("call_{index}"), "function": function});
        chunk(&json!({"tool_calls": [call]}), None)
    };
    let delta = |index: u32, json: &str| {
        let call = json!({"index": index, "function": {"arguments": json}});
        chunk(&json!({"tool_calls": [call]}), None)
    };
    data(&[
        begin(0),
        begin(1),
        delta(1, r#"{"city":"#),
        delta(0, r#"{"city":"Ki"#),
        delta(1, r#""Bremen"}"#),
        delta(0, r#"el"}"#),
        chunk(&json!({}), Some("tool_calls")),
    ])
}

#[test]
fn case_09_pieces_belong_to_the_index_of_their_event() {
    for (wire, text) in [
        (Wire::Anthropic, interleaved_blocks()),
        (Wire::Responses, interleaved_items()),
        (Wire::Chat, interleaved_deltas()),
    ] {
        let answer = wire.read_whole(&question(), &text);
        let found: Vec<_> = calls(&answer)
            .iter()
            .map(|call| (call.id.as_str(), call.input.clone()))
            .collect();
        let city = |city: &str| ToolInput::from_json(json!({"city": city}));
        let expected = [("call_0", city("Kiel")), ("call_1", city("Bremen"))];
        assert_eq!(found, expected, "{wire:?}");
    }
}

#[test]
fn case_10_a_call_without_arguments_has_an_empty_object() {
    // Anthropic begins every call with `input: {}`, and sends no input for a call without
    // arguments.
    let silent = named(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "content": []}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {
            "type": "tool_use", "id": "call_1", "name": "list_cities", "input": {}}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ]);
    let part = json!({"functionCall": {"name": "list_cities"}});
    let bare = data(&[candidate(&json!([part]), Some("STOP"))]);
    let said = [Said::Call("call_1", "list_cities", "{}")];
    let usual = WIRES.map(|wire| (wire, wire.answer(&said, End::Complete)));
    let odd = [(Wire::Anthropic, silent), (Wire::Gemini, bare)];
    for (wire, text) in usual.into_iter().chain(odd) {
        let answer = wire.read_whole(&question(), &text);
        assert_eq!(calls(&answer)[0].input, nothing(), "{wire:?}: {text}");
        assert_eq!(answer.finish, FinishReason::ToolUse, "{wire:?}");
    }
}

#[test]
fn case_11_empty_thinking_is_kept_if_it_is_signed_and_empty_text_never() {
    let block = |index: u32, block: Value, signature: Option<&str>| {
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        let delta = signature.map(|signature| {
            let delta = json!({"type": "signature_delta", "signature": signature});
            json!({"type": "content_block_delta", "index": index, "delta": delta})
        });
        let stop = json!({"type": "content_block_stop", "index": index});
        [Some(start), delta, Some(stop)].into_iter().flatten()
    };
    let thinking = || json!({"type": "thinking", "thinking": "", "signature": ""});
    let text = || json!({"type": "text", "text": ""});
    let mut events = vec![json!({"type": "message_start", "message": {"id": "msg_1"}})];
    events.extend(block(0, thinking(), Some("EqQBCgIYAhIM")));
    events.extend(block(1, thinking(), None));
    events.extend(block(2, text(), None));
    let call = json!({"type": "tool_use", "id": "call_1", "name": "list_cities", "input": {}});
    events.extend(block(3, call.clone(), None));
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
    events.push(json!({"type": "message_stop"}));
    let answer = Wire::Anthropic.read_whole(&question(), &named(&events));
    assert_eq!(answer.message.parts.len(), 2, "{:?}", answer.message.parts);

    let sent = Wire::Anthropic.send(&crate::go_on(&question(), &answer));
    let kept = json!({"type": "thinking", "thinking": "", "signature": "EqQBCgIYAhIM"});
    assert_eq!(
        sent.unwrap().body["messages"][1]["content"],
        json!([kept, call])
    );

    // Empty parts of a history from another provider are omitted too.
    for wire in WIRES {
        let unsigned = Part::Reasoning(Reasoning {
            text: String::new(),
            provider_state: None,
        });
        let said = [Part::text(""), unsigned, Part::text("Yes.")];
        let request = ChatRequest::new([
            Message::user("Are you there?"),
            Message::new(Role::Assistant, said),
            Message::user("Good."),
        ]);
        let body = wire.send(&request).unwrap().body.to_string();
        assert!(!body.contains("thinking\""), "{wire:?}: {body}");
        assert!(!body.contains(r#""text":"""#), "{wire:?}: {body}");
    }

    // On Gemini, an empty thought without a signature is omitted too.
    let thought = json!({"text": "", "thought": true, "thoughtSignature": "CpQBAdHtim"});
    let empty = json!({"text": "", "thought": true});
    for (part, expected) in [(thought, 2), (empty, 1)] {
        let text = data(&[
            candidate(&json!([part]), None),
            candidate(&json!([{"text": "Yes."}]), Some("STOP")),
        ]);
        let answer = Wire::Gemini.read_whole(&question(), &text);
        assert_eq!(answer.message.parts.len(), expected, "{part}");
    }
}

/// Returns a conversation with reasoning that the wire's model created.
fn with_a_thought(wire: Wire) -> ChatRequest {
    let state = match wire {
        Wire::Anthropic => json!({"signature": "SIGNED"}),
        Wire::Gemini => json!({"thoughtSignature": "SIGNED"}),
        _ => {
            json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
                    "encrypted_content": "SIGNED"})
        }
    };
    let thought = Part::Reasoning(Reasoning {
        text: "hm".into(),
        provider_state: Some(ProviderState::new_for_model(&wire.model(), state)),
    });
    ChatRequest::new([
        Message::user("1"),
        Message::new(Role::Assistant, [thought, Part::text("2")]),
        Message::user("3"),
    ])
}

#[tokio::test]
async fn case_12_thinking_bound_to_another_conversation_is_left_out_and_asked_again_once() {
    for (wire, message) in [
        (
            Wire::Anthropic,
            "messages.1.content.0: thinking block is bound to a different conversation",
        ),
        (Wire::Gemini, "Corrupted thought signature."),
        (
            Wire::Responses,
            "The encrypted content gAAA could not be verified.",
        ),
    ] {
        let refused = || {
            let error = json!({"type": "invalid_request_error", "message": message,
                               "status": "INVALID_ARGUMENT", "code": null});
            Answer::json(400, &json!({"type": "error", "error": error}))
        };
        let fake = FakeModel::start().await.unwrap();
        let model = wire.adapter(&fake);
        fake.answer(refused());
        fake.answer(wire.begun(wire.answer(&[Said::Text("4")], End::Complete)));
        let answer = model.complete(&with_a_thought(wire)).await.unwrap();
        assert_eq!(answer.message.text(), "4", "{wire:?}");
        let told: Vec<WarningKind> = answer.warnings.iter().map(|it| it.kind).collect();
        assert_eq!(told, [WarningKind::PartDropped], "{wire:?}");
        let bodies = fake.requests();
        let bodies: Vec<String> = bodies.iter().map(|it| it.json().to_string()).collect();
        assert_eq!(bodies.len(), 2, "{wire:?}");
        assert!(bodies[0].contains("SIGNED"), "{wire:?}: {}", bodies[0]);
        assert!(!bodies[1].contains("SIGNED"), "{wire:?}: {}", bodies[1]);

        fake.answer(refused());
        fake.answer(refused());
        let error = model.complete(&with_a_thought(wire)).await.unwrap_err();
        assert!(
            matches!(error.kind, ModelErrorKind::InvalidRequest { .. }),
            "{wire:?}: {error}"
        );
        assert_eq!(fake.requests().len(), 4, "{wire:?}");
        if wire == Wire::Responses {
            // The question has no reasoning that could be omitted, so the request is not repeated.
            fake.answer(refused());
            model.complete(&question()).await.unwrap_err();
            assert_eq!((fake.requests().len(), fake.unused()), (5, 0));
        }
    }
}

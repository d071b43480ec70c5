//! Reasoning in requests, results, and arguments in unusual forms and places.

use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, FinishReason, Message, ModelCapabilities, Part, Role, ToolResult, ToolUse,
    WarningKind,
};
use switchboard_providers_openai::Profile;
use switchboard_testkit::fixtures;

use crate::{
    answers::{End, Said, candidate, chunk, data, line, lines, named},
    calls, go_on, kiel, nothing, question,
    wires::{Target, WIRES, Wire},
};

#[test]
fn case_22_reasoning_of_the_responses_api_goes_back_exactly_and_to_nobody_else() {
    let item = json!({
        "id": "rs_1", "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "**Looking**"}],
        "encrypted_content": "gAAAAABo8Qx1",
    });
    let call = json!({
        "id": "fc_1", "type": "function_call", "status": "completed", "call_id": "call_1",
        "name": "get_weather", "arguments": r#"{"city":"Kiel"}"#,
    });
    let about = |kind: &str, index: u32, item: &Value| json!({"type": kind, "output_index": index, "item": item});
    let text = named(&[
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        about(
            "response.output_item.added",
            0,
            &json!({"id": "rs_1", "type": "reasoning", "summary": []}),
        ),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "item_id": "rs_1",
               "summary_index": 0, "delta": "**Looking**"}),
        about("response.output_item.done", 0, &item),
        about("response.output_item.added", 1, &call),
        about("response.output_item.done", 1, &call),
        json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
    ]);
    let answer = Wire::Responses.read_whole(&question(), &text);
    let request = go_on(&question(), &answer);
    let reasoning = ModelCapabilities {
        reasoning: Some(true),
        ..Wire::Responses.capabilities()
    };
    let sent = Wire::Responses.send_to(&request, &reasoning).unwrap();
    assert_eq!(sent.body["input"][1], item, "as it came");
    assert_eq!(
        sent.body["input"][2], call,
        "with the id that needs its reasoning"
    );
    assert_eq!(sent.body["input"][3]["call_id"], "call_1");
    assert_eq!(sent.body["store"], false);
    assert_eq!(sent.body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(sent.warnings, []);

    for wire in WIRES.into_iter().filter(|wire| *wire != Wire::Responses) {
        let sent = wire.send(&request).unwrap();
        for secret in ["gAAAAABo8Qx1", "rs_1", "fc_1"] {
            assert!(!sent.bytes.contains(secret), "{wire:?}: {}", sent.bytes);
        }
        let told = sent.warnings.iter().map(|warning| warning.kind);
        assert!(
            told.into_iter()
                .any(|kind| kind == WarningKind::PartDropped),
            "{wire:?}: {:?}",
            sent.warnings
        );
    }
}

/// Returns a conversation with a call, this result, and a message of the user.
fn answered(result: ToolResult) -> ChatRequest {
    let mut request = question();
    let call = ToolUse::new("call_1", "get_weather", kiel());
    let said = Message::new(Role::Assistant, [Part::ToolUse(call)]);
    let messages = [said, Message::from_tool_results([result])];
    request.messages.extend(messages.map(Into::into));
    request
}

/// Returns the first result in a body.
fn result_in(wire: Wire, body: &Value) -> Value {
    match wire {
        Wire::Anthropic => body["messages"][2]["content"][0].clone(),
        Wire::Chat | Wire::Ollama => body["messages"][2]["content"].clone(),
        Wire::Responses => body["input"][2]["output"].clone(),
        Wire::Gemini => body["contents"][2]["parts"][0]["functionResponse"]["response"].clone(),
    }
}

#[test]
fn case_23_a_failure_is_told_where_the_wire_has_no_mark_for_it() {
    for wire in WIRES {
        let words = "the station is closed";
        let send = |result: ToolResult| {
            let sent = wire.send(&answered(result)).unwrap();
            assert_eq!(sent.warnings, [], "{wire:?}");
            result_in(wire, &sent.body)
        };
        let failed = send(ToolResult::from_error_message(
            "call_1",
            "get_weather",
            words,
        ));
        let worked = send(ToolResult::text("call_1", "get_weather", words));
        assert_ne!(failed, worked, "{wire:?}");
        assert!(failed.to_string().contains(words), "{wire:?}: {failed}");
        match wire {
            Wire::Anthropic => assert_eq!(failed["is_error"], true),
            Wire::Gemini => assert_eq!(failed, json!({"error": words})),
            _ => assert_eq!(failed, json!(format!("Error: {words}")), "{wire:?}"),
        }
        // An error without a text is still an error.
        let silent = ToolResult {
            content: Vec::new().into(),
            ..ToolResult::from_error_message("call_1", "get_weather", "")
        };
        let said = send(silent).to_string().to_lowercase();
        assert!(
            said.contains("error") || said.contains("failed"),
            "{wire:?}: {said}"
        );
    }
}

/// Returns the items in a body after the calls: `result <id or content>` or `text <text>`.
fn after_the_calls(wire: Wire, body: &Value) -> Vec<String> {
    let result = |id: &Value| format!("result {}", id.as_str().unwrap_or_default());
    let text = |text: &Value| format!("text {}", text.as_str().unwrap_or_default());
    let list = |name: &str, from: usize| body[name].as_array().unwrap()[from..].to_vec();
    match wire {
        Wire::Anthropic => list("messages", 2)
            .iter()
            .flat_map(|message| message["content"].as_array().unwrap().clone())
            .map(|block| match block["type"].as_str() {
                Some("tool_result") => result(&block["tool_use_id"]),
                _ => text(&block["text"]),
            })
            .collect(),
        Wire::Chat => list("messages", 2)
            .iter()
            .map(|message| match message["role"].as_str() {
                Some("tool") => result(&message["tool_call_id"]),
                _ => text(&message["content"]),
            })
            .collect(),
        Wire::Responses => list("input", 3)
            .iter()
            .map(|item| match item["type"].as_str() {
                Some("function_call_output") => result(&item["call_id"]),
                _ => text(&item["content"]),
            })
            .collect(),
        // On these two wires, results have no ids, so the content identifies the result.
        Wire::Gemini => list("contents", 2)
            .iter()
            .flat_map(|content| content["parts"].as_array().unwrap().clone())
            .map(|part| match part.get("functionResponse") {
                Some(response) => result(&response["response"]["output"]),
                None => text(&part["text"]),
            })
            .collect(),
        Wire::Ollama => list("messages", 2)
            .iter()
            .map(|message| match message["role"].as_str() {
                Some("tool") => result(&message["content"]),
                _ => text(&message["content"]),
            })
            .collect(),
    }
}

#[test]
fn case_24_several_results_are_one_message_each_before_the_persons_text() {
    let call = |id: &str| Part::ToolUse(ToolUse::new(id, "get_weather", kiel()));
    let result = |id: &str| Part::ToolResult(ToolResult::text(id, "get_weather", id));
    let said = Part::text("Only the first, please.");
    let apart = vec![
        Message::new(Role::Tool, [result("call_1"), result("call_2")]),
        Message::new(Role::User, [said.clone()]),
    ];
    let together = vec![Message::new(
        Role::User,
        [said, result("call_1"), result("call_2")],
    )];
    for wire in WIRES {
        for rest in [&apart, &together] {
            let mut request = question();
            let calls = Message::new(Role::Assistant, [call("call_1"), call("call_2")]);
            request.messages.push(calls.into());
            request
                .messages
                .extend(rest.iter().cloned().map(Into::into));
            let sent = wire.send(&request).unwrap();
            assert_eq!(
                after_the_calls(wire, &sent.body),
                [
                    "result call_1",
                    "result call_2",
                    "text Only the first, please."
                ],
                "{wire:?}"
            );
        }
    }
}

#[test]
fn case_25_reasoning_content_of_deepseek_goes_back() {
    let model = fixtures::compatible_model();
    let profile = Profile::deepseek();
    let function = json!({"name": "get_weather", "arguments": r#"{"city":"Kiel"}"#});
    let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
    let text = data(&[
        chunk(&json!({"reasoning_content": "The user "}), None),
        chunk(&json!({"reasoning_content": "wants weather."}), None),
        chunk(&json!({"tool_calls": [call]}), None),
        chunk(&json!({}), Some("tool_calls")),
    ]);
    let deepseek = Target::compatible(model.clone(), profile);
    let replayed = deepseek.read(&question(), &text);
    let answer = replayed.response;
    let request = go_on(&question(), &answer);
    let mapped_for = |target: &Target| {
        let sent = target.send(&request).unwrap();
        (sent.body["messages"][1].clone(), sent.warnings)
    };
    let (message, warnings) = mapped_for(&deepseek);
    assert_eq!(message["reasoning_content"], "The user wants weather.");
    assert_eq!(message["tool_calls"][0]["id"], "call_1");
    assert_eq!(warnings, []);

    // A server that accepts no reasoning gets none, and there is a warning.
    let (message, warnings) = mapped_for(&Target::compatible(model, Profile::openai()));
    assert!(message.get("reasoning_content").is_none(), "{message}");
    assert_eq!(warnings[0].kind, WarningKind::PartDropped);
    for wire in WIRES {
        let sent = wire.send(&request).unwrap();
        assert!(!sent.bytes.contains("wants weather"), "{wire:?}");
        assert_eq!(sent.warnings[0].kind, WarningKind::PartDropped, "{wire:?}");
    }
}

#[test]
fn case_26_null_and_empty_arguments_are_the_empty_object() {
    for wire in WIRES {
        for arguments in ["null", r#""""#, "", "{}"] {
            let said = [Said::Call("call_1", "list_cities", arguments)];
            let answer = wire.read_whole(&question(), &wire.answer(&said, End::Complete));
            assert_eq!(calls(&answer)[0].input, nothing(), "{wire:?} {arguments:?}");
            assert_eq!(
                answer.finish,
                FinishReason::ToolUse,
                "{wire:?} {arguments:?}"
            );

            // The call is sent back as a JSON object in the format of the wire.
            let sent = wire.send(&go_on(&question(), &answer)).unwrap();
            let call = match wire {
                Wire::Anthropic => sent.body["messages"][1]["content"][0]["input"].clone(),
                Wire::Chat | Wire::Ollama => {
                    sent.body["messages"][1]["tool_calls"][0]["function"]["arguments"].clone()
                }
                Wire::Responses => sent.body["input"][1]["arguments"].clone(),
                Wire::Gemini => {
                    sent.body["contents"][1]["parts"][0]["functionCall"]["args"].clone()
                }
            };
            let is_text = matches!(wire, Wire::Chat | Wire::Responses);
            let expected = if is_text { json!("{}") } else { json!({}) };
            assert_eq!(call, expected, "{wire:?} {arguments:?}");
        }
    }
}

#[test]
fn case_27_a_call_in_the_chunk_that_ends_the_answer_is_kept() {
    let function = |arguments: Value| json!({"name": "get_weather", "arguments": arguments});
    let chat = |arguments: &str| json!({"index": 0, "id": "call_1", "function": function(json!(arguments))});
    let whole = data(&[chunk(
        &json!({"tool_calls": [chat(r#"{"city":"Kiel"}"#)]}),
        Some("tool_calls"),
    )]);
    // The second piece has only the rest of the arguments.
    let rest = json!({"index": 0, "function": {"arguments": r#""Kiel"}"#}});
    let in_two = data(&[
        chunk(&json!({"tool_calls": [chat(r#"{"city":"#)]}), None),
        chunk(&json!({"tool_calls": [rest]}), Some("tool_calls")),
    ]);
    let part = json!({"functionCall": {"name": "get_weather", "args": {"city": "Kiel"}}});
    let gemini = data(&[
        candidate(&json!([{"text": "I look."}]), None),
        candidate(&json!([part]), Some("STOP")),
    ]);
    let entry = json!({"function": function(json!({"city": "Kiel"}))});
    let ollama = lines(&[line(
        &json!({"content": "", "tool_calls": [entry]}),
        Some("stop"),
    )]);
    let item = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed",
                      "name": "get_weather", "arguments": r#"{"city":"Kiel"}"#});
    let responses = named(&[
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": [item]}}),
    ]);
    for (wire, text) in [
        (Wire::Chat, whole),
        (Wire::Chat, in_two),
        (Wire::Gemini, gemini),
        (Wire::Ollama, ollama),
        (Wire::Responses, responses),
    ] {
        let answer = wire.read_whole(&question(), &text);
        assert_eq!(calls(&answer)[0].input, kiel(), "{wire:?}");
        assert_eq!(answer.finish, FinishReason::ToolUse, "{wire:?}");
    }
}

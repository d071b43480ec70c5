//! Names of tools, finish reasons, refusals and usage.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, ChatResponse, FinishReason, Message, Part, Role, ToolChoice, ToolDefinition,
    ToolInput, ToolResult, ToolUse,
};
use switchboard_providers_common::tool_names::NameRule;

use crate::{
    answers::{End, Said, assembled, candidate, chunk, data, line, lines, named},
    calls, kiel, nothing, question,
    wires::{WIRES, Wire},
};

/// Returns the names of the tools that a body declares.
fn declared(wire: Wire, body: &Value) -> Vec<String> {
    let tools = match wire {
        Wire::Gemini => &body["tools"][0]["functionDeclarations"],
        _ => &body["tools"],
    };
    let name = |tool: &Value| match wire {
        Wire::Chat | Wire::Ollama => tool["function"]["name"].clone(),
        _ => tool["name"].clone(),
    };
    let tools = tools.as_array().unwrap().iter();
    tools
        .map(|tool| name(tool).as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn case_16_names_that_a_wire_cannot_say_become_aliases_that_lead_back() {
    let long = "read_the_weather_of_a_city_by_its_name_from_the_atlas_of_all_cities";
    let names = [
        "a/b",
        "a_b",
        "a.b",
        "9 lives",
        &format!("{long}_1"),
        &format!("{long}_2"),
    ];
    for wire in WIRES {
        let tools = names.map(|name| ToolDefinition::new(name, "", json!({"type": "object"})));
        let call = ToolUse::new("call_1", "a/b", nothing());
        let request = ChatRequest::new([
            Message::user("How is the weather in Kiel?"),
            Message::new(Role::Assistant, [Part::ToolUse(call)]),
            Message::from_tool_results([ToolResult::text("call_1", "a/b", "12 °C")]),
        ])
        .with_tools(tools);
        let sent = wire.send(&request).unwrap();
        let aliases = declared(wire, &sent.body);
        let distinct: BTreeSet<&String> = aliases.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{wire:?}: {aliases:?}");
        let rule = match wire {
            Wire::Anthropic => NameRule::ANTHROPIC,
            Wire::Chat | Wire::Responses => NameRule::OPENAI,
            Wire::Gemini => NameRule::GEMINI,
            // Ollama accepts any name.
            Wire::Ollama => continue,
        };
        for (name, alias) in names.iter().zip(&aliases) {
            assert!(rule.allows_name(alias), "{wire:?}: {name} is {alias}");
            let said = [Said::Call("call_2", alias, "{}")];
            let answer = wire.read_whole(&request, &wire.answer(&said, End::Complete));
            assert_eq!(calls(&answer)[0].name, *name, "{wire:?}");

            // The tool choice uses the alias too.
            let chosen = request
                .clone()
                .with_tool_choice(ToolChoice::Only(vec![(*name).to_owned()]));
            let choice = wire.send(&chosen).unwrap().body;
            let choice = match wire {
                Wire::Gemini => &choice["toolConfig"],
                _ => &choice["tool_choice"],
            };
            assert!(
                choice.to_string().contains(&format!("\"{alias}\"")),
                "{wire:?}: {choice}"
            );
        }
        // The history uses the alias too.
        let history = match wire {
            Wire::Anthropic | Wire::Chat => &sent.body["messages"][1],
            Wire::Responses => &sent.body["input"][1],
            _ => &sent.body["contents"][1],
        };
        let alias = format!("\"name\":\"{}\"", aliases[0]);
        assert!(history.to_string().contains(&alias), "{wire:?}: {history}");
    }
}

/// Reads a whole body of Chat Completions.
fn chat_body(message: &Value, finish: &str) -> ChatResponse {
    let choice = json!({"index": 0, "message": message, "finish_reason": finish});
    let body = json!({"id": "chatcmpl-1", "choices": [choice]}).to_string();
    assembled(&Wire::Chat.target().decode_whole(&body).unwrap())
}

#[test]
fn case_17_a_named_choice_that_ends_with_stop_is_tool_use() {
    let function = json!({"name": "get_weather", "arguments": r#"{"city":"Kiel"}"#});
    let call = json!([{"index": 0, "id": "call_1", "type": "function", "function": function}]);
    let request = question().with_tool_choice(ToolChoice::Only(vec!["get_weather".into()]));
    let text = data(&[
        chunk(&json!({"tool_calls": call}), None),
        chunk(&json!({}), Some("stop")),
    ]);
    let streamed = Wire::Chat.read_whole(&request, &text);
    let whole = chat_body(&json!({"role": "assistant", "tool_calls": call}), "stop");
    for answer in [streamed, whole] {
        assert_eq!(answer.finish, FinishReason::ToolUse);
        assert_eq!(answer.finish_raw.as_deref(), Some("stop"));
        assert_eq!(calls(&answer)[0].input, kiel());
    }
}

#[test]
fn case_17_the_output_limit_beats_calls_and_what_it_cut_off_is_malformed() {
    for wire in WIRES {
        // A complete call stays valid. On wires with arguments as JSON values, a call is never
        // incomplete.
        let first = Said::Call("call_1", "get_weather", r#"{"city":"Kiel"}"#);
        let in_pieces = !matches!(wire, Wire::Gemini | Wire::Ollama);
        // The arguments of the second call may be valid JSON, but they were cut off, so they are
        // malformed.
        for cut in [r#"{"city":"Bre"#, r#"{"city":"Bremen"}"#, "{}", ""] {
            let mut said = vec![first];
            if in_pieces {
                said.push(Said::Call("call_2", "get_weather", cut));
            }
            let answer = wire.read_whole(&question(), &wire.answer(&said, End::Limit));
            assert_eq!(answer.finish, FinishReason::Length, "{wire:?} {cut}");
            let calls = calls(&answer);
            assert_eq!(calls[0].input, kiel(), "{wire:?} {cut}");
            if in_pieces {
                let input = &calls[1].input;
                let is_malformed = matches!(input, ToolInput::Malformed { .. });
                assert!(is_malformed, "{wire:?} {cut}: {input:?}");
            }
        }
    }
}

#[test]
fn case_18_tool_calls_without_a_call_is_no_tool_use() {
    let text = data(&[
        chunk(
            &json!({"content": "No tool needed.", "tool_calls": []}),
            None,
        ),
        chunk(&json!({"tool_calls": []}), Some("tool_calls")),
    ]);
    let streamed = Wire::Chat.read_whole(&question(), &text);
    let message = json!({"role": "assistant", "content": "No tool needed.", "tool_calls": []});
    let anthropic = Wire::Anthropic
        .answer(&[Said::Text("No tool needed.")], End::Complete)
        .replace("end_turn", "tool_use");
    for answer in [
        streamed,
        chat_body(&message, "tool_calls"),
        Wire::Anthropic.read_whole(&question(), &anthropic),
    ] {
        assert_eq!(answer.finish, FinishReason::Stop);
        assert_eq!(answer.message.text(), "No tool needed.");
        assert!(calls(&answer).is_empty());
    }
}

#[test]
fn case_19_one_index_with_several_ids_is_several_calls_and_a_name_is_said_once() {
    let delta = |id: Value, name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        let call = json!({"index": 0, "id": id, "type": "function", "function": function});
        chunk(&json!({"tool_calls": [call]}), None)
    };
    let end = chunk(&json!({}), Some("tool_calls"));
    let text = data(&[
        delta(json!("x1"), "get_weather", r#"{"city":"Kiel"}"#),
        delta(json!("x2"), "get_weather", r#"{"city":"Bremen"}"#),
        delta(json!(""), "list_cities", "{}"),
        end.clone(),
    ]);
    let answer = Wire::Chat.read_whole(&question(), &text);
    let found = calls(&answer);
    let names: Vec<&str> = found.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["get_weather", "get_weather", "list_cities"]);
    assert_eq!((found[0].id.as_str(), found[1].id.as_str()), ("x1", "x2"));
    assert!(!found[2].id.is_empty() && !["x1", "x2"].contains(&found[2].id.as_str()));
    assert_eq!(found[0].input, kiel());

    // The id and the name are repeated in every piece.
    let text = data(&[
        delta(json!("x1"), "get_weather", r#"{"city":"#),
        delta(json!("x1"), "get_weather", r#""Kiel""#),
        delta(json!("x1"), "get_weather", "}"),
        end,
    ]);
    let answer = Wire::Chat.read_whole(&question(), &text);
    let found = calls(&answer);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].name.as_str(), &found[0].input),
        ("get_weather", &kiel())
    );

    // On Ollama, each entry of a list is a separate call, even if the entries have the same index.
    let entry = |city: &str| {
        let function = json!({"index": 0, "name": "get_weather", "arguments": {"city": city}});
        json!({"id": "", "function": function})
    };
    let text = lines(&[
        line(
            &json!({"tool_calls": [entry("Kiel"), entry("Bremen")]}),
            None,
        ),
        line(&json!({"content": ""}), Some("stop")),
    ]);
    let answer = Wire::Ollama.read_whole(&question(), &text);
    let found = calls(&answer);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(!found[0].id.is_empty() && found[0].id != found[1].id);
}

#[test]
fn case_20_a_refusal_is_one_and_its_text_is_kept() {
    let words = "I can't help with that.";
    let chat = data(&[
        chunk(
            &json!({"role": "assistant", "content": null, "refusal": "I can't "}),
            None,
        ),
        chunk(&json!({"refusal": "help with that."}), None),
        chunk(&json!({}), Some("stop")),
    ]);
    let part = json!({"type": "refusal", "refusal": words});
    let item = |content: Value| json!({"type": "message", "id": "msg_1", "role": "assistant", "content": content});
    let responses = named(&[
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item(json!([]))}),
        json!({"type": "response.refusal.delta", "output_index": 0, "item_id": "msg_1",
               "content_index": 0, "delta": words}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item(json!([part]))}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
    ]);
    let anthropic = Wire::Anthropic
        .answer(&[Said::Text(words)], End::Complete)
        .replace("end_turn", "refusal");
    let whole = chat_body(
        &json!({"role": "assistant", "content": null, "refusal": words}),
        "stop",
    );
    for answer in [
        Wire::Chat.read_whole(&question(), &chat),
        Wire::Responses.read_whole(&question(), &responses),
        Wire::Anthropic.read_whole(&question(), &anthropic),
        whole,
    ] {
        assert_eq!(answer.finish, FinishReason::Refusal);
        assert!(answer.message.text().starts_with(words), "{answer:?}");
    }
    // Gemini's models have no refusal on the wire. A content filter is reported as `ContentFilter`,
    // not as `Refusal`.
    let blocked = data(&[json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})]);
    let withheld = data(&[candidate(&json!([{"text": "It"}]), Some("SAFETY"))]);
    for text in [blocked, withheld] {
        let answer = Wire::Gemini.read_whole(&question(), &text);
        assert_eq!(answer.finish, FinishReason::ContentFilter);
    }
}

#[test]
fn case_21_usage_after_the_reason_counts() {
    let usage = json!({"prompt_tokens": 42, "completion_tokens": 9});
    let text = data(&[
        chunk(&json!({"content": "Hello."}), None),
        chunk(&json!({}), Some("stop")),
        json!({"id": "chatcmpl-1", "choices": [], "usage": usage}),
    ]) + "data: [DONE]\n\n";
    let answer = Wire::Chat.read_whole(&question(), &text);
    assert_eq!(answer.finish, FinishReason::Stop);
    let usage = (answer.usage.input_tokens, answer.usage.output_tokens);
    assert_eq!(usage, (Some(42), Some(9)));

    let text = data(&[
        candidate(&json!([{"text": "Hello."}]), Some("STOP")),
        json!({"usageMetadata": {"promptTokenCount": 42, "candidatesTokenCount": 9}}),
    ]);
    let usage = Wire::Gemini.read_whole(&question(), &text).usage;
    assert_eq!(
        (usage.input_tokens, usage.output_tokens),
        (Some(42), Some(9))
    );
}

#[test]
fn case_21_absent_usage_is_not_zero() {
    for wire in WIRES {
        let text = wire.answer(&[Said::Text("Hello.")], End::Complete);
        let answer = wire.read_whole(&question(), &text);
        assert_eq!(answer.message.text(), "Hello.", "{wire:?}");
        assert_eq!(answer.finish, FinishReason::Stop, "{wire:?}");
        assert!(!answer.usage.is_known(), "{wire:?}: {:?}", answer.usage);
    }
}

//! Calls, signatures, ids and results of Gemini, and frames of streams.

use serde_json::{Value, json};
use switchboard_domain::{
    ChatResponse, FinishReason, Message, ModelErrorKind, ToolInput, ToolResult, ToolUse,
};
use switchboard_testkit::fake::{Answer, FakeModel};

use crate::{
    answers::{End, Said, assembled, candidate, chunk, data, line, lines, named},
    calls, go_on, kiel, question,
    wires::{WIRES, Wire},
};

fn call(id: &str, city: &str) -> Value {
    json!({"id": id, "function": {"name": "get_weather", "arguments": {"city": city}}})
}

/// Returns a call in Gemini's format.
fn function_call(city: &str) -> Value {
    json!({"functionCall": {"name": "get_weather", "args": {"city": city}}})
}

/// Reads a whole body of Gemini.
fn gemini_body(body: &Value) -> ChatResponse {
    let target = Wire::Gemini.target();
    assembled(&target.decode_whole(&body.to_string()).unwrap())
}

#[test]
fn case_01_stop_with_a_call_is_tool_use() {
    let said = [Said::Call("call_1", "get_weather", r#"{"city":"Kiel"}"#)];
    for wire in [Wire::Gemini, Wire::Ollama] {
        let answer = wire.read_whole(&question(), &wire.answer(&said, End::Complete));
        assert_eq!(answer.finish, FinishReason::ToolUse, "{wire:?}");
        let word = answer.finish_raw.as_deref().unwrap();
        assert!(word.eq_ignore_ascii_case("stop"), "{wire:?}: {word}");
        assert_eq!(calls(&answer)[0].input, kiel(), "{wire:?}");
    }
    let whole = gemini_body(&candidate(&json!([function_call("Kiel")]), Some("STOP")));
    assert_eq!(whole.finish, FinishReason::ToolUse);
    assert_eq!(calls(&whole)[0].input, kiel());
}

#[test]
fn case_02_several_calls_in_one_chunk_are_all_kept() {
    let cities = ["Kiel", "Bremen", "Hamburg"];
    let together = cities.map(function_call);
    let gemini = data(&[candidate(&json!(together), Some("STOP"))]);
    let ollama = cities.map(|city| call(&format!("call_{city}"), city));
    let ollama = lines(&[
        line(&json!({"content": "", "tool_calls": ollama}), None),
        line(&json!({"content": ""}), Some("stop")),
    ]);
    let mut index = 0;
    let chat = cities.map(|city| {
        let mut call = call(&format!("call_{city}"), city);
        call["function"]["arguments"] = json!(json!({"city": city}).to_string());
        call["index"] = json!(index);
        index += 1;
        call
    });
    let chat = data(&[
        chunk(&json!({"tool_calls": chat}), None),
        chunk(&json!({}), Some("tool_calls")),
    ]);
    // The calls are only in the last event.
    let items = cities.map(|city| {
        json!({"type": "function_call", "id": format!("fc_{city}"), "status": "completed",
               "call_id": format!("call_{city}"), "name": "get_weather",
               "arguments": json!({"city": city}).to_string()})
    });
    let responses = named(&[json!({"type": "response.completed", "response": {
        "id": "resp_1", "status": "completed", "output": items,
    }})]);
    for (wire, text) in [
        (Wire::Gemini, gemini),
        (Wire::Ollama, ollama),
        (Wire::Chat, chat),
        (Wire::Responses, responses),
    ] {
        let answer = wire.read_whole(&question(), &text);
        let inputs: Vec<&ToolInput> = calls(&answer).iter().map(|call| &call.input).collect();
        let expected = cities.map(|city| ToolInput::from_json(json!({"city": city})));
        assert_eq!(inputs, expected.iter().collect::<Vec<_>>(), "{wire:?}");
    }
}

#[test]
fn case_03_parallel_calls_of_which_the_first_is_signed_are_replayed_exactly() {
    let mut parts = ["Kiel", "Bremen"].map(function_call);
    parts[0]["thoughtSignature"] = json!("CpQBAdHtim");
    for frames in [
        vec![candidate(&json!(parts), Some("STOP"))],
        // Each chunk has one part.
        vec![
            candidate(&json!([parts[0]]), None),
            candidate(&json!([parts[1]]), Some("STOP")),
        ],
    ] {
        let answer = Wire::Gemini.read_whole(&question(), &data(&frames));
        let sent = Wire::Gemini.send(&go_on(&question(), &answer)).unwrap();
        assert_eq!(sent.body["contents"][1]["parts"], json!(parts));
        assert_eq!(sent.warnings, []);
    }
}

#[test]
fn case_04_a_trailing_signature_on_an_empty_text_is_kept() {
    let parts = |parts: Value, finish| candidate(&parts, finish);
    let trailing = json!({"text": "", "thoughtSignature": "CpQBAdHtim"});
    let frames = [
        parts(json!([{"text": "It is 12 °C."}]), None),
        parts(json!([trailing]), Some("STOP")),
    ];
    let answer = Wire::Gemini.read_whole(&question(), &data(&frames));
    assert_eq!(answer.message.text(), "It is 12 °C.");
    let mut request = go_on(&question(), &answer);
    request.messages.push(Message::user("And tomorrow?").into());
    let sent = Wire::Gemini.send(&request).unwrap();
    let said = sent.body["contents"][1]["parts"].as_array().unwrap();
    assert_eq!(said.last(), Some(&trailing), "{said:?}");
    let words = said.iter().filter_map(|part| part["text"].as_str());
    assert_eq!(words.collect::<String>(), "It is 12 °C.");
}

#[test]
fn case_05_missing_ids_become_unique_local_ones_that_are_not_sent() {
    let without =
        |city: &str| json!({"function": {"name": "get_weather", "arguments": {"city": city}}});
    let gemini = data(&[candidate(
        &json!([function_call("Kiel"), function_call("Bremen")]),
        Some("STOP"),
    )]);
    let ollama = lines(&[
        line(
            &json!({"tool_calls": [without("Kiel"), without("Bremen")]}),
            None,
        ),
        line(&json!({"content": ""}), Some("stop")),
    ]);
    for (wire, text) in [(Wire::Gemini, gemini), (Wire::Ollama, ollama)] {
        // The model sends the same answer twice. The ids of the second answer must differ from
        // those of the first.
        let first = wire.read_whole(&question(), &text);
        let after = go_on(&question(), &first);
        let second = wire.read_whole(&after, &text);
        let mut ids: Vec<&str> = [&first, &second]
            .into_iter()
            .flat_map(|answer| calls(answer))
            .map(|call| call.id.as_str())
            .collect();
        let mut request = go_on(&after, &second);
        // On these wires, results belong to calls in order, so the mapping must sort the results.
        let last = request.messages.pop().unwrap();
        let mut results: Vec<ToolResult> = last.tool_results().cloned().collect();
        results[1].content = vec![switchboard_domain::ToolContent::text("for Bremen")].into();
        if wire == Wire::Gemini {
            results.reverse();
        }
        request
            .messages
            .push(Message::from_tool_results(results).into());
        let sent = wire.send(&request).unwrap();
        for id in &ids {
            assert!(!sent.bytes.contains(id), "{wire:?}: {id} in {}", sent.bytes);
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4, "{wire:?}: {ids:?}");
        let last = match wire {
            Wire::Gemini => &sent.body["contents"][4]["parts"][1],
            _ => &sent.body["messages"][6],
        };
        assert!(last.to_string().contains("for Bremen"), "{wire:?}: {last}");
    }
}

#[test]
fn case_06_a_result_of_text_or_a_list_is_wrapped_in_an_object() {
    let result = |text: &str| ToolResult::text("call_1", "get_weather", text);
    let data = |data: Value| ToolResult {
        content: Vec::new().into(),
        structured: Some(data.into()),
        ..result("")
    };
    for (result, expected) in [
        (result("12 °C"), json!({"output": "12 °C"})),
        (
            data(json!(["Kiel", "Bremen"])),
            json!({"output": ["Kiel", "Bremen"]}),
        ),
        (data(json!("12 °C")), json!({"output": "12 °C"})),
        (data(json!(12)), json!({"output": 12})),
        (data(json!({"degrees": 12})), json!({"degrees": 12})),
        (
            ToolResult::from_error_message("call_1", "get_weather", "the station is closed"),
            json!({"error": "the station is closed"}),
        ),
    ] {
        let mut request = question();
        let call = ToolUse::new("call_1", "get_weather", kiel());
        let part = switchboard_domain::Part::ToolUse(call);
        let said = Message::new(switchboard_domain::Role::Assistant, [part]);
        let answered = Message::from_tool_results([result.clone()]);
        request.messages.extend([said.into(), answered.into()]);
        let sent = Wire::Gemini.send(&request).unwrap();
        let response = &sent.body["contents"][2]["parts"][0]["functionResponse"]["response"];
        assert_eq!(*response, expected, "{result:?}");
    }
}

#[test]
fn case_07_lines_may_end_in_any_way_and_an_error_needs_no_numeric_code() {
    let said = [
        Said::Text("I look it up."),
        Said::Call("call_1", "get_weather", r#"{"city":"Kiel"}"#),
    ];
    for wire in WIRES {
        let text = wire.answer(&said, End::Complete);
        let expected = wire.read(&question(), &text);
        assert_eq!(expected.response.finish, FinishReason::ToolUse, "{wire:?}");
        let again = wire.read(&question(), &text.replace('\n', "\r\n"));
        assert_eq!(again, expected, "{wire:?}");
    }
    let overloaded = ModelErrorKind::Overloaded { retry_after: None };
    for (error, kind) in [
        (
            json!({"message": "It broke.", "status": "UNAVAILABLE"}),
            overloaded,
        ),
        (json!({"message": "It broke."}), ModelErrorKind::Interrupted),
        (
            json!({"code": "broken", "message": "It broke."}),
            ModelErrorKind::Interrupted,
        ),
    ] {
        let begun = Wire::Gemini.answer(&[Said::Text("Half an ans")], End::Missing);
        let text = begun + &data(&[json!({"error": error})]);
        let replayed = Wire::Gemini.read(&question(), &text);
        let failure = replayed.failure.unwrap();
        assert_eq!(failure.kind, kind.as_str(), "{error}");
        assert!(failure.message.contains("It broke."), "{failure:?}");
        assert_eq!(replayed.response.message.text(), "Half an ans");
    }
}

#[tokio::test]
async fn case_08_a_continuation_is_resumed_and_its_usage_summed() {
    let fake = FakeModel::start().await.unwrap();
    let frame = |text: &str, finish: &str, tokens: u32| {
        let mut frame = candidate(&json!([{"text": text}]), Some(finish));
        frame["candidates"][0]["continuationToken"] = json!(format!("token of {text}"));
        frame["usageMetadata"] = json!({"promptTokenCount": 40, "candidatesTokenCount": tokens});
        Answer::sse(data(&[frame]))
    };
    fake.answer(frame("One", "CONTINUATION", 3));
    fake.answer(frame(", two", "CONTINUATION", 4));
    fake.answer(frame(".", "STOP", 5));
    let model = Wire::Gemini.adapter(&fake);
    let answer = model.complete(&question()).await.unwrap();
    assert_eq!(answer.message.text(), "One, two.");
    assert_eq!(answer.finish, FinishReason::Stop);
    let usage = (answer.usage.input_tokens, answer.usage.output_tokens);
    assert_eq!(usage, (Some(120), Some(12)));
    let tokens: Vec<Value> = fake
        .requests()
        .iter()
        .map(|request| request.json()["continuationToken"].clone())
        .collect();
    let expected = [json!(null), json!("token of One"), json!("token of , two")];
    assert_eq!(tokens, expected);
}

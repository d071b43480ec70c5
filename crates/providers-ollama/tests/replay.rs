//! Replays of constrained answers and of calls in text.
//!
//! `testkit/tests/replay.rs` replays the other stored answers.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use serde_json::json;
use switchboard_domain::{
    ChatRequest, FinishReason, Message, ModelErrorKind, ModelEvent, ModelId, ModelStream, Part,
    ResponseAccumulator, ToolChoice, ToolChoiceOutcome, ToolDefinition, ToolInput,
};
use switchboard_providers_common::{
    decode_ndjson,
    text_tool_calls::prompted::PromptedTools,
    text_tool_calls::{Recovery, RecoveryForms, recover},
};
use switchboard_providers_ollama::chat::{
    ChatDecoder, Form, LocalIds, events_from_body, from_body,
};
use switchboard_testkit::{
    replay::{Arrival, Body, Cutting, Delivery, Replayed, break_off, play, replay},
    transcripts::{self, Form as Stored, Transcript},
};

const BYTE_BY_BYTE: Delivery = Delivery {
    cutting: Cutting::Bytes,
    arrival: Arrival::Later,
};

/// Returns a decoder of an answer. Those with the name `form-…` were constrained.
fn decoder(stem: &str) -> ChatDecoder {
    let model = ModelId::new("ollama", "qwen3:8b");
    let native = ToolChoiceOutcome::Native;
    let form = stem.starts_with("form-").then(|| Form {
        tools: vec!["get_weather".into(), "list_cities".into()],
        may_answer: stem == "form-answer",
    });
    ChatDecoder::new(model, native, Vec::new(), LocalIds::default()).with_form(form)
}

fn stream(stem: &str) -> impl Fn(Body) -> ModelStream {
    let stem = stem.to_owned();
    move |body| decode_ndjson("ollama", body, decoder(&stem))
}

fn stored() -> Vec<Transcript> {
    let all = transcripts::all().expect("they can be read");
    all.into_iter().filter(|it| it.wire == "ollama").collect()
}

fn replayed(stem: &str) -> Replayed {
    let stored = transcripts::read(&format!("ollama/{stem}.ndjson")).expect("it is stored");
    play(&stored.bytes, BYTE_BY_BYTE, stream(stem)).expect("the laws hold")
}

#[test]
fn lines_may_have_other_ends_and_the_last_one_none() {
    let mut count = 0;
    for Transcript { stem, bytes, .. } in stored().iter().filter(|it| it.form == Stored::Ndjson) {
        count += 1;
        let whole = replayed(stem);
        let text = std::str::from_utf8(bytes).expect("it is text");
        for changed in [text.replace('\n', "\r\n\r\n"), text.trim_end().to_owned()] {
            let again = play(changed.as_bytes(), BYTE_BY_BYTE, stream(stem));
            assert_eq!(again.expect("the laws hold"), whole, "{stem}");
        }
    }
    assert!(count >= 12, "{count}");
}

#[test]
fn multi_byte_characters_may_be_cut_anywhere() {
    let line = |content: &str, done: bool| {
        let line = serde_json::json!({"message": {"content": content}, "done": done});
        format!("{line}\n")
    };
    let text = "Grüße \u{1f30a} שלום e\u{301} \u{feff}";
    let form = format!("{{\"name\": \"get_weather\", \"parameters\": {{\"größe\": \"{text}\"}}}}");
    for (stem, content) in [("text", text), ("form-call", form.as_str())] {
        let body = format!("{}{}", line(content, false), line("", true));
        let read = replay(body.as_bytes(), stream(stem)).expect("the laws hold");
        break_off(body.as_bytes(), stream(stem)).expect("an end within a character is none");
        let said: String = read.response.message.text();
        let input = read.response.message.tool_uses().next();
        let input = input.and_then(|it| it.input.as_object()?.get("größe")?.as_str());
        assert_eq!(input.unwrap_or(&said), text, "{stem}");
    }
}

/// Texts that models write instead of a call.
const WRITTEN: [(&str, &str); 9] = [
    (
        "tag",
        "I look. <tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln 🌊\"}}\n</tool_call>",
    ),
    (
        "fenced",
        "```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln 🌊\"}}\n```",
    ),
    (
        "bare",
        "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Köln 🌊\"}}",
    ),
    (
        "mistral",
        "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln 🌊\"}}]",
    ),
    (
        "function",
        "<function=get_weather>{\"city\": \"Köln 🌊\"}</function>",
    ),
    (
        "granite",
        "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln 🌊\"}}]",
    ),
    (
        "deepseek",
        "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Köln 🌊\"}<｜tool▁call▁end｜>",
    ),
    (
        "cut off",
        "<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln 🌊",
    ),
    (
        "no call",
        "A <tool_call> is written so: {\"name\": \"Köln 🌊\"}, and I need none.",
    ),
];

/// Returns an answer with thinking and text, a few characters per line.
fn body_of(text: &str, reason: &str) -> Vec<u8> {
    let mut lines = vec![json!({"message": {"content": "", "thinking": "Hm: <tool_call>"}})];
    let characters: Vec<char> = text.chars().collect();
    lines.extend(characters.chunks(12).map(|piece| {
        let piece: String = piece.iter().collect();
        json!({"message": {"content": piece}})
    }));
    lines.push(
        json!({"message": {"content": ""}, "done": true, "done_reason": reason, "eval_count": 9}),
    );
    let lines = lines.iter().map(|line| format!("{line}\n"));
    lines.collect::<String>().into_bytes()
}

fn question() -> ChatRequest {
    let schema = || json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let tools = ["get_weather", "list_cities"].map(|name| ToolDefinition::new(name, "", schema()));
    ChatRequest::new([Message::user("Weather in Cologne?")]).with_tools(tools)
}

#[test]
fn calls_in_text_are_the_same_cut_at_every_byte() {
    let request = question();
    let native = Recovery::of(&request, RecoveryForms::LOCAL_SERVERS);
    let in_words = PromptedTools::default().prepare(&request).recovery;
    for (name, text) in WRITTEN {
        let reason = if name == "cut off" { "length" } else { "stop" };
        let body = body_of(text, reason);
        for recovery in [&native, &in_words] {
            let stream = |bytes| recover(stream("text")(bytes), recovery.clone());
            let read = replay(&body, stream);
            let read = read.unwrap_or_else(|fault| unreachable!("{name}: {fault}"));
            break_off(&body, stream).unwrap_or_else(|fault| unreachable!("{name}: {fault}"));
            assert!(read.failure.is_none(), "{name}");
            let answer = read.response;
            assert!(
                matches!(&answer.message.parts[0], Part::Reasoning(it) if it.text == "Hm: <tool_call>")
            );
            let calls: Vec<_> = answer.message.tool_uses().collect();
            let expected = match name {
                "no call" => FinishReason::Stop,
                "cut off" => FinishReason::Length,
                _ => FinishReason::ToolUse,
            };
            assert_eq!(answer.finish, expected, "{name}");
            if name == "no call" {
                assert_eq!(answer.message.text(), text);
                assert_eq!(calls.len(), 0);
                continue;
            }
            let said = if name == "tag" { "I look." } else { "" };
            assert_eq!(answer.message.text().trim(), said, "{name}");
            assert_eq!(calls.len(), 1, "{name}");
            assert_eq!(calls[0].name, "get_weather", "{name}");
            match &calls[0].input {
                ToolInput::Object(input) => assert_eq!(json!(input), json!({"city": "Köln 🌊"})),
                ToolInput::Malformed { .. } => assert_eq!(name, "cut off"),
            }
        }
    }
}

#[test]
fn a_call_in_place_of_a_constrained_answer_is_the_same_cut_at_every_byte() {
    let request = question().with_tool_choice(ToolChoice::Required);
    let recovery = Recovery::of(&request, RecoveryForms::ALL);
    let held = |bytes| recover(stream("form-call")(bytes), recovery.clone());
    let (_, tagged) = WRITTEN[0];
    let form = "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Köln 🌊\"}}";
    for (text, strayed) in [(tagged, true), (form, false)] {
        let body = body_of(text, "stop");
        let read = replay(&body, held).unwrap_or_else(|fault| unreachable!("{text}: {fault}"));
        break_off(&body, held).unwrap_or_else(|fault| unreachable!("{text}: {fault}"));
        let answer = read.response;
        assert_eq!(answer.finish, FinishReason::ToolUse, "{text}");
        assert_eq!(answer.message.tool_uses().count(), 1, "{text}");
        assert_eq!(!answer.warnings.is_empty(), strayed, "{text}");
    }
}

#[test]
fn a_whole_answer_has_the_content_of_its_stream() {
    let stored = transcripts::read("ollama/form-call.json").expect("it is stored");
    let body = std::str::from_utf8(&stored.bytes).expect("it is text");
    let whole = from_body("ollama", decoder("form-call"), body).expect("an answer");
    assert_eq!(whole, replayed("form-call").response);
    // The same for every stream of one line.
    let body = r#"{"message": {"content": "Yes"}}"#;
    let whole = from_body("ollama", decoder("text"), body).expect("an end is not needed");
    assert_eq!(whole.finish, FinishReason::Stop);
    let nothing = from_body("ollama", decoder("text"), r#"{"models": []}"#);
    let error = nothing.expect_err("there is no answer in it");
    assert_eq!(error.kind, ModelErrorKind::Protocol);
}

#[test]
fn constrained_answers_are_the_same_cut_at_every_byte() {
    let mut count = 0;
    for Transcript {
        stem, bytes, form, ..
    } in stored()
    {
        if form != Stored::Ndjson || !stem.starts_with("form-") {
            continue;
        }
        count += 1;
        let read = replay(&bytes, stream(&stem));
        let read = read.unwrap_or_else(|fault| unreachable!("{stem}: {fault}"));
        break_off(&bytes, stream(&stem)).unwrap_or_else(|fault| unreachable!("{stem}: {fault}"));
        assert!(read.failure.is_none(), "{stem}");
        let lines = read.events.iter().map(serde_json::to_string);
        let mut lines: Vec<String> = lines.map(|it| it.expect("it is JSON")).collect();
        let answer = serde_json::to_string_pretty(&read.response).expect("it is JSON");
        lines.push(format!("answer: {answer}"));
        insta::assert_snapshot!(stem, lines.join("\n"));
    }
    assert!(count >= 9, "{count}");
}

#[test]
fn no_prefix_of_a_constrained_answer_is_executed() {
    let stored = transcripts::read("ollama/form-call.json").expect("it is stored");
    let body = String::from_utf8(stored.bytes).expect("it is text");
    let body: serde_json::Value = serde_json::from_str(&body).expect("it is JSON");
    let content = body["message"]["content"].as_str().expect("it is text");
    let whole = ToolInput::parse(r#"{"city": "Hamburg \"}", "days": 3}"#);
    for (at, _) in content.char_indices() {
        let (begun, _) = content.split_at(at);
        let body = serde_json::json!({"message": {"content": begun}, "done": true, "done_reason": "length"});
        let events = events_from_body(decoder("form-call"), &body.to_string());
        let mut answer = ResponseAccumulator::default();
        for event in events.expect("an answer") {
            answer.push(&event).expect("the grammar holds");
        }
        let answer = answer.finish().expect("it is finished");
        assert_eq!(answer.finish, FinishReason::Length);
        for call in answer.message.tool_uses() {
            let fair = match &call.input {
                ToolInput::Object(_) => call.input == whole,
                ToolInput::Malformed { .. } => true,
            };
            assert!(fair, "{begun}");
        }
    }
}

#[test]
fn a_stream_starts_and_ends_with_the_required_events() {
    for Transcript { stem, .. } in stored().iter().filter(|it| it.form == Stored::Ndjson) {
        let Replayed {
            events, failure, ..
        } = replayed(stem);
        let started = |event: &ModelEvent| matches!(event, ModelEvent::Started { .. });
        let finished = |event: &ModelEvent| matches!(event, ModelEvent::Finished { .. });
        if let Some(first) = events.first() {
            assert!(started(first), "{stem}");
        }
        assert_eq!(
            events.last().is_some_and(finished),
            failure.is_none(),
            "{stem}"
        );
    }
}

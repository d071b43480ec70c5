//! Replays of stored constrained answers and of answers with calls in the text.
//! `testkit/tests/replay.rs` replays the other stored answers.
#![allow(
    clippy::expect_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use switchboard_domain::{
    FinishReason, ModelErrorKind, ModelId, ModelStream, ResponseAccumulator, ToolChoiceOutcome,
    ToolInput,
};
use switchboard_providers_common::assemble_response;
use switchboard_providers_common::decode_ndjson;
use switchboard_providers_ollama::chat::{AnswerForm, ChatDecoder, ToolUseIds, events_from_body};
use switchboard_testkit::{
    replay::{Arrival, Body, Cutting, Delivery, Replayed, break_off, play, replay},
    transcripts::{self, Form as Stored, Transcript},
};

const BYTE_BY_BYTE: Delivery = Delivery {
    cutting: Cutting::Bytes,
    arrival: Arrival::Later,
};

/// Returns a decoder for the stored answer `stem`. The name of a constrained answer begins with
/// `form-`.
fn decoder(stem: &str) -> ChatDecoder {
    let model = ModelId::new("ollama", "qwen3:8b");
    let native = ToolChoiceOutcome::Native;
    let form = stem.starts_with("form-").then(|| AnswerForm {
        tools: vec!["get_weather".into(), "list_cities".into()],
        may_answer: stem == "form-answer",
    });
    ChatDecoder::new(model, native, Vec::new(), ToolUseIds::default()).with_answer_form(form)
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

#[test]
fn a_whole_answer_has_the_content_of_its_stream() {
    let stored = transcripts::read("ollama/form-call.json").expect("it is stored");
    let body = std::str::from_utf8(&stored.bytes).expect("it is text");
    let whole = events_from_body(decoder("form-call"), body)
        .and_then(|events| assemble_response("ollama", &events))
        .expect("an answer");
    assert_eq!(whole, replayed("form-call").response);
    // A stream of one line gives the same answer as a whole body.
    let body = r#"{"message": {"content": "Yes"}}"#;
    let whole = events_from_body(decoder("text"), body)
        .and_then(|events| assemble_response("ollama", &events))
        .expect("an end is not needed");
    assert_eq!(whole.finish, FinishReason::Stop);
    let nothing = events_from_body(decoder("text"), r#"{"models": []}"#)
        .and_then(|events| assemble_response("ollama", &events));
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
    let whole = ToolInput::parse_input(r#"{"city": "Hamburg \"}", "days": 3}"#);
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

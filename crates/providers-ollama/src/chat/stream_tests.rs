use serde_json::{Value, json};
use switchboard_domain::{ChatRequest, ChatResponse, Message};
use switchboard_providers_common::assemble_response;

use super::*;

fn model() -> ModelId {
    ModelId::new("ollama", "qwen3:8b")
}

fn decoder() -> ChatDecoder {
    let native = ToolChoiceOutcome::Native;
    ChatDecoder::new(model(), native, Vec::new(), ToolUseIds::default())
}

fn held(may_answer: bool) -> ChatDecoder {
    let form = AnswerForm {
        tools: vec!["get_weather".into(), "list_cities".into()],
        may_answer,
    };
    decoder().with_answer_form(Some(form))
}

/// Returns the events before the end or the error, and the error.
fn run(mut decoder: ChatDecoder, lines: &[Value]) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let mut events = Vec::new();
    for line in lines {
        if let Err(error) = decoder.decode_frame("", &line.to_string(), &mut events) {
            return (events, Err(error));
        }
    }
    let end = decoder.finish_decoding(&mut events);
    (events, end)
}

fn answer_of(decoder: ChatDecoder, lines: &[Value]) -> ChatResponse {
    let (events, end) = run(decoder, lines);
    end.unwrap();
    assemble_response("ollama", &events).unwrap()
}

fn answer(lines: &[Value]) -> ChatResponse {
    answer_of(decoder(), lines)
}

fn text(content: &str) -> Value {
    json!({"model": "qwen3:8b", "message": {"role": "assistant", "content": content}, "done": false})
}

fn thought(thinking: &str) -> Value {
    json!({"message": {"role": "assistant", "content": "", "thinking": thinking}, "done": false})
}

fn calls(calls: &Value) -> Value {
    json!({"message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": false})
}

fn call(id: Option<&str>, name: &str, arguments: &Value) -> Value {
    json!({"id": id, "function": {"index": 0, "name": name, "arguments": arguments}})
}

fn done(reason: &str) -> Value {
    json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason})
}

fn uses(answer: &ChatResponse) -> Vec<(&str, &str)> {
    let uses = answer.message.tool_uses();
    uses.map(|it| (it.id.as_str(), it.name.as_str())).collect()
}

#[test]
fn arguments_that_are_not_an_object_are_malformed() {
    let odd = json!([
        call(None, "f", &json!("{\"city\":\"Kiel\"}")),
        call(None, "f", &json!("{\"city\":")),
        call(None, "f", &json!(["Kiel"])),
        call(None, "f", &json!(3)),
    ]);
    let answer = answer(&[calls(&odd), done("stop")]);
    let read: Vec<_> = answer
        .message
        .tool_uses()
        .map(|it| it.input.as_object().is_some())
        .collect();
    assert_eq!(read, [true, false, false, false]);
}

#[test]
fn case_15_a_line_that_broke_off_is_told_from_one_that_is_no_json() {
    for (line, expected) in [
        (r#"{"message": {"con"#, ModelErrorKind::Interrupted),
        ("{\"done\": tru", ModelErrorKind::Interrupted),
        ("{\"eval_count\": -", ModelErrorKind::Interrupted),
        ("{\"eval_count\": 1.", ModelErrorKind::Interrupted),
        ("<html>", ModelErrorKind::Protocol),
        ("[1, 2]", ModelErrorKind::Protocol),
        ("{'a': 1}", ModelErrorKind::Protocol),
    ] {
        let mut events = Vec::new();
        let error = decoder().decode_frame("", line, &mut events).unwrap_err();
        assert_eq!(error.kind, expected, "{line}");
        assert!(events.is_empty());
    }
}

#[test]
fn every_done_reason_is_kept() {
    for (word, expected) in [
        ("stop", FinishReason::Stop),
        ("", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("load", FinishReason::Other("load".into())),
        ("unload", FinishReason::Other("unload".into())),
    ] {
        let answer = answer(&[done(word)]);
        assert_eq!(answer.finish, expected, "{word:?}");
        assert_eq!(answer.finish_raw.as_deref().unwrap_or_default(), word);
    }
    // Servers before 2024 send no `done_reason`.
    let old = json!({"model": "llama2", "done": true, "total_duration": 1});
    assert_eq!(answer(&[text("a"), old]).finish, FinishReason::Stop);
}

#[test]
fn a_call_that_the_server_could_not_parse_is_malformed() {
    let words = "error parsing tool call: raw='{\"city\"', err=unexpected end of JSON input";
    let answer = answer(&[thought("Hm."), json!({"error": words})]);
    assert_eq!(answer.finish, FinishReason::MalformedToolCall);
    assert_eq!(answer.warnings[0].message, words);
    let nameless = calls(&json!([{"function": {"name": " "}}, {}]));
    let answer = answer_of(decoder(), &[nameless, done("stop")]);
    assert_eq!(answer.finish, FinishReason::MalformedToolCall);
    assert_eq!(answer.warnings.len(), 1);
}

#[test]
fn an_answer_outside_the_constraint_is_text_with_a_warning() {
    for words in [
        "I would rather not.",
        "{\"name\": \"delete_everything\", \"parameters\": {}}",
        "{\"name\": 3}",
        "{}",
        "{\"tool\": \"get_weather\"}",
        "[{\"name\": \"get_weather\"}]",
        "{\"parameters\": {}, \"response\": 1}",
        "{\"name\": \"get_weather",
    ] {
        let answer = answer_of(held(true), &[text(words), done("stop")]);
        assert_eq!(answer.message.text(), words);
        assert_eq!(answer.finish, FinishReason::Stop);
        let kinds: Vec<_> = answer.warnings.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, [WarningKind::ToolChoiceRelaxed], "{words}");
    }
}

#[test]
fn a_constrained_answer_in_the_thinking_field_is_a_call() {
    let call = "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Kiel\"}}";
    let (begun, rest) = call.split_at(20);
    let taken = answer_of(held(false), &[thought(begun), thought(rest), done("stop")]);
    assert_eq!(uses(&taken), [("call_local_1", "get_weather")]);
    assert_eq!(taken.finish, FinishReason::ToolUse);
    assert!(taken.warnings.is_empty());
    // Reasoning is not read as the call if the answer has text, or if the reasoning is not exactly
    // a call.
    let both = [thought(call), text("Hello."), done("stop")];
    assert_eq!(answer_of(held(false), &both).finish, FinishReason::Stop);
    for thoughts in [&call[..40], "{\"name\": \"delete\", \"parameters\": {}}"] {
        let answer = answer_of(held(false), &[thought(thoughts), done("stop")]);
        assert_eq!(uses(&answer), []);
        assert_eq!(answer.warnings[0].kind, WarningKind::ToolChoiceRelaxed);
    }
    let more = [thought("I think: "), thought(call), done("stop")];
    assert_eq!(uses(&answer_of(held(false), &more)), []);
    // The reasoning of an unconstrained answer is never read as a call.
    assert_eq!(uses(&answer(&[thought(call), done("stop")])), []);
}

#[test]
fn text_after_a_constrained_answer_follows_the_call() {
    let lines = [
        thought("Weather."),
        text("{\"name\":\"list_cities\",\"parameters\":{}}\n"),
        text("There."),
        done("stop"),
    ];
    let answer = answer_of(held(false), &lines);
    assert_eq!(uses(&answer), [("call_local_1", "list_cities")]);
    assert_eq!(answer.message.text(), "There.");
    assert_eq!(answer.finish, FinishReason::ToolUse);
}

#[test]
fn the_first_events_contain_the_outcome_and_the_warnings() {
    let relaxed = ToolChoiceOutcome::Relaxed { why: "so".into() };
    let warning = Warning::new(WarningKind::ToolChoiceRelaxed, "so");
    let decoder = ChatDecoder::new(
        model(),
        relaxed.clone(),
        vec![warning.clone()],
        ToolUseIds::default(),
    );
    let answer = answer_of(
        decoder,
        &[json!({"status": "loading"}), text("a"), done("stop")],
    );
    assert_eq!(answer.tool_choice, relaxed);
    assert_eq!(answer.warnings, [warning]);
    assert_eq!(answer.model.as_deref(), Some("qwen3:8b"));
}

#[path = "stream_laws_tests.rs"]
mod laws;

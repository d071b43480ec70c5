use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, ChatResponse, Message, Part, ResponseAccumulator, Role, ToolInput, ToolUse, Usage,
};

use super::*;

fn model() -> ModelId {
    ModelId::new("ollama", "qwen3:8b")
}

fn decoder() -> ChatDecoder {
    let native = ToolChoiceOutcome::Native;
    ChatDecoder::new(model(), native, Vec::new(), LocalIds::default())
}

fn held(may_answer: bool) -> ChatDecoder {
    let form = Form {
        tools: vec!["get_weather".into(), "list_cities".into()],
        may_answer,
    };
    decoder().with_form(Some(form))
}

/// Returns the events before the end or the error, and the error.
fn run(mut decoder: ChatDecoder, lines: &[Value]) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let mut events = Vec::new();
    for line in lines {
        if let Err(error) = decoder.frame("", &line.to_string(), &mut events) {
            return (events, Err(error));
        }
    }
    let end = decoder.end(&mut events);
    (events, end)
}

fn answer_of(decoder: ChatDecoder, lines: &[Value]) -> ChatResponse {
    let (events, end) = run(decoder, lines);
    end.unwrap();
    let mut answer = ResponseAccumulator::default();
    for event in &events {
        answer.push(event).unwrap();
    }
    answer.finish().unwrap()
}

fn answer(lines: &[Value]) -> ChatResponse {
    answer_of(decoder(), lines)
}

fn failure(lines: &[Value]) -> ModelError {
    let (events, end) = run(decoder(), lines);
    let is_finish = |event: &ModelEvent| matches!(event, ModelEvent::Finished { .. });
    assert!(!events.iter().any(is_finish), "{events:?}");
    end.unwrap_err()
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
fn case_01_stop_with_a_call_is_tool_use() {
    let one = call(Some("call_1"), "get_weather", &json!({"city": "Kiel"}));
    let answer = answer(&[calls(&json!([one])), done("stop")]);
    assert_eq!(answer.finish, FinishReason::ToolUse);
    assert_eq!(answer.finish_raw.as_deref(), Some("stop"));
}

#[test]
fn case_02_several_calls_in_one_chunk_are_all_kept() {
    let two = json!([
        call(Some("a"), "get_weather", &json!({"z": 1, "a": 2})),
        call(Some("b"), "list_cities", &json!({})),
    ]);
    let answer = answer(&[text("Both."), calls(&two), done("stop")]);
    assert_eq!(uses(&answer), [("a", "get_weather"), ("b", "list_cities")]);
    // The keys are in the order of the model.
    let first = answer.message.tool_uses().next().unwrap();
    let keys: Vec<_> = first.input.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["z", "a"]);
    assert_eq!(answer.message.parts[0].as_text(), Some("Both."));
}

#[test]
fn case_05_missing_ids_become_unique_local_ones() {
    let same = || call(None, "get_weather", &json!({}));
    let lines = [
        calls(&json!([same(), same()])),
        calls(&json!([same()])),
        done("stop"),
    ];
    let first = answer(&lines);
    let ids = ["call_local_1", "call_local_2", "call_local_3"];
    assert_eq!(uses(&first), ids.map(|id| (id, "get_weather")));

    // The id is not one of the conversation.
    let used = ToolUse::new("call_local_1", "get_weather", ToolInput::parse("{}"));
    let request = ChatRequest::new([Message::new(Role::Assistant, [Part::ToolUse(used)])]);
    let native = ToolChoiceOutcome::Native;
    let next = ChatDecoder::new(model(), native, Vec::new(), LocalIds::after(&request));
    let second = answer_of(next, &[calls(&json!([same()])), done("stop")]);
    assert_eq!(uses(&second), [("call_local_2", "get_weather")]);
}

#[test]
fn case_10_and_26_no_arguments_are_the_empty_object() {
    let empty = [json!({}), json!(null), json!(""), json!("null")];
    let list: Vec<_> = empty.iter().map(|it| call(None, "f", it)).collect();
    let without = json!({"function": {"name": "f"}});
    let answer = answer(&[calls(&json!(list)), calls(&json!([without])), done("stop")]);
    let inputs: Vec<_> = answer.message.tool_uses().map(|it| &it.input).collect();
    assert_eq!(inputs.len(), 5);
    for input in inputs {
        assert_eq!(input.as_object().map(serde_json::Map::len), Some(0));
    }
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
fn case_15_an_error_after_200_and_an_early_end_are_no_answers() {
    let cut = failure(&[text("Half")]);
    assert_eq!(cut.kind, ModelErrorKind::Interrupted);
    let told = failure(&[text("Half"), json!({"error": "the model failed"})]);
    assert_eq!(told.kind, ModelErrorKind::Interrupted);
    assert_eq!(told.message(), "the model failed");
    assert_eq!(failure(&[]).kind, ModelErrorKind::Interrupted);
    // A complete call is not executed either, because the answer has no end.
    let call = call(None, "f", &json!({}));
    let cut = failure(&[calls(&json!([call]))]);
    assert_eq!(cut.kind, ModelErrorKind::Interrupted);
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
        let error = decoder().frame("", line, &mut events).unwrap_err();
        assert_eq!(error.kind, expected, "{line}");
        assert!(events.is_empty());
    }
}

#[test]
fn case_17_length_beats_tool_calls() {
    let one = call(Some("a"), "f", &json!({"city": "Kiel"}));
    let cut = answer(&[calls(&json!([one])), text("And"), done("length")]);
    assert_eq!(cut.finish, FinishReason::Length);
    // The server sends only complete calls.
    assert!(
        cut.message
            .tool_uses()
            .all(|it| it.input.as_object().is_some())
    );
}

#[test]
fn case_19_entries_with_the_same_index_are_calls_of_their_own() {
    let list = json!([
        call(Some("a"), "f", &json!({})),
        call(Some(""), "f", &json!({})),
        call(Some("a"), "f", &json!({})),
    ]);
    let answer = answer(&[calls(&list), done("stop")]);
    let expected = [("a", "f"), ("call_local_1", "f"), ("call_local_2", "f")];
    assert_eq!(uses(&answer), expected);
}

#[test]
fn case_21_absent_usage_is_not_zero() {
    assert_eq!(answer(&[text("a"), done("stop")]).usage, Usage::default());
    // Older servers do not count a fully cached prompt.
    let mut last = done("stop");
    last["eval_count"] = json!(7);
    let usage = answer(&[text("a"), last]).usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (None, Some(7)));
}

#[test]
fn case_27_a_call_in_the_last_line_is_kept() {
    let mut last = done("stop");
    last["message"]["tool_calls"] = json!([call(Some("a"), "f", &json!({"x": 1}))]);
    let answer = answer(&[last]);
    assert_eq!(uses(&answer), [("a", "f")]);
    assert_eq!(answer.finish, FinishReason::ToolUse);
}

#[test]
fn thinking_is_a_separate_part_with_state() {
    let lines = [
        thought("One"),
        thought(" and two."),
        text("So: "),
        text("three."),
        thought("Or four?"),
        text("Four."),
        done("stop"),
    ];
    let answer = answer(&lines);
    let shown: Vec<_> = answer
        .message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => ("text", text.text.as_str()),
            Part::Reasoning(it) => {
                let state = it.provider_state.as_ref().unwrap();
                assert_eq!(
                    state.for_model(&model()),
                    Some(&json!({"field": "thinking"}))
                );
                ("reasoning", it.text.as_str())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        ("reasoning", "One and two."),
        ("text", "So: three."),
        ("reasoning", "Or four?"),
        ("text", "Four."),
    ];
    assert_eq!(shown, expected);
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
    // Servers before 2024 send none.
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
fn a_constrained_answer_is_streamed_as_a_call() {
    let pieces = [
        "{\"name",
        "\": \"get_wea",
        "ther\", \"parameters\"",
        ": {\"city\":",
        " \"Kiel\"}",
        "}",
    ];
    let mut lines: Vec<_> = pieces.iter().map(|it| text(it)).collect();
    lines.push(done("stop"));
    let (events, end) = run(held(false), &lines);
    end.unwrap();
    let inputs: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::ToolInputDelta { json, .. } => Some(json.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(inputs, ["{\"city\":", " \"Kiel\"}"]);
    let answer = answer_of(held(false), &lines);
    assert_eq!(uses(&answer), [("call_local_1", "get_weather")]);
    assert_eq!(answer.finish, FinishReason::ToolUse);
    assert_eq!(answer.message.parts.len(), 1);
    assert!(answer.warnings.is_empty());
}

#[test]
fn case_17_a_form_that_was_cut_off_is_never_executed() {
    let begun = [
        text("{\"name\": \"get_weather\", \"parameters\": {\"city\": \"K"),
        done("length"),
    ];
    let cut = answer_of(held(false), &begun);
    assert_eq!(cut.finish, FinishReason::Length);
    let call = cut.message.tool_uses().next().unwrap();
    assert!(matches!(call.input, ToolInput::Malformed { .. }));
    // Also if the server reports `stop`.
    let stopped = [begun[0].clone(), done("stop")];
    let cut = answer_of(held(false), &stopped);
    let call = cut.message.tool_uses().next().unwrap();
    assert!(matches!(call.input, ToolInput::Malformed { .. }));
    // Without the name of the tool it is not a call.
    let unknown = answer_of(held(false), &[text("{\"name\": \"get_"), done("length")]);
    assert_eq!(unknown.message.text(), "{\"name\": \"get_");
    assert_eq!(unknown.finish, FinishReason::Length);
    assert!(unknown.warnings.is_empty());
}

#[test]
fn an_answer_of_a_constraint_with_tools_is_its_value() {
    let pieces = [
        "{ \"response\" :",
        " {\"sky\": \"a } b\", \"n\"",
        ": [1, 2]}",
        " }\n",
    ];
    let mut lines: Vec<_> = pieces.iter().map(|it| text(it)).collect();
    lines.push(done("stop"));
    let answer = answer_of(held(true), &lines);
    assert_eq!(answer.message.text(), "{\"sky\": \"a } b\", \"n\": [1, 2]}");
    assert_eq!(answer.finish, FinishReason::Stop);
    assert!(answer.warnings.is_empty());
    // Without a constraint it is not a call.
    let strayed = answer_of(held(false), &lines);
    assert_eq!(strayed.message.text(), pieces.concat());
    assert_eq!(strayed.warnings[0].kind, WarningKind::ToolChoiceRelaxed);
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
    // Not if there is an answer, or if the thinking has more or less than the call.
    let both = [thought(call), text("Hello."), done("stop")];
    assert_eq!(answer_of(held(false), &both).finish, FinishReason::Stop);
    for thoughts in [&call[..40], "{\"name\": \"delete\", \"parameters\": {}}"] {
        let answer = answer_of(held(false), &[thought(thoughts), done("stop")]);
        assert_eq!(uses(&answer), []);
        assert_eq!(answer.warnings[0].kind, WarningKind::ToolChoiceRelaxed);
    }
    let more = [thought("I think: "), thought(call), done("stop")];
    assert_eq!(uses(&answer_of(held(false), &more)), []);
    // The thinking of an unconstrained answer stays thinking.
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
fn nothing_is_read_after_the_end() {
    let (events, end) = run(
        decoder(),
        &[text("a"), done("stop"), text("b"), json!({"error": "x"})],
    );
    end.unwrap();
    assert!(matches!(events.last(), Some(ModelEvent::Finished { .. })));
}

#[test]
fn the_first_events_contain_the_outcome_and_the_warnings() {
    let relaxed = ToolChoiceOutcome::Relaxed { why: "so".into() };
    let warning = Warning::new(WarningKind::ToolChoiceRelaxed, "so");
    let decoder = ChatDecoder::new(
        model(),
        relaxed.clone(),
        vec![warning.clone()],
        LocalIds::default(),
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

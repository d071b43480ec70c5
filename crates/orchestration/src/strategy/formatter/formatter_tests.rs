use proptest::prelude::*;
use serde_json::json;
use switchboard_domain::{
    ChatRequest, FinishReason, Message, ModelCapabilities, Part, Role, ToolInput, ToolUse,
};

use super::*;
use crate::strategy::GatherFormat;

fn can(structured_output: bool, forced_tool_choice: bool) -> ModelCapabilities {
    ModelCapabilities {
        structured_output: Some(structured_output),
        forced_tool_choice: Some(forced_tool_choice),
        ..ModelCapabilities::default()
    }
}

fn state(capabilities: &ModelCapabilities) -> FormatState {
    FormatState::new(&GatherFormat::default(), capabilities)
}

fn with_schema(schema: Value) -> FormatState {
    let settings = GatherFormat {
        schema: Some(schema),
        ..GatherFormat::default()
    };
    FormatState::new(&settings, &can(false, true))
}

fn calls(inputs: &[ToolInput]) -> Message {
    let parts = inputs
        .iter()
        .enumerate()
        .map(|(n, input)| Part::ToolUse(ToolUse::new(format!("id_{n}"), TOOL, input.clone())));
    Message::new(Role::Assistant, parts)
}

fn call(input: Value) -> Message {
    calls(&[ToolInput::from_json(input)])
}

fn hello() -> Value {
    json!({"conversation": [{"type": "text", "content": "Hello"}]})
}

fn done(decision: FormatDecision) -> FormattedAnswer {
    match decision {
        FormatDecision::Done(formatted) => formatted,
        other => panic!("not an answer: {other:?}"),
    }
}

fn read(state: &mut FormatState, answer: &Message) -> FormatDecision {
    state.evaluate_formatting_response(answer, &FinishReason::Stop, "")
}

#[test]
fn the_schema_has_the_form_of_the_contract() {
    let schema = answer_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&json!({"thinking": "t", "conversation": [
        {"type": "text", "content": "# x"},
        {"type": "artifact", "artifactType": "code", "title": "T", "content": "x"},
        {"type": "artifact", "artifactType": "code", "title": "T", "content": "x", "language": "c"},
    ]})));
    for wrong in [
        json!({}),
        json!({"conversation": "x"}),
        json!({"conversation": []}),
        json!({"conversation": [{"type": "text"}]}),
        json!({"conversation": [{"type": "artifact", "content": "x"}]}),
        json!({"conversation": [{"content": "x"}]}),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn the_model_is_told_to_use_only_the_formatter() {
    for (capabilities, name) in [(can(true, true), "native"), (can(false, false), "auto")] {
        let state = state(&capabilities);
        let told = format!(
            "{}---\n{}\n",
            state.system_prompt(Some("Be kind.\n")),
            state.build_answer_request().text()
        );
        insta::assert_snapshot!(name, told);
    }
    let own = with_schema(json!({"type": "object"})).system_prompt(None);
    assert!(
        own.contains("JSON Schema") && !own.contains("artifact"),
        "{own}"
    );
}

#[test]
fn text_outside_of_the_tool_becomes_part_of_the_answer() {
    let mut both = call(hello());
    both.parts.insert(0, Part::text("Words before."));
    let formatted = done(read(&mut state(&can(false, true)), &both));
    assert_eq!(formatted.to_markdown(), "Words before.\n\nHello");
    assert_eq!(formatted.repairs.len(), 1);
    // The response contains only text: plain or JSON.
    for (text, answer) in [
        ("Just words.".to_owned(), "Just words."),
        (hello().to_string(), "Hello"),
        (format!("```json\n{}\n```", hello()), "Hello"),
    ] {
        let formatted = done(read(
            &mut state(&can(false, false)),
            &Message::assistant(text),
        ));
        assert_eq!(formatted.to_markdown(), answer);
        assert!(!formatted.repairs.is_empty());
    }
    // An answer that the text repeats occurs once.
    let mut twice = call(hello());
    twice.parts.insert(0, Part::text(hello().to_string()));
    assert_eq!(
        done(read(&mut state(&can(false, true)), &twice)).to_markdown(),
        "Hello"
    );
    let mut preview = call(hello());
    preview.parts.insert(0, Part::text("Hello"));
    assert_eq!(
        done(read(&mut state(&can(false, true)), &preview)).to_markdown(),
        "Hello"
    );
}

#[test]
fn malformed_input_is_repaired_if_possible() {
    let fenced = ToolInput::parse_input(&format!("```json\n{}\n```", hello()));
    assert!(matches!(fenced, ToolInput::Malformed { .. }));
    let formatted = done(read(&mut state(&can(false, true)), &calls(&[fenced])));
    assert_eq!(formatted.to_markdown(), "Hello");
    assert_eq!(formatted.repairs.len(), 1);
    let two = calls(&[ToolInput::from_json(hello()), ToolInput::from_json(hello())]);
    let formatted = done(read(&mut state(&can(false, true)), &two));
    assert_eq!(formatted.items.len(), 2);
}

#[test]
fn an_answer_is_never_empty() {
    let nothing = Message::new(Role::Assistant, []);
    let mut first = state(&can(true, true));
    let FormatDecision::Reask { message, .. } = read(&mut first, &nothing) else {
        panic!("nothing was read as something");
    };
    assert_eq!(message.role, Role::User);
    // A format mode that failed is not tried again.
    assert_eq!(first.current_mode(), FormatterMode::Named);
    let mut second = first.clone();
    assert_eq!(read(&mut first, &nothing), FormatDecision::Silent);
    let decision = second.evaluate_formatting_response(
        &nothing,
        &FinishReason::Stop,
        " Found three.\nNEED MORE DATA: their names",
    );
    assert_eq!(done(decision).to_markdown(), "Found three.");
    // The text of the first response is used.
    let mut state = state(&can(false, true));
    read(&mut state, &call(json!({"foo": "first"})));
    assert_eq!(done(read(&mut state, &nothing)).to_markdown(), "first");
}

#[test]
fn a_call_of_another_tool_is_not_executed() {
    let other = ToolUse::new("id_9", "find", ToolInput::from_json(json!({})));
    let message = Message::new(Role::Assistant, [Part::ToolUse(other)]);
    let mut state = state(&can(false, true));
    let FormatDecision::Reask { message, error } = read(&mut state, &message) else {
        panic!("it was read");
    };
    assert!(error.contains("does not call"), "{error}");
    assert_eq!(message.tool_results().count(), 1);
    assert_eq!(state.current_mode(), FormatterMode::Required);
    // A formatter call with a slightly different tool name is accepted.
    let named = ToolUse::new(
        "1",
        "functions.Response_Formatter",
        ToolInput::from_json(hello()),
    );
    let message = Message::new(Role::Assistant, [Part::ToolUse(named)]);
    assert_eq!(done(read(&mut state, &message)).to_markdown(), "Hello");
}

#[test]
fn an_answer_at_the_output_limit_keeps_its_text() {
    let raw = "{\"conversation\": [{\"type\": \"text\", \"content\": \"Half an ans";
    let cut = calls(&[ToolInput::malformed_input(raw, "cut off")]);
    let mut tool = state(&can(false, true));
    let formatted = done(tool.evaluate_formatting_response(&cut, &FinishReason::Length, ""));
    assert_eq!(formatted.to_markdown(), "Half an ans");
    assert!(
        formatted
            .repairs
            .contains(&"the answer was truncated".to_owned())
    );
    let mut native = state(&can(true, true));
    let decision =
        native.evaluate_formatting_response(&Message::assistant(raw), &FinishReason::Length, "");
    assert_eq!(done(decision).to_markdown(), "Half an ans");
    // After an output limit, no second response is requested.
    let empty = Message::new(Role::Assistant, []);
    let decision =
        state(&can(true, true)).evaluate_formatting_response(&empty, &FinishReason::Length, "");
    assert_eq!(decision, FormatDecision::Silent);
}

#[test]
fn an_answer_with_a_custom_schema_is_validated_and_returned_as_data() {
    let schema = json!({
        "type": "object",
        "properties": {"sum": {"type": "number"}},
        "required": ["sum"],
    });
    let mut state = with_schema(schema.clone());
    let sent = state.prepare_request(ChatRequest::default());
    assert_eq!(sent.tools[0].input_schema, schema);
    let FormatDecision::Reask { error, .. } = read(&mut state, &call(json!({"sum": "x"}))) else {
        panic!("it was read");
    };
    assert!(error.contains("/sum"), "{error}");
    let formatted = done(read(&mut state, &call(json!({"sum": 3}))));
    assert_eq!(formatted.to_markdown(), "{\n  \"sum\": 3\n}");
    let mut state = with_schema(schema);
    read(&mut state, &Message::assistant("It is three."));
    let formatted = done(read(&mut state, &Message::assistant("It is three.")));
    assert_eq!(formatted.to_markdown(), "It is three.");
    assert_eq!(formatted.fault.as_deref(), Some("it is not JSON"));
}

/// Generates responses of a model.
fn answer() -> impl Strategy<Value = Message> {
    let json = prop_oneof![
        Just(hello()),
        Just(json!({})),
        Just(json!({"foo": "bar"})),
        "\\PC{0,12}".prop_map(|text| json!({"conversation": text})),
    ];
    let part = prop_oneof![
        "\\PC{0,12}".prop_map(Part::text),
        json.clone().prop_map(|json| Part::text(json.to_string())),
        (json, prop::sample::select(vec![TOOL, "find"])).prop_map(|(json, name)| Part::ToolUse(
            ToolUse::new("id", name, ToolInput::from_json(json))
        )),
        "\\PC{0,20}|\\{\"conversation\": \\[\"[a-z]{0,5}".prop_map(|raw| Part::ToolUse(
            ToolUse::new("id", TOOL, ToolInput::malformed_input(raw, "not valid"))
        )),
    ];
    prop::collection::vec(part, 0..3).prop_map(|parts| Message::new(Role::Assistant, parts))
}

fn says_something(message: &Message) -> bool {
    !message.text().trim().is_empty()
        || message
            .tool_uses()
            .filter(|tool_use| tool_use.name == TOOL)
            .any(|tool_use| match &tool_use.input {
                ToolInput::Object(input) => input.values().any(|value| match value {
                    Value::String(text) => !text.trim().is_empty(),
                    other => !other.is_null(),
                }),
                ToolInput::Malformed { raw, .. } => !raw.trim().is_empty(),
            })
}

proptest! {
    /// After at most two responses there is an answer, unless the model never returned any text.
    #[test]
    fn never_empty_if_the_model_said_anything(
        answers in prop::collection::vec(answer(), 2),
        native in any::<bool>(),
        own in any::<bool>(),
        finish in prop::sample::select(vec![
            FinishReason::Stop, FinishReason::ToolUse, FinishReason::Length, FinishReason::Refusal,
        ]),
    ) {
        let schema = own.then(|| json!({"type": "object", "required": ["foo"]}));
        let settings = GatherFormat { schema, ..GatherFormat::default() };
        let mut state = FormatState::new(&settings, &can(native, true));
        let mut said = false;
        let mut ended = false;
        for answer in &answers {
            said |= says_something(answer);
            match state.evaluate_formatting_response(answer, &finish, "") {
                FormatDecision::Done(formatted) => {
                    prop_assert!(!formatted.to_markdown().is_empty());
                    prop_assert!(own || formatted.fault.is_none());
                    ended = true;
                    break;
                }
                FormatDecision::Reask { message, .. } => {
                    prop_assert_eq!(message.tool_results().count(), answer.tool_uses().count());
                }
                FormatDecision::Silent => {
                    prop_assert!(!said);
                    ended = true;
                    break;
                }
            }
        }
        prop_assert!(ended);
    }
}

//! Tests of the phase that gathers tool results and of the phase that formats the answer.

mod support;

use serde_json::json;
use support::{answer, calls, request, tools};
use switchboard_domain::{
    ChatRequest, FinishReason, Message, Part, Role, ToolChoice, ToolDefinition, ToolInput,
    ToolResult, ToolUse,
};

const QUESTION: &str = "What is the account value of customer 42?";
const ASK: &str = "Write the answer to my question now. Use only response_formatter.";

fn formatter() -> ToolDefinition {
    let schema = json!({
        "type": "object",
        "properties": {"conversation": {"type": "array", "items": {"type": "object"}}},
        "required": ["conversation"],
    });
    ToolDefinition::new("response_formatter", "Gives the answer.", schema)
}

fn form(messages: Vec<Message>) -> ChatRequest {
    ChatRequest::new(messages)
        .with_tools([formatter()])
        .with_tool_choice(ToolChoice::Only(vec!["response_formatter".to_owned()]))
}

fn called(text: &str) -> Vec<Message> {
    let input = ToolInput::from_json(json!({"customer_id": 42}));
    let tool_use = ToolUse::new("call_1", "calculate_account_value", input);
    vec![
        Message::user(QUESTION),
        Message::new(
            Role::Assistant,
            [Part::text("NEED MORE DATA: x"), Part::ToolUse(tool_use)],
        ),
        Message::from_tool_results([ToolResult::text("call_1", "calculate_account_value", text)]),
    ]
}

fn content(request: &ChatRequest) -> String {
    let response = answer(request);
    assert_eq!(response.finish, FinishReason::ToolUse);
    let calls = calls(&response);
    assert_eq!(calls[0].0, "response_formatter");
    calls[0].1["conversation"][0]["content"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn calls_of_the_gathering_phase_have_a_text() {
    let gather = Message::system("To go on, write `NEED MORE DATA:` and why.");
    let response = answer(&request(
        vec![gather, Message::user(QUESTION)],
        &tools("customer_service"),
    ));
    assert!(response.message.text().starts_with("NEED MORE DATA: "));
    assert_eq!(calls(&response).len(), 1);
    let plain = answer(&request(
        vec![Message::user(QUESTION)],
        &tools("customer_service"),
    ));
    assert_eq!(plain.message.text(), "");
}

#[test]
fn the_last_text_is_the_formatted_answer() {
    let mut messages = called("12 EUR");
    messages.push(Message::assistant("It is 12 EUR."));
    messages.push(Message::user(ASK));
    assert_eq!(content(&form(messages)), "It is 12 EUR.");
}

#[test]
fn without_a_text_the_results_are_the_answer() {
    let mut messages = called("12 EUR");
    messages.push(Message::user(ASK));
    let request = form(messages);
    assert_eq!(content(&request), "12 EUR");
    let response = answer(&request);
    let id = &response.message.tool_uses().next().unwrap().id;
    assert_ne!(id, "call_1");
}

#[test]
fn without_results_the_demo_model_describes_itself() {
    let said = content(&form(vec![Message::user("Hello!"), Message::user(ASK)]));
    assert!(!said.is_empty() && !said.contains("formatter"), "{said}");
}

/// Returns the input of the call of a formatter tool with the input schema `schema`.
fn formatted(schema: serde_json::Value, messages: Vec<Message>) -> serde_json::Value {
    let formatter = ToolDefinition::new("response_formatter", "Gives the answer.", schema);
    let request = ChatRequest::new(messages)
        .with_tools([formatter])
        .with_tool_choice(ToolChoice::Only(vec!["response_formatter".to_owned()]));
    let calls = calls(&answer(&request));
    let expected = (1, "response_formatter");
    assert_eq!((calls.len(), calls[0].0.as_str()), expected);
    calls[0].1.clone()
}

#[test]
fn fields_of_a_custom_schema_come_from_results_question_and_text() {
    let schema = json!({
        "type": "object",
        "properties": {
            "customer_id": {"type": "integer"},
            "account_value": {"type": "number"},
            "summary": {"type": "string"},
            "approved": {"type": "boolean"},
        },
        "required": ["customer_id", "account_value", "summary", "approved"],
    });
    let mut messages =
        called(r#"{"customer": {"id": 42, "name": "Noor"}, "account_value": 530.19}"#);
    messages.push(Message::assistant("It is 530.19 EUR."));
    messages.push(Message::user(ASK));
    let filled = formatted(schema, messages);
    // The conversation has no value for `approved`, so the field is omitted.
    let expected =
        json!({"customer_id": 42, "account_value": 530.19, "summary": "It is 530.19 EUR."});
    assert_eq!(filled, expected);
    let schema = json!({"type": "object", "properties": {"customer_id": {"type": "integer"}}});
    let asked = vec![Message::user(QUESTION), Message::user(ASK)];
    assert_eq!(formatted(schema, asked), json!({"customer_id": 42}));
}

#[test]
fn a_schema_without_fields_gets_an_empty_input() {
    assert_eq!(
        formatted(json!({"type": "object"}), vec![Message::user(QUESTION)]),
        json!({})
    );
}

//! Tool lists of real servers, and a player for conversations with the demo model.
#![allow(
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "support of tests; each file uses a part of it"
)]

use std::{collections::BTreeSet, fmt::Write, sync::Arc};

use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, ChatRequest, ChatResponse, Message, ResponseAccumulator, ToolContent,
    ToolDefinition, ToolInput, ToolResult, ToolUse,
};
use switchboard_providers_offline::{Date, DemoModel};

/// The date of the word "today" in every test.
pub(crate) const TODAY: Date = Date::constant(2026, 10, 21);

/// Returns a model for which "today" is [`TODAY`].
pub(crate) fn model() -> DemoModel {
    DemoModel::new().with_today(TODAY)
}

/// Returns the tools in the file `tests/fixtures/<name>.json`.
pub(crate) fn tools_of(name: &str) -> Vec<Arc<ToolDefinition>> {
    let text = match name {
        "customer_service" => include_str!("../fixtures/customer_service.json"),
        "everything" => include_str!("../fixtures/everything.json"),
        "filesystem" => include_str!("../fixtures/filesystem.json"),
        "git" => include_str!("../fixtures/git.json"),
        "memory" => include_str!("../fixtures/memory.json"),
        "time" => include_str!("../fixtures/time.json"),
        other => panic!("no fixture {other}"),
    };
    serde_json::from_str(text).expect("a fixture is a list of tools")
}

/// Returns the tools of several fixtures. `names` are separated by spaces.
pub(crate) fn tools(names: &str) -> Vec<Arc<ToolDefinition>> {
    names.split(' ').flat_map(tools_of).collect()
}

pub(crate) fn request(messages: Vec<Message>, tools: &[Arc<ToolDefinition>]) -> ChatRequest {
    ChatRequest::new(messages).with_tools(tools.to_vec())
}

/// Returns the answer to a request, and asserts that the order of its events is valid.
pub(crate) fn answer(request: &ChatRequest) -> ChatResponse {
    let model = model();
    let mut stream = model
        .stream(request)
        .now_or_never()
        .expect("the stream does not wait")
        .expect("the model does not fail");
    let mut whole = ResponseAccumulator::default();
    while let Some(event) = stream
        .next()
        .now_or_never()
        .expect("the stream does not wait")
    {
        whole
            .push(&event.expect("the model does not fail"))
            .expect("events in the order of the grammar");
    }
    whole.finish().expect("an end")
}

/// Returns the calls of an answer as `(name, input)`.
pub(crate) fn calls(response: &ChatResponse) -> Vec<(String, Value)> {
    let call = |tool_use: &ToolUse| match &tool_use.input {
        ToolInput::Object(input) => (tool_use.name.clone(), input.as_value().clone()),
        ToolInput::Malformed { reason, .. } => panic!("malformed input: {reason}"),
    };
    response.message.tool_uses().map(call).collect()
}

/// Returns the calls and the text of the first answer to a question.
pub(crate) fn first(
    question: &str,
    tools: &[Arc<ToolDefinition>],
) -> (Vec<(String, Value)>, String) {
    let response = answer(&request(vec![Message::user(question)], tools));
    (calls(&response), response.message.text())
}

/// A function that runs a tool: it gets the name and the input, and returns the result or an error.
pub(crate) type Host = dyn Fn(&str, &Value) -> Result<Value, String>;

/// Plays a conversation: asks each question and runs the requested tools until there is an answer.
/// Returns the conversation as text.
pub(crate) fn play(questions: &[&str], tools: &[Arc<ToolDefinition>], host: &Host) -> String {
    let mut messages: Vec<Message> = Vec::new();
    let mut transcript = String::new();
    for question in questions {
        messages.push(Message::user(*question));
        writeln!(transcript, "user:   {question}").expect("writing to a string does not fail");
        turn(&mut messages, tools, host, &mut transcript);
    }
    transcript
}

fn turn(
    messages: &mut Vec<Message>,
    tools: &[Arc<ToolDefinition>],
    host: &Host,
    transcript: &mut String,
) {
    let mut made = BTreeSet::new();
    for _ in 0..10 {
        let response = answer(&request(messages.clone(), tools));
        messages.push(response.message.clone());
        let text = response.message.text();
        if !text.is_empty() {
            writeln!(transcript, "model:  {}", text.replace('\n', "\n        "))
                .expect("writing to a string does not fail");
        }
        let mut results = Vec::new();
        for tool_use in response.message.tool_uses() {
            let input = match &tool_use.input {
                ToolInput::Object(input) => input.as_value().clone(),
                ToolInput::Malformed { reason, .. } => panic!("malformed input: {reason}"),
            };
            writeln!(transcript, "call:   {} {input}", tool_use.name)
                .expect("writing to a string does not fail");
            assert!(
                made.insert((tool_use.name.clone(), input.to_string())),
                "an identical call in one turn: {} {input}",
                tool_use.name
            );
            let result = result(tool_use, host(&tool_use.name, &input));
            writeln!(transcript, "result: {}", result.as_text())
                .expect("writing to a string does not fail");
            results.push(result);
        }
        if results.is_empty() {
            return;
        }
        messages.push(Message::from_tool_results(results));
    }
    panic!("the turn does not end:\n{transcript}");
}

/// Returns a tool result: a string as text, other values as structured content with their JSON
/// text.
fn result(tool_use: &ToolUse, given: Result<Value, String>) -> ToolResult {
    match given {
        Ok(Value::String(text)) => ToolResult::text(&tool_use.id, &tool_use.name, text),
        Ok(data) => ToolResult {
            tool_use_id: tool_use.id.clone(),
            name: tool_use.name.clone(),
            content: vec![ToolContent::text(data.to_string())].into(),
            structured: Some(data.into()),
            is_error: false,
        },
        Err(message) => ToolResult::from_error_message(&tool_use.id, &tool_use.name, message),
    }
}

/// Returns the customers of the test host, newest first.
pub(crate) fn customers() -> Vec<Value> {
    let customer = |id: i64, name: &str, email: &str, city: &str, joined: &str| {
        json!({
            "customer_id": id, "name": name, "email": email, "city": city, "country": "Utopia", "joined": joined,
        })
    };
    vec![
        customer(
            48,
            "Ada Lovelace",
            "ada@example.org",
            "London",
            "2026-10-20",
        ),
        customer(
            47,
            "Alan Turing",
            "alan@example.org",
            "London",
            "2026-10-18",
        ),
        customer(
            42,
            "Grace Hopper",
            "grace@example.org",
            "New York",
            "2026-10-11",
        ),
        customer(
            7,
            "Alan Kay",
            "kay@example.org",
            "Springfield",
            "2026-10-01",
        ),
    ]
}

fn customer_name(id: &Value) -> Result<String, String> {
    let found = customers()
        .into_iter()
        .find(|customer| customer["customer_id"] == *id);
    let found = found.ok_or_else(|| format!("There is no customer {id}."))?;
    Ok(found["name"].as_str().unwrap_or_default().to_owned())
}

/// Runs the tools of some servers: returns fixed data in the form of the real servers.
pub(crate) fn host(name: &str, input: &Value) -> Result<Value, String> {
    let id = &input["customer_id"];
    match name {
        "get_recent_customers" => {
            let limit = input.get("limit").and_then(Value::as_u64).unwrap_or(10);
            let limit = usize::try_from(limit).expect("a small limit");
            let rows: Vec<Value> = customers().into_iter().take(limit).collect();
            Ok(json!({"customers": rows, "matching": 4}))
        }
        "calculate_account_value" => {
            let name = customer_name(id)?;
            let cents = 123_456 + (id.as_i64().unwrap_or_default() - 42) * 1_050;
            Ok(json!({
                "customer_id": id,
                "customer_name": name,
                "account_value": format!("{}.{:02}", cents / 100, cents % 100),
                "account_value_cents": cents,
                "currency": "EUR",
                "purchases": 3,
            }))
        }
        "create_support_ticket" => Ok(json!({
            "ticket_id": 1,
            "customer_id": id,
            "customer_name": customer_name(id)?,
            "subject": input["subject"],
            "priority": input.get("priority").cloned().unwrap_or(json!("normal")),
            "status": "open",
        })),
        "create_entities" => Ok(json!({"entities": input["entities"]})),
        "echo" => Ok(json!(format!(
            "Echo: {}",
            input["message"].as_str().unwrap_or_default()
        ))),
        "get-sum" => {
            let sum = input["a"].as_f64().unwrap_or(0.0) + input["b"].as_f64().unwrap_or(0.0);
            Ok(json!(format!(
                "The sum of {} and {} is {sum}.",
                input["a"], input["b"]
            )))
        }
        "get-structured-content" => {
            Ok(json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}))
        }
        "list_directory" => Ok(json!({"content": "[FILE] notes.txt\n[DIR] old"})),
        other => Err(format!("the test host has no {other}")),
    }
}

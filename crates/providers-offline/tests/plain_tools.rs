//! Tools as small servers have them: no titles, no annotations, no output schemas.

mod support;

use std::sync::Arc;

use serde_json::{Value, json};
use support::first;
use switchboard_domain::ToolDefinition;

/// A tool whose parameters without a default are required.
fn tool(name: &str, about: &str, properties: &Value) -> Arc<ToolDefinition> {
    let required: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, schema)| schema.get("default").is_none())
        .map(|(name, _)| name)
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Arc::new(ToolDefinition::new(name, about, schema))
}

fn tools() -> Vec<Arc<ToolDefinition>> {
    let (text, number, whole) = (
        json!({"type": "string"}),
        json!({"type": "number"}),
        json!({"type": "integer"}),
    );
    let or = |schema: &Value, default: Value| {
        let mut schema = schema.clone();
        schema["default"] = default;
        schema
    };
    let state = json!({"type": "string", "enum": ["open", "closed", "all"], "default": "open"});
    let unit = json!({"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"});
    let email = json!({"type": "string", "format": "email"});
    let url = json!({"type": "string", "format": "uri"});
    let date = json!({"type": "string", "format": "date"});
    vec![
        tool("add", "Add two numbers", &json!({"a": whole, "b": whole})),
        tool(
            "multiply",
            "Multiply two numbers",
            &json!({"a": number, "b": number}),
        ),
        tool(
            "get_forecast",
            "Get weather forecast for a location.",
            &json!({"latitude": number, "longitude": number}),
        ),
        tool(
            "get_alerts",
            "Get weather alerts for a US state.",
            &json!({"state": text}),
        ),
        tool(
            "get_weather",
            "Get the current weather in a city",
            &json!({"city": text, "unit": unit}),
        ),
        tool(
            "web_search",
            "Search the web",
            &json!({"query": text, "max_results": or(&whole, json!(10))}),
        ),
        tool(
            "calculator",
            "Evaluates an arithmetic expression",
            &json!({"expression": text}),
        ),
        tool(
            "roll_dice",
            "Rolls dice",
            &json!({"sides": or(&whole, json!(6))}),
        ),
        tool(
            "list_issues",
            "List issues in a GitHub repository",
            &json!({"owner": text, "repo": text, "state": state}),
        ),
        tool("get_user", "Get a user by id", &json!({"user_id": text})),
        tool(
            "send_email",
            "Send an email",
            &json!({"to": email, "subject": text, "body": text}),
        ),
        tool(
            "translate",
            "Translate text to another language",
            &json!({"text": text, "target_language": text}),
        ),
        tool(
            "fetch",
            "Fetches a URL from the internet and extracts its contents as markdown.",
            &json!({"url": url, "max_length": or(&whole, json!(5000))}),
        ),
        tool(
            "create_event",
            "Create a calendar event",
            &json!({"title": text, "date": date, "time": or(&text, json!(""))}),
        ),
        tool("query", "Run a read-only SQL query", &json!({"sql": text})),
    ]
}

fn check(rows: &[(&str, Value)]) {
    let tools = tools();
    let mut wrong = Vec::new();
    for (question, expected) in rows {
        let (calls, text) = first(question, &tools);
        let found: Value = calls
            .iter()
            .map(|(name, input)| json!([name, input]))
            .collect();
        if found != *expected {
            wrong.push(format!(
                "{question}\n  wanted {expected}\n  got    {found} {text}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn questions_find_their_tool_and_arguments() {
    check(&[
        (
            "What is the sum of 2 and 3?",
            json!([["add", {"a": 2, "b": 3}]]),
        ),
        ("add 2 and 3", json!([["add", {"a": 2, "b": 3}]])),
        ("What is 2 + 3?", json!([["add", {"a": 2, "b": 3}]])),
        ("multiply 4 by 5", json!([["multiply", {"a": 4, "b": 5}]])),
        (
            "What is 4 times 5?",
            json!([["multiply", {"a": 4, "b": 5}]]),
        ),
        (
            "What's the weather in Berlin?",
            json!([["get_weather", {"city": "Berlin"}]]),
        ),
        (
            "What is the weather in Paris in fahrenheit?",
            json!([["get_weather", {"city": "Paris", "unit": "fahrenheit"}]]),
        ),
        (
            "Are there any weather alerts in California?",
            json!([["get_alerts", {"state": "California"}]]),
        ),
        (
            "forecast for latitude 52.5 and longitude 13.4",
            json!([["get_forecast", {"latitude": 52.5, "longitude": 13.4}]]),
        ),
        (
            "Search the web for rust async traits",
            json!([["web_search", {"query": "rust async traits"}]]),
        ),
        (
            "roll a 20 sided dice",
            json!([["roll_dice", {"sides": 20}]]),
        ),
        (
            "list issues for owner rust-lang and repo cargo",
            json!([["list_issues", {"owner": "rust-lang", "repo": "cargo"}]]),
        ),
        ("show user 17", json!([["get_user", {"user_id": "17"}]])),
        (
            "get user abc123",
            json!([["get_user", {"user_id": "abc123"}]]),
        ),
        (
            "Send an email to ada@example.org with subject \"Hi\" and body \"How are you?\"",
            json!([["send_email", {"to": "ada@example.org", "subject": "Hi", "body": "How are you?"}]]),
        ),
        (
            "Translate \"good morning\" to German",
            json!([["translate", {"text": "good morning", "target_language": "German"}]]),
        ),
        (
            "fetch https://example.org/page",
            json!([["fetch", {"url": "https://example.org/page"}]]),
        ),
        (
            "Create an event titled \"Standup\" on 2026-11-02",
            json!([["create_event", {"title": "Standup", "date": "2026-11-02"}]]),
        ),
        (
            "Schedule a meeting called Review for tomorrow",
            json!([["create_event", {"title": "Review", "date": "2026-10-22"}]]),
        ),
        (
            "calculate 2*(3+4)",
            json!([["calculator", {"expression": "2*(3+4)"}]]),
        ),
        (
            "run the sql query \"SELECT * FROM users\"",
            json!([["query", {"sql": "SELECT * FROM users"}]]),
        ),
    ]);
}

#[test]
fn what_is_missing_or_unknown_is_not_made_up() {
    check(&[
        ("Send an email to ada@example.org", json!([])),
        ("get user for me", json!([])),
        ("What is 9 minus 3?", json!([])),
        ("What time is it?", json!([])),
        ("roll two dice", json!([])),
        ("Delete user 17", json!([])),
    ]);
}

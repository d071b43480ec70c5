use std::sync::Arc;

use jiff::civil::Date;
use serde_json::json;
use switchboard_domain::{ToolDefinition, ToolResult};

use super::*;

fn tool(name: &str, schema: Value) -> Tool {
    Tool::new(Arc::new(ToolDefinition::new(name, "", schema)))
}

fn by_id() -> Value {
    json!({"properties": {"device_id": {"type": "integer"}}, "required": ["device_id"]})
}

fn call(tool: &Tool, input: &Value, structured: Value) -> Call {
    let mut result = ToolResult::text("1", tool.id(), structured.to_string());
    result.structured = Some(structured.into());
    Call {
        name: tool.id().to_owned(),
        input: input.as_object().cloned().unwrap_or_default(),
        result: Some(result),
        at: 1,
    }
}

fn answered(question: &str, tool: &Tool, calls: &[Call]) -> String {
    let calls: Vec<&Call> = calls.iter().collect();
    write(
        &Reading::new(question, Date::constant(2026, 10, 21)),
        tool,
        &calls,
        &calls,
    )
}

#[test]
fn the_field_that_is_asked_for_is_told_alone() {
    let tool = tool("get_device_state", by_id());
    let data = json!({"device_id": 9, "battery_level": 80, "unit": "%", "last_seen": "today"});
    let calls = [call(&tool, &json!({"device_id": 9}), data)];
    assert_eq!(
        answered("What is the battery level of device 9?", &tool, &calls),
        "The battery level of device 9 is 80 %."
    );
    assert_eq!(
        answered("When was device 9 last seen?", &tool, &calls),
        "The last seen of device 9 is today."
    );
}

#[test]
fn without_a_word_for_one_field_all_are_told() {
    let tool = tool("inspect", by_id());
    let data = json!({"device_id": 9, "on": true, "load": {"cpu": 0.5}, "tags": ["a", "b"]});
    let calls = [call(&tool, &json!({"device_id": 9}), data)];
    assert_eq!(
        answered("inspect device 9", &tool, &calls),
        "Inspect for device 9: on: yes; load cpu: 0.5; tags: a, b."
    );
}

#[test]
fn lists_are_numbered_and_empty_ones_said_to_be_empty() {
    let tool = tool("list_devices", json!({"type": "object"}));
    let rows: Vec<Value> = (1..=22)
        .map(|id| json!({"id": id, "name": format!("d{id}")}))
        .collect();
    let text = answered(
        "list devices",
        &tool,
        &[call(&tool, &json!({}), json!({"devices": rows}))],
    );
    assert!(
        text.starts_with("Devices (22):\n1. d1 (id 1)\n2. d2 (id 2)\n"),
        "{text}"
    );
    assert!(text.ends_with("\n20. d20 (id 20)\n… and 2 more"), "{text}");
    let text = answered(
        "list devices",
        &tool,
        &[call(&tool, &json!({}), json!({"devices": []}))],
    );
    assert_eq!(text, "Devices: none.");
}

#[test]
fn a_change_is_said_to_be_done() {
    let tool = tool(
        "create_device",
        json!({"properties": {"name": {"type": "string"}}}),
    );
    let data = json!({"id": 4, "name": "lamp", "state": "new"});
    let calls = [call(&tool, &json!({"name": "lamp"}), data)];
    assert_eq!(
        answered("create a device named lamp", &tool, &calls),
        "Create device for lamp: done. Id: 4; state: new."
    );
}

#[test]
fn a_failure_is_told_as_one() {
    let tool = tool("get_device_state", by_id());
    let mut failed = call(&tool, &json!({"device_id": 9}), json!({}));
    failed.result = Some(ToolResult::error("1", "x", "device 9 does not exist"));
    assert_eq!(
        answered("state of device 9", &tool, &[failed]),
        "Get device state for device 9 failed: device 9 does not exist"
    );
}

#[test]
fn text_is_given_as_it_is_and_long_text_shortened() {
    let tool = tool("read", json!({}));
    let mut read = call(&tool, &json!({}), json!({"content": "one\ntwo"}));
    assert_eq!(
        answered("read it", &tool, std::slice::from_ref(&read)),
        "one\ntwo"
    );
    read.result = Some(ToolResult::text("1", "read", "ä".repeat(3000)));
    let text = answered("read it", &tool, &[read]);
    assert_eq!(text.chars().count(), TEXT_LIMIT + 1);
}

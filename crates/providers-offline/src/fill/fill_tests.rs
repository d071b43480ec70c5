use std::sync::Arc;

use jiff::civil::Date;
use serde_json::json;
use switchboard_domain::ToolDefinition;

use super::*;

fn filled(schema: Value, text: &str) -> Filling {
    let tool = Tool::new(Arc::new(ToolDefinition::new(
        "lookup",
        "Looks things up",
        schema,
    )));
    fill(&tool, &Reading::new(text, Date::constant(2026, 10, 21)))
}

fn tickets() -> Value {
    json!({
        "type": "object",
        "properties": {
            "customer_id": {"type": "integer", "minimum": 1},
            "subject": {"type": "string"},
            "priority": {"enum": ["low", "normal", "high"]},
            "notify": {"type": "boolean", "description": "Whether to send a mail."},
        },
        "required": ["customer_id", "subject"],
    })
}

#[test]
fn a_json_object_in_the_text_goes_first() {
    let filling = filled(
        tickets(),
        r#"use {"customer_id": 3, "subject": "x", "priority": "low"} for 7"#,
    );
    assert_eq!(
        Value::Object(filling.input),
        json!({"customer_id": 3, "subject": "x", "priority": "low"})
    );
}

#[test]
fn values_by_name_need_no_order() {
    let filling = filled(
        tickets(),
        "priority: high, subject: broken screen, customer_id: 12",
    );
    assert_eq!(
        Value::Object(filling.input),
        json!({"customer_id": 12, "subject": "broken screen", "priority": "high"})
    );
}

#[test]
fn what_is_not_said_is_missing_and_not_made_up() {
    let filling = filled(tickets(), "look it up");
    assert_eq!(filling.input, JsonObject::new());
    assert_eq!(filling.missing, ["customer_id", "subject"]);
}

#[test]
fn a_value_that_is_not_allowed_is_refused_aloud() {
    let filling = filled(tickets(), "customer 0 with subject: late");
    assert_eq!(filling.refused.len(), 1);
    assert_eq!(
        (
            filling.refused[0].param.as_str(),
            filling.refused[0].said.as_str()
        ),
        ("customer_id", "0")
    );
    assert!(!filling.is_complete());
}

#[test]
fn a_list_of_values_for_one_parameter_gives_several_inputs() {
    let schema =
        json!({"properties": {"customer_id": {"type": "integer"}}, "required": ["customer_id"]});
    let inputs = filled(schema, "customers 7, 8 and 9").inputs();
    let ids: Vec<&Value> = inputs.iter().map(|input| &input["customer_id"]).collect();
    assert_eq!(ids, [&json!(7), &json!(8), &json!(9)]);
}

#[test]
fn a_default_stands_in_only_where_the_tool_cannot_do_without() {
    let schema = json!({
        "properties": {
            "unit": {"type": "string", "enum": ["celsius", "kelvin"], "default": "celsius"},
            "days": {"type": "integer", "default": 3},
        },
        "required": ["unit"],
    });
    assert_eq!(
        Value::Object(filled(schema, "look").input),
        json!({"unit": "celsius"})
    );
}

#[test]
fn an_answer_to_a_question_is_taken_as_a_whole() {
    let tool = Tool::new(Arc::new(ToolDefinition::new("lookup", "", tickets())));
    let reply = |name: &str, text: &str| {
        answer(
            &tool,
            name,
            &Reading::new(text, Date::constant(2026, 10, 21)),
        )
    };
    assert_eq!(
        reply("subject", "the invoice is wrong"),
        Some(json!("the invoice is wrong"))
    );
    assert_eq!(reply("customer_id", "it is 42"), Some(json!(42)));
    assert_eq!(reply("priority", "urgent, please"), Some(json!("high")));
    assert_eq!(reply("notify", "no"), Some(json!(false)));
    assert_eq!(reply("customer_id", "I do not know"), None);
}

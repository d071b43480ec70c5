use serde_json::{Value, json};
use utoipa::PartialSchema;

use super::*;

#[test]
fn schema_values_match_the_domain_types() {
    let all =
        |schema: Value| -> Vec<Value> { schema["enum"].as_array().cloned().unwrap_or_default() };
    let json =
        |it: utoipa::openapi::RefOr<utoipa::openapi::Schema>| serde_json::to_value(it).unwrap();
    let efforts = all(json(schema::ReasoningEffort::schema()));
    assert_eq!(efforts.len(), 4);
    for effort in efforts {
        serde_json::from_value::<ReasoningEffort>(effort).unwrap();
    }
    let choice = json(schema::ToolChoice::schema());
    let text = choice.to_string();
    for value in [
        ToolChoice::Auto,
        ToolChoice::None,
        ToolChoice::Required,
        ToolChoice::Only(vec!["x".to_owned()]),
    ] {
        let value = serde_json::to_value(value).unwrap();
        let name = value.as_str().map_or_else(
            || value.as_object().unwrap().keys().next().unwrap().clone(),
            str::to_owned,
        );
        assert!(text.contains(&format!("\"{name}\"")), "{name}: {text}");
    }
}

#[test]
fn parameters_match_their_schema() {
    let given = json!({
        "temperature": 0.5, "top_p": 1.0, "stop": ["x"], "seed": 1, "max_steps": 2,
        "max_output_tokens": 3, "tool_choice": {"only": ["t"]}, "reasoning": "low",
        "parallel_tool_use": true, "approve": "ask", "tools": true, "strategy": "loop",
    });
    let read: Parameters = serde_json::from_value(given.clone()).unwrap();
    read.validate_parameters().unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), given);
    let described = serde_json::to_value(Parameters::schema()).unwrap();
    let mut named: Vec<&String> = described["properties"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    let mut fields: Vec<&String> = given.as_object().unwrap().keys().collect();
    named.sort();
    fields.sort();
    assert_eq!(named, fields);
    assert!(serde_json::from_value::<Parameters>(json!({"heat": 1})).is_err());
}

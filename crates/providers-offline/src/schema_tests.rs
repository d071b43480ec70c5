use serde_json::json;
use switchboard_testkit::hostile::chain;

use super::*;

fn kind_of(name: &str, schema: &Value) -> Kind {
    params(&json!({"properties": {name: schema}}))
        .remove(0)
        .kind
}

#[test]
fn names_types_and_formats_tell_what_a_parameter_takes() {
    for (name, schema, expected) in [
        ("limit", json!({"type": "integer"}), Kind::Count),
        (
            "n",
            json!({"type": "number", "description": "How many to return"}),
            Kind::Count,
        ),
        ("customer_id", json!({"type": "integer"}), Kind::IdNumber),
        ("customerId", json!({"type": "number"}), Kind::IdNumber),
        ("amount", json!({"type": "number"}), Kind::Number),
        ("year", json!({"type": ["integer", "null"]}), Kind::Integer),
        ("dryRun", json!({"type": "boolean"}), Kind::Boolean),
        (
            "since",
            json!({"type": "string"}),
            Kind::Text(TextKind::Date),
        ),
        (
            "start",
            json!({"type": "string", "format": "date-time"}),
            Kind::Text(TextKind::DateTime),
        ),
        (
            "repo_path",
            json!({"type": "string"}),
            Kind::Text(TextKind::Path),
        ),
        (
            "subject",
            json!({"type": "string"}),
            Kind::Text(TextKind::Title),
        ),
        (
            "message",
            json!({"type": "string"}),
            Kind::Text(TextKind::Body),
        ),
        ("q", json!({"type": "string"}), Kind::Text(TextKind::Query)),
        (
            "city",
            json!({"type": "string"}),
            Kind::Text(TextKind::Name),
        ),
        (
            "colour",
            json!({"enum": ["red", "blue"]}),
            Kind::Text(TextKind::Plain),
        ),
        (
            "paths",
            json!({"type": "array", "items": {"type": "string"}}),
            Kind::List(Box::new(Kind::Text(TextKind::Path))),
        ),
        ("filter", json!({"type": "object"}), Kind::Other),
        (
            "matrix",
            json!({"type": "array", "items": {"type": "array"}}),
            Kind::Other,
        ),
    ] {
        assert_eq!(kind_of(name, &schema), expected, "{name}: {schema}");
    }
}

#[test]
fn references_and_null_alternatives_are_seen_through() {
    let schema = json!({
        "$defs": {"Level": {"enum": ["low", "high"], "type": "string"}},
        "properties": {
            "level": {"$ref": "#/$defs/Level", "default": "low", "description": "How urgent."},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
        },
        "required": ["level"],
    });
    let params = params(&schema);
    assert_eq!(params[0].choices, [json!("low"), json!("high")]);
    assert_eq!(params[0].schema["default"], json!("low"));
    assert_eq!(params[0].description, "How urgent.");
    assert!(params[0].required);
    assert_eq!(params[1].kind, Kind::Text(TextKind::Body));
    assert!(!params[1].required);
}

#[test]
fn members_of_all_of_count() {
    let schema = json!({
        "allOf": [{"properties": {"a": {"type": "number"}}, "required": ["a"]}],
        "properties": {"b": {"type": "number"}},
    });
    let params = params(&schema);
    let names: Vec<_> = params
        .iter()
        .map(|param| (param.name.as_str(), param.required))
        .collect();
    assert_eq!(names, [("b", false), ("a", true)]);
}

#[test]
fn schemas_that_refer_to_themselves_end() {
    let root = json!({"$ref": "#"});
    assert!(params(&root).is_empty());
    let tree = json!({
        "$defs": {"Node": {"properties": {"child": {"$ref": "#/$defs/Node"}, "id": {"type": "integer"}}}},
        "$ref": "#/$defs/Node",
    });
    assert!(output_fields(&tree).len() > 2);
}

#[test]
fn members_that_multiply_are_limited() {
    let schema = chain(40, "allOf", 50);
    assert!(params(&schema).is_empty());
}

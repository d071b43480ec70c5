use serde_json::json;

use super::*;

#[test]
fn an_input_schema_is_sent_as_it_is_where_that_is_lawful() {
    let plain = json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}}});
    assert!(matches!(input_schema(&plain).schema, Cow::Borrowed(_)));
    for odd in [json!(null), json!({}), json!({"properties": {}})] {
        assert_eq!(input_schema(&odd).schema["type"], "object", "{odd}");
    }
}

#[test]
fn a_strict_schema_is_closed_and_counted() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": ["string", "null"]},
            "at": {"type": "string", "format": "date-time"},
            "days": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        },
        "required": ["city"],
    });
    let strict = strict(&schema);
    assert_eq!(strict.schema["additionalProperties"], false);
    assert_eq!(strict.unenforced, Vec::<String>::new());
    assert!(!strict.reshapes);
    assert_eq!((strict.optional, strict.unions), (2, 1));
}

#[test]
fn what_cannot_be_enforced_is_named() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}});
    let strict = strict(&schema);
    assert_eq!(strict.unenforced.len(), 1);
    assert!(strict.unenforced[0].contains("minimum"), "{strict:?}");
    assert!(!strict.reshapes);
}

#[test]
fn what_has_another_shape_is_known() {
    let free = json!({"type": "object", "properties": {"a": {"type": "object"}}});
    assert!(strict(&free).reshapes && !reshapes(&input_schema(&free)));
    let spelt = json!({"type": "object", "properties": {"größe": {"type": "string"}}});
    assert!(strict(&spelt).reshapes && reshapes(&input_schema(&spelt)));
}

#[test]
fn what_would_be_held_to_less_than_it_may_say_is_known() {
    let object = |value: Value| json!({"type": "object", "properties": {"a": value}});
    for schema in [
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": "object"}),
        json!({}),
        object(json!({"$ref": "#"})),
    ] {
        assert!(strict(&schema).narrows, "{schema}");
    }
    for schema in [
        json!({"type": "object", "additionalProperties": false}),
        object(json!({"type": "string"})),
    ] {
        assert!(!strict(&schema).narrows, "{schema}");
    }
}

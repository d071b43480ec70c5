use serde_json::json;

use super::*;

#[test]
fn a_supported_input_schema_is_sent_unchanged() {
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
    assert!(!strict.changes_shape);
    assert_eq!((strict.optional, strict.unions), (2, 1));
}

#[test]
fn the_unenforced_parts_of_a_schema_are_named() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}});
    let strict = strict(&schema);
    assert_eq!(strict.unenforced.len(), 1);
    assert!(strict.unenforced[0].contains("minimum"), "{strict:?}");
    assert!(!strict.changes_shape);
}

#[test]
fn a_change_of_shape_is_reported() {
    let free = json!({"type": "object", "properties": {"a": {"type": "object"}}});
    assert!(strict(&free).changes_shape && !changes_shape(&input_schema(&free)));
    let spelt = json!({"type": "object", "properties": {"größe": {"type": "string"}}});
    assert!(strict(&spelt).changes_shape && changes_shape(&input_schema(&spelt)));
}

#[test]
fn a_strict_schema_that_allows_less_is_reported() {
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

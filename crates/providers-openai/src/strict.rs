//! The subset of JSON Schema to which the API can hold an answer (`strict: true`).

use serde_json::Value;

/// Keywords that the API refuses in a strict schema.
const REFUSED: &[&str] = &[
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "oneOf",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
];

/// Whether the API accepts `strict: true` for a schema: the root is an object without `anyOf`, every
/// object is closed (`additionalProperties: false`) and requires all its properties, and no keyword
/// is used that the API refuses. A schema that is not strict is sent as one to be followed if
/// possible.
///
/// Facts: the Structured Outputs guide, developers.openai.com/api/docs/guides/structured-outputs.
pub(crate) fn is_strict(schema: &Value) -> bool {
    let is_object = schema.get("type").is_some_and(|it| it == "object");
    is_object && schema.get("anyOf").is_none() && holds(schema)
}

fn holds(schema: &Value) -> bool {
    let Value::Object(map) = schema else {
        return false;
    };
    if REFUSED.iter().any(|keyword| map.contains_key(*keyword)) {
        return false;
    }
    let is_object = match map.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => map.contains_key("properties"),
    };
    if is_object && !is_closed(schema) {
        return false;
    }
    let values = |name: &str| map.get(name).and_then(Value::as_object);
    let named = ["properties", "$defs", "definitions"]
        .into_iter()
        .filter_map(values)
        .flat_map(|schemas| schemas.values());
    let listed = map.get("anyOf").and_then(Value::as_array);
    named
        .chain(listed.into_iter().flatten())
        .chain(map.get("items"))
        .all(holds)
}

fn is_closed(schema: &Value) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &String| {
        required.is_some_and(|required| required.iter().any(|it| it.as_str() == Some(name)))
    };
    schema.get("additionalProperties") == Some(&Value::Bool(false))
        && schema
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|properties| properties.keys().all(is_required))
}

#[cfg(test)]
mod tests {
    use super::is_strict;
    use serde_json::json;

    #[test]
    fn closed_objects_that_require_everything_are_strict() {
        assert!(is_strict(&json!({
            "type": "object",
            "properties": {
                "city": {"type": ["string", "null"]},
                "days": {"type": "array", "items": {"$ref": "#/$defs/day"}},
            },
            "required": ["city", "days"],
            "additionalProperties": false,
            "$defs": {"day": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
        })));
    }

    #[test]
    fn what_the_api_refuses_is_not_strict() {
        let closed = |properties: serde_json::Value| {
            let names: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
            json!({
                "type": "object",
                "properties": properties,
                "required": names,
                "additionalProperties": false,
            })
        };
        assert!(is_strict(&closed(json!({"a": {"type": "string"}}))));
        for refused in [
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "additionalProperties": false}),
            closed(json!({"a": {"type": "object", "properties": {}}})),
            closed(json!({"a": {"allOf": [{"type": "string"}]}})),
            closed(json!({"a": {"type": "array", "items": {"not": {}}}})),
            closed(json!({"a": true})),
        ] {
            assert!(!is_strict(&refused), "{refused}");
        }
    }
}

//! Validation of answers against a custom JSON Schema.

use serde_json::Value;
use switchboard_domain::json_schema::SchemaValidator;

use super::json;
use crate::tools::arguments::describe_faults;

/// Name of the property that contains the answer if the answer is not an object. Such an answer is
/// wrapped in an object, because tool inputs must be objects.
const WRAPPER: &str = "answer";

/// Returns the JSON Schema that the request contains. This is `schema` if it describes an object.
/// Otherwise, it is the schema of an object whose property [`WRAPPER`] has the schema `schema`.
pub(super) fn wrap_in_object_schema(schema: &Value) -> Value {
    if is_object_schema(schema) {
        return schema.clone();
    }
    let mut inner = schema.clone();
    let mut outer = json!({
        "type": "object",
        "required": [WRAPPER],
        "additionalProperties": false,
    });
    // References such as `#/$defs/n` are resolved from the root of a schema, so the definitions
    // move from the inner schema to the new root.
    if let Some(fields) = inner.as_object_mut() {
        for key in ["$defs", "definitions", "$schema"] {
            if let Some(value) = fields.shift_remove(key) {
                outer[key] = value;
            }
        }
    }
    outer["properties"] = json!({ WRAPPER: inner });
    outer
}

fn is_object_schema(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(word)) => word == "object",
        Some(_) => false,
        None => schema.get("properties").is_some() || schema.get("$ref").is_some(),
    }
}

/// Validates an answer against a custom schema. Returns the repaired answer without the wrapper
/// object of [`wrap_in_object_schema`], and descriptions of the repairs. If the answer is still
/// invalid, the error describes its faults.
pub(super) fn validate_answer(
    schema: &Value,
    mut value: Value,
) -> Result<(Value, Vec<String>), String> {
    let mut repairs = Vec::new();
    if let Value::String(text) = &value
        && let Some(found) = json::find_json(text, false)
    {
        repairs.push("JSON inside a string was decoded".to_owned());
        value = found.value;
    }
    if !is_object_schema(schema)
        && let Value::Object(fields) = &mut value
        && fields.len() == 1
        && let Some(inner) = fields.shift_remove(WRAPPER)
    {
        value = inner;
    }
    let validator = SchemaValidator::compile(schema)
        .map_err(|error| format!("the schema cannot be used: {error}"))?;
    if validator.is_valid(&value) == Ok(true) {
        return Ok((value, repairs));
    }
    // Models set unused optional fields to null if a provider declares these fields nullable.
    let mut without_nulls = value.clone();
    remove_null_fields(&mut without_nulls);
    if validator.is_valid(&without_nulls) == Ok(true) {
        repairs.push("fields with null were removed".to_owned());
        return Ok((without_nulls, repairs));
    }
    let faults = describe_faults(&validator, &value);
    Err(format!("it does not match the schema: {faults}"))
}

fn remove_null_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_null_fields);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_null_fields),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {"sum": {"type": "number"}, "note": {"type": "string"}},
            "required": ["sum"],
        })
    }

    #[test]
    fn an_answer_is_validated_and_repaired() {
        let good = json!({"sum": 3});
        assert_eq!(
            validate_answer(&schema(), good.clone()),
            Ok((good.clone(), vec![]))
        );
        let nullable = validate_answer(&schema(), json!({"sum": 3, "note": null})).unwrap();
        assert_eq!((nullable.0, nullable.1.len()), (good.clone(), 1));
        let encoded = validate_answer(&schema(), json!("```json\n{\"sum\": 3}\n```")).unwrap();
        assert_eq!((encoded.0, encoded.1.len()), (good, 1));
        let error = validate_answer(&schema(), json!({"sum": "x"})).unwrap_err();
        assert!(error.contains("/sum"), "{error}");
    }

    #[test]
    fn a_list_is_wrapped_in_an_object_and_its_references_stay_valid() {
        let list = json!({
            "type": "array",
            "items": {"$ref": "#/$defs/n"},
            "$defs": {"n": {"type": "integer"}},
        });
        let wrapped = wrap_in_object_schema(&list);
        assert!(
            jsonschema::validator_for(&wrapped)
                .unwrap()
                .is_valid(&json!({"answer": [1]}))
        );
        assert!(
            !jsonschema::validator_for(&wrapped)
                .unwrap()
                .is_valid(&json!({"answer": ["x"]}))
        );
        assert_eq!(
            validate_answer(&list, json!({"answer": [1]})).unwrap().0,
            json!([1])
        );
        assert_eq!(validate_answer(&list, json!([1])).unwrap().0, json!([1]));
        assert_eq!(wrap_in_object_schema(&schema()), schema());
    }

    #[test]
    fn an_invalid_schema_is_an_error() {
        let error =
            validate_answer(&json!({"type": "object", "minimum": "x"}), json!({})).unwrap_err();
        assert!(error.contains("the schema cannot be used"), "{error}");
    }
}

//! Detection of schemas with the same meaning in JSON Schema 2020-12 and draft 7.
//!
//! An MCP schema without `$schema` is a 2020-12 schema ("JSON Schema Usage" in the specification of
//! 2025-11-25). The meta-schema of 2020-12 consists of eight documents. Compiling them takes some
//! milliseconds and 1.5 MB. The meta-schema of draft 7 is one document, and the schemas of most
//! tools mean the same in both dialects.

use serde_json::{Map, Value};

/// The `$schema` of 2020-12.
const LATEST: &str = "https://json-schema.org/draft/2020-12/schema";

/// Maximum depth of a schema. Deeper schemas are not common.
const MAX_DEPTH: usize = 32;

/// Returns whether a 2020-12 schema accepts the same values when it is read as draft 7 without
/// format assertion.
///
/// Such a schema has only keywords with the same meaning in both dialects. References (`$ref`,
/// `$defs`, `$id`) are not among them.
///
/// A common schema can still be invalid in draft 7, because the meta-schema of draft 7 asserts
/// formats and restricts `pattern` more than validators do.
///
/// ```
/// use serde_json::json;
/// use switchboard_domain::schema_dialect::is_common;
///
/// assert!(is_common(&json!({"type": "object", "properties": {"id": {"type": "integer"}}})));
/// assert!(!is_common(&json!({"type": "array", "prefixItems": [{"type": "integer"}]})));
/// ```
pub fn is_common(schema: &Value) -> bool {
    let Some(root) = schema.as_object() else {
        return schema.is_boolean();
    };
    let is_latest = root.get("$schema").is_none_or(|dialect| {
        dialect
            .as_str()
            .is_some_and(|it| it.trim_end_matches('#') == LATEST)
    });
    is_latest && fields(root, 0, |name| name == "$schema")
}

fn is_common_below(schema: &Value, depth: usize) -> bool {
    match schema {
        Value::Bool(_) => true,
        Value::Object(all) => fields(all, depth, |_| false),
        _ => false,
    }
}

fn fields(schema: &Map<String, Value>, depth: usize, known: impl Fn(&str) -> bool) -> bool {
    depth < MAX_DEPTH
        && schema
            .iter()
            .all(|(name, value)| known(name) || keyword(name, value, depth + 1))
}

fn keyword(name: &str, value: &Value, depth: usize) -> bool {
    match name {
        // Both meta-schemas restrict the values of these keywords in the same way.
        "type" | "enum" | "const" | "required" | "title" | "description" | "default"
        | "examples" | "format" | "minimum" | "maximum" | "exclusiveMinimum"
        | "exclusiveMaximum" | "multipleOf" | "minLength" | "maxLength" | "pattern"
        | "minItems" | "maxItems" | "uniqueItems" | "minProperties" | "maxProperties" => true,
        // Only one dialect requires this type. The other one ignores the keyword.
        "deprecated" | "readOnly" | "writeOnly" => value.is_boolean(),
        // `items` with a list of schemas means something else in each.
        "additionalProperties" | "not" | "items" => is_common_below(value, depth),
        "properties" => value
            .as_object()
            .is_some_and(|all| all.values().all(|it| is_common_below(it, depth))),
        "allOf" | "anyOf" | "oneOf" => value
            .as_array()
            .is_some_and(|all| all.iter().all(|it| is_common_below(it, depth))),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_with_different_meanings_are_not_common() {
        for schema in [
            json!({"$ref": "#/$defs/a", "$defs": {"a": {}}}),
            json!({"definitions": {"a": {}}}),
            json!({"items": [{"type": "string"}]}),
            json!({"prefixItems": [{"type": "string"}]}),
            json!({"properties": {"a": {"dependentRequired": {"a": ["b"]}}}}),
            json!({"properties": {"a": {"$schema": LATEST}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
            json!({"$schema": 7}),
            json!({"anyOf": [{"unevaluatedProperties": false}]}),
            json!({"patternProperties": {"^a": {}}}),
            json!({"deprecated": "soon"}),
            json!({"minContains": 2}),
            json!(["a"]),
            json!(null),
        ] {
            assert!(!is_common(&schema), "{schema}");
        }
    }

    #[test]
    fn the_schemas_of_most_tools_are_common() {
        for schema in [
            json!(true),
            json!({}),
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "title": "Wish", "type": "object", "additionalProperties": false,
                "required": ["id"],
                "properties": {
                    "id": {"type": "integer", "minimum": 1, "format": "int64",
                    "description": "Whose"},
                    "tags": {"type": ["array", "null"], "items": {"type": "string"},
                    "maxItems": 3, "default": null},
                    "day": {"type": "string", "format": "date", "pattern": "^\\d{4}-"},
                    "kind": {"anyOf": [{"const": "a"}, {"enum": ["b", 3]}], "deprecated": true},
                },
            }),
        ] {
            assert!(is_common(&schema), "{schema}");
        }
    }

    #[test]
    fn deeper_schemas_are_not_common() {
        let mut schema = json!({"type": "string"});
        for _ in 0..MAX_DEPTH {
            schema = json!({"not": schema});
        }
        assert!(!is_common(&schema));
        assert!(is_common(&schema["not"]));
    }
}

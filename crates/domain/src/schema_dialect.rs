//! Which schemas mean the same in more than one dialect of JSON Schema.
//!
//! MCP takes a schema without `$schema` for one of 2020-12 ("JSON Schema Usage" of its specification of 2025-11-25). The schema
//! of such schemas is eight documents that refer to each other, and to compile them takes a validator some milliseconds and
//! a megabyte and a half. That of draft 7 is one document, and a schema of a tool seldom says anything that the
//! two take differently.

use serde_json::{Map, Value};

/// The dialect's name for itself.
const LATEST: &str = "https://json-schema.org/draft/2020-12/schema";

/// Deeper schemas are not looked into.
const MAX_DEPTH: usize = 32;

/// Whether a schema of 2020-12 asks the same of every value if it is read by draft 7 and formats are not asserted, as 2020-12
/// does not: it has nothing but keywords that both have, with the same meaning. Not among them is whatever points
/// elsewhere (`$ref`, `$defs`, `$id`).
///
/// One that draft 7 does not take may still be one of 2020-12: the schema of draft 7 asserts formats, and that of
/// `pattern` is narrower than what validators read.
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
        // What the schemas of both dialects ask of these is the same.
        "type" | "enum" | "const" | "required" | "title" | "description" | "default"
        | "examples" | "format" | "minimum" | "maximum" | "exclusiveMinimum"
        | "exclusiveMaximum" | "multipleOf" | "minLength" | "maxLength" | "pattern"
        | "minItems" | "maxItems" | "uniqueItems" | "minProperties" | "maxProperties" => true,
        // One of the dialects says that they are of this type, the other one may not know them.
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
    fn what_dialects_take_differently_is_not_common() {
        for schema in [
            json!({"$ref": "#/$defs/a", "$defs": {"a": {}}}),
            json!({"definitions": {"a": {}}}),
            json!({"items": [{"type": "string"}]}),
            json!({"prefixItems": [{"type": "string"}]}),
            json!({"properties": {"a": {"dependentRequired": {"a": ["b"]}}}}),
            json!({"properties": {"a": {"$schema": "https://json-schema.org/draft/2020-12/schema"}}}),
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
                "title": "Wish", "type": "object", "additionalProperties": false, "required": ["id"],
                "properties": {
                    "id": {"type": "integer", "minimum": 1, "format": "int64", "description": "Whose"},
                    "tags": {"type": ["array", "null"], "items": {"type": "string"}, "maxItems": 3, "default": null},
                    "day": {"type": "string", "format": "date", "pattern": "^\\d{4}-"},
                    "kind": {"anyOf": [{"const": "a"}, {"enum": ["b", 3]}], "deprecated": true},
                },
            }),
        ] {
            assert!(is_common(&schema), "{schema}");
        }
    }

    #[test]
    fn what_is_too_deep_is_not_looked_into() {
        let mut schema = json!({"type": "string"});
        for _ in 0..MAX_DEPTH {
            schema = json!({"not": schema});
        }
        assert!(!is_common(&schema));
        assert!(is_common(&schema["not"]));
    }
}

//! Checks whether the API enforces all of a schema (`strict` tools and `output_config.format`).

use serde_json::{Map, Value};
use switchboard_providers_common::schema::{ChangeKind, CompiledSchema};

/// Returns whether the strict schema accepts fewer values than the original. For example, it cannot
/// allow objects with arbitrary keys or recursion.
pub(crate) fn is_strict_schema_narrower(original: &Value, strict: &CompiledSchema<'_>) -> bool {
    let properties = strict.schema.get("properties").and_then(Value::as_object);
    let allows_no_key = properties.is_none_or(Map::is_empty);
    let is_intended = original.get("additionalProperties") == Some(&Value::Bool(false));
    strict.has_any_change(&[ChangeKind::Narrowed, ChangeKind::Truncated])
        || (allows_no_key && !is_intended)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_providers_common::schema::{Dialect, compile};

    use super::*;

    #[test]
    fn a_strict_schema_that_allows_less_is_reported() {
        let strict = |schema: &Value| {
            is_strict_schema_narrower(schema, &compile(schema, Dialect::AnthropicStrict))
        };
        let object = |value: Value| json!({"type": "object", "properties": {"a": value}});
        for schema in [
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object"}),
            json!({}),
            object(json!({"$ref": "#"})),
        ] {
            assert!(strict(&schema), "{schema}");
        }
        for schema in [
            json!({"type": "object", "additionalProperties": false}),
            object(json!({"type": "string"})),
        ] {
            assert!(!strict(&schema), "{schema}");
        }
    }
}

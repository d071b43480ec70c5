//! Conversion of schemas to a dialect by the types that they allow.

use serde_json::{Value, json};

use super::{Level, Map, SchemaLowering, SchemaMembers};
use crate::schema::{
    dialect_rules::AnyValueRule,
    keywords::{constrained_types, has_type, ignores_types, implied_types, is_annotation},
};

impl SchemaLowering<'_, '_> {
    /// Converts a schema without `$ref` and combinators. Splits it by type where the dialect needs
    /// one schema per type.
    pub(super) fn lower_typed_schema(
        &mut self,
        mut schema: Map,
        at: &str,
        level: Level,
    ) -> Option<Map> {
        if let Some(union) = self.split_null_from_enum(&schema) {
            return self.lower_union(union, at, level);
        }
        self.lower_enum_values(&mut schema, at)?;
        if !schema.contains_key("type")
            && let Some(types) = implied_types(&schema)
        {
            schema.shift_insert(0, "type".to_owned(), types);
        }
        if !schema.contains_key("type") {
            return Some(self.lower_any_value(schema, at));
        }
        let types = schema.get_types();
        let not_null: Vec<&str> = types.iter().copied().filter(|it| *it != "null").collect();
        let is_compound = not_null.iter().any(|it| matches!(*it, "object" | "array"));
        let has_structure = || {
            let mut types = schema.keys().flat_map(|keyword| constrained_types(keyword));
            types.any(|it| matches!(*it, "object" | "array"))
        };
        let must_split = self.rules.openapi
            || (is_compound && (self.rules.any_value == AnyValueRule::JsonText || has_structure()));
        if not_null.len() > 1 && must_split {
            let alternatives: Value = types
                .iter()
                .map(|name| restrict_to_type(&schema, name))
                .collect();
            schema.retain(|keyword, _| is_annotation(keyword));
            schema.set("anyOf", alternatives);
            return self.lower_union(schema, at, level);
        }
        Some(if not_null.contains(&"object") {
            self.lower_object(schema, at, level)
        } else if not_null.contains(&"array") {
            self.lower_array(schema, at, level)
        } else {
            self.lower_keywords(schema, at, Map::new())
        })
    }

    /// Converts a schema that allows any value as the `AnyValueRule` of the dialect requires.
    pub(super) fn lower_any_value(&mut self, mut schema: Map, at: &str) -> Map {
        match self.rules.any_value {
            AnyValueRule::Empty => {}
            AnyValueRule::AllTypes => {
                schema.shift_insert(0, "type".to_owned(), all_types());
            }
            AnyValueRule::JsonText => {
                return self.encode_as_text(&schema, at, "any value", "Any JSON value");
            }
        }
        self.lower_keywords(schema, at, Map::new())
    }
}

/// Returns the value of the keyword `type` that allows any value.
pub(super) fn all_types() -> Value {
    json!(["string", "number", "boolean", "null", "object", "array"])
}

/// Returns the schema for one type: without annotations, and without keywords and values of other
/// types.
fn restrict_to_type(schema: &Map, name: &str) -> Value {
    let mut schema = schema.clone();
    schema.set("type", name);
    schema.retain(|keyword, _| match keyword.as_str() {
        "title" | "description" | "default" | "examples" => false,
        "format" => name == "string",
        keyword => !ignores_types(keyword, &[name]),
    });
    if let Some(constant) = schema.shift_remove("const") {
        schema.set("enum", json!([constant]));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| has_type(value, &[name]));
    }
    Value::Object(schema)
}

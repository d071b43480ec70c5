//! Whether a value looks like one of a schema: enough to tell alternatives apart. Lengths, bounds
//! and patterns are not looked at; the tool's own schema is checked in full before a call.

use std::cell::Cell;

use serde_json::Value;

use super::{Map, expand::expand, lower::type_of, merge, normal, normal::Normal};

/// Looks at a schema taken at most for one answer.
const MAX_STEPS: usize = 20_000;
/// Levels that are looked into.
const MAX_DEPTH: usize = 64;

/// Looks at values with the schemas of one document, and tires of it after a while.
#[derive(Debug)]
pub(super) struct Looks<'n> {
    pub(super) normal: &'n Normal,
    left: Cell<usize>,
}

impl<'n> Looks<'n> {
    pub(super) fn new(normal: &'n Normal) -> Self {
        Self {
            normal,
            left: Cell::new(MAX_STEPS),
        }
    }

    /// Takes a step; `false` if there were too many.
    pub(super) fn step(&self, depth: usize) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0 && depth < MAX_DEPTH
    }

    pub(super) fn accepts(&self, schema: &Map, value: &Value, depth: usize) -> bool {
        if !self.step(depth) {
            return true;
        }
        let expanded = expand(self.normal, schema);
        let schema = expanded.schema;
        if expanded.never || normal::is_never(&schema) {
            return false;
        }
        if schema.get("const").is_some_and(|it| it != value) {
            return false;
        }
        if let Some(Value::Array(values)) = schema.get("enum")
            && !values.contains(value)
        {
            return false;
        }
        if let Some(types) = schema.get("type")
            && !has_type(types, value)
        {
            return false;
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(arms)) = schema.get(keyword) {
                let mut arms = arms.iter().filter_map(Value::as_object);
                if !arms.any(|arm| self.accepts(arm, value, depth + 1)) {
                    return false;
                }
            }
        }
        match value {
            Value::Object(object) => self.accepts_object(&schema, object, depth),
            Value::Array(items) => items.iter().enumerate().all(|(index, item)| {
                let schema = item_schema(&schema, index);
                schema.is_none_or(|schema| self.accepts(schema, item, depth + 1))
            }),
            _ => true,
        }
    }

    fn accepts_object(&self, schema: &Map, object: &Map, depth: usize) -> bool {
        let required = schema.get("required").and_then(Value::as_array);
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        if !names.into_iter().all(|name| object.contains_key(name)) {
            return false;
        }
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
            && !schema.contains_key("patternProperties");
        object
            .iter()
            .all(|(key, value)| match key_schema(schema, key) {
                Some(schema) => self.accepts(schema, value, depth + 1),
                None => !is_closed,
            })
    }
}

/// Whether the value is of one of the types.
pub(super) fn has_type(types: &Value, value: &Value) -> bool {
    let names = merge::names(types);
    let of = type_of(value);
    names.contains(&of) || (of == "integer" && names.contains(&"number"))
}

/// The schema of a key's value, also of a further key's.
pub(super) fn key_schema<'s>(schema: &'s Map, key: &str) -> Option<&'s Map> {
    let named = schema.get("properties").and_then(Value::as_object);
    let named = named.and_then(|named| named.get(key));
    named
        .or_else(|| schema.get("additionalProperties"))
        .and_then(Value::as_object)
}

/// The schema of an item.
pub(super) fn item_schema(schema: &Map, index: usize) -> Option<&Map> {
    let prefix = schema.get("prefixItems").and_then(Value::as_array);
    let listed = prefix.and_then(|prefix| prefix.get(index));
    listed
        .or_else(|| schema.get("items"))
        .and_then(Value::as_object)
}

//! Approximate validation of values, which distinguishes alternatives.
//!
//! Lengths, bounds and patterns are ignored; the tool's own schema is validated before a call.

use std::{borrow::Cow, cell::Cell};

use serde_json::Value;

use super::{
    keywords::{Map, SchemaMembers, is_annotation, is_never, is_of_type},
    merge::expand,
    normal::Normal,
};

/// Minimum work budget of one answer.
const MIN_WORK: usize = 500_000;
/// The budget is this many passes over the schema and the answer, and [`MIN_WORK`].
const PASSES: usize = 32;
/// Maximum nesting of values.
const MAX_DEPTH: usize = 64;
/// Number of bytes of text that cost as much as one value.
const BYTES_PER_WORK: usize = 32;

/// Matches values with the schemas of one document, within a work budget: nested alternatives can
/// be tried in very many ways, and each try copies values.
#[derive(Debug)]
pub(super) struct Matcher<'n> {
    normal: &'n Normal,
    work_left: Cell<usize>,
}

impl<'n> Matcher<'n> {
    pub(super) fn new(normal: &'n Normal, answer: &Value) -> Self {
        let size = size_of_map(&normal.root)
            .saturating_add(size_of_map(&normal.defs))
            .saturating_add(size(answer));
        Self {
            normal,
            work_left: Cell::new(size.saturating_mul(PASSES).saturating_add(MIN_WORK)),
        }
    }

    /// Takes a step. Returns `false` if the budget or the nesting is exceeded.
    pub(super) fn step(&self, depth: usize) -> bool {
        self.work(1) && depth < MAX_DEPTH
    }

    /// Subtracts work. Returns `false` if the budget was used up before.
    pub(super) fn work(&self, work: usize) -> bool {
        let left = self.work_left.get();
        self.work_left.set(left.saturating_sub(work));
        left > 0
    }

    /// Returns the expanded schema, copied only if something is merged. Returns `None` if no value
    /// is valid.
    pub(super) fn expanded<'s>(&'s self, schema: &'s Map) -> Option<Cow<'s, Map>> {
        let schema = self.target(schema);
        if !schema.has_any(&["$ref", "allOf"]) {
            return (!is_never(schema)).then_some(Cow::Borrowed(schema));
        }
        let expanded = expand(self.normal, schema.clone());
        self.work(size_of_map(&expanded.schema).saturating_mul(expanded.parts));
        (!expanded.is_never && !is_never(&expanded.schema)).then_some(Cow::Owned(expanded.schema))
    }

    /// Returns the target of a reference without other constraints, else the schema itself.
    fn target<'s>(&'s self, schema: &'s Map) -> &'s Map {
        let mut target = schema;
        for _ in 0..MAX_DEPTH {
            let Some(reference) = target.text("$ref") else {
                return target;
            };
            let mut keywords = target.keys();
            let is_only = keywords.all(|keyword| keyword == "$ref" || is_annotation(keyword));
            match self.normal.target(reference) {
                Some(next) if is_only => target = next,
                _ => return target,
            }
        }
        schema
    }

    /// Whether a value matches a schema. Returns `true` if the budget is exceeded.
    pub(super) fn matches(&self, schema: &Map, value: &Value, depth: usize) -> bool {
        if !self.step(depth) {
            return true;
        }
        let Some(schema) = self.expanded(schema) else {
            return false;
        };
        if let Some(constant) = schema.get("const") {
            self.work(size(constant));
        }
        let values = schema.get("enum").and_then(Value::as_array);
        self.work(schema.list("enum").iter().map(size).sum());
        if schema.get("const").is_some_and(|it| it != value)
            || values.is_some_and(|it| !it.contains(value))
            || (schema.contains_key("type") && !is_of_type(value, &schema.types()))
        {
            return false;
        }
        for keyword in ["anyOf", "oneOf"] {
            if schema.get(keyword).is_some_and(Value::is_array)
                && !schema
                    .schemas(keyword)
                    .any(|it| self.matches(it, value, depth + 1))
            {
                return false;
            }
        }
        match value {
            Value::Object(object) => self.matches_object(&schema, object, depth),
            Value::Array(items) => items.iter().enumerate().all(|(index, item)| {
                let schema = item_schema(&schema, index);
                schema.is_none_or(|schema| self.matches(schema, item, depth + 1))
            }),
            _ => true,
        }
    }

    fn matches_object(&self, schema: &Map, object: &Map, depth: usize) -> bool {
        self.work(schema.list("required").len());
        if !schema.required().all(|name| object.contains_key(name)) {
            return false;
        }
        let is_closed =
            schema.is_false("additionalProperties") && !schema.contains_key("patternProperties");
        object
            .iter()
            .all(|(key, value)| match key_schema(schema, key) {
                Some(schema) => self.matches(schema, value, depth + 1),
                None => !is_closed,
            })
    }
}

/// Returns the work of copying or comparing a value: one for each nested value, and more for long
/// text.
pub(super) fn size(value: &Value) -> usize {
    size_of_all(vec![value])
}

/// Returns the work of copying or comparing an object.
pub(super) fn size_of_map(map: &Map) -> usize {
    size_of_all(map.values().collect()).saturating_add(1)
}

fn size_of_all(mut pending: Vec<&Value>) -> usize {
    let mut size = 0_usize;
    // Without recursion, because the depth of a value is not limited.
    while let Some(value) = pending.pop() {
        let own = match value {
            Value::String(text) => 1 + text.len() / BYTES_PER_WORK,
            _ => 1,
        };
        size = size.saturating_add(own);
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(map) => pending.extend(map.values()),
            _ => {}
        }
    }
    size
}

/// Returns the schema of the value of a key, which may be an additional key.
pub(super) fn key_schema<'s>(schema: &'s Map, key: &str) -> Option<&'s Map> {
    let named = schema.object("properties").and_then(|it| it.get(key));
    named
        .or_else(|| schema.get("additionalProperties"))?
        .as_object()
}

/// Returns the schema of an item.
pub(super) fn item_schema(schema: &Map, index: usize) -> Option<&Map> {
    let prefix = schema.list("prefixItems").get(index);
    prefix.or_else(|| schema.get("items"))?.as_object()
}

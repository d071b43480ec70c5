//! Whether a value looks like one of a schema: enough to tell alternatives apart. Lengths, bounds
//! and patterns are not looked at; the tool's own schema is checked in full before a call.

use std::{borrow::Cow, cell::Cell};

use serde_json::Value;

use super::{Map, expand::expand, lower::type_of, merge, normal, normal::Normal};

/// Work for one answer, however small: see [`size`].
const MIN_WORK: usize = 500_000;
/// How often all of a schema and an answer may be gone through besides.
const ROUNDS: usize = 32;
/// Levels that are looked into.
const MAX_DEPTH: usize = 64;
/// Bytes of text that are as much work as a value.
const BYTES: usize = 32;

/// Looks at values with the schemas of one document, and tires of it after a while: alternatives
/// within alternatives can be tried in more ways than there is time for, and each try costs what it
/// copies.
#[derive(Debug)]
pub(super) struct Looks<'n> {
    normal: &'n Normal,
    left: Cell<usize>,
}

/// A schema with what is meant to hold in its place, a copy only where that is more than itself.
pub(super) struct Expanded<'s> {
    pub(super) schema: Cow<'s, Map>,
    /// No value is valid.
    pub(super) never: bool,
}

impl<'n> Looks<'n> {
    pub(super) fn new(normal: &'n Normal, answer: &Value) -> Self {
        let sizes = [
            size_of_map(&normal.root),
            size_of_map(&normal.defs),
            size(answer),
        ];
        let all = sizes.into_iter().fold(0_usize, usize::saturating_add);
        Self {
            normal,
            left: Cell::new(all.saturating_mul(ROUNDS).saturating_add(MIN_WORK)),
        }
    }

    /// Takes a step; `false` if there were too many.
    pub(super) fn step(&self, depth: usize) -> bool {
        self.work(1) && depth < MAX_DEPTH
    }

    /// Takes so much work; `false` if there was too much before.
    pub(super) fn work(&self, work: usize) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(work));
        left > 0
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.left.get()
    }

    pub(super) fn expanded<'s>(&'s self, schema: &'s Map) -> Expanded<'s> {
        let schema = self.meant(schema);
        if !schema.contains_key("$ref") && !schema.contains_key("allOf") {
            return Expanded {
                never: normal::is_never(schema),
                schema: Cow::Borrowed(schema),
            };
        }
        let expanded = expand(self.normal, schema);
        self.work(size_of_map(&expanded.schema).saturating_mul(expanded.parts));
        Expanded {
            never: expanded.never || normal::is_never(&expanded.schema),
            schema: Cow::Owned(expanded.schema),
        }
    }

    /// What a reference leads to, if nothing stands beside it that says something of the values;
    /// else the schema itself.
    fn meant<'s>(&'s self, schema: &'s Map) -> &'s Map {
        let mut meant = schema;
        for _ in 0..MAX_DEPTH {
            let Some(reference) = meant.get("$ref").and_then(Value::as_str) else {
                return meant;
            };
            let alone = meant
                .keys()
                .all(|keyword| keyword == "$ref" || merge::is_annotation(keyword));
            match self.normal.target(reference) {
                Some(target) if alone => meant = target,
                _ => return meant,
            }
        }
        schema
    }

    pub(super) fn accepts(&self, schema: &Map, value: &Value, depth: usize) -> bool {
        if !self.step(depth) {
            return true;
        }
        let Expanded { schema, never } = self.expanded(schema);
        if never {
            return false;
        }
        if let Some(constant) = schema.get("const") {
            self.work(size(constant));
            if constant != value {
                return false;
            }
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            self.work(values.iter().map(size).sum());
            if !values.contains(value) {
                return false;
            }
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
        self.work(required.map_or(0, Vec::len));
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

/// How much work it is to copy or compare a value: one for each value in it, and more for long
/// texts.
pub(super) fn size(value: &Value) -> usize {
    size_of_all(vec![value])
}

/// The same for an object.
pub(super) fn size_of_map(map: &Map) -> usize {
    size_of_all(map.values().collect()).saturating_add(1)
}

fn size_of_all(mut open: Vec<&Value>) -> usize {
    let mut size = 0_usize;
    // Not by recursion: the depth of a value is its author's to choose.
    while let Some(value) = open.pop() {
        let own = match value {
            Value::Array(items) => {
                open.extend(items);
                1
            }
            Value::Object(map) => {
                open.extend(map.values());
                1
            }
            Value::String(text) => 1 + text.len() / BYTES,
            _ => 1,
        };
        size = size.saturating_add(own);
    }
    size
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

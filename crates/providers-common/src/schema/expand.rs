//! Expansion of a schema: its `$ref` target and the members of its `allOf` are merged into it.

use std::collections::VecDeque;

use serde_json::Value;

use super::{
    Map, merge,
    normal::{self, Normal},
};

/// Maximum number of schemas that are merged in one place.
const MAX_PARTS: usize = 64;

/// One schema without `$ref` and `allOf`.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    pub(super) schema: Map,
    /// The resolved references.
    pub(super) via: Vec<String>,
    /// Keywords that could not be merged.
    pub(super) rest: Vec<(String, Value)>,
    pub(super) never: bool,
    pub(super) opened: bool,
    /// Number of merged schemas.
    pub(super) parts: usize,
}

/// Expands a schema.
pub(super) fn expand(normal: &Normal, schema: &Map) -> Expanded {
    expand_owned(normal, schema.clone())
}

/// Expands a schema without copying it, which matters for large schemas.
pub(super) fn expand_owned(normal: &Normal, schema: Map) -> Expanded {
    let mut out = Expanded::default();
    if !schema.contains_key("$ref") && !schema.contains_key("allOf") {
        out.never = normal::is_never(&schema);
        out.schema = schema;
        out.parts = 1;
        return out;
    }
    let mut left = VecDeque::from([schema]);
    while let Some(mut part) = left.pop_front() {
        out.parts += 1;
        if out.parts > MAX_PARTS {
            let members = left.drain(..).map(Value::Object);
            let members = std::iter::once(Value::Object(part)).chain(members);
            out.rest.push(("allOf".to_owned(), members.collect()));
            break;
        }
        let reference = part.shift_remove("$ref");
        let members = part.shift_remove("allOf");
        let merged = merge::intersect(std::mem::take(&mut out.schema), &part);
        out.schema = merged.schema;
        out.rest.extend(merged.rest);
        out.never |= merged.never;
        out.opened |= merged.opened;
        if let Some(Value::Array(members)) = members {
            for member in members.into_iter().rev() {
                if let Value::Object(member) = member {
                    left.push_front(member);
                }
            }
        }
        if let Some(Value::String(reference)) = reference {
            if let Some(target) = normal.target(&reference) {
                left.push_front(target.clone());
            }
            out.via.push(reference);
        }
    }
    out
}

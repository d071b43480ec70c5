//! A schema with what is meant to hold in the same place taken together: what its `$ref` leads to,
//! and the members of its `allOf`.

use std::collections::VecDeque;

use serde_json::Value;

use super::{
    Map, merge,
    normal::{self, Normal},
};

/// Schemas that are taken together in one place at most.
const MAX_PARTS: usize = 64;

/// One schema without `$ref` and `allOf`.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    pub(super) schema: Map,
    /// The references that were followed.
    pub(super) via: Vec<String>,
    /// Keywords that did not merge, to be told.
    pub(super) rest: Vec<(String, Value)>,
    pub(super) never: bool,
    pub(super) opened: bool,
    /// Schemas that were taken together.
    pub(super) parts: usize,
}

/// Takes a schema together with what is meant to hold in its place.
pub(super) fn expand(normal: &Normal, schema: &Map) -> Expanded {
    expand_owned(normal, schema.clone())
}

/// The same without a copy, which counts where a large schema is gone through level by level.
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

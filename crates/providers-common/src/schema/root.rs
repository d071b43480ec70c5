//! The form of the root: an object, on almost every wire.

mod alternatives;
mod keys;

use std::cell::Cell;

use serde_json::{Value, json};

use super::{
    change::{Change, ChangeKind},
    constraint_text as text,
    keywords::{Map, SchemaMembers, constrained_types, listed_values},
    merge::expand,
    normal::Normal,
    rules::{Additional, Rules},
};

/// Maximum nesting of alternatives at the root that are examined.
const MAX_DEPTH: usize = 8;
/// Maximum number of schemas that are examined at the root, because nested alternatives multiply.
const MAX_STEPS: usize = 2_000;
/// Maximum number of alternatives at the root that are united in one object.
const MAX_ALTERNATIVES: usize = 256;
/// Name of the property that holds the original root if that is not an object.
pub(super) const WRAPPER: &str = "value";

/// Returns the smallest schema that a dialect accepts: an object.
pub(super) fn least(rules: &Rules) -> Map {
    let mut least = Map::new();
    least.set("type", if rules.openapi { "OBJECT" } else { "object" });
    if rules.root_properties {
        least.set("properties", json!({}));
    }
    if rules.all_required {
        least.set("required", json!([]));
    }
    if rules.additional == Additional::Forbid {
        least.set("additionalProperties", false);
    }
    least
}

/// Returns whether a schema allows objects, and whether it allows other values except null. A
/// schema without constraints counts as an object. `steps` is the number of schemas that may still
/// be examined.
fn kinds(normal: &Normal, schema: &Map, depth: usize, steps: &Cell<usize>) -> (bool, bool) {
    if depth > MAX_DEPTH || !take_step(steps) {
        return (true, true);
    }
    let schema = expand(normal, schema.clone()).schema;
    let kind = |is_object: bool| (is_object, !is_object);
    let either = |one: (bool, bool), other: (bool, bool)| (one.0 || other.0, one.1 || other.1);
    let none = (false, false);
    if schema.contains_key("type") {
        let types = schema.types().into_iter().filter(|name| *name != "null");
        return types.map(|name| kind(name == "object")).fold(none, either);
    }
    if let Some(values) = listed_values(&schema) {
        let values = values.into_iter();
        return values.map(|it| kind(it.is_object())).fold(none, either);
    }
    if schema.has_any(&["properties", "required", "additionalProperties"]) {
        return kind(true);
    }
    let mut unions = ["anyOf", "oneOf"].into_iter();
    if let Some(keyword) = unions.find(|keyword| !schema.list(keyword).is_empty()) {
        let schemas = schema.schemas(keyword);
        let not_null = schemas.filter(|schema| schema.text("type") != Some("null"));
        let kinds = not_null.map(|it| kinds(normal, it, depth + 1, steps));
        return kinds.fold(none, either);
    }
    let constrains_others = |keyword: &String| {
        let types = constrained_types(keyword);
        !types.is_empty() && !types.contains(&"object")
    };
    kind(!schema.keys().any(constrains_others))
}

/// Counts one examined schema in `steps`. Returns `false` if no step is left.
fn take_step(steps: &Cell<usize>) -> bool {
    let left = steps.get();
    steps.set(left.saturating_sub(1));
    left > 0
}

/// Returns whether the root allows only objects.
fn is_object_root(normal: &Normal) -> bool {
    kinds(normal, &normal.root, 0, &Cell::new(MAX_STEPS)) == (true, false)
}

/// Returns whether a dialect needs the root to be wrapped in an object, as its only property.
pub(super) fn is_wrapped(normal: &Normal, rules: &Rules) -> bool {
    rules.wraps_root && !is_object_root(normal)
}

/// Converts the root to the form that the dialect accepts. Returns the old and new names of renamed
/// keys.
pub(super) fn prepare(
    normal: &mut Normal,
    rules: &Rules,
    changes: &mut Vec<Change>,
) -> Vec<(String, String)> {
    let is_wrapped = is_wrapped(normal, rules);
    if is_wrapped || !rules.root_reference {
        normal.move_root_to_definition();
    }
    if is_wrapped {
        let message = "the root is not an object: it became the property `value` of one";
        changes.push(Change::new("", ChangeKind::Wrapped, message));
        normal.root = wrapper(&normal.root);
    } else if rules.object_root
        && (rules.loose || rules.no_root_description || is_object_root(normal))
    {
        normal.root = object_root(normal, rules, changes);
    }
    if rules.restricted_keys {
        keys::rename(normal, changes)
    } else {
        Vec::new()
    }
}

fn object_root(normal: &Normal, rules: &Rules, changes: &mut Vec<Change>) -> Map {
    let mut report = |kind, message: &str| changes.push(Change::new("", kind, message));
    let expanded = expand(normal, normal.root.clone());
    if expanded.is_opened {
        report(ChangeKind::Widened, super::OPENED);
    }
    let mut root = expanded.schema;
    let mut described = expanded.conflicts;
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(alternatives)) = root.shift_remove(keyword)
            && alternatives::unite(normal, &mut root, keyword, &alternatives)
        {
            let message = format!("`{keyword}` of the root became one object");
            report(ChangeKind::Widened, &message);
        }
    }
    for keyword in rules.not_at_root {
        let value = root.shift_remove(*keyword);
        described.extend(value.map(|value| ((*keyword).to_owned(), value)));
    }
    for (keyword, value) in described {
        if let Some(sentence) = text::describe(&keyword, &value) {
            text::append(&mut root, &sentence);
        }
        let message = format!("`{keyword}` moved to the description");
        report(ChangeKind::Described, &message);
    }
    if root.text("type") != Some("object") {
        if root.contains_key("type") {
            let is_narrower = root.types().contains(&"object");
            let kind = if is_narrower {
                ChangeKind::Narrowed
            } else {
                ChangeKind::Invalid
            };
            report(kind, "the type of the root is set to `object`");
        }
        // `type` becomes the first key, because models read the keys in this order.
        root.shift_remove("type");
        root.shift_insert(0, "type".to_owned(), json!("object"));
    }
    if rules.root_properties && !root.contains_key("properties") {
        root.set("properties", json!({}));
    }
    root
}

/// Returns an object schema with `root` as its only property.
fn wrapper(root: &Map) -> Map {
    let mut wrapper = Map::new();
    wrapper.set("type", "object");
    wrapper.set("properties", json!({ WRAPPER: root }));
    wrapper.set("required", json!([WRAPPER]));
    wrapper.set("additionalProperties", false);
    wrapper
}

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

/// Maximum nesting of alternatives that are examined.
const MAX_DEPTH: usize = 8;
/// Maximum number of schemas that are examined, because nested alternatives multiply.
const MAX_STEPS: usize = 2_000;
/// Maximum number of alternatives that are united.
const MAX_ALTERNATIVES: usize = 256;
/// The property that holds a root that is not an object.
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

/// Which values of a schema are objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Objects {
    All,
    /// Objects and null.
    OrNull,
    Some,
    None,
}

/// A limit of examined schemas.
struct Steps(Cell<usize>);

impl Steps {
    fn new() -> Self {
        Self(Cell::new(MAX_STEPS))
    }

    /// Takes a step. Returns `false` if none is left.
    fn take(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left > 0
    }
}

/// Returns which values of a schema are objects. A schema without constraints counts as an object.
fn objects(normal: &Normal, schema: &Map, depth: usize, steps: &Steps) -> Objects {
    if !steps.take() {
        return Objects::Some;
    }
    let schema = expand(normal, schema.clone()).schema;
    if schema.contains_key("type") {
        let types = schema.types();
        return match (types.contains(&"object"), types.len()) {
            (false, _) => Objects::None,
            (true, 1) => Objects::All,
            (true, 2) if types.contains(&"null") => Objects::OrNull,
            (true, _) => Objects::Some,
        };
    }
    if let Some(values) = listed_values(&schema) {
        return match values.iter().filter(|value| value.is_object()).count() {
            0 => Objects::None,
            count if count == values.len() => Objects::All,
            _ => Objects::Some,
        };
    }
    if schema.has_any(&["properties", "required", "additionalProperties"]) {
        return Objects::All;
    }
    for keyword in ["anyOf", "oneOf"] {
        let is_null = |schema: &&Map| schema.text("type") == Some("null");
        let (nulls, others): (Vec<&Map>, Vec<&Map>) = schema.schemas(keyword).partition(is_null);
        if others.is_empty() {
            if nulls.is_empty() {
                continue;
            }
            return Objects::None;
        }
        if depth >= MAX_DEPTH {
            return Objects::Some;
        }
        let others = others.into_iter();
        let found: Vec<_> = others
            .map(|schema| objects(normal, schema, depth + 1, steps))
            .collect();
        let is_object = |it: &Objects| matches!(it, Objects::All | Objects::OrNull);
        return if found.iter().all(is_object) {
            if nulls.is_empty() && !found.contains(&Objects::OrNull) {
                Objects::All
            } else {
                Objects::OrNull
            }
        } else if found.iter().all(|it| *it == Objects::None) {
            Objects::None
        } else {
            Objects::Some
        };
    }
    let constrains_others = |keyword: &String| {
        let types = constrained_types(keyword);
        !types.is_empty() && !types.contains(&"object")
    };
    if schema.keys().any(constrains_others) {
        Objects::None
    } else {
        Objects::All
    }
}

fn objects_of_root(normal: &Normal) -> Objects {
    objects(normal, &normal.root, 0, &Steps::new())
}

/// Whether the root becomes a property of an object in a dialect.
pub(super) fn is_wrapped(normal: &Normal, rules: &Rules) -> bool {
    rules.wraps_root && matches!(objects_of_root(normal), Objects::None | Objects::Some)
}

/// Converts the root to the form that the dialect accepts. Returns the renamed keys with their new
/// names.
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
        && (rules.loose
            || rules.no_root_description
            || matches!(objects_of_root(normal), Objects::All | Objects::OrNull))
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
    if !expanded.references.is_empty() {
        report(ChangeKind::Rewritten, "the `$ref` of the root is inlined");
    }
    if expanded.parts > expanded.references.len() + 1 {
        report(ChangeKind::Rewritten, "`allOf` of the root is merged");
    }
    if expanded.is_opened {
        report(ChangeKind::Widened, super::OPENED);
    }
    let mut root = expanded.schema;
    for (keyword, value) in expanded.conflicts {
        report(
            ChangeKind::Described,
            &describe(&mut root, &keyword, &value),
        );
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(alternatives)) = root.shift_remove(keyword) {
            let is_widened = alternatives::unite(normal, &mut root, keyword, &alternatives);
            let kind = if is_widened {
                ChangeKind::Widened
            } else {
                ChangeKind::Rewritten
            };
            report(kind, &format!("`{keyword}` of the root became one object"));
        }
    }
    for keyword in rules.not_at_root {
        if let Some(value) = root.shift_remove(*keyword) {
            report(ChangeKind::Described, &describe(&mut root, keyword, &value));
        }
    }
    if root.text("type") != Some("object") {
        let kind = match root.get("type") {
            None => ChangeKind::Rewritten,
            Some(_) if root.types().contains(&"object") => ChangeKind::Narrowed,
            Some(_) => ChangeKind::Invalid,
        };
        report(kind, "the type of the root is set to `object`");
        // At the beginning, because models read in this order.
        root.shift_remove("type");
        root.shift_insert(0, "type".to_owned(), json!("object"));
    }
    if rules.root_properties && !root.contains_key("properties") {
        report(ChangeKind::Rewritten, "empty `properties` added");
        root.set("properties", json!({}));
    }
    root
}

/// Describes a keyword in the description. Returns the message of the change.
fn describe(schema: &mut Map, keyword: &str, value: &Value) -> String {
    match text::describe(keyword, value) {
        Some(sentence) => {
            text::append(schema, &sentence);
            format!("`{keyword}` moved to the description")
        }
        None => format!("`{keyword}` removed"),
    }
}

/// Returns an object with `root` as its only property.
fn wrapper(root: &Map) -> Map {
    let mut wrapper = Map::new();
    wrapper.set("type", "object");
    wrapper.set("properties", json!({ WRAPPER: root }));
    wrapper.set("required", json!([WRAPPER]));
    wrapper.set("additionalProperties", false);
    wrapper
}

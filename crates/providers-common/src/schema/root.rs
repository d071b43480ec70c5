//! What stands at the root: an object, on almost every wire.

mod forms;
mod keys;

use std::cell::Cell;

use serde_json::{Value, json};

use super::{
    Map,
    change::{Change, ChangeKind},
    expand::{Expanded, expand},
    merge,
    normal::{Normal, def_reference, walk},
    rules::{Further, Rules},
    words,
};

/// How deep alternatives are followed into alternatives.
const MAX_DEPTH: usize = 8;
/// Schemas that are looked at for the root at most: alternatives of alternatives are soon very
/// many.
const MAX_STEPS: usize = 2_000;
/// Alternatives that are taken together.
const MAX_FORMS: usize = 256;
/// The property that a root which is no object becomes.
pub(super) const WRAPPER: &str = "value";

/// The least that a dialect takes: an object.
pub(super) fn least(rules: &Rules) -> Value {
    let mut least = Map::new();
    least.insert("type".to_owned(), json!("object"));
    if rules.openapi {
        least.insert("type".to_owned(), json!("OBJECT"));
    }
    if rules.root_properties {
        least.insert("properties".to_owned(), json!({}));
    }
    if rules.all_required {
        least.insert("required".to_owned(), json!([]));
    }
    if rules.further == Further::Close {
        least.insert("additionalProperties".to_owned(), json!(false));
    }
    Value::Object(least)
}

/// Whether the values of a schema are objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Objects {
    All,
    /// Objects and null.
    OrNull,
    Some,
    None,
}

/// Whether the values are objects. What says nothing of them is taken for one.
pub(super) fn objects(normal: &Normal, schema: &Map) -> Objects {
    objects_within(normal, schema, 0, &Cell::new(MAX_STEPS))
}

fn objects_within(normal: &Normal, schema: &Map, depth: usize, left: &Cell<usize>) -> Objects {
    if !step(left) {
        return Objects::Some;
    }
    let schema = expand(normal, schema).schema;
    if let Some(types) = schema.get("type") {
        let names = merge::names(types);
        return match (names.contains(&"object"), names.len()) {
            (false, _) => Objects::None,
            (true, 1) => Objects::All,
            (true, 2) if names.contains(&"null") => Objects::OrNull,
            (true, _) => Objects::Some,
        };
    }
    if let Some(value) = schema.get("const") {
        return if value.is_object() {
            Objects::All
        } else {
            Objects::None
        };
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        let count = values.iter().filter(|value| value.is_object()).count();
        return match count {
            0 => Objects::None,
            _ if count == values.len() => Objects::All,
            _ => Objects::Some,
        };
    }
    let speaks_of = |keywords: &[&str]| keywords.iter().any(|it| schema.contains_key(*it));
    if speaks_of(&["properties", "required", "additionalProperties"]) {
        return Objects::All;
    }
    for keyword in ["anyOf", "oneOf"] {
        let arms = schema.get(keyword).and_then(Value::as_array);
        let arms = arms.into_iter().flatten().filter_map(Value::as_object);
        let mut found: Vec<Objects> = Vec::new();
        let mut null = false;
        for arm in arms {
            if depth >= MAX_DEPTH {
                return Objects::Some;
            }
            if arm.get("type") == Some(&json!("null")) {
                null = true;
            } else {
                found.push(objects_within(normal, arm, depth + 1, left));
            }
        }
        if found.is_empty() {
            if null {
                return Objects::None;
            }
            continue;
        }
        null |= found.contains(&Objects::OrNull);
        return if found
            .iter()
            .all(|it| matches!(it, Objects::All | Objects::OrNull))
        {
            if null { Objects::OrNull } else { Objects::All }
        } else if found.iter().all(|it| *it == Objects::None) {
            Objects::None
        } else {
            Objects::Some
        };
    }
    let of_others = [
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
    ];
    if speaks_of(&of_others) {
        Objects::None
    } else {
        Objects::All
    }
}

/// Whether the root becomes a property of an object in this dialect.
pub(super) fn is_wrapped(normal: &Normal, rules: &Rules) -> bool {
    rules.wraps_root && matches!(objects(normal, &normal.root), Objects::None | Objects::Some)
}

/// Gives the root the form that the dialect takes there. Returns the keys that got another name,
/// with that name.
pub(super) fn prepare(
    normal: &mut Normal,
    rules: &Rules,
    changes: &mut Vec<Change>,
) -> Vec<(String, String)> {
    shape(normal, rules, changes);
    if rules.narrow_keys {
        keys::rename(normal, changes)
    } else {
        Vec::new()
    }
}

fn shape(normal: &mut Normal, rules: &Rules, changes: &mut Vec<Change>) {
    let mut report = |kind, message: &str| changes.push(Change::new("", kind, message));
    let wrapped = is_wrapped(normal, rules);
    if wrapped || !rules.root_ref {
        hoist(normal);
    }
    if wrapped {
        report(
            ChangeKind::Wrapped,
            "the root is no object: it is in the property `value` of one",
        );
        let root = std::mem::take(&mut normal.root);
        normal.root = wrapper(root);
        return;
    }
    let of_objects = objects(normal, &normal.root);
    let forced = rules.loose || rules.mute_root;
    if !rules.object_root || (matches!(of_objects, Objects::None) && !forced) {
        return;
    }
    if matches!(of_objects, Objects::Some) && !forced {
        return;
    }
    let expanded = expand(normal, &normal.root);
    if !expanded.via.is_empty() {
        report(
            ChangeKind::Rewritten,
            "what the root refers to stands in the root",
        );
    }
    if expanded.parts > expanded.via.len() + 1 {
        report(
            ChangeKind::Rewritten,
            "`allOf` of the root is merged into it",
        );
    }
    if expanded.opened {
        report(
            ChangeKind::Widened,
            "closed objects are taken together with the properties of others",
        );
    }
    let Expanded {
        schema: mut root,
        rest,
        ..
    } = expanded;
    for (keyword, value) in rest {
        tell(&mut root, &keyword, &value, &mut report);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(arms)) = root.shift_remove(keyword) {
            let kind = if forms::unite(normal, &mut root, keyword, &arms) {
                ChangeKind::Widened
            } else {
                ChangeKind::Rewritten
            };
            let message = format!("what `{keyword}` of the root allows is one object");
            report(kind, &message);
        }
    }
    for keyword in rules.not_at_root {
        if let Some(value) = root.shift_remove(*keyword) {
            tell(&mut root, keyword, &value, &mut report);
        }
    }
    let is_object = root.get("type") == Some(&json!("object"));
    if !is_object {
        let kind = match root.get("type") {
            None => ChangeKind::Rewritten,
            Some(types) if merge::names(types).contains(&"object") => ChangeKind::Narrowed,
            Some(_) => ChangeKind::Invalid,
        };
        report(kind, "the root is an object");
        // In front: models read in the order given.
        root.shift_remove("type");
        root.shift_insert(0, "type".to_owned(), json!("object"));
    }
    if rules.root_properties && !root.contains_key("properties") {
        report(ChangeKind::Rewritten, "`properties` is there, though empty");
        root.insert("properties".to_owned(), json!({}));
    }
    normal.root = root;
}

fn tell(schema: &mut Map, keyword: &str, value: &Value, report: &mut impl FnMut(ChangeKind, &str)) {
    let message = match words::sentence(keyword, value) {
        Some(sentence) => {
            words::append(schema, &sentence);
            format!("`{keyword}` is said in the description")
        }
        None => format!("`{keyword}` left out"),
    };
    report(ChangeKind::Described, &message);
}

/// The object that a root which is none becomes a property of.
pub(super) fn wrapper(root: Map) -> Map {
    let mut properties = Map::new();
    properties.insert(WRAPPER.to_owned(), Value::Object(root));
    let mut wrapper = Map::new();
    wrapper.insert("type".to_owned(), json!("object"));
    wrapper.insert("properties".to_owned(), Value::Object(properties));
    wrapper.insert("required".to_owned(), json!([WRAPPER]));
    wrapper.insert("additionalProperties".to_owned(), json!(false));
    wrapper
}

/// Makes a definition of the root if something refers to it.
fn hoist(normal: &mut Normal) {
    let refers = |schema: &Map| walk::references(schema).contains(&"#");
    let in_defs = |def: &Value| def.as_object().is_some_and(refers);
    if !refers(&normal.root) && !normal.defs.values().any(in_defs) {
        return;
    }
    let mut name = "root".to_owned();
    while normal.defs.contains_key(&name) {
        name.push('_');
    }
    let reference = def_reference(&name);
    normal.defs.insert(name, Value::Object(normal.root.clone()));
    let mut rename = |schema: &mut Map, _: &str| {
        if schema.get("$ref") == Some(&json!("#")) {
            schema.insert("$ref".to_owned(), json!(reference));
        }
    };
    walk::every_mut(&mut normal.root, "", &mut rename);
    for def in normal.defs.values_mut().filter_map(Value::as_object_mut) {
        walk::every_mut(def, "", &mut rename);
    }
}

/// Counts a step; `false` if there were too many.
fn step(left: &Cell<usize>) -> bool {
    let count = left.get();
    left.set(count.saturating_sub(1));
    count > 0
}

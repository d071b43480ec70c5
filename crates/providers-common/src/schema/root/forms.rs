//! The alternatives of a root as one object.

use std::{cell::Cell, collections::HashSet};

use serde_json::{Value, json};

use super::{MAX_DEPTH, MAX_FORMS, MAX_STEPS, Objects, objects_within, step};
use crate::schema::{Map, expand::expand, merge, normal::Normal, words};

/// Gives `root` the properties of all alternatives. Whether it allows more now than they did.
pub(super) fn unite(normal: &Normal, root: &mut Map, keyword: &str, arms: &[Value]) -> bool {
    let mut found = Vec::new();
    let left = Cell::new(MAX_STEPS);
    for arm in arms.iter().filter_map(Value::as_object) {
        flatten(normal, arm, &mut found, MAX_DEPTH, &left);
    }
    if let Some(names) = words::alternatives_of_names(arms) {
        let count = if keyword == "oneOf" {
            "exactly one"
        } else {
            "at least one"
        };
        words::append(root, &format!("Give {count} of: {names}."));
    } else if found.len() > 1 {
        let forms: Vec<String> = found.iter().map(words::form).collect();
        words::append(root, &format!("One of these forms: {}.", forms.join(" | ")));
    }
    let own = root.get("properties").and_then(Value::as_object).cloned();
    let own = own.unwrap_or_default();
    let mut properties: Vec<(String, Vec<Value>, usize)> = Vec::new();
    for arm in &found {
        let named = arm.get("properties").and_then(Value::as_object);
        for (name, schema) in named.into_iter().flatten() {
            match properties.iter_mut().find(|(known, ..)| known == name) {
                Some((_, schemas, count)) => {
                    *count += 1;
                    if !schemas.contains(schema) {
                        schemas.push(schema.clone());
                    }
                }
                None => properties.push((name.clone(), vec![schema.clone()], 1)),
            }
        }
    }
    let mut out = own.clone();
    for (name, schemas, count) in properties {
        let either = either(schemas);
        match own.get(&name) {
            None => {
                out.insert(name, either);
            }
            // Only what every alternative says holds for all of them.
            Some(ours) if count == found.len() && *ours != either => {
                let is_any = ours.as_object().is_some_and(Map::is_empty);
                let both = if is_any {
                    either
                } else {
                    json!({"allOf": [ours, either]})
                };
                out.insert(name, both);
            }
            Some(_) => {}
        }
    }
    if !out.is_empty() || root.contains_key("properties") {
        root.insert("properties".to_owned(), Value::Object(out));
    }
    let required_by = |arm: &Map| -> Vec<Value> {
        let names = arm.get("required").and_then(Value::as_array);
        names.cloned().unwrap_or_default()
    };
    let common = found.first().map(&required_by).unwrap_or_default();
    let common = common
        .into_iter()
        .filter(|name| found.iter().all(|arm| required_by(arm).contains(name)));
    let mut required = required_by(root);
    for name in common {
        if !required.contains(&name) {
            required.push(name);
        }
    }
    if !required.is_empty() {
        root.insert("required".to_owned(), Value::Array(required));
    }
    let is_closed = |arm: &Map| arm.get("additionalProperties") == Some(&json!(false));
    if !found.is_empty() && found.iter().all(is_closed) {
        root.insert("additionalProperties".to_owned(), json!(false));
    }
    found.len() > 1
}

/// The alternatives that are objects, those within alternatives too.
fn flatten(normal: &Normal, arm: &Map, found: &mut Vec<Map>, depth: usize, left: &Cell<usize>) {
    if found.len() >= MAX_FORMS || !step(left) {
        return;
    }
    let arm = expand(normal, arm).schema;
    if matches!(objects_within(normal, &arm, 0, left), Objects::None) {
        return;
    }
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    let mut base = arm;
    let inner = ["anyOf", "oneOf"].into_iter().find_map(|keyword| {
        let Some(Value::Array(inner)) = base.shift_remove(keyword) else {
            return None;
        };
        Some(inner)
    });
    let Some(inner) = inner else {
        found.push(base);
        return;
    };
    for one in inner.iter().filter_map(Value::as_object) {
        let both = merge::intersect(base.clone(), &expand(normal, one).schema);
        if !both.never {
            flatten(normal, &both.schema, found, depth, left);
        }
    }
}

/// A schema for values that are valid against one of several.
fn either(mut schemas: Vec<Value>) -> Value {
    if schemas.len() == 1 {
        return schemas.remove(0);
    }
    // Constants make an enumeration, if they have nothing else to say.
    let mut values: Vec<Value> = Vec::new();
    let mut types = HashSet::new();
    let mut plain = true;
    for schema in &schemas {
        let Some(map) = schema.as_object() else {
            plain = false;
            break;
        };
        plain &= map
            .keys()
            .all(|it| matches!(it.as_str(), "const" | "enum" | "type"));
        types.insert(map.get("type").map(Value::to_string));
        let listed = map.get("enum").and_then(Value::as_array);
        let found: Vec<&Value> = map
            .get("const")
            .into_iter()
            .chain(listed.into_iter().flatten())
            .collect();
        plain &= !found.is_empty();
        for value in found {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
    }
    if !plain || types.len() != 1 {
        return json!({ "anyOf": schemas });
    }
    let mut out = Map::new();
    if let Some(types) = schemas.first().and_then(|it| it.get("type")) {
        out.insert("type".to_owned(), types.clone());
    }
    out.insert("enum".to_owned(), Value::Array(values));
    Value::Object(out)
}

//! Union of the alternatives of a root into one object.

use std::{cell::Cell, collections::HashSet};

use serde_json::{Value, json};

use super::{
    MAX_ALTERNATIVES, MAX_DEPTH, MAX_STEPS, Map, Normal, SchemaMembers, kinds, take_step, text,
};
use crate::schema::{
    keywords::listed_values,
    merge::{expand, intersection},
};

/// Adds the properties of all alternatives to `root`. Returns whether the result allows more
/// values.
pub(super) fn unite(
    normal: &Normal,
    root: &mut Map,
    keyword: &str,
    alternatives: &[Value],
) -> bool {
    let mut found = Vec::new();
    let steps = Cell::new(MAX_STEPS);
    for alternative in alternatives.iter().filter_map(Value::as_object) {
        collect(normal, alternative, &mut found, MAX_DEPTH, &steps);
    }
    if let Some(keys) = text::required_alternatives(alternatives) {
        let count = if keyword == "oneOf" {
            "exactly one"
        } else {
            "at least one"
        };
        text::append(root, &format!("Give {count} of: {keys}."));
    } else if found.len() > 1 {
        let summaries: Vec<String> = found.iter().map(text::object_summary).collect();
        text::append(
            root,
            &format!("One of these forms: {}.", summaries.join(" | ")),
        );
    }
    let properties = united_properties(root, &found);
    if !properties.is_empty() || root.contains_key("properties") {
        root.set("properties", properties);
    }
    let mut required: Vec<&str> = root.required().collect();
    for name in found.first().into_iter().flat_map(Map::required) {
        if found.iter().all(|it| it.requires(name)) && !required.contains(&name) {
            required.push(name);
        }
    }
    if !required.is_empty() {
        let required = json!(required);
        root.set("required", required);
    }
    if !found.is_empty() && found.iter().all(|it| it.is_false("additionalProperties")) {
        root.set("additionalProperties", false);
    }
    found.len() > 1
}

/// Returns the properties of the root and of its alternatives in one map.
fn united_properties(root: &Map, alternatives: &[Map]) -> Map {
    let own = root.object("properties").cloned().unwrap_or_default();
    let mut found: Vec<(&String, Vec<&Value>, usize)> = Vec::new();
    let named = alternatives.iter().filter_map(|it| it.object("properties"));
    for (name, schema) in named.flatten() {
        match found.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, schemas, count)) => {
                *count += 1;
                if !schemas.contains(&schema) {
                    schemas.push(schema);
                }
            }
            None => found.push((name, vec![schema], 1)),
        }
    }
    let mut united = own.clone();
    for (name, schemas, count) in found {
        let either = either(&schemas);
        let schema = match own.get(name) {
            None => either,
            // A constraint that some alternatives lack does not apply to all of them.
            Some(ours) if count < alternatives.len() || *ours == either => continue,
            Some(ours) if ours.as_object().is_some_and(Map::is_empty) => either,
            Some(ours) => json!({"allOf": [ours, either]}),
        };
        united.insert(name.clone(), schema);
    }
    united
}

/// Collects the alternatives that are objects, including nested ones.
fn collect(normal: &Normal, schema: &Map, found: &mut Vec<Map>, depth: usize, steps: &Cell<usize>) {
    if found.len() >= MAX_ALTERNATIVES || !take_step(steps) {
        return;
    }
    let mut base = expand(normal, schema.clone()).schema;
    if depth == 0 || !kinds(normal, &base, 0, steps).0 {
        return;
    }
    let keyword = ["anyOf", "oneOf"]
        .into_iter()
        .find(|keyword| base.get(*keyword).is_some_and(Value::is_array));
    let Some(Value::Array(nested)) = keyword.and_then(|keyword| base.shift_remove(keyword)) else {
        found.push(base);
        return;
    };
    for one in nested.iter().filter_map(Value::as_object) {
        let both = intersection(base.clone(), &expand(normal, one.clone()).schema);
        if !both.is_never {
            collect(normal, &both.schema, found, depth - 1, steps);
        }
    }
}

/// Returns a schema for the values of any of `schemas`. Listed values are joined in one `enum`.
fn either(schemas: &[&Value]) -> Value {
    if let [one] = schemas {
        return (*one).clone();
    }
    let mut values: Vec<&Value> = Vec::new();
    let mut types = HashSet::new();
    for schema in schemas {
        let listed = schema.as_object().filter(|it| {
            it.keys()
                .all(|keyword| matches!(keyword.as_str(), "const" | "enum" | "type"))
        });
        let Some(listed_values) = listed.and_then(listed_values).filter(|it| !it.is_empty()) else {
            return json!({ "anyOf": schemas });
        };
        types.insert(schema.get("type").map(Value::to_string));
        for value in listed_values {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    if types.len() != 1 {
        return json!({ "anyOf": schemas });
    }
    let mut out = Map::new();
    if let Some(types) = schemas.first().and_then(|it| it.get("type")) {
        out.set("type", types.clone());
    }
    out.set("enum", json!(values));
    Value::Object(out)
}

//! Schemas that are defined by themselves without an end: `a` is whatever `a` is.
//!
//! Recursion through a property or an item is well founded: each level of the schema is a level of
//! the value. Recursion in place (`allOf: [{$ref: a}]` within `a`) is not, and no validator ends on
//! it. Such references are taken out.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Map, Normal, below, def_name};
use crate::schema::change::{Change, ChangeKind};

/// Keywords whose schemas apply to the same value.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];

/// Takes out every reference that leads back to where it stands without going down into the value.
pub(super) fn open(normal: &mut Normal, changes: &mut Vec<Change>) {
    let mut edges: HashMap<String, HashSet<String>> = HashMap::new();
    let names = || std::iter::once("#").chain(normal.defs.keys().map(String::as_str));
    for name in names() {
        let schema = match name {
            "#" => Some(&normal.root),
            _ => normal.defs.get(name).and_then(Value::as_object),
        };
        let mut found = HashSet::new();
        if let Some(schema) = schema {
            collect(schema, &mut found);
        }
        edges.insert(name.to_owned(), found);
    }
    let circle = in_circles(&edges);
    let mut broken: Vec<(String, HashSet<String>)> = Vec::new();
    for name in names() {
        let Some(own) = circle.get(name) else {
            continue;
        };
        let targets = edges.get(name).into_iter().flatten();
        let bad: HashSet<String> = targets
            .filter(|target| circle.get(target.as_str()) == Some(own))
            .cloned()
            .collect();
        broken.push((name.to_owned(), bad));
    }
    for (name, bad) in broken {
        let at = match name.as_str() {
            "#" => String::new(),
            name => below("", "$defs", name),
        };
        let schema = match name.as_str() {
            "#" => Some(&mut normal.root),
            name => normal.defs.get_mut(name).and_then(Value::as_object_mut),
        };
        if let Some(schema) = schema {
            cut(schema, &bad);
            let message = "defined by itself without an end: the reference was taken out";
            changes.push(Change::new(&at, ChangeKind::Invalid, message));
        }
    }
}

/// The names that lead back to themselves, each with the number of its circle: those that lead to
/// each other have the same. (The strongly connected components, after Kosaraju.)
pub(super) fn in_circles(edges: &HashMap<String, HashSet<String>>) -> HashMap<String, usize> {
    let mut names: Vec<&str> = edges.keys().map(String::as_str).collect();
    names.sort_unstable();
    let mut finished: Vec<&str> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut backwards: HashMap<&str, Vec<&str>> = HashMap::new();
    for name in &names {
        // Second visits mark that all that follows is finished.
        let mut left = vec![(*name, false)];
        while let Some((name, done)) = left.pop() {
            if done {
                finished.push(name);
                continue;
            }
            if !seen.insert(name) {
                continue;
            }
            left.push((name, true));
            for target in edges.get(name).into_iter().flatten() {
                backwards.entry(target).or_default().push(name);
                left.push((target, false));
            }
        }
    }
    let mut number: HashMap<String, usize> = HashMap::new();
    let mut assigned: HashSet<&str> = HashSet::new();
    for (count, name) in finished.iter().rev().enumerate() {
        let mut members = Vec::new();
        let mut left = vec![*name];
        while let Some(name) = left.pop() {
            if assigned.insert(name) {
                members.push(name);
                left.extend(backwards.get(name).into_iter().flatten());
            }
        }
        let to_itself = |name: &str| edges.get(name).is_some_and(|it| it.contains(name));
        if members.len() > 1 || members.iter().any(|name| to_itself(name)) {
            number.extend(members.into_iter().map(|name| (name.to_owned(), count)));
        }
    }
    number
}

fn key(reference: &str) -> Option<&str> {
    match reference {
        "#" => Some("#"),
        _ => def_name(reference),
    }
}

fn collect(schema: &Map, found: &mut HashSet<String>) {
    if let Some(Value::String(reference)) = schema.get("$ref") {
        found.extend(key(reference).map(str::to_owned));
    }
    for keyword in IN_PLACE_LISTS {
        let list = schema.get(keyword).and_then(Value::as_array);
        for one in list.into_iter().flatten().filter_map(Value::as_object) {
            collect(one, found);
        }
    }
    for keyword in IN_PLACE {
        if let Some(Value::Object(one)) = schema.get(keyword) {
            collect(one, found);
        }
    }
    if let Some(Value::Object(named)) = schema.get("dependentSchemas") {
        for one in named.values().filter_map(Value::as_object) {
            collect(one, found);
        }
    }
}

fn cut(schema: &mut Map, bad: &HashSet<String>) {
    let is_bad = |value: &Value| {
        let reference = value.get("$ref").and_then(Value::as_str).and_then(key);
        reference.is_some_and(|it| bad.contains(it))
    };
    let own = schema.get("$ref").and_then(Value::as_str).and_then(key);
    if own.is_some_and(|it| bad.contains(it)) {
        schema.shift_remove("$ref");
    }
    for keyword in IN_PLACE_LISTS {
        let Some(Value::Array(list)) = schema.get_mut(keyword) else {
            continue;
        };
        // An alternative that is the whole itself adds nothing to it.
        list.retain(|one| !is_bad(one));
        if list.is_empty() {
            schema.shift_remove(keyword);
            continue;
        }
        for one in list.iter_mut().filter_map(Value::as_object_mut) {
            cut(one, bad);
        }
    }
    for keyword in IN_PLACE {
        match schema.get_mut(keyword) {
            Some(one) if is_bad(one) => {
                schema.shift_remove(keyword);
            }
            Some(Value::Object(one)) => cut(one, bad),
            _ => {}
        }
    }
    if let Some(Value::Object(named)) = schema.get_mut("dependentSchemas") {
        for one in named.values_mut().filter_map(Value::as_object_mut) {
            cut(one, bad);
        }
    }
}

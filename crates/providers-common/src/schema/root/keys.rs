//! Keys that a wire does not take at the root.

use std::collections::HashSet;

use serde_json::Value;

use super::hoist;
use crate::schema::{
    Map,
    change::{Change, ChangeKind},
    normal::{Normal, below},
    words,
};

/// Gives the properties of the root names that the wire takes.
pub(super) fn rename(normal: &mut Normal, changes: &mut Vec<Change>) -> Vec<(String, String)> {
    let properties = normal.root.get("properties").and_then(Value::as_object);
    let own = properties
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str);
    let required = normal.root.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let mut keys: Vec<&str> = Vec::new();
    let mut known = HashSet::new();
    for key in own.chain(required) {
        if known.insert(key) {
            keys.push(key);
        }
    }
    let names = key_names(&keys);
    if names.is_empty() {
        return names;
    }
    // What refers to the root means the keys as they are.
    hoist(normal);
    let name_of = |key: &str| {
        let found = names.iter().find(|(known, _)| known == key);
        found.map_or_else(|| key.to_owned(), |(_, name)| name.clone())
    };
    if let Some(Value::Object(properties)) = normal.root.get_mut("properties") {
        let mut renamed = Map::new();
        for (key, mut schema) in std::mem::take(properties) {
            let name = name_of(&key);
            if name != key {
                let at = below("", "properties", &key);
                let message = format!("the key is `{name}` on this wire");
                changes.push(Change::new(&at, ChangeKind::Renamed, message));
                if let Value::Object(schema) = &mut schema
                    && !schema.contains_key("$ref")
                {
                    words::append(schema, &format!("Stands for `{}`.", words::excerpt(&key)));
                }
            }
            renamed.insert(name, schema);
        }
        *properties = renamed;
    }
    if let Some(Value::Array(keys)) = normal.root.get_mut("required") {
        for key in keys {
            if let Value::String(key) = key {
                *key = name_of(key);
            }
        }
    }
    names
}

/// The names under which keys of the root's properties go over a wire that takes only
/// `[a-zA-Z0-9_.-]{1,64}`, for those that are not such. The same for the same keys, no two alike.
fn key_names(keys: &[&str]) -> Vec<(String, String)> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_legal = |key: &&&str| (1..=64).contains(&key.len()) && key.chars().all(legal);
    let mut taken: HashSet<String> = HashSet::new();
    taken.extend(keys.iter().filter(is_legal).map(|it| (*it).to_owned()));
    let mut out = Vec::new();
    for key in keys.iter().filter(|it| !is_legal(it)) {
        let clean: String = key
            .chars()
            .map(|c| if legal(c) { c } else { '_' })
            .take(60)
            .collect();
        // `filter[name]` reads better as `filter_name`.
        let clean = clean.trim_matches('_');
        let clean = if clean.is_empty() { "key" } else { clean };
        let mut name = clean.to_owned();
        let mut count = 1_usize;
        while !taken.insert(name.clone()) {
            count += 1;
            name = format!("{clean}_{count}");
        }
        out.push(((*key).to_owned(), name));
    }
    out
}

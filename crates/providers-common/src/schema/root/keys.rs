//! Property names that a wire does not accept at the root.

use std::collections::HashSet;

use serde_json::Value;

use super::{Change, ChangeKind, Map, Normal, SchemaMembers, text};
use crate::schema::keywords::pointer_below;

/// Renames the properties of the root whose names the wire does not accept. Returns the old and new
/// names.
pub(super) fn rename(normal: &mut Normal, changes: &mut Vec<Change>) -> Vec<(String, String)> {
    let properties = normal.root.object("properties").into_iter();
    let own = properties.flat_map(Map::keys).map(String::as_str);
    let mut known = HashSet::new();
    let keys: Vec<&str> = own
        .chain(normal.root.required())
        .filter(|key| known.insert(*key))
        .collect();
    let names = new_names(&keys);
    if names.is_empty() {
        return names;
    }
    // References to the root expect the original names, so the root becomes a definition first.
    normal.move_root_to_definition();
    let name_of = |key: &str| {
        let found = names.iter().find(|(known, _)| known == key);
        found.map_or_else(|| key.to_owned(), |(_, name)| name.clone())
    };
    if let Some(Value::Object(properties)) = normal.root.get_mut("properties") {
        let mut renamed = Map::new();
        for (key, mut schema) in std::mem::take(properties) {
            let name = name_of(&key);
            if name != key {
                let message = format!("the key became `{name}`");
                let at = pointer_below("", "properties", &key);
                changes.push(Change::new(&at, ChangeKind::Renamed, message));
                if let Value::Object(schema) = &mut schema
                    && !schema.contains_key("$ref")
                {
                    let original = text::excerpt(&key);
                    text::append(schema, &format!("Original key: `{original}`."));
                }
            }
            renamed.insert(name, schema);
        }
        *properties = renamed;
    }
    if let Some(Value::Array(required)) = normal.root.get_mut("required") {
        for key in required {
            if let Value::String(key) = key {
                *key = name_of(key);
            }
        }
    }
    names
}

/// Returns unique new names for the keys that do not match `[a-zA-Z0-9_.-]{1,64}`. The same keys
/// always get the same names.
fn new_names(keys: &[&str]) -> Vec<(String, String)> {
    let is_legal_char = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_legal = |key: &&str| (1..=64).contains(&key.len()) && key.chars().all(is_legal_char);
    let (legal, illegal): (Vec<&str>, Vec<&str>) = keys.iter().copied().partition(is_legal);
    let mut taken: HashSet<String> = legal.into_iter().map(str::to_owned).collect();
    let mut renamed = Vec::new();
    for key in illegal {
        let legal = key.chars().map(|c| if is_legal_char(c) { c } else { '_' });
        let legal: String = legal.take(60).collect();
        // For example, `filter[name]` becomes `filter_name`.
        let base = match legal.trim_matches('_') {
            "" => "key",
            base => base,
        };
        let mut name = base.to_owned();
        let mut count = 1_usize;
        while !taken.insert(name.clone()) {
            count += 1;
            name = format!("{base}_{count}");
        }
        renamed.push((key.to_owned(), name));
    }
    renamed
}

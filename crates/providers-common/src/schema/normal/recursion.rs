//! Removal of infinite recursion.
//!
//! Recursion through a property or an item ends with the value. Recursion in place, such as
//! `allOf: [{$ref: a}]` within `a`, never ends: such references are removed.

use std::collections::{HashMap, HashSet};

use super::{Map, Normal, def_name, def_pointer};
use crate::schema::{
    change::{Change, ChangeKind},
    keywords::{SchemaMembers, children_mut},
};

/// Names of definitions, each with the names that it refers to.
type Edges = HashMap<String, HashSet<String>>;

/// Keywords whose subschemas apply to the same value as the schema itself.
const IN_PLACE: [&str; 8] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
];

/// Removes references with which a definition would require itself for the same value, without end.
pub(super) fn remove_infinite(normal: &mut Normal, changes: &mut Vec<Change>) {
    let names: Vec<String> = normal.names().map(str::to_owned).collect();
    let mut edges = Edges::new();
    for name in &names {
        let targets = edges.entry(name.clone()).or_default();
        if let Some(schema) = normal.schema_mut(name) {
            visit_in_place(schema, &mut |schema| {
                targets.extend(schema.text("$ref").map(|it| def_name(it).to_owned()));
            });
        }
    }
    let cycles = cycles(&edges);
    for name in names {
        let Some(cycle) = cycles.get(&name) else {
            continue;
        };
        if let Some(schema) = normal.schema_mut(&name) {
            visit_in_place(schema, &mut |schema| {
                let target = schema.text("$ref").map(def_name);
                if target.is_some_and(|target| cycles.get(target) == Some(cycle)) {
                    schema.shift_remove("$ref");
                }
            });
            let message = "infinite recursion: the reference was removed";
            let at = def_pointer(&name);
            changes.push(Change::new(&at, ChangeKind::Invalid, message));
        }
    }
}

/// Calls `visit` for a schema and for the schemas in it that apply to the same value.
fn visit_in_place(schema: &mut Map, visit: &mut dyn FnMut(&mut Map)) {
    visit(schema);
    for (keyword, child) in children_mut(schema) {
        if IN_PLACE.contains(&keyword) {
            visit_in_place(child, visit);
        }
    }
}

/// Returns the names that lead back to themselves, with the number of their cycle. Names that lead
/// to each other have the same number: the strongly connected components (Kosaraju's algorithm).
pub(super) fn cycles(edges: &Edges) -> HashMap<String, usize> {
    let mut names: Vec<&str> = edges.keys().map(String::as_str).collect();
    names.sort_unstable();
    let mut finished: Vec<&str> = Vec::new();
    let mut visited: HashSet<&str> = HashSet::new();
    let mut reversed: HashMap<&str, Vec<&str>> = HashMap::new();
    for name in names {
        // `true` marks a name for which all names that follow from it are finished.
        let mut pending = vec![(name, false)];
        while let Some((name, is_finished)) = pending.pop() {
            if is_finished {
                finished.push(name);
            } else if visited.insert(name) {
                pending.push((name, true));
                for target in edges.get(name).into_iter().flatten() {
                    reversed.entry(target).or_default().push(name);
                    pending.push((target, false));
                }
            }
        }
    }
    let mut cycles = HashMap::new();
    let mut assigned: HashSet<&str> = HashSet::new();
    for (number, name) in finished.iter().rev().enumerate() {
        let mut members = Vec::new();
        let mut pending = vec![*name];
        while let Some(name) = pending.pop() {
            if assigned.insert(name) {
                members.push(name);
                pending.extend(reversed.get(name).into_iter().flatten());
            }
        }
        let has_itself = |name: &&str| edges.get(*name).is_some_and(|it| it.contains(*name));
        if members.len() > 1 || members.iter().any(has_itself) {
            cycles.extend(members.into_iter().map(|name| (name.to_owned(), number)));
        }
    }
    cycles
}

//! Normalisation to draft 2020-12.
//!
//! Every reference becomes `#` or the name of a definition in the root's `$defs`. Other spellings
//! of older drafts and of OpenAPI 3.0 are converted: `definitions`, `items` as a list,
//! `exclusiveMinimum: true`, `required: true`, `nullable`, `dependencies`, types in upper case.
//! Invalid schemas become "any value".

mod keyword;
mod recursion;

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::{
    change::{Change, ChangeKind},
    constraint_text as text,
    keywords::{Map, SchemaMembers, escaped, never, pointer_below, references, visit_mut},
    rules::{MAX_DEPTH, MAX_NODES},
};
pub(super) use keyword::add_null_value;

/// Name that stands for the root among the names of definitions.
const ROOT: &str = "#";

/// A schema that is normalised to draft 2020-12 of JSON Schema.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Normal {
    /// Root schema without its definitions.
    pub(super) root: Map,
    /// Definitions that the schema refers to. Each value is an object.
    pub(super) defs: Map,
}

/// Returns the name of the definition in `#/$defs/name`, or `#` for the root.
pub(super) fn def_name(reference: &str) -> &str {
    reference.strip_prefix("#/$defs/").unwrap_or(ROOT)
}

/// Returns the JSON pointer of a definition or of the root.
pub(super) fn def_pointer(name: &str) -> String {
    match name {
        ROOT => String::new(),
        name => pointer_below("", "$defs", name),
    }
}

fn def_reference(name: &str) -> String {
    format!("#/$defs/{name}")
}

impl Normal {
    /// Returns the definition with this name, or the root for `#`.
    pub(super) fn schema(&self, name: &str) -> Option<&Map> {
        match name {
            ROOT => Some(&self.root),
            name => self.defs.object(name),
        }
    }

    fn schema_mut(&mut self, name: &str) -> Option<&mut Map> {
        match name {
            ROOT => Some(&mut self.root),
            name => self.defs.get_mut(name)?.as_object_mut(),
        }
    }

    /// Returns the schema that a reference points to.
    pub(super) fn target(&self, reference: &str) -> Option<&Map> {
        self.schema(def_name(reference))
    }

    /// Returns the names of the root and of all definitions.
    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(ROOT).chain(self.defs.keys().map(String::as_str))
    }

    /// Calls `visit` for every subschema of the root and of the definitions.
    pub(super) fn visit_mut(&mut self, visit: &mut dyn FnMut(&mut Map)) {
        visit_mut(&mut self.root, visit);
        for def in self.defs.values_mut().filter_map(Value::as_object_mut) {
            visit_mut(def, visit);
        }
    }

    /// Returns the names of the definitions (`#` for the root) that contain themselves.
    pub(super) fn recursive(&self) -> HashSet<String> {
        let edges = self.names().map(|name| {
            let references = self.schema(name).map(references).unwrap_or_default();
            let targets = references.into_iter().map(|it| def_name(it).to_owned());
            (name.to_owned(), targets.collect())
        });
        recursion::cycles(&edges.collect()).into_keys().collect()
    }

    /// Moves the root into the definitions, if the schema refers to its root.
    pub(super) fn move_root_to_definition(&mut self) {
        let has_reference = |schema: &Map| references(schema).contains(&ROOT);
        if !self
            .names()
            .filter_map(|name| self.schema(name))
            .any(has_reference)
        {
            return;
        }
        let mut name = "root".to_owned();
        while self.defs.contains_key(&name) {
            name.push('_');
        }
        self.defs.set(&name, self.root.clone());
        self.visit_mut(&mut |schema| {
            if schema.text("$ref") == Some(ROOT) {
                schema.set("$ref", def_reference(&name));
            }
        });
    }

    /// Returns the root with its definitions, without unused ones.
    pub(super) fn into_schema(mut self) -> Value {
        let mut used: HashSet<String> = HashSet::new();
        let mut pending = vec![ROOT.to_owned()];
        while let Some(name) = pending.pop() {
            if let Some(schema) = self.schema(&name)
                && !used.contains(&name)
            {
                pending.extend(
                    references(schema)
                        .into_iter()
                        .map(|it| def_name(it).to_owned()),
                );
                used.insert(name);
            }
        }
        self.defs.retain(|name, _| used.contains(name));
        if !self.defs.is_empty() {
            self.root.set("$defs", self.defs);
        }
        Value::Object(self.root)
    }
}

/// Normalises a schema to draft 2020-12 and reports the changes.
pub(super) fn normalise(schema: &Value, changes: &mut Vec<Change>) -> Normal {
    let mut normaliser = Normaliser {
        root: schema,
        names: HashMap::new(),
        name_counts: HashMap::new(),
        pending: VecDeque::new(),
        nodes: 0,
        changes,
    };
    let root = normaliser.schema(schema, "", 0);
    let mut defs = Map::new();
    while let Some((name, target)) = normaliser.pending.pop_front() {
        let def = normaliser.schema(target, &def_pointer(&name), 0);
        defs.insert(name, Value::Object(def));
    }
    let mut normal = Normal { root, defs };
    recursion::remove_infinite(&mut normal, changes);
    normal
}

struct Normaliser<'a, 'c> {
    root: &'a Value,
    /// Names of the definitions, by their JSON pointers in the root.
    names: HashMap<String, String>,
    /// Number of definitions that requested the same name.
    name_counts: HashMap<String, usize>,
    /// Definitions that still have to be normalised.
    pending: VecDeque<(String, &'a Value)>,
    nodes: usize,
    changes: &'c mut Vec<Change>,
}

impl<'a> Normaliser<'a, '_> {
    fn report(&mut self, at: &str, kind: ChangeKind, message: impl Into<String>) {
        self.changes.push(Change::new(at, kind, message));
    }

    fn schema(&mut self, schema: &'a Value, at: &str, depth: usize) -> Map {
        self.nodes += 1;
        let excess = if depth > MAX_DEPTH {
            Some(format!("deeper than {MAX_DEPTH} levels"))
        } else {
            (self.nodes > MAX_NODES).then(|| format!("after {MAX_NODES} subschemas"))
        };
        if let Some(excess) = excess {
            let message = format!("{excess}: any value is allowed");
            self.report(at, ChangeKind::Truncated, message);
            return Map::new();
        }
        match schema {
            Value::Object(map) => {
                let mut out = Map::new();
                for (keyword, value) in map {
                    self.keyword(map, keyword, value, &mut out, at, depth);
                }
                keyword::require_children(map, &mut out);
                keyword::allow_null(map, out)
            }
            Value::Bool(true) => Map::new(),
            Value::Bool(false) => never(),
            _ => {
                let message = "not a schema: any value is allowed";
                self.report(at, ChangeKind::Invalid, message);
                Map::new()
            }
        }
    }

    fn named(&mut self, map: &'a Map, keyword: &str, at: &str, depth: usize) -> Value {
        let named = map.iter().map(|(name, schema)| {
            let at = pointer_below(at, keyword, name);
            let schema = self.schema(schema, &at, depth + 1);
            (name.clone(), Value::Object(schema))
        });
        Value::Object(named.collect())
    }

    fn listed(&mut self, list: &'a [Value], keyword: &str, at: &str, depth: usize) -> Value {
        let listed = list.iter().enumerate().map(|(index, schema)| {
            let at = format!("{at}/{keyword}/{index}");
            Value::Object(self.schema(schema, &at, depth + 1))
        });
        listed.collect()
    }

    /// Converts a reference, or replaces an unresolvable one by text.
    fn reference(&mut self, reference: &str, out: &mut Map, at: &str) {
        match target(self.root, reference) {
            Ok((pointer, _)) if pointer.is_empty() => out.set("$ref", ROOT),
            Ok((pointer, schema)) => {
                let name = self.name_of(pointer, schema);
                out.set("$ref", def_reference(&name));
            }
            Err((kind, reason)) => {
                let message = format!("`$ref` `{reference}` {reason}: any value is allowed");
                self.report(at, kind, message);
                text::append(out, &format!("See {}.", text::excerpt(reference)));
            }
        }
    }

    /// Returns the name of the definition at a JSON pointer. The definition is normalised later.
    fn name_of(&mut self, pointer: String, schema: &'a Value) -> String {
        if let Some(name) = self.names.get(&pointer) {
            return name.clone();
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let last = last.replace("~1", "_").replace("~0", "_");
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let legal = |c| if is_legal(c) { c } else { '_' };
        let mut name: String = last.chars().take(64).map(legal).collect();
        if name.is_empty() {
            "definition".clone_into(&mut name);
        }
        let requested = name.clone();
        while self.name_counts.contains_key(&name) {
            let count = self.name_counts.entry(requested.clone()).or_insert(1);
            *count += 1;
            name = format!("{requested}_{count}");
        }
        self.name_counts.insert(name.clone(), 1);
        self.names.insert(pointer, name.clone());
        self.pending.push_back((name.clone(), schema));
        name
    }
}

/// Returns the target of a reference and its pointer in the root, or the kind of change and the
/// reason why there is none. Only pointers are resolved, in this document and in the one with the
/// root's `$id`. The bare name of a definition, a common mistake, counts as its pointer.
fn target<'a>(
    root: &'a Value,
    reference: &str,
) -> Result<(String, &'a Value), (ChangeKind, &'static str)> {
    let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let id = ["$id", "id"]
        .into_iter()
        .find_map(|keyword| root.get(keyword)?.as_str());
    let is_own = |id: &str| {
        let path = id.strip_suffix(document);
        path.is_some_and(|path| path.is_empty() || path.ends_with('/'))
    };
    let pointer = if document.is_empty() || id.is_some_and(is_own) {
        percent_decoded(fragment)
    } else {
        let groups = ["/$defs/", "/definitions/"].into_iter();
        let mut pointers = groups.map(|group| format!("{group}{}", escaped(document)));
        let found = pointers.find(|pointer| root.pointer(pointer).is_some());
        found.ok_or((ChangeKind::Widened, "is not fetched"))?
    };
    let target = root.pointer(&pointer);
    let target = target.ok_or((ChangeKind::Invalid, "has no target"))?;
    Ok((pointer, target))
}

/// Decodes percent-encoded characters such as `%20`. Returns the text unchanged if the result is
/// not UTF-8.
fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).map(|digits| u8::from_str_radix(digits, 16));
        match (code, part.get(2..)) {
            (Some(Ok(code)), Some(rest)) => {
                bytes.push(code);
                bytes.extend(rest.bytes());
            }
            _ => bytes.extend(format!("%{part}").bytes()),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

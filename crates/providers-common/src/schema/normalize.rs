//! Normalisation to draft 2020-12.
//!
//! Every reference becomes the name of a definition in the root's `$defs`, also a reference to the
//! root. Other spellings of older drafts and of OpenAPI 3.0 are converted: `definitions`, `items`
//! as a list, `exclusiveMinimum: true`, `required: true`, `nullable`, `dependencies`, types in
//! upper case. Invalid schemas become "any value".

mod keyword;

use std::collections::{HashMap, HashSet, VecDeque};

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{
    change::{Change, ChangeKind},
    constraint_text as text,
    dialect_rules::{DialectRules, MAX_DEPTH, MAX_NODES},
    keywords::{
        Map, SchemaMembers, add_missing_items, child_pointer, escape_pointer_name, false_schema,
    },
};
pub(super) use keyword::add_null_value;

/// A schema that is normalized to draft 2020-12 of JSON Schema.
#[derive(Debug, Default)]
pub(super) struct NormalSchema {
    /// Root schema without its definitions.
    pub(super) root: Map,
    /// Definitions that the schema refers to. Each value is an object.
    pub(super) defs: Map,
}

/// Returns the name of the definition that a reference points to: `city` for `#/$defs/city`.
pub(super) fn def_name(reference: &str) -> &str {
    reference.trim_start_matches("#/$defs/")
}

impl NormalSchema {
    /// Returns the definition that a reference such as `#/$defs/name` points to. Returns `None` if
    /// there is no such definition.
    pub(super) fn find_def(&self, reference: &str) -> Option<&Map> {
        self.defs.get_object(def_name(reference))
    }

    /// Returns the names of the recursive definitions, which refer to themselves directly or
    /// through others. Definitions between two recursive ones are included: with the references
    /// `a→a→b→c→c`, also `b`. `references` is a function that returns the `$ref` targets in a
    /// schema.
    pub(super) fn cyclic_definitions(&self, references: fn(&Map) -> Vec<&str>) -> HashSet<String> {
        let mut targets: Edges<'_> = HashMap::new();
        let mut users: Edges<'_> = HashMap::new();
        for (name, schema) in &self.defs {
            users.entry(name).or_default();
            let found = targets.entry(name).or_default();
            for reference in schema.as_object().map(references).unwrap_or_default() {
                found.push(def_name(reference));
                users.entry(def_name(reference)).or_default().push(name);
            }
        }
        let finite =
            [(&targets, &users), (&users, &targets)].map(|it| acyclic_definitions(it.0, it.1));
        let names = self.defs.keys();
        let recursive = names.filter(|name| !finite.iter().any(|it| it.contains(name.as_str())));
        recursive.cloned().collect()
    }

    /// Returns the root schema with the definitions in its `$defs`.
    pub(super) fn into_schema(mut self) -> Value {
        if !self.defs.is_empty() {
            self.root.set("$defs", self.defs);
        }
        Value::Object(self.root)
    }
}

/// A directed graph of definitions: each name with the names that its edges lead to.
type Edges<'n> = HashMap<&'n str, Vec<&'n str>>;

/// Returns the names of the definitions that are not part of a cycle and do not lead to one.
/// `reversed` contains the edges of `edges` in the opposite direction.
fn acyclic_definitions<'n>(edges: &Edges<'n>, reversed: &Edges<'n>) -> HashSet<&'n str> {
    let mut open: HashMap<&str, usize> = edges.iter().map(|(name, to)| (*name, to.len())).collect();
    let mut finite: Vec<&str> = edges.keys().copied().filter(|it| open[it] == 0).collect();
    let mut found = HashSet::new();
    while let Some(name) = finite.pop() {
        found.insert(name);
        for before in reversed.get(name).into_iter().flatten() {
            let count = open.entry(before).or_default();
            *count = count.saturating_sub(1);
            if *count == 0 {
                finite.push(before);
            }
        }
    }
    found
}

/// Normalizes a schema to draft 2020-12 and reports the changes.
pub(super) fn normalize_schema(
    schema: &Value,
    rules: &DialectRules,
    changes: &mut Vec<Change>,
) -> NormalSchema {
    let mut normalizer = Normalizer {
        root: schema,
        needs_items: rules.loose && rules.needs_items,
        names: HashMap::new(),
        taken: HashSet::new(),
        pending: VecDeque::new(),
        nodes: 0,
        changes,
    };
    let root = normalizer.normalize_subschema(schema, "", 0);
    let mut defs = Map::new();
    while let Some((name, target)) = normalizer.pending.pop_front() {
        let def = normalizer.normalize_subschema(target, &child_pointer("", "$defs", &name), 0);
        defs.insert(name, Value::Object(def));
    }
    NormalSchema { root, defs }
}

struct Normalizer<'a, 'c> {
    root: &'a Value,
    /// Whether `items` is added to every array schema that lacks it.
    needs_items: bool,
    /// Names of the definitions, by the JSON pointers of their schemas in the root.
    names: HashMap<String, String>,
    taken: HashSet<String>,
    /// Definitions that still have to be normalized.
    pending: VecDeque<(String, &'a Value)>,
    nodes: usize,
    changes: &'c mut Vec<Change>,
}

impl<'a> Normalizer<'a, '_> {
    fn report_change(&mut self, at: &str, kind: ChangeKind, message: impl Into<String>) {
        self.changes.push(Change::new(at, kind, message));
    }

    fn normalize_subschema(&mut self, schema: &'a Value, at: &str, depth: usize) -> Map {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            let message = "too deep or too many subschemas: any value is allowed";
            self.report_change(at, ChangeKind::Truncated, message);
            return Map::new();
        }
        match schema {
            Value::Object(map) => {
                let mut out = Map::new();
                for (keyword, value) in map {
                    self.normalize_keyword(map, keyword, value, &mut out, at, depth);
                }
                keyword::convert_required_flags(map, &mut out);
                if self.needs_items {
                    add_missing_items(&mut out);
                }
                keyword::convert_nullable(map, out)
            }
            Value::Bool(true) => Map::new(),
            Value::Bool(false) => false_schema(),
            _ => {
                let message = "not a schema: any value is allowed";
                self.report_change(at, ChangeKind::Invalid, message);
                Map::new()
            }
        }
    }

    fn normalize_list(
        &mut self,
        list: &'a [Value],
        keyword: &str,
        at: &str,
        depth: usize,
    ) -> Value {
        let listed = list.iter().enumerate().map(|(index, schema)| {
            let at = format!("{at}/{keyword}/{index}");
            Value::Object(self.normalize_subschema(schema, &at, depth + 1))
        });
        listed.collect()
    }

    /// Adds the converted `$ref` to the schema `out`. If the reference cannot be resolved, reports
    /// a change and adds the reference to the description instead, so that any value is allowed.
    fn normalize_reference(&mut self, reference: &str, out: &mut Map, at: &str) {
        match resolve_reference(self.root, reference) {
            Ok((pointer, schema)) => {
                let name = self.queue_definition(pointer, schema);
                out.set("$ref", format!("#/$defs/{name}"));
            }
            Err((kind, reason)) => {
                let message = format!("`$ref` `{reference}` {reason}: any value is allowed");
                self.report_change(at, kind, message);
                text::append_text(out, &format!("See {}.", text::text_excerpt(reference)));
            }
        }
    }

    /// Returns the name of the definition at a JSON pointer, and queues its normalization.
    fn queue_definition(&mut self, pointer: String, schema: &'a Value) -> String {
        if let Some(name) = self.names.get(&pointer) {
            return name.clone();
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let last = last.replace("~1", "_").replace("~0", "_");
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let legal = |c| if is_legal(c) { c } else { '_' };
        let mut name: String = last.chars().take(64).map(legal).collect();
        if name.is_empty() {
            "root".clone_into(&mut name);
        }
        let requested = name.clone();
        let mut number = self.names.len();
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{requested}_{number}");
        }
        self.names.insert(pointer, name.clone());
        self.pending.push_back((name.clone(), schema));
        name
    }
}

/// Returns the JSON pointer that a `$ref` contains, and the schema at this pointer in `root`. If
/// there is none, returns the kind of the change to report and the reason. References to other
/// documents are not resolved, unless the document is `root` itself, by its `$id`. The bare name of
/// a definition is a common mistake and counts as a pointer to the definition.
fn resolve_reference<'a>(
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
        percent_decode_str(fragment)
            .decode_utf8_lossy()
            .into_owned()
    } else {
        let groups = ["/$defs/", "/definitions/"].into_iter();
        let mut pointers = groups.map(|group| format!("{group}{}", escape_pointer_name(document)));
        let found = pointers.find(|pointer| root.pointer(pointer).is_some());
        found.ok_or((ChangeKind::Widened, "is not fetched"))?
    };
    let target = root.pointer(&pointer);
    let target = target.ok_or((ChangeKind::Invalid, "has no target"))?;
    Ok((pointer, target))
}

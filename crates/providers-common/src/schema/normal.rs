//! One spelling for all schemas: that of draft 2020-12.
//!
//! Every reference becomes `#` or the name of a definition in the root's `$defs`; what older drafts
//! and OpenAPI 3.0 spell differently (`definitions`, `items` as a list, `exclusiveMinimum: true`,
//! `required: true`, `nullable`, `dependencies`, types in upper case) is spelt anew; what is no
//! schema becomes "any value".

mod circles;
mod keywords;
mod references;
pub(super) mod walk;

pub(super) use keywords::TYPES;

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Value, json};

use super::{
    Map,
    change::{Change, ChangeKind},
    rules::{MAX_DEPTH, MAX_NODES},
    words,
};
use references::{Places, Target};

/// A schema in the one spelling.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Normal {
    /// The root without its definitions.
    pub(super) root: Map,
    /// The definitions that are referred to; each value is an object.
    pub(super) defs: Map,
}

impl Normal {
    /// What a reference of this schema leads to.
    pub(super) fn target(&self, reference: &str) -> Option<&Map> {
        if reference == "#" {
            return Some(&self.root);
        }
        self.defs.get(def_name(reference)?)?.as_object()
    }
}

/// The name in `#/$defs/name`. Names of the one spelling need no escapes.
pub(super) fn def_name(reference: &str) -> Option<&str> {
    reference.strip_prefix("#/$defs/")
}

pub(super) fn def_reference(name: &str) -> String {
    format!("#/$defs/{name}")
}

/// A pointer to a child. `~` and `/` in the name are escaped.
pub(super) fn below(at: &str, keyword: &str, name: &str) -> String {
    let name = name.replace('~', "~0").replace('/', "~1");
    format!("{at}/{keyword}/{name}")
}

/// Spells a schema in the one way.
pub(super) fn normalise(schema: &Value, changes: &mut Vec<Change>) -> Normal {
    let mut work = Normaliser {
        root: schema,
        places: None,
        names: HashMap::new(),
        taken: HashMap::new(),
        pending: VecDeque::new(),
        nodes: 0,
        changes,
    };
    let root = work.schema(schema, "", 0);
    let mut defs = Map::new();
    while let Some((name, target)) = work.pending.pop_front() {
        let at = below("", "$defs", &name);
        let def = work.schema(target, &at, 0);
        defs.insert(name, Value::Object(def));
    }
    work.unused(&defs);
    let mut normal = Normal { root, defs };
    circles::open(&mut normal, changes);
    normal
}

impl Normal {
    /// The definitions and the root (`#`) that are within themselves.
    pub(super) fn recursive(&self) -> HashSet<String> {
        let keys = |schema: &Map| -> HashSet<String> {
            let references = walk::references(schema).into_iter();
            let keys = references.map(|reference| def_name(reference).unwrap_or("#"));
            keys.map(str::to_owned).collect()
        };
        let mut edges = HashMap::new();
        edges.insert("#".to_owned(), keys(&self.root));
        for (name, def) in &self.defs {
            let found = def.as_object().map(keys).unwrap_or_default();
            edges.insert(name.clone(), found);
        }
        circles::in_circles(&edges).into_keys().collect()
    }

    /// Takes out the definitions that are not referred to (any more).
    pub(super) fn prune(&mut self) {
        let mut used: HashSet<String> = HashSet::new();
        let names = |schema: &Map| -> Vec<String> {
            let references = walk::references(schema).into_iter();
            references.filter_map(def_name).map(str::to_owned).collect()
        };
        let mut left = names(&self.root);
        while let Some(name) = left.pop() {
            if let Some(def) = self.defs.get(&name).and_then(Value::as_object)
                && !used.contains(&name)
            {
                left.extend(names(def));
                used.insert(name);
            }
        }
        self.defs.retain(|name, _| used.contains(name));
    }

    /// One value: the root with its definitions.
    pub(super) fn assembled(mut self) -> Value {
        self.prune();
        if !self.defs.is_empty() {
            self.root
                .insert("$defs".to_owned(), Value::Object(self.defs));
        }
        Value::Object(self.root)
    }
}

struct Normaliser<'a, 'c> {
    root: &'a Value,
    /// Gathered when a reference needs them.
    places: Option<Places<'a>>,
    /// The name of each definition by where it stands in the root.
    names: HashMap<String, String>,
    /// How many definitions wanted that name.
    taken: HashMap<String, usize>,
    pending: VecDeque<(String, &'a Value)>,
    nodes: usize,
    changes: &'c mut Vec<Change>,
}

impl<'a> Normaliser<'a, '_> {
    fn report(&mut self, at: &str, kind: ChangeKind, message: impl Into<String>) {
        self.changes.push(Change::new(at, kind, message));
    }

    /// A schema where one must stand.
    fn schema(&mut self, schema: &'a Value, at: &str, depth: usize) -> Map {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            let message = if depth > MAX_DEPTH {
                format!("deeper than {MAX_DEPTH} levels: any value is taken")
            } else {
                format!("after {MAX_NODES} subschemas: any value is taken")
            };
            self.report(at, ChangeKind::Truncated, message);
            return Map::new();
        }
        match schema {
            Value::Object(map) => self.object(map, at, depth),
            Value::Bool(true) => Map::new(),
            Value::Bool(false) => never(),
            _ => {
                self.report(at, ChangeKind::Invalid, "no schema: any value is taken");
                Map::new()
            }
        }
    }

    fn object(&mut self, map: &'a Map, at: &str, depth: usize) -> Map {
        let mut out = Map::new();
        for (keyword, value) in map {
            self.keyword(map, keyword, value, &mut out, at, depth);
        }
        self.required_of_children(map, &mut out, at);
        self.nullable(map, out, at)
    }

    /// Subschemas by name.
    fn named(&mut self, map: &'a Map, keyword: &str, at: &str, depth: usize) -> Map {
        let named = map.iter().map(|(name, schema)| {
            let at = below(at, keyword, name);
            let schema = self.schema(schema, &at, depth + 1);
            (name.clone(), Value::Object(schema))
        });
        named.collect()
    }

    /// Subschemas in a list.
    fn listed(&mut self, list: &'a [Value], keyword: &str, at: &str, depth: usize) -> Value {
        let listed = list.iter().enumerate().map(|(index, schema)| {
            let at = format!("{at}/{keyword}/{index}");
            Value::Object(self.schema(schema, &at, depth + 1))
        });
        listed.collect()
    }

    /// A subschema that may be `true` or `false` and stays so.
    fn or_bool(&mut self, schema: &'a Value, keyword: &str, at: &str, depth: usize) -> Value {
        match schema {
            Value::Bool(_) => schema.clone(),
            _ => Value::Object(self.schema(schema, &format!("{at}/{keyword}"), depth + 1)),
        }
    }

    /// `$ref` in the one spelling, or what stands for one that leads nowhere.
    fn reference(&mut self, reference: &'a str, out: &mut Map, at: &str) {
        let root = self.root;
        let target = if reference == "#" {
            Target::Root
        } else if let Some(found) = references::plain(root, reference) {
            found
        } else {
            let places = self.places.get_or_insert_with(|| Places::of(root));
            places.target(root, reference)
        };
        let (kind, reason) = match target {
            Target::Root => {
                out.insert("$ref".to_owned(), json!("#"));
                if reference != "#" {
                    let message = format!("`$ref` {reference} is `#`");
                    self.report(at, ChangeKind::Rewritten, message);
                }
                return;
            }
            Target::At(pointer, schema) => {
                let name = self.name_of(pointer, schema);
                let wanted = def_reference(&name);
                if wanted != reference {
                    let message = format!("`$ref` {reference} is `{wanted}`");
                    self.report(at, ChangeKind::Rewritten, message);
                }
                out.insert("$ref".to_owned(), Value::String(wanted));
                return;
            }
            Target::Outside => (ChangeKind::Widened, "is not fetched"),
            Target::Nowhere => (ChangeKind::Invalid, "leads nowhere"),
        };
        let message = format!("`$ref` {reference} {reason}: any value is taken");
        self.report(at, kind, message);
        words::append(out, &format!("As in {}.", words::excerpt(reference)));
    }

    /// The name of the definition at a place; it is read later.
    fn name_of(&mut self, pointer: String, schema: &'a Value) -> String {
        if let Some(name) = self.names.get(&pointer) {
            return name.clone();
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let last = last.replace("~1", "_").replace("~0", "_");
        let legal = |c: char| {
            if c.is_ascii_alphanumeric() || "_.-".contains(c) {
                c
            } else {
                '_'
            }
        };
        let mut name: String = last.chars().take(64).map(legal).collect();
        if name.is_empty() {
            "definition".clone_into(&mut name);
        }
        let wanted = name.clone();
        while self.taken.contains_key(&name) {
            let count = self.taken.entry(wanted.clone()).or_insert(1);
            *count += 1;
            name = format!("{wanted}_{count}");
        }
        self.taken.insert(name.clone(), 1);
        self.names.insert(pointer, name.clone());
        self.pending.push_back((name.clone(), schema));
        name
    }

    /// Reports definitions that nobody refers to.
    fn unused(&mut self, defs: &Map) {
        let used = defs.len();
        let given = ["$defs", "definitions"].into_iter();
        let given = given.filter_map(|keyword| self.root.get(keyword)?.as_object());
        let given: usize = given.map(Map::len).sum();
        if given > used {
            let message = format!("unused definitions left out: {}", given - used);
            self.report("/$defs", ChangeKind::Noise, message);
        }
    }
}

/// A schema that no value is valid against.
pub(super) fn never() -> Map {
    let mut map = Map::new();
    map.insert("not".to_owned(), json!({}));
    map
}

/// Whether no value is valid against it, as far as one sees.
pub(super) fn is_never(schema: &Map) -> bool {
    schema
        .get("not")
        .is_some_and(|not| not.as_object().is_some_and(Map::is_empty))
}

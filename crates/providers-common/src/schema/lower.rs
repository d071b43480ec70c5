//! Conversion of a normalised schema to a dialect.

mod array;
mod describe;
mod keyword;
mod object;
mod types;
mod union;
mod values;

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    OPENED,
    change::{Change, ChangeKind},
    constraint_text as text,
    keywords::{
        Map, SchemaMembers, is_annotation, is_never, is_structural, pointer_below, references,
        references_in_place,
    },
    merge::expand,
    normal::{Normal, def_name},
    root,
    rules::{MAX_DEPTH, MAX_RECURSION, References, Rules},
};

/// Converts a schema to a dialect. Returns the schema and the description that its root cannot
/// have.
pub(super) fn lower(
    mut normal: Normal,
    rules: &'static Rules,
    changes: &mut Vec<Change>,
) -> (Value, Option<String>) {
    root::prepare(&mut normal, rules, changes);
    if rules.loose {
        return (normal.into_schema(), None);
    }
    let mut lowering = Lowering {
        rules,
        recursive: match rules.references {
            // Recursion for the same value never ends, so that no wire accepts it.
            References::Keep => normal.recursive(references_in_place),
            References::KeepFinite => normal.recursive(references),
            References::Inline => HashSet::new(),
        },
        normal: &normal,
        definitions: Vec::new(),
        inlining: Vec::new(),
        nodes: 0,
        enum_values: 0,
        changes,
    };
    let mut root = lowering.definition(&normal.root, "");
    let mut defs = Map::new();
    while let Some(name) = lowering.definitions.get(defs.len()).cloned() {
        let schema = normal.defs.object(&name).cloned().unwrap_or_default();
        let definition = lowering.definition(&schema, &pointer_below("", "$defs", &name));
        defs.set(&name, definition);
    }
    let mut description = None;
    if rules.no_root_description
        && let Some(Value::String(text)) = root.shift_remove("description")
    {
        description = Some(text);
    }
    (Normal { root, defs }.into_schema(), description)
}

struct Lowering<'n, 'c> {
    rules: &'static Rules,
    normal: &'n Normal,
    /// Names of the definitions that are inlined because they contain themselves.
    recursive: HashSet<String>,
    /// Names of the definitions that the result refers to, in the order of the first reference.
    definitions: Vec<String>,
    /// Names of the definitions that are being inlined.
    inlining: Vec<String>,
    nodes: usize,
    enum_values: usize,
    changes: &'c mut Vec<Change>,
}

/// Nesting level of a subschema in the compiled schema.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Number of schemas around this one.
    depth: usize,
    /// Number of object schemas around this one.
    objects: usize,
}

impl Level {
    fn in_array(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    fn in_object(self) -> Self {
        Self {
            depth: self.depth + 1,
            objects: self.objects + 1,
        }
    }
}

impl Lowering<'_, '_> {
    fn report(&mut self, at: &str, kind: ChangeKind, message: impl Into<String>) {
        self.changes.push(Change::new(at, kind, message));
    }

    fn definition(&mut self, schema: &Map, at: &str) -> Map {
        let lowered = self.schema(schema.clone(), at, Level::default());
        // No value is valid, which the dialect cannot express: use its smallest schema instead.
        lowered.unwrap_or_else(|| root::smallest_schema(self.rules))
    }

    /// Converts a subschema to the dialect. Returns `None` if no value is valid.
    fn schema(&mut self, schema: Map, at: &str, level: Level) -> Option<Map> {
        self.nodes += 1;
        self.counted_schema(schema, at, level)
    }

    /// Converts a subschema that already counts towards the size limit.
    fn counted_schema(&mut self, schema: Map, at: &str, level: Level) -> Option<Map> {
        if is_never(&schema) {
            return None;
        }
        let is_root = at.is_empty();
        if schema.keys().any(|keyword| is_structural(keyword)) {
            let excess = if level.depth > MAX_DEPTH {
                Some("too deep")
            } else {
                (self.nodes > self.rules.max_nodes).then_some("too many subschemas")
            };
            if let Some(excess) = excess {
                return Some(self.truncated(&schema, at, excess));
            }
        }
        // At the root, the definitions would be siblings of the reference, which no wire accepts.
        if !is_root && let Some(reference) = self.kept_reference(&schema, at) {
            return Some(reference);
        }
        // The target is checked before it is copied, because copies of one large target would take
        // long.
        let target = schema.text("$ref").and_then(|it| self.normal.target(it));
        let properties = target.and_then(|target| target.object("properties"));
        let nodes_left = self.rules.max_nodes.saturating_sub(self.nodes);
        if !is_root && properties.is_some_and(|it| it.len() > nodes_left) {
            return Some(self.truncated(&schema, at, "too many properties"));
        }
        let expanded = expand(self.normal, schema);
        if expanded.is_opened {
            self.report(at, ChangeKind::Widened, OPENED);
        }
        if expanded.is_never {
            return None;
        }
        let names = expanded.references.iter().map(|it| def_name(it).to_owned());
        let names: Vec<String> = names.collect();
        let count = |name: &String| self.inlining.iter().filter(|it| *it == name).count();
        if let Some(name) = names.iter().find(|name| count(name) >= MAX_RECURSION) {
            let excess = format!("`{name}` contains itself more than {MAX_RECURSION} times");
            let mut stub = self.truncated(&expanded.schema, at, &excess);
            text::append(&mut stub, "The same structure again.");
            return Some(stub);
        }
        let outer = self.inlining.len();
        self.inlining.extend(names);
        let mut schema = expanded.schema;
        for (keyword, value) in &expanded.conflicts {
            self.describe(&mut schema, keyword, value, at);
        }
        let lowered = self.union(schema, at, level);
        self.inlining.truncate(outer);
        lowered
    }

    /// Returns the schema as a reference, if it is a reference that the dialect keeps.
    fn kept_reference(&mut self, schema: &Map, at: &str) -> Option<Map> {
        let (reference, annotations) = only_reference(schema)?;
        let name = def_name(&reference);
        let is_kept = self.rules.references != References::Inline && !self.recursive.contains(name);
        // A reference to a schema without valid values cannot be kept.
        if !is_kept || self.normal.target(&reference).is_none_or(is_never) {
            return None;
        }
        if !self.definitions.iter().any(|it| it == name) {
            self.definitions.push(name.to_owned());
        }
        let mut inner = Map::new();
        inner.set("$ref", reference);
        // No wire accepts siblings of a reference, so that the annotations need an outer schema.
        let mut outer = Map::new();
        for (keyword, value) in &annotations {
            self.annotation(&mut outer, keyword, value, at);
        }
        if outer.is_empty() {
            return Some(inner);
        }
        outer.set("anyOf", json!([inner]));
        Some(outer)
    }
}

/// Returns the reference and the annotations of a schema that is only a reference, also as the only
/// element of an `allOf`, `anyOf` or `oneOf`.
fn only_reference(schema: &Map) -> Option<(String, Map)> {
    let keyword = ["$ref", "allOf", "anyOf", "oneOf"]
        .into_iter()
        .find(|keyword| schema.contains_key(*keyword))?;
    let reference = match schema.get(keyword)? {
        Value::String(reference) => reference,
        Value::Array(list) => match list.as_slice() {
            [Value::Object(only)] if only.len() == 1 => only.text("$ref")?,
            _ => return None,
        },
        _ => return None,
    };
    let mut annotations = schema.clone();
    annotations.shift_remove(keyword);
    let is_only = annotations.keys().all(|keyword| is_annotation(keyword));
    is_only.then(|| (reference.to_owned(), annotations))
}

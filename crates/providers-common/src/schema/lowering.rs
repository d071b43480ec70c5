//! Conversion of a normalized schema into the subset of JSON Schema that a dialect accepts.

mod array;
mod describe;
mod enum_values;
mod keyword;
mod object;
mod types;
mod union;

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    OPENED_OBJECTS,
    change::{Change, ChangeKind},
    constraint_text as text,
    dialect_rules::{DialectRules, MAX_DEPTH, MAX_RECURSION, ReferenceRule},
    keywords::{
        Map, SchemaMembers, child_pointer, collect_references, find_same_value_references,
        is_annotation, is_structural, rejects_all,
    },
    merge::expand_schema,
    normalize::{NormalSchema, def_name},
    root,
};

/// Converts a normalized schema to the dialect with the given `rules`. Returns the schema. If the
/// dialect allows no description at the root, also returns the description that was removed there.
pub(super) fn lower_to_dialect(
    mut normal: NormalSchema,
    rules: &'static DialectRules,
    changes: &mut Vec<Change>,
) -> (Value, Option<String>) {
    root::prepare_root(&mut normal, rules, changes);
    if rules.loose {
        return (normal.into_schema(), None);
    }
    let mut lowering = SchemaLowering {
        rules,
        recursive: match rules.references {
            // The dialect keeps references, also recursive ones. Only a definition that applies
            // itself to the same value, such as a definition `a` with `allOf: [{$ref: a}]`, is
            // inlined, because no provider accepts it.
            ReferenceRule::Keep => normal.cyclic_definitions(find_same_value_references),
            ReferenceRule::KeepFinite => normal.cyclic_definitions(collect_references),
            ReferenceRule::Inline => HashSet::new(),
        },
        normal: &normal,
        definitions: Vec::new(),
        inlining: Vec::new(),
        nodes: 0,
        enum_values: 0,
        changes,
    };
    let mut root = lowering.lower_definition(&normal.root, "");
    let mut defs = Map::new();
    while let Some(name) = lowering.definitions.get(defs.len()).cloned() {
        let schema = normal.defs.get_object(&name).cloned().unwrap_or_default();
        let definition = lowering.lower_definition(&schema, &child_pointer("", "$defs", &name));
        defs.set(&name, definition);
    }
    let mut description = None;
    if rules.no_root_description
        && let Some(Value::String(text)) = root.shift_remove("description")
    {
        description = Some(text);
    }
    (NormalSchema { root, defs }.into_schema(), description)
}

struct SchemaLowering<'n, 'c> {
    rules: &'static DialectRules,
    normal: &'n NormalSchema,
    /// Names of the recursive definitions that are inlined in a dialect that otherwise keeps
    /// references.
    recursive: HashSet<String>,
    /// Names of the definitions that the compiled schema refers to, in the order of the first
    /// reference.
    definitions: Vec<String>,
    /// Names of the definitions that are being inlined at this point, the innermost last.
    inlining: Vec<String>,
    /// Number of subschemas of the compiled schema so far.
    nodes: usize,
    /// Number of values in all `enum`s of the compiled schema so far.
    enum_values: usize,
    changes: &'c mut Vec<Change>,
}

/// Nesting level of a subschema in the compiled schema.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Number of schemas that enclose the subschema.
    depth: usize,
    /// Number of object schemas that enclose the subschema.
    objects: usize,
}

impl Level {
    fn enter_array(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    fn enter_object(self) -> Self {
        Self {
            depth: self.depth + 1,
            objects: self.objects + 1,
        }
    }
}

impl SchemaLowering<'_, '_> {
    fn report_change(&mut self, at: &str, kind: ChangeKind, message: impl Into<String>) {
        self.changes.push(Change::new(at, kind, message));
    }

    fn lower_definition(&mut self, schema: &Map, at: &str) -> Map {
        let lowered = self.lower_schema(schema.clone(), at, Level::default());
        // No dialect can express a schema without valid values, so the smallest schema is used.
        lowered.unwrap_or_else(|| root::empty_object_schema(self.rules))
    }

    /// Converts a subschema to the dialect. Returns `None` if no value can be valid against it.
    fn lower_schema(&mut self, schema: Map, at: &str, level: Level) -> Option<Map> {
        self.nodes += 1;
        self.lower_schema_body(schema, at, level)
    }

    /// Converts a subschema that `self.nodes` already counts. Returns `None` if no value can be
    /// valid against it.
    fn lower_schema_body(&mut self, schema: Map, at: &str, level: Level) -> Option<Map> {
        if rejects_all(&schema) {
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
                return Some(self.truncated_schema(&schema, at, excess));
            }
        }
        // A `$ref` at the root is not kept: `$defs` would be its sibling, which no provider
        // accepts.
        if !is_root && let Some(reference) = self.lower_reference(&schema, at) {
            return Some(reference);
        }
        // The number of properties in the `$ref` target is checked before the target is copied,
        // because many copies of a large target would take long.
        let target = schema
            .get_text("$ref")
            .and_then(|it| self.normal.find_def(it));
        let properties = target.and_then(|target| target.get_object("properties"));
        let nodes_left = self.rules.max_nodes.saturating_sub(self.nodes);
        if !is_root && properties.is_some_and(|it| it.len() > nodes_left) {
            return Some(self.truncated_schema(&schema, at, "too many properties"));
        }
        let expanded = expand_schema(self.normal, schema);
        if expanded.is_opened {
            self.report_change(at, ChangeKind::Widened, OPENED_OBJECTS);
        }
        if expanded.rejects_all {
            return None;
        }
        let names = expanded.references.iter().map(|it| def_name(it).to_owned());
        let names: Vec<String> = names.collect();
        let count = |name: &String| self.inlining.iter().filter(|it| *it == name).count();
        if let Some(name) = names.iter().find(|name| count(name) >= MAX_RECURSION) {
            let excess = format!("`{name}` contains itself more than {MAX_RECURSION} times");
            let mut stub = self.truncated_schema(&expanded.schema, at, &excess);
            text::append_text(&mut stub, "The same structure again.");
            return Some(stub);
        }
        let outer = self.inlining.len();
        self.inlining.extend(names);
        let mut schema = expanded.schema;
        for (keyword, value) in &expanded.conflicts {
            self.describe_rule(&mut schema, keyword, value, at);
        }
        let lowered = self.lower_union(schema, at, level);
        self.inlining.truncate(outer);
        lowered
    }

    /// Returns the converted schema as a `$ref`, if `schema` is only a reference and the dialect
    /// keeps it. Returns `None` if the target must be inlined.
    fn lower_reference(&mut self, schema: &Map, at: &str) -> Option<Map> {
        let (reference, annotations) = find_sole_reference(schema)?;
        let name = def_name(&reference);
        let is_kept =
            self.rules.references != ReferenceRule::Inline && !self.recursive.contains(name);
        // A reference to a target without valid values is not kept. The caller then inlines the
        // target and omits the schema, because no value is valid.
        if !is_kept || self.normal.find_def(&reference).is_none_or(rejects_all) {
            return None;
        }
        if !self.definitions.iter().any(|it| it == name) {
            self.definitions.push(name.to_owned());
        }
        let mut inner = Map::new();
        inner.set("$ref", reference);
        // No provider accepts siblings of a `$ref`, so the annotations move to an outer schema.
        let mut outer = Map::new();
        for (keyword, value) in &annotations {
            self.put_annotation(&mut outer, keyword, value, at);
        }
        if outer.is_empty() {
            return Some(inner);
        }
        outer.set("anyOf", json!([inner]));
        Some(outer)
    }
}

/// Returns the `$ref` and the annotations of a schema that consists only of these. The `$ref` may
/// also be the only element of an `allOf`, `anyOf` or `oneOf`. Returns `None` for other schemas.
fn find_sole_reference(schema: &Map) -> Option<(String, Map)> {
    let keyword = ["$ref", "allOf", "anyOf", "oneOf"]
        .into_iter()
        .find(|keyword| schema.contains_key(*keyword))?;
    let reference = match schema.get(keyword)? {
        Value::String(reference) => reference,
        Value::Array(list) => match list.as_slice() {
            [Value::Object(only)] if only.len() == 1 => only.get_text("$ref")?,
            _ => return None,
        },
        _ => return None,
    };
    let mut annotations = schema.clone();
    annotations.shift_remove(keyword);
    let is_only = annotations.keys().all(|keyword| is_annotation(keyword));
    is_only.then(|| (reference.to_owned(), annotations))
}

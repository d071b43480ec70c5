//! A schema in the one spelling as a dialect takes it.

mod array;
mod object;
mod scalar;
mod telling;
mod types;
mod union;

pub(super) use types::type_of;

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{
    Map,
    change::{Change, ChangeKind},
    expand::expand_owned,
    merge,
    normal::{self, Normal, TYPES, below, def_name},
    root,
    rules::{Any, MAX_DEPTH, MAX_UNROLL, Refs, Rules},
    words,
};
use types::{ARRAY_KEYWORDS, OBJECT_KEYWORDS, implied_types, is_compound, remove_keywords_of};

/// The schema in the dialect, and what its root has no place for.
pub(super) fn lower(
    mut normal: Normal,
    rules: &'static Rules,
    changes: &mut Vec<Change>,
) -> (Value, Option<String>) {
    root::prepare(&mut normal, rules, changes);
    let mut told = None;
    let out = if rules.loose {
        loosely(normal, rules, changes)
    } else {
        let mut work = Lower {
            rules,
            recursive: normal.recursive(),
            normal: &normal,
            defs: Map::new(),
            wanted: Vec::new(),
            within: Vec::new(),
            nodes: 0,
            enum_values: 0,
            changes,
        };
        let root = work.whole(&normal.root, "");
        let mut root = root.unwrap_or_else(|| match root::least(rules) {
            Value::Object(least) => least,
            _ => Map::new(),
        });
        let mut next = 0;
        while let Some(name) = work.wanted.get(next).cloned() {
            next += 1;
            let at = below("", "$defs", &name);
            let def = normal.defs.get(&name).and_then(Value::as_object);
            let def = def.and_then(|def| work.whole(def, &at));
            // What no value is valid against is not listed as an alternative or a property, so
            // only a reference that stands alone comes here.
            let def = def.unwrap_or_else(|| match root::least(rules) {
                Value::Object(least) => least,
                _ => Map::new(),
            });
            work.defs.insert(name, Value::Object(def));
        }
        let defs = std::mem::take(&mut work.defs);
        if rules.mute_root {
            told = root
                .shift_remove("description")
                .and_then(|it| it.as_str().map(str::to_owned));
            if told.is_some() {
                let message = "the root has no description: it belongs to the tool's own";
                changes.push(Change::new("", ChangeKind::Rewritten, message));
            }
        }
        Normal { root, defs }
    };
    (out.assembled(), told)
}

/// The dialects that take everything below the root.
fn loosely(mut normal: Normal, rules: &Rules, changes: &mut Vec<Change>) -> Normal {
    if rules.needs_items {
        array::give_items(&mut normal.root, "", changes);
        for (name, def) in &mut normal.defs {
            if let Value::Object(def) = def {
                array::give_items(def, &below("", "$defs", name), changes);
            }
        }
    }
    normal
}

struct Lower<'n, 'c> {
    rules: &'static Rules,
    normal: &'n Normal,
    /// Definitions (and `#`) that are within themselves.
    recursive: HashSet<String>,
    defs: Map,
    /// Definitions that are referred to in the result, in the order in which they came up.
    wanted: Vec<String>,
    /// The recursive references that are being inlined.
    within: Vec<String>,
    nodes: usize,
    enum_values: usize,
    changes: &'c mut Vec<Change>,
}

/// Where in the result a schema will stand.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Schemas around it.
    depth: usize,
    /// Objects around it.
    objects: usize,
}

impl Level {
    fn down(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    fn into_object(self) -> Self {
        Self {
            depth: self.depth + 1,
            objects: self.objects + 1,
        }
    }
}

impl Lower<'_, '_> {
    fn report(&mut self, at: &str, kind: ChangeKind, message: impl Into<String>) {
        self.changes.push(Change::new(at, kind, message));
    }

    /// A root or a definition.
    fn whole(&mut self, schema: &Map, at: &str) -> Option<Map> {
        self.node(schema.clone(), at, Level::default())
    }

    /// Any schema. `None` if no value is valid against it.
    fn node(&mut self, schema: Map, at: &str, level: Level) -> Option<Map> {
        self.nodes += 1;
        self.counted(schema, at, level)
    }

    /// Any schema that is counted already.
    fn counted(&mut self, schema: Map, at: &str, level: Level) -> Option<Map> {
        if normal::is_never(&schema) {
            return None;
        }
        // What has no schemas within costs nothing, and is what stands for those that were cut.
        if schema.keys().any(|keyword| is_compound(keyword)) {
            if level.depth > MAX_DEPTH {
                return Some(self.cut(&schema, at, "too deep"));
            }
            if self.nodes > self.rules.max_nodes {
                return Some(self.cut(&schema, at, "too many subschemas"));
            }
        }
        let is_root = at.is_empty();
        // At the root the definitions would stand beside it.
        if !is_root && let Some(kept) = self.kept_reference(&schema, at) {
            return Some(kept);
        }
        // Before it is copied: many references to one large schema would take long.
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|reference| self.normal.target(reference));
        let properties = target.and_then(|target| target.get("properties")?.as_object());
        let room = self.rules.max_nodes.saturating_sub(self.nodes);
        if !is_root && properties.is_some_and(|properties| properties.len() > room) {
            return Some(self.cut(&schema, at, "too many properties"));
        }
        let has_members = schema.contains_key("allOf");
        let expanded = expand_owned(self.normal, schema);
        if !expanded.via.is_empty() {
            self.report(at, ChangeKind::Rewritten, "`$ref` is inlined");
        }
        if has_members {
            self.report(at, ChangeKind::Rewritten, "`allOf` is merged");
        }
        if expanded.opened {
            let message = "closed objects are taken together with the properties of others";
            self.report(at, ChangeKind::Widened, message);
        }
        if expanded.never {
            return None;
        }
        let recursive: Vec<String> = expanded
            .via
            .iter()
            .map(|reference| def_name(reference).unwrap_or("#").to_owned())
            .filter(|name| self.recursive.contains(name))
            .collect();
        let times = |name: &String| self.within.iter().filter(|it| *it == name).count();
        if let Some(name) = recursive.iter().find(|name| times(name) >= MAX_UNROLL) {
            let why = format!("within itself {MAX_UNROLL} times (`{name}`)");
            let mut stub = self.cut(&expanded.schema, at, &why);
            words::append(&mut stub, "The same form once more.");
            return Some(stub);
        }
        let before = self.within.len();
        self.within.extend(recursive);
        let mut schema = expanded.schema;
        for (keyword, value) in &expanded.rest {
            self.tell(&mut schema, keyword, value, at);
        }
        let lowered = self.united(schema, at, level);
        self.within.truncate(before);
        lowered
    }

    /// A reference that stays one.
    fn kept_reference(&mut self, schema: &Map, at: &str) -> Option<Map> {
        let (reference, siblings) = reference_alone(schema)?;
        let name = def_name(&reference).unwrap_or("#").to_owned();
        match self.rules.refs {
            Refs::Keep => {}
            Refs::KeepFinite if !self.recursive.contains(&name) => {}
            Refs::KeepFinite | Refs::Inline => return None,
        }
        // A definition that nothing is valid against cannot be listed.
        if self.normal.target(&reference).is_none_or(normal::is_never) {
            return None;
        }
        if name != "#" && !self.wanted.contains(&name) {
            self.wanted.push(name);
        }
        let mut kept = Map::new();
        kept.insert("$ref".to_owned(), Value::String(reference));
        if siblings.is_empty() {
            return Some(kept);
        }
        // No wire takes anything beside a reference, so what is said stands around it.
        let mut around = Map::new();
        for (keyword, value) in &siblings {
            self.annotation(&mut around, keyword, value, at);
        }
        if around.is_empty() {
            return Some(kept);
        }
        let message = "`$ref` stands alone, in an `anyOf` of one";
        self.report(at, ChangeKind::Rewritten, message);
        around.insert("anyOf".to_owned(), json!([kept]));
        Some(around)
    }

    /// A schema without `$ref` and `allOf`, its types known and one at a time where they must be.
    fn typed(&mut self, mut schema: Map, at: &str, level: Level) -> Option<Map> {
        if let Some(either) = self.without_null(&schema, at) {
            return self.united(either, at, level);
        }
        self.values(&mut schema, at)?;
        if !schema.contains_key("type")
            && let Some(types) = implied_types(&schema)
        {
            self.report(at, ChangeKind::Rewritten, "the type is said");
            schema.shift_insert(0, "type".to_owned(), types);
        }
        let Some(types) = schema.get("type").cloned() else {
            return Some(self.any(schema, at));
        };
        let names = merge::names(&types);
        let several: Vec<&str> = names.iter().copied().filter(|it| *it != "null").collect();
        let has_compound = several.iter().any(|it| matches!(*it, "object" | "array"));
        let speaks_of =
            |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
        let is_filled = speaks_of(OBJECT_KEYWORDS) || speaks_of(ARRAY_KEYWORDS);
        let split =
            self.rules.openapi || (has_compound && (is_filled || self.rules.any == Any::JsonText));
        if several.len() > 1 && split {
            let arms = names.iter().map(|name| {
                let mut arm = schema.clone();
                arm.insert("type".to_owned(), json!(name));
                for keyword in ["title", "description", "default", "examples"] {
                    arm.shift_remove(keyword);
                }
                for other in TYPES {
                    let numbers = |it: &str| matches!(it, "number" | "integer");
                    if other != *name && !(numbers(other) && numbers(name)) {
                        remove_keywords_of(&mut arm, other);
                    }
                }
                Value::Object(arm)
            });
            let arms: Vec<Value> = arms.collect();
            self.report(at, ChangeKind::Rewritten, "each type is an alternative");
            let mut either = schema.clone();
            either.retain(|keyword, _| merge::is_annotation(keyword));
            either.insert("anyOf".to_owned(), Value::Array(arms));
            return self.united(either, at, level);
        }
        Some(if several.contains(&"object") {
            self.object(schema, at, level)
        } else if several.contains(&"array") {
            self.array(schema, at, level)
        } else {
            self.scalar(schema, at)
        })
    }

    /// A schema that says nothing of the values.
    fn any(&mut self, mut schema: Map, at: &str) -> Map {
        match self.rules.any {
            Any::Empty => self.keywords_with(schema, at, Map::new()),
            Any::AllTypes => {
                let types = ["string", "number", "boolean", "null", "object", "array"];
                schema.shift_insert(0, "type".to_owned(), json!(types));
                self.report(at, ChangeKind::Rewritten, "every type is named");
                self.keywords_with(schema, at, Map::new())
            }
            Any::JsonText => self.json_text(&schema, at, "any value", "Any JSON value"),
        }
    }
}

/// The reference of a schema that says nothing else of the values, also as the only member of
/// an `allOf` or `anyOf`, and what it says besides.
fn reference_alone(schema: &Map) -> Option<(String, Map)> {
    let keyword = ["$ref", "allOf", "anyOf", "oneOf"]
        .into_iter()
        .find(|keyword| schema.contains_key(*keyword))?;
    let said = schema.get(keyword)?;
    let reference = match said.as_array().map(Vec::as_slice) {
        None => said,
        Some([Value::Object(only)]) if only.len() == 1 => only.get("$ref")?,
        Some(_) => return None,
    };
    let reference = reference.as_str()?.to_owned();
    let siblings = schema.iter().filter(|(name, _)| *name != keyword);
    let siblings: Map = siblings
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let says_more = siblings.keys().any(|it| !merge::is_annotation(it));
    (!says_more).then_some((reference, siblings))
}

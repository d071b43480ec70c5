//! Conversion of the root schema, which almost every provider requires to be an object.

mod alternatives;

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
};

use serde_json::{Value, json};

use super::{
    change::{Change, ChangeKind},
    constraint_text as text,
    dialect_rules::{AdditionalKeyRule, DialectRules},
    keywords::{Map, SchemaMembers, child_pointer, implied_types, type_names},
    merge::expand_schema,
    normalize::NormalSchema,
};

/// Maximum nesting depth of `anyOf` and `oneOf` that is examined at the root.
const MAX_DEPTH: usize = 8;
/// Maximum number of schemas that are examined at the root. Nested `anyOf`s can contain very many.
const MAX_STEPS: usize = 2_000;
/// Maximum number of alternatives at the root that are united in one object; others are ignored.
const MAX_ALTERNATIVES: usize = 256;
/// Name of the property that holds the original root if that is not an object.
pub(super) const WRAPPER: &str = "value";

/// Returns the smallest schema that a dialect accepts: an object without properties.
pub(super) fn empty_object_schema(rules: &DialectRules) -> Map {
    let mut least = Map::new();
    least.set("type", if rules.openapi { "OBJECT" } else { "object" });
    if rules.root_properties {
        least.set("properties", json!({}));
    }
    if rules.all_required {
        least.set("required", json!([]));
    }
    if rules.additional == AdditionalKeyRule::Forbid {
        least.set("additionalProperties", false);
    }
    least
}

/// Returns two flags: whether a schema allows objects, and whether it allows values other than
/// objects and null. A schema without constraints counts as an object. `steps` is the number of
/// schemas that may still be examined. If it is 0, or if alternatives are nested more than
/// [`MAX_DEPTH`] levels deep, both flags are `true`.
fn find_value_kinds(
    normal: &NormalSchema,
    schema: &Map,
    depth: usize,
    steps: &Cell<usize>,
) -> (bool, bool) {
    if depth > MAX_DEPTH || !decrement_step_budget(steps) {
        return (true, true);
    }
    let schema = expand_schema(normal, schema.clone()).schema;
    let types = schema
        .get("type")
        .cloned()
        .or_else(|| implied_types(&schema));
    if let Some(types) = types {
        let types = type_names(&types);
        let has_other = types.iter().any(|name| !matches!(*name, "object" | "null"));
        return (types.contains(&"object"), has_other);
    }
    let mut unions = ["anyOf", "oneOf"].into_iter();
    let Some(keyword) = unions.find(|keyword| !schema.get_array(keyword).is_empty()) else {
        return (true, false);
    };
    let schemas = schema.get_schemas(keyword);
    let not_null = schemas.filter(|schema| schema.get_text("type") != Some("null"));
    let kinds = not_null.map(|it| find_value_kinds(normal, it, depth + 1, steps));
    kinds.fold((false, false), |one, other| {
        (one.0 || other.0, one.1 || other.1)
    })
}

/// Counts one examined schema in `steps`. Returns `false` if no step is left.
fn decrement_step_budget(steps: &Cell<usize>) -> bool {
    let left = steps.get();
    steps.set(left.saturating_sub(1));
    left > 0
}

/// Returns whether the root allows only objects.
fn is_object_root(normal: &NormalSchema) -> bool {
    find_value_kinds(normal, &normal.root, 0, &Cell::new(MAX_STEPS)) == (true, false)
}

/// Returns whether the root must be wrapped, which makes it the property `value` of a new object.
/// That is the case if the dialect requires `additionalProperties: false` and the root allows other
/// values than objects.
pub(super) fn needs_root_wrapper(normal: &NormalSchema, rules: &DialectRules) -> bool {
    rules.additional == AdditionalKeyRule::Forbid && !is_object_root(normal)
}

/// Changes the root as the dialect requires, for example into an object. Returns a map from the old
/// to the new names of renamed properties.
pub(super) fn prepare_root(
    normal: &mut NormalSchema,
    rules: &DialectRules,
    changes: &mut Vec<Change>,
) -> HashMap<String, String> {
    if needs_root_wrapper(normal, rules) {
        let message = "the root is not an object: it was wrapped in the property `value`";
        changes.push(Change::new("", ChangeKind::Wrapped, message));
        normal.root = wrap_root(&normal.root);
    } else if rules.object_root
        && (rules.loose || rules.no_root_description || is_object_root(normal))
    {
        normal.root = to_object_root(normal, rules, changes);
    }
    if rules.restricted_keys {
        rename_illegal_keys(&mut normal.root, changes)
    } else {
        HashMap::new()
    }
}

fn to_object_root(normal: &NormalSchema, rules: &DialectRules, changes: &mut Vec<Change>) -> Map {
    let mut report = |kind, message: &str| changes.push(Change::new("", kind, message));
    let expanded = expand_schema(normal, normal.root.clone());
    if expanded.is_opened {
        report(ChangeKind::Widened, super::OPENED_OBJECTS);
    }
    let mut root = expanded.schema;
    let mut described = expanded.conflicts;
    for keyword in ["anyOf", "oneOf"] {
        let steps = Cell::new(MAX_STEPS);
        if let Some(Value::Array(list)) = root.shift_remove(keyword)
            && alternatives::merge_alternatives(normal, &mut root, &list, MAX_DEPTH, &steps)
        {
            let message = format!("`{keyword}` of the root was merged into one object");
            report(ChangeKind::Widened, &message);
        }
    }
    for keyword in rules.not_at_root {
        let value = root.shift_remove(*keyword);
        described.extend(value.map(|value| ((*keyword).to_owned(), value)));
    }
    for (keyword, value) in described {
        if let Some(sentence) = text::describe_keyword(&keyword, &value) {
            text::append_text(&mut root, &sentence);
        }
        let message = format!("`{keyword}` moved to the description");
        report(ChangeKind::Described, &message);
    }
    if root.get_text("type") != Some("object") {
        if root.contains_key("type") {
            let is_narrower = root.get_types().contains(&"object");
            let kind = if is_narrower {
                ChangeKind::Narrowed
            } else {
                ChangeKind::Invalid
            };
            report(kind, "the type of the root is set to `object`");
        }
        // `type` is moved to the front, because models read the keys in order.
        root.shift_remove("type");
        root.shift_insert(0, "type".to_owned(), json!("object"));
    }
    if rules.root_properties && !root.contains_key("properties") {
        root.set("properties", json!({}));
    }
    root
}

/// Returns an object schema whose only property, `value`, has the schema `root`.
fn wrap_root(root: &Map) -> Map {
    let mut wrapper = Map::new();
    wrapper.set("type", "object");
    wrapper.set("properties", json!({ WRAPPER: root }));
    wrapper.set("required", json!([WRAPPER]));
    wrapper.set("additionalProperties", false);
    wrapper
}

/// Renames the properties of the root whose names do not match `[a-zA-Z0-9_.-]{1,64}`. Returns a
/// map from the old to the new names. The new names depend only on the schema, because
/// `restore_answer` computes them again.
fn rename_illegal_keys(root: &mut Map, changes: &mut Vec<Change>) -> HashMap<String, String> {
    let is_legal_char = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let is_legal = |key: &&str| (1..=64).contains(&key.len()) && key.chars().all(is_legal_char);
    let properties = root.get_object("properties").into_iter();
    let keys = properties
        .flat_map(Map::keys)
        .map(String::as_str)
        .chain(root.required_properties());
    let (legal, illegal): (Vec<&str>, Vec<&str>) = keys.partition(is_legal);
    let mut taken: HashSet<String> = legal.into_iter().map(str::to_owned).collect();
    let mut names = HashMap::new();
    for key in illegal {
        let legal = key.chars().map(|c| if is_legal_char(c) { c } else { '_' });
        let legal: String = legal.take(60).collect();
        // `_` at both ends is removed: `filter[name]` becomes `filter_name`.
        let base = match legal.trim_matches('_') {
            "" => "key",
            base => base,
        };
        let names = names.entry(key.to_owned());
        names.or_insert_with(|| {
            let numbered = (2..).map(|count| format!("{base}_{count}"));
            let mut candidates = std::iter::once(base.to_owned()).chain(numbered);
            candidates
                .find(|name| taken.insert(name.clone()))
                .unwrap_or_default()
        });
    }
    if let Some(Value::Object(properties)) = root.get_mut("properties") {
        let renamed = std::mem::take(properties)
            .into_iter()
            .map(|(key, mut schema)| {
                let Some(name) = names.get(&key) else {
                    return (key, schema);
                };
                let at = child_pointer("", "properties", &key);
                let message = format!("the key became `{name}`");
                changes.push(Change::new(&at, ChangeKind::Renamed, message));
                if let Value::Object(schema) = &mut schema
                    && !schema.contains_key("$ref")
                {
                    text::append_text(
                        schema,
                        &format!("Original key: `{}`.", text::text_excerpt(&key)),
                    );
                }
                (name.clone(), schema)
            });
        *properties = renamed.collect();
    }
    for key in root
        .get_mut("required")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(name) = key.as_str().and_then(|key| names.get(key)) {
            *key = json!(name);
        }
    }
    names
}

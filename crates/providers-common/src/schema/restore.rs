//! Conversion of an answer for a compiled schema into one for the original schema.

use std::cell::Cell;

use serde_json::Value;

use super::{
    Dialect,
    keywords::{Map, SchemaMembers, is_never, is_of_type},
    normal::{Normal, normalise},
    root,
    rules::{AnyValue, Rules},
};

/// Constant part of the work budget for restoring one answer. The budget limits nested
/// alternatives, which can be tried in very many ways, because each try copies values.
const MIN_WORK: usize = 500_000;
/// Number of passes over the answer that the work budget allows, in addition to [`MIN_WORK`].
const PASSES: usize = 32;
/// Maximum nesting of values.
const MAX_DEPTH: usize = 64;
/// Maximum number of schemas that apply to one value.
const MAX_SCHEMAS: usize = 64;
/// Number of bytes of text that use as much of the work budget as one value.
const BYTES_PER_WORK: usize = 32;

/// Converts an answer for [`compile`](super::compile)`(original, dialect)` into one for `original`.
///
/// Takes a tool's input or a structured output as the provider sent it. Unwraps the root, restores
/// the keys, reads JSON text and removes each null that means "absent". A valid answer for
/// `original` is returned unchanged, with one exception: where any value is allowed and the dialect
/// has no schema for that, a string that is valid JSON is read as JSON text. Invalid parts are
/// returned unchanged, for the validator.
pub fn restore(original: &Value, dialect: Dialect, mut answer: Value) -> Value {
    let rules = Rules::of(dialect);
    if !restores(dialect) {
        return answer;
    }
    let normal = normalise(original, &mut Vec::new());
    if root::is_wrapped(&normal, rules) {
        if let Value::Object(object) = &mut answer
            && object.len() == 1
            && let Some(value) = object.remove(root::WRAPPER)
        {
            answer = value;
        }
    } else if rules.restricted_keys {
        let names = root::prepare(&mut normal.clone(), rules, &mut Vec::new());
        answer = with_original_keys(answer, &names);
    }
    if rules.any_value != AnyValue::JsonText {
        return answer;
    }
    let work = size(&answer)
        .saturating_mul(PASSES)
        .saturating_add(MIN_WORK);
    let restorer = Restorer {
        normal: &normal,
        removes_nulls: rules.all_required,
        work_left: Cell::new(work),
    };
    let root = restorer.applied([&normal.root]);
    restorer.value(&root, answer, 0)
}

/// Returns whether [`restore`] can change answers in a dialect.
pub fn restores(dialect: Dialect) -> bool {
    let rules = Rules::of(dialect);
    rules.any_value == AnyValue::JsonText || rules.restricted_keys
}

fn with_original_keys(answer: Value, names: &[(String, String)]) -> Value {
    let Value::Object(object) = answer else {
        return answer;
    };
    let original = |key: String| {
        let found = names.iter().find(|(_, name)| *name == key);
        found.map_or(key, |(original, _)| original.clone())
    };
    let object = object.into_iter();
    Value::Object(object.map(|(key, value)| (original(key), value)).collect())
}

/// The schemas that apply to one value: a schema, the target of its `$ref` and the members of its
/// `allOf`.
#[derive(Debug, Clone, Default)]
struct Applied<'n> {
    schemas: Vec<&'n Map>,
    /// Alternatives of each `anyOf` and `oneOf` that apply to the value.
    unions: Vec<&'n [Value]>,
}

impl<'n> Applied<'n> {
    /// Returns the schemas that apply to the value of an object's key, named or additional.
    fn key_schemas(&self, key: &str) -> Vec<&'n Map> {
        let schemas = self.schemas.iter().filter_map(|schema| {
            let named = schema.object("properties").and_then(|it| it.get(key));
            let additional = || schema.get("additionalProperties");
            named.or_else(additional)?.as_object()
        });
        schemas.collect()
    }

    fn item_schemas(&self, index: usize) -> Vec<&'n Map> {
        let schemas = self.schemas.iter().filter_map(|schema| {
            let prefix = schema.list("prefixItems").get(index);
            prefix.or_else(|| schema.get("items"))?.as_object()
        });
        schemas.collect()
    }

    fn has_any(&self, keywords: &[&str]) -> bool {
        self.schemas.iter().any(|schema| schema.has_any(keywords))
    }

    fn requires(&self, key: &str) -> bool {
        self.schemas.iter().any(|schema| schema.requires(key))
    }

    /// Returns whether the schemas' `type` keywords allow a value.
    fn allows_type(&self, value: &Value) -> bool {
        let mut typed = self.schemas.iter().filter(|it| it.contains_key("type"));
        typed.all(|schema| is_of_type(value, &schema.types()))
    }
}

struct Restorer<'n> {
    normal: &'n Normal,
    /// Whether a null may stand for a missing property.
    removes_nulls: bool,
    work_left: Cell<usize>,
}

impl<'n> Restorer<'n> {
    /// Subtracts from the work budget. Returns `false` if the budget was used up before.
    fn work(&self, work: usize) -> bool {
        let left = self.work_left.get();
        self.work_left.set(left.saturating_sub(work));
        left > 0
    }

    fn applied(&self, schemas: impl IntoIterator<Item = &'n Map>) -> Applied<'n> {
        let mut applied = Applied::default();
        self.apply(schemas, &mut applied);
        applied
    }

    /// Adds schemas to `applied`, with the schemas that they refer to.
    fn apply(&self, schemas: impl IntoIterator<Item = &'n Map>, applied: &mut Applied<'n>) {
        let mut pending: Vec<&Map> = schemas.into_iter().collect();
        while let Some(schema) = pending.pop() {
            if applied.schemas.len() >= MAX_SCHEMAS {
                return;
            }
            if applied.schemas.iter().any(|it| std::ptr::eq(*it, schema)) {
                continue;
            }
            applied.schemas.push(schema);
            let unions = ["anyOf", "oneOf"].map(|keyword| schema.list(keyword));
            let unions = unions.into_iter().filter(|union| !union.is_empty());
            applied.unions.extend(unions);
            pending.extend(schema.list("allOf").iter().filter_map(Value::as_object));
            let reference = schema.text("$ref");
            pending.extend(reference.and_then(|it| self.normal.target(it)));
        }
    }

    fn value(&self, applied: &Applied<'n>, value: Value, depth: usize) -> Value {
        if depth >= MAX_DEPTH || !self.work(applied.schemas.len()) {
            return value;
        }
        let value = match value {
            Value::String(text) => self.text(applied, text, depth),
            other => other,
        };
        if !value.is_object() && !value.is_array() {
            return value;
        }
        if let Some(restored) = self.alternative(applied, &value, depth) {
            return restored;
        }
        match value {
            Value::Object(object) => Value::Object(self.object(applied, object, depth)),
            Value::Array(items) => {
                let items = items.into_iter().enumerate().map(|(index, item)| {
                    let schemas = self.applied(applied.item_schemas(index));
                    self.value(&schemas, item, depth + 1)
                });
                Value::Array(items.collect())
            }
            other => other,
        }
    }

    /// Restores a value with the first alternative that the restored value matches.
    fn alternative(&self, applied: &Applied<'n>, value: &Value, depth: usize) -> Option<Value> {
        let size = size(value);
        applied
            .unions
            .iter()
            .enumerate()
            .find_map(|(index, union)| {
                let alternatives = union.iter().filter_map(Value::as_object);
                alternatives.into_iter().find_map(|alternative| {
                    if !self.work(size) {
                        return None;
                    }
                    let mut both = applied.clone();
                    both.unions.remove(index);
                    self.apply([alternative], &mut both);
                    let restored = self.value(&both, value.clone(), depth + 1);
                    let is_match = self.matches(&both, &restored, depth + 1);
                    is_match.then_some(restored)
                })
            })
    }

    fn object(&self, applied: &Applied<'n>, object: Map, depth: usize) -> Map {
        let mut out = Map::new();
        for (key, value) in object {
            let schemas = applied.key_schemas(&key);
            let property = self.applied(schemas.iter().copied());
            if value.is_null() && self.removes_nulls && !applied.requires(&key) {
                let allows_null = if schemas.is_empty() {
                    // The key is an additional one, or belongs to another alternative.
                    !applied.has_any(&["properties"])
                } else {
                    self.matches(&property, &value, depth + 1)
                };
                if !allows_null {
                    continue;
                }
            }
            let value = if schemas.is_empty() {
                value
            } else {
                self.value(&property, value, depth + 1)
            };
            out.insert(key, value);
        }
        out
    }

    /// Restores a string: returns it, or its JSON content if the schemas require another type.
    fn text(&self, applied: &Applied<'n>, text: String, depth: usize) -> Value {
        let content = serde_json::from_str::<Value>(&text);
        let text = Value::String(text);
        self.work(size(&text));
        let Ok(content) = content else {
            return text;
        };
        let constraints = ["type", "enum", "const", "properties", "items"];
        let is_content = if applied.unions.is_empty() && !applied.has_any(&constraints) {
            true
        } else if self.matches(applied, &text, depth) {
            // Both the string and its content may match. An object or array is hardly meant as
            // text.
            let is_compound = content.is_object() || content.is_array();
            is_compound && self.matches(applied, &content, depth)
        } else {
            (applied.has_any(&["type"]) && applied.allows_type(&content))
                || self.matches(applied, &content, depth)
        };
        if is_content { content } else { text }
    }

    /// Returns whether a value matches the schemas, approximately. Lengths, bounds and patterns are
    /// ignored, because the tool's own schema is validated before a call. Returns `true` if the
    /// budget is exceeded.
    fn matches(&self, applied: &Applied<'n>, value: &Value, depth: usize) -> bool {
        if depth >= MAX_DEPTH || !self.work(applied.schemas.len()) {
            return true;
        }
        let is_listed = |schema: &&Map| {
            let constant = schema.get("const");
            let values = schema.get("enum").and_then(Value::as_array);
            self.work(
                constant.map_or(0, size) + schema.list("enum").iter().map(size).sum::<usize>(),
            );
            !is_never(schema)
                && constant.is_none_or(|it| it == value)
                && values.is_none_or(|it| it.contains(value))
        };
        let allows = |union: &&[Value]| {
            let alternatives = union.iter().filter_map(Value::as_object);
            alternatives
                .into_iter()
                .any(|it| self.matches(&self.applied([it]), value, depth + 1))
        };
        if !applied.allows_type(value)
            || !applied.schemas.iter().all(is_listed)
            || !applied.unions.iter().all(allows)
        {
            return false;
        }
        let matches_all = |schemas: Vec<&'n Map>, value: &Value| {
            schemas.is_empty() || self.matches(&self.applied(schemas), value, depth + 1)
        };
        match value {
            Value::Object(object) => {
                let required = applied.schemas.iter().flat_map(|schema| schema.required());
                let is_closed = applied.schemas.iter().any(|schema| {
                    schema.is_false("additionalProperties")
                        && !schema.contains_key("patternProperties")
                });
                required.into_iter().all(|name| {
                    self.work(1);
                    object.contains_key(name)
                }) && object.iter().all(|(key, value)| {
                    let schemas = applied.key_schemas(key);
                    !(is_closed && schemas.is_empty()) && matches_all(schemas, value)
                })
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.all(|(index, item)| matches_all(applied.item_schemas(index), item))
            }
            _ => true,
        }
    }
}

/// Returns the work of copying or comparing a value: one unit per nested value, and more for long
/// text.
fn size(value: &Value) -> usize {
    let mut size = 0_usize;
    // A loop instead of recursion, because the depth of a value is not limited.
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        let own = match value {
            Value::String(text) => 1 + text.len() / BYTES_PER_WORK,
            _ => 1,
        };
        size = size.saturating_add(own);
        match value {
            Value::Array(items) => pending.extend(items),
            Value::Object(map) => pending.extend(map.values()),
            _ => {}
        }
    }
    size
}

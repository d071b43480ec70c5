//! Conversion of an answer for a compiled schema into one for the original schema.

use std::{cell::Cell, collections::HashMap};

use serde_json::Value;

use super::{
    Dialect,
    dialect_rules::{AnyValueRule, DialectRules},
    keywords::{Map, SchemaMembers, has_type, rejects_all},
    normalize::{NormalSchema, normalize_schema},
    root,
};

/// Constant part of the work budget for restoring one answer. The budget limits the search among
/// nested alternatives, which could take exponential time. One unit of work is roughly the visit of
/// one JSON value.
const MIN_WORK: usize = 500_000;
/// Number of units that each JSON value in the answer adds to the constant part of the work budget,
/// [`MIN_WORK`].
const WORK_PER_VALUE: usize = 32;
/// Maximum nesting depth at which an answer is converted. Deeper values stay unchanged.
const MAX_DEPTH: usize = 64;
/// Maximum number of schemas (`$ref` targets, `allOf` members and chosen alternatives) that are
/// considered for one value of an answer. Further schemas are ignored.
const MAX_SCHEMAS: usize = 64;
/// Number of bytes of text that cost one unit of the work budget.
const BYTES_PER_WORK: usize = 32;

/// Reverses the effects of [`compile`](super::compile)`(original, dialect)` in an answer of the
/// model, so that the answer has the shape that the schema `original` describes.
///
/// `answer` is a tool's input or a structured output, as the provider sent it. The function moves
/// the content of the added property `value` to the root, restores renamed keys, parses values that
/// are written as JSON text, and removes each null that means "absent". A valid answer for
/// `original` is returned unchanged, with one exception: where any value is allowed and the dialect
/// has no schema for that, a string that is valid JSON is read as JSON text. Invalid parts are
/// returned unchanged, for the validator.
pub fn restore_answer(original: &Value, dialect: Dialect, mut answer: Value) -> Value {
    let rules = DialectRules::for_dialect(dialect);
    if !dialect_needs_restore(dialect) {
        return answer;
    }
    let mut normal = normalize_schema(original, rules, &mut Vec::new());
    let schema = normal.root.clone();
    if root::needs_root_wrapper(&normal, rules) {
        if let Value::Object(object) = &mut answer
            && object.len() == 1
            && let Some(value) = object.remove(root::WRAPPER)
        {
            answer = value;
        }
    } else if rules.restricted_keys
        && let Value::Object(object) = &mut answer
    {
        let names = root::prepare_root(&mut normal, rules, &mut Vec::new());
        let mut originals: HashMap<String, String> = names
            .into_iter()
            .map(|(original, name)| (name, original))
            .collect();
        let keys = std::mem::take(object).into_iter();
        let restored = keys.map(|(key, value)| (originals.remove(&key).unwrap_or(key), value));
        *object = restored.collect();
    }
    if rules.any_value != AnyValueRule::JsonText {
        return answer;
    }
    let work = value_cost(&answer)
        .saturating_mul(WORK_PER_VALUE)
        .saturating_add(MIN_WORK);
    let restorer = AnswerRestorer {
        normal: &normal,
        removes_nulls: rules.all_required,
        work_left: Cell::new(work),
    };
    restorer.restore_value(vec![&schema], answer, 0)
}

/// Returns whether [`restore_answer`] can change answers in a dialect.
pub fn dialect_needs_restore(dialect: Dialect) -> bool {
    let rules = DialectRules::for_dialect(dialect);
    rules.any_value == AnyValueRule::JsonText || rules.restricted_keys
}

/// The schemas that apply to one value: a schema, the target of its `$ref` and the members of its
/// `allOf`.
#[derive(Debug, Default)]
struct AppliedSchemas<'n> {
    schemas: Vec<&'n Map>,
    /// Lists of alternatives, one for each `anyOf` and `oneOf` in `schemas`.
    unions: Vec<&'n [Value]>,
}

impl<'n> AppliedSchemas<'n> {
    /// Returns the schemas that apply to the value of a key. Each of `self.schemas` contributes its
    /// entry in `properties`, or else `additionalProperties`.
    fn property_schemas(&self, key: &str) -> Vec<&'n Map> {
        let schemas = self.schemas.iter().filter_map(|schema| {
            let named = schema.get_object("properties").and_then(|it| it.get(key));
            let additional = || schema.get("additionalProperties");
            named.or_else(additional)?.as_object()
        });
        schemas.collect()
    }

    fn item_schemas(&self, index: usize) -> Vec<&'n Map> {
        let schemas = self.schemas.iter().filter_map(|schema| {
            let prefix = schema.get_array("prefixItems").get(index);
            prefix.or_else(|| schema.get("items"))?.as_object()
        });
        schemas.collect()
    }

    fn has_any_keyword(&self, keywords: &[&str]) -> bool {
        self.schemas
            .iter()
            .any(|schema| schema.has_any_keyword(keywords))
    }

    fn is_required(&self, key: &str) -> bool {
        self.schemas.iter().any(|schema| schema.is_required(key))
    }

    fn allows_type(&self, value: &Value) -> bool {
        let mut typed = self.schemas.iter().filter(|it| it.contains_key("type"));
        typed.all(|schema| has_type(value, &schema.get_types()))
    }
}

struct AnswerRestorer<'n> {
    normal: &'n NormalSchema,
    /// Whether the dialect requires every property, so that a null may represent a missing
    /// property.
    removes_nulls: bool,
    work_left: Cell<usize>,
}

impl<'n> AnswerRestorer<'n> {
    /// Subtracts `work` units from the work budget. Returns `false` if the budget was used up
    /// before.
    fn spend_work_budget(&self, work: usize) -> bool {
        let left = self.work_left.get();
        self.work_left.set(left.saturating_sub(work));
        left > 0
    }

    /// Adds schemas to `applied`, with their `allOf` members and `$ref` targets.
    fn add_schemas(&self, mut pending: Vec<&'n Map>, applied: &mut AppliedSchemas<'n>) {
        while let Some(schema) = pending.pop() {
            if applied.schemas.len() >= MAX_SCHEMAS {
                return;
            }
            if applied.schemas.iter().any(|it| std::ptr::eq(*it, schema)) {
                continue;
            }
            applied.schemas.push(schema);
            let unions = ["anyOf", "oneOf"].map(|keyword| schema.get_array(keyword));
            applied
                .unions
                .extend(unions.into_iter().filter(|union| !union.is_empty()));
            pending.extend(schema.get_schemas("allOf"));
            let reference = schema.get_text("$ref");
            pending.extend(reference.and_then(|it| self.normal.find_def(it)));
        }
    }

    /// Restores a value to its original shape. All of `schemas` apply to the value.
    fn restore_value(&self, schemas: Vec<&'n Map>, mut value: Value, depth: usize) -> Value {
        if depth >= MAX_DEPTH || !self.spend_work_budget(schemas.len()) {
            return value;
        }
        let mut applied = AppliedSchemas::default();
        self.add_schemas(schemas, &mut applied);
        // JSON text is decoded first, because its content decides which alternative applies.
        if let Some(content) = self.parse_json_text(&applied, &value, depth) {
            value = content;
        }
        if !value.is_object() && !value.is_array() {
            return value;
        }
        while let Some(union) = applied.unions.pop() {
            let mut alternatives = union.iter().filter_map(Value::as_object);
            let chosen =
                alternatives.find(|it| self.matches_schemas(vec![*it], &value, true, depth + 1));
            self.add_schemas(chosen.into_iter().collect(), &mut applied);
        }
        match value {
            Value::Object(object) => Value::Object(self.restore_object(&applied, object, depth)),
            Value::Array(items) => {
                let items = items.into_iter().enumerate();
                let items = items.map(|(index, item)| {
                    self.restore_value(applied.item_schemas(index), item, depth + 1)
                });
                Value::Array(items.collect())
            }
            other => other,
        }
    }

    fn restore_object(&self, applied: &AppliedSchemas<'n>, object: Map, depth: usize) -> Map {
        let mut out = Map::new();
        for (key, value) in object {
            if self.null_means_absent(applied, &key, &value, depth) {
                continue;
            }
            let schemas = applied.property_schemas(&key);
            let value = if schemas.is_empty() {
                value
            } else {
                self.restore_value(schemas, value, depth + 1)
            };
            out.insert(key, value);
        }
        out
    }

    /// Returns whether `value` is a null that means the absence of the optional key `key`.
    fn null_means_absent(
        &self,
        applied: &AppliedSchemas<'n>,
        key: &str,
        value: &Value,
        depth: usize,
    ) -> bool {
        if !value.is_null() || !self.removes_nulls || applied.is_required(key) {
            return false;
        }
        let schemas = applied.property_schemas(key);
        if schemas.is_empty() {
            // No schema describes this key. If the schemas list other `properties`, the key is an
            // additional one or belongs to another alternative, so its null means "absent".
            applied.has_any_keyword(&["properties"])
        } else {
            !self.matches_schemas(schemas, value, false, depth + 1)
        }
    }

    /// Parses a string as JSON text. Returns the parsed content if the schemas expect this content
    /// and not the string. Otherwise, or if the string is not JSON text, returns `None`.
    fn parse_json_text(
        &self,
        applied: &AppliedSchemas<'n>,
        value: &Value,
        depth: usize,
    ) -> Option<Value> {
        let content = serde_json::from_str::<Value>(value.as_str()?).ok()?;
        self.spend_work_budget(value_cost(value));
        let matches =
            |value: &Value| self.matches_schemas(applied.schemas.clone(), value, false, depth);
        let constraints = ["type", "enum", "const", "properties", "items"];
        let is_content = if applied.unions.is_empty() && !applied.has_any_keyword(&constraints) {
            true
        } else if matches(value) {
            // If the schemas allow both the string and its parsed content, the content is used only
            // if it is an object or an array.
            (content.is_object() || content.is_array()) && matches(&content)
        } else {
            (applied.has_any_keyword(&["type"]) && applied.allows_type(&content))
                || matches(&content)
        };
        is_content.then_some(content)
    }

    /// Returns whether a value matches the schemas, approximately. Lengths, bounds and patterns are
    /// ignored, because the input is validated against the tool's original schema before the call.
    /// Returns `true` if the budget is exceeded. `is_sent` means that the value is not restored
    /// yet: nulls may mean "absent", and a string may be JSON text.
    fn matches_schemas(
        &self,
        schemas: Vec<&'n Map>,
        value: &Value,
        is_sent: bool,
        depth: usize,
    ) -> bool {
        if schemas.is_empty() || depth >= MAX_DEPTH || !self.spend_work_budget(schemas.len()) {
            return true;
        }
        let mut applied = AppliedSchemas::default();
        self.add_schemas(schemas, &mut applied);
        if is_sent && let Some(content) = self.parse_json_text(&applied, value, depth) {
            return self.matches_schemas(applied.schemas, &content, false, depth + 1);
        }
        let is_listed = |schema: &&Map| {
            let constant = schema.get("const");
            let values = schema.get_array("enum");
            self.spend_work_budget(constant.into_iter().chain(values).map(value_cost).sum());
            !rejects_all(schema)
                && constant.is_none_or(|it| it == value)
                && (values.is_empty() || values.contains(value))
        };
        let allows = |union: &&[Value]| {
            let mut alternatives = union.iter().filter_map(Value::as_object);
            alternatives.any(|it| self.matches_schemas(vec![it], value, is_sent, depth + 1))
        };
        if !applied.allows_type(value)
            || !applied.schemas.iter().all(is_listed)
            || !applied.unions.iter().all(allows)
        {
            return false;
        }
        match value {
            Value::Object(object) => {
                let mut required = applied
                    .schemas
                    .iter()
                    .flat_map(|schema| schema.required_properties());
                let is_closed = applied.schemas.iter().any(|schema| {
                    schema.is_false("additionalProperties")
                        && !schema.contains_key("patternProperties")
                });
                required.all(|name| self.spend_work_budget(1) && object.contains_key(name))
                    && object.iter().all(|(key, value)| {
                        let schemas = applied.property_schemas(key);
                        (is_sent && self.null_means_absent(&applied, key, value, depth))
                            || (!(is_closed && schemas.is_empty())
                                && self.matches_schemas(schemas, value, is_sent, depth + 1))
                    })
            }
            Value::Array(items) => {
                let mut items = items.iter().enumerate();
                items.all(|(index, item)| {
                    self.matches_schemas(applied.item_schemas(index), item, is_sent, depth + 1)
                })
            }
            _ => true,
        }
    }
}

/// Returns how many units of the work budget it costs to copy or compare a value: one per nested
/// value, and more for long text.
fn value_cost(value: &Value) -> usize {
    let mut size = 0_usize;
    // A loop is used, because recursion into a deeply nested value could overflow the stack.
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        size = size.saturating_add(1);
        match value {
            Value::String(text) => size = size.saturating_add(text.len() / BYTES_PER_WORK),
            Value::Array(items) => pending.extend(items),
            Value::Object(map) => pending.extend(map.values()),
            _ => {}
        }
    }
    size
}

//! Alternatives: `oneOf` as `anyOf`, each alternative whole.

use serde_json::{Value, json};

use super::{Level, Lower};
use crate::schema::{
    Map,
    change::ChangeKind,
    expand::expand,
    merge,
    normal::{Normal, walk},
    words,
};

/// Subschemas that are written down at most where what all alternatives share is put into each.
const MAX_SPREAD: usize = 400;

impl Lower<'_, '_> {
    /// A schema without `$ref` and `allOf`, perhaps with alternatives.
    pub(super) fn united(&mut self, mut schema: Map, at: &str, level: Level) -> Option<Map> {
        if let Some(one_of) = schema.get("oneOf").cloned() {
            if schema.contains_key("anyOf") {
                schema.shift_remove("oneOf");
                let mut other = Map::new();
                other.insert("anyOf".to_owned(), one_of.clone());
                let merged = merge::intersect(schema, &other);
                schema = merged.schema;
                for (_, arms) in merged.rest {
                    self.tell(&mut schema, "oneOf", &arms, at);
                }
            } else {
                schema.shift_remove("oneOf");
                schema.insert("anyOf".to_owned(), one_of.clone());
            }
            let kind = if are_apart(self.normal, &one_of) {
                ChangeKind::Rewritten
            } else {
                // What is valid against two of them was not valid before.
                ChangeKind::Widened
            };
            self.report(at, kind, "`oneOf` is `anyOf`");
        }
        let Some(Value::Array(arms)) = schema.shift_remove("anyOf") else {
            return self.typed(schema, at, level);
        };
        let mut base = Map::new();
        let mut annotations = Map::new();
        for (keyword, value) in schema {
            if merge::is_annotation(&keyword) {
                annotations.insert(keyword, value);
            } else {
                base.insert(keyword, value);
            }
        }
        let mut size = 0_usize;
        walk::every(&base, &mut |_| size += 1);
        if !base.is_empty() && size.saturating_mul(arms.len()) > MAX_SPREAD {
            let mut schema = base;
            schema.extend(annotations);
            self.tell(&mut schema, "anyOf", &Value::Array(arms), at);
            return self.typed(schema, at, level);
        }
        if !base.is_empty() {
            let message = "what all alternatives share stands in each";
            self.report(at, ChangeKind::Rewritten, message);
        }
        let mut nullable = false;
        let mut lowered: Vec<Value> = Vec::new();
        for (index, arm) in arms.into_iter().enumerate() {
            let Value::Object(arm) = arm else { continue };
            let arm_at = format!("{at}/anyOf/{index}");
            if self.rules.openapi && arm.get("type") == Some(&json!("null")) {
                nullable = true;
                continue;
            }
            let arm = if base.is_empty() {
                self.node(arm, &arm_at, level)
            } else {
                let mut both = base.clone();
                both.insert("allOf".to_owned(), json!([arm]));
                self.node(both, &arm_at, level)
            };
            let Some(mut arm) = arm else {
                let message = "no value is valid against it: left out";
                self.report(&arm_at, ChangeKind::Rewritten, message);
                continue;
            };
            // Alternatives within an alternative that says nothing else are its own.
            let inner = match arm.get("anyOf") {
                Some(Value::Array(_)) if arm.len() == 1 => arm.shift_remove("anyOf"),
                _ => None,
            };
            let found = match inner {
                Some(Value::Array(inner)) => inner,
                _ => vec![Value::Object(arm)],
            };
            for arm in found {
                if !lowered.contains(&arm) {
                    lowered.push(arm);
                }
            }
        }
        if nullable {
            let message = "the alternative `null` is `nullable`";
            self.report(at, ChangeKind::Rewritten, message);
        }
        self.alternatives(lowered, &annotations, nullable, at)
    }

    /// Alternatives that are lowered already, with what is said of all of them.
    fn alternatives(
        &mut self,
        mut arms: Vec<Value>,
        annotations: &Map,
        nullable: bool,
        at: &str,
    ) -> Option<Map> {
        let mut around = Map::new();
        for (keyword, value) in annotations {
            if self.rules.openapi && keyword != "description" {
                if let Some(sentence) = words::sentence(keyword, value) {
                    words::append(&mut around, &sentence);
                }
            } else {
                self.annotation(&mut around, keyword, value, at);
            }
        }
        if arms.is_empty() {
            if !nullable {
                return None;
            }
            let mut null = Map::new();
            null.insert("type".to_owned(), json!("null"));
            null.extend(around);
            return Some(self.scalar(null, at));
        }
        let only = match arms.as_mut_slice() {
            [Value::Object(only)] => Some(std::mem::take(only)),
            _ => None,
        };
        if let Some(mut only) = only {
            let message = "an alternative that is the only one stands for itself";
            self.report(at, ChangeKind::Rewritten, message);
            if only.contains_key("$ref") && !around.is_empty() {
                around.insert("anyOf".to_owned(), json!([only]));
                return Some(around);
            }
            for (keyword, value) in around {
                if keyword == "description" {
                    words::prepend(&mut only, &value);
                } else {
                    only.insert(keyword, value);
                }
            }
            if nullable {
                self.make_nullable(&mut only);
            }
            return Some(only);
        }
        if self.rules.openapi {
            // `anyOf` is the only field that is set, so each alternative says all.
            for arm in arms.iter_mut().filter_map(Value::as_object_mut) {
                if let Some(description) = around.get("description") {
                    words::prepend(arm, description);
                }
                if nullable {
                    arm.insert("nullable".to_owned(), json!(true));
                }
            }
            around.clear();
        }
        around.insert("anyOf".to_owned(), Value::Array(arms));
        Some(around)
    }
}

/// Alternatives of which one sees at most whether they are apart.
const MAX_COMPARED: usize = 32;

/// Whether no value is valid against two of the alternatives, as far as types, listed values and
/// required keys with listed values tell.
fn are_apart(normal: &Normal, arms: &Value) -> bool {
    let arms = arms.as_array().into_iter().flatten();
    let arms: Vec<Map> = arms
        .filter_map(Value::as_object)
        .take(MAX_COMPARED + 1)
        .map(|arm| expand(normal, arm).schema)
        .collect();
    arms.len() <= MAX_COMPARED
        && arms.iter().enumerate().all(|(index, one)| {
            let others = arms.get(index + 1..).unwrap_or_default();
            others.iter().all(|other| two_are_apart(normal, one, other))
        })
}

fn two_are_apart(normal: &Normal, one: &Map, other: &Map) -> bool {
    if let (Some(ours), Some(theirs)) = (one.get("type"), other.get("type")) {
        let theirs = merge::names(theirs);
        let both_numbers = |name: &str| {
            matches!(name, "integer" | "number")
                && (theirs.contains(&"number") || theirs.contains(&"integer"))
        };
        if merge::names(ours)
            .iter()
            .all(|name| !theirs.contains(name) && !both_numbers(name))
        {
            return true;
        }
    }
    if let (Some(ours), Some(theirs)) = (listed(one), listed(other))
        && ours.iter().all(|value| !theirs.contains(value))
    {
        return true;
    }
    let properties = one.get("properties").and_then(Value::as_object);
    let is_required = |schema: &Map, key: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|name| name.as_str() == Some(key)))
    };
    // Only an object has keys, so both must say that they are one.
    let is_object = |schema: &Map| schema.get("type").is_some_and(|it| it == "object");
    is_object(one)
        && is_object(other)
        && properties.into_iter().flatten().any(|(key, ours)| {
            let theirs = other.get("properties").and_then(|it| it.get(key));
            let values = |schema: &Value| {
                let schema = expand(normal, schema.as_object()?).schema;
                listed(&schema).map(|values| values.into_iter().cloned().collect::<Vec<_>>())
            };
            is_required(one, key)
                && is_required(other, key)
                && match (values(ours), theirs.and_then(values)) {
                    (Some(ours), Some(theirs)) => !ours.iter().any(|it| theirs.contains(it)),
                    _ => false,
                }
        })
}

/// The values that are listed, if they are.
fn listed(schema: &Map) -> Option<Vec<&Value>> {
    if let Some(constant) = schema.get("const") {
        return Some(vec![constant]);
    }
    let values = schema.get("enum")?.as_array()?;
    Some(values.iter().collect())
}

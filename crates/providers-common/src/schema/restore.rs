//! An answer made for a compiled schema, as one for the schema that was given.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    Dialect, Map,
    accepts::{Expanded, Looks, has_type, item_schema, key_schema, size, size_of_map},
    merge,
    normal::normalise,
    root,
    rules::{Any, Rules},
};

/// Keywords whose value lists alternatives.
const UNIONS: [&str; 2] = ["anyOf", "oneOf"];

/// Turns an answer that was made for [`compile`](super::compile)`(original, dialect)` into one for
/// `original`.
///
/// Takes a tool's input or a structured output as the provider gave it, and the dialect that was
/// sent. Gives it with the root unwrapped, keys under their own names, JSON text read, and without
/// the nulls that stand for "left out". What is as `original` wants it comes back as it is, with
/// one exception: where any value is allowed and the dialect has no schema for that, a string is
/// taken for JSON text if it reads as JSON. What cannot be read is left for the validator to
/// complain of.
pub fn restore(original: &Value, dialect: Dialect, answer: Value) -> Value {
    let rules = Rules::of(dialect);
    let reads_text = reads_text(rules);
    if !restores(dialect) {
        return answer;
    }
    let normal = normalise(original, &mut Vec::new());
    let mut answer = answer;
    if root::is_wrapped(&normal, rules) {
        answer = match answer {
            Value::Object(mut object) if object.len() == 1 => match object.remove(root::WRAPPER) {
                Some(inner) => inner,
                None => Value::Object(object),
            },
            other => other,
        };
    } else if rules.narrow_keys {
        let mut prepared = normal.clone();
        let names = root::prepare(&mut prepared, rules, &mut Vec::new());
        answer = renamed(answer, &names);
    }
    if !reads_text {
        return answer;
    }
    let work = Restorer {
        looks: Looks::new(&normal, &answer),
        takes_nulls: rules.all_required,
    };
    work.value(&normal.root, answer, 0)
}

/// Whether [`restore`] has anything to do for answers in that dialect; if not, they are as they
/// came.
pub fn restores(dialect: Dialect) -> bool {
    let rules = Rules::of(dialect);
    reads_text(rules) || rules.narrow_keys
}

fn reads_text(rules: &Rules) -> bool {
    rules.any == Any::JsonText
}

/// Gives keys their own names back.
fn renamed(answer: Value, names: &[(String, String)]) -> Value {
    let Value::Object(object) = answer else {
        return answer;
    };
    let own = |key: String| {
        let found = names.iter().find(|(_, name)| *name == key);
        found.map_or(key, |(own, _)| own.clone())
    };
    let object = object.into_iter().map(|(key, value)| (own(key), value));
    Value::Object(object.collect())
}

struct Restorer<'n> {
    looks: Looks<'n>,
    /// Null may stand for "left out".
    takes_nulls: bool,
}

impl Restorer<'_> {
    fn value(&self, schema: &Map, value: Value, depth: usize) -> Value {
        if !self.looks.step(depth) {
            return value;
        }
        let schema = self.looks.expanded(schema).schema;
        let value = match value {
            Value::String(text) => self.text(&schema, text, depth),
            other => other,
        };
        if !value.is_object() && !value.is_array() {
            return value;
        }
        for (last, keyword) in UNIONS.iter().enumerate() {
            let Some(Value::Array(arms)) = schema.get(*keyword) else {
                continue;
            };
            let beside = schema
                .iter()
                .filter(|(other, _)| !UNIONS.iter().take(last + 1).any(|it| it == other));
            let beside: Map = beside.map(|(key, it)| (key.clone(), it.clone())).collect();
            let merges = !beside.keys().all(|keyword| merge::is_annotation(keyword));
            let copied = size_of_map(&beside).saturating_add(size(&value));
            for arm in arms.iter().filter_map(Value::as_object) {
                let Expanded { mut schema, never } = self.looks.expanded(arm);
                if !self.looks.work(copied) {
                    return value;
                }
                if never {
                    continue;
                }
                if merges {
                    self.looks.work(size_of_map(&schema));
                    let both = merge::intersect(beside.clone(), &schema);
                    if both.never {
                        continue;
                    }
                    schema = Cow::Owned(both.schema);
                }
                let candidate = self.value(&schema, value.clone(), depth + 1);
                if self.looks.accepts(&schema, &candidate, depth + 1) {
                    return candidate;
                }
            }
        }
        match value {
            Value::Object(object) => Value::Object(self.object(&schema, object, depth)),
            Value::Array(items) => {
                let items = items.into_iter().enumerate().map(|(index, item)| {
                    match item_schema(&schema, index) {
                        Some(schema) => self.value(schema, item, depth + 1),
                        // Items of any value are JSON text as well.
                        None => self.value(&Map::new(), item, depth + 1),
                    }
                });
                Value::Array(items.collect())
            }
            other => other,
        }
    }

    fn object(&self, schema: &Map, object: Map, depth: usize) -> Map {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |key: &str| {
            required.is_some_and(|names| names.iter().any(|name| name.as_str() == Some(key)))
        };
        let has_properties = schema.contains_key("properties");
        let mut out = Map::new();
        for (key, value) in object {
            let of_key = key_schema(schema, &key);
            if value.is_null() && self.takes_nulls && !is_required(&key) {
                let takes_null = match of_key {
                    Some(schema) => self.looks.accepts(schema, &value, depth + 1),
                    // Of another alternative, or free.
                    None => !has_properties,
                };
                if !takes_null {
                    continue;
                }
            }
            let value = match of_key {
                Some(schema) => self.value(schema, value, depth + 1),
                None => value,
            };
            out.insert(key, value);
        }
        out
    }

    /// A string, or what it says in JSON if that is what the schema wants.
    fn text(&self, schema: &Map, text: String, depth: usize) -> Value {
        let said = serde_json::from_str::<Value>(&text);
        let text = Value::String(text);
        self.looks.work(size(&text));
        let Ok(said) = said else {
            return text;
        };
        let constrains = [
            "type",
            "enum",
            "const",
            "anyOf",
            "oneOf",
            "properties",
            "items",
        ];
        if !constrains.iter().any(|it| schema.contains_key(*it)) {
            return said;
        }
        let compound = said.is_object() || said.is_array();
        if self.looks.accepts(schema, &text, depth) {
            // Both would do: a whole object or array was hardly meant as a text.
            let wanted = compound && self.looks.accepts(schema, &said, depth);
            return if wanted { said } else { text };
        }
        let of_type = schema
            .get("type")
            .is_some_and(|types| has_type(types, &said));
        if of_type || self.looks.accepts(schema, &said, depth) {
            said
        } else {
            text
        }
    }
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;

//! Conversion of an answer for a compiled schema into one for the original schema.

use serde_json::Value;

use super::{
    Dialect,
    keywords::{Map, SchemaMembers, is_of_type},
    matching::{Matcher, item_schema, key_schema, size, size_of_map},
    merge::intersection,
    normal::normalise,
    root,
    rules::{AnyValue, Rules},
};

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
    let restorer = Restorer {
        matcher: Matcher::new(&normal, &answer),
        removes_nulls: rules.all_required,
    };
    restorer.value(&normal.root, answer, 0)
}

/// Whether [`restore`] can change answers in a dialect.
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

struct Restorer<'n> {
    matcher: Matcher<'n>,
    /// Whether null may mean "absent".
    removes_nulls: bool,
}

impl Restorer<'_> {
    fn value(&self, schema: &Map, value: Value, depth: usize) -> Value {
        if !self.matcher.step(depth) {
            return value;
        }
        let Some(schema) = self.matcher.expanded(schema) else {
            return value;
        };
        let value = match value {
            Value::String(text) => self.text(&schema, text, depth),
            other => other,
        };
        if !value.is_object() && !value.is_array() {
            return value;
        }
        let mut keywords = ["anyOf", "oneOf"].into_iter();
        if let Some(restored) =
            keywords.find_map(|keyword| self.alternative(&schema, keyword, &value, depth))
        {
            return restored;
        }
        match value {
            Value::Object(object) => Value::Object(self.object(&schema, object, depth)),
            Value::Array(items) => {
                let any = Map::new();
                let items = items.into_iter().enumerate().map(|(index, item)| {
                    // Items of any value may be JSON text.
                    let schema = item_schema(&schema, index).unwrap_or(&any);
                    self.value(schema, item, depth + 1)
                });
                Value::Array(items.collect())
            }
            other => other,
        }
    }

    /// Restores a value by the first alternative that matches the result.
    fn alternative(
        &self,
        schema: &Map,
        keyword: &str,
        value: &Value,
        depth: usize,
    ) -> Option<Value> {
        if schema.list(keyword).is_empty() {
            return None;
        }
        let mut common = schema.clone();
        // `oneOf` applies besides `anyOf`; `anyOf` was tried before `oneOf`.
        common.retain(|other, _| other != keyword && (keyword == "anyOf" || other != "anyOf"));
        let copied = size_of_map(&common).saturating_add(size(value));
        schema.schemas(keyword).find_map(|alternative| {
            if !self.matcher.work(copied) {
                return None;
            }
            let alternative = self.matcher.expanded(alternative)?;
            self.matcher.work(size_of_map(&alternative));
            let both = intersection(common.clone(), &alternative);
            if both.is_never {
                return None;
            }
            let restored = self.value(&both.schema, value.clone(), depth + 1);
            let is_match = self.matcher.matches(&both.schema, &restored, depth + 1);
            is_match.then_some(restored)
        })
    }

    fn object(&self, schema: &Map, object: Map, depth: usize) -> Map {
        let mut out = Map::new();
        for (key, value) in object {
            let key_schema = key_schema(schema, &key);
            if value.is_null() && self.removes_nulls && !schema.requires(&key) {
                let allows_null = match key_schema {
                    Some(schema) => self.matcher.matches(schema, &value, depth + 1),
                    // An additional key, or the key of another alternative.
                    None => !schema.contains_key("properties"),
                };
                if !allows_null {
                    continue;
                }
            }
            let value = match key_schema {
                Some(schema) => self.value(schema, value, depth + 1),
                None => value,
            };
            out.insert(key, value);
        }
        out
    }

    /// Returns a string, or its JSON content if the schema wants that.
    fn text(&self, schema: &Map, text: String, depth: usize) -> Value {
        let content = serde_json::from_str::<Value>(&text);
        let text = Value::String(text);
        self.matcher.work(size(&text));
        let Ok(content) = content else {
            return text;
        };
        let constraints = [
            "type",
            "enum",
            "const",
            "anyOf",
            "oneOf",
            "properties",
            "items",
        ];
        let is_content = if !schema.has_any(&constraints) {
            true
        } else if self.matcher.matches(schema, &text, depth) {
            // Both may match: a whole object or array is hardly meant as text.
            let is_compound = content.is_object() || content.is_array();
            is_compound && self.matcher.matches(schema, &content, depth)
        } else {
            is_of_type(&content, &schema.types()) || self.matcher.matches(schema, &content, depth)
        };
        if is_content { content } else { text }
    }
}

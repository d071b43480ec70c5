//! Each keyword of each draft in the spelling of 2020-12.

use serde_json::{Value, json};

use super::{Map, Normaliser, below};
use crate::schema::{change::ChangeKind, words};

/// The types, as JSON Schema names them.
pub(in crate::schema) const TYPES: [&str; 7] = [
    "object", "array", "string", "integer", "number", "boolean", "null",
];

impl<'a> Normaliser<'a, '_> {
    pub(super) fn keyword(
        &mut self,
        map: &'a Map,
        keyword: &str,
        value: &'a Value,
        out: &mut Map,
        at: &str,
        depth: usize,
    ) {
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => match value {
                Value::String(_) if keyword != "$ref" && map.contains_key("$ref") => {
                    self.invalid(keyword, at);
                }
                Value::String(reference) => self.reference(reference, out, at),
                _ => self.invalid(keyword, at),
            },
            // Definitions are read where they are referred to; `nullable` is said by the type.
            "$defs" | "nullable" => {}
            "definitions" => {
                let message = "`definitions` is `$defs`";
                self.report(at, ChangeKind::Rewritten, message);
            }
            "$schema" | "$comment" | "$id" | "$anchor" | "$dynamicAnchor" | "$vocabulary"
            | "$recursiveAnchor" => self.noise(keyword, at),
            // Of the older drafts; as a property's name it stands in `properties`.
            "id" if value.is_string() => self.noise(keyword, at),
            "type" => self.types(value, out, at),
            "properties" | "patternProperties" | "dependentSchemas" => match value {
                Value::Object(named) => {
                    let named = self.named(named, keyword, at, depth);
                    out.insert(keyword.to_owned(), Value::Object(named));
                }
                _ => self.invalid(keyword, at),
            },
            "anyOf" | "oneOf" | "allOf" => match value {
                Value::Array(list) if !list.is_empty() => {
                    let list = self.listed(list, keyword, at, depth);
                    out.insert(keyword.to_owned(), list);
                }
                _ => self.invalid(keyword, at),
            },
            "not" | "if" | "then" | "else" | "contains" | "propertyNames" | "contentSchema" => {
                let at = format!("{at}/{keyword}");
                let schema = self.schema(value, &at, depth + 1);
                out.insert(keyword.to_owned(), Value::Object(schema));
            }
            "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems" => {
                if value.is_object() || value.is_boolean() {
                    let value = self.or_bool(value, keyword, at, depth);
                    out.insert(keyword.to_owned(), value);
                } else {
                    self.invalid(keyword, at);
                }
            }
            "items" | "prefixItems" | "additionalItems" => {
                self.items(map, keyword, value, out, at, depth);
            }
            "dependencies" => self.dependencies(value, out, at, depth),
            "required" => self.required(value, out, at),
            _ => self.constraint(map, keyword, value, out, at),
        }
    }

    fn constraint(&mut self, map: &Map, keyword: &str, value: &Value, out: &mut Map, at: &str) {
        let kept = match keyword {
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => {
                // Draft 4: it says how `minimum` is meant.
                let bound = keyword.trim_start_matches("exclusive").to_lowercase();
                let message = format!("`{keyword}` is a number");
                self.report(at, ChangeKind::Rewritten, message);
                let bound = map.get(&bound).filter(|bound| bound.is_number());
                bound.filter(|_| *value == json!(true)).cloned()
            }
            "minimum" | "maximum" => {
                let exclusive = format!("exclusive{}", capitalised(keyword));
                if map.get(&exclusive) == Some(&json!(true)) {
                    None
                } else {
                    value.is_number().then(|| value.clone())
                }
            }
            "exclusiveMinimum" | "exclusiveMaximum" => value.is_number().then(|| value.clone()),
            "multipleOf" => value
                .as_f64()
                .filter(|number| *number > 0.0)
                .map(|_| value.clone()),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" | "minContains" | "maxContains" => count(value).map(Value::from),
            "pattern" | "format" | "title" | "description" | "contentEncoding"
            | "contentMediaType" => value.is_string().then(|| value.clone()),
            "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => {
                value.is_boolean().then(|| value.clone())
            }
            "enum" => match value {
                Value::Array(values) if !values.is_empty() => Some(distinct(values)),
                _ => None,
            },
            "examples" => value.is_array().then(|| value.clone()),
            "dependentRequired" => value.as_object().map(|named| {
                let named = named.iter().filter_map(|(name, names)| {
                    Some((name.clone(), distinct_strings(names.as_array()?)))
                });
                Value::Object(named.collect())
            }),
            _ => Some(value.clone()),
        };
        match kept {
            Some(kept) => {
                // What was said in the description already stays there.
                if keyword == "description" {
                    words::prepend(out, &kept);
                } else {
                    out.insert(keyword.to_owned(), kept);
                }
            }
            None if value.is_boolean() && keyword.starts_with("exclusive") => {}
            None if matches!(keyword, "minimum" | "maximum") && value.is_number() => {}
            None => self.invalid(keyword, at),
        }
    }

    fn types(&mut self, value: &Value, out: &mut Map, at: &str) {
        let mut unknown = Vec::new();
        let mut read = |name: &Value| -> Vec<&'static str> {
            let Some(name) = name.as_str() else {
                return Vec::new();
            };
            known(name).unwrap_or_else(|| {
                unknown.push(name.to_owned());
                Vec::new()
            })
        };
        let mut types: Vec<&str> = Vec::new();
        let given = match value {
            Value::Array(names) => names.as_slice(),
            other => std::slice::from_ref(other),
        };
        let mut any = given.is_empty();
        for name in given {
            let found = read(name);
            any |= found.is_empty();
            for name in found {
                if !types.contains(&name) {
                    types.push(name);
                }
            }
        }
        let kept = match types.as_slice() {
            // One name of several means nothing: what it would allow is not known.
            _ if any => None,
            [] => None,
            [one] => Some(json!(one)),
            several => Some(json!(several)),
        };
        if kept.as_ref() != Some(value) {
            let message = match &kept {
                Some(kept) => format!("the type {} is {kept}", words::compact(value)),
                None => format!("no type is called {}", words::compact(value)),
            };
            let kind = if unknown.is_empty() && kept.is_some() || is_any(value) {
                ChangeKind::Rewritten
            } else {
                ChangeKind::Invalid
            };
            self.report(at, kind, message);
        }
        for name in unknown {
            words::append(out, &format!("Type: {}.", words::excerpt(&name)));
        }
        if let Some(kept) = kept {
            out.insert("type".to_owned(), kept);
        }
    }

    fn items(
        &mut self,
        map: &'a Map,
        keyword: &str,
        value: &'a Value,
        out: &mut Map,
        at: &str,
        depth: usize,
    ) {
        let is_tuple = map.get("items").is_some_and(Value::is_array);
        match (keyword, value) {
            ("items", Value::Object(_)) => {
                let items = self.schema(value, &format!("{at}/items"), depth + 1);
                out.insert("items".to_owned(), Value::Object(items));
            }
            ("items", Value::Bool(true)) => {
                out.insert("items".to_owned(), json!({}));
            }
            ("items", Value::Bool(false)) => {
                out.insert("items".to_owned(), json!(false));
            }
            ("items", Value::Array(list)) if !map.contains_key("prefixItems") => {
                self.report(
                    at,
                    ChangeKind::Rewritten,
                    "`items` as a list is `prefixItems`",
                );
                if !list.is_empty() {
                    let list = self.listed(list, "items", at, depth);
                    out.insert("prefixItems".to_owned(), list);
                }
            }
            ("prefixItems", Value::Array(list)) if !list.is_empty() => {
                let list = self.listed(list, "prefixItems", at, depth);
                out.insert("prefixItems".to_owned(), list);
            }
            ("additionalItems", Value::Object(_) | Value::Bool(_))
                if is_tuple && !map.contains_key("prefixItems") =>
            {
                let rest = self.or_bool(value, keyword, at, depth);
                if rest != json!(true) {
                    out.insert("items".to_owned(), rest);
                }
            }
            // Without a list it means nothing.
            ("additionalItems", _) => self.noise(keyword, at),
            _ => self.invalid(keyword, at),
        }
    }

    fn required(&mut self, value: &Value, out: &mut Map, at: &str) {
        match value {
            Value::Array(names) => {
                let distinct = distinct_strings(names);
                if distinct != *value {
                    self.report(
                        at,
                        ChangeKind::Invalid,
                        "`required` has more than names, once each",
                    );
                }
                out.insert("required".to_owned(), distinct);
            }
            // Draft 3, and a common mistake: the parent reads it.
            Value::Bool(_) => {}
            _ => self.invalid("required", at),
        }
    }

    /// `required: true` in a property is the parent's `required`.
    pub(super) fn required_of_children(&mut self, map: &Map, out: &mut Map, at: &str) {
        let Some(Value::Object(properties)) = map.get("properties") else {
            return;
        };
        let mut found = Vec::new();
        for (name, property) in properties {
            if let Some(Value::Bool(required)) = property.get("required") {
                let at = below(at, "properties", name);
                let message = "`required` is said by the object";
                self.report(&at, ChangeKind::Rewritten, message);
                if *required {
                    found.push(json!(name));
                }
            }
        }
        if found.is_empty() {
            return;
        }
        let required = out.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(names) = required {
            for name in found {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }

    fn dependencies(&mut self, value: &'a Value, out: &mut Map, at: &str, depth: usize) {
        let Value::Object(dependencies) = value else {
            return self.invalid("dependencies", at);
        };
        let message = "`dependencies` is `dependentRequired` and `dependentSchemas`";
        self.report(at, ChangeKind::Rewritten, message);
        for (name, one) in dependencies {
            let (keyword, one) = if let Value::Array(names) = one {
                ("dependentRequired", distinct_strings(names))
            } else {
                let at = below(at, "dependencies", name);
                let schema = self.schema(one, &at, depth + 1);
                ("dependentSchemas", Value::Object(schema))
            };
            let group = out.entry(keyword).or_insert_with(|| json!({}));
            if let Value::Object(group) = group {
                group.insert(name.clone(), one);
            }
        }
    }

    /// `nullable` of OpenAPI 3.0 as a type.
    pub(super) fn nullable(&mut self, map: &Map, mut out: Map, at: &str) -> Map {
        let Some(nullable) = map.get("nullable") else {
            return out;
        };
        if *nullable != json!(true) {
            self.noise("nullable", at);
            return out;
        }
        self.report(at, ChangeKind::Rewritten, "`nullable` is the type `null`");
        let null = json!({"type": "null"});
        if let Some(Value::Array(values)) = out.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
        if let Some(constant) = out.get("const").filter(|it| !it.is_null()) {
            let values = Value::Array(vec![constant.clone(), Value::Null]);
            out.shift_remove("const");
            out.insert("enum".to_owned(), values);
        }
        match out.get_mut("type") {
            Some(Value::String(name)) if name == "null" => {}
            Some(Value::String(name)) => {
                let name = std::mem::take(name);
                out.insert("type".to_owned(), json!([name, "null"]));
            }
            Some(Value::Array(names)) if !names.contains(&json!("null")) => {
                names.push(json!("null"));
            }
            _ => {}
        }
        let alone = !out.contains_key("oneOf") && !out.contains_key("allOf");
        if let Some(Value::Array(arms)) = out.get_mut("anyOf")
            && alone
        {
            if !arms.contains(&null) {
                arms.push(null);
            }
            return out;
        }
        let combines = ["$ref", "anyOf", "oneOf", "allOf"];
        if !combines.iter().any(|keyword| out.contains_key(*keyword)) {
            return out;
        }
        // Whatever it is, or null.
        let mut either = Map::new();
        for keyword in ["title", "description"] {
            if let Some(text) = out.shift_remove(keyword) {
                either.insert(keyword.to_owned(), text);
            }
        }
        let arms = vec![Value::Object(out), null];
        either.insert("anyOf".to_owned(), Value::Array(arms));
        either
    }

    fn noise(&mut self, keyword: &str, at: &str) {
        let message = format!("`{keyword}` left out");
        self.report(at, ChangeKind::Noise, message);
    }

    fn invalid(&mut self, keyword: &str, at: &str) {
        let message = format!("`{keyword}` has no lawful value: left out");
        self.report(at, ChangeKind::Invalid, message);
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|it| it.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn is_any(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|name| known(name).is_some_and(|it| it.is_empty()))
}

/// The types that a name stands for; none for "any". `None` if nobody calls a type so.
fn known(name: &str) -> Option<Vec<&'static str>> {
    if let Some(name) = TYPES.into_iter().find(|known| *known == name) {
        return Some(vec![name]);
    }
    Some(match name.to_ascii_lowercase().as_str() {
        "object" | "dict" | "map" => vec!["object"],
        "array" | "list" => vec!["array"],
        "string" | "str" | "text" => vec!["string"],
        "integer" | "int" | "long" => vec!["integer"],
        "number" | "float" | "double" | "decimal" => vec!["number"],
        "boolean" | "bool" => vec!["boolean"],
        "null" | "none" | "nil" => vec!["null"],
        "any" | "mixed" | "unknown" => Vec::new(),
        _ => return None,
    })
}

/// A count, also one written as `3.0`.
fn count(value: &Value) -> Option<u64> {
    if let Some(count) = value.as_u64() {
        return Some(count);
    }
    let number = value.as_f64()?;
    let whole = number >= 0.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, not negative and small"
    )]
    whole.then_some(number as u64)
}

fn distinct(values: &[Value]) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for value in values {
        if seen.insert(value.to_string()) {
            kept.push(value.clone());
        }
    }
    Value::Array(kept)
}

fn distinct_strings(names: &[Value]) -> Value {
    let names: Vec<Value> = names.iter().filter(|it| it.is_string()).cloned().collect();
    distinct(&names)
}

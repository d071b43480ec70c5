//! Conversion of each keyword to draft 2020-12.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Map, Normaliser, pointer_below, text};
use crate::schema::{
    change::ChangeKind,
    keywords::{SchemaMembers, TYPES, type_value},
};

impl<'a> Normaliser<'a, '_> {
    /// Adds the normal form of a keyword of the schema `map` to `out`.
    pub(super) fn keyword(
        &mut self,
        map: &'a Map,
        keyword: &str,
        value: &'a Value,
        out: &mut Map,
        at: &str,
        depth: usize,
    ) {
        match (keyword, value) {
            ("$ref", Value::String(reference)) => self.reference(reference, out, at),
            ("$dynamicRef" | "$recursiveRef", Value::String(reference))
                if !map.contains_key("$ref") =>
            {
                self.reference(reference, out, at);
            }
            // Definitions are normalised where they are referred to, `nullable` changes the type, and
            // `required_of_children` reads a boolean `required` (draft 3 and a common mistake).
            ("$defs" | "nullable", _) | ("required", Value::Bool(_)) => {}
            ("definitions", _) => self.rewritten(at, "`definitions` became `$defs`"),
            (
                "$schema" | "$comment" | "$id" | "$anchor" | "$dynamicAnchor" | "$vocabulary"
                | "$recursiveAnchor",
                _,
            )
            | ("id", Value::String(_)) => self.noise(keyword, at),
            ("type", _) => self.types(value, out, at),
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(named)) => {
                let named = self.named(named, keyword, at, depth);
                out.set(keyword, named);
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(list)) if !list.is_empty() => {
                let list = self.listed(list, keyword, at, depth);
                out.set(keyword, list);
            }
            (
                "not" | "if" | "then" | "else" | "contains" | "propertyNames" | "contentSchema",
                _,
            ) => {
                let schema = self.schema(value, &format!("{at}/{keyword}"), depth + 1);
                out.set(keyword, schema);
            }
            (
                "additionalProperties" | "unevaluatedProperties" | "unevaluatedItems",
                Value::Object(_) | Value::Bool(_),
            ) => {
                let value = self.or_bool(value, keyword, at, depth);
                out.set(keyword, value);
            }
            ("items" | "prefixItems" | "additionalItems", _) => {
                self.items(map, keyword, value, out, at, depth);
            }
            ("dependencies", Value::Object(dependencies)) => {
                self.dependencies(dependencies, out, at, depth);
            }
            ("required", Value::Array(names)) => {
                let distinct = distinct_strings(names);
                if distinct != *value {
                    let message = "`required` contains duplicates or values that are not names";
                    self.report(at, ChangeKind::Invalid, message);
                }
                out.set("required", distinct);
            }
            (
                "$ref"
                | "$dynamicRef"
                | "$recursiveRef"
                | "required"
                | "dependencies"
                | "properties"
                | "patternProperties"
                | "dependentSchemas"
                | "anyOf"
                | "oneOf"
                | "allOf"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "unevaluatedItems",
                _,
            ) => self.invalid(keyword, at),
            _ => self.constraint(map, keyword, value, out, at),
        }
    }

    /// Adds a keyword whose value is not a schema.
    fn constraint(&mut self, map: &Map, keyword: &str, value: &Value, out: &mut Map, at: &str) {
        let is_exclusive = |keyword: &str| map.get(keyword) == Some(&Value::Bool(true));
        let valid = match keyword {
            // Draft 4: a flag of the bound.
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => {
                self.rewritten(at, &format!("`{keyword}` became a number"));
                let bound = map.get(if keyword == "exclusiveMinimum" {
                    "minimum"
                } else {
                    "maximum"
                });
                let Some(bound) = bound.filter(|it| it.is_number() && *value == true) else {
                    return;
                };
                Some(bound.clone())
            }
            "minimum" if value.is_number() && is_exclusive("exclusiveMinimum") => return,
            "maximum" if value.is_number() && is_exclusive("exclusiveMaximum") => return,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                value.is_number().then(|| value.clone())
            }
            "multipleOf" => value.as_f64().filter(|it| *it > 0.0).map(|_| value.clone()),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
            | "maxProperties" | "minContains" | "maxContains" => count(value).map(Value::from),
            "pattern" | "format" | "title" | "description" | "contentEncoding"
            | "contentMediaType" => value.is_string().then(|| value.clone()),
            "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => {
                value.is_boolean().then(|| value.clone())
            }
            "enum" => value
                .as_array()
                .filter(|it| !it.is_empty())
                .map(|it| distinct(it)),
            "examples" => value.is_array().then(|| value.clone()),
            "dependentRequired" => value.as_object().map(|named| {
                let named = named.iter().filter_map(|(name, names)| {
                    Some((name.clone(), distinct_strings(names.as_array()?)))
                });
                Value::Object(named.collect())
            }),
            _ => Some(value.clone()),
        };
        match valid {
            // The description may already contain text about other keywords.
            Some(valid) if keyword == "description" => text::prepend(out, &valid),
            Some(valid) => out.set(keyword, valid),
            None => self.invalid(keyword, at),
        }
    }

    fn types(&mut self, value: &Value, out: &mut Map, at: &str) {
        let given = match value {
            Value::Array(names) => names.as_slice(),
            other => std::slice::from_ref(other),
        };
        let mut types: Vec<&str> = Vec::new();
        let mut is_any = given.is_empty();
        let mut is_invalid = given.is_empty();
        for name in given {
            match name.as_str().map(known_type) {
                Some(Some([name])) if types.contains(name) => {}
                Some(Some([name])) => types.push(name),
                Some(Some(_)) => {
                    is_any = true;
                    is_invalid |= value.is_array();
                }
                Some(None) | None => {
                    // An unknown type may allow any value.
                    is_any = true;
                    is_invalid = true;
                    if let Some(name) = name.as_str() {
                        text::append(out, &format!("Type: {}.", text::excerpt(name)));
                    }
                }
            }
        }
        let normal = (!is_any && !types.is_empty()).then(|| type_value(&types));
        if normal.as_ref() != Some(value) {
            let given = text::compact(value);
            let message = match &normal {
                Some(normal) => format!("the type {given} became {normal}"),
                None => format!("the type {given} is unknown"),
            };
            let kind = if is_invalid {
                ChangeKind::Invalid
            } else {
                ChangeKind::Rewritten
            };
            self.report(at, kind, message);
        }
        if let Some(normal) = normal {
            out.set("type", normal);
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
        let has_prefix = map.contains_key("prefixItems");
        let is_tuple = map.get("items").is_some_and(Value::is_array);
        match (keyword, value) {
            ("items", Value::Object(_)) => {
                let items = self.schema(value, &format!("{at}/items"), depth + 1);
                out.set("items", items);
            }
            ("items", Value::Bool(true)) => out.set("items", json!({})),
            ("items", Value::Bool(false)) => out.set("items", false),
            ("items", Value::Array(list)) if !has_prefix => {
                self.rewritten(at, "`items` as a list became `prefixItems`");
                if !list.is_empty() {
                    let list = self.listed(list, "items", at, depth);
                    out.set("prefixItems", list);
                }
            }
            ("prefixItems", Value::Array(list)) if !list.is_empty() => {
                let list = self.listed(list, "prefixItems", at, depth);
                out.set("prefixItems", list);
            }
            ("additionalItems", Value::Object(_) | Value::Bool(_)) if is_tuple && !has_prefix => {
                let rest = self.or_bool(value, keyword, at, depth);
                if rest != true {
                    out.set("items", rest);
                }
            }
            // Without a list it has no meaning.
            ("additionalItems", _) => self.noise(keyword, at),
            _ => self.invalid(keyword, at),
        }
    }

    /// Converts `required: true` in properties to `required` of the object.
    pub(super) fn required_of_children(&mut self, map: &Map, out: &mut Map, at: &str) {
        let mut found = Vec::new();
        for (name, property) in map.object("properties").into_iter().flatten() {
            if let Some(Value::Bool(is_required)) = property.get("required") {
                let at = pointer_below(at, "properties", name);
                self.rewritten(&at, "`required` moved to the object");
                found.extend(is_required.then_some(name.as_str()));
            }
        }
        if found.is_empty() {
            return;
        }
        let required = out.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(names) = required {
            for name in found {
                if !names.iter().any(|it| it == name) {
                    names.push(json!(name));
                }
            }
        }
    }

    fn dependencies(&mut self, dependencies: &'a Map, out: &mut Map, at: &str, depth: usize) {
        let message = "`dependencies` became `dependentRequired` and `dependentSchemas`";
        self.rewritten(at, message);
        for (name, value) in dependencies {
            let (keyword, value) = match value {
                Value::Array(names) => ("dependentRequired", distinct_strings(names)),
                schema => {
                    let at = pointer_below(at, "dependencies", name);
                    let schema = self.schema(schema, &at, depth + 1);
                    ("dependentSchemas", Value::Object(schema))
                }
            };
            let group = out.entry(keyword).or_insert_with(|| json!({}));
            if let Value::Object(group) = group {
                group.insert(name.clone(), value);
            }
        }
    }

    /// Converts `nullable` of OpenAPI 3.0 to the type `null`.
    pub(super) fn nullable(&mut self, map: &Map, mut out: Map, at: &str) -> Map {
        match map.get("nullable") {
            None => return out,
            Some(Value::Bool(true)) => {}
            Some(_) => {
                self.noise("nullable", at);
                return out;
            }
        }
        self.rewritten(at, "`nullable` became the type `null`");
        add_null_value(&mut out);
        let null = json!({"type": "null"});
        let is_plain = !out.has_any(&["$ref", "oneOf", "allOf"]);
        if is_plain && let Some(Value::Array(alternatives)) = out.get_mut("anyOf") {
            if !alternatives.contains(&null) {
                alternatives.push(null);
            }
            return out;
        }
        if is_plain && !out.contains_key("anyOf") {
            return out;
        }
        let mut either = Map::new();
        for keyword in ["title", "description"] {
            if let Some(annotation) = out.shift_remove(keyword) {
                either.insert(keyword.to_owned(), annotation);
            }
        }
        either.set("anyOf", vec![Value::Object(out), null]);
        either
    }

    fn rewritten(&mut self, at: &str, message: &str) {
        self.report(at, ChangeKind::Rewritten, message);
    }

    fn noise(&mut self, keyword: &str, at: &str) {
        self.report(at, ChangeKind::Noise, format!("`{keyword}` removed"));
    }

    fn invalid(&mut self, keyword: &str, at: &str) {
        let message = format!("`{keyword}` with an invalid value removed");
        self.report(at, ChangeKind::Invalid, message);
    }
}

/// Adds null to the listed values and the types of a schema.
pub(in crate::schema) fn add_null_value(schema: &mut Map) {
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(constant) = schema.get("const").filter(|it| !it.is_null()) {
        let values = json!([constant, null]);
        schema.shift_remove("const");
        schema.set("enum", values);
    }
    let mut types = schema.types();
    if !types.is_empty() && !types.contains(&"null") {
        types.push("null");
        let types = type_value(&types);
        schema.set("type", types);
    }
}

/// Returns the JSON Schema name of a type, nothing for "any", or `None` if the type is unknown.
fn known_type(name: &str) -> Option<&'static [&'static str]> {
    if let Some(index) = TYPES.iter().position(|known| *known == name) {
        return TYPES.get(index..=index);
    }
    Some(match name.to_ascii_lowercase().as_str() {
        "object" | "dict" | "map" => &["object"],
        "array" | "list" => &["array"],
        "string" | "str" | "text" => &["string"],
        "integer" | "int" | "long" => &["integer"],
        "number" | "float" | "double" | "decimal" => &["number"],
        "boolean" | "bool" => &["boolean"],
        "null" | "none" | "nil" => &["null"],
        "any" | "mixed" | "unknown" => &[],
        _ => return None,
    })
}

/// Returns a count, also one written as `3.0`.
fn count(value: &Value) -> Option<u64> {
    if let Some(count) = value.as_u64() {
        return Some(count);
    }
    let number = value.as_f64()?;
    let is_count = number >= 0.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, not negative and small"
    )]
    is_count.then_some(number as u64)
}

fn distinct(values: &[Value]) -> Value {
    let mut seen = HashSet::new();
    let distinct = values.iter().filter(|value| seen.insert(value.to_string()));
    distinct.cloned().collect()
}

fn distinct_strings(names: &[Value]) -> Value {
    let names: Vec<Value> = names.iter().filter(|it| it.is_string()).cloned().collect();
    distinct(&names)
}

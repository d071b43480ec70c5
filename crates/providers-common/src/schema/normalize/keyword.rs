//! Conversion of each keyword to draft 2020-12.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Map, Normalizer, child_pointer, text};
use crate::schema::{
    change::ChangeKind,
    keywords::{SchemaMembers, TYPES, ValueKind, keyword_value_kind, type_keyword_value},
};

impl<'a> Normalizer<'a, '_> {
    /// Adds the draft 2020-12 form of one keyword to `out`. `map` is the schema with the keyword.
    pub(super) fn normalize_keyword(
        &mut self,
        map: &'a Map,
        keyword: &str,
        value: &'a Value,
        out: &mut Map,
        at: &str,
        depth: usize,
    ) {
        let has_prefix = map.contains_key("prefixItems");
        let is_true = |keyword: &str| map.get(keyword) == Some(&Value::Bool(true));
        match (keyword, value) {
            ("$ref", Value::String(reference)) => self.normalize_reference(reference, out, at),
            // These keywords are not copied. Other functions convert definitions, `nullable` and
            // the flag `required`. The compiler ignores the remaining keywords.
            (
                "$defs" | "definitions" | "nullable" | "$schema" | "$comment" | "$id" | "$anchor"
                | "$dynamicAnchor" | "$vocabulary" | "$recursiveAnchor" | "$dynamicRef"
                | "$recursiveRef",
                _,
            )
            | ("required", Value::Bool(_))
            | ("id", Value::String(_)) => {}
            ("type", _) => self.normalize_types(value, out, at),
            // In draft 7, `items` may be a list, and `additionalItems` describes the items after
            // that list.
            ("items", Value::Array(list)) if !has_prefix => {
                if !list.is_empty() {
                    let list = self.normalize_list(list, "items", at, depth);
                    out.set("prefixItems", list);
                }
            }
            ("items", Value::Bool(true)) => out.set("items", json!({})),
            ("additionalItems", _) => {
                let is_rest = map.get("items").is_some_and(Value::is_array) && !has_prefix;
                if is_rest && *value != true {
                    let rest = self.normalize_value("items", value, at, depth);
                    out.extend(rest.map(|rest| ("items".to_owned(), rest)));
                }
            }
            ("dependencies", Value::Object(dependencies)) => {
                self.normalize_dependencies(dependencies, out, at, depth);
            }
            // In draft 4, `exclusiveMinimum` and `exclusiveMaximum` are booleans that make
            // `minimum` and `maximum` exclusive.
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(is_exclusive)) => {
                let bound = map.get(match keyword {
                    "exclusiveMinimum" => "minimum",
                    _ => "maximum",
                });
                if let Some(bound) = bound.filter(|it| it.is_number() && *is_exclusive) {
                    out.set(keyword, bound.clone());
                }
            }
            ("minimum", Value::Number(_)) if is_true("exclusiveMinimum") => {}
            ("maximum", Value::Number(_)) if is_true("exclusiveMaximum") => {}
            // The original description goes before existing text about other keywords.
            ("description", Value::String(_)) => text::prepend_text(out, value),
            _ => {
                let Some(value) = self.normalize_value(keyword, value, at, depth) else {
                    let message = format!("`{keyword}` with an invalid value removed");
                    return self.report_change(at, ChangeKind::Invalid, message);
                };
                out.set(keyword, value);
            }
        }
    }

    /// Returns the draft 2020-12 form of a keyword's value. Returns `None` if the value is invalid.
    fn normalize_value(
        &mut self,
        keyword: &str,
        value: &'a Value,
        at: &str,
        depth: usize,
    ) -> Option<Value> {
        Some(match (keyword_value_kind(keyword), value) {
            (ValueKind::Schema, _) | (ValueKind::SchemaOrFlag, Value::Object(_)) => {
                let at = format!("{at}/{keyword}");
                Value::Object(self.normalize_subschema(value, &at, depth + 1))
            }
            (ValueKind::Schemas, Value::Array(list)) if !list.is_empty() => {
                self.normalize_list(list, keyword, at, depth)
            }
            (ValueKind::NamedSchemas, Value::Object(named)) => {
                let named = named.iter().map(|(name, schema)| {
                    let at = child_pointer(at, keyword, name);
                    (
                        name.clone(),
                        Value::Object(self.normalize_subschema(schema, &at, depth + 1)),
                    )
                });
                Value::Object(named.collect())
            }
            (ValueKind::Divisor, Value::Number(number)) if number.as_f64() > Some(0.0) => {
                value.clone()
            }
            (ValueKind::Count, Value::Number(_)) => value.as_u64()?.into(),
            (ValueKind::List, Value::Array(list)) => match keyword {
                "enum" if list.is_empty() => return None,
                "enum" => distinct_values(list.iter()),
                "required" => distinct_values(list.iter().filter(|it| it.is_string())),
                _ => value.clone(),
            },
            (ValueKind::NamedNameLists, Value::Object(lists)) => {
                let lists = lists.iter().filter_map(|(name, list)| {
                    let list = list.as_array()?.iter().filter(|it| it.is_string());
                    Some((name.clone(), distinct_values(list)))
                });
                Value::Object(lists.collect())
            }
            (ValueKind::SchemaOrFlag | ValueKind::Flag, Value::Bool(_))
            | (ValueKind::Number, Value::Number(_))
            | (ValueKind::Text, Value::String(_))
            | (ValueKind::Any, _) => value.clone(),
            _ => return None,
        })
    }

    fn normalize_types(&mut self, value: &Value, out: &mut Map, at: &str) {
        let given = match value {
            Value::Array(names) => names.as_slice(),
            other => std::slice::from_ref(other),
        };
        let known = given.iter().map(|name| parse_type_name(name.as_str()?));
        let mut known: Vec<&str> = known.collect::<Option<_>>().unwrap_or_default();
        if known == ["any"] {
            return;
        }
        if known.is_empty() || known.contains(&"any") {
            // The unknown type is dropped, because it may allow any value.
            let message = format!("the type {} is unknown", text::compact_json(value));
            self.report_change(at, ChangeKind::Invalid, message);
            if let Some(name) = value.as_str() {
                text::append_text(out, &format!("Type: {}.", text::text_excerpt(name)));
            }
            return;
        }
        let mut seen = HashSet::new();
        known.retain(|name| seen.insert(*name));
        out.set("type", type_keyword_value(&known));
    }

    /// Converts `dependencies` of draft 7 to `dependentRequired` and `dependentSchemas`.
    fn normalize_dependencies(
        &mut self,
        dependencies: &'a Map,
        out: &mut Map,
        at: &str,
        depth: usize,
    ) {
        for (name, value) in dependencies {
            let (keyword, value) = match value {
                Value::Array(names) => ("dependentRequired", distinct_values(names.iter())),
                schema => {
                    let at = child_pointer(at, "dependencies", name);
                    let schema = self.normalize_subschema(schema, &at, depth + 1);
                    ("dependentSchemas", Value::Object(schema))
                }
            };
            if let Value::Object(group) = out.entry(keyword).or_insert_with(|| json!({})) {
                group.insert(name.clone(), value);
            }
        }
    }
}

/// Converts the flag `required: true` in property schemas to the list `required` of the object
/// schema.
pub(super) fn convert_required_flags(map: &Map, out: &mut Map) {
    for (name, property) in map.get_object("properties").into_iter().flatten() {
        if property.get("required") == Some(&Value::Bool(true))
            && !out.is_required(name)
            && let Value::Array(names) = out.entry("required").or_insert_with(|| json!([]))
        {
            names.push(json!(name));
        }
    }
}

/// Converts `nullable` of OpenAPI 3.0 to the type `null`.
pub(super) fn convert_nullable(map: &Map, mut out: Map) -> Map {
    if map.get("nullable") != Some(&Value::Bool(true)) {
        return out;
    }
    add_null_value(&mut out);
    if !out.has_any_keyword(&["$ref", "anyOf", "oneOf", "allOf"])
        || out.get_array("anyOf").contains(&json!({"type": "null"}))
    {
        return out;
    }
    let keywords = out.into_iter();
    let (mut either, inner): (Map, Map) =
        keywords.partition(|(keyword, _)| matches!(keyword.as_str(), "title" | "description"));
    either.set("anyOf", json!([inner, {"type": "null"}]));
    either
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
    let mut types = schema.get_types();
    if !types.is_empty() && !types.contains(&"null") {
        types.push("null");
        let types = type_keyword_value(&types);
        schema.set("type", types);
    }
}

/// Returns the JSON Schema name of a type, or `any` for a type that allows any value. The name may
/// be in upper case or come from another language, such as `dict`. Returns `None` for an unknown
/// type.
fn parse_type_name(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    Some(match name.as_str() {
        "dict" | "map" => "object",
        "list" => "array",
        "str" | "text" => "string",
        "int" | "long" => "integer",
        "float" | "double" | "decimal" => "number",
        "bool" => "boolean",
        "none" | "nil" => "null",
        "any" | "mixed" | "unknown" => "any",
        name => return TYPES.into_iter().find(|known| *known == name),
    })
}

fn distinct_values<'v>(values: impl Iterator<Item = &'v Value>) -> Value {
    let mut seen = HashSet::new();
    let distinct = values.filter(|value| seen.insert(value.to_string()));
    distinct.cloned().collect()
}

//! Types, and the keywords that speak of each.

use serde_json::{Value, json};

use crate::schema::{Map, merge};

/// Whether there are schemas within a keyword.
pub(super) fn is_compound(keyword: &str) -> bool {
    matches!(
        keyword,
        "$ref"
            | "anyOf"
            | "oneOf"
            | "allOf"
            | "properties"
            | "additionalProperties"
            | "items"
            | "prefixItems"
    )
}

/// The types that the keywords of a schema speak of, where it names none.
pub(super) fn implied_types(schema: &Map) -> Option<Value> {
    let speaks_of = |keywords: &[&str]| keywords.iter().any(|it| schema.contains_key(*it));
    let listed = schema.get("enum").and_then(Value::as_array);
    let values: Vec<&Value> = schema
        .get("const")
        .into_iter()
        .chain(listed.into_iter().flatten())
        .collect();
    if !values.is_empty() {
        let mut names: Vec<&str> = Vec::new();
        for value in values {
            let name = type_of(value);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.contains(&"number") {
            names.retain(|name| *name != "integer");
        }
        return Some(match names.as_slice() {
            [one] => json!(one),
            several => json!(several),
        });
    }
    let name = if speaks_of(OBJECT_KEYWORDS) {
        "object"
    } else if speaks_of(ARRAY_KEYWORDS) {
        "array"
    } else if speaks_of(STRING_KEYWORDS) || schema.get("format").is_some() {
        "string"
    } else if speaks_of(NUMBER_KEYWORDS) {
        "number"
    } else {
        return None;
    };
    Some(json!(name))
}

pub(super) const OBJECT_KEYWORDS: &[&str] = &[
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
];
pub(super) const ARRAY_KEYWORDS: &[&str] = &[
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
];
pub(super) const STRING_KEYWORDS: &[&str] = &[
    "minLength",
    "maxLength",
    "pattern",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];
pub(super) const NUMBER_KEYWORDS: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];

/// Keywords that speak of values of one type only.
pub(super) fn keywords_of(name: &str) -> &'static [&'static str] {
    match name {
        "object" => OBJECT_KEYWORDS,
        "array" => ARRAY_KEYWORDS,
        "string" => STRING_KEYWORDS,
        "number" | "integer" => NUMBER_KEYWORDS,
        _ => &[],
    }
}

pub(super) fn remove_keywords_of(schema: &mut Map, name: &str) {
    for keyword in keywords_of(name) {
        schema.shift_remove(*keyword);
    }
    if name == "string" {
        schema.shift_remove("format");
    }
    let Some(types) = schema.get("type").cloned() else {
        return;
    };
    // Only the values of the types that are left.
    let left = merge::names(&types);
    let fits = |value: &Value| {
        let of = type_of(value);
        left.contains(&of) || (of == "integer" && left.contains(&"number"))
    };
    if schema.get("const").is_some_and(|constant| !fits(constant)) {
        schema.shift_remove("const");
        schema.insert("enum".to_owned(), json!([]));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(fits);
    }
}

/// The type of a value; a number without fraction is an integer.
pub(in crate::schema) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) => {
            let whole = number.as_f64().is_some_and(|it| it.fract() == 0.0);
            if whole { "integer" } else { "number" }
        }
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

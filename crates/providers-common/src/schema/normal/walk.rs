//! The subschemas of a schema in the one spelling: only places where a schema stands, never values
//! that look like one in `enum`, `default` or `examples`.

use serde_json::Value;

use super::{Map, below};

const ONE: [&str; 12] = [
    "items",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "contentSchema",
    "additionalItems",
];
const LISTED: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const NAMED: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];

/// The schemas right below one.
pub(in crate::schema) fn children(schema: &Map) -> impl Iterator<Item = &Map> {
    schema.iter().flat_map(|(keyword, value)| {
        let keyword = keyword.as_str();
        let values: Box<dyn Iterator<Item = &Value>> = match value {
            Value::Object(_) if ONE.contains(&keyword) => Box::new(std::iter::once(value)),
            Value::Array(list) if LISTED.contains(&keyword) => Box::new(list.iter()),
            Value::Object(named) if NAMED.contains(&keyword) => Box::new(named.values()),
            _ => Box::new(std::iter::empty()),
        };
        values.filter_map(Value::as_object)
    })
}

/// Calls `each` for a schema and all below it, with the pointer of each.
pub(in crate::schema) fn every_mut(
    schema: &mut Map,
    at: &str,
    each: &mut dyn FnMut(&mut Map, &str),
) {
    each(schema, at);
    for (keyword, value) in schema.iter_mut() {
        let keyword = keyword.as_str();
        match value {
            Value::Object(one) if ONE.contains(&keyword) => {
                every_mut(one, &format!("{at}/{keyword}"), each);
            }
            Value::Array(list) if LISTED.contains(&keyword) => {
                for (index, one) in list.iter_mut().enumerate() {
                    if let Value::Object(one) = one {
                        every_mut(one, &format!("{at}/{keyword}/{index}"), each);
                    }
                }
            }
            Value::Object(named) if NAMED.contains(&keyword) => {
                for (name, one) in named.iter_mut() {
                    if let Value::Object(one) = one {
                        every_mut(one, &below(at, keyword, name), each);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Calls `each` for a schema and all below it.
pub(in crate::schema) fn every<'s>(schema: &'s Map, each: &mut dyn FnMut(&'s Map)) {
    each(schema);
    for child in children(schema) {
        every(child, each);
    }
}

/// The references of a schema and all below it.
pub(in crate::schema) fn references(schema: &Map) -> Vec<&str> {
    let mut found = Vec::new();
    every(schema, &mut |schema| {
        found.extend(schema.get("$ref").and_then(Value::as_str));
    });
    found
}

//! Whether a value fits a schema. The planner's last check before it uses a value; the whole of
//! JSON Schema is checked by the orchestration before a call.

use std::cell::Cell;

use regex::RegexBuilder;
use serde_json::Value;

use crate::schema::{MAX_DEPTH, resolve};

/// Maximum number of steps of one check. A step applies one schema to one value. References that
/// multiply could take 10^12 of them; a value that needs more steps does not fit.
const MAX_STEPS: usize = 5_000;

/// Whether `value` fits `schema`, as far as types, choices, bounds, formats, items and properties
/// go; `root` is where local references point to.
pub(crate) fn fits(value: &Value, schema: &Value, root: &Value) -> bool {
    let steps = Cell::new(0);
    let fits = check(value, schema, root, 0, &steps);
    fits && steps.get() <= MAX_STEPS
}

fn check(value: &Value, schema: &Value, root: &Value, depth: usize, steps: &Cell<usize>) -> bool {
    steps.set(steps.get() + 1);
    if depth > MAX_DEPTH || steps.get() > MAX_STEPS || schema == &Value::Bool(false) {
        return false;
    }
    let all = |list: Option<&Value>, test: &dyn Fn(&Value) -> bool| {
        list.and_then(Value::as_array)
            .is_none_or(|list| list.iter().all(test))
    };
    let any = |list: Option<&Value>, test: &dyn Fn(&Value) -> bool| {
        list.and_then(Value::as_array)
            .is_none_or(|list| list.iter().any(test))
    };
    let sub = |schema: &Value| check(value, schema, root, depth + 1, steps);
    let reference = schema.get("$ref").is_none() || {
        let target = resolve(schema, root, 0);
        target.get("$ref").is_none() && sub(target)
    };
    let exactly_one = schema
        .get("oneOf")
        .and_then(Value::as_array)
        .is_none_or(|list| list.iter().filter(|schema| sub(schema)).count() == 1);
    reference
        && of_type(value, schema)
        && schema.get("const").is_none_or(|only| same(only, value))
        && any(schema.get("enum"), &|option| same(option, value))
        && any(schema.get("anyOf"), &sub)
        && all(schema.get("allOf"), &sub)
        && exactly_one
        && schema.get("not").is_none_or(|not| !sub(not))
        && match value {
            Value::Number(number) => number
                .as_f64()
                .is_some_and(|number| in_range(number, schema)),
            Value::String(text) => text_fits(text, schema),
            Value::Array(items) => items_fit(items, schema, root, depth, steps),
            Value::Object(map) => object_fits(map, schema, root, depth, steps),
            Value::Null | Value::Bool(_) => true,
        }
}

/// JSON Schema compares numbers by value: 1.0 is 1.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        _ => one == other,
    }
}

fn of_type(value: &Value, schema: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    match schema.get("type") {
        Some(Value::String(name)) => is(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

fn in_range(number: f64, schema: &Value) -> bool {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    bound("minimum").is_none_or(|min| number >= min)
        && bound("maximum").is_none_or(|max| number <= max)
        && bound("exclusiveMinimum").is_none_or(|min| number > min)
        && bound("exclusiveMaximum").is_none_or(|max| number < max)
        && bound("multipleOf").is_none_or(|step| {
            let ratio = number / step;
            step > 0.0 && (ratio - ratio.round()).abs() < 1e-9
        })
}

fn size_fits(size: usize, schema: &Value, min: &str, max: &str) -> bool {
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    bound(min).is_none_or(|min| size >= min) && bound(max).is_none_or(|max| size <= max)
}

fn text_fits(text: &str, schema: &Value) -> bool {
    size_fits(text.chars().count(), schema, "minLength", "maxLength")
        && schema
            .get("pattern")
            .and_then(Value::as_str)
            .is_none_or(|pattern| {
                // A pattern that is no Rust pattern (look-around) is left to the check before the call.
                RegexBuilder::new(pattern)
                    .size_limit(1 << 20)
                    .build()
                    .ok()
                    .is_none_or(|regex| regex.is_match(text))
            })
        && match schema.get("format").and_then(Value::as_str) {
            Some("date") => is_date(text),
            Some("date-time") => {
                text.get(..10).is_some_and(is_date) && text.parse::<jiff::Timestamp>().is_ok()
            }
            Some("time") => format!("2000-01-01T{text}")
                .parse::<jiff::Timestamp>()
                .is_ok(),
            Some("email") => text.split_once('@').is_some_and(|(user, host)| {
                !user.is_empty() && host.contains('.') && !text.contains(char::is_whitespace)
            }),
            Some("uuid") => {
                let shape = |(i, c): (usize, char)| {
                    if matches!(i, 8 | 13 | 18 | 23) {
                        c == '-'
                    } else {
                        c.is_ascii_hexdigit()
                    }
                };
                text.len() == 36 && text.chars().enumerate().all(shape)
            }
            Some("uri" | "url") => {
                text.contains("://") && !text.contains(char::is_whitespace) && text.is_ascii()
            }
            _ => true,
        }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && crate::extract::whole_date(text).is_some()
}

fn items_fit(
    items: &[Value],
    schema: &Value,
    root: &Value,
    depth: usize,
    steps: &Cell<usize>,
) -> bool {
    let unique = schema.get("uniqueItems") != Some(&Value::Bool(true))
        || items
            .iter()
            .enumerate()
            .all(|(i, item)| !items[..i].iter().any(|other| same(other, item)));
    unique
        && size_fits(items.len(), schema, "minItems", "maxItems")
        && schema.get("items").is_none_or(|inner| {
            items
                .iter()
                .all(|item| check(item, inner, root, depth + 1, steps))
        })
}

fn object_fits(
    map: &serde_json::Map<String, Value>,
    schema: &Value,
    root: &Value,
    depth: usize,
    steps: &Cell<usize>,
) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let declared = |name: &str| properties.and_then(|properties| properties.get(name));
    let required = schema
        .get("required")
        .and_then(Value::as_array)
        .is_none_or(|names| {
            names
                .iter()
                .filter_map(Value::as_str)
                .all(|name| map.contains_key(name))
        });
    required
        && size_fits(map.len(), schema, "minProperties", "maxProperties")
        && map.iter().all(|(name, value)| {
            match (declared(name), schema.get("additionalProperties")) {
                (Some(property), _) => check(value, property, root, depth + 1, steps),
                (None, Some(other)) => check(value, other, root, depth + 1, steps),
                (None, None) => true,
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_testkit::hostile::chain;

    use super::*;

    #[test]
    fn agrees_with_the_standard_on_what_it_checks() {
        let root = json!({"$defs": {"p": {"enum": ["low", "high"]}}});
        for (value, schema, expected) in [
            (
                json!(3),
                json!({"type": "integer", "minimum": 1, "maximum": 3}),
                true,
            ),
            (json!(4), json!({"type": "integer", "maximum": 3}), false),
            (json!(2.5), json!({"type": "integer"}), false),
            (json!("low"), json!({"$ref": "#/$defs/p"}), true),
            (json!("mid"), json!({"$ref": "#/$defs/p"}), false),
            (json!("x"), json!({"$ref": "#/$defs/absent"}), false),
            (json!(null), json!({"type": ["string", "null"]}), true),
            (json!("2026-02-30"), json!({"format": "date"}), false),
            (json!("2026-02-03"), json!({"format": "date"}), true),
            (
                json!("2026-02-03T00:00:00Z"),
                json!({"format": "date-time"}),
                true,
            ),
            (json!("a@b.org"), json!({"format": "email"}), true),
            (json!("14:30:00Z"), json!({"format": "time"}), true),
            (json!("14:30"), json!({"format": "time"}), false),
            (json!({"a": 1}), json!({"required": ["b"]}), false),
            (
                json!({"a": 1}),
                json!({"additionalProperties": false}),
                false,
            ),
            (json!([1, 1]), json!({"uniqueItems": true}), false),
            (
                json!(1),
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
                false,
            ),
        ] {
            assert_eq!(fits(&value, &schema, &root), expected, "{value} {schema}");
        }
    }

    #[test]
    fn references_that_multiply_take_a_bounded_number_of_steps() {
        for applicator in ["anyOf", "oneOf", "allOf"] {
            let schema = chain(40, applicator, 50);
            assert!(!fits(&json!(1), &schema, &schema), "{applicator}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let root = json!({"$ref": "#"});
        assert!(!fits(&json!(1), &root, &root));
    }
}

#![allow(
    clippy::needless_pass_by_value,
    reason = "schemas and values are written where they are used"
)]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::tools::arguments::validators::compile;

/// Returns the repaired input and the descriptions of its repairs.
fn repaired(schema: &Value, input: &Value) -> Option<(Value, Vec<String>)> {
    let validator = compile(schema).expect("a schema of a test compiles");
    assert_eq!(validator.is_valid(input), Ok(false), "{input} is valid");
    let (object, repairs) = repair_values(&validator, schema, "lookup", input, None)?;
    let object = Value::Object(object);
    assert_eq!(validator.is_valid(&object), Ok(true));
    Some((object, repairs.iter().map(ToString::to_string).collect()))
}

/// Returns an object schema with one property `a`.
fn property(schema: Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

#[track_caller]
fn assert_repaired(schema: Value, given: Value, expected: Value, repair: &str) {
    let (object, repairs) = repaired(&property(schema), &json!({"a": given})).expect("a repair");
    assert_eq!(object, json!({"a": expected}));
    assert_eq!(repairs, [repair]);
}

#[track_caller]
fn assert_not_repaired(schema: Value, given: Value) {
    assert_eq!(repaired(&property(schema), &json!({"a": given})), None);
}

#[test]
fn numbers_and_booleans_in_strings_are_read() {
    let number = "/a: read the text \"42\" as a number";
    for schema in [
        json!({"type": "integer"}),
        json!({"type": "number"}),
        json!({"type": ["integer", "null"]}),
        json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        json!({"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 3}]}),
        json!({"oneOf": [{"type": "integer"}, {"type": "array"}]}),
        json!({"allOf": [{"type": "integer"}]}),
    ] {
        assert_repaired(schema, json!("42"), json!(42), number);
    }
    assert_repaired(
        json!({"type": "number"}),
        json!("-0.5e3"),
        json!(-500.0),
        "/a: read the text \"-0.5e3\" as a number",
    );
    assert_repaired(
        json!({"type": "boolean"}),
        json!("false"),
        json!(false),
        "/a: read the text \"false\" as a boolean",
    );
}

#[test]
fn strings_that_are_not_exactly_a_number_or_boolean_stay() {
    for text in [
        "042",
        "4 2",
        " 42",
        "42 ",
        "+5",
        "4.5",
        "1e3",
        "forty-two",
        "",
        "0x10",
        "∞",
    ] {
        assert_not_repaired(json!({"type": "integer"}), json!(text));
    }
    for text in [
        "12345678901234567890123",
        "0.12345678901234567890",
        "1e999",
        "NaN",
        "1,5",
    ] {
        assert_not_repaired(json!({"type": "number"}), json!(text));
    }
    for text in ["yes", "1", "TRUE", "true ", ""] {
        assert_not_repaired(json!({"type": "boolean"}), json!(text));
    }
    assert_not_repaired(json!({"type": "integer", "maximum": 10}), json!("42"));
    let both = json!({"oneOf": [{"type": "integer"}, {"type": "number"}]});
    assert_not_repaired(both, json!("7"));
}

#[test]
fn other_types_are_not_converted() {
    assert_not_repaired(json!({"type": "string"}), json!(42));
    assert_not_repaired(json!({"type": "array"}), json!("x"));
    assert_not_repaired(json!({"type": "array"}), json!("[1]"));
    assert_not_repaired(json!({"type": "object"}), json!("{}"));
    assert_not_repaired(json!({"enum": ["low"]}), json!("LOW"));
}

#[test]
fn null_is_removed_where_the_property_is_optional() {
    for schema in [
        json!({"type": "integer"}),
        json!({"enum": ["x"]}),
        json!({"const": "x"}),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"type": "array"}),
    ] {
        let input = json!({"b": 1, "a": null, "c": 2});
        let (object, repairs) = repaired(&property(schema), &input).unwrap();
        assert_eq!(object.to_string(), r#"{"b":1,"c":2}"#);
        assert_eq!(repairs, ["/a: removed null: the property is optional"]);
    }
    let required = json!({"properties": {"a": {"type": "integer"}}, "required": ["a"]});
    assert_eq!(repaired(&required, &json!({"a": null})), None);
    // An item of an array is not a property.
    assert_not_repaired(json!({"items": {"type": "integer"}}), json!([null]));
}

#[test]
fn the_input_is_taken_out_of_a_wrapper() {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": false,
    });
    for (input, wrapper) in [
        (json!({"arguments": {"city": "Bonn"}}), "arguments"),
        (json!({"input": {"city": "Bonn"}}), "input"),
        (json!({"parameters": {"city": "Bonn"}}), "parameters"),
        (
            json!({"name": "lookup", "arguments": {"city": "Bonn"}}),
            "arguments",
        ),
    ] {
        let (object, repairs) = repaired(&schema, &input).unwrap();
        assert_eq!(object, json!({"city": "Bonn"}));
        let repair = format!("took the input out of `{wrapper}`, which is not in the schema");
        assert_eq!(repairs, [repair]);
    }
    let nested = json!({"input": "{\"city\": \"Bonn\", \"days\": \"2\"}"});
    let (object, repairs) = repaired(&schema, &nested).unwrap();
    assert_eq!(object, json!({"city": "Bonn", "days": 2}));
    assert_eq!(repairs.len(), 2);

    for input in [
        json!({"arguments": {"town": "Bonn"}}),
        json!({"arguments": {"city": "Bonn"}, "input": {"city": "Rome"}}),
        json!({"name": "another", "arguments": {"city": "Bonn"}}),
        json!({"arguments": {"city": "Bonn"}, "days": 2}),
        json!({"arguments": [{"city": "Bonn"}]}),
    ] {
        assert_eq!(repaired(&schema, &input), None, "{input}");
    }
    // A property of the schema is not a wrapper.
    let own =
        json!({"properties": {"input": {"type": "object"}, "city": {}}, "required": ["city"]});
    assert_eq!(repaired(&own, &json!({"input": {"city": "Bonn"}})), None);
}

#[test]
fn faults_are_repaired_behind_references_arrays_and_branches() {
    let schema = json!({
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            "maybe": {"anyOf": [{"$ref": "#/$defs/item"}, {"type": "null"}]},
            "a/b~c": {"type": "integer"},
        },
        "$defs": {"item": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "next": {"$ref": "#/$defs/item"}},
            "required": ["id"],
        }},
    });
    let input = json!({
        "list": [{"id": 1}, {"id": "2", "next": {"id": "3"}}],
        "maybe": {"id": "4"},
        "a/b~c": "6",
    });
    let (object, repairs) = repaired(&schema, &input).unwrap();
    assert_eq!(
        object,
        json!({
            "list": [{"id": 1}, {"id": 2, "next": {"id": 3}}],
            "maybe": {"id": 4},
            "a/b~c": 6,
        })
    );
    assert_eq!(repairs.len(), 4, "{repairs:#?}");
    assert!(repairs.contains(&"/a~1b~0c: read the text \"6\" as a number".to_owned()));
}

#[test]
fn one_fault_without_a_repair_prevents_all_repairs() {
    let schema = json!({"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    assert_eq!(repaired(&schema, &json!({"a": "1", "b": "x"})), None);
}

#[test]
fn large_inputs_end_in_time() {
    let nest = json!({
        "$defs": {"n": {"anyOf": [
            {"type": "array", "items": {"$ref": "#/$defs/n"}},
            {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "boolean"}]}},
            {"type": "integer"},
        ]}},
        "properties": {"a": {"$ref": "#/$defs/n"}},
    });
    let mut deep = json!("x");
    for _ in 0..6 {
        deep = json!([deep, deep]);
    }
    let wide: Vec<Value> = (0..50_000).map(|n| json!(n.to_string())).collect();
    let start = Instant::now();
    let _ = repaired(&nest, &json!({"a": deep}));
    let ints = property(json!({"type": "array", "items": {"type": "integer"}}));
    // More faults than the limit.
    assert_eq!(repaired(&ints, &json!({"a": wide})), None);
    let elapsed = start.elapsed();
    assert!(elapsed < Duration::from_secs(20), "{elapsed:?}");
}

/// A schema, a valid value and a variant of the value as models write it.
type Case = (Value, Value, Value);

fn case() -> impl Strategy<Value = Case> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| (json!({"type": "integer"}), json!(n), json!(n.to_string()))),
        (-999_i32..999).prop_map(|n| {
            let n = f64::from(n) + 0.5;
            (json!({"type": "number"}), json!(n), json!(n.to_string()))
        }),
        any::<bool>().prop_map(|b| (json!({"type": "boolean"}), json!(b), json!(b.to_string()))),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|(schema, value, variant)| {
                (
                    json!({"type": "array", "items": schema}),
                    json!([value, value]),
                    json!([value, variant]),
                )
            }),
            inner.clone().prop_map(|(schema, value, variant)| (
                json!({"type": "object", "properties": {"x": schema, "y": {"type": "string"}}}),
                json!({"x": value}),
                json!({"x": variant, "y": null}),
            )),
            inner.prop_map(|(schema, value, variant)| {
                (json!({"anyOf": [schema, {"type": "null"}]}), value, variant)
            }),
        ]
    })
}

proptest! {
    #[test]
    fn variants_are_repaired_to_the_valid_value(
        (schema, value, variant) in case(),
        is_wrapped in any::<bool>(),
    ) {
        let schema = json!({
            "type": "object", "properties": {"a": schema}, "required": ["a"],
            "additionalProperties": false,
        });
        let given = json!({"a": variant});
        let given = if is_wrapped { json!({"arguments": given}) } else { given };
        let (read, repairs) = repaired(&schema, &given).expect("a repair");
        prop_assert_eq!(read, json!({"a": value}), "{:?}", repairs);
        prop_assert!(!repairs.is_empty());
    }
}

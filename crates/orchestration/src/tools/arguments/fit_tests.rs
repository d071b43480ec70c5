#![allow(
    clippy::needless_pass_by_value,
    reason = "schemas and values are written where they are used"
)]

use super::*;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::tools::arguments::validators::compile;

/// The repaired input and the repairs in words; `None` if there is no repair.
fn repaired(schema: &Value, input: &Value) -> Option<(Value, Vec<String>)> {
    let validator = compile(schema).expect("a schema of a test compiles");
    assert_eq!(
        validator.is_valid(input),
        Ok(false),
        "{input} is valid as it is"
    );
    let (object, repairs) = fit(&validator, schema, "lookup", input, None)?;
    let object = Value::Object(object);
    assert_eq!(validator.is_valid(&object), Ok(true));
    Some((object, repairs.iter().map(ToString::to_string).collect()))
}

/// One property `a` of this schema.
fn property(schema: Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

#[track_caller]
fn becomes(schema: Value, given: Value, wanted: Value, words: &str) {
    let (object, repairs) = repaired(&property(schema), &json!({"a": given})).expect("a repair");
    assert_eq!(object, json!({"a": wanted}));
    assert_eq!(repairs, [words]);
}

#[track_caller]
fn stays(schema: Value, given: Value) {
    assert_eq!(repaired(&property(schema), &json!({"a": given})), None);
}

#[test]
fn texts_that_are_scalars_are_read_as_such() {
    let number = "/a: the text \"42\" was read as a number";
    becomes(json!({"type": "integer"}), json!("42"), json!(42), number);
    becomes(json!({"type": "number"}), json!("42"), json!(42), number);
    becomes(
        json!({"type": "number"}),
        json!("-0.5e3"),
        json!(-500.0),
        "/a: the text \"-0.5e3\" was read as a number",
    );
    becomes(
        json!({"type": ["integer", "null"]}),
        json!("null"),
        json!(null),
        "/a: the text \"null\" was read as null",
    );
    becomes(
        json!({"type": "boolean"}),
        json!("false"),
        json!(false),
        "/a: the text \"false\" was read as a boolean",
    );
}

#[test]
fn texts_that_are_not_exactly_scalars_stay() {
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
        stays(json!({"type": "integer"}), json!(text));
    }
    for text in [
        "12345678901234567890123",
        "0.12345678901234567890",
        "1e999",
        "NaN",
        "1,5",
    ] {
        stays(json!({"type": "number"}), json!(text));
    }
    for text in ["yes", "1", "TRUE", "true ", ""] {
        stays(json!({"type": "boolean"}), json!(text));
    }
    // It parses, but is too large for the schema.
    stays(json!({"type": "integer", "maximum": 10}), json!("42"));
}

#[test]
fn numbers_are_ids_where_the_schema_wants_texts() {
    becomes(
        json!({"type": "string"}),
        json!(42),
        json!("42"),
        "/a: the number 42 was read as a text",
    );
    // The text may have been `1.10`.
    stays(json!({"type": "string"}), json!(1.1));
    stays(json!({"type": "string"}), json!(true));
    stays(json!({"type": "string", "pattern": "^C-"}), json!(42));
}

#[test]
fn json_in_texts_is_read_with_what_is_inside() {
    let schema = property(json!({
        "type": "object",
        "properties": {"ids": {"type": "array", "items": {"type": "integer"}}},
        "required": ["ids"],
    }));
    let (object, repairs) = repaired(&schema, &json!({"a": "{\"ids\": [\"1\", 2]}"})).unwrap();
    assert_eq!(object, json!({"a": {"ids": [1, 2]}}));
    assert_eq!(
        repairs,
        [
            r#"/a: the text "{\"ids\": [\"1\", 2]}" was read as the JSON object that it holds"#,
            r#"/a/ids/0: the text "1" was read as a number"#,
        ]
    );
    becomes(
        json!({"type": "array"}),
        json!("[1]"),
        json!([1]),
        "/a: the text \"[1]\" was read as the JSON list that it holds",
    );
    stays(json!({"type": "object"}), json!("{\"ids\": [1"));
    stays(json!({"type": "array"}), json!("[1, 2"));
}

#[test]
fn a_single_value_goes_into_a_list() {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let words = "/a: the single value was put into a list";
    becomes(strings.clone(), json!("x y"), json!(["x y"]), words);
    let objects = json!({"type": "array", "items": {"type": "object"}});
    becomes(objects.clone(), json!({"b": 1}), json!([{"b": 1}]), words);
    // Several, or not of that type.
    for several in ["x, y", "x;y", "x\ny", "[\"x\", \"y\""] {
        stays(strings.clone(), json!(several));
    }
    stays(objects, json!("x"));
    stays(json!({"type": "array", "minItems": 2}), json!(1));
    stays(
        json!({"type": "array", "items": {"type": "string"}}),
        json!(true),
    );
}

#[test]
fn null_is_left_out_where_the_property_is_optional() {
    let words = "/a: null was left out: the property is optional";
    for schema in [
        json!({"type": "integer"}),
        json!({"enum": ["x"]}),
        json!({"const": "x"}),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"type": "array"}),
    ] {
        let (object, repairs) =
            repaired(&property(schema), &json!({"b": 1, "a": null, "c": 2})).unwrap();
        assert_eq!(object.to_string(), r#"{"b":1,"c":2}"#);
        assert_eq!(repairs, [words]);
    }
    let required = json!({"properties": {"a": {"type": "integer"}}, "required": ["a"]});
    assert_eq!(repaired(&required, &json!({"a": null})), None);
    // An item of a list is no property.
    stays(json!({"items": {"type": "integer"}}), json!([null]));
}

#[test]
fn an_enum_is_met_in_another_case_or_with_other_spaces() {
    let schema = json!({"enum": ["low", "In Progress", 3]});
    becomes(
        schema.clone(),
        json!("LOW"),
        json!("low"),
        r#"/a: "LOW" was read as "low""#,
    );
    becomes(
        schema.clone(),
        json!(" in  progress\n"),
        json!("In Progress"),
        r#"/a: " in  progress\n" was read as "In Progress""#,
    );
    becomes(
        schema.clone(),
        json!("3"),
        json!(3),
        "/a: \"3\" was read as 3",
    );
    becomes(
        json!({"const": "Yes"}),
        json!("yes"),
        json!("Yes"),
        r#"/a: "yes" was read as "Yes""#,
    );
    becomes(
        json!({"enum": ["7", "8"]}),
        json!(7),
        json!("7"),
        "/a: 7 was read as \"7\"",
    );
    for other in ["lowest", "inprogress", "in_progress", ""] {
        stays(schema.clone(), json!(other));
    }
    // Two that it could be.
    stays(json!({"enum": ["a b", "A B"]}), json!("a B"));
}

#[test]
fn a_wrapper_is_taken_off() {
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
        let words =
            format!("the input was taken out of `{wrapper}`, which the schema does not have");
        assert_eq!(repairs, [words]);
    }
    let (object, repairs) = repaired(
        &schema,
        &json!({"input": "{\"city\": \"Bonn\", \"days\": \"2\"}"}),
    )
    .unwrap();
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
    // Where the schema has such a property, it is meant.
    let own =
        json!({"properties": {"input": {"type": "object"}, "city": {}}, "required": ["city"]});
    assert_eq!(repaired(&own, &json!({"input": {"city": "Bonn"}})), None);
}

#[test]
fn faults_are_found_through_references_lists_and_alternatives() {
    let schema = json!({
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            "maybe": {"anyOf": [{"$ref": "#/$defs/item"}, {"type": "null"}]},
            "other": {"oneOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
            "a/b~c": {"allOf": [{"type": "integer"}]},
        },
        "$defs": {"item": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "next": {"$ref": "#/$defs/item"}},
            "required": ["id"],
        }},
    });
    let input = json!({
        "list": [{"id": 1}, {"id": "2", "next": {"id": "3"}}],
        "maybe": "{\"id\": \"4\"}",
        "other": "5",
        "a/b~c": "6",
    });
    let (object, repairs) = repaired(&schema, &input).unwrap();
    assert_eq!(
        object,
        json!({
            "list": [{"id": 1}, {"id": 2, "next": {"id": 3}}],
            "maybe": {"id": 4},
            "other": 5,
            "a/b~c": 6,
        })
    );
    assert_eq!(repairs.len(), 6, "{repairs:#?}");
    assert!(repairs.contains(&"/a~1b~0c: the text \"6\" was read as a number".to_owned()));
}

#[test]
fn two_equally_near_readings_are_none() {
    // 7 as a text, or in a list.
    stays(
        json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}),
        json!(7),
    );
    // Both branches come to the same.
    becomes(
        json!({"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 3}]}),
        json!("7"),
        json!(7),
        "/a: the text \"7\" was read as a number",
    );
    stays(
        json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}),
        json!("7"),
    );
}

#[test]
fn all_or_nothing() {
    let schema = json!({"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
    assert_eq!(repaired(&schema, &json!({"a": "1", "b": "x"})), None);
}

#[test]
fn hard_cases_end_in_time() {
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
    // More faults than are dealt with.
    assert_eq!(repaired(&ints, &json!({"a": wide})), None);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

/// A schema, a value that fits it, and the same as models get it wrong.
type Spoiled = (Value, Value, Value);

fn spoiled() -> impl Strategy<Value = Spoiled> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| (json!({"type": "integer"}), json!(n), json!(n.to_string()))),
        (-999_i32..999).prop_map(|n| {
            let n = f64::from(n) + 0.5;
            (json!({"type": "number"}), json!(n), json!(n.to_string()))
        }),
        any::<bool>().prop_map(|b| (json!({"type": "boolean"}), json!(b), json!(b.to_string()))),
        any::<u64>().prop_map(|n| (json!({"type": "string"}), json!(n.to_string()), json!(n))),
        Just((
            json!({"enum": ["low", "In Progress"]}),
            json!("low"),
            json!(" LOW")
        )),
        Just((
            json!({"enum": ["low", "In Progress"]}),
            json!("In Progress"),
            json!("in  progress")
        )),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            // Alone, where it should be in a list.
            inner
                .clone()
                .prop_filter_map("one thing", |(schema, value, _)| {
                    let one = value.is_number() || value.is_boolean() || value.is_object();
                    one.then(|| {
                        (
                            json!({"type": "array", "items": schema}),
                            json!([value]),
                            value,
                        )
                    })
                }),
            inner.clone().prop_map(|(schema, value, spoiled)| {
                (
                    json!({"type": "array", "items": schema}),
                    json!([value, value]),
                    json!([value, spoiled]),
                )
            }),
            inner.clone().prop_map(|(schema, value, spoiled)| {
                (
                    json!({"type": "array", "items": schema}),
                    json!([value]),
                    json!(json!([spoiled]).to_string()),
                )
            }),
            inner.clone().prop_map(|(schema, value, spoiled)| (
                json!({"type": "object", "properties": {"x": schema}, "required": ["x"]}),
                json!({"x": value}),
                json!(json!({"x": spoiled}).to_string()),
            )),
            inner.clone().prop_map(|(schema, value, spoiled)| (
                json!({"type": "object", "properties": {"x": schema, "y": {"type": "string"}}}),
                json!({"x": value}),
                json!({"x": spoiled, "y": null}),
            )),
            inner.prop_map(|(schema, value, spoiled)| {
                (json!({"anyOf": [schema, {"type": "null"}]}), value, spoiled)
            }),
        ]
    })
}

proptest! {
    #[test]
    fn what_models_get_wrong_becomes_what_they_meant(
        (schema, value, spoiled) in spoiled(),
        wrapped in any::<bool>(),
    ) {
        let schema = json!({
            "type": "object", "properties": {"a": schema}, "required": ["a"],
            "additionalProperties": false,
        });
        let given = json!({"a": spoiled});
        let given = if wrapped { json!({"arguments": given}) } else { given };
        let (read, repairs) = repaired(&schema, &given).expect("a repair");
        prop_assert_eq!(read, json!({"a": value}), "{:?}", repairs);
        prop_assert!(!repairs.is_empty());
    }
}

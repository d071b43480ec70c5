use super::*;
use crate::tools::arguments::test_support::json_object;
use proptest::prelude::*;
use serde_json::json;

fn check(schema: &Value, input: &Value) -> Result<(), String> {
    let definition = Arc::new(ToolDefinition::new("lookup", "", schema.clone()));
    let input = input.as_object().cloned().unwrap();
    InputValidators::default().validate_input(&definition, &input.into())
}

fn examine(schema: &Value, raw: &str) -> Result<(Value, Vec<String>), InputFault> {
    let definition = Arc::new(ToolDefinition::new("lookup", "", schema.clone()));
    let checked =
        InputValidators::default().validate_or_repair(&definition, &ToolInput::parse_input(raw))?;
    Ok((Value::Object(checked.input.into_object()), checked.repairs))
}

/// Returns an object schema with one property `a`.
fn property(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

#[test]
fn every_fault_has_its_json_pointer() {
    let schema = json!({
        "type": "object",
        "properties": {
            "customer_id": {"type": "integer"},
            "priority": {"enum": ["low", "high"]},
        },
        "required": ["customer_id"],
    });
    let faults = check(&schema, &json!({"priority": "urgent"})).unwrap_err();
    assert!(
        faults.contains("customer_id") && faults.contains("/priority"),
        "{faults}"
    );
    assert!(check(&schema, &json!({"customer_id": 42})).is_ok());
}

#[test]
fn without_a_compiled_schema_input_is_neither_refused_nor_repaired() {
    assert!(check(&json!({"type": 3}), &json!({"a": 1})).is_ok());
    let remote = json!({"$ref": "https://example.invalid/schema.json"});
    assert!(examine(&remote, r#"{"a": 1}"#).is_ok());
    assert!(matches!(
        examine(&remote, r#"{"a": 1,}"#),
        Err(InputFault::Malformed { .. })
    ));
}

#[test]
fn a_fault_with_a_long_value_is_shortened() {
    let schema = property(&json!({"type": "integer"}));
    let faults = check(&schema, &json!({"a": "é".repeat(10_000)})).unwrap_err();
    assert!(faults.len() < 400, "{}", faults.len());
    assert!(
        faults.starts_with("/a: \"é") && faults.contains("is not of type \"integer\""),
        "{faults}"
    );
}

#[test]
fn input_that_is_too_expensive_to_validate_is_refused() {
    let definitions: serde_json::Map<String, Value> = (0..40)
        .map(|at| {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            (format!("d{at}"), json!({"anyOf": [next, next]}))
        })
        .chain([("d40".to_owned(), json!({"type": "null"}))])
        .collect();
    let bomb = json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    let error = check(&bomb, &json!({"a": 1})).unwrap_err();
    assert!(error.contains("too many steps"), "{error}");
    assert!(check(&bomb, &json!({})).is_ok());
}

#[test]
fn text_and_values_are_repaired() {
    let schema = json!({
        "type": "object",
        "properties": {"customer_id": {"type": "integer"}},
        "required": ["customer_id"],
        "additionalProperties": false,
    });
    let text = "```json\n{\"arguments\": {\"customer_id\": \"42\",}}\n```";
    let repairs = [
        "removed the code fence around the object",
        "removed a trailing comma",
        "unwrapped the input from `arguments`, which is not in the schema",
        "/customer_id: converted the text \"42\" to a number",
    ];
    let expected = (
        json!({"customer_id": 42}),
        repairs.map(str::to_owned).into(),
    );
    assert_eq!(examine(&schema, text), Ok(expected));
}

#[test]
fn code_fences_and_trailing_commas_are_removed() {
    for text in [
        "```json\n{\"a\": {\"b\": [1, \",}{\"]}}\n```",
        " ``` {\"a\": {\"b\": [1, \",}{\"]}} ```\n",
        "{\"a\": {\"b\": [1 , \",}{\" ,\n],},}",
    ] {
        let (input, repairs) = examine(&json!({}), text).unwrap();
        assert_eq!(input, json!({"a": {"b": [1, ",}{"]}}), "{text}");
        assert_eq!(repairs.len(), 1, "{text}");
    }
}

#[test]
fn text_with_other_errors_stays_malformed() {
    for text in [
        "{\"a\": 1",
        "{\"a\": 1,",
        "```json\n{\"a\": [1, 2\n```",
        "```json\n{\"a\": 1}",
        "{\"a\": \"x\\",
        "{\"a\": 1} {\"a\": 2}",
        "{\"a\": 1}, \"b\": 2",
        "{'a': 1}",
        "{\"a\": True}",
        "{\"a\": 1,, \"b\": 2}",
        "{\"a\": 1,,}",
        "{,}",
        "[{\"a\": 1},]",
        "no JSON at all",
        "```json\n```",
        "\"{\\\"a\\\": 1}\"",
        "Here is the call: {\"a\": 1}",
        &format!("{}1,{}", "{\"a\":".repeat(100_000), "}".repeat(100_000)),
    ] {
        let result = examine(&json!({}), text);
        assert!(
            matches!(result, Err(InputFault::Malformed { .. })),
            "{text}"
        );
    }
    let definition = Arc::new(ToolDefinition::new("t", "", json!({})));
    let reason = "cut off before it was complete";
    for raw in [r#"{"a": 1}"#, r#"{"a": 1,}"#] {
        let cut = ToolInput::malformed_input(raw, reason);
        let reason = reason.to_owned();
        let fault = InputValidators::default().validate_or_repair(&definition, &cut);
        assert_eq!(fault, Err(InputFault::Malformed { reason }));
    }
}

#[test]
fn numbers_and_booleans_in_strings_are_read() {
    for (schema, text, expected) in [
        (json!({"type": "integer"}), "42", json!(42)),
        (json!({"type": ["integer", "null"]}), "42", json!(42)),
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            "42",
            json!(42),
        ),
        (
            json!({"oneOf": [{"type": "integer"}, {"type": "array"}]}),
            "42",
            json!(42),
        ),
        (json!({"allOf": [{"type": "integer"}]}), "42", json!(42)),
        (json!({"type": "number"}), "-0.5e3", json!(-500.0)),
        (json!({"type": "boolean"}), "false", json!(false)),
    ] {
        let (input, repairs) =
            examine(&property(&schema), &json!({"a": text}).to_string()).unwrap();
        assert_eq!(input, json!({"a": expected}), "{schema}");
        let name = if expected.is_boolean() {
            "boolean"
        } else {
            "number"
        };
        assert_eq!(
            repairs,
            [format!("/a: converted the text \"{text}\" to a {name}")]
        );
    }
}

#[test]
fn values_with_other_faults_stay() {
    let integer = json!({"type": "integer"});
    let number = json!({"type": "number"});
    let boolean = json!({"type": "boolean"});
    let mut cases = vec![
        (json!({"type": "integer", "maximum": 10}), json!("42")),
        (json!({"oneOf": [integer, number]}), json!("7")),
        (json!({"type": "string"}), json!(42)),
        (json!({"type": "array"}), json!("[1]")),
        (json!({"type": "object"}), json!("{}")),
        (json!({"enum": ["low"]}), json!("LOW")),
        // Null is removed from properties, but not from array items.
        (json!({"items": integer}), json!([null])),
    ];
    let integers = [
        "042",
        " 42",
        "42 ",
        "+5",
        "4.5",
        "1e3",
        "forty-two",
        "",
        "0x10",
    ];
    cases.extend(integers.map(|text| (integer.clone(), json!(text))));
    let numbers = [
        "12345678901234567890123",
        "0.12345678901234567890",
        "1e999",
        "NaN",
        "1,5",
    ];
    cases.extend(numbers.map(|text| (number.clone(), json!(text))));
    cases.extend(["yes", "1", "TRUE", "true "].map(|text| (boolean.clone(), json!(text))));
    for (schema, value) in cases {
        let result = examine(&property(&schema), &json!({"a": value}).to_string());
        assert!(
            matches!(result, Err(InputFault::Invalid { .. })),
            "{schema} {value}"
        );
    }
    // No repair is applied if one fault cannot be repaired.
    let schema = json!({"properties": {"a": integer, "b": integer}});
    assert!(examine(&schema, r#"{"a": "1", "b": "x"}"#).is_err());
}

#[test]
fn null_is_removed_where_the_property_is_optional() {
    for schema in [
        json!({"type": "integer"}),
        json!({"enum": ["x"]}),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    ] {
        let (input, repairs) = examine(&property(&schema), r#"{"b":1,"a":null,"c":2}"#).unwrap();
        assert_eq!(input.to_string(), r#"{"b":1,"c":2}"#);
        assert_eq!(repairs, ["/a: removed null: the property is optional"]);
    }
    let required = json!({"properties": {"a": {"type": "integer"}}, "required": ["a"]});
    assert!(examine(&required, r#"{"a": null}"#).is_err());
}

#[test]
fn the_input_is_taken_out_of_a_wrapper() {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": false,
    });
    for input in [
        json!({"arguments": {"city": "Bonn"}}),
        json!({"parameters": {"city": "Bonn"}}),
        json!({"name": "lookup", "input": "{\"city\": \"Bonn\"}"}),
    ] {
        let (input, repairs) = examine(&schema, &input.to_string()).unwrap();
        assert_eq!(input, json!({"city": "Bonn"}));
        assert!(
            repairs[0].starts_with("unwrapped the input from `"),
            "{repairs:?}"
        );
    }
    for input in [
        json!({"arguments": {"town": "Bonn"}}),
        json!({"arguments": {"city": "Bonn"}, "input": {"city": "Rome"}}),
        json!({"name": "another", "arguments": {"city": "Bonn"}}),
        json!({"arguments": {"city": "Bonn"}, "days": 2}),
        json!({"arguments": [{"city": "Bonn"}]}),
    ] {
        assert!(examine(&schema, &input.to_string()).is_err(), "{input}");
    }
    // The object `input` is not unwrapped if the schema has a property `input`.
    let own =
        json!({"properties": {"input": {"type": "object"}, "city": {}}, "required": ["city"]});
    assert!(examine(&own, r#"{"input": {"city": "Bonn"}}"#).is_err());
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
    let expected = json!({
        "list": [{"id": 1}, {"id": 2, "next": {"id": 3}}],
        "maybe": {"id": 4},
        "a/b~c": 6,
    });
    let (input, repairs) = examine(&schema, &input.to_string()).unwrap();
    assert_eq!(input, expected);
    assert_eq!(repairs.len(), 4, "{repairs:#?}");
    assert!(repairs.contains(&"/a~1b~0c: converted the text \"6\" to a number".to_owned()));
}

#[test]
fn more_faults_than_the_limit_are_not_repaired() {
    let numbers: Vec<Value> = (0..50_000).map(|n| json!(n.to_string())).collect();
    let schema = property(&json!({"type": "array", "items": {"type": "integer"}}));
    assert!(examine(&schema, &json!({"a": numbers}).to_string()).is_err());
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "integer"})),
        Just(json!({"type": "number", "minimum": 0})),
        Just(json!({"type": "string", "maxLength": 5})),
        Just(json!({"type": ["boolean", "null"]})),
        Just(json!({"enum": ["a", "B c", 3, null]})),
        Just(json!({"const": "x"})),
        Just(json!({"format": "email", "pattern": "^a"})),
        Just(json!(true)),
    ];
    let any = leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items, "uniqueItems": true})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({
                "type": "object", "properties": {"a": a, "b": b}, "required": ["a"]
            })),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"anyOf": [a, b]})),
            (inner.clone(), inner).prop_map(|(a, b)| json!({"oneOf": [a, {"type": "null"}, b]})),
        ]
    });
    (any.clone(), any).prop_map(
        |(a, b)| json!({"type": "object", "properties": {"a": a, "b": b}, "required": ["a"]}),
    )
}

proptest! {
    #[test]
    fn accepted_input_is_valid_and_valid_input_is_unchanged(
        schema in schema(),
        input in json_object(),
    ) {
        let definition = Arc::new(ToolDefinition::new("t", "", schema.clone()));
        let validators = InputValidators::default();
        let input = SharedObject::from(input);
        let valid = validators.validate_input(&definition, &input).is_ok();
        match validators.validate_or_repair(&definition, &ToolInput::Object(input.clone())) {
            Ok(checked) => {
                prop_assert_eq!(checked.repairs.is_empty(), valid);
                prop_assert_eq!(checked.input == input, valid);
                prop_assert!(validators.validate_input(&definition, &checked.input).is_ok());
            }
            Err(_) => prop_assert!(!valid),
        }
    }

    #[test]
    fn input_that_was_cut_off_is_never_completed(
        object in json_object(),
        in_fence in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let text = Value::Object(object).to_string();
        let text = if in_fence { format!("```json\n{text}\n```") } else { text };
        let text = &text[..text.floor_char_boundary(cut.index(text.len()))];
        if let ToolInput::Malformed { .. } = ToolInput::parse_input(text) {
            prop_assert!(examine(&json!({}), text).is_err(), "{}", text);
        }
    }
}

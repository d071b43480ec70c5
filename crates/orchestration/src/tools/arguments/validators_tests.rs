use super::*;
use crate::tools::arguments::test_support::json_object;
use proptest::{prelude::*, sample::select};
use serde_json::json;
use switchboard_domain::{
    json_schema::{Draft, SchemaOptions},
    schema_dialect,
};

fn check(schema: Value, input: Value) -> Result<(), String> {
    let definition = Arc::new(ToolDefinition::new("t", "", schema));
    let Value::Object(input) = input else {
        panic!("test input must be an object")
    };
    Validators::default().check(&definition, &input.into())
}

fn examine(schema: &Value, raw: &str) -> Result<(Value, Vec<String>), InputFault> {
    let definition = Arc::new(ToolDefinition::new("t", "", schema.clone()));
    let checked = Validators::default().examine(&definition, &ToolInput::parse(raw))?;
    let repairs = checked.repairs.iter().map(ToString::to_string).collect();
    Ok((Value::Object(checked.input.into_object()), repairs))
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
    let faults = check(schema.clone(), json!({"priority": "urgent"})).unwrap_err();
    assert!(
        faults.contains("customer_id") && faults.contains("/priority"),
        "{faults}"
    );
    assert!(check(schema, json!({"customer_id": 42})).is_ok());
}

#[test]
fn without_a_compiled_schema_input_is_neither_refused_nor_repaired() {
    assert!(check(json!({"type": 3}), json!({"a": 1})).is_ok());
    let remote = json!({"$ref": "https://example.invalid/schema.json"});
    assert!(check(remote.clone(), json!({"a": 1})).is_ok());
    assert!(examine(&remote, r#"{"a": 1}"#).is_ok());
    assert!(matches!(
        examine(&remote, r#"{"a": 1,}"#),
        Err(InputFault::Malformed { .. })
    ));
}

#[test]
fn a_changed_definition_is_compiled_again() {
    let validators = Validators::default();
    let old = Arc::new(ToolDefinition::new("t", "", json!({"required": ["a"]})));
    let new = Arc::new(ToolDefinition::new("t", "", json!({"required": ["b"]})));
    for (definition, missing) in [(&old, "\"a\""), (&new, "\"b\"")] {
        let faults = validators
            .clone()
            .check(definition, &SharedObject::default())
            .unwrap_err();
        assert!(faults.contains(missing), "{faults}");
    }
}

#[test]
fn a_schema_is_compiled_once_for_each_definition() {
    let schema = json!({"type": "object", "required": ["a"]});
    let definition = Arc::new(ToolDefinition::new("t", "", schema.clone()));
    let validators = Validators::default();
    COMPILED.take();
    for _ in 0..3 {
        let input = SharedObject::default();
        assert!(validators.clone().check(&definition, &input).is_err());
    }
    assert_eq!(COMPILED.take(), [schema]);
}

#[test]
fn a_fault_with_a_long_value_is_shortened() {
    let schema = json!({"properties": {"a": {"type": "integer"}}});
    let faults = check(schema, json!({"a": "é".repeat(10_000)})).unwrap_err();
    assert!(faults.len() < 400, "{}", faults.len());
    assert!(
        faults.starts_with("/a: \"é") && faults.contains("is not of type \"integer\""),
        "{faults}"
    );
}

#[test]
fn patterns_with_look_around_are_not_validated() {
    let schema = json!({"properties": {
        "a": {"type": "string", "pattern": "^(?!no)\\w+$"},
        "b": {"type": "string", "pattern": "^\\w+$"},
    }});
    assert!(check(schema.clone(), json!({"a": "no", "b": "no"})).is_ok());
    assert!(check(schema.clone(), json!({"a": 7})).is_err());
    assert!(check(schema, json!({"b": "!"})).is_err());
    let slow = json!({"properties": {"a": {"pattern": "^(?=a)(a*)*b$"}}});
    assert!(check(slow, json!({"a": "a".repeat(5_000)})).is_ok());
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
    let error = check(bomb.clone(), json!({"a": 1})).unwrap_err();
    assert!(error.contains("too many steps"), "{error}");
    assert!(check(bomb, json!({})).is_ok());
}

#[test]
fn text_and_values_are_repaired() {
    let schema = json!({
        "type": "object",
        "properties": {"customer_id": {"type": "integer"}},
        "required": ["customer_id"],
        "additionalProperties": false,
    });
    let (input, repairs) = examine(
        &schema,
        "```json\n{\"arguments\": {\"customer_id\": \"42\",}}\n```",
    )
    .unwrap();
    assert_eq!(input, json!({"customer_id": 42}));
    assert_eq!(
        repairs,
        [
            "removed the code fence around the object",
            "removed a trailing comma",
            "took the input out of `arguments`, which is not in the schema",
            "/customer_id: read the text \"42\" as a number",
        ]
    );
}

#[test]
fn input_without_a_repair_keeps_its_fault() {
    let schema = json!({"properties": {"a": {"type": "integer"}}});
    assert!(matches!(
        examine(&schema, r#"{"a": "x"}"#),
        Err(InputFault::Invalid { faults }) if faults.contains("/a")
    ));
    // The repaired text is invalid.
    assert!(matches!(
        examine(&schema, r#"{"a": "x",}"#),
        Err(InputFault::Malformed { reason }) if reason.contains("JSON")
    ));
    let definition = Arc::new(ToolDefinition::new("t", "", schema));
    let cut = ToolInput::malformed(r#"{"a": 1}"#, "cut off before it was complete");
    assert_eq!(
        Validators::default().examine(&definition, &cut),
        Err(InputFault::Malformed {
            reason: "cut off before it was complete".into()
        })
    );
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "integer"})),
        Just(json!({"type": "number", "minimum": 0})),
        Just(json!({"type": "string", "maxLength": 5})),
        Just(json!({"type": ["boolean", "null"]})),
        Just(json!({"enum": ["a", "B c", 3, null]})),
        Just(json!({"const": "x"})),
        Just(json!({"$ref": "#/$defs/node"})),
        Just(json!(true)),
    ];
    let any = leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({
                "type": "object", "properties": {"a": a, "b": b}, "required": ["a"]
            })),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"anyOf": [a, b]})),
            (inner.clone(), inner).prop_map(|(a, b)| json!({"oneOf": [a, {"type": "null"}, b]})),
        ]
    });
    (any.clone(), any.clone(), any).prop_map(|(a, b, node)| {
        json!({
            "type": "object",
            "properties": {"a": a, "b": b},
            "required": ["a"],
            "$defs": {"node": {
                "type": "object",
                "properties": {"a": node, "b": {"$ref": "#/$defs/node"}},
            }},
        })
    })
}

proptest! {
    #[test]
    fn accepted_input_is_valid_and_valid_input_is_unchanged(
        schema in schema(),
        input in json_object(),
    ) {
        let definition = Arc::new(ToolDefinition::new("t", "", schema.clone()));
        let validators = Validators::default();
        let input = SharedObject::from(input);
        let valid = validators.check(&definition, &input).is_ok();
        match validators.examine(&definition, &ToolInput::Object(input.clone())) {
            Ok(checked) => {
                let same = checked.input == input;
                prop_assert_eq!(checked.repairs.is_empty(), valid);
                prop_assert_eq!(same, valid);
                prop_assert!(validators.check(&definition, &checked.input).is_ok());
            }
            Err(_) => prop_assert!(!valid),
        }
    }
}

/// Schemas of common keywords, some of them invalid.
fn common_schema() -> impl Strategy<Value = Value> {
    let number = prop_oneof![(-3_i64..4).prop_map(Value::from), Just(json!(1.5))];
    let simple = prop_oneof![
        Just(json!({})),
        any::<bool>().prop_map(Value::from),
        select(vec![
            "string", "integer", "number", "object", "array", "null", "boolean", "odd"
        ])
        .prop_map(|name| json!({"type": name})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"type": []})),
        number.clone().prop_map(|n| json!({"const": n})),
        number.clone().prop_map(|n| json!({"enum": [n, "a", null]})),
        Just(json!({"enum": []})),
        select(vec!["email", "date-time", "uuid", "int64", "hostname"])
            .prop_map(|name| json!({"format": name})),
        (
            select(vec![
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
                "minLength",
                "maxLength",
                "minItems",
                "maxItems",
                "minProperties",
                "maxProperties"
            ]),
            number
        )
            .prop_map(|(name, n)| json!({name: n})),
        any::<bool>().prop_map(|only| json!({"uniqueItems": only})),
        Just(json!({"required": ["a"], "deprecated": true})),
        Just(json!({"required": "a"})),
        Just(json!({"description": "x", "title": "y", "default": 3, "examples": [1]})),
        Just(json!({"title": 3})),
        // The third is valid in 2020-12 only, the last one in neither dialect.
        select(vec!["^a", "a+@", "(?i)A", "(?=a)", "(a"]).prop_map(|text| json!({"pattern": text})),
        Just(json!({"examples": 3})),
    ];
    simple.prop_recursive(3, 12, 3, |below| {
        let several = proptest::collection::vec(below.clone(), 0..3);
        prop_oneof![
            (below.clone(), below.clone())
                .prop_map(|(a, b)| json!({"properties": {"a": a, "b": b}, "required": ["b"]})),
            (below.clone(), below.clone())
                .prop_map(|(a, b)| json!({"properties": {"a": a}, "additionalProperties": b})),
            below
                .clone()
                .prop_map(|it| json!({"items": it, "type": "array"})),
            below.prop_map(|it| json!({"not": it})),
            (select(vec!["allOf", "anyOf", "oneOf"]), several)
                .prop_map(|(name, all)| json!({name: all})),
        ]
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let simple = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        Just(json!(1.0)),
        Just(json!(1.5)),
        select(vec!["", "a", "a@b.example", "2026-02-30"]).prop_map(Value::from),
    ];
    simple.prop_recursive(3, 12, 3, |below| {
        prop_oneof![
            proptest::collection::vec(below.clone(), 0..3).prop_map(Value::from),
            (below.clone(), below).prop_map(|(a, b)| json!({"a": a, "b": b})),
        ]
    })
}

proptest! {
    #[test]
    fn a_common_schema_gives_the_same_result_in_both_dialects(schema in common_schema(), value in any_value()) {
        prop_assert!(schema_dialect::is_common(&schema));
        let latest = SchemaOptions { draft: Some(Draft::Draft202012), ..SchemaOptions::default() };
        let latest = SchemaValidator::compile_with(&schema, latest).ok();
        let common = compile(&schema);
        prop_assert_eq!(latest.is_some(), common.is_some());
        if let (Some(latest), Some(common)) = (latest, common) {
            prop_assert_eq!(latest.is_valid(&value), common.is_valid(&value));
            prop_assert_eq!(describe_faults(&latest, &value), describe_faults(&common, &value));
        }
    }
}

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;
use switchboard_testkit::hostile::{chain, schemas, values};

use super::*;

/// Maximum time of one check. A debug build, in which this crate is not optimized, is slower.
const MAX_TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 100 });

fn check(schema: &Value, value: &Value) -> Result<bool, ValidationTooExpensive> {
    let started = Instant::now();
    let validator = SchemaValidator::compile(schema).unwrap();
    let fits = validator.is_valid(value);
    let errors = validator.list_errors(value);
    let time = started.elapsed();
    assert!(time < MAX_TIME, "{time:?} for {fits:?}");
    if let (Ok(fits), Ok(errors)) = (&fits, errors) {
        assert_eq!(*fits, errors.is_empty());
    }
    fits
}

#[test]
fn refuses_schemas_that_multiply_with_every_reference() {
    for applicator in ["anyOf", "oneOf", "allOf"] {
        let schema = chain(40, applicator, 2);
        assert!(schema.to_string().len() < 4_000);
        assert!(check(&schema, &json!(1)).is_err(), "{applicator}");
    }
    let items = json!({
        "type": "array",
        "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "null"}]},
    });
    let mut deep = json!([1]);
    for _ in 0..50 {
        deep = json!([deep]);
    }
    assert!(check(&items, &deep).is_err());
    assert_eq!(check(&items, &json!([[null]])), Ok(true));
}

#[test]
fn refuses_to_copy_a_large_value_into_many_errors() {
    let schema = json!({"anyOf": vec![json!({"type": "string"}); 200]});
    let validator = SchemaValidator::compile(&schema).unwrap();
    let value = json!(vec![1; 20_000]);
    assert_eq!(validator.is_valid(&value), Ok(false));
    let refusal = validator.list_errors(&value).unwrap_err();
    assert_eq!(refusal.max, MAX_ERROR_STEPS);
}

#[test]
fn refuses_comparisons_that_take_too_long() {
    let many: Vec<Value> = (0..20_000)
        .map(|n| json!({"n": n, "text": "x".repeat(50)}))
        .collect();
    let unique = json!({"allOf": vec![json!({"uniqueItems": true}); 200]});
    assert!(check(&unique, &json!(many)).is_err());
    let contains =
        json!({"allOf": (0..200).map(|n| json!({"contains": {"const": n}})).collect::<Vec<_>>()});
    assert!(check(&contains, &json!(many)).is_err());
    let properties: serde_json::Map<String, Value> =
        (0..5_000).map(|n| (format!("p{n}"), json!(true))).collect();
    let wide = json!({"items": {"properties": properties}});
    assert!(check(&wide, &json!(vec![json!({}); 5_000])).is_err());
    let pattern = json!({"items": {"pattern": "[ab]*a[ab]{500}"}});
    assert!(check(&pattern, &json!(["ab".repeat(500_000)])).is_err());
}

#[test]
fn lists_the_errors_of_large_values() {
    let nodes = json!({"properties": {"nodes": {"maxItems": 1_000, "items": {
        "required": ["id"],
        "properties": {"id": {"type": "string"}, "data": {"anyOf": [{}, {"type": "null"}]}},
    }}}});
    let validator = SchemaValidator::compile(&nodes).unwrap();
    let value = json!({"nodes": vec![json!({"id": "a", "data": {"x": [1, 2, 3]}}); 2_000]});
    let errors = validator.list_errors(&value).unwrap();
    let fault = errors[0].to_string();
    assert!(fault.ends_with("has more than 1000 items"), "{fault}");
}

#[test]
fn refuses_nested_marking_of_evaluated_members() {
    let mut schema = json!({"type": "null"});
    for _ in 0..40 {
        schema = json!({"anyOf": [schema, true], "unevaluatedProperties": false});
    }
    let value: serde_json::Map<String, Value> =
        (0..1_000).map(|n| (format!("p{n}"), json!(n))).collect();
    assert!(check(&schema, &Value::Object(value)).is_err());
}

#[test]
fn ends_recursion_without_progress() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"$dynamicRef": "#x", "$dynamicAnchor": "x"}),
    ] {
        let Ok(validator) = SchemaValidator::compile(&schema) else {
            continue;
        };
        assert!(validator.is_valid(&json!({"a": 1})).is_err(), "{schema}");
    }
}

#[test]
fn long_chains_of_references_do_not_overflow_the_stack() {
    let schema = chain(5_000, "allOf", 1);
    // 2 MiB, the default stack size of a tokio worker thread.
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let checked = thread.spawn(move || match SchemaValidator::compile(&schema) {
        Ok(validator) => validator.is_valid(&json!(1)).is_err(),
        Err(_) => true,
    });
    assert!(checked.unwrap().join().unwrap());
    let schema = chain(190, "allOf", 1);
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let checked = thread.spawn(move || {
        let validator = SchemaValidator::compile(&schema).unwrap();
        validator.list_errors(&json!(1)).map(|errors| errors.len())
    });
    assert_eq!(checked.unwrap().join().unwrap(), Ok(1));
}

#[test]
fn limits_the_size_and_depth_of_a_schema() {
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"items": deep});
    }
    assert_eq!(
        SchemaValidator::compile(&deep).err(),
        Some(SchemaError::TooDeep {
            max: MAX_SCHEMA_DEPTH
        })
    );
    let wide = json!({"enum": (0..50_000).collect::<Vec<_>>()});
    assert_eq!(
        SchemaValidator::compile(&wide).err(),
        Some(SchemaError::TooLarge {
            max: MAX_SCHEMA_VALUES
        })
    );
}

#[test]
fn compiles_a_large_schema_in_bounded_time() {
    let definitions: serde_json::Map<String, Value> = (0..1_000)
        .map(|n| {
            let next = format!("#/$defs/d{}", (n * 7 + 1) % 1_000);
            let field =
                json!({"anyOf": [{"$ref": next}, {"type": "string", "pattern": "^[a-z]{1,9}$"}]});
            (
                format!("d{n}"),
                json!({"type": "object", "properties": {"a": field, "b": {"$ref": next}}}),
            )
        })
        .collect();
    let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    let started = Instant::now();
    let validator = SchemaValidator::compile(&schema).unwrap();
    let time = started.elapsed();
    assert!(time < MAX_TIME, "{time:?}");
    assert_eq!(validator.is_valid(&json!({"a": {"a": "x"}})), Ok(true));
}

#[test]
fn ignores_patterns_that_need_look_around() {
    let schema = json!({"properties": {
        "a": {"type": "string", "pattern": "^(?=x)x+$"},
        "b": {"type": "string", "pattern": "^y+$"},
    }});
    assert_eq!(check(&schema, &json!({"a": "z"})), Ok(true));
    assert_eq!(check(&schema, &json!({"b": "z"})), Ok(false));
    assert_eq!(check(&schema, &json!({"a": 1})), Ok(false));
}

#[test]
fn members_of_an_ignored_pattern_are_valid() {
    for keyword in ["additionalProperties", "unevaluatedProperties"] {
        let schema = json!({
            "properties": {"a": {"type": "string"}},
            "patternProperties": {"^(?=x)": {"type": "string"}, "^y": {"type": "string"}},
            keyword: false,
        });
        assert_eq!(
            check(&schema, &json!({"a": "", "x1": ""})),
            Ok(true),
            "{keyword}"
        );
        assert_eq!(check(&schema, &json!({"a": 1})), Ok(false), "{keyword}");
        assert_eq!(check(&schema, &json!({"y1": 1})), Ok(false), "{keyword}");
    }
}

#[test]
fn accepts_ordinary_schemas_of_large_values() {
    let any_json = json!({
        "$ref": "#/$defs/value",
        "$defs": {"value": {"anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": {"$ref": "#/$defs/value"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/value"}},
        ]}},
    });
    let rows: Vec<Value> = (0..4_000)
        .map(|n| json!({"id": n, "name": "a customer", "tags": ["a", "b"], "at": null}))
        .collect();
    assert_eq!(check(&any_json, &json!(rows)), Ok(true));
    let uuid = json!({"items": {
        "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    }});
    let ids = vec![json!("01890c7e-0000-7000-8000-000000000000"); 1_000];
    assert_eq!(check(&uuid, &json!(ids)), Ok(true));
    let base64 = json!({"pattern": "^[A-Za-z0-9+/]*={0,2}$"});
    assert_eq!(check(&base64, &json!("A".repeat(1_000_000))), Ok(true));
}

#[test]
fn estimates_the_size_of_patterns() {
    for (pattern, expected) in [
        ("abc", 4),
        ("[a-z]{10}", 11),
        ("(ab){3}", 7),
        ("((a{10}){10}){10}", 1_001),
        ("a\\{3}", 5),
        ("", 1),
    ] {
        assert_eq!(
            validation_cost::estimate_pattern_states(pattern),
            expected,
            "{pattern}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn hostile_schemas_take_bounded_time(schema in schemas(), value in values()) {
        let started = Instant::now();
        if let Ok(validator) = SchemaValidator::compile(&schema) {
            let _ = validator.is_valid(&value);
            let _ = validator.list_errors(&value);
        }
        let time = started.elapsed();
        prop_assert!(time < MAX_TIME, "{:?}: {} on {}", time, schema, value);
    }
}

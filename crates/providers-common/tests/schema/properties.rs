//! Properties of the compiler for random JSON and for random schemas.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use switchboard_providers_common::schema::{
    Dialect, NO_STABLE_FORM, compile, measure_schema, restore_answer,
};

use crate::checker::problems;

/// Generates any JSON.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e12..1e12_f64).prop_map(Value::from),
        "[a-z#/$~%\\[\\] ]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z$]{0,6}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

const REFERENCES: [&str; 14] = [
    "#",
    "#/$defs/a",
    "#/$defs/b",
    "#/definitions/a",
    "#/properties/a",
    "#/properties/a/items",
    "#/$defs/a/anyOf/0",
    "#anchor",
    "https://example.org/schema.json",
    "other.json#/a",
    "#/$defs/missing",
    "#/nowhere",
    "b",
    "#/%24defs/a",
];

const TYPES: [&str; 16] = [
    "object", "object", "array", "string", "string", "integer", "number", "boolean", "null",
    "STRING", "OBJECT", "int", "any", "float", "date", "",
];

/// Generates keywords, most of them with a valid value.
fn scalar_keyword() -> impl Strategy<Value = (String, Value)> {
    let types = || prop::sample::select(TYPES.to_vec());
    let scalar = prop_oneof![
        Just(json!("a")),
        Just(json!("")),
        Just(json!(1)),
        Just(json!(1.5)),
        Just(json!(null)),
        Just(json!(true)),
        Just(json!({"$ref": "#"})),
        Just(json!([])),
    ];
    let keys = || prop::sample::select(vec!["a", "b", "$c", "d[e]", "f g"]);
    let named = |name: &'static str, value: BoxedStrategy<Value>| {
        value
            .prop_map(move |value| (name.to_owned(), value))
            .boxed()
    };
    prop_oneof![
        6 => types().prop_map(|it| ("type".to_owned(), json!(it))),
        1 => prop::collection::vec(types(), 0..3).prop_map(|it| ("type".to_owned(), json!(it))),
        4 => prop::sample::select(REFERENCES.to_vec()).prop_map(|it| ("$ref".to_owned(), json!(it))),
        2 => named("enum", prop::collection::vec(scalar.clone(), 0..4).prop_map(Value::from).boxed()),
        1 => named("const", scalar.clone().boxed()),
        1 => named("default", scalar.boxed()),
        2 => named("required", prop::collection::vec(keys(), 0..3).prop_map(|it| json!(it)).boxed()),
        1 => named("required", any::<bool>().prop_map(Value::from).boxed()),
        1 => named("nullable", any::<bool>().prop_map(Value::from).boxed()),
        2 => (
            prop::sample::select(vec![
                "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
                "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxContains",
            ]),
            prop_oneof![
                (0..9_i64).prop_map(Value::from),
                Just(json!(2.5)), Just(json!(true)), Just(json!(-1)), Just(json!(1e300)),
            ],
        ).prop_map(|(name, value)| (name.to_owned(), value)),
        2 => (
            prop::sample::select(vec!["description", "title", "format", "pattern", "$id", "$anchor"]),
            prop::sample::select(vec!["", "date", "uuid", "^a+$", "(?=x)", "anchor", "enum", "say."]),
        ).prop_map(|(name, value)| (name.to_owned(), json!(value))),
        1 => prop::sample::select(vec!["uniqueItems", "deprecated", "items", "additionalItems"])
            .prop_flat_map(|name| any::<bool>().prop_map(move |it| (name.to_owned(), json!(it)))),
        1 => any_json().prop_map(|value| ("x-extra".to_owned(), value)),
    ]
}

/// Generates JSON that is a schema or similar to one.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => prop::collection::vec(scalar_keyword(), 0..4)
            .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(json!("odd")),
    ];
    leaf.prop_recursive(5, 48, 4, |inner| {
        let one = prop::sample::select(vec![
            "items",
            "items",
            "additionalProperties",
            "additionalProperties",
            "not",
            "if",
            "then",
            "contains",
            "propertyNames",
            "unevaluatedProperties",
            "additionalItems",
        ]);
        let listed = prop::sample::select(vec![
            "anyOf",
            "anyOf",
            "oneOf",
            "allOf",
            "allOf",
            "prefixItems",
            "items",
        ]);
        let named = prop::sample::select(vec![
            "properties",
            "properties",
            "properties",
            "$defs",
            "definitions",
            "patternProperties",
            "dependencies",
            "dependentSchemas",
        ]);
        let keys = prop::sample::select(vec!["a", "b", "$c", "d[e]", "f g"]);
        let keyword = prop_oneof![
            (one, inner.clone()).prop_map(|(name, one)| (name.to_owned(), one)),
            (listed, prop::collection::vec(inner.clone(), 0..4))
                .prop_map(|(name, list)| (name.to_owned(), Value::from(list))),
            (named, prop::collection::vec((keys, inner), 0..4)).prop_map(|(name, pairs)| {
                let pairs = pairs.into_iter().map(|(key, it)| (key.to_owned(), it));
                (name.to_owned(), Value::Object(pairs.collect()))
            }),
        ];
        let keywords = prop::collection::vec(keyword, 0..4);
        (keywords, prop::collection::vec(scalar_keyword(), 0..3)).prop_map(|(some, more)| {
            let map: Map<String, Value> = some.into_iter().chain(more).collect();
            Value::Object(map)
        })
    })
}

fn check(schema: &Value) -> Result<(), TestCaseError> {
    for dialect in Dialect::ALL {
        let compiled = compile(schema, dialect);
        // The change `NO_STABLE_FORM` would hide that a compiled schema changes when it is compiled
        // again.
        let resorted = compiled
            .changes
            .iter()
            .find(|it| it.message == NO_STABLE_FORM);
        prop_assert!(resorted.is_none(), "{}: no stable form", dialect.name());
        let again = compile(&compiled.schema, dialect);
        prop_assert!(
            again.changes.is_empty() && *again.schema == *compiled.schema,
            "{} is not stable: {} then {}, {:?}",
            dialect.name(),
            compiled.schema,
            again.schema,
            again.changes
        );
        let problems = problems(&compiled.schema, dialect);
        prop_assert!(
            problems.is_empty(),
            "{}: {:?} in {}",
            dialect.name(),
            problems,
            compiled.schema
        );
        let is_borrowed = matches!(compiled.schema, std::borrow::Cow::Borrowed(_));
        prop_assert_eq!(is_borrowed, *compiled.schema == *schema);
        prop_assert!(!is_borrowed || compiled.changes.is_empty());
        // The same input always gives the same JSON text.
        prop_assert_eq!(
            compiled.schema.to_string(),
            compile(schema, dialect).schema.to_string()
        );
        measure_schema(&compiled.schema);
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_json_compiles_to_a_valid_schema(schema in any_json()) {
        check(&schema)?;
    }

    #[test]
    fn almost_valid_schemas_compile_to_valid_ones(schema in any_schema()) {
        check(&schema)?;
    }

    #[test]
    fn any_answer_is_restored_without_a_panic(schema in any_schema(), answer in any_json()) {
        for dialect in Dialect::ALL {
            let restored = restore_answer(&schema, dialect, answer.clone());
            if matches!(dialect, Dialect::OpenAiLoose | Dialect::OllamaTools) {
                prop_assert_eq!(&restored, &answer);
            }
        }
    }
}

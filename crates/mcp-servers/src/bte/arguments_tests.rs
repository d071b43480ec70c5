//! Whatever a model sends, the schema and the types agree on it.

use std::cell::Cell;

use proptest::prelude::*;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{arguments, schema};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "n0",
            "n1",
            "NCBIGene:4353",
            "biolink:Gene",
            "biolink:affects",
            "",
            "MPO",
        ])
        .prop_map(Value::from),
        (-1_i64..120).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        Just(json!({"conversationId": "c", "accessToken": null})),
        Just(json!({"n0": {"ids": ["a:1"]}, "n1": {"categories": ["biolink:Gene"]}})),
        Just(json!({"e0": {"subject": "n0", "object": "n1", "predicates": null}})),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner),
        ]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "nodes",
        "edges",
        "n0",
        "e0",
        "ids",
        "categories",
        "subject",
        "object",
        "predicates",
    ]);
    prop::collection::vec((keys, inner), 0..4).prop_map(|pairs| {
        Value::Object(
            pairs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    })
}

fn given() -> impl Strategy<Value = JsonObject> {
    let keys = prop::sample::select(vec![
        "entityId",
        "entityId",
        "categories",
        "query_graph",
        "query_graph",
        "limit",
        "addToGraph",
        "databaseContext",
        "subjectCategory",
        "predicate",
        "name",
        "name",
        "taxon",
        "x",
    ]);
    prop::collection::vec((keys, value()), 0..4).prop_map(|pairs| {
        pairs
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    })
}

/// Whether the arguments are good ones.
fn agree<T: DeserializeOwned + JsonSchema>(given: &JsonObject) -> Result<bool, TestCaseError> {
    let schema = schema::input::<T>();
    let normal = Value::Object(arguments::normalize(&schema, given.clone()));
    let valid = arguments::validator(&schema).unwrap().is_valid(&normal) == Ok(true);
    if valid {
        let read = serde_json::from_value::<T>(normal.clone());
        prop_assert!(read.is_ok(), "{normal}: {}", read.err().unwrap());
    }
    Ok(valid)
}

#[test]
fn the_schema_and_the_types_agree_on_any_arguments() {
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(1000)
    };
    let good = Cell::new(0);
    proptest!(config, |(given in given())| {
        let valid = [
            agree::<super::entity::AllInput>(&given)?,
            agree::<super::entity::CategoriesInput>(&given)?,
            agree::<super::query::Input>(&given)?,
            agree::<super::meta::Input>(&given)?,
            agree::<super::lookup::Input>(&given)?,
        ];
        good.set(good.get() + usize::from(valid.contains(&true)));
    });
    let good = good.get();
    assert!(good > 100, "only {good} of 1000 were good ones");
}

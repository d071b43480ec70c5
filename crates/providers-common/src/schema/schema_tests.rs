//! Tests of single passes. `tests/schema/` tests the public functions.

use std::{fs, path::Path};

use serde_json::json;

use super::*;

#[test]
fn one_pass_is_enough_for_every_tool_of_the_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemas");
    let mut count = 0;
    let mut unstable = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_none_or(|it| it != "json") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let tools: Vec<Value> = serde_json::from_str(&text).unwrap();
        for tool in tools {
            count += 1;
            for dialect in Dialect::ALL {
                let rules = Rules::of(dialect);
                let first = pass(&tool["schema"], rules);
                let second = pass(&first.schema, rules);
                if second.schema != first.schema {
                    let (name, changes) = (&tool["name"], second.changes);
                    unstable.push(format!("{name} in {}: {changes:?}", dialect.name()));
                }
            }
        }
    }
    assert!(count > 300, "{count}");
    assert!(unstable.is_empty(), "{}: {unstable:#?}", unstable.len());
}

#[test]
fn the_least_that_a_dialect_takes_is_stable() {
    for dialect in Dialect::ALL {
        let rules = Rules::of(dialect);
        let least = Value::Object(root::least(rules));
        assert_eq!(pass(&least, rules).schema, least, "{}", dialect.name());
        assert!(!compile(&json!({}), dialect).changes.is_empty());
    }
}

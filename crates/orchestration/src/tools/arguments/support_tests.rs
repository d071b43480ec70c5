//! Arbitrary JSON for the property tests of this folder.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_domain::JsonObject;

/// Generates JSON values. No fraction is whole, so that `1.0` and `1` do not both occur.
pub(crate) fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1_000_i32..1_000).prop_map(|n| json!(f64::from(n) + 0.5)),
        "[a-zA-Z0-9 {}\\[\\]\"\\\\:,\n`é漢]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-e\" ]{1,3}", inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Generates objects with such values.
pub(crate) fn json_object() -> impl Strategy<Value = JsonObject> {
    prop::collection::vec(("[a-e\" ]{1,3}", json_value()), 0..5)
        .prop_map(|entries| entries.into_iter().collect())
}

/// Returns the object with all its keys, also those of nested objects, in another order.
pub(crate) fn shuffled(object: &JsonObject, seed: u64) -> JsonObject {
    let mut entries: Vec<(String, Value)> = object
        .iter()
        .map(|(key, value)| (key.clone(), shuffled_value(value, seed.rotate_left(7))))
        .collect();
    if !entries.is_empty() {
        let by = usize::try_from(seed % 97).unwrap() % entries.len();
        entries.rotate_left(by);
        if seed.is_multiple_of(2) {
            entries.reverse();
        }
    }
    entries.into_iter().collect()
}

fn shuffled_value(value: &Value, seed: u64) -> Value {
    match value {
        Value::Object(object) => Value::Object(shuffled(object, seed)),
        Value::Array(items) => items.iter().map(|v| shuffled_value(v, seed)).collect(),
        other => other.clone(),
    }
}

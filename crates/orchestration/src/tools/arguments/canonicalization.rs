//! Canonical JSON of tool input.

use std::fmt::Write as _;

use serde_json::{Number, Value};
use sha2::{Digest, Sha256};
use switchboard_domain::JsonObject;

/// Converts a tool input to compact JSON with sorted keys. Equal inputs have equal texts: numbers
/// such as `1.0` and `1e0` become `1`.
pub fn canonical_json(input: &JsonObject) -> String {
    canonical_json_value(&Value::Object(input.clone()))
}

/// Returns the SHA-256 digest of the [canonical JSON](canonical_json) as 64 hexadecimal digits.
pub fn canonical_digest(input: &JsonObject) -> String {
    hex_sha256(&canonical_json(input))
}

pub(crate) fn hex_sha256(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

pub(crate) fn canonical_json_value(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    normalize_numbers(&mut value);
    value.to_string()
}

fn normalize_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => *number = normalize_number(number),
        Value::Array(items) => items.iter_mut().for_each(normalize_numbers),
        Value::Object(fields) => fields.values_mut().for_each(normalize_numbers),
        _ => {}
    }
}

/// Converts a number without a fraction to an integer, if the integer fits into 64 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the number has no fraction and is in the range"
)]
fn normalize_number(number: &Number) -> Number {
    const END: f64 = 9_223_372_036_854_775_808.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < END => {
            (float as i64).into()
        }
        _ => number.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::arguments::test_support::{json_object, shuffled};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_and_the_form_of_numbers_do_not_matter() {
        let value = json!({"b": {"y": 1.0, "x": [2, {"d": 1e3, "c": -0.0}]}, "a": "\n"});
        assert_eq!(
            canonical_json_value(&value),
            r#"{"a":"\n","b":{"x":[2,{"c":0,"d":1000}],"y":1}}"#
        );
    }

    #[test]
    fn different_values_have_different_texts() {
        let different = [
            json!(1),
            json!("1"),
            json!([1]),
            json!(1.5),
            json!(null),
            json!({}),
            json!([]),
            json!(9_007_199_254_740_993_u64),
            json!(9_007_199_254_740_992.0),
            json!(u64::MAX),
            json!(1e20),
            json!([[2], [1]]),
            json!([[1], [2]]),
        ];
        let texts: std::collections::HashSet<_> =
            different.iter().map(canonical_json_value).collect();
        assert_eq!(texts.len(), different.len());
    }

    proptest! {
        #[test]
        fn equal_texts_mean_equal_inputs(a in json_object(), b in json_object(), seed in any::<u64>()) {
            prop_assert_eq!(canonical_json(&a) == canonical_json(&b), a == b);
            prop_assert_eq!(canonical_digest(&shuffled(&a, seed)), canonical_digest(&a));
            let back: JsonObject = serde_json::from_str(&canonical_json(&a)).unwrap();
            prop_assert_eq!(back, a);
        }
    }
}

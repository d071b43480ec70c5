//! Canonical JSON of tool input.

use std::fmt::Write as _;

use serde_json::{Number, Value};
use sha2::{Digest, Sha256};
use switchboard_domain::JsonObject;

/// Returns the input as compact JSON with sorted keys. Equal numbers have one form: `1.0`, `1e0`
/// and `1` are the same. Two inputs have the same text if and only if they are equal as JSON.
pub fn canonical(input: &JsonObject) -> String {
    let mut out = String::new();
    write_object(input, &mut out);
    out
}

/// Returns the SHA-256 of [`canonical`] as 64 hexadecimal digits.
pub fn digest(input: &JsonObject) -> String {
    let digest = Sha256::digest(canonical(input));
    digest.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

pub(crate) fn canonical_value(value: &Value) -> String {
    let mut out = String::new();
    write_value(value, &mut out);
    out
}

fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(object) => write_object(object, out),
    }
}

fn write_object(object: &JsonObject, out: &mut String) {
    let mut entries: Vec<_> = object.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    out.push('{');
    for (n, (key, value)) in entries.into_iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        write_string(key, out);
        out.push(':');
        write_value(value, out);
    }
    out.push('}');
}

fn write_string(text: &str, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{}", Value::from(text));
}

/// Writes a number without a fraction as an integer, if it fits.
fn write_number(number: &Number, out: &mut String) {
    let _ = match number.as_f64() {
        Some(float) if number.is_f64() => match whole(float) {
            Some(integer) => write!(out, "{integer}"),
            None => write!(out, "{number}"),
        },
        _ => write!(out, "{number}"),
    };
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the number has no fraction and is in the range"
)]
fn whole(float: f64) -> Option<i128> {
    // JSON text keeps integers exactly up to 64 bits only.
    const END: f64 = 18_446_744_073_709_551_616.0;
    let fits = float.fract() == 0.0 && float.abs() < END;
    fits.then_some(float as i128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::arguments::test_support::{json_object, shuffled};
    use proptest::prelude::*;
    use serde_json::json;

    fn text(value: Value) -> String {
        match value {
            Value::Object(object) => canonical(&object),
            other => panic!("not an object: {other}"),
        }
    }

    #[test]
    fn the_order_of_keys_and_the_form_of_numbers_do_not_matter() {
        assert_eq!(
            text(json!({"b": {"y": 1.0, "x": [2, {"d": 0, "c": -0.0}]}, "a": "\n"})),
            r#"{"a":"\n","b":{"x":[2,{"c":0,"d":0}],"y":1}}"#
        );
        assert_eq!(text(json!({"n": 1e3})), text(json!({"n": 1000})));
        assert_eq!(
            text(json!({"n": 1e19})),
            text(json!({"n": 10_000_000_000_000_000_000_u64}))
        );
    }

    #[test]
    fn different_inputs_have_different_texts() {
        let different = [
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": [1]}),
            json!({"a": 1.5}),
            json!({"a": null}),
            json!({"a": false}),
            json!({"a": {}}),
            json!({"a": []}),
            json!({}),
            json!({"a": 9_007_199_254_740_993_u64}),
            json!({"a": 9_007_199_254_740_992.0}),
            json!({"a": u64::MAX}),
            json!({"a": 1e20}),
            json!({"a": [[2], [1]]}),
            json!({"a": [[1], [2]]}),
        ];
        let texts: std::collections::HashSet<_> = different.iter().cloned().map(text).collect();
        assert_eq!(texts.len(), different.len());
    }

    proptest! {
        #[test]
        fn the_text_is_json_of_the_same_input(object in json_object()) {
            let once = canonical(&object);
            let back: JsonObject = serde_json::from_str(&once).unwrap();
            prop_assert_eq!(canonical(&back), once);
        }

        #[test]
        fn shuffled_keys_have_the_same_digest(object in json_object(), seed in any::<u64>()) {
            prop_assert_eq!(digest(&shuffled(&object, seed)), digest(&object));
        }

        #[test]
        fn equal_texts_mean_equal_inputs(a in json_object(), b in json_object()) {
            prop_assert_eq!(canonical(&a) == canonical(&b), a == b);
        }
    }
}

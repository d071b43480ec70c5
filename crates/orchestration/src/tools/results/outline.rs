//! Outlines of large JSON values.

use serde_json::{Map, Value};

/// Maximum number of JSON values in an outline.
const MAX_VALUES: usize = 100;
const MAX_DEPTH: usize = 5;
/// Maximum number of keys that an outline shows for one object.
const MAX_KEYS: usize = 24;
/// Maximum length of an object key in an outline, in bytes.
const MAX_KEY_BYTES: usize = 60;

/// Returns the outline of a JSON value: the keys of objects, the first item and the length of
/// lists, and the types of other values.
pub(super) fn outline_json(value: &Value) -> Value {
    let mut left = MAX_VALUES;
    outline_nested(value, 0, &mut left)
}

fn outline_nested(value: &Value, depth: usize, left: &mut usize) -> Value {
    *left = left.saturating_sub(1);
    let is_leaf = depth >= MAX_DEPTH || *left == 0;
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "boolean".into(),
        Value::Number(_) => "number".into(),
        Value::String(text) if text.len() > MAX_KEY_BYTES => {
            format!("string of {} bytes", text.len()).into()
        }
        Value::String(_) => "string".into(),
        Value::Array(items) if items.is_empty() => Value::Array(Vec::new()),
        Value::Array(items) if is_leaf => format!("list of {}", items.len()).into(),
        Value::Array(items) => {
            let first = items
                .first()
                .map(|item| outline_nested(item, depth + 1, left));
            let more = items.len() - 1;
            let more = (more > 0).then(|| format!("… {more} more").into());
            first.into_iter().chain(more).collect()
        }
        Value::Object(object) if is_leaf && !object.is_empty() => {
            format!("object of {} keys", object.len()).into()
        }
        Value::Object(object) => {
            let mut outlined_keys = Map::new();
            for (key, value) in object {
                if outlined_keys.len() == MAX_KEYS || *left == 0 {
                    let more = format!("{} more keys", object.len() - outlined_keys.len());
                    outlined_keys.insert("…".to_owned(), more.into());
                    break;
                }
                outlined_keys.insert(shorten_key(key), outline_nested(value, depth + 1, left));
            }
            Value::Object(outlined_keys)
        }
    }
}

fn shorten_key(key: &str) -> String {
    if key.len() <= MAX_KEY_BYTES {
        return key.to_owned();
    }
    format!("{}…", &key[..key.floor_char_boundary(MAX_KEY_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{arguments::test_support::json_value, tokens};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn an_outline_has_keys_types_and_lengths() {
        let rows: Vec<Value> = (0..1_200)
            .map(|n| json!({"id": n, "name": "Ada", "tags": [], "bio": "x".repeat(200), "boss": null}))
            .collect();
        let value = json!({"total": 1_200, "rows": rows, "done": true});
        assert_eq!(
            outline_json(&value),
            json!({
                "total": "number",
                "rows": [
                    {"id": "number", "name": "string", "tags": [], "bio": "string of 200 bytes", "boss": "null"},
                    "… 1199 more",
                ],
                "done": "boolean",
            })
        );
    }

    #[test]
    fn wide_and_deep_values_have_small_outlines() {
        let wide: Map<String, Value> = (0..10_000)
            .map(|n| (n.to_string(), json!({"a": [n]})))
            .collect();
        let wide = outline_json(&Value::Object(wide));
        assert_eq!(wide["…"], "9976 more keys");
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!({"a": [deep], "b": {"c": 1}});
        }
        let deep = outline_json(&deep).to_string();
        assert!(deep.len() < 300 && deep.contains("list of 1"), "{deep}");
    }

    proptest! {
        #[test]
        fn an_outline_is_never_large(values in prop::collection::vec(json_value(), 0..20)) {
            let mut value = json!({});
            for (n, other) in values.into_iter().enumerate() {
                value = json!({n.to_string(): [value, other], "more": [n]});
            }
            prop_assert!(tokens::estimate_json(&outline_json(&value)) < 3_000);
        }
    }
}

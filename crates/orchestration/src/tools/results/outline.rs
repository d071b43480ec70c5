//! What a large JSON value is made of, in a small one.

use serde_json::{Map, Value};

/// Values named of the whole at most.
const MOST: usize = 100;
const DEEPEST: usize = 5;
/// Keys named of one object at most.
const MOST_KEYS: usize = 24;
/// Bytes of a key at most.
const KEY_BYTES: usize = 60;

/// The shape of a value: the keys of its objects, the first item of its lists and how many more there
/// are, and the types of the rest.
pub(super) fn outline(value: &Value) -> Value {
    let mut left = MOST;
    outlined(value, 0, &mut left)
}

fn outlined(value: &Value, depth: usize, left: &mut usize) -> Value {
    *left = left.saturating_sub(1);
    let no_further = depth >= DEEPEST || *left == 0;
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "boolean".into(),
        Value::Number(_) => "number".into(),
        Value::String(text) if text.len() > KEY_BYTES => {
            format!("string of {} bytes", text.len()).into()
        }
        Value::String(_) => "string".into(),
        Value::Array(items) if items.is_empty() => Value::Array(Vec::new()),
        Value::Array(items) if no_further => format!("list of {}", items.len()).into(),
        Value::Array(items) => {
            let first = items.first().map(|item| outlined(item, depth + 1, left));
            let more = items.len() - 1;
            let more = (more > 0).then(|| format!("… {more} more").into());
            first.into_iter().chain(more).collect()
        }
        Value::Object(object) if no_further && !object.is_empty() => {
            format!("object of {} keys", object.len()).into()
        }
        Value::Object(object) => {
            let mut named = Map::new();
            for (key, value) in object {
                if named.len() == MOST_KEYS || *left == 0 {
                    let more = format!("{} more keys", object.len() - named.len());
                    named.insert("…".to_owned(), more.into());
                    break;
                }
                named.insert(shortened(key), outlined(value, depth + 1, left));
            }
            Value::Object(named)
        }
    }
}

fn shortened(key: &str) -> String {
    if key.len() <= KEY_BYTES {
        return key.to_owned();
    }
    format!("{}…", &key[..key.floor_char_boundary(KEY_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::{arguments::tests_support::json_value, tokens};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_shape_is_shown() {
        let rows: Vec<Value> = (0..1_200)
            .map(|n| json!({"id": n, "name": "Ada", "tags": [], "bio": "x".repeat(200), "boss": null}))
            .collect();
        let value = json!({"total": 1_200, "rows": rows, "done": true});
        assert_eq!(
            outline(&value),
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
        let wide = outline(&Value::Object(wide));
        assert_eq!(wide["…"], "9976 more keys");
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!({"a": [deep], "b": {"c": 1}});
        }
        let deep = outline(&deep).to_string();
        assert!(deep.len() < 300 && deep.contains("list of 1"), "{deep}");
    }

    proptest! {
        #[test]
        fn an_outline_is_never_large(values in prop::collection::vec(json_value(), 0..20)) {
            let mut value = json!({});
            for (n, other) in values.into_iter().enumerate() {
                value = json!({n.to_string(): [value, other], "more": [n]});
            }
            prop_assert!(tokens::estimate_value(&outline(&value)) < 3_000);
        }
    }
}

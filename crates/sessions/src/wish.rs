//! What a run was begun with, as it is stored.

use serde_json::Value;
use switchboard_domain::{MOST_WISH_BYTES, MOST_WISH_DEPTH, SessionStoreError};

const WHAT: &str = "the wish of a run";

/// Its text, if there is one, and it is not too large.
pub(crate) fn text(wish: Option<&Value>) -> Result<Option<String>, SessionStoreError> {
    let Some(wish) = wish.filter(|wish| !wish.is_null()) else {
        return Ok(None);
    };
    // Before it is written: what is nested too deep is nothing to walk through.
    if is_deeper(wish, MOST_WISH_DEPTH) {
        return Err(too_large(MOST_WISH_DEPTH + 1, MOST_WISH_DEPTH, "levels"));
    }
    let text = wish.to_string();
    if text.len() > MOST_WISH_BYTES {
        return Err(too_large(text.len(), MOST_WISH_BYTES, "bytes"));
    }
    Ok(Some(text))
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(within) = levels.checked_sub(1) else {
        return value.is_array() || value.is_object();
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, within)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, within)),
        _ => false,
    }
}

fn too_large(actual: usize, most: usize, unit: &'static str) -> SessionStoreError {
    SessionStoreError::TooLarge {
        what: WHAT,
        actual: actual.try_into().unwrap_or(u64::MAX),
        most: most.try_into().unwrap_or(u64::MAX),
        unit,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn what_is_too_large_is_told_by_how_much() {
        let long = |bytes: usize| json!("x".repeat(bytes - 2));
        assert_eq!(
            text(Some(&long(MOST_WISH_BYTES))).unwrap().unwrap().len(),
            MOST_WISH_BYTES
        );
        let refused = text(Some(&long(MOST_WISH_BYTES + 1))).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the wish of a run has 65537 bytes, and 65536 are kept at most"
        );
        assert!(text(Some(&nested(MOST_WISH_DEPTH))).is_ok());
        let refused = text(Some(&nested(MOST_WISH_DEPTH + 1))).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the wish of a run has 65 levels, and 64 are kept at most"
        );
    }

    #[test]
    fn nothing_is_no_wish() {
        assert_eq!(text(None).unwrap(), None);
        assert_eq!(text(Some(&Value::Null)).unwrap(), None);
        assert_eq!(text(Some(&json!({}))).unwrap().as_deref(), Some("{}"));
    }
}

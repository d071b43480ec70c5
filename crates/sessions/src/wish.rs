//! What a run was begun with, as it is stored.

use serde_json::Value;
use switchboard_domain::{MAX_JSON_DEPTH, MOST_WISH_BYTES, SessionStoreError, check_depth};

use crate::depth;

const WHAT: &str = "the wish of a run";

/// Its text, if there is one, and it is not too large.
pub(crate) fn text(wish: Option<&Value>) -> Result<Option<String>, SessionStoreError> {
    let Some(wish) = wish.filter(|wish| !wish.is_null()) else {
        return Ok(None);
    };
    check_depth(wish).map_err(|_| depth::too_deep(WHAT, MAX_JSON_DEPTH))?;
    let text = wish.to_string();
    if text.len() > MOST_WISH_BYTES {
        return Err(SessionStoreError::TooLarge {
            what: WHAT,
            actual: text.len().try_into().unwrap_or(u64::MAX),
            most: MOST_WISH_BYTES.try_into().unwrap_or(u64::MAX),
            unit: "bytes",
        });
    }
    Ok(Some(text))
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
        assert!(text(Some(&nested(MAX_JSON_DEPTH))).is_ok());
        let refused = text(Some(&nested(MAX_JSON_DEPTH + 1))).unwrap_err();
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

//! Compares values with recorded values, where [`REDACTED`] replaces secrets.

use serde_json::Value;
use switchboard_domain::redact::REDACTED;

/// Returns whether a JSON value contains redacted text.
pub(crate) fn is_redacted(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(REDACTED),
        Value::Array(items) => items.iter().any(is_redacted),
        Value::Object(fields) => fields.values().any(is_redacted),
        _ => false,
    }
}

/// Returns whether redaction of `value` may result in `recorded`. Redacted text matches any text,
/// and a completely redacted value matches any value except null.
pub(crate) fn may_match_redacted(recorded: &Value, value: &Value) -> bool {
    match (recorded, value) {
        // A number or a list may be redacted as a whole, which replaces it by a string.
        (Value::String(recorded), value) if recorded == REDACTED => !value.is_null(),
        (Value::String(recorded), Value::String(value)) => may_match_redacted_text(recorded, value),
        (Value::Array(recorded), Value::Array(value)) => {
            let mut pairs = recorded.iter().zip(value);
            recorded.len() == value.len() && pairs.all(|(a, b)| may_match_redacted(a, b))
        }
        (Value::Object(recorded), Value::Object(value)) => {
            let mut fields = recorded.iter();
            recorded.len() == value.len()
                && fields.all(|(name, a)| value.get(name).is_some_and(|b| may_match_redacted(a, b)))
        }
        (recorded, value) => recorded == value,
    }
}

/// Returns whether redaction of `text` may result in `recorded`.
fn may_match_redacted_text(recorded: &str, text: &str) -> bool {
    let Some((start, after)) = recorded.split_once(REDACTED) else {
        return recorded == text;
    };
    let (between, end) = after.rsplit_once(REDACTED).unwrap_or(("", after));
    let inside = text.strip_prefix(start);
    let Some(mut rest) = inside.and_then(|rest| rest.strip_suffix(end)) else {
        return false;
    };
    // The texts between the placeholders must occur in `rest` in their order. Each text is matched
    // at its first occurrence, which leaves the most of `rest` for the later texts.
    between.split(REDACTED).all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn redacted_text_matches_any_text() {
        let recorded = json!({"a": ["My [redacted] is [redacted]!", 1], "b": "[redacted]"});
        let value = |text: &str| json!({"b": "x", "a": [text, 1]});
        for (text, expected) in [
            ("My key is sk-[redacted]!", true),
            ("My [redacted] is [redacted]!", true),
            ("My is is is!", true),
            ("My  is !", true),
            ("My key is it", false),
            ("My key was it!", false),
            ("My is!", false),
            ("", false),
        ] {
            assert_eq!(
                may_match_redacted(&recorded, &value(text)),
                expected,
                "{text}"
            );
        }
        assert!(!may_match_redacted(&json!("sk-1"), &json!("[redacted]")));
        assert!(may_match_redacted(&json!("[redacted]"), &json!([1])));
        assert!(!may_match_redacted(&json!("[redacted]"), &Value::Null));
        assert!(!may_match_redacted(&recorded, &json!({"a": [], "c": "x"})));
    }
}

//! What an answer cost, wire → domain.

use serde_json::Value;
use switchboard_domain::Usage;

/// Reads `usageMetadata`. Absent is not zero.
///
/// `promptTokenCount` includes what came from a cache; what the provider's own tools fed back counts
/// apart. `candidatesTokenCount` leaves the thoughts out.
pub(crate) fn usage(report: &Value) -> Usage {
    let count = |name: &str| report.get(name).and_then(Value::as_u64);
    let thoughts = count("thoughtsTokenCount");
    Usage {
        input_tokens: sum(count("promptTokenCount"), count("toolUsePromptTokenCount")),
        output_tokens: sum(count("candidatesTokenCount"), thoughts),
        cache_read_tokens: count("cachedContentTokenCount"),
        cache_write_tokens: None,
        reasoning_tokens: thoughts,
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn thoughts_are_output_and_cached_tokens_are_input() {
        let report = json!({
            "promptTokenCount": 100, "cachedContentTokenCount": 80, "toolUsePromptTokenCount": 5,
            "candidatesTokenCount": 7, "thoughtsTokenCount": 20, "totalTokenCount": 132,
        });
        let expected = Usage {
            input_tokens: Some(105),
            output_tokens: Some(27),
            cache_read_tokens: Some(80),
            cache_write_tokens: None,
            reasoning_tokens: Some(20),
        };
        assert_eq!(usage(&report), expected);
    }

    #[test]
    fn case_21_absent_is_not_zero() {
        let partly = usage(&json!({"promptTokenCount": 4, "candidatesTokenCount": "7"}));
        assert_eq!((partly.input_tokens, partly.output_tokens), (Some(4), None));
        let thinking = usage(&json!({"thoughtsTokenCount": 9}));
        assert_eq!(thinking.output_tokens, Some(9));
        for odd in [
            json!({}),
            json!(null),
            json!([1]),
            json!({"promptTokenCount": -1}),
        ] {
            assert!(!usage(&odd).is_known(), "{odd}");
        }
    }
}

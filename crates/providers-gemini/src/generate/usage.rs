//! What an answer cost, wire → domain.

use serde_json::Value;
use switchboard_domain::Usage;

/// The counts of `usageMetadata`, as far as they were said. Absent is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UsageReport {
    /// Includes what came from a cache.
    prompt: Option<u64>,
    /// What the provider's own tools fed back, which counts apart.
    tool_results: Option<u64>,
    cached: Option<u64>,
    /// Leaves the thoughts out.
    candidates: Option<u64>,
    thoughts: Option<u64>,
}

impl UsageReport {
    /// Takes over a later report of the same answer; what that leaves out stays as it was.
    pub(crate) fn update(&mut self, report: &Value) {
        let count = |name: &str| report.get(name).and_then(Value::as_u64);
        for (mine, name) in [
            (&mut self.prompt, "promptTokenCount"),
            (&mut self.tool_results, "toolUsePromptTokenCount"),
            (&mut self.cached, "cachedContentTokenCount"),
            (&mut self.candidates, "candidatesTokenCount"),
            (&mut self.thoughts, "thoughtsTokenCount"),
        ] {
            *mine = count(name).or(*mine);
        }
    }
}

impl From<UsageReport> for Usage {
    fn from(report: UsageReport) -> Self {
        Self {
            input_tokens: sum(report.prompt, report.tool_results),
            output_tokens: sum(report.candidates, report.thoughts),
            cache_read_tokens: report.cached,
            reasoning_tokens: report.thoughts,
            ..Self::default()
        }
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

    fn usage(report: &Value) -> Usage {
        let mut read = UsageReport::default();
        read.update(report);
        read.into()
    }

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
            reasoning_tokens: Some(20),
            ..Usage::default()
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

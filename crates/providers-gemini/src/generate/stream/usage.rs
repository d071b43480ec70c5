//! Converts the API's token counts.

use serde_json::Value;
use switchboard_domain::Usage;

/// The token counts in the response field `usageMetadata`. A missing count is unknown, not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UsageReport {
    /// Number of prompt tokens, including cached tokens.
    prompt: Option<u64>,
    /// Number of tokens in the results of server tools. Not included in `prompt`.
    tool_results: Option<u64>,
    cached: Option<u64>,
    /// Number of answer tokens, excluding thoughts.
    candidates: Option<u64>,
    thoughts: Option<u64>,
}

impl UsageReport {
    /// Parses a usage report. A value that is not a whole number is treated as missing.
    pub(crate) fn from_json(report: &Value) -> Self {
        let count = |name: &str| report.get(name).and_then(Value::as_u64);
        Self {
            prompt: count("promptTokenCount"),
            tool_results: count("toolUsePromptTokenCount"),
            cached: count("cachedContentTokenCount"),
            candidates: count("candidatesTokenCount"),
            thoughts: count("thoughtsTokenCount"),
        }
    }

    /// Merges a later report of the same request. Missing counts keep their earlier values.
    pub(crate) fn merge_later_usage(&mut self, later: Self) {
        *self = Self {
            prompt: later.prompt.or(self.prompt),
            tool_results: later.tool_results.or(self.tool_results),
            cached: later.cached.or(self.cached),
            candidates: later.candidates.or(self.candidates),
            thoughts: later.thoughts.or(self.thoughts),
        };
    }
}

impl From<UsageReport> for Usage {
    fn from(report: UsageReport) -> Self {
        Self {
            input_tokens: sum_token_counts(report.prompt, report.tool_results),
            output_tokens: sum_token_counts(report.candidates, report.thoughts),
            cache_read_tokens: report.cached,
            reasoning_tokens: report.thoughts,
            ..Self::default()
        }
    }
}

fn sum_token_counts(a: Option<u64>, b: Option<u64>) -> Option<u64> {
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
        read.merge_later_usage(UsageReport::from_json(report));
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
}

//! Token counts of an answer.

use serde::{Deserialize, Serialize};

/// Token counts. `None` means that the provider did not report the count.
///
/// `input_tokens` is the whole prompt, including tokens that are read from or written to a cache
/// (Anthropic's own `input_tokens` excludes them). `output_tokens` includes reasoning (Gemini's
/// candidate count excludes it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Number of tokens of the whole prompt, including cached tokens.
    #[serde(default)]
    pub input_tokens: Option<u64>,
    /// Number of output tokens, including reasoning.
    #[serde(default)]
    pub output_tokens: Option<u64>,
    /// Number of input tokens that were read from a prompt cache.
    #[serde(default)]
    pub cache_read_tokens: Option<u64>,
    /// Number of input tokens that were written to a prompt cache.
    #[serde(default)]
    pub cache_write_tokens: Option<u64>,
    /// Number of tokens among `cache_write_tokens` with the longer and more expensive of two cache
    /// lifetimes (Anthropic: one hour instead of five minutes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long_tokens: Option<u64>,
    /// Number of output tokens for reasoning.
    #[serde(default)]
    pub reasoning_tokens: Option<u64>,
    /// Number of requests of the provider's own tools, such as web searches, which are billed
    /// separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_tool_requests: Option<u64>,
}

impl Usage {
    /// Updates the counts with `later`, a later report about the *same* answer. Each count in
    /// `later` replaces the earlier count. Counts that are `None` in `later` do not change.
    pub fn update_counts(&mut self, later: Self) {
        self.combine_counts(later, |_, new| new);
    }

    /// Adds the token counts of *another* answer, for the total of several answers. If one of the
    /// two counts is `None`, the other count is the total.
    pub fn add_usage(&mut self, other: Self) {
        self.combine_counts(other, u64::saturating_add);
    }

    /// Returns whether the provider reported any token count.
    pub fn is_known(&self) -> bool {
        *self != Self::default()
    }

    fn combine_counts(&mut self, other: Self, both: impl Fn(u64, u64) -> u64) {
        let pairs = [
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.cache_read_tokens, other.cache_read_tokens),
            (&mut self.cache_write_tokens, other.cache_write_tokens),
            (
                &mut self.cache_write_long_tokens,
                other.cache_write_long_tokens,
            ),
            (&mut self.reasoning_tokens, other.reasoning_tokens),
            (&mut self.server_tool_requests, other.server_tool_requests),
        ];
        for (mine, theirs) in pairs {
            *mine = match (*mine, theirs) {
                (Some(a), Some(b)) => Some(both(a, b)),
                (a, b) => b.or(a),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Usage;

    #[test]
    fn a_later_report_keeps_missing_counts() {
        let mut usage = Usage {
            input_tokens: Some(10),
            cache_read_tokens: Some(4),
            ..Usage::default()
        };
        usage.update_counts(Usage {
            output_tokens: Some(7),
            ..Usage::default()
        });
        usage.update_counts(Usage {
            output_tokens: Some(9),
            ..Usage::default()
        });
        assert_eq!(usage.input_tokens, Some(10));
        assert_eq!(usage.cache_read_tokens, Some(4));
        assert_eq!(usage.output_tokens, Some(9));
        assert_eq!(usage.reasoning_tokens, None);
    }

    #[test]
    fn sums_keep_unknown_counts_unknown() {
        let mut usage = Usage::default();
        usage.add_usage(Usage {
            output_tokens: Some(2),
            ..Usage::default()
        });
        usage.add_usage(Usage {
            output_tokens: Some(3),
            ..Usage::default()
        });
        assert_eq!((usage.output_tokens, usage.input_tokens), (Some(5), None));
    }
}

//! What an answer cost in tokens.

use serde::{Deserialize, Serialize};

/// Token counts. `None` is "the provider did not say", which is not zero.
///
/// `input_tokens` is the whole prompt: tokens read from and written to a cache are part of it,
/// whatever the wire counts (Anthropic's own `input_tokens` leaves them out). `output_tokens` is all
/// that the model wrote, its reasoning included (Gemini's candidate count leaves that out).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the whole prompt.
    #[serde(default)]
    pub input_tokens: Option<u64>,
    /// Tokens written, reasoning included.
    #[serde(default)]
    pub output_tokens: Option<u64>,
    /// Of the input, read from a prompt cache.
    #[serde(default)]
    pub cache_read_tokens: Option<u64>,
    /// Of the input, written to a prompt cache.
    #[serde(default)]
    pub cache_write_tokens: Option<u64>,
    /// Of those written to a prompt cache, the ones kept for the longer of two lifetimes, which cost
    /// more (Anthropic: an hour rather than five minutes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long_tokens: Option<u64>,
    /// Of the output, reasoning.
    #[serde(default)]
    pub reasoning_tokens: Option<u64>,
    /// Requests that the provider's own tools made, such as web searches; they cost apart from
    /// tokens. A count of requests, not of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_tool_requests: Option<u64>,
}

impl Usage {
    /// Takes over what a later report of the *same* answer says; what it leaves out stays.
    pub fn update(&mut self, later: Self) {
        self.zip(later, |_, new| new);
    }

    /// Adds the usage of *another* answer.
    pub fn add(&mut self, other: Self) {
        self.zip(other, u64::saturating_add);
    }

    /// Whether the provider said anything at all.
    pub fn is_known(&self) -> bool {
        *self != Self::default()
    }

    fn zip(&mut self, other: Self, both: impl Fn(u64, u64) -> u64) {
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
    fn a_later_report_keeps_what_it_does_not_mention() {
        let mut usage = Usage {
            input_tokens: Some(10),
            cache_read_tokens: Some(4),
            ..Usage::default()
        };
        usage.update(Usage {
            output_tokens: Some(7),
            ..Usage::default()
        });
        usage.update(Usage {
            output_tokens: Some(9),
            ..Usage::default()
        });
        assert_eq!(usage.input_tokens, Some(10));
        assert_eq!(usage.cache_read_tokens, Some(4));
        assert_eq!(usage.output_tokens, Some(9));
        assert_eq!(usage.reasoning_tokens, None);
    }

    #[test]
    fn sums_do_not_turn_unknown_into_zero() {
        let mut usage = Usage::default();
        usage.add(Usage {
            output_tokens: Some(2),
            ..Usage::default()
        });
        usage.add(Usage {
            output_tokens: Some(3),
            ..Usage::default()
        });
        assert_eq!((usage.output_tokens, usage.input_tokens), (Some(5), None));
    }
}

//! What a model's tokens cost.

use serde::{Deserialize, Serialize};
use switchboard_domain::Usage;

/// The price of a model, in US dollars for a million tokens. The caller brings it: from a price list, or
/// from the configuration where somebody pays another price.
///
/// What of it is not known is reckoned at the dearest that providers ask for: too much rather than too
/// little.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pricing {
    /// Tokens of the prompt that no cache has.
    pub input: f64,
    /// Tokens written, reasoning included.
    pub output: f64,
    /// Tokens of the prompt that are read from a cache; without, what input costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Tokens of the prompt that are written to a cache; without, what input costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Those that are written for the longer lifetime; without, twice what input costs, as at Anthropic
    /// ("1-hour cache write tokens are 2 times the base input tokens price").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long: Option<f64>,
    /// A request of the provider's own tools, such as a web search: US dollars for one. Without, they are
    /// counted as not priced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_tool_request: Option<f64>,
}

/// What an answer cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// US dollars.
    pub usd: f64,
    /// Requests of the provider's own tools for which there is no price: they are not in `usd`.
    pub unpriced_requests: u64,
}

impl Pricing {
    /// A price as lists have them; `None` unless both the input's and the output's are known and all are
    /// proper numbers. A model that costs nothing has 0, not `None`.
    pub fn from_list(
        input: Option<f64>,
        output: Option<f64>,
        cache_read: Option<f64>,
        cache_write: Option<f64>,
    ) -> Option<Self> {
        let pricing = Self {
            input: input?,
            output: output?,
            cache_read,
            cache_write,
            cache_write_long: None,
            server_tool_request: None,
        };
        pricing.is_proper().then_some(pricing)
    }

    /// Whether every price is a number and none is negative.
    pub fn is_proper(&self) -> bool {
        [
            Some(self.input),
            Some(self.output),
            self.cache_read,
            self.cache_write,
            self.cache_write_long,
            self.server_tool_request,
        ]
        .into_iter()
        .flatten()
        .all(|price| price.is_finite() && price >= 0.0)
    }

    /// What an answer cost. Tokens that the provider does not report cost nothing here: fill them in
    /// before.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let read = usage.cache_read_tokens.unwrap_or(0);
        let long = usage.cache_write_long_tokens.unwrap_or(0);
        let short = usage.cache_write_tokens.unwrap_or(0).saturating_sub(long);
        // The input is the whole prompt, the cached part of it included.
        let plain = usage
            .input_tokens
            .unwrap_or(0)
            .saturating_sub(read)
            .saturating_sub(short)
            .saturating_sub(long);
        let short_price = self.cache_write.unwrap_or(self.input);
        let long_price = self
            .cache_write_long
            .unwrap_or_else(|| f64::max(2.0 * self.input, short_price));
        let millionths = of(plain) * self.input
            + of(usage.output_tokens.unwrap_or(0)) * self.output
            + of(read) * self.cache_read.unwrap_or(self.input)
            + of(short) * short_price
            + of(long) * long_price;
        let requests = usage.server_tool_requests.unwrap_or(0);
        Cost {
            usd: millionths / 1e6 + of(requests) * self.server_tool_request.unwrap_or(0.0),
            unpriced_requests: match self.server_tool_request {
                Some(_) => 0,
                None => requests,
            },
        }
    }
}

/// Beyond 2^53 tokens the last digits are lost, and nobody can pay them anyway.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn of(count: u64) -> f64 {
    count as f64
}

//! Prices of models, and the costs of model answers.

use serde::{Deserialize, Serialize};
use switchboard_domain::Usage;

/// Price of a model in US dollars per million tokens, from a price list or the configuration.
///
/// A token price that is `None` is derived from the other prices, as its field describes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pricing {
    /// Price in US dollars per million input tokens that are not cached.
    pub input: f64,
    /// Price in US dollars per million output tokens, including reasoning.
    pub output: f64,
    /// Price in US dollars per million input tokens read from the cache. Defaults to `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Price in US dollars per million input tokens written to the cache. Defaults to `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Price in US dollars per million input tokens that are written to the cache for the longer
    /// lifetime. Defaults to twice `input` (Anthropic's rule for one-hour cache writes), or to
    /// `cache_write` if that is higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long: Option<f64>,
    /// Price of one request to a built-in tool of the provider, such as a web search, in US
    /// dollars. Without this price, [`AnswerCost::unpriced_requests`] counts these requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_tool_request: Option<f64>,
}

/// Cost of one model answer. Requests to built-in tools of the provider, such as a web search, are
/// counted separately if their price is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct AnswerCost {
    /// Cost of the model answer in US dollars.
    pub usd: f64,
    /// Number of requests to built-in tools of the provider without a price. They are not part of
    /// `usd`.
    pub unpriced_requests: u64,
}

impl Pricing {
    /// Creates a price from a price list. Returns `None` if the price of input or output is missing
    /// or a price is invalid. A free model has the price 0.
    pub fn from_price_list(
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
        pricing.has_valid_prices().then_some(pricing)
    }

    /// Returns whether every price is a finite number of at least 0.
    pub fn has_valid_prices(&self) -> bool {
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

    /// Computes the cost of a model answer. Token counts that are `None` cost nothing.
    pub fn compute_cost(&self, usage: &Usage) -> AnswerCost {
        let read = usage.cache_read_tokens.unwrap_or(0);
        let long = usage.cache_write_long_tokens.unwrap_or(0);
        let short = usage.cache_write_tokens.unwrap_or(0).saturating_sub(long);
        // The reported input tokens include cached tokens, which have their own prices.
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
        let millionths = token_count_to_f64(plain) * self.input
            + token_count_to_f64(usage.output_tokens.unwrap_or(0)) * self.output
            + token_count_to_f64(read) * self.cache_read.unwrap_or(self.input)
            + token_count_to_f64(short) * short_price
            + token_count_to_f64(long) * long_price;
        let requests = usage.server_tool_requests.unwrap_or(0);
        AnswerCost {
            usd: millionths / 1e6
                + token_count_to_f64(requests) * self.server_tool_request.unwrap_or(0.0),
            unpriced_requests: match self.server_tool_request {
                Some(_) => 0,
                None => requests,
            },
        }
    }
}

/// Converts a token count to a floating-point number. Above 2^53 the last digits are lost.
#[expect(clippy::cast_precision_loss, reason = "see above")]
fn token_count_to_f64(count: u64) -> f64 {
    count as f64
}

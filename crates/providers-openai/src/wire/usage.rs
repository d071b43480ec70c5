//! Breakdowns of token counts, which Chat Completions and Responses share.

use serde::Deserialize;
use switchboard_providers_common::lenient::{
    deserialize_lenient_object, deserialize_lenient_scalar,
};

/// Breakdown of a request's input tokens: tokens read from and written to a cache.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct InputTokenDetails {
    /// Number of input tokens read from a cache.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub cached_tokens: Option<u64>,
    /// Number of input tokens written to a cache.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub cache_write_tokens: Option<u64>,
    /// Number of input tokens written to a cache, by cache lifetime.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub cache_write_tokens_details: Option<CacheWriteDetails>,
}

/// Breakdown of the tokens written to a cache, by the lifetime of the cache entry.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CacheWriteDetails {
    /// Number of tokens that are cached for twelve hours. The others expire in thirty minutes.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub ttl_12h_tokens: Option<u64>,
}

/// Breakdown of an answer's output tokens: how many were used for reasoning.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct OutputTokenDetails {
    /// Number of output tokens that the model used for reasoning.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub reasoning_tokens: Option<u64>,
}

impl InputTokenDetails {
    /// Returns the number of input tokens that were written to a cache for twelve hours, the longer
    /// of the two lifetimes. Returns `None` if the server did not report it.
    pub(crate) fn long_cache_write_tokens(&self) -> Option<u64> {
        self.cache_write_tokens_details.as_ref()?.ttl_12h_tokens
    }
}

//! Details of token counts.

use serde::Deserialize;
use switchboard_providers_common::lenient::lenient;

/// Details of the input tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct InputDetails {
    /// Tokens read from a cache.
    #[serde(deserialize_with = "lenient")]
    pub cached_tokens: Option<u64>,
    /// Tokens written to a cache.
    #[serde(deserialize_with = "lenient")]
    pub cache_write_tokens: Option<u64>,
    /// Tokens written to a cache, by lifetime.
    #[serde(deserialize_with = "lenient")]
    pub cache_write_tokens_details: Option<CacheWriteDetails>,
}

/// Details of the tokens written to a cache.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CacheWriteDetails {
    /// Tokens with a lifetime of twelve hours. Other tokens have thirty minutes.
    #[serde(deserialize_with = "lenient")]
    pub ttl_12h_tokens: Option<u64>,
}

/// Details of the output tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct OutputDetails {
    /// Output tokens for reasoning.
    #[serde(deserialize_with = "lenient")]
    pub reasoning_tokens: Option<u64>,
}

impl InputDetails {
    /// Returns the tokens written with the longer of the two lifetimes.
    pub(crate) fn long_cache_writes(&self) -> Option<u64> {
        self.cache_write_tokens_details.as_ref()?.ttl_12h_tokens
    }
}

//! Details of token counts.

use serde::Deserialize;
use switchboard_providers_common::lenient::{lenient, lenient_object};

/// Details about the input tokens of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct InputDetails {
    /// Number of input tokens read from a cache.
    #[serde(deserialize_with = "lenient")]
    pub cached_tokens: Option<u64>,
    /// Number of input tokens written to a cache.
    #[serde(deserialize_with = "lenient")]
    pub cache_write_tokens: Option<u64>,
    /// Number of input tokens written to a cache, by cache lifetime.
    #[serde(deserialize_with = "lenient_object")]
    pub cache_write_tokens_details: Option<CacheWriteDetails>,
}

/// Details about the tokens written to a cache.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CacheWriteDetails {
    /// Number of tokens with a lifetime of twelve hours. The others live for thirty minutes.
    #[serde(deserialize_with = "lenient")]
    pub ttl_12h_tokens: Option<u64>,
}

/// Details about the output tokens of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct OutputDetails {
    /// Number of output tokens for reasoning.
    #[serde(deserialize_with = "lenient")]
    pub reasoning_tokens: Option<u64>,
}

impl InputDetails {
    /// Returns the number of tokens written with the longer of the two lifetimes.
    pub(crate) fn long_cache_writes(&self) -> Option<u64> {
        self.cache_write_tokens_details.as_ref()?.ttl_12h_tokens
    }
}

//! Token counts within others, which both wires have under the same names.

use serde::Deserialize;
use switchboard_providers_common::lenient::lenient;

/// Token counts within the input.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct InputDetails {
    /// Read from a cache.
    #[serde(deserialize_with = "lenient")]
    pub cached_tokens: Option<u64>,
    /// Written to a cache.
    #[serde(deserialize_with = "lenient")]
    pub cache_write_tokens: Option<u64>,
    /// Those written to a cache, by how long they are kept.
    #[serde(deserialize_with = "lenient")]
    pub cache_write_tokens_details: Option<CacheWriteDetails>,
}

/// Token counts within those written to a cache.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CacheWriteDetails {
    /// Kept for twelve hours; the others are kept for thirty minutes.
    #[serde(deserialize_with = "lenient")]
    pub ttl_12h_tokens: Option<u64>,
}

/// Token counts within the output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct OutputDetails {
    /// Reasoning.
    #[serde(deserialize_with = "lenient")]
    pub reasoning_tokens: Option<u64>,
}

impl InputDetails {
    /// Those written to a cache that are kept for the longer of two times.
    pub(crate) fn kept_long(&self) -> Option<u64> {
        self.cache_write_tokens_details.as_ref()?.ttl_12h_tokens
    }
}

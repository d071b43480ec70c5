//! Response types of the Messages API. A field of the wrong type counts as missing, so that one
//! unexpected field does not make the answer unreadable.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use switchboard_domain::{JsonObject, Usage};
use switchboard_providers_common::lenient::{
    deserialize_lenient_list, deserialize_lenient_object, deserialize_lenient_scalar,
};

/// An event of a response stream. A response without streaming is read as a `message` event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StreamEvent {
    /// Type of the event: `message_start`, `content_block_start` and others, `message` for a
    /// response without streaming, or `error`.
    #[serde(rename = "type", deserialize_with = "deserialize_lenient_scalar")]
    pub kind: Option<String>,
    /// Index of the content block that the event belongs to.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub index: Option<u64>,
    /// The message in a `message_start` event.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub message: Option<MessageStart>,
    /// The content block in a `content_block_start` event.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub content_block: Option<JsonObject>,
    /// The change of a content block in a `content_block_delta` event, or of the message in a
    /// `message_delta` event.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub delta: Option<JsonObject>,
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub usage: Option<UsageReport>,
    /// The error in an `error` event.
    pub error: Option<Value>,
}

/// The message in a `message_start` event, or a complete message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct MessageStart {
    /// Id of the message, which identifies the answer.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub id: Option<String>,
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub model: Option<String>,
    /// The content blocks. Empty at the start of a stream.
    #[serde(deserialize_with = "deserialize_lenient_list")]
    pub content: Vec<JsonObject>,
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub usage: Option<UsageReport>,
    /// The API's reason why the answer ended, such as `end_turn`.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub stop_reason: Option<String>,
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub stop_details: Option<StopDetails>,
    /// The container of the code execution tool, which later requests refer to.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub container: Option<JsonObject>,
}

/// The `delta` of a `message_delta` event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct MessageDelta {
    /// The API's reason why the answer ended, such as `end_turn`.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub stop_reason: Option<String>,
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub stop_details: Option<StopDetails>,
    /// The container of the code execution tool, which later requests refer to.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub container: Option<JsonObject>,
}

/// The details of a refusal to answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StopDetails {
    /// Name of the violated policy, such as `cyber`.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub category: Option<String>,
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub explanation: Option<String>,
}

/// Token counts since the start of the answer. A report may lack some of the counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UsageReport {
    /// Number of prompt tokens, excluding those read from or written to a cache.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub input_tokens: Option<u64>,
    /// Number of prompt tokens written to a cache.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Numbers of prompt tokens written to a cache, by cache lifetime.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub cache_creation: Option<CacheCreation>,
    /// Number of prompt tokens read from a cache.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub cache_read_input_tokens: Option<u64>,
    /// Number of answer tokens, including thinking.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub output_tokens: Option<u64>,
    /// Breakdown of the answer tokens: how many were used for thinking.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub output_tokens_details: Option<OutputDetails>,
    /// Number of server tool requests, summed over the fields `web_search_requests`,
    /// `web_fetch_requests` and others.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub server_tool_use: Option<ServerToolUse>,
}

/// The numbers of prompt tokens written to a cache, by cache lifetime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CacheCreation {
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub ephemeral_5m_input_tokens: Option<u64>,
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub ephemeral_1h_input_tokens: Option<u64>,
}

impl CacheCreation {
    /// Returns the sum of the counts by lifetime, or `None` if no count is known.
    fn sum_cache_tokens(self) -> Option<u64> {
        match (
            self.ephemeral_5m_input_tokens,
            self.ephemeral_1h_input_tokens,
        ) {
            (Some(five), Some(hour)) => Some(five.saturating_add(hour)),
            (five, hour) => five.or(hour),
        }
    }
}

/// The total number of server tool requests: the sum of all fields that end with `_requests`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerToolUse(pub Option<u64>);

impl<'de> Deserialize<'de> for ServerToolUse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let counts = JsonObject::deserialize(deserializer)?;
        let requests = counts
            .iter()
            .filter(|(name, _)| name.ends_with("_requests"));
        let requests = requests.filter_map(|(_, count)| count.as_u64());
        Ok(Self(requests.reduce(u64::saturating_add)))
    }
}

/// Breakdown of the answer tokens: how many were used for thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OutputDetails {
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub thinking_tokens: Option<u64>,
}

impl UsageReport {
    /// Merges a later usage report of the same answer. For each count, the larger value is kept,
    /// because some servers report zeros at the end.
    pub(crate) fn merge_later_usage(&mut self, later: Self) {
        let written = later.cache_creation_input_tokens;
        let written = written.or_else(|| later.cache_creation?.sum_cache_tokens());
        let details = self.output_tokens_details.get_or_insert_default();
        let later_details = later.output_tokens_details.unwrap_or_default();
        let created = self.cache_creation.get_or_insert_default();
        let later_created = later.cache_creation.unwrap_or_default();
        let requests = self.server_tool_use.get_or_insert_default();
        let later_requests = later.server_tool_use.unwrap_or_default();
        for (mine, theirs) in [
            (&mut self.input_tokens, later.input_tokens),
            (&mut self.cache_creation_input_tokens, written),
            (
                &mut self.cache_read_input_tokens,
                later.cache_read_input_tokens,
            ),
            (&mut self.output_tokens, later.output_tokens),
            (&mut details.thinking_tokens, later_details.thinking_tokens),
            (
                &mut created.ephemeral_5m_input_tokens,
                later_created.ephemeral_5m_input_tokens,
            ),
            (
                &mut created.ephemeral_1h_input_tokens,
                later_created.ephemeral_1h_input_tokens,
            ),
            (&mut requests.0, later_requests.0),
        ] {
            *mine = (*mine).max(theirs);
        }
    }
}

impl From<UsageReport> for Usage {
    fn from(report: UsageReport) -> Self {
        let written = report.cache_creation_input_tokens;
        let read = report.cache_read_input_tokens;
        Self {
            input_tokens: report.input_tokens.map(|uncached| {
                uncached
                    .saturating_add(written.unwrap_or(0))
                    .saturating_add(read.unwrap_or(0))
            }),
            output_tokens: report.output_tokens,
            cache_read_tokens: read,
            cache_write_tokens: written,
            cache_write_long_tokens: report
                .cache_creation
                .and_then(|created| created.ephemeral_1h_input_tokens),
            reasoning_tokens: report
                .output_tokens_details
                .and_then(|details| details.thinking_tokens),
            server_tool_requests: report.server_tool_use.and_then(|requests| requests.0),
        }
    }
}

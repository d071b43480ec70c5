//! Responses. A field of the wrong type counts as missing, so that one unexpected field does not
//! lose the answer.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use switchboard_domain::{JsonObject, Usage};
use switchboard_providers_common::lenient::{lenient, lenient_list};

/// An event of a stream. A whole body is a `message` event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Envelope {
    /// `message_start`, `content_block_start`, …; `message` for a whole body; `error`.
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub kind: Option<String>,
    /// The index of the block.
    #[serde(deserialize_with = "lenient")]
    pub index: Option<u64>,
    /// The message of `message_start`.
    #[serde(deserialize_with = "lenient")]
    pub message: Option<MessageStart>,
    /// The block of `content_block_start`.
    #[serde(deserialize_with = "lenient")]
    pub content_block: Option<JsonObject>,
    /// The change of a block or of the message.
    #[serde(deserialize_with = "lenient")]
    pub delta: Option<JsonObject>,
    #[serde(deserialize_with = "lenient")]
    pub usage: Option<UsageReport>,
    /// The error of a failed answer.
    pub error: Option<Value>,
}

/// A message in `message_start`, or a whole message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct MessageStart {
    /// The id of the message.
    #[serde(deserialize_with = "lenient")]
    pub id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub model: Option<String>,
    /// The blocks. Empty at the start of a stream.
    #[serde(deserialize_with = "lenient_list")]
    pub content: Vec<JsonObject>,
    #[serde(deserialize_with = "lenient")]
    pub usage: Option<UsageReport>,
    /// The reason for the end.
    #[serde(deserialize_with = "lenient")]
    pub stop_reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub stop_details: Option<StopDetails>,
    /// The container of the code execution tool.
    #[serde(deserialize_with = "lenient")]
    pub container: Option<JsonObject>,
}

/// The `delta` of a `message_delta` event.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct MessageDelta {
    /// The reason for the end.
    #[serde(deserialize_with = "lenient")]
    pub stop_reason: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub stop_details: Option<StopDetails>,
    /// The container of the code execution tool.
    #[serde(deserialize_with = "lenient")]
    pub container: Option<JsonObject>,
}

/// Details of a refusal.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StopDetails {
    /// The policy, such as `cyber`.
    #[serde(deserialize_with = "lenient")]
    pub category: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub explanation: Option<String>,
}

/// Cumulative token counts. Each report may lack some of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UsageReport {
    /// Prompt tokens, *without* those that were read from or written to a cache.
    #[serde(deserialize_with = "lenient")]
    pub input_tokens: Option<u64>,
    /// Tokens written to a cache.
    #[serde(deserialize_with = "lenient")]
    pub cache_creation_input_tokens: Option<u64>,
    /// Tokens written to a cache, by lifetime.
    #[serde(deserialize_with = "lenient")]
    pub cache_creation: Option<CacheCreation>,
    /// Tokens read from a cache.
    #[serde(deserialize_with = "lenient")]
    pub cache_read_input_tokens: Option<u64>,
    /// Tokens of the answer, with thinking.
    #[serde(deserialize_with = "lenient")]
    pub output_tokens: Option<u64>,
    /// Details of the answer's tokens.
    #[serde(deserialize_with = "lenient")]
    pub output_tokens_details: Option<OutputDetails>,
    /// Requests of the API's own tools: `web_search_requests`, `web_fetch_requests` and others.
    #[serde(deserialize_with = "lenient")]
    pub server_tool_use: Option<ServerToolUse>,
}

/// Tokens written to a cache, by lifetime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CacheCreation {
    #[serde(deserialize_with = "lenient")]
    pub ephemeral_5m_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub ephemeral_1h_input_tokens: Option<u64>,
}

impl CacheCreation {
    /// Returns the sum of the known counts.
    fn sum(self) -> Option<u64> {
        match (
            self.ephemeral_5m_input_tokens,
            self.ephemeral_1h_input_tokens,
        ) {
            (Some(five), Some(hour)) => Some(five.saturating_add(hour)),
            (five, hour) => five.or(hour),
        }
    }
}

/// The number of requests of the API's own tools: the sum of all fields that end with `_requests`.
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

/// Details of the answer's tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OutputDetails {
    #[serde(deserialize_with = "lenient")]
    pub thinking_tokens: Option<u64>,
}

impl UsageReport {
    /// Merges a later report of the same answer. The larger count wins, because some servers end
    /// with zeros.
    pub(crate) fn update(&mut self, later: Self) {
        let written = later.cache_creation_input_tokens;
        let written = written.or_else(|| later.cache_creation?.sum());
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

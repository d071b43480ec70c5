//! What comes in. Every field forgives: a value of the wrong type counts as absent, so that one odd
//! field never costs the answer.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use switchboard_domain::{JsonObject, Usage};
use switchboard_providers_common::lenient::{lenient, lenient_list};

/// An event of a stream. A whole body is a `message` without an envelope.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Envelope {
    /// `message_start`, `content_block_start`, …; `message` for a whole body; `error`.
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub kind: Option<String>,
    /// Which block.
    #[serde(deserialize_with = "lenient")]
    pub index: Option<u64>,
    /// How the message begins.
    #[serde(deserialize_with = "lenient")]
    pub message: Option<MessageHead>,
    /// How a block begins.
    #[serde(deserialize_with = "lenient")]
    pub content_block: Option<JsonObject>,
    /// What is new in a block or in the message.
    #[serde(deserialize_with = "lenient")]
    pub delta: Option<JsonObject>,
    /// Tokens so far.
    #[serde(deserialize_with = "lenient")]
    pub usage: Option<UsageReport>,
    /// An error in place of an answer.
    pub error: Option<Value>,
}

/// A message: as it begins, or whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct MessageHead {
    /// The id of the answer.
    #[serde(deserialize_with = "lenient")]
    pub id: Option<String>,
    /// The model that answers.
    #[serde(deserialize_with = "lenient")]
    pub model: Option<String>,
    /// The blocks; none yet at the start of a stream.
    #[serde(deserialize_with = "lenient_list")]
    pub content: Vec<JsonObject>,
    /// Tokens so far.
    #[serde(deserialize_with = "lenient")]
    pub usage: Option<UsageReport>,
    /// Why and how it ended.
    #[serde(flatten)]
    pub end: WireDelta,
}

/// What a `message_delta` says of the message as a whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct WireDelta {
    /// Why it ended.
    #[serde(deserialize_with = "lenient")]
    pub stop_reason: Option<String>,
    /// More about it.
    #[serde(deserialize_with = "lenient")]
    pub stop_details: Option<StopDetails>,
    /// Where the model ran code, if it did.
    #[serde(deserialize_with = "lenient")]
    pub container: Option<JsonObject>,
}

/// More about a refusal.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StopDetails {
    /// The policy, such as `cyber`.
    #[serde(deserialize_with = "lenient")]
    pub category: Option<String>,
    /// For people.
    #[serde(deserialize_with = "lenient")]
    pub explanation: Option<String>,
}

/// Token counts, cumulative over the answer; each report may leave some out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UsageReport {
    /// Of the prompt, *without* what was read from or written to a cache.
    #[serde(deserialize_with = "lenient")]
    pub input_tokens: Option<u64>,
    /// Written to a cache.
    #[serde(deserialize_with = "lenient")]
    pub cache_creation_input_tokens: Option<u64>,
    /// The same by lifetime.
    #[serde(deserialize_with = "lenient")]
    pub cache_creation: Option<CacheCreation>,
    /// Read from a cache.
    #[serde(deserialize_with = "lenient")]
    pub cache_read_input_tokens: Option<u64>,
    /// Of the answer, thinking included.
    #[serde(deserialize_with = "lenient")]
    pub output_tokens: Option<u64>,
    /// Of the answer.
    #[serde(deserialize_with = "lenient")]
    pub output_tokens_details: Option<OutputDetails>,
    /// What the API's own tools did: `web_search_requests`, `web_fetch_requests` and the like.
    #[serde(deserialize_with = "lenient")]
    pub server_tool_use: Option<ServerToolUse>,
}

/// Tokens written to a cache, by lifetime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CacheCreation {
    /// For five minutes.
    #[serde(deserialize_with = "lenient")]
    pub ephemeral_5m_input_tokens: Option<u64>,
    /// For an hour.
    #[serde(deserialize_with = "lenient")]
    pub ephemeral_1h_input_tokens: Option<u64>,
}

impl CacheCreation {
    /// Both together, as far as they are said.
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

/// Requests that the API's own tools made, summed: every number whose name ends with `_requests`.
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

/// Token counts within the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct OutputDetails {
    /// Thinking.
    #[serde(deserialize_with = "lenient")]
    pub thinking_tokens: Option<u64>,
}

impl UsageReport {
    /// Takes over a later report of the same answer. Counts are cumulative, so they never fall:
    /// some servers end with zeros in place of what they said before.
    pub(crate) fn update(&mut self, later: Self) {
        let written = later.cache_creation_input_tokens;
        let written = written.or_else(|| later.cache_creation?.sum());
        let details = self.output_tokens_details.get_or_insert_default();
        let later_details = later.output_tokens_details.unwrap_or_default();
        let created = self.cache_creation.get_or_insert_default();
        let later_created = later.cache_creation.unwrap_or_default();
        let asked = self.server_tool_use.get_or_insert_default();
        let later_asked = later.server_tool_use.unwrap_or_default();
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
            (&mut asked.0, later_asked.0),
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
            server_tool_requests: report.server_tool_use.and_then(|asked| asked.0),
        }
    }
}

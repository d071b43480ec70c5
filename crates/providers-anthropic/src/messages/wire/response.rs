//! What comes in. Every field forgives: a value of the wrong type counts as absent, so that one odd
//! field never costs the answer.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;
use switchboard_domain::{JsonObject, Usage};

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
        for (mine, theirs) in [
            (&mut self.input_tokens, later.input_tokens),
            (&mut self.cache_creation_input_tokens, written),
            (
                &mut self.cache_read_input_tokens,
                later.cache_read_input_tokens,
            ),
            (&mut self.output_tokens, later.output_tokens),
            (&mut details.thinking_tokens, later_details.thinking_tokens),
        ] {
            *mine = (*mine).max(theirs);
        }
        self.cache_creation = later.cache_creation.or(self.cache_creation);
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
            reasoning_tokens: report
                .output_tokens_details
                .and_then(|details| details.thinking_tokens),
        }
    }
}

/// The value if it is of the right type, else the default.
fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// The elements that are of the right type; none for `null` and anything else that is no list.
fn lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let Value::Array(list) = Value::deserialize(deserializer)? else {
        return Ok(Vec::new());
    };
    let elements = list.into_iter();
    Ok(elements
        .filter_map(|element| serde_json::from_value(element).ok())
        .collect())
}

//! Response types. A field of the wrong type counts as missing.

use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::{JsonObject, Usage};
use switchboard_providers_common::lenient::{lenient, lenient_list, lenient_object};

use crate::wire::usage::{InputDetails, OutputDetails};

/// An event of a streamed answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    /// Type of the event.
    #[serde(deserialize_with = "lenient")]
    pub r#type: Option<String>,
    /// State of the whole answer, in the first events and in the last one.
    #[serde(deserialize_with = "lenient_object")]
    pub response: Option<Response>,
    /// Item that starts or is complete.
    #[serde(deserialize_with = "lenient_object")]
    pub item: Option<JsonObject>,
    /// Part of a message or of reasoning that starts or is complete.
    #[serde(deserialize_with = "lenient_object")]
    pub part: Option<JsonObject>,
    /// Id of the item that the event is about.
    #[serde(deserialize_with = "lenient")]
    pub item_id: Option<String>,
    /// Index of the item in the answer.
    #[serde(deserialize_with = "lenient")]
    pub output_index: Option<u64>,
    /// Index of the content part in the item.
    #[serde(deserialize_with = "lenient")]
    pub content_index: Option<u64>,
    /// Index of the summary in the reasoning item.
    #[serde(deserialize_with = "lenient")]
    pub summary_index: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub delta: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub refusal: Option<String>,
    /// Whole arguments of a call, as JSON text.
    pub arguments: Option<Value>,
}

/// An answer of the Responses API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Response {
    #[serde(deserialize_with = "lenient")]
    pub id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub model: Option<String>,
    /// Status: `completed`, `incomplete`, `failed`, `cancelled`, `queued` or `in_progress`.
    #[serde(deserialize_with = "lenient")]
    pub status: Option<String>,
    #[serde(deserialize_with = "some_list")]
    pub output: Option<Vec<JsonObject>>,
    #[serde(deserialize_with = "lenient_object")]
    pub usage: Option<UsageReport>,
    /// Error object of a failed answer.
    pub error: Option<Value>,
    /// Details about an incomplete answer.
    #[serde(deserialize_with = "lenient_object")]
    pub incomplete_details: Option<IncompleteDetails>,
}

/// Details about an incomplete answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct IncompleteDetails {
    /// Reason why the answer is incomplete: `max_output_tokens`, `content_filter`, …
    #[serde(deserialize_with = "lenient")]
    pub reason: Option<String>,
}

/// Token counts of a request and its answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct UsageReport {
    /// Number of input tokens, including cached ones.
    #[serde(deserialize_with = "lenient")]
    pub input_tokens: Option<u64>,
    /// Details about the input tokens.
    #[serde(deserialize_with = "lenient_object")]
    pub input_tokens_details: Option<InputDetails>,
    /// Number of output tokens, including reasoning.
    #[serde(deserialize_with = "lenient")]
    pub output_tokens: Option<u64>,
    /// Details about the output tokens.
    #[serde(deserialize_with = "lenient_object")]
    pub output_tokens_details: Option<OutputDetails>,
    /// Number of server tool calls. Only xAI sends it
    /// (docs.x.ai/developers/tools/tool-usage-details).
    #[serde(deserialize_with = "lenient")]
    pub num_server_side_tools_used: Option<u64>,
}

impl From<UsageReport> for Usage {
    fn from(report: UsageReport) -> Self {
        let input = report.input_tokens_details.unwrap_or_default();
        let output = report.output_tokens_details.unwrap_or_default();
        Self {
            input_tokens: report.input_tokens,
            output_tokens: report.output_tokens,
            cache_read_tokens: input.cached_tokens,
            cache_write_tokens: input.cache_write_tokens,
            cache_write_long_tokens: input.long_cache_writes(),
            reasoning_tokens: output.reasoning_tokens,
            server_tool_requests: report.num_server_side_tools_used,
        }
    }
}

fn some_list<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<JsonObject>>, D::Error> {
    lenient_list(deserializer).map(Some)
}

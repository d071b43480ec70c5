//! Response types of the Responses API. A field of the wrong type counts as missing.

use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::{JsonObject, Usage};
use switchboard_providers_common::lenient::{
    deserialize_lenient_list, deserialize_lenient_object, deserialize_lenient_scalar,
};

use crate::wire::usage::{InputTokenDetails, OutputTokenDetails};

/// An event of a streamed answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    /// Type of the event, such as `response.completed`.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub r#type: Option<String>,
    /// The whole answer so far, in the first and the last events of a stream.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub response: Option<Response>,
    /// Output item that the event starts or completes.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub item: Option<JsonObject>,
    /// Id of the item that the event is about.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub item_id: Option<String>,
    /// Index of the event's item in the answer.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub output_index: Option<u64>,
    /// Index of the event's content part in the item.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub content_index: Option<u64>,
    /// Index of the event's part of the reasoning summary, in the item's `summary`.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub summary_index: Option<u64>,
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub delta: Option<String>,
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub text: Option<String>,
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub refusal: Option<String>,
    /// Whole arguments of a call, as JSON text.
    pub arguments: Option<Value>,
}

/// An answer of the Responses API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Response {
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub id: Option<String>,
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub model: Option<String>,
    /// Status of the answer: `completed`, `incomplete`, `failed`, `cancelled`, `in_progress`, …
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub status: Option<String>,
    #[serde(deserialize_with = "deserialize_lenient_list")]
    pub output: Vec<JsonObject>,
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub usage: Option<UsageReport>,
    /// Error object of a failed answer.
    pub error: Option<Value>,
    /// Object with the reason why the answer is incomplete.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub incomplete_details: Option<IncompleteDetails>,
}

/// Field `incomplete_details`: why the answer is incomplete.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct IncompleteDetails {
    /// Reason why the answer is incomplete: `max_output_tokens`, `content_filter`, …
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub reason: Option<String>,
}

/// Token counts of a request and its answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct UsageReport {
    /// Number of input tokens, including cached ones.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub input_tokens: Option<u64>,
    /// Breakdown of the input tokens: how many were read from and written to a cache.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub input_tokens_details: Option<InputTokenDetails>,
    /// Number of output tokens, including reasoning.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub output_tokens: Option<u64>,
    /// Breakdown of the output tokens: how many were used for reasoning.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub output_tokens_details: Option<OutputTokenDetails>,
    /// Number of calls of tools that the server ran. Only xAI sends it
    /// (docs.x.ai/developers/tools/tool-usage-details).
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
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
            cache_write_long_tokens: input.long_cache_write_tokens(),
            reasoning_tokens: output.reasoning_tokens,
            server_tool_requests: report.num_server_side_tools_used,
        }
    }
}

//! Responses. A field of the wrong type counts as missing, so that one unexpected field does not
//! lose the answer.

use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::{JsonObject, Usage};
use switchboard_providers_common::lenient::{lenient, lenient_list};

use crate::wire::usage::{InputDetails, OutputDetails};

/// A chunk of a stream, or a whole body, which has `message` instead of `delta`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Chunk {
    /// The id of the answer. Empty in Azure's first chunk.
    #[serde(deserialize_with = "lenient")]
    pub id: Option<String>,
    /// The model. Empty in Azure's first chunk.
    #[serde(deserialize_with = "lenient")]
    pub model: Option<String>,
    /// The answers. Empty in the chunk with the usage and in Azure's first chunk.
    #[serde(deserialize_with = "lenient_list")]
    pub choices: Vec<Choice>,
    /// The token counts. `null` in all chunks except the last.
    #[serde(deserialize_with = "lenient")]
    pub usage: Option<Box<UsageReport>>,
    /// The error of a failed answer.
    pub error: Option<Value>,
    /// `error` for an error without the field `error` (vLLM).
    #[serde(deserialize_with = "lenient")]
    pub object: Option<String>,
}

/// One answer. Large fields are boxed, because a chunk is created for every token.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Choice {
    /// The index among several answers (`n`).
    #[serde(deserialize_with = "lenient")]
    pub index: Option<u64>,
    /// The change, in a stream.
    #[serde(deserialize_with = "lenient")]
    pub delta: Option<Box<Delta>>,
    /// The whole message, in a whole body.
    #[serde(deserialize_with = "lenient")]
    pub message: Option<Box<Delta>>,
    /// The reason for the end.
    #[serde(deserialize_with = "lenient")]
    pub finish_reason: Option<String>,
}

/// The change of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Delta {
    #[serde(deserialize_with = "lenient")]
    pub content: Option<Content>,
    /// The text of a refusal.
    #[serde(deserialize_with = "lenient")]
    pub refusal: Option<String>,
    /// Reasoning (`DeepSeek`, vLLM).
    #[serde(deserialize_with = "lenient")]
    pub reasoning_content: Option<String>,
    /// Reasoning (Groq, OpenRouter, newer vLLM).
    #[serde(deserialize_with = "lenient")]
    pub reasoning: Option<String>,
    /// Reasoning with state that must be sent back (OpenRouter).
    #[serde(deserialize_with = "lenient_list")]
    pub reasoning_details: Vec<JsonObject>,
    /// Reasoning in Anthropic's form (LiteLLM).
    #[serde(deserialize_with = "lenient_list")]
    pub thinking_blocks: Vec<JsonObject>,
    #[serde(deserialize_with = "lenient_list")]
    pub tool_calls: Vec<ToolCallDelta>,
    /// The only call, in the form before `tool_calls`.
    #[serde(deserialize_with = "lenient")]
    pub function_call: Option<FunctionDelta>,
}

/// Text, or typed pieces of text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    /// Pieces, each with a `type` (Mistral).
    Pieces(Vec<Value>),
}

/// The change of a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolCallDelta {
    /// The index of the call. Some servers omit it.
    #[serde(deserialize_with = "lenient")]
    pub index: Option<u64>,
    /// The id. Missing, blank or `"null"` on some servers.
    #[serde(deserialize_with = "lenient")]
    pub id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub function: Option<FunctionDelta>,
    /// Contains a thought signature that must be sent back (Gemini's compatible endpoint).
    pub extra_content: Option<Value>,
    /// Contains a thought signature that must be sent back (LiteLLM).
    pub provider_specific_fields: Option<Value>,
}

/// The change of a function call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FunctionDelta {
    /// The whole name. Some servers repeat it in each chunk.
    #[serde(deserialize_with = "lenient")]
    pub name: Option<String>,
    /// A piece of the JSON text. Some servers send the object itself.
    pub arguments: Option<Value>,
}

/// Token counts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct UsageReport {
    /// Prompt tokens, with those from a cache.
    #[serde(deserialize_with = "lenient")]
    pub prompt_tokens: Option<u64>,
    /// Tokens of the answer. Some servers (xAI, Gemini's endpoint) do not include reasoning.
    #[serde(deserialize_with = "lenient")]
    pub completion_tokens: Option<u64>,
    /// All tokens, with reasoning.
    #[serde(deserialize_with = "lenient")]
    pub total_tokens: Option<u64>,
    /// Details of the prompt tokens.
    #[serde(deserialize_with = "lenient")]
    pub prompt_tokens_details: Option<InputDetails>,
    /// Details of the answer's tokens.
    #[serde(deserialize_with = "lenient")]
    pub completion_tokens_details: Option<OutputDetails>,
}

impl From<UsageReport> for Usage {
    fn from(report: UsageReport) -> Self {
        let prompt = report.prompt_tokens_details.unwrap_or_default();
        let completion = report.completion_tokens_details.unwrap_or_default();
        // Tokens in neither count are reasoning, which is output too.
        let written = report.prompt_tokens.zip(report.total_tokens);
        let written = written.and_then(|(prompt, total)| total.checked_sub(prompt));
        Self {
            input_tokens: report.prompt_tokens,
            output_tokens: report
                .completion_tokens
                .map(|count| count.max(written.unwrap_or(count))),
            cache_read_tokens: prompt.cached_tokens,
            cache_write_tokens: prompt.cache_write_tokens,
            cache_write_long_tokens: prompt.long_cache_writes(),
            reasoning_tokens: completion.reasoning_tokens,
            ..Self::default()
        }
    }
}

impl Content {
    /// Calls `each` with the text of each piece, and whether it is thinking.
    pub(crate) fn for_each_text(&self, mut each: impl FnMut(bool, &str)) {
        match self {
            Self::Text(text) => each(false, text),
            Self::Pieces(pieces) => {
                for piece in pieces {
                    match piece.get("thinking") {
                        Some(Value::Array(thoughts)) => {
                            for text in thoughts.iter().filter_map(|piece| piece.get("text")) {
                                each(true, text.as_str().unwrap_or_default());
                            }
                        }
                        Some(thought) => each(true, thought.as_str().unwrap_or_default()),
                        None => each(
                            false,
                            piece
                                .get("text")
                                .and_then(Value::as_str)
                                .unwrap_or_default(),
                        ),
                    }
                }
            }
        }
    }
}

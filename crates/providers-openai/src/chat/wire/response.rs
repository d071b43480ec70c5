//! What comes in. Every field forgives: a value of the wrong type counts as absent, so that one odd
//! field never costs the answer.

use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::{JsonObject, Usage};
use switchboard_providers_common::lenient::{lenient, lenient_list};

use crate::usage::{InputDetails, OutputDetails};

/// A chunk of a stream, or a whole body, which differs only in saying `message` for `delta`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Chunk {
    /// The id of the answer; empty in Azure's first chunk.
    #[serde(deserialize_with = "lenient")]
    pub id: Option<String>,
    /// The model that answers; empty in Azure's first chunk.
    #[serde(deserialize_with = "lenient")]
    pub model: Option<String>,
    /// The answers; empty in the chunk that has the usage, and in Azure's first one.
    #[serde(deserialize_with = "lenient_list")]
    pub choices: Vec<Choice>,
    /// The tokens; `null` in all chunks but the last.
    #[serde(deserialize_with = "lenient")]
    pub usage: Option<Box<UsageReport>>,
    /// An error in place of an answer.
    pub error: Option<Value>,
    /// `error` where the server does not wrap its errors (vLLM).
    #[serde(deserialize_with = "lenient")]
    pub object: Option<String>,
}

/// One answer. Boxed is what is big: a chunk is made for every word, and moved about until it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Choice {
    /// Which of several answers (`n`).
    #[serde(deserialize_with = "lenient")]
    pub index: Option<u64>,
    /// What is new, in a stream.
    #[serde(deserialize_with = "lenient")]
    pub delta: Option<Box<Delta>>,
    /// Everything, in a whole body.
    #[serde(deserialize_with = "lenient")]
    pub message: Option<Box<Delta>>,
    /// Why it ended.
    #[serde(deserialize_with = "lenient")]
    pub finish_reason: Option<String>,
}

/// What is new in an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Delta {
    /// Text.
    #[serde(deserialize_with = "lenient")]
    pub content: Option<Content>,
    /// The words with which the model declines.
    #[serde(deserialize_with = "lenient")]
    pub refusal: Option<String>,
    /// Thinking (`DeepSeek`, vLLM).
    #[serde(deserialize_with = "lenient")]
    pub reasoning_content: Option<String>,
    /// Thinking (Groq, OpenRouter, newer vLLM).
    #[serde(deserialize_with = "lenient")]
    pub reasoning: Option<String>,
    /// Thinking with what must come back beside it (OpenRouter).
    #[serde(deserialize_with = "lenient_list")]
    pub reasoning_details: Vec<JsonObject>,
    /// The same of LiteLLM, in Anthropic's form.
    #[serde(deserialize_with = "lenient_list")]
    pub thinking_blocks: Vec<JsonObject>,
    /// Calls.
    #[serde(deserialize_with = "lenient_list")]
    pub tool_calls: Vec<ToolCallDelta>,
    /// The one call, in the form before `tool_calls`.
    #[serde(deserialize_with = "lenient")]
    pub function_call: Option<FunctionDelta>,
}

/// Text, or typed pieces of it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Text.
    Text(String),
    /// Pieces, each with a `type` (Mistral).
    Pieces(Vec<Value>),
}

/// What is new in a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolCallDelta {
    /// Which call; missing on some servers.
    #[serde(deserialize_with = "lenient")]
    pub index: Option<u64>,
    /// Its id; missing, blank or `"null"` on some servers.
    #[serde(deserialize_with = "lenient")]
    pub id: Option<String>,
    /// The function.
    #[serde(deserialize_with = "lenient")]
    pub function: Option<FunctionDelta>,
    /// Holds a thought signature that must come back (Gemini's compatible endpoint).
    pub extra_content: Option<Value>,
    /// The same (LiteLLM).
    pub provider_specific_fields: Option<Value>,
}

/// What is new in a function call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FunctionDelta {
    /// The name, whole; repeated in each chunk by some servers.
    #[serde(deserialize_with = "lenient")]
    pub name: Option<String>,
    /// More of the JSON text; on some servers the object itself.
    pub arguments: Option<Value>,
}

/// Token counts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct UsageReport {
    /// Of the whole prompt, what came from a cache included.
    #[serde(deserialize_with = "lenient")]
    pub prompt_tokens: Option<u64>,
    /// Of the answer, reasoning included; without it on some servers (xAI, Gemini's endpoint).
    #[serde(deserialize_with = "lenient")]
    pub completion_tokens: Option<u64>,
    /// Of both, reasoning always included.
    #[serde(deserialize_with = "lenient")]
    pub total_tokens: Option<u64>,
    /// Of the prompt.
    #[serde(deserialize_with = "lenient")]
    pub prompt_tokens_details: Option<InputDetails>,
    /// Of the answer.
    #[serde(deserialize_with = "lenient")]
    pub completion_tokens_details: Option<OutputDetails>,
}

impl From<UsageReport> for Usage {
    fn from(report: UsageReport) -> Self {
        let prompt = report.prompt_tokens_details.unwrap_or_default();
        let completion = report.completion_tokens_details.unwrap_or_default();
        // What belongs to neither count is reasoning, which was written too.
        let written = report.prompt_tokens.zip(report.total_tokens);
        let written = written.and_then(|(prompt, total)| total.checked_sub(prompt));
        Self {
            input_tokens: report.prompt_tokens,
            output_tokens: report
                .completion_tokens
                .map(|said| said.max(written.unwrap_or(said))),
            cache_read_tokens: prompt.cached_tokens,
            cache_write_tokens: prompt.cache_write_tokens,
            cache_write_long_tokens: prompt.kept_long(),
            reasoning_tokens: completion.reasoning_tokens,
            ..Self::default()
        }
    }
}

impl Content {
    /// Hands the readable text of each piece to `each`; `true` stands for thinking.
    pub(crate) fn for_each_text(&self, mut each: impl FnMut(bool, &str)) {
        match self {
            Self::Text(text) => each(false, text),
            Self::Pieces(pieces) => {
                for piece in pieces {
                    match piece.get("thinking") {
                        Some(Value::Array(thoughts)) => {
                            for text in thoughts.iter().filter_map(|thought| thought.get("text")) {
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

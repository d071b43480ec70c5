//! Response types of Chat Completions. A field of the wrong type counts as missing, so that one
//! unexpected field does not make the answer unreadable.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::{JsonObject, Usage};
use switchboard_providers_common::lenient::{
    deserialize_lenient_list, deserialize_lenient_object, deserialize_lenient_scalar,
};

use crate::wire::usage::{InputTokenDetails, OutputTokenDetails};

/// A chunk of a stream. A response body that is not streamed is also read as a chunk: its choices
/// contain `message` instead of `delta`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Chunk<'a> {
    /// Id of the answer. Empty in Azure's first chunk.
    #[serde(borrow, deserialize_with = "deserialize_lenient_scalar")]
    pub id: Option<RepeatedChunkText<'a>>,
    /// Name of the model. Empty in Azure's first chunk.
    #[serde(borrow, deserialize_with = "deserialize_lenient_scalar")]
    pub model: Option<RepeatedChunkText<'a>>,
    /// Alternative answers. Empty in the chunk with the usage and in Azure's first chunk.
    #[serde(deserialize_with = "deserialize_lenient_list")]
    pub choices: Vec<Choice>,
    /// Token counts of the answer. `null` in all chunks except the last.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub usage: Option<Box<UsageReport>>,
    /// Error object of a failed answer.
    pub error: Option<Value>,
    /// Kind of the object. The value `error` marks vLLM's errors, which have no field `error`.
    #[serde(borrow, deserialize_with = "deserialize_lenient_scalar")]
    pub object: Option<RepeatedChunkText<'a>>,
}

/// Text that every chunk repeats, such as the answer's id. Borrowed from the JSON text, unless the
/// string contains escape sequences.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct RepeatedChunkText<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// An element of `choices`: one of the alternative answers. Large fields are boxed, because a chunk
/// is created for every token.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Choice {
    /// Index of this alternative answer, if a request asked for several (`n`).
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub index: Option<u64>,
    /// Streamed addition to the message, in the field `delta`.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub delta: Option<Box<Delta>>,
    /// Whole message, in the field `message` of a body that is not streamed.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub message: Option<Box<Delta>>,
    /// Reason why the answer ended, such as `stop` or `length`.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub finish_reason: Option<String>,
}

/// Content that one chunk of a stream adds to the message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Delta {
    pub content: Option<Content>,
    /// Text with which the model refuses to answer.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub refusal: Option<String>,
    /// Reasoning text in the field `reasoning_content` of `DeepSeek` and vLLM.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub reasoning_content: Option<String>,
    /// Reasoning text in the field `reasoning` of Groq, OpenRouter and newer vLLM.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub reasoning: Option<String>,
    /// Reasoning blocks of OpenRouter, which must be sent back in later requests.
    #[serde(deserialize_with = "deserialize_lenient_list")]
    pub reasoning_details: Vec<JsonObject>,
    /// Reasoning blocks of Anthropic's API, as a LiteLLM proxy forwards them.
    #[serde(deserialize_with = "deserialize_lenient_list")]
    pub thinking_blocks: Vec<JsonObject>,
    #[serde(deserialize_with = "deserialize_lenient_list")]
    pub tool_calls: Vec<ToolCallDelta>,
    /// The only tool call of an answer, from servers that do not send `tool_calls`.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub function_call: Option<FunctionDelta>,
}

/// Content of a message: a string or, from Mistral, a list of pieces, each with a `type`.
#[derive(Debug, Deserialize)]
pub struct Content(Value);

/// A streamed piece of a tool call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolCallDelta {
    /// Index of the tool call in the answer. Some servers omit it.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub index: Option<u64>,
    /// Id of the tool call. It is missing, blank or `"null"` on some servers.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub id: Option<String>,
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub function: Option<FunctionDelta>,
    /// Field of Gemini's compatible endpoint with a thought signature that must be sent back.
    pub extra_content: Option<Value>,
    /// Field of LiteLLM with a thought signature that must be sent back.
    pub provider_specific_fields: Option<Value>,
}

/// A streamed piece of a call: the function's name or a part of its arguments.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FunctionDelta {
    /// Whole name of the function. Some servers repeat it in each chunk.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub name: Option<String>,
    /// Piece of the arguments as JSON text. Some servers send a JSON object instead of text.
    pub arguments: Option<Value>,
}

/// Token counts of a request and its answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct UsageReport {
    /// Number of prompt tokens, including cached ones.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub prompt_tokens: Option<u64>,
    /// Number of answer tokens. Some servers (xAI, Gemini's endpoint) do not include reasoning.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub completion_tokens: Option<u64>,
    /// Number of prompt and answer tokens together, including reasoning tokens.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub total_tokens: Option<u64>,
    /// Breakdown of the prompt tokens: how many were read from and written to a cache.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub prompt_tokens_details: Option<InputTokenDetails>,
    /// Breakdown of the answer tokens: how many were used for reasoning.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub completion_tokens_details: Option<OutputTokenDetails>,
}

impl From<UsageReport> for Usage {
    fn from(report: UsageReport) -> Self {
        let prompt = report.prompt_tokens_details.unwrap_or_default();
        let completion = report.completion_tokens_details.unwrap_or_default();
        // Some servers count reasoning tokens only in `total_tokens`. These tokens are output
        // tokens too, so the output is at least the total minus the prompt.
        let written = report.prompt_tokens.zip(report.total_tokens);
        let written = written.and_then(|(prompt, total)| total.checked_sub(prompt));
        Self {
            input_tokens: report.prompt_tokens,
            output_tokens: report
                .completion_tokens
                .map(|count| count.max(written.unwrap_or(count))),
            cache_read_tokens: prompt.cached_tokens,
            cache_write_tokens: prompt.cache_write_tokens,
            cache_write_long_tokens: prompt.long_cache_write_tokens(),
            reasoning_tokens: completion.reasoning_tokens,
            ..Self::default()
        }
    }
}

impl Content {
    /// Calls `each` for every piece of the content. The arguments of `each` are whether the piece
    /// is reasoning, and the text of the piece.
    pub(crate) fn for_each_text_piece(&self, mut each: impl FnMut(bool, &str)) {
        match &self.0 {
            Value::String(text) => each(false, text),
            Value::Array(pieces) => {
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
            _ => {}
        }
    }
}

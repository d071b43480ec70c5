//! Response types of the chat API. A value of the wrong type counts as absent, so that one
//! malformed field does not invalidate the answer.

use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::Usage;
use switchboard_providers_common::lenient::{
    deserialize_lenient_list, deserialize_lenient_object, deserialize_lenient_scalar,
};

/// A line of a stream, or a body that is not streamed. Both have the same fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Chunk {
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub model: Option<String>,
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub message: Option<ResponseMessage>,
    /// Whether this is the last line of the answer, which contains the token counts.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub done: Option<bool>,
    /// Reason why the answer ended. Servers before 2024 do not send it. Newer servers omit reasons
    /// for which the API has no name.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub done_reason: Option<String>,
    /// Number of prompt tokens, including cached ones (`promptEvalCount` in the server's file
    /// `llm/llama_server.go`). Absent if the server does not count tokens.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub prompt_eval_count: Option<u64>,
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub eval_count: Option<u64>,
    /// Error object or text that the server sends instead of an answer.
    pub error: Option<Value>,
}

impl Chunk {
    pub(crate) fn to_usage(&self) -> Usage {
        Usage {
            input_tokens: self.prompt_eval_count,
            output_tokens: self.eval_count,
            ..Usage::default()
        }
    }
}

/// Piece of the answer's message that one line of a stream contains.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResponseMessage {
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub content: Option<String>,
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub thinking: Option<String>,
    /// Tool calls of the answer. Each call arrives whole, not in pieces.
    #[serde(deserialize_with = "deserialize_lenient_list")]
    pub tool_calls: Vec<ResponseToolCall>,
}

/// A tool call that the model made, as the server sends it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResponseToolCall {
    /// Id of the call. Servers before 0.12 do not send it.
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub id: Option<String>,
    /// The called function and its arguments.
    #[serde(deserialize_with = "deserialize_lenient_object")]
    pub function: Option<ResponseFunction>,
}

/// A called function and its arguments, as the server sends them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResponseFunction {
    #[serde(deserialize_with = "deserialize_lenient_scalar")]
    pub name: Option<String>,
    /// Arguments of the call. Some compatible servers send JSON text instead of an object.
    pub arguments: Value,
}

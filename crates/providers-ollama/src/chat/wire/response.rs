//! Response types. A value of the wrong type counts as absent, so that one malformed field does not
//! invalidate the answer.

use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::Usage;
use switchboard_providers_common::lenient::{lenient, lenient_list};

/// A line of a stream, or a whole body: they have the same form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Chunk {
    #[serde(deserialize_with = "lenient")]
    pub model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub message: Option<MessageReport>,
    /// Whether this is the last line.
    #[serde(deserialize_with = "lenient")]
    pub done: Option<bool>,
    /// Why it ended; absent from servers of before 2024 and when the server has no word for it.
    #[serde(deserialize_with = "lenient")]
    pub done_reason: Option<String>,
    /// Tokens of the whole prompt, including cached ones (`promptEvalCount` of
    /// `llm/llama_server.go`). Absent if the server does not count.
    #[serde(deserialize_with = "lenient")]
    pub prompt_eval_count: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub eval_count: Option<u64>,
    /// An error in place of an answer.
    pub error: Option<Value>,
}

impl Chunk {
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            input_tokens: self.prompt_eval_count,
            output_tokens: self.eval_count,
            ..Usage::default()
        }
    }
}

/// A message delta.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct MessageReport {
    #[serde(deserialize_with = "lenient")]
    pub content: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub thinking: Option<String>,
    /// Calls, each of them whole.
    #[serde(deserialize_with = "lenient_list")]
    pub tool_calls: Vec<CallReport>,
}

/// A call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CallReport {
    /// Its id; missing from servers before 0.12.
    #[serde(deserialize_with = "lenient")]
    pub id: Option<String>,
    /// The called function and its arguments.
    #[serde(deserialize_with = "lenient")]
    pub function: Option<FunctionReport>,
}

/// A called function and its arguments.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FunctionReport {
    #[serde(deserialize_with = "lenient")]
    pub name: Option<String>,
    pub arguments: ArgumentsReport,
}

/// The arguments of a call: an object; from servers that only speak like Ollama also JSON text.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct ArgumentsReport(pub Value);

impl ArgumentsReport {
    /// As JSON text, empty for none.
    pub(crate) fn into_json(self) -> String {
        match self.0 {
            Value::Null => String::new(),
            Value::String(text) => text,
            value => value.to_string(),
        }
    }
}

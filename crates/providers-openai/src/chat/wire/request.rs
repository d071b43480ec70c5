//! Request types of Chat Completions, which borrow texts, media and schemas from the domain.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::{BodyFields, JoinedText, body_fields::none_if_empty};

use super::content::UserContent;
use crate::{
    tools::{provider_tools::DeclaredTools, schema::SentSchema},
    wire::call_arguments::CallArguments,
};

/// Request body of the Chat Completions API.
#[derive(Debug)]
pub struct Body<'a> {
    pub model: &'a str,
    pub messages: Vec<Message<'a>>,
    pub tools: DeclaredTools<'a>,
    /// Tool choice. The API refuses this field without tools.
    pub tool_choice: Option<Value>,
    /// Whether an answer may have several tool calls. The API refuses this field without tools.
    pub parallel_tool_calls: Option<bool>,
    pub response_format: Option<ResponseFormat<'a>>,
    /// Maximum number of output tokens, in OpenAI's newer field. `None` if `max_tokens` is used.
    pub max_completion_tokens: Option<u32>,
    /// Maximum number of output tokens, in the older field. `None` if `max_completion_tokens` is
    /// used.
    pub max_tokens: Option<u32>,
    /// Sampling temperature, from 0.0 to 2.0.
    pub temperature: Option<f64>,
    /// Nucleus sampling limit, from 0.0 to 1.0.
    pub top_p: Option<f64>,
    /// Up to four stop sequences, each of which ends the answer.
    pub stop: &'a [String],
    /// Sampling seed for repeatable answers.
    pub seed: Option<u64>,
    /// Sampling seed, in the field that Mistral uses instead of `seed`.
    pub random_seed: Option<u64>,
    /// Reasoning effort: `none`, `low`, `medium` or `high`.
    pub reasoning_effort: Option<&'static str>,
    /// Switch that turns the reasoning of `DeepSeek` models off.
    pub thinking: Option<Thinking>,
    /// Whether the answer is streamed.
    pub stream: bool,
    pub stream_options: Option<StreamOptions>,
    /// Additional fields of the caller. They override the fields above, with two exceptions:
    /// `stream` is ignored, because it decides how the answer is read, and a list `tools` is
    /// already part of `tools` above.
    pub extra: &'a JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = BodyFields::new(serializer, self.extra)?;
        fields.put_field("model", Some(self.model))?;
        fields.put_field("messages", Some(&self.messages))?;
        fields.put_merged_list("tools", self.tools.non_empty_tools())?;
        fields.put_field("tool_choice", self.tool_choice.as_ref())?;
        fields.put_field("parallel_tool_calls", self.parallel_tool_calls)?;
        fields.put_field("response_format", self.response_format.as_ref())?;
        fields.put_field("max_completion_tokens", self.max_completion_tokens)?;
        fields.put_field("max_tokens", self.max_tokens)?;
        fields.put_field("temperature", self.temperature)?;
        fields.put_field("top_p", self.top_p)?;
        fields.put_field("stop", none_if_empty(self.stop))?;
        fields.put_field("seed", self.seed)?;
        fields.put_field("random_seed", self.random_seed)?;
        fields.put_field("reasoning_effort", self.reasoning_effort)?;
        fields.put_field("thinking", self.thinking.as_ref())?;
        fields.put_field("stream_options", self.stream_options.as_ref())?;
        fields.end_body(self.stream)
    }
}

/// One message of the conversation.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message<'a> {
    /// Instructions with the older role `system`.
    System {
        content: JoinedText<'a>,
    },
    /// Instructions with the newer role `developer`.
    Developer {
        content: JoinedText<'a>,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        /// Text of the answer. `null` for a message with tool calls only.
        content: Option<JoinedText<'a>>,
        /// Reasoning of the assistant message, for servers that accept it.
        #[serde(flatten)]
        reasoning: Option<Box<ReasoningFields<'a>>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    /// A message with the result of one tool call.
    Tool {
        /// Id of the tool call that the result answers.
        tool_call_id: Cow<'a, str>,
        /// Result of the call. A failure is part of the text: the API has no field for it.
        content: JoinedText<'a>,
    },
}

/// The reasoning of an earlier answer, in the field in which the server sent it. OpenAI's own API
/// has none of these fields.
#[derive(Debug, Default, Serialize)]
pub struct ReasoningFields<'a> {
    /// Reasoning text in the field `reasoning_content` of `DeepSeek`, llama.cpp and older vLLM.
    #[serde(skip_serializing_if = "JoinedText::is_empty")]
    pub reasoning_content: JoinedText<'a>,
    /// Reasoning text in the field `reasoning` of OpenRouter and newer vLLM.
    #[serde(skip_serializing_if = "JoinedText::is_empty")]
    pub reasoning: JoinedText<'a>,
    /// Signed or encrypted reasoning in the field `reasoning_details` of OpenRouter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasoning_details: Vec<&'a Value>,
    /// Reasoning signed by Anthropic, in the field `thinking_blocks` of LiteLLM.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thinking_blocks: Vec<&'a Value>,
}

impl ReasoningFields<'_> {
    /// Returns whether all reasoning fields are empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.reasoning_content.is_empty()
            && self.reasoning.is_empty()
            && self.reasoning_details.is_empty()
            && self.thinking_blocks.is_empty()
    }
}

/// A tool call of an earlier answer.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ToolCall<'a> {
    Function {
        id: Cow<'a, str>,
        /// Called function and its arguments.
        function: FunctionCall<'a>,
        /// Fields of the call that the server expects back, such as Gemini's `extra_content`.
        #[serde(flatten)]
        state: Option<&'a JsonObject>,
    },
}

/// A called function and its arguments.
#[derive(Debug, Serialize)]
pub struct FunctionCall<'a> {
    /// Name of the called function.
    pub name: Cow<'a, str>,
    pub arguments: CallArguments<'a>,
}

/// Output format of the answer.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat<'a> {
    /// The answer must be JSON that matches a schema.
    JsonSchema { json_schema: JsonSchema<'a> },
}

impl<'a> ResponseFormat<'a> {
    /// Creates the output format for an answer with a schema.
    pub(crate) fn new(name: &'a str, sent: SentSchema<'a>) -> Self {
        Self::JsonSchema {
            json_schema: JsonSchema {
                name,
                schema: sent.schema,
                strict: sent.strict,
            },
        }
    }
}

/// Schema of a structured answer.
#[derive(Debug, Serialize)]
pub struct JsonSchema<'a> {
    /// Name of the schema, which matches `[A-Za-z0-9_-]{1,64}`.
    pub name: &'a str,
    pub schema: Cow<'a, Value>,
    /// Whether the API enforces the schema. If `true`, the schema may use only the subset of JSON
    /// Schema that the API can enforce.
    pub strict: bool,
}

/// Request field `thinking`, which turns the reasoning of `DeepSeek` models off.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Thinking {
    /// Type of the thinking mode: `disabled`. Without the field, the server's default is `enabled`.
    pub r#type: &'static str,
}

impl Thinking {
    pub(crate) const DISABLED: Self = Self { r#type: "disabled" };
}

/// Request field `stream_options`: options of a streamed answer.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct StreamOptions {
    /// Whether the last chunk contains the token usage.
    pub include_usage: bool,
}

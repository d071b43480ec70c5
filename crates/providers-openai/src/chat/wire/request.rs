//! What is sent. Texts, media and schemas are borrowed from the domain request and written straight
//! into the body: no message is copied to be sent.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::schema::Written;

use super::content::UserContent;
use crate::{
    arguments::Arguments,
    built_in::{Declared, Form, NamedTool},
    fields::{Fields, some_if_any},
    schema::Sent,
    text::Text,
    tools,
};

/// The request body.
#[derive(Debug)]
pub struct Body<'a> {
    /// The model, in the server's words.
    pub model: &'a str,
    /// The conversation.
    pub messages: Vec<Message<'a>>,
    /// The tools declared.
    pub tools: Declared<'a, Tool<'a>>,
    /// Which of them may or must be called. Refused by the API without tools.
    pub tool_choice: Option<ToolChoice<'a>>,
    /// Whether several calls in one answer are welcome. Refused by the API without tools.
    pub parallel_tool_calls: Option<bool>,
    /// The form of the answer.
    pub response_format: Option<ResponseFormat<'a>>,
    /// Output limit in tokens, under its newer name.
    pub max_completion_tokens: Option<u32>,
    /// Output limit in tokens, under its older name.
    pub max_tokens: Option<u32>,
    /// 0.0 to 2.0.
    pub temperature: Option<f64>,
    /// 0.0 to 1.0.
    pub top_p: Option<f64>,
    /// Up to four texts at which the answer ends.
    pub stop: &'a [String],
    /// For answers that can be had again.
    pub seed: Option<u64>,
    /// The same under Mistral's name.
    pub random_seed: Option<u64>,
    /// `none`, `low`, `medium`, `high`.
    pub reasoning_effort: Option<&'static str>,
    /// `DeepSeek`'s switch.
    pub thinking: Option<Thinking>,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Options of the stream.
    pub stream_options: Option<StreamOptions>,
    /// Further fields of the caller. They win over all of the above but `stream`, which decides
    /// how the answer is read, and a list of `tools`, which are among those above.
    pub extra: &'a JsonObject,
}

impl Body<'_> {
    /// About how many bytes it takes to write it, so that a long conversation is not moved from place to place
    /// while it is written. Media and what has to be escaped count for too little.
    pub(crate) fn room(&self) -> usize {
        const AROUND: usize = 64;
        let of = |message: &Message<'_>| match message {
            Message::System { content }
            | Message::Developer { content }
            | Message::User {
                content: UserContent::Text(content),
            }
            | Message::Tool { content, .. } => content.len(),
            Message::User {
                content: UserContent::Parts(parts),
            } => parts.len() * AROUND,
            Message::Assistant {
                content,
                tool_calls,
                ..
            } => content.as_ref().map_or(0, Text::len) + tool_calls.len() * 4 * AROUND,
        };
        let messages = self.messages.iter().map(|message| of(message) + AROUND);
        messages.sum::<usize>() + 16 * AROUND
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Fields::new(serializer, self.extra)?;
        fields.put("model", Some(self.model))?;
        fields.put("messages", Some(&self.messages))?;
        fields.put_joined("tools", self.tools.some_if_any())?;
        fields.put("tool_choice", self.tool_choice.as_ref())?;
        fields.put("parallel_tool_calls", self.parallel_tool_calls)?;
        fields.put("response_format", self.response_format.as_ref())?;
        fields.put("max_completion_tokens", self.max_completion_tokens)?;
        fields.put("max_tokens", self.max_tokens)?;
        fields.put("temperature", self.temperature)?;
        fields.put("top_p", self.top_p)?;
        fields.put("stop", some_if_any(self.stop))?;
        fields.put("seed", self.seed)?;
        fields.put("random_seed", self.random_seed)?;
        fields.put("reasoning_effort", self.reasoning_effort)?;
        fields.put("thinking", self.thinking.as_ref())?;
        fields.put("stream_options", self.stream_options.as_ref())?;
        fields.end(self.stream)
    }
}

/// A message.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message<'a> {
    /// Instructions, under their older name.
    System {
        /// The instructions.
        content: Text<'a>,
    },
    /// Instructions, under their newer name.
    Developer {
        /// The instructions.
        content: Text<'a>,
    },
    /// The person.
    User {
        /// What was said and shown.
        content: UserContent<'a>,
    },
    /// The model.
    Assistant {
        /// What it said; `null` when it only called functions.
        content: Option<Text<'a>>,
        /// What it thought, for servers that want it back.
        #[serde(flatten)]
        thoughts: Option<Box<Thoughts<'a>>>,
        /// What it called.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    /// The result of one call.
    Tool {
        /// The call.
        tool_call_id: Cow<'a, str>,
        /// The result. This wire has text only, and no mark for a failure.
        content: Text<'a>,
    },
}

/// Reasoning of an earlier answer, under the name in which it came. OpenAI itself knows none of
/// these fields.
#[derive(Debug, Default, Serialize)]
pub struct Thoughts<'a> {
    /// `DeepSeek`, llama.cpp, older vLLM.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub reasoning_content: Text<'a>,
    /// OpenRouter, newer vLLM.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub reasoning: Text<'a>,
    /// OpenRouter, with signatures and the like.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasoning_details: Vec<&'a Value>,
    /// LiteLLM, with Anthropic's signatures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thinking_blocks: Vec<&'a Value>,
}

impl Thoughts<'_> {
    /// Whether there is nothing to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.reasoning_content.is_empty()
            && self.reasoning.is_empty()
            && self.reasoning_details.is_empty()
            && self.thinking_blocks.is_empty()
    }
}

/// A call in the conversation's history.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ToolCall<'a> {
    /// Of a function.
    Function {
        /// Its id.
        id: Cow<'a, str>,
        /// The function and what it was given.
        function: FunctionCall<'a>,
        /// Fields of the server's own that it wants back, such as Gemini's `extra_content`.
        #[serde(flatten)]
        carried: Option<&'a JsonObject>,
    },
}

/// A function and what it was given.
#[derive(Debug, Serialize)]
pub struct FunctionCall<'a> {
    /// The function.
    pub name: Cow<'a, str>,
    /// What it was given.
    pub arguments: Arguments<'a>,
}

/// A tool declared.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Tool<'a> {
    /// A function.
    Function {
        /// The function.
        function: FunctionTool<'a>,
    },
}

/// A function declared.
#[derive(Debug, Serialize)]
pub struct FunctionTool<'a> {
    /// `[A-Za-z0-9_-]{1,64}`.
    pub name: Cow<'a, str>,
    /// What it does.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: &'a str,
    /// JSON Schema of its arguments.
    pub parameters: Written,
    /// `true` if calls are held to the schema; not every server knows the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// Which tools may or must be called.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum ToolChoice<'a> {
    /// `none`, `auto` or `required`.
    Mode(&'static str),
    /// This one must be called.
    Named(NamedTool<'a>),
    /// One or more of these must be called.
    AllowedTools {
        /// `allowed_tools`.
        r#type: &'static str,
        /// Which.
        allowed_tools: AllowedTools<'a>,
    },
}

impl<'a> From<tools::Function<'a>> for Tool<'a> {
    fn from(function: tools::Function<'a>) -> Self {
        Self::Function {
            function: FunctionTool {
                name: function.name,
                description: function.description,
                parameters: function.parameters,
                strict: function.strict.then_some(true),
            },
        }
    }
}

impl<'a> From<tools::Choice<'a>> for ToolChoice<'a> {
    fn from(choice: tools::Choice<'a>) -> Self {
        let named = |tool| NamedTool::new(tool, Form::Nested);
        match choice {
            tools::Choice::Mode(mode) => Self::Mode(mode),
            tools::Choice::One(tool) => Self::Named(named(tool)),
            tools::Choice::Allowed(tools) => Self::AllowedTools {
                r#type: "allowed_tools",
                allowed_tools: AllowedTools {
                    mode: "required",
                    tools: tools.into_iter().map(named).collect(),
                },
            },
        }
    }
}

/// A subset of the tools.
#[derive(Debug, Serialize)]
pub struct AllowedTools<'a> {
    /// `auto` or `required`.
    pub mode: &'static str,
    /// The tools.
    pub tools: Vec<NamedTool<'a>>,
}

/// The form of the answer.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat<'a> {
    /// JSON of a schema.
    JsonSchema {
        /// The schema.
        json_schema: JsonSchema<'a>,
    },
}

impl<'a> ResponseFormat<'a> {
    /// The form of an answer to a schema.
    pub(crate) fn of(name: &'a str, sent: Sent<'a>) -> Self {
        Self::JsonSchema {
            json_schema: JsonSchema {
                name,
                schema: sent.schema,
                strict: sent.strict,
            },
        }
    }
}

/// A schema for the answer.
#[derive(Debug, Serialize)]
pub struct JsonSchema<'a> {
    /// `[A-Za-z0-9_-]{1,64}`.
    pub name: &'a str,
    /// The schema.
    pub schema: Cow<'a, Value>,
    /// Whether the answer is held to it; the API refuses `true` for a schema outside its subset.
    pub strict: bool,
}

/// `DeepSeek`'s switch for reasoning.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Thinking {
    /// `disabled`; `enabled` is what holds anyway.
    pub r#type: &'static str,
}

impl Thinking {
    /// No reasoning.
    pub(crate) const OFF: Self = Self { r#type: "disabled" };
}

/// Options of the stream.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct StreamOptions {
    /// Ends the stream with a chunk that has the usage and no choices.
    pub include_usage: bool,
}

//! Request types of the chat API. They borrow texts and media from the domain request, which are
//! serialized directly into the body.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::{
    BodyFields, JoinedText, ToolUseInput, body_fields::none_if_empty, schema::ToolSchema,
};

/// Request body of `/api/chat`.
#[derive(Debug)]
pub struct Body<'a> {
    /// Name of the model at the server.
    pub model: &'a str,
    pub messages: Vec<Message<'a>>,
    pub tools: Vec<Tool<'a>>,
    /// JSON Schema that constrains the text of the answer.
    pub format: Option<Cow<'a, Value>>,
    /// Whether the model reasons before it answers, or at which level.
    pub think: Option<Think>,
    /// Model options (`num_predict`, `temperature`, `num_ctx`, …), including those of the caller's
    /// `extra`.
    pub options: JsonObject,
    /// Whether the answer is streamed, with one line per piece. An answer that is not streamed is a
    /// single line.
    pub stream: bool,
    /// Further fields of the caller (`keep_alive`, `truncate`, …). They override the fields above,
    /// except `stream`.
    pub extra: JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = BodyFields::new(serializer, &self.extra)?;
        fields.put_field("model", Some(self.model))?;
        fields.put_field("messages", Some(&self.messages))?;
        fields.put_field("tools", none_if_empty(&self.tools))?;
        fields.put_field("format", self.format.as_ref())?;
        fields.put_field("think", self.think)?;
        let options = (!self.options.is_empty()).then_some(&self.options);
        fields.put_field("options", options)?;
        fields.end_body(self.stream)
    }
}

/// Field `role`: the author of a message in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RoleName {
    System,
    User,
    Assistant,
    Tool,
}

/// One message of the conversation.
#[derive(Debug, Serialize)]
pub struct Message<'a> {
    pub role: RoleName,
    /// Text of the message. Tool messages always have a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<JoinedText<'a>>,
    /// Reasoning that the model wrote before the text of this message.
    #[serde(skip_serializing_if = "JoinedText::is_empty")]
    pub thinking: JoinedText<'a>,
    /// Images, and audio for models that support it, as base64. The server recognizes the type by
    /// the first bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<&'a str>,
    /// Tool calls of the assistant message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall<'a>>,
    /// Name of the tool that returned this result. The server assigns results to calls by name and
    /// order, because messages of the SDK have no field for an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
}

impl<'a> Message<'a> {
    /// Creates a message that has only the text `content`.
    pub(crate) fn new(role: RoleName, content: Option<JoinedText<'a>>) -> Self {
        Self {
            role,
            content,
            thinking: JoinedText::default(),
            images: Vec::new(),
            tool_calls: Vec::new(),
            tool_name: None,
        }
    }
}

/// A tool call in the conversation's history.
#[derive(Debug, Serialize)]
pub struct ToolCall<'a> {
    /// The called function and its arguments.
    pub function: FunctionCall<'a>,
}

/// A called function and its arguments.
#[derive(Debug, Serialize)]
pub struct FunctionCall<'a> {
    /// Position of the call among the calls of its message, from 0.
    pub index: usize,
    pub name: &'a str,
    pub arguments: ToolUseInput<'a>,
}

/// A tool that is declared to the model.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Tool<'a> {
    Function { function: Function<'a> },
}

/// A function that is declared to the model.
#[derive(Debug, Serialize)]
pub struct Function<'a> {
    pub name: &'a str,
    /// Description of the function for the model.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: Cow<'a, str>,
    /// JSON Schema of the function's arguments, with only the keywords that the server reads.
    pub parameters: ToolSchema,
}

/// Request field `think`: whether the model reasons, or at which level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Think {
    Switch(bool),
    /// Level of reasoning: `low`, `medium` or `high`.
    Level(&'static str),
}

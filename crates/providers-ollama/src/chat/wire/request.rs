//! Request types. Texts and media are borrowed from the domain request and serialized directly into
//! the body.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ToolInput};
use switchboard_providers_common::{
    BodyFields, JoinedText, body_fields::none_if_empty, schema::ToolSchema,
};

/// Request body of `/api/chat`.
#[derive(Debug)]
pub struct Body<'a> {
    /// Name of the model at the server.
    pub model: &'a str,
    pub messages: Vec<Message<'a>>,
    pub tools: Vec<Tool<'a>>,
    /// JSON Schema that the answer must match.
    pub format: Option<Cow<'a, Value>>,
    /// Whether, or how much, the model reasons before it answers.
    pub think: Option<Think>,
    /// Model options (`num_predict`, `temperature`, `num_ctx`, …), including those of the caller's
    /// `extra`.
    pub options: JsonObject,
    /// Whether the answer is streamed, with one line per piece. An answer that is not streamed is a
    /// single line.
    pub stream: bool,
    /// Further fields of the caller (`keep_alive`, `truncate`, …). They override all fields above.
    pub extra: JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = BodyFields::new(serializer, &self.extra)?;
        fields.put("model", Some(self.model))?;
        fields.put("messages", Some(&self.messages))?;
        fields.put("tools", none_if_empty(&self.tools))?;
        fields.put("format", self.format.as_ref())?;
        fields.put("think", self.think)?;
        let options = (!self.options.is_empty()).then_some(&self.options);
        fields.put("options", options)?;
        fields.end_body(self.stream)
    }
}

/// Role of a message's author.
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
    /// Reasoning of the model before the text.
    #[serde(skip_serializing_if = "JoinedText::is_empty")]
    pub thinking: JoinedText<'a>,
    /// Images, and audio for models that support it, as base64. The server recognizes the type by
    /// the first bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<&'a str>,
    /// Tool calls of the assistant message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall<'a>>,
    /// Name of the tool whose result this is. The server assigns results to calls by name and
    /// order, because messages of the SDK have no field for an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
}

impl<'a> Message<'a> {
    /// Creates a message with `content` as its only content.
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
    pub arguments: Arguments<'a>,
}

/// Input of a tool call as a JSON *object* with its keys in the original order. Malformed input is
/// sent as `{"malformed_input": …}`.
#[derive(Debug)]
pub struct Arguments<'a>(pub &'a ToolInput);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ToolInput::Object(object) => object.serialize(serializer),
            ToolInput::Malformed { raw, .. } => {
                json!({ "malformed_input": raw }).serialize(serializer)
            }
        }
    }
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
    /// JSON Schema of the function's arguments, reduced to what the server reads.
    pub parameters: ToolSchema,
}

/// Whether, or how much, the model reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Think {
    Switch(bool),
    /// Level of reasoning: `low`, `medium` or `high`.
    Level(&'static str),
}

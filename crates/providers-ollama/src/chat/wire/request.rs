//! Request types. Texts and media are borrowed from the domain request and serialized directly into
//! the body.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use switchboard_domain::{JsonObject, ToolInput};
use switchboard_providers_common::{
    BodyFields, JoinedText, body_fields::non_empty, schema::ToolSchema,
};

/// The request body.
#[derive(Debug)]
pub struct Body<'a> {
    /// The model, in the server's words.
    pub model: &'a str,
    pub messages: Vec<Message<'a>>,
    pub tools: Vec<Tool<'a>>,
    /// The JSON Schema that the answer is held to.
    pub format: Option<Cow<'a, Value>>,
    /// Whether, or how much, the model thinks before it answers.
    pub think: Option<Think>,
    /// Model options (`num_predict`, `temperature`, `num_ctx`, …), including those of the caller's
    /// `extra`.
    pub options: JsonObject,
    /// Whether the answer is streamed, a line for each piece. A whole one is a single line.
    pub stream: bool,
    /// Further fields of the caller (`keep_alive`, `truncate`, …). They win over all of the above.
    pub extra: JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = BodyFields::new(serializer, &self.extra)?;
        fields.put("model", Some(self.model))?;
        fields.put("messages", Some(&self.messages))?;
        fields.put("tools", non_empty(&self.tools))?;
        fields.put("format", self.format.as_ref())?;
        fields.put("think", self.think)?;
        let options = (!self.options.is_empty()).then_some(&self.options);
        fields.put("options", options)?;
        fields.end(self.stream)
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RoleName {
    System,
    User,
    Assistant,
    Tool,
}

/// A message.
#[derive(Debug, Serialize)]
pub struct Message<'a> {
    pub role: RoleName,
    /// The text. Tool messages always have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<JoinedText<'a>>,
    /// The model's thoughts before the text.
    #[serde(skip_serializing_if = "JoinedText::is_empty")]
    pub thinking: JoinedText<'a>,
    /// Images, and sounds for models that hear, as base64. The server tells them apart by their
    /// first bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<&'a str>,
    /// The tool calls of the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall<'a>>,
    /// The tool that speaks. Results answer calls by their names and order: the SDK's messages have
    /// no place for an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
}

impl<'a> Message<'a> {
    /// A message that says `content`.
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

/// A call in the conversation's history.
#[derive(Debug, Serialize)]
pub struct ToolCall<'a> {
    /// The called function and its arguments.
    pub function: FunctionCall<'a>,
}

/// A called function and its arguments.
#[derive(Debug, Serialize)]
pub struct FunctionCall<'a> {
    /// Its place among the calls of the message, from 0.
    pub index: usize,
    pub name: &'a str,
    pub arguments: Arguments<'a>,
}

/// A tool input as this wire has it: an *object*, keys in the order given. Input that was malformed
/// goes back as `{"malformed_input": …}`.
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

/// A tool declared.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Tool<'a> {
    Function { function: Function<'a> },
}

/// A function declared.
#[derive(Debug, Serialize)]
pub struct Function<'a> {
    pub name: &'a str,
    /// The description of the function.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: Cow<'a, str>,
    /// JSON Schema of its arguments, as far as the server reads it.
    pub parameters: ToolSchema,
}

/// Whether, or how much, the model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Think {
    Switch(bool),
    /// `low`, `medium`, `high`.
    Level(&'static str),
}

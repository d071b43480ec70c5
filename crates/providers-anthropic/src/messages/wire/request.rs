//! What is sent. Texts, media and schemas are borrowed from the domain request and written straight
//! into the body: no message is copied to be sent.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use switchboard_domain::JsonObject;

use super::content::Block;

/// The request body.
#[derive(Debug)]
pub struct Body<'a> {
    /// The model, in the server's words.
    pub model: &'a str,
    /// Output limit in tokens, thinking included. The API requires it.
    pub max_tokens: u32,
    /// The instructions before the conversation: texts only.
    pub system: Vec<Block<'a>>,
    /// The conversation: user and assistant in turn, beginning with the user.
    pub messages: Vec<Message<'a>>,
    /// The tools declared.
    pub tools: Vec<Tool<'a>>,
    /// Which of them may or must be called. Refused by the API without tools.
    pub tool_choice: Option<ToolChoice<'a>>,
    /// Whether and how it thinks.
    pub thinking: Option<Thinking>,
    /// The form of the answer, and how much effort goes into it.
    pub output_config: Option<OutputConfig<'a>>,
    /// 0.0 to 1.0.
    pub temperature: Option<f64>,
    /// 0.0 to 1.0.
    pub top_p: Option<f64>,
    /// Texts at which the answer ends.
    pub stop_sequences: Vec<&'a str>,
    /// Where the model ran code, to go on there.
    pub container: Option<&'a str>,
    /// Who asks.
    pub metadata: Option<Metadata<'a>>,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Further fields of the caller. They win over all of the above but `stream`, which decides
    /// how the answer is read.
    pub extra: &'a JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Fields {
            map: serializer.serialize_map(None)?,
            extra: self.extra,
        };
        fields.put("model", Some(self.model))?;
        fields.put("max_tokens", Some(self.max_tokens))?;
        fields.put("system", some_if_any(&self.system))?;
        fields.put("messages", Some(&self.messages))?;
        fields.put("tools", some_if_any(&self.tools))?;
        fields.put("tool_choice", self.tool_choice.as_ref())?;
        fields.put("thinking", self.thinking.as_ref())?;
        fields.put("output_config", self.output_config.as_ref())?;
        fields.put("temperature", self.temperature)?;
        fields.put("top_p", self.top_p)?;
        fields.put("stop_sequences", some_if_any(&self.stop_sequences))?;
        fields.put("container", self.container)?;
        fields.put("metadata", self.metadata.as_ref())?;
        let Fields { mut map, extra } = fields;
        map.serialize_entry(STREAM, &self.stream)?;
        for (name, value) in extra.iter().filter(|(name, _)| *name != STREAM) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The one field that `extra` cannot set.
pub(crate) const STREAM: &str = "stream";

struct Fields<'a, M> {
    map: M,
    extra: &'a JsonObject,
}

impl<M: SerializeMap> Fields<'_, M> {
    /// Writes a field that has a value and that `extra` does not set.
    fn put<T: Serialize>(&mut self, name: &str, value: Option<T>) -> Result<(), M::Error> {
        match value {
            Some(value) if !self.extra.contains_key(name) => self.map.serialize_entry(name, &value),
            _ => Ok(()),
        }
    }
}

fn some_if_any<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// What was said; never empty.
    pub content: Vec<Block<'a>>,
}

/// Who speaks on this wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions in the middle of a conversation: right after a user message, and before an
    /// assistant message or at the end.
    System,
    /// The person, and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// A tool declared.
#[derive(Debug, Serialize)]
pub struct Tool<'a> {
    /// `[a-zA-Z0-9_-]{1,128}`.
    pub name: &'a str,
    /// What it does.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: Cow<'a, str>,
    /// JSON Schema of its input: an object.
    pub input_schema: Cow<'a, Value>,
    /// Whether the input is held to the schema.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

/// Which tools may or must be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ToolChoice<'a> {
    /// The model decides.
    Auto {
        /// At most one call.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        disable_parallel_tool_use: bool,
    },
    /// At least one of the tools.
    Any {
        /// Exactly one call.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        disable_parallel_tool_use: bool,
    },
    /// This tool.
    Tool {
        /// Its name.
        name: &'a str,
        /// Exactly one call.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        disable_parallel_tool_use: bool,
    },
    /// None, though they stay declared.
    None,
}

/// Whether and how the model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Thinking {
    /// As much as it sees fit; the effort guides it.
    Adaptive {
        /// `summarized`: the newest models leave the text out unless asked for it.
        display: &'static str,
    },
    /// With a budget.
    Enabled {
        /// At least 1,024 and less than `max_tokens`.
        budget_tokens: u32,
    },
    /// Not at all.
    Disabled,
    /// Not at all, but with short notes between calls.
    BetweenTools,
}

/// The form of the answer, and how much effort goes into it.
#[derive(Debug, Serialize)]
pub struct OutputConfig<'a> {
    /// `low`, `medium`, `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<&'static str>,
    /// The form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat<'a>>,
}

/// The form of the answer.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputFormat<'a> {
    /// JSON of a schema.
    JsonSchema {
        /// The schema, in the API's subset.
        schema: Cow<'a, Value>,
    },
}

/// Who asks.
#[derive(Debug, Serialize)]
pub struct Metadata<'a> {
    /// An opaque id of the person.
    pub user_id: &'a str,
}

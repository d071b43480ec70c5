//! What is sent. Texts, media and schemas are borrowed from the domain request and written straight
//! into the body: no message is copied to be sent.

use std::borrow::Cow;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::schema::Written;

use super::content::Block;
use crate::{CacheLifetime, Effort};

/// The request body.
#[derive(Debug)]
pub struct Body<'a> {
    /// The model, in the server's words.
    pub model: &'a str,
    /// Output limit in tokens, thinking included. The API requires it.
    pub max_tokens: u32,
    /// The instructions before the conversation: texts only.
    pub system: Vec<Block<'a>>,
    /// Up to which of the instructions the request is kept in the cache.
    pub system_mark: Option<Mark>,
    /// The conversation: user and assistant in turn, beginning with the user.
    pub messages: Vec<Message<'a>>,
    /// The tools that the API runs itself. They are sent first: they change less than others.
    pub server_tools: Vec<ServerTool>,
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
        fields.put(
            "system",
            some_if_any(&self.system).map(|blocks| Marked {
                blocks,
                mark: self.system_mark,
            }),
        )?;
        fields.put("messages", Some(&self.messages))?;
        let declared = Declared {
            server: &self.server_tools,
            client: &self.tools,
        };
        fields.put("tools", Some(declared).filter(|it| it.len() > 0))?;
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
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// What was said; never empty.
    pub content: Vec<Block<'a>>,
    /// Up to which block the request is kept in the cache.
    pub mark: Option<Mark>,
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("role", &self.role)?;
        let content = Marked {
            blocks: &self.content,
            mark: self.mark,
        };
        map.serialize_entry("content", &content)?;
        map.end()
    }
}

/// A block that the request is kept in the cache up to, the block included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Which block of its list.
    pub at: usize,
    /// How long.
    pub control: CacheControl,
}

/// Blocks of which one may be marked.
struct Marked<'b, 'a> {
    blocks: &'b [Block<'a>],
    mark: Option<Mark>,
}

impl Serialize for Marked<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct WithControl<'b, 'a> {
            #[serde(flatten)]
            block: &'b Block<'a>,
            cache_control: CacheControl,
        }
        let mut list = serializer.serialize_seq(Some(self.blocks.len()))?;
        for (at, block) in self.blocks.iter().enumerate() {
            match self.mark.filter(|mark| mark.at == at) {
                Some(Mark { control, .. }) => list.serialize_element(&WithControl {
                    block,
                    cache_control: control,
                })?,
                None => list.serialize_element(block)?,
            }
        }
        list.end()
    }
}

/// How long what comes before a mark is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
pub struct CacheControl {
    /// `1h`; five minutes are what holds anyway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<&'static str>,
}

impl From<CacheLifetime> for CacheControl {
    fn from(lifetime: CacheLifetime) -> Self {
        let ttl = match lifetime {
            CacheLifetime::FiveMinutes => None,
            CacheLifetime::Hour => Some("1h"),
        };
        Self { ttl }
    }
}

/// The tools on the wire, in their order.
struct Declared<'b, 'a> {
    server: &'b [ServerTool],
    client: &'b [Tool<'a>],
}

impl Declared<'_, '_> {
    fn len(&self) -> usize {
        self.server.len() + self.client.len()
    }
}

impl Serialize for Declared<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        for tool in self.server {
            list.serialize_element(tool)?;
        }
        for tool in self.client {
            list.serialize_element(tool)?;
        }
        list.end()
    }
}

/// A tool that the API runs itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerTool {
    /// `type`, `name` and what the tool takes.
    #[serde(flatten)]
    pub declaration: JsonObject,
    /// The request is kept in the cache up to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
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
    pub name: Cow<'a, str>,
    /// What it does.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: Cow<'a, str>,
    /// JSON Schema of its input: an object.
    pub input_schema: Written,
    /// Whether the input is held to the schema.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// The request is kept in the cache up to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
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
        name: Cow<'a, str>,
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
    /// How much work goes into it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
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

//! Requests. Texts, media and schemas are borrowed from the domain request.

use std::borrow::Cow;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::{BodyFields, body_fields::non_empty, schema::ToolSchema};

use super::content::Block;
use crate::{CacheLifetime, Effort};

/// The request body.
#[derive(Debug)]
pub struct Body<'a> {
    pub model: &'a str,
    /// Maximum number of output tokens, with thinking. Required.
    pub max_tokens: u32,
    /// The instructions before the conversation, as text blocks.
    pub system: Vec<Block<'a>>,
    /// The cache breakpoint in `system`.
    pub system_breakpoint: Option<CacheBreakpoint>,
    /// The conversation. User and assistant alternate, and the user is first.
    pub messages: Vec<Message<'a>>,
    /// The API's own tools. They are sent first, because they change least.
    pub server_tools: Vec<ServerTool>,
    pub tools: Vec<Tool<'a>>,
    /// The tool choice. The API refuses it without tools.
    pub tool_choice: Option<ToolChoice<'a>>,
    pub thinking: Option<Thinking>,
    /// The output format and the effort.
    pub output_config: Option<OutputConfig<'a>>,
    /// 0.0 to 1.0.
    pub temperature: Option<f64>,
    /// 0.0 to 1.0.
    pub top_p: Option<f64>,
    /// Texts that end the answer.
    pub stop_sequences: Vec<&'a str>,
    /// The container in which the model continues to run code.
    pub container: Option<&'a str>,
    pub metadata: Option<Metadata<'a>>,
    /// Whether to stream the answer.
    pub stream: bool,
    /// Further fields of the caller. They override the fields above except `stream`, which
    /// decides how the answer is read.
    pub extra: &'a JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = BodyFields::new(serializer, self.extra)?;
        fields.put("model", Some(self.model))?;
        fields.put("max_tokens", Some(self.max_tokens))?;
        fields.put(
            "system",
            non_empty(&self.system).map(|blocks| BlocksWithBreakpoint {
                blocks,
                breakpoint: self.system_breakpoint,
            }),
        )?;
        fields.put("messages", Some(&self.messages))?;
        let declared = ToolList {
            server: &self.server_tools,
            client: &self.tools,
        };
        fields.put("tools", Some(declared).filter(|it| it.len() > 0))?;
        fields.put("tool_choice", self.tool_choice.as_ref())?;
        fields.put("thinking", self.thinking.as_ref())?;
        fields.put("output_config", self.output_config.as_ref())?;
        fields.put("temperature", self.temperature)?;
        fields.put("top_p", self.top_p)?;
        fields.put("stop_sequences", non_empty(&self.stop_sequences))?;
        fields.put("container", self.container)?;
        fields.put("metadata", self.metadata.as_ref())?;
        fields.end(self.stream)
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    pub role: Role,
    pub content: Vec<Block<'a>>,
    /// The cache breakpoint in `content`.
    pub breakpoint: Option<CacheBreakpoint>,
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("role", &self.role)?;
        let content = BlocksWithBreakpoint {
            blocks: &self.content,
            breakpoint: self.breakpoint,
        };
        map.serialize_entry("content", &content)?;
        map.end()
    }
}

/// The last block of a cached prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheBreakpoint {
    /// The index of the block in its list.
    pub index: usize,
    pub control: CacheControl,
}

/// Blocks, one of which may be a cache breakpoint.
struct BlocksWithBreakpoint<'b, 'a> {
    blocks: &'b [Block<'a>],
    breakpoint: Option<CacheBreakpoint>,
}

impl Serialize for BlocksWithBreakpoint<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct WithControl<'b, 'a> {
            #[serde(flatten)]
            block: &'b Block<'a>,
            cache_control: CacheControl,
        }
        let mut list = serializer.serialize_seq(Some(self.blocks.len()))?;
        for (index, block) in self.blocks.iter().enumerate() {
            match self.breakpoint.filter(|it| it.index == index) {
                Some(CacheBreakpoint { control, .. }) => list.serialize_element(&WithControl {
                    block,
                    cache_control: control,
                })?,
                None => list.serialize_element(block)?,
            }
        }
        list.end()
    }
}

/// The lifetime of a cached prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
pub struct CacheControl {
    /// `1h`. Without a value the lifetime is five minutes.
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

/// All tools, in the order of the wire.
struct ToolList<'b, 'a> {
    server: &'b [ServerTool],
    client: &'b [Tool<'a>],
}

impl ToolList<'_, '_> {
    fn len(&self) -> usize {
        self.server.len() + self.client.len()
    }
}

impl Serialize for ToolList<'_, '_> {
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

/// One of the API's own tools.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerTool {
    /// `type`, `name` and the settings.
    #[serde(flatten)]
    pub declaration: JsonObject,
    /// The lifetime, if the tool is a cache breakpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions within a conversation. They must follow a user message, and an assistant
    /// message or the end must follow them.
    System,
    /// The user, and tool results.
    User,
    Assistant,
}

/// A declared tool.
#[derive(Debug, Serialize)]
pub struct Tool<'a> {
    /// `[a-zA-Z0-9_-]{1,128}`.
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: Cow<'a, str>,
    /// The JSON Schema of the input, an object.
    pub input_schema: ToolSchema,
    /// Whether the API enforces the schema.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// The lifetime, if the tool is a cache breakpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
}

/// The tool choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ToolChoice<'a> {
    Auto {
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        disable_parallel_tool_use: bool,
    },
    /// At least one tool call.
    Any {
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        disable_parallel_tool_use: bool,
    },
    /// A call of this tool.
    Tool {
        name: Cow<'a, str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        disable_parallel_tool_use: bool,
    },
    None,
}

/// The thinking mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Thinking {
    /// The model decides how much to think. The effort guides it.
    Adaptive {
        /// `summarized`. The newest models omit the text by default.
        display: &'static str,
    },
    Enabled {
        /// At least 1,024 and less than `max_tokens`.
        budget_tokens: u32,
    },
    Disabled,
    /// No thinking, but short notes between tool calls.
    BetweenTools,
}

/// The output format and the effort.
#[derive(Debug, Serialize)]
pub struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat<'a>>,
}

/// The output format.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputFormat<'a> {
    /// JSON that conforms to a schema.
    JsonSchema {
        /// The schema, in the API's subset.
        schema: Cow<'a, Value>,
    },
}

/// The user.
#[derive(Debug, Serialize)]
pub struct Metadata<'a> {
    pub user_id: &'a str,
}

//! Request types of the Messages API, which borrow texts, media and schemas from the domain.

use std::borrow::Cow;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::{BodyFields, body_fields::none_if_empty, schema::ToolSchema};

use super::content::Block;
use crate::{CacheLifetime, Effort};

/// The body of a Messages API request.
#[derive(Debug)]
pub struct Body<'a> {
    pub model: &'a str,
    /// Maximum number of output tokens, including thinking. The API requires this field.
    pub max_tokens: u32,
    /// The instructions before the conversation, as text blocks.
    pub system: Vec<Block<'a>>,
    /// The cache breakpoint on one of the blocks in `system`.
    pub system_breakpoint: Option<CacheBreakpoint>,
    /// The conversation, starting with a message of the user. User and assistant messages
    /// alternate, and a user message may be followed by a system message with instructions.
    pub messages: Vec<Message<'a>>,
    /// The server tools, which the API runs. They come first in the list of tools, because they
    /// change least: an unchanged start of the list preserves prompt caches.
    pub server_tools: Vec<ServerTool>,
    pub tools: Vec<Tool<'a>>,
    /// The tool choice. The API refuses it in a request without tools.
    pub tool_choice: Option<ToolChoice<'a>>,
    pub thinking: Option<Thinking>,
    /// The output format and the effort.
    pub output_config: Option<OutputConfig<'a>>,
    /// Sampling temperature, from 0.0 to 1.0.
    pub temperature: Option<f64>,
    /// Nucleus sampling threshold, from 0.0 to 1.0.
    pub top_p: Option<f64>,
    /// Stop sequences: texts at which the answer ends.
    pub stop_sequences: Vec<&'a str>,
    /// Id of the code execution container that continues to run the model's code.
    pub container: Option<&'a str>,
    pub metadata: Option<Metadata<'a>>,
    /// Whether the API streams the answer.
    pub stream: bool,
    /// The caller's `extra` fields. They override all fields above except `stream`, which decides
    /// how the answer is read.
    pub extra: &'a JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = BodyFields::new(serializer, self.extra)?;
        fields.put_field("model", Some(self.model))?;
        fields.put_field("max_tokens", Some(self.max_tokens))?;
        fields.put_field(
            "system",
            none_if_empty(&self.system).map(|blocks| BlocksWithBreakpoint {
                blocks,
                breakpoint: self.system_breakpoint,
            }),
        )?;
        fields.put_field("messages", Some(&self.messages))?;
        let declared = ToolList {
            server: &self.server_tools,
            client: &self.tools,
        };
        fields.put_field("tools", Some(declared).filter(|it| it.len() > 0))?;
        fields.put_field("tool_choice", self.tool_choice.as_ref())?;
        fields.put_field("thinking", self.thinking.as_ref())?;
        fields.put_field("output_config", self.output_config.as_ref())?;
        fields.put_field("temperature", self.temperature)?;
        fields.put_field("top_p", self.top_p)?;
        fields.put_field("stop_sequences", none_if_empty(&self.stop_sequences))?;
        fields.put_field("container", self.container)?;
        fields.put_field("metadata", self.metadata.as_ref())?;
        fields.end_body(self.stream)
    }
}

/// A message of the conversation, as the request sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    pub role: Role,
    pub content: Vec<Block<'a>>,
    /// The cache breakpoint on one of the blocks in `content`.
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

/// A cache breakpoint: the last block of a cached prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheBreakpoint {
    /// Index, in `system` or in `content`, of the block that ends the cached prefix.
    pub index: usize,
    pub control: CacheControl,
}

/// A list of blocks with at most one cache breakpoint.
struct BlocksWithBreakpoint<'b, 'a> {
    blocks: &'b [Block<'a>],
    breakpoint: Option<CacheBreakpoint>,
}

impl Serialize for BlocksWithBreakpoint<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct BlockWithCacheControl<'b, 'a> {
            #[serde(flatten)]
            block: &'b Block<'a>,
            cache_control: CacheControl,
        }
        let mut list = serializer.serialize_seq(Some(self.blocks.len()))?;
        for (index, block) in self.blocks.iter().enumerate() {
            match self.breakpoint.filter(|it| it.index == index) {
                Some(CacheBreakpoint { control, .. }) => {
                    list.serialize_element(&BlockWithCacheControl {
                        block,
                        cache_control: control,
                    })?;
                }
                None => list.serialize_element(block)?,
            }
        }
        list.end()
    }
}

/// The field `cache_control`, which sets the lifetime of a cached prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
pub struct CacheControl {
    /// Lifetime of the cached prefix, `1h` or the default of five minutes.
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

/// All tools of a request, in the order in which they are sent.
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

/// A server tool, which the API runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerTool {
    /// The fields `type` and `name`, and the settings of the tool.
    #[serde(flatten)]
    pub declaration: JsonObject,
    /// Cache control, if the tool is a cache breakpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
}

/// Author of a message in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions within a conversation. They must follow a user message, and only an assistant
    /// message may follow them.
    System,
    /// The user. Messages with tool results have this role too.
    User,
    Assistant,
}

/// A declaration of a tool that the caller runs.
#[derive(Debug, Serialize)]
pub struct Tool<'a> {
    /// Name of the tool. It matches `[a-zA-Z0-9_-]{1,128}`.
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: Cow<'a, str>,
    /// JSON Schema of the tool's input. The root of the schema must have the type `object`.
    pub input_schema: ToolSchema,
    /// Whether the API enforces the input schema of the tool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Cache control, if the tool is a cache breakpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<CacheControl>,
}

/// The request field `tool_choice`: whether the model must call a tool, and which one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolChoice<'a> {
    /// Type of the choice: `auto` (the model decides), `any` (the model must call a tool), `tool`
    /// (the model must call the tool `name`) or `none` (the model must not call a tool).
    pub r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disable_parallel_tool_use: bool,
}

/// The request field `thinking`: whether and how the model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Thinking {
    /// The model decides how much to think, guided by the effort.
    Adaptive {
        /// Display mode of the thinking text: `summarized`. By default, the newest models omit the
        /// text.
        display: &'static str,
    },
    Enabled {
        /// Thinking budget in tokens: at least 1,024 and less than `max_tokens`.
        budget_tokens: u32,
    },
    Disabled,
    /// The model only thinks in short notes between tool calls.
    BetweenTools,
}

/// The request field `output_config`: the format of the answer and the effort.
#[derive(Debug, Serialize)]
pub struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat<'a>>,
}

/// Format that the API enforces in the model's answer.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputFormat<'a> {
    /// The answer is JSON that conforms to a schema.
    JsonSchema {
        /// The response schema, in the subset of JSON Schema that the API supports.
        schema: Cow<'a, Value>,
    },
}

/// Metadata of the request: the id of the end user.
#[derive(Debug, Serialize)]
pub struct Metadata<'a> {
    pub user_id: &'a str,
}

//! Request types, except messages and their parts.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::{BodyFields, body_fields::none_if_empty, schema::ToolSchema};

use super::content::Content;

/// The request body. It has no fields for the model and for streaming, which are in the URL.
#[derive(Debug)]
pub struct Body<'a> {
    pub system_instruction: Option<Content<'a>>,
    pub contents: Vec<Content<'a>>,
    /// The declared functions and server tools.
    pub tools: Vec<Tool<'a>>,
    pub tool_config: Option<ToolConfig<'a>>,
    pub generation_config: GenerationConfig<'a>,
    /// The caller's additional body fields, which override the fields of this type. Objects are
    /// merged and the lists of `tools` are concatenated, so that the caller can set a single field
    /// of `generationConfig` or add one tool.
    pub extra: &'a JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = BodyFields::new(serializer, self.extra)?;
        fields.put_field("systemInstruction", self.system_instruction.as_ref())?;
        fields.put_field("contents", Some(&self.contents))?;
        fields.put_merged_field("tools", none_if_empty(&self.tools))?;
        fields.put_merged_field("toolConfig", self.tool_config.as_ref())?;
        let config = &self.generation_config;
        fields.put_merged_field("generationConfig", (!config.is_empty()).then_some(config))?;
        fields.end_body_without_stream()
    }
}

/// An entry of the request field `tools`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Tool<'a> {
    Functions {
        #[serde(rename = "functionDeclarations")]
        function_declarations: Vec<FunctionDeclaration<'a>>,
    },
    /// A server tool, which the API runs itself.
    Own(JsonObject),
}

/// A declaration of a function that the caller runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionDeclaration<'a> {
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: &'a str,
    /// JSON Schema of the function's input. Not allowed together with `parameters`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters_json_schema: Option<ToolSchema>,
    /// Schema of the function's input in the API's subset of OpenAPI. Absent for a function without
    /// input. Not allowed together with `parameters_json_schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<ToolSchema>,
}

/// The request field `toolConfig`: settings for the use of tools.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function_calling_config: Option<FunctionCallingConfig<'a>>,
    /// Whether the messages include calls and results of server tools. Required when server tools
    /// accompany functions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub include_server_side_tool_invocations: bool,
}

/// Settings for function calls: whether the model may call functions, and which ones.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionCallingConfig<'a> {
    /// Mode that permits, requires or forbids function calls.
    pub mode: CallingMode,
    /// Names of the allowed functions. Empty to allow all functions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_function_names: Vec<Cow<'a, str>>,
}

/// Mode that permits, requires or forbids function calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CallingMode {
    Auto,
    /// The model may call functions. Replaces `AUTO`, which the API refuses beside server tools.
    Validated,
    /// The model must call a function.
    Any,
    /// The model must not call a function.
    None,
}

/// The request field `generationConfig`: sampling, limits and format of the answer.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationConfig<'a> {
    /// Sampling temperature, from 0.0 to 2.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling threshold, from 0.0 to 1.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Output limit in tokens, including thoughts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Texts at which the answer ends, at most five.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub stop_sequences: &'a [String],
    /// Seed for reproducible answers, a 32-bit integer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i32>,
    /// Media type of the answer: `application/json` for an answer that conforms to a schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_mime_type: Option<&'static str>,
    /// Response schema as JSON Schema. Not allowed together with `response_schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_json_schema: Option<Cow<'a, Value>>,
    /// Response schema in the API's subset of OpenAPI. Not allowed together with
    /// `response_json_schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Cow<'a, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_config: Option<ThinkingConfig>,
}

impl GenerationConfig<'_> {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The thinking settings of a request. The API refuses a request with both `thinking_level` and
/// `thinking_budget`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingConfig {
    /// Whether the answer includes thoughts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_thoughts: Option<bool>,
    /// Thinking level for Gemini 3 and later: `MINIMAL`, `LOW`, `MEDIUM` or `HIGH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<&'static str>,
    /// Thinking budget in tokens for Gemini 2.5 models. 0 disables thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<u32>,
}

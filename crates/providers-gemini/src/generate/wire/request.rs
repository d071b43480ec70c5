//! The request body around the contents.

use std::borrow::Cow;

use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap},
};
use serde_json::Value;
use switchboard_domain::JsonObject;
use switchboard_providers_common::schema::ToolSchema;

use super::content::{Content, is_false};

/// The request body. The address names the model and whether the answer is streamed.
#[derive(Debug)]
pub struct Body<'a> {
    pub system_instruction: Option<Content<'a>>,
    pub contents: Vec<Content<'a>>,
    /// The functions declared, and the API's own tools.
    pub tools: Vec<Tool<'a>>,
    pub tool_config: Option<ToolConfig<'a>>,
    pub generation_config: GenerationConfig<'a>,
    /// Fields set by the caller, which override the others. Objects are merged and `tools` joined,
    /// so that one field of `generationConfig` or one more tool can be set alone.
    pub extra: &'a JsonObject,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Fields {
            map: serializer.serialize_map(None)?,
            extra: self.extra,
        };
        fields.put("systemInstruction", self.system_instruction.as_ref())?;
        fields.put("contents", Some(&self.contents))?;
        let tools = (!self.tools.is_empty()).then_some(&self.tools);
        fields.put("tools", tools)?;
        fields.put("toolConfig", self.tool_config.as_ref())?;
        let config = &self.generation_config;
        fields.put("generationConfig", (!config.is_empty()).then_some(config))?;
        let Fields { mut map, extra } = fields;
        for (name, value) in extra.iter().filter(|(name, _)| !is_merged(name)) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The fields that are merged with those of the caller.
fn is_merged(name: &str) -> bool {
    matches!(name, "tools" | "toolConfig" | "generationConfig")
}

struct Fields<'a, M> {
    map: M,
    extra: &'a JsonObject,
}

impl<M: SerializeMap> Fields<'_, M> {
    /// Writes a field that has a value, merged with the caller's.
    fn put<T: Serialize>(&mut self, name: &str, value: Option<T>) -> Result<(), M::Error> {
        match (value, self.extra.get(name)) {
            (Some(value), None) => self.map.serialize_entry(name, &value),
            (Some(value), Some(more)) if is_merged(name) => {
                let mut value = serde_json::to_value(value).map_err(M::Error::custom)?;
                merge(&mut value, more);
                self.map.serialize_entry(name, &value)
            }
            (None, Some(more)) if is_merged(name) => self.map.serialize_entry(name, more),
            // Written with the caller's fields, or not at all.
            _ => Ok(()),
        }
    }
}

fn merge(ours: &mut Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (name, value) in theirs {
                match ours.get_mut(name) {
                    Some(known @ Value::Object(_)) => merge(known, value),
                    _ => {
                        ours.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => ours.extend(theirs.iter().cloned()),
        (ours, theirs) => ours.clone_from(theirs),
    }
}

/// An entry of `tools`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Tool<'a> {
    Functions {
        #[serde(rename = "functionDeclarations")]
        function_declarations: Vec<FunctionDeclaration<'a>>,
    },
    /// A tool that the API runs itself.
    Own(JsonObject),
}

/// A function.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionDeclaration<'a> {
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub description: &'a str,
    /// Its input in JSON Schema. Excludes `parameters`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters_json_schema: Option<ToolSchema>,
    /// Its input in the subset of OpenAPI; absent for a function without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<ToolSchema>,
}

/// How tools are used.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function_calling_config: Option<FunctionCallingConfig<'a>>,
    /// Whether calls and results of server tools are part of the contents. Required for server
    /// tools beside functions.
    #[serde(skip_serializing_if = "is_false")]
    pub include_server_side_tool_invocations: bool,
}

/// How functions are called.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FunctionCallingConfig<'a> {
    /// Whether the model may or must.
    pub mode: CallingMode,
    /// The allowed functions. Empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_function_names: Vec<Cow<'a, str>>,
}

/// Whether the model may or must call functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CallingMode {
    Auto,
    /// The model decides. Beside server tools `AUTO` is refused.
    Validated,
    /// The model must call a function.
    Any,
    /// The model must not call a function.
    None,
}

/// Settings of the answer.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationConfig<'a> {
    /// 0.0 to 2.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 0.0 to 1.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Output limit in tokens, thoughts included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Up to five texts at which the answer ends.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub stop_sequences: &'a [String],
    /// The seed for repeatable answers, 32 bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i32>,
    /// `application/json` for an answer in the form of a schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_mime_type: Option<&'static str>,
    /// The schema of the answer in JSON Schema. Excludes `response_schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_json_schema: Option<Cow<'a, Value>>,
    /// The schema of the answer in the subset of OpenAPI.
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

/// The thinking setting. Level and budget exclude each other.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingConfig {
    /// Whether the answer includes thoughts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_thoughts: Option<bool>,
    /// `MINIMAL`, `LOW`, `MEDIUM` or `HIGH`, for Gemini 3 and later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<&'static str>,
    /// Tokens of thinking, for Gemini 2.5; 0 switches it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<u32>,
}

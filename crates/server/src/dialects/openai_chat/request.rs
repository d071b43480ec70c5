//! A request of OpenAI's Chat Completions API (`types/chat/completion_create_params.py` of the
//! package `openai` 3.54.0).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_domain::{Message, Part, ReasoningEffort, Role, ToolChoice, ToolResult};
use switchboard_orchestration::strategy::formatter::Form;
use utoipa::ToSchema;

use super::super::conversation::{
    self, Conversation, bad_messages, check_unread_fields, unsupported,
};
use super::super::runs::ephemeral::SwitchboardFields;
use crate::{Parameters, Problem};

/// A request of OpenAI's Chat Completions API. Other fields that change the answer are errors.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct OpenAiChatRequest {
    /// `PROVIDER/MODEL`, a model name, or `default` for the configured model.
    pub(crate) model: String,
    /// The conversation in OpenAI's format.
    #[schema(value_type = Vec<Object>)]
    pub(crate) messages: Vec<ChatMessage>,
    /// Whether the answer is streamed.
    #[serde(default)]
    pub(crate) stream: Option<bool>,
    /// `{"include_usage": true}` adds token counts to the end of a stream.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) stream_options: Option<StreamOptions>,
    /// Maximum tokens of one answer.
    #[serde(default)]
    max_completion_tokens: Option<u32>,
    /// The older name of `max_completion_tokens`.
    #[serde(default)]
    max_tokens: Option<u32>,
    /// 0 to 2.
    #[serde(default)]
    temperature: Option<f64>,
    /// 0 to 1.
    #[serde(default)]
    top_p: Option<f64>,
    /// Texts that end the answer.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    stop: Option<Stop>,
    /// Seed for reproducible answers.
    #[serde(default)]
    seed: Option<u64>,
    /// `none`, `low`, `medium` or `high`.
    #[serde(default)]
    reasoning_effort: Option<String>,
    /// Whether the model may make several calls at once.
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    /// The server's tool that the model must call first.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    tool_choice: Option<Choice>,
    /// Tools of the client.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Tool>>,
    /// The format of the answer: `{"type": "json_schema", "json_schema": {"schema": …}}`,
    /// `{"type": "json_object"}` or `{"type": "text"}`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    response_format: Option<Format>,
    /// Extension of Switchboard: `{"recipe", "approve", "max_steps", "tools", "context"}`.
    #[serde(default)]
    pub(crate) switchboard: Option<SwitchboardFields>,
    /// All other fields.
    #[serde(flatten)]
    #[schema(ignore)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StreamOptions {
    #[serde(default)]
    pub(crate) include_usage: bool,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Stop {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Choice {
    Mode(String),
    Named {
        function: NamedFunction,
    },
    /// An unsupported value.
    Other(serde::de::IgnoredAny),
}

/// The format of the answer.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format {
    Text,
    JsonObject,
    JsonSchema {
        json_schema: FormatSchema,
    },
    #[serde(other)]
    Other,
}

/// Every answer is validated, so the name and `strict` have no effect.
#[derive(Debug, Deserialize)]
struct FormatSchema {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    schema: Option<Value>,
}

/// A tool of the client.
#[derive(Debug, Deserialize)]
struct Tool {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    function: Option<ToolFunction>,
}

#[derive(Debug, Deserialize)]
struct ToolFunction {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct NamedFunction {
    name: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChatMessage {
    role: String,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    function_call: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Debug, Deserialize)]
struct ContentPart {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    image_url: Option<ImageUrl>,
    #[serde(default)]
    input_audio: Option<InputAudio>,
    #[serde(default)]
    file: Option<File>,
}

#[derive(Debug, Deserialize)]
struct ImageUrl {
    url: String,
}

#[derive(Debug, Deserialize)]
struct InputAudio {
    data: String,
    format: String,
}

#[derive(Debug, Deserialize)]
struct File {
    #[serde(default)]
    file_data: Option<String>,
    #[serde(default)]
    filename: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    id: String,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: String,
}

impl OpenAiChatRequest {
    /// Returns the parameters of the run. Unsupported ones are errors.
    pub(crate) fn parameters(&self) -> Result<Parameters, Problem> {
        check_unread_fields(&self.rest, has_no_effect)?;
        if let Some(options) = &self.stream_options {
            check_unread_fields(&options.rest, |field, value| {
                // Padding against traffic analysis, which this server does not add.
                field == "include_obfuscation" && value == &Value::Bool(false)
            })?;
        }
        let max_output_tokens = match (self.max_completion_tokens, self.max_tokens) {
            (Some(one), Some(other)) if one != other => {
                return Err(unsupported(
                    "max_tokens",
                    "`max_tokens` and `max_completion_tokens` differ: send one of them",
                ));
            }
            (one, other) => one.or(other),
        };
        let extension = self.switchboard.as_ref();
        let parameters = Parameters {
            temperature: self.temperature,
            top_p: self.top_p,
            seed: self.seed,
            max_output_tokens,
            parallel_tool_use: self.parallel_tool_calls,
            reasoning: self.reasoning()?,
            tool_choice: self.tool_choice()?,
            stop: match &self.stop {
                None => Vec::new(),
                Some(Stop::One(text)) => vec![text.clone()],
                Some(Stop::Several(texts)) => texts.clone(),
            },
            ..extension
                .map(SwitchboardFields::parameters)
                .unwrap_or_default()
        };
        Ok(parameters)
    }

    fn reasoning(&self) -> Result<Option<ReasoningEffort>, Problem> {
        Ok(Some(match self.reasoning_effort.as_deref() {
            None => return Ok(None),
            Some("none") => ReasoningEffort::None,
            Some("low") => ReasoningEffort::Low,
            Some("medium") => ReasoningEffort::Medium,
            Some("high") => ReasoningEffort::High,
            Some(other) => {
                return Err(unsupported(
                    "reasoning_effort",
                    &format!("`reasoning_effort` must be none, low, medium or high, not `{other}`"),
                ));
            }
        }))
    }

    fn tool_choice(&self) -> Result<Option<ToolChoice>, Problem> {
        Ok(Some(match &self.tool_choice {
            None => return Ok(None),
            Some(Choice::Mode(mode)) if mode == "auto" => ToolChoice::Auto,
            Some(Choice::Mode(mode)) if mode == "none" => ToolChoice::None,
            Some(Choice::Mode(mode)) if mode == "required" => ToolChoice::Required,
            Some(Choice::Named { function }) => ToolChoice::Only(vec![function.name.clone()]),
            Some(Choice::Mode(_) | Choice::Other(_)) => {
                return Err(unsupported(
                    "tool_choice",
                    "`tool_choice` must be \"auto\", \"none\", \"required\" or {\"type\": \"function\", \
                     \"function\": {\"name\": …}} with the name of one of the server's tools (GET /mcp/tools)",
                ));
            }
        }))
    }

    /// Returns the client's tools: names, descriptions, schemas.
    pub(crate) fn tools(&self) -> Result<Vec<(String, String, Value)>, Problem> {
        let tools = self.tools.iter().flatten().enumerate();
        tools
            .map(|(index, tool)| match (tool.kind.as_str(), &tool.function) {
                ("function", Some(function)) => Ok((
                    function.name.clone(),
                    function.description.clone().unwrap_or_default(),
                    function
                        .parameters
                        .clone()
                        .unwrap_or_else(|| json!({"type": "object", "properties": {}})),
                )),
                _ => Err(unsupported(
                    "tools",
                    &format!("tools[{index}]: only tools of the type `function` are supported"),
                )),
            })
            .collect()
    }

    /// Returns the schema of the answer, or `None` for text.
    pub(crate) fn answer_form(&self) -> Result<Option<Form>, Problem> {
        const FIELD: &str = "response_format";
        let form = match &self.response_format {
            None | Some(Format::Text) => return Ok(None),
            Some(Format::JsonObject) => Form::any_object(),
            Some(Format::JsonSchema { json_schema }) => {
                let mut schema = json_schema.schema.clone().unwrap_or_else(|| json!({}));
                if let (Some(fields), Some(text)) =
                    (schema.as_object_mut(), &json_schema.description)
                {
                    let description = fields.entry("description");
                    description.or_insert_with(|| text.as_str().into());
                }
                Form::new(schema)
            }
            Some(Format::Other) => {
                return Err(unsupported(
                    FIELD,
                    "`response_format` must have the type text, json_object or json_schema",
                ));
            }
        };
        let form = form.map_err(|error| unsupported(FIELD, &format!("`{FIELD}`: {error}")));
        form.map(Some)
    }

    pub(crate) fn conversation(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let mut conversation = Conversation::default();
        for (index, message) in self.messages.iter().enumerate() {
            message
                .add_to(&mut conversation)
                .map_err(|why| bad_messages(format!("messages[{index}]: {why}")))?;
        }
        conversation.finish().map_err(bad_messages)
    }
}

/// Returns whether a parameter has its default value or concerns only the vendor.
fn has_no_effect(field: &str, value: &Value) -> bool {
    match field {
        "n" => value == 1,
        "frequency_penalty" | "presence_penalty" => value.as_f64() == Some(0.0),
        "logprobs" | "store" => value == &Value::Bool(false),
        "top_logprobs" => value == 0,
        "logit_bias" => value.as_object().is_some_and(Map::is_empty),
        "functions" => value.as_array().is_some_and(Vec::is_empty),
        "modalities" => value.as_array().is_some_and(|list| list == &["text"]),
        "service_tier" => matches!(value.as_str(), Some("auto" | "default")),
        "verbosity" => value == "medium",
        // Identity of the user, stored metadata and the cache of the vendor.
        "user" | "safety_identifier" | "metadata" | "prompt_cache_key" => true,
        _ => false,
    }
}

impl ChatMessage {
    fn add_to(&self, conversation: &mut Conversation) -> Result<(), String> {
        if self.function_call.is_some() {
            return Err("`function_call` is not supported: send `tool_calls`".to_owned());
        }
        match self.role.as_str() {
            "system" | "developer" => conversation.push(Role::System, self.parts()?),
            "user" => conversation.push(Role::User, self.parts()?),
            "assistant" => {
                let mut parts = self.parts()?;
                parts.extend(self.refusal.as_deref().and_then(conversation::text));
                for call in self.tool_calls.iter().flatten() {
                    let Some(function) = &call.function else {
                        return Err(format!("the call `{}` has no function", call.id));
                    };
                    parts.push(conversation::tool_call(
                        &call.id,
                        &function.name,
                        &function.arguments,
                    ));
                }
                conversation.push(Role::Assistant, parts)
            }
            "tool" => {
                let id = self
                    .tool_call_id
                    .as_deref()
                    .ok_or("a tool message needs `tool_call_id`")?;
                let message = Message::new(Role::Tool, self.parts()?);
                conversation.push_result(ToolResult::text(id, "", message.text()))
            }
            other => Err(format!("the role `{other}` is not supported")),
        }
    }

    fn parts(&self) -> Result<Vec<Part>, String> {
        match &self.content {
            None => Ok(Vec::new()),
            Some(Content::Text(text)) => Ok(conversation::text(text).into_iter().collect()),
            Some(Content::Parts(parts)) => {
                let parts = parts.iter().map(ContentPart::part);
                parts.filter_map(Result::transpose).collect()
            }
        }
    }
}

impl ContentPart {
    fn part(&self) -> Result<Option<Part>, String> {
        match (self.kind.as_str(), self) {
            (
                "text",
                Self {
                    text: Some(text), ..
                },
            )
            | (
                "refusal",
                Self {
                    refusal: Some(text),
                    ..
                },
            ) => Ok(conversation::text(text)),
            (
                "image_url",
                Self {
                    image_url: Some(image),
                    ..
                },
            ) => conversation::file(&image.url, None, None).map(Some),
            (
                "input_audio",
                Self {
                    input_audio: Some(audio),
                    ..
                },
            ) => {
                let url = format!("data:audio/{};base64,{}", audio.format, audio.data);
                conversation::file(&url, None, None).map(Some)
            }
            (
                "file",
                Self {
                    file:
                        Some(File {
                            file_data: Some(data),
                            filename,
                        }),
                    ..
                },
            ) => conversation::file(data, Some("application/pdf"), filename.as_deref()).map(Some),
            (kind, _) => Err(format!(
                "a part of the type `{kind}` with these fields is not supported"
            )),
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

//! Parses requests of OpenAI's Chat Completions API (`types/chat/completion_create_params.py` of
//! the Python package `openai` 3.54.0).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_domain::{Message, Part, Role, ToolChoice, ToolResult};
use switchboard_orchestration::strategy::formatter::AnswerSchema;
use utoipa::ToSchema;

use super::super::{
    conversation::{
        self, ContentPart, Conversation, FunctionCall, MessageContent, parse_reasoning_effort,
        reject_unsupported_fields, unsupported_field,
    },
    runs::ephemeral_request::SwitchboardFields,
    tools::client_tools::DeclaredTool,
};
use crate::{Parameters, Problem};

/// A request of OpenAI's Chat Completions API. Unsupported fields are errors if they change the
/// answer.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct OpenAiChatRequest {
    /// The model: `PROVIDER/MODEL`, a model name, or `default` for the configured model.
    pub(crate) model: String,
    /// The conversation in OpenAI's message format.
    #[schema(value_type = Vec<Object>)]
    pub(crate) messages: Vec<ChatMessage>,
    /// Whether the answer is streamed as server-sent events.
    pub(crate) stream: Option<bool>,
    /// Stream options. `{"include_usage": true}` adds token counts to the end of a stream.
    #[schema(value_type = Option<Object>)]
    pub(crate) stream_options: Option<StreamOptions>,
    /// Maximum number of output tokens of one model call.
    max_completion_tokens: Option<u32>,
    /// The older name of `max_completion_tokens`.
    max_tokens: Option<u32>,
    /// Sampling temperature, from 0 to 2.
    temperature: Option<f64>,
    /// Nucleus sampling: the probability mass of the tokens to sample from, from 0 to 1.
    top_p: Option<f64>,
    /// Stop sequences: a string or a list of strings that end the answer.
    #[schema(value_type = Option<Object>)]
    stop: Option<StopSequences>,
    /// The seed for reproducible answers, if the provider supports one.
    seed: Option<u64>,
    /// The reasoning effort: `none`, `low`, `medium` or `high`.
    reasoning_effort: Option<String>,
    /// Whether one model call may request several tool calls.
    parallel_tool_calls: Option<bool>,
    /// The tool choice of the first model call. It can name tools of the server, not of the client.
    #[schema(value_type = Option<Object>)]
    tool_choice: Option<Value>,
    /// Tools that the client declares in this request and executes itself.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<OpenAiTool>>,
    /// The format of the answer: `{"type": "json_schema", "json_schema": {"schema": …}}`,
    /// `{"type": "json_object"}` or `{"type": "text"}`.
    #[schema(value_type = Option<Object>)]
    response_format: Option<Value>,
    /// Settings of Switchboard that OpenAI's API does not have:
    /// `{"recipe", "approve", "max_steps", "tools", "context"}`.
    pub(crate) switchboard: Option<SwitchboardFields>,
    /// All other fields of the request. They are errors unless they have no effect on the answer.
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
enum StopSequences {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Deserialize)]
struct OpenAiTool {
    #[serde(rename = "type")]
    kind: String,
    function: Option<DeclaredTool>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ChatMessage {
    role: String,
    content: Option<MessageContent<ChatMessagePart>>,
    refusal: Option<String>,
    tool_calls: Option<Vec<FunctionCall>>,
    tool_call_id: Option<String>,
    function_call: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatMessagePart {
    Text {
        text: String,
    },
    Refusal {
        refusal: String,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
    InputAudio {
        input_audio: InputAudio,
    },
    File {
        file: ChatFile,
    },
    #[serde(other)]
    Other,
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
struct ChatFile {
    file_data: Option<String>,
    filename: Option<String>,
}

impl OpenAiChatRequest {
    /// Converts the request fields to run parameters. Returns an error for unsupported fields.
    pub(crate) fn parse_parameters(&self) -> Result<Parameters, Problem> {
        reject_unsupported_fields(&self.rest, is_ignorable_field)?;
        if let Some(options) = &self.stream_options {
            reject_unsupported_fields(&options.rest, |field, value| {
                // `include_obfuscation` requests padding against traffic analysis. `false` is
                // accepted, because this server never adds padding.
                field == "include_obfuscation" && value == &Value::Bool(false)
            })?;
        }
        let max_output_tokens = match (self.max_completion_tokens, self.max_tokens) {
            (Some(one), Some(other)) if one != other => {
                return Err(unsupported_field(
                    "max_tokens",
                    "`max_tokens` and `max_completion_tokens` differ: send one of them",
                ));
            }
            (one, other) => one.or(other),
        };
        let extension = self.switchboard.as_ref();
        let extension = extension.map(SwitchboardFields::to_run_parameters);
        let effort = self.reasoning_effort.as_deref();
        Ok(Parameters {
            temperature: self.temperature,
            top_p: self.top_p,
            seed: self.seed,
            max_output_tokens,
            parallel_tool_use: self.parallel_tool_calls,
            reasoning: parse_reasoning_effort(effort, "reasoning_effort", "reasoning_effort")?,
            tool_choice: self.parse_tool_choice()?,
            stop: match &self.stop {
                None => Vec::new(),
                Some(StopSequences::One(text)) => vec![text.clone()],
                Some(StopSequences::Several(texts)) => texts.clone(),
            },
            ..extension.unwrap_or_default()
        })
    }

    fn parse_tool_choice(&self) -> Result<Option<ToolChoice>, Problem> {
        let Some(choice) = &self.tool_choice else {
            return Ok(None);
        };
        let choice = match (choice.as_str(), choice["function"]["name"].as_str()) {
            (Some("auto"), _) => ToolChoice::Auto,
            (Some("none"), _) => ToolChoice::None,
            (Some("required"), _) => ToolChoice::Required,
            (_, Some(name)) => ToolChoice::Only(vec![name.to_owned()]),
            _ => {
                return Err(unsupported_field(
                    "tool_choice",
                    "`tool_choice` must be \"auto\", \"none\", \"required\" or {\"type\": \
                     \"function\", \"function\": {\"name\": …}} with the name of one of the \
                     server's tools (GET /mcp/tools)",
                ));
            }
        };
        Ok(Some(choice))
    }

    pub(crate) fn parse_tools(&self) -> Result<Vec<DeclaredTool>, Problem> {
        let tools = self.tools.iter().flatten().enumerate();
        tools
            .map(|(index, tool)| {
                let function = tool.function.clone().filter(|_| tool.kind == "function");
                function.ok_or_else(|| {
                    let reason = "only tools of the type `function` are supported";
                    unsupported_field("tools", &format!("tools[{index}]: {reason}"))
                })
            })
            .collect()
    }

    /// Returns the JSON Schema that the answer must match, or `None` for a text answer.
    pub(crate) fn parse_answer_schema(&self) -> Result<Option<AnswerSchema>, Problem> {
        let Some(format) = &self.response_format else {
            return Ok(None);
        };
        let form = match format["type"].as_str() {
            Some("text") => return Ok(None),
            Some("json_object") => AnswerSchema::new_any_object_schema(),
            Some("json_schema") => {
                // The server validates every answer, so the schema's name and `strict` have no
                // effect.
                let given = &format["json_schema"];
                let mut schema = given.get("schema").cloned().unwrap_or_else(|| json!({}));
                if let (Some(fields), Some(text)) =
                    (schema.as_object_mut(), given["description"].as_str())
                {
                    let description = fields.entry("description");
                    description.or_insert_with(|| text.into());
                }
                AnswerSchema::new(schema)
            }
            _ => {
                return Err(unsupported_field(
                    "response_format",
                    "`response_format` must have the type text, json_object or json_schema",
                ));
            }
        };
        let refused =
            |error| unsupported_field("response_format", &format!("`response_format`: {error}"));
        form.map(Some).map_err(refused)
    }

    pub(crate) fn parse_conversation(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let messages = self.messages.iter().enumerate();
        Conversation::default().parse_client_messages(messages, ChatMessage::add_to_conversation)
    }
}

/// Returns whether the server may ignore a request field, because the field has its default value
/// or concerns only OpenAI's service.
fn is_ignorable_field(field: &str, value: &Value) -> bool {
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
        // These fields identify the user, or control OpenAI's metadata and prompt cache.
        "user" | "safety_identifier" | "metadata" | "prompt_cache_key" => true,
        _ => false,
    }
}

impl ChatMessage {
    fn add_to_conversation(&self, conversation: &mut Conversation) -> Result<(), String> {
        if self.function_call.is_some() {
            return Err("`function_call` is not supported: send `tool_calls`".to_owned());
        }
        match self.role.as_str() {
            "system" | "developer" => conversation.push(Role::System, self.to_parts()?),
            "user" => conversation.push(Role::User, self.to_parts()?),
            "assistant" => {
                let mut parts = self.to_parts()?;
                parts.extend(self.refusal.as_deref().and_then(conversation::text_part));
                for call in self.tool_calls.iter().flatten() {
                    parts.push(call.to_part()?);
                }
                conversation.push(Role::Assistant, parts)
            }
            "tool" => {
                let id = self.tool_call_id.as_deref();
                let id = id.ok_or("a tool message needs `tool_call_id`")?;
                let message = Message::new(Role::Tool, self.to_parts()?);
                conversation.push_tool_result(ToolResult::text(id, "", message.text()))
            }
            other => Err(format!("the role `{other}` is not supported")),
        }
    }

    fn to_parts(&self) -> Result<Vec<Part>, String> {
        let content = self.content.as_ref();
        content.map_or(Ok(Vec::new()), MessageContent::to_parts)
    }
}

impl ContentPart for ChatMessagePart {
    fn to_part(&self) -> Result<Option<Part>, String> {
        match self {
            Self::Text { text } | Self::Refusal { refusal: text } => {
                Ok(conversation::text_part(text))
            }
            Self::ImageUrl { image_url } => {
                conversation::file_part(&image_url.url, None, None).map(Some)
            }
            Self::InputAudio { input_audio } => {
                let InputAudio { data, format } = input_audio;
                let url = format!("data:audio/{format};base64,{data}");
                conversation::file_part(&url, None, None).map(Some)
            }
            Self::File { file } => {
                let data = file.file_data.as_deref();
                let data = data.ok_or("a part of the type `file` needs `file_data`")?;
                let name = file.filename.as_deref();
                conversation::file_part(data, Some("application/pdf"), name).map(Some)
            }
            Self::Other => Err("it contains a part of an unsupported type".to_owned()),
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

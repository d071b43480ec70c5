//! A request of OpenAI's Chat Completions, as `types/chat/completion_create_params.py` of the package `openai`
//! 3.54.0 has it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_domain::{Message, Part, ReasoningEffort, Role, ToolChoice, ToolResult};
use switchboard_orchestration::{strategy::formatter::Form, tools::arguments::ClientContext};
use utoipa::ToSchema;

use super::super::conversation::{self, Conversation, bad_messages, nothing_left, unsupported};
use crate::{Approve, Parameters, Problem};

/// A request of OpenAI's Chat Completions. What is not named here and changes the answer is refused by name.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct OpenAiChatRequest {
    /// `PROVIDER/MODEL`, a model's name alone, or `default` for the configured model.
    pub(crate) model: String,
    /// The conversation, in OpenAI's form.
    #[schema(value_type = Vec<Object>)]
    pub(crate) messages: Vec<ChatMessage>,
    /// Whether the answer is wanted as it is written.
    #[serde(default)]
    pub(crate) stream: Option<bool>,
    /// `{"include_usage": true}` tells the tokens at the end of a stream.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) stream_options: Option<StreamOptions>,
    /// Tokens of one answer at most.
    #[serde(default)]
    max_completion_tokens: Option<u32>,
    /// The same, by its older name.
    #[serde(default)]
    max_tokens: Option<u32>,
    /// 0 to 2.
    #[serde(default)]
    temperature: Option<f64>,
    /// 0 to 1.
    #[serde(default)]
    top_p: Option<f64>,
    /// Texts at which the answer ends.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    stop: Option<Stop>,
    /// For answers that can be had again.
    #[serde(default)]
    seed: Option<u64>,
    /// `none`, `low`, `medium` or `high`.
    #[serde(default)]
    reasoning_effort: Option<String>,
    /// Whether the model may ask for several of the server's tools at once.
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    /// Which of the server's tools the model must use first.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    tool_choice: Option<Choice>,
    /// Tools that run at the client.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Tool>>,
    /// The form of the answer: `{"type": "json_schema", "json_schema": {"schema": …}}`, `{"type": "json_object"}` or
    /// `{"type": "text"}`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    response_format: Option<Format>,
    /// What is Switchboard's own: `{"recipe", "approve", "max_steps", "tools", "context"}`.
    #[serde(default)]
    pub(crate) switchboard: Option<SwitchboardFields>,
    /// Everything else.
    #[serde(flatten)]
    #[schema(ignore)]
    rest: Map<String, Value>,
}

/// What is Switchboard's own in a request of another form.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchboardFields {
    /// The recipe to follow.
    #[serde(default)]
    pub(crate) recipe: Option<String>,
    /// Which tool calls need a person's word; only what is stricter than the configuration counts.
    #[serde(default)]
    pub(crate) approve: Option<Approve>,
    /// Calls of the model at most.
    #[serde(default)]
    pub(crate) max_steps: Option<u32>,
    /// `false` offers the model no tools.
    #[serde(default)]
    pub(crate) tools: Option<bool>,
    /// Values for tools that the model does not see, by name.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) context: Option<ClientContext>,
}

impl SwitchboardFields {
    /// Lays what it says over parameters.
    pub(crate) fn apply(&self, parameters: &mut Parameters) {
        parameters.approve = self.approve;
        parameters.max_steps = self.max_steps;
        parameters.tools = self.tools;
    }
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
    Word(String),
    Named {
        function: NamedFunction,
    },
    /// A form that is refused.
    Other(serde::de::IgnoredAny),
}

/// The form of the answer.
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

/// Its name and strictness say nothing here: every answer is held to the schema.
#[derive(Debug, Deserialize)]
struct FormatSchema {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    schema: Option<Value>,
}

/// A tool that runs at the client.
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
    /// How the run is asked, where that can be honoured.
    pub(crate) fn parameters(&self) -> Result<Parameters, Problem> {
        nothing_left(&self.rest, says_nothing)?;
        if let Some(options) = &self.stream_options {
            nothing_left(&options.rest, |field, value| {
                // Padding against eavesdroppers, which is not added.
                field == "include_obfuscation" && value == &Value::Bool(false)
            })?;
        }
        let max_output_tokens = match (self.max_completion_tokens, self.max_tokens) {
            (Some(one), Some(other)) if one != other => {
                return Err(unsupported(
                    "max_tokens",
                    "`max_tokens` and `max_completion_tokens` say different things: send one of them",
                ));
            }
            (one, other) => one.or(other),
        };
        let mut parameters = Parameters {
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
            ..Parameters::default()
        };
        if let Some(extension) = &self.switchboard {
            extension.apply(&mut parameters);
        }
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
                    &format!(
                        "`reasoning_effort` may be none, low, medium or high here, not `{other}`"
                    ),
                ));
            }
        }))
    }

    fn tool_choice(&self) -> Result<Option<ToolChoice>, Problem> {
        Ok(Some(match &self.tool_choice {
            None => return Ok(None),
            Some(Choice::Word(word)) if word == "auto" => ToolChoice::Auto,
            Some(Choice::Word(word)) if word == "none" => ToolChoice::None,
            Some(Choice::Word(word)) if word == "required" => ToolChoice::Required,
            Some(Choice::Named { function }) => ToolChoice::Only(vec![function.name.clone()]),
            Some(Choice::Word(_) | Choice::Other(_)) => {
                return Err(unsupported(
                    "tool_choice",
                    "`tool_choice` may be \"auto\", \"none\", \"required\" or {\"type\": \"function\", \
                     \"function\": {\"name\": …}} with the name of one of the server's tools (GET /mcp/tools)",
                ));
            }
        }))
    }

    /// The tools that run at the client: names, descriptions, schemas.
    pub(crate) fn tools(&self) -> Result<Vec<(String, String, Value)>, Problem> {
        let tools = self.tools.iter().flatten().enumerate();
        tools
            .map(|(place, tool)| match (tool.kind.as_str(), &tool.function) {
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
                    &format!("tools[{place}]: only tools of the type `function` are supported"),
                )),
            })
            .collect()
    }

    /// The form that the answer is to have, if it is another than text.
    pub(crate) fn form(&self) -> Result<Option<Form>, Problem> {
        const FIELD: &str = "response_format";
        let form = match &self.response_format {
            None | Some(Format::Text) => return Ok(None),
            Some(Format::JsonObject) => Form::any_object(),
            Some(Format::JsonSchema { json_schema }) => {
                let mut schema = json_schema.schema.clone().unwrap_or_else(|| json!({}));
                if let (Some(fields), Some(said)) =
                    (schema.as_object_mut(), &json_schema.description)
                {
                    let description = fields.entry("description");
                    description.or_insert_with(|| said.as_str().into());
                }
                Form::new(schema)
            }
            Some(Format::Other) => {
                return Err(unsupported(
                    FIELD,
                    "`response_format` has the type text, json_object or json_schema",
                ));
            }
        };
        let form = form.map_err(|why| unsupported(FIELD, &format!("`{FIELD}`: {why}")));
        form.map(Some)
    }

    /// The conversation.
    pub(crate) fn conversation(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let mut conversation = Conversation::default();
        for (place, message) in self.messages.iter().enumerate() {
            message
                .add_to(&mut conversation)
                .map_err(|why| bad_messages(format!("messages[{place}]: {why}")))?;
        }
        conversation.done().map_err(bad_messages)
    }
}

/// Parameters that say what would be done anyway, or that concern nobody but the vendor.
fn says_nothing(field: &str, value: &Value) -> bool {
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
        // Who asks, what the vendor is to remember of it, and where it keeps its cache.
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
            "system" | "developer" => conversation.say(Role::System, self.parts()?),
            "user" => conversation.say(Role::User, self.parts()?),
            "assistant" => {
                let mut parts = self.parts()?;
                parts.extend(self.refusal.as_deref().and_then(conversation::text));
                for call in self.tool_calls.iter().flatten() {
                    let Some(function) = &call.function else {
                        return Err(format!("the call `{}` is of no function", call.id));
                    };
                    parts.push(conversation::call(&call.id, &function.name, &function.arguments));
                }
                conversation.say(Role::Assistant, parts)
            }
            "tool" => {
                let id = self
                    .tool_call_id
                    .as_deref()
                    .ok_or("a message of a tool has `tool_call_id`")?;
                let message = Message::new(Role::Tool, self.parts()?);
                conversation.result(ToolResult::text(id, "", message.text()))
            }
            other => Err(format!("there is no role `{other}` here")),
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
                let address = format!("data:audio/{};base64,{}", audio.format, audio.data);
                conversation::file(&address, None, None).map(Some)
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

//! Parses requests of Anthropic's Messages API (`types/message_create_params.py` of the Python
//! package `anthropic` 2.12.0).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_domain::{
    Message, Part, ReasoningEffort, Role, ToolChoice, ToolContent, ToolInput, ToolResult, ToolUse,
};
use switchboard_orchestration::strategy::formatter::AnswerSchema;
use utoipa::ToSchema;

use super::super::{
    conversation::{
        self, ContentPart, Conversation, FileSource, MessageContent, invalid_messages,
        parse_reasoning_effort, reject_unsupported_fields, unsupported_field,
    },
    runs::ephemeral_request::SwitchboardFields,
    tools::client_tools::DeclaredTool,
};
use crate::{Parameters, Problem};

/// A request of Anthropic's Messages API. Unsupported fields are errors if they change the answer.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct AnthropicMessagesRequest {
    /// The model: `PROVIDER/MODEL`, a model name, or `default` for the configured model.
    pub(crate) model: String,
    /// Maximum number of output tokens of one model call.
    #[schema(minimum = 1)]
    max_tokens: u32,
    /// The conversation in Anthropic's message format.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<AnthropicMessage>,
    /// Instructions for the model: a text, or a list of text blocks.
    #[schema(value_type = Option<Object>)]
    system: Option<MessageContent<ContentBlock>>,
    /// Whether the answer is streamed as server-sent events.
    pub(crate) stream: Option<bool>,
    /// Stop sequences: texts that end the answer.
    stop_sequences: Option<Vec<String>>,
    /// Sampling temperature, from 0 to 1.
    temperature: Option<f64>,
    /// Nucleus sampling: the probability mass of the tokens to sample from, from 0 to 1.
    top_p: Option<f64>,
    /// The extended thinking settings. The server converts them to a reasoning effort.
    #[schema(value_type = Option<Object>)]
    thinking: Option<Value>,
    /// The format of the answer and the reasoning effort: `{"effort": "low" | "medium" | "high",
    /// "format": {"type": "json_schema", "schema": …}}`.
    #[schema(value_type = Option<Object>)]
    output_config: Option<OutputConfig>,
    /// The tool choice of the first model call. It can name tools of the server, not of the client.
    #[schema(value_type = Option<Object>)]
    tool_choice: Option<AnthropicToolChoice>,
    /// Tools that the client declares in this request and executes itself.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<AnthropicTool>>,
    /// Settings of Switchboard that Anthropic's API does not have:
    /// `{"recipe", "approve", "max_steps", "tools", "context"}`.
    pub(crate) switchboard: Option<SwitchboardFields>,
    /// All other fields of the request. They are errors unless they have no effect on the answer.
    #[serde(flatten)]
    #[schema(ignore)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct AnthropicTool {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(flatten)]
    tool: DeclaredTool,
}

#[derive(Debug, Deserialize)]
struct AnthropicMessage {
    role: String,
    content: MessageContent<ContentBlock>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlock {
    Text {
        text: String,
    },
    Image {
        source: FileSource,
    },
    Document {
        source: FileSource,
        title: Option<String>,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        content: Option<MessageContent<ContentBlock>>,
        #[serde(default)]
        is_error: bool,
    },
    /// Thinking blocks of the client are ignored, because responses contain no signed reasoning.
    Thinking {},
    RedactedThinking {},
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct OutputConfig {
    effort: Option<String>,
    /// The format of the answer. Only the type `json_schema` is supported.
    format: Option<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct AnthropicToolChoice {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    disable_parallel_tool_use: Option<bool>,
}

/// Largest thinking budget, in tokens, that is converted to low reasoning effort.
const MAX_LOW_BUDGET: u64 = 4_096;
/// Largest thinking budget, in tokens, that is converted to medium reasoning effort.
const MAX_MEDIUM_BUDGET: u64 = 16_384;

impl AnthropicMessagesRequest {
    /// Converts the request fields to run parameters. Returns an error for unsupported fields.
    pub(crate) fn parse_parameters(&self) -> Result<Parameters, Problem> {
        reject_unsupported_fields(&self.rest, is_ignorable_field)?;
        let choice = self.tool_choice.as_ref();
        let extension = self.switchboard.as_ref();
        let extension = extension.map(SwitchboardFields::to_run_parameters);
        Ok(Parameters {
            temperature: self.temperature,
            top_p: self.top_p,
            stop: self.stop_sequences.clone().unwrap_or_default(),
            max_output_tokens: Some(self.max_tokens),
            reasoning: self.resolve_reasoning_effort()?,
            tool_choice: choice
                .map(AnthropicToolChoice::to_tool_choice)
                .transpose()?,
            parallel_tool_use: choice
                .and_then(|choice| choice.disable_parallel_tool_use)
                .map(|disabled| !disabled),
            ..extension.unwrap_or_default()
        })
    }

    fn resolve_reasoning_effort(&self) -> Result<Option<ReasoningEffort>, Problem> {
        let config = self.output_config.as_ref();
        if let Some(config) = config {
            reject_unsupported_fields(&config.rest, |_, _| false)?;
        }
        let effort = config.and_then(|config| config.effort.as_deref());
        let effort = parse_reasoning_effort(effort, "output_config", "output_config.effort")?;
        let Some(thinking) = &self.thinking else {
            return Ok(effort);
        };
        match (
            thinking["type"].as_str(),
            thinking["budget_tokens"].as_u64(),
        ) {
            (Some("adaptive"), _) => Ok(effort),
            (Some("disabled"), _) => Ok(Some(ReasoningEffort::None)),
            // The budget becomes an effort level, because run parameters have no token budget for
            // reasoning.
            (Some("enabled"), Some(budget)) => Ok(effort.or(Some(match budget {
                budget if budget <= MAX_LOW_BUDGET => ReasoningEffort::Low,
                budget if budget <= MAX_MEDIUM_BUDGET => ReasoningEffort::Medium,
                _ => ReasoningEffort::High,
            }))),
            _ => Err(unsupported_field(
                "thinking",
                "`thinking` must have the type disabled, adaptive, or enabled with `budget_tokens`",
            )),
        }
    }

    pub(crate) fn parse_tools(&self) -> Result<Vec<DeclaredTool>, Problem> {
        let tools = self.tools.iter().flatten().enumerate();
        tools
            .map(|(index, AnthropicTool { kind, tool })| {
                let is_custom = matches!(kind.as_deref(), None | Some("custom"));
                if is_custom && tool.parameters.is_some() {
                    return Ok(tool.clone());
                }
                let reason = "only tools with an `input_schema` are supported";
                let detail = format!("tools[{index}]: {reason}");
                Err(unsupported_field("tools", &detail))
            })
            .collect()
    }

    /// Returns the JSON Schema that the answer must match, or `None` for a text answer.
    pub(crate) fn parse_answer_schema(&self) -> Result<Option<AnswerSchema>, Problem> {
        let config = self.output_config.as_ref();
        let Some(format) = config.and_then(|config| config.format.as_ref()) else {
            return Ok(None);
        };
        let refused = |why: &str| {
            unsupported_field("output_config", &format!("`output_config.format`: {why}"))
        };
        if format["type"] != "json_schema" {
            return Err(refused("its type must be json_schema"));
        }
        let form = AnswerSchema::new(format["schema"].clone());
        form.map(Some).map_err(|why| refused(&why.to_string()))
    }

    pub(crate) fn parse_conversation(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let mut conversation = Conversation::default();
        if let Some(system) = &self.system {
            let parts = system.to_parts();
            let parts = parts
                .map_err(|reason| unsupported_field("system", &format!("system: {reason}")))?;
            let added = conversation.push(Role::System, parts);
            added.map_err(invalid_messages)?;
        }
        conversation.parse_client_messages(
            self.messages.iter().enumerate(),
            AnthropicMessage::add_to_conversation,
        )
    }
}

/// Returns whether the server may ignore a request field, because the field has its default value
/// or concerns only Anthropic's service.
fn is_ignorable_field(field: &str, value: &Value) -> bool {
    match field {
        "service_tier" => matches!(value.as_str(), Some("auto" | "standard_only")),
        "speed" => value == "standard",
        // These fields identify the user or control Anthropic's prompt cache.
        "metadata" | "cache_control" | "user_profile_id" => true,
        _ => false,
    }
}

impl AnthropicToolChoice {
    fn to_tool_choice(&self) -> Result<ToolChoice, Problem> {
        match (self.kind.as_str(), &self.name) {
            ("auto", _) => Ok(ToolChoice::Auto),
            ("any", _) => Ok(ToolChoice::Required),
            ("none", _) => Ok(ToolChoice::None),
            ("tool", Some(name)) => Ok(ToolChoice::Only(vec![name.clone()])),
            _ => Err(unsupported_field(
                "tool_choice",
                "`tool_choice` must have the type auto, any, none, or tool with the `name` of one \
                 of the server's tools (GET /mcp/tools)",
            )),
        }
    }
}

impl AnthropicMessage {
    fn add_to_conversation(&self, conversation: &mut Conversation) -> Result<(), String> {
        match self.role.as_str() {
            "assistant" => conversation.push(Role::Assistant, self.content.to_parts()?),
            "system" => conversation.push(Role::System, self.content.to_parts()?),
            "user" => {
                let MessageContent::Parts(blocks) = &self.content else {
                    return conversation.push(Role::User, self.content.to_parts()?);
                };
                // The tool results are added first, because they must directly follow the assistant
                // message with their calls.
                for block in blocks {
                    if let Some(result) = block.to_tool_result()? {
                        conversation.push_tool_result(result)?;
                    }
                }
                let others = blocks
                    .iter()
                    .filter(|block| !matches!(block, ContentBlock::ToolResult { .. }));
                let parts = others.filter_map(|block| block.to_part().transpose());
                let parts: Vec<Part> = parts.collect::<Result<_, _>>()?;
                if parts.is_empty() {
                    return Ok(());
                }
                conversation.push(Role::User, parts)
            }
            other => Err(format!("the role `{other}` is not supported")),
        }
    }
}

impl ContentPart for ContentBlock {
    fn to_part(&self) -> Result<Option<Part>, String> {
        match self {
            Self::Text { text } => Ok(conversation::text_part(text)),
            Self::Image { source } => source.to_part("image/*", None),
            Self::Document { source, title } => source.to_part("application/pdf", title.as_deref()),
            Self::ToolUse { id, name, input } => {
                let input = ToolInput::from_json(input.clone());
                Ok(Some(Part::ToolUse(ToolUse::new(id, name, input))))
            }
            Self::Thinking {} | Self::RedactedThinking {} => Ok(None),
            Self::ToolResult { .. } => Err("a `tool_result` must be in a user message".to_owned()),
            Self::Other => Err("it contains a block of an unsupported type".to_owned()),
        }
    }
}

impl ContentBlock {
    fn to_tool_result(&self) -> Result<Option<ToolResult>, String> {
        let Self::ToolResult {
            tool_use_id,
            content,
            is_error,
        } = self
        else {
            return Ok(None);
        };
        let parts = content.as_ref().map(MessageContent::to_parts).transpose()?;
        let contents = parts.into_iter().flatten().map(|part| match part {
            Part::Image(media) => ToolContent::Image(media),
            part => ToolContent::text(part.as_text().unwrap_or_default()),
        });
        let mut result = ToolResult::text(tool_use_id, "", "");
        result.content = contents.collect();
        result.is_error = *is_error;
        Ok(Some(result))
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

//! A request of Anthropic's Messages, as `types/message_create_params.py` of the package `anthropic` 2.12.0 has it.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Map, Value};
use switchboard_domain::{
    Document, Media, Message, Part, ReasoningEffort, Role, ToolChoice, ToolContent, ToolInput,
    ToolResult, ToolUse,
};
use switchboard_orchestration::strategy::formatter::Form;
use utoipa::ToSchema;

use super::super::{
    openai_chat::SwitchboardFields,
    conversation::{self, Conversation, bad_messages, nothing_left, unsupported},
};
use crate::{Parameters, Problem};

/// A request of Anthropic's Messages. What is not named here and changes the answer is refused by name.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct AnthropicMessagesRequest {
    /// `PROVIDER/MODEL`, a model's name alone, or `default` for the configured model.
    pub(crate) model: String,
    /// Tokens of one answer at most.
    #[schema(minimum = 1)]
    max_tokens: u32,
    /// The conversation, in Anthropic's form.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<InMessage>,
    /// Instructions: a text, or a list of text blocks.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    system: Option<Content>,
    /// Whether the answer is wanted as it is written.
    #[serde(default)]
    pub(crate) stream: Option<bool>,
    /// Texts at which the answer ends.
    #[serde(default)]
    stop_sequences: Option<Vec<String>>,
    /// 0 to 1.
    #[serde(default)]
    temperature: Option<f64>,
    /// 0 to 1.
    #[serde(default)]
    top_p: Option<f64>,
    /// How much thinking is wanted.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    thinking: Option<Thinking>,
    /// `{"effort": "low" | "medium" | "high", "format": {"type": "json_schema", "schema": …}}`.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    output_config: Option<OutputConfig>,
    /// Which of the server's tools the model must use first.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    tool_choice: Option<Choice>,
    /// Tools that run at the client.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Tool>>,
    /// What is Switchboard's own: `{"recipe", "approve", "max_steps", "tools", "context"}`.
    #[serde(default)]
    pub(crate) switchboard: Option<SwitchboardFields>,
    /// Everything else.
    #[serde(flatten)]
    #[schema(ignore)]
    rest: Map<String, Value>,
}

/// A tool that runs at the client.
#[derive(Debug, Deserialize)]
struct Tool {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    input_schema: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct InMessage {
    role: String,
    content: Content,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    Image {
        source: Source,
    },
    Document {
        source: Source,
        #[serde(default)]
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
        #[serde(default)]
        content: Option<Content>,
        #[serde(default)]
        is_error: bool,
    },
    /// What a model thought is only for the vendor that signed it, and nothing of that was given away.
    Thinking {},
    RedactedThinking {},
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source {
    Base64 {
        media_type: String,
        data: String,
    },
    Url {
        url: String,
    },
    Text {
        data: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Disabled,
    Adaptive,
    Enabled {
        budget_tokens: u64,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct OutputConfig {
    #[serde(default)]
    effort: Option<String>,
    /// The form of the answer.
    #[serde(default)]
    format: Option<Format>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format {
    JsonSchema {
        #[serde(default)]
        schema: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    disable_parallel_tool_use: Option<bool>,
}

/// Up to this many tokens, thinking is wanted a little.
const LITTLE_THINKING: u64 = 4_096;
/// Up to this many, a middling amount.
const SOME_THINKING: u64 = 16_384;

impl AnthropicMessagesRequest {
    /// How the run is asked, where that can be honoured.
    pub(crate) fn parameters(&self) -> Result<Parameters, Problem> {
        nothing_left(&self.rest, says_nothing)?;
        let choice = self.tool_choice.as_ref();
        let mut parameters = Parameters {
            temperature: self.temperature,
            top_p: self.top_p,
            stop: self.stop_sequences.clone().unwrap_or_default(),
            max_output_tokens: Some(self.max_tokens),
            reasoning: self.reasoning()?,
            tool_choice: choice.map(Choice::read).transpose()?,
            parallel_tool_use: choice
                .and_then(|choice| choice.disable_parallel_tool_use)
                .map(|disabled| !disabled),
            ..Parameters::default()
        };
        if let Some(extension) = &self.switchboard {
            extension.apply(&mut parameters);
        }
        Ok(parameters)
    }

    fn reasoning(&self) -> Result<Option<ReasoningEffort>, Problem> {
        let effort = match &self.output_config {
            None => None,
            Some(config) => {
                nothing_left(&config.rest, |_, _| false)?;
                config.effort.as_deref()
            }
        };
        let effort = match effort {
            None => None,
            Some("low") => Some(ReasoningEffort::Low),
            Some("medium") => Some(ReasoningEffort::Medium),
            Some("high") => Some(ReasoningEffort::High),
            Some(other) => {
                return Err(unsupported(
                    "output_config",
                    &format!(
                        "`output_config.effort` may be low, medium or high here, not `{other}`"
                    ),
                ));
            }
        };
        match &self.thinking {
            None | Some(Thinking::Adaptive) => Ok(effort),
            Some(Thinking::Disabled) => Ok(Some(ReasoningEffort::None)),
            // An effort is what every provider has; a budget is one provider's.
            Some(Thinking::Enabled { budget_tokens }) => {
                Ok(effort.or(Some(match *budget_tokens {
                    budget if budget <= LITTLE_THINKING => ReasoningEffort::Low,
                    budget if budget <= SOME_THINKING => ReasoningEffort::Medium,
                    _ => ReasoningEffort::High,
                })))
            }
            Some(Thinking::Other) => Err(unsupported(
                "thinking",
                "`thinking` may be disabled, adaptive or enabled here",
            )),
        }
    }

    /// The tools that run at the client: names, descriptions, schemas.
    pub(crate) fn tools(&self) -> Result<Vec<(String, String, Value)>, Problem> {
        let tools = self.tools.iter().flatten().enumerate();
        tools
            .map(|(place, tool)| match (tool.kind.as_deref(), &tool.input_schema) {
                (None | Some("custom"), Some(schema)) => Ok((
                    tool.name.clone(),
                    tool.description.clone().unwrap_or_default(),
                    schema.clone(),
                )),
                _ => Err(unsupported(
                    "tools",
                    &format!("tools[{place}]: only tools with an `input_schema` of their own are supported"),
                )),
            })
            .collect()
    }

    /// The form that the answer is to have, if it is another than text.
    pub(crate) fn form(&self) -> Result<Option<Form>, Problem> {
        const FIELD: &str = "output_config";
        let refused = |why: &str| unsupported(FIELD, &format!("`{FIELD}.format`: {why}"));
        match self
            .output_config
            .as_ref()
            .and_then(|it| it.format.as_ref())
        {
            None => Ok(None),
            Some(Format::JsonSchema { schema }) => {
                let form = Form::new(schema.clone());
                form.map(Some).map_err(|why| refused(&why.to_string()))
            }
            Some(Format::Other) => Err(refused("its type may be json_schema")),
        }
    }

    /// The conversation.
    pub(crate) fn conversation(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let mut conversation = Conversation::default();
        if let Some(system) = &self.system {
            let parts = system.parts().map_err(|why| bad("system", &why))?;
            conversation
                .say(Role::System, parts)
                .map_err(bad_messages)?;
        }
        for (place, message) in self.messages.iter().enumerate() {
            message
                .add_to(&mut conversation)
                .map_err(|why| bad_messages(format!("messages[{place}]: {why}")))?;
        }
        conversation.done().map_err(bad_messages)
    }
}

fn bad(field: &str, why: &str) -> Problem {
    unsupported(field, &format!("{field}: {why}"))
}

/// Parameters that say what would be done anyway, or that concern nobody but the vendor.
fn says_nothing(field: &str, value: &Value) -> bool {
    match field {
        "service_tier" => matches!(value.as_str(), Some("auto" | "standard_only")),
        "speed" => value == "standard",
        // Who asks, and where the vendor keeps its cache.
        "metadata" | "cache_control" | "user_profile_id" => true,
        _ => false,
    }
}

impl Choice {
    fn read(&self) -> Result<ToolChoice, Problem> {
        match (self.kind.as_str(), &self.name) {
            ("auto", _) => Ok(ToolChoice::Auto),
            ("any", _) => Ok(ToolChoice::Required),
            ("none", _) => Ok(ToolChoice::None),
            ("tool", Some(name)) => Ok(ToolChoice::Only(vec![name.clone()])),
            _ => Err(unsupported(
                "tool_choice",
                "`tool_choice` has the type auto, any, none, or tool with the `name` of one of the server's \
                 tools (GET /mcp/tools)",
            )),
        }
    }
}

impl InMessage {
    fn add_to(&self, conversation: &mut Conversation) -> Result<(), String> {
        match self.role.as_str() {
            "assistant" => conversation.say(Role::Assistant, self.content.parts()?),
            "system" => conversation.say(Role::System, self.content.parts()?),
            "user" => {
                let Content::Blocks(blocks) = &self.content else {
                    return conversation.say(Role::User, self.content.parts()?);
                };
                // Results come first, and then what the person says beside them.
                for block in blocks {
                    if let Some(result) = block.result()? {
                        conversation.result(result)?;
                    }
                }
                let said = blocks
                    .iter()
                    .filter(|block| !matches!(block, Block::ToolResult { .. }));
                let parts = said.filter_map(|block| block.part().transpose());
                let parts: Vec<Part> = parts.collect::<Result<_, _>>()?;
                if parts.is_empty() {
                    return Ok(());
                }
                conversation.say(Role::User, parts)
            }
            other => Err(format!("there is no role `{other}` here")),
        }
    }
}

impl Content {
    fn parts(&self) -> Result<Vec<Part>, String> {
        match self {
            Self::Text(text) => Ok(conversation::text(text).into_iter().collect()),
            Self::Blocks(blocks) => {
                let parts = blocks.iter().map(Block::part);
                parts.filter_map(Result::transpose).collect()
            }
        }
    }
}

impl Block {
    fn part(&self) -> Result<Option<Part>, String> {
        match self {
            Self::Text { text } => Ok(conversation::text(text)),
            Self::Image { source } => source.part("image/*", None).map(Some),
            Self::Document { source, title } => {
                source.part("application/pdf", title.as_deref()).map(Some)
            }
            Self::ToolUse { id, name, input } => Ok(Some(Part::ToolUse(ToolUse::new(
                id,
                name,
                ToolInput::from_json(input.clone()),
            )))),
            Self::Thinking {} | Self::RedactedThinking {} => Ok(None),
            Self::ToolResult { .. } => {
                Err("a `tool_result` is in a message of the user".to_owned())
            }
            Self::Other => Err("it has a block of a type that is not supported".to_owned()),
        }
    }

    fn result(&self) -> Result<Option<ToolResult>, String> {
        let Self::ToolResult {
            tool_use_id,
            content,
            is_error,
        } = self
        else {
            return Ok(None);
        };
        let parts = content.as_ref().map(Content::parts).transpose()?;
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

impl Source {
    fn part(&self, media_type: &str, title: Option<&str>) -> Result<Part, String> {
        match self {
            Self::Base64 { media_type, data } => {
                let address = format!("data:{media_type};base64,{data}");
                conversation::file(&address, None, title)
            }
            Self::Url { url } => conversation::file(url, Some(media_type), title),
            Self::Text { data } => Ok(Part::Document(Document {
                media: Media::base64("text/plain", STANDARD.encode(data)),
                title: title.map(ToOwned::to_owned),
            })),
            Self::Other => Err("its source has a type that is not supported".to_owned()),
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

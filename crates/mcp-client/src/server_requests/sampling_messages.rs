//! Conversion of sampling requests to chat requests, and of model responses to sampling results
//! (MCP 2025-11-25, "Sampling"; tools since that version).

#![allow(deprecated, reason = "servers of every version use sampling")]

use std::{collections::HashMap, sync::Arc};

use rmcp::model::{
    AudioContent, CreateMessageRequestParams, CreateMessageResult, ImageContent, Role as McpRole,
    SamplingMessage, SamplingMessageContentBlock as Block, Tool, ToolChoiceMode,
};
use switchboard_domain::{
    ChatRequest, ChatResponse, FinishReason, Media, MediaSource, Message, Part, Role,
    SampleRequest, Sampling, ToolChoice, ToolDefinition, ToolInput, ToolResult, ToolUse,
};

use crate::tools::convert;

/// Stop reasons of sampling that MCP defines. Other stop reasons are allowed too.
const END_TURN: &str = CreateMessageResult::STOP_REASON_END_TURN;
const MAX_TOKENS: &str = CreateMessageResult::STOP_REASON_END_MAX_TOKEN;
const TOOL_USE: &str = CreateMessageResult::STOP_REASON_TOOL_USE;

/// Converts a sampling request to a chat request. Returns an error for an invalid conversation.
/// Ignores `includeContext`, because a server must not read other conversations.
pub(crate) fn to_sample_request(
    server: &str,
    params: CreateMessageRequestParams,
    max_tokens: u32,
) -> Result<SampleRequest, String> {
    params.validate()?;
    let mut tool_names = HashMap::new();
    let system = params.system_prompt.map(Message::system);
    let messages = params.messages.into_iter();
    let messages = messages.map(|message| to_message(message, &mut tool_names));
    let mut request = ChatRequest::new(system.into_iter().chain(messages));
    let tools = params.tools.unwrap_or_default();
    let tools = tools
        .iter()
        .map(|tool| to_tool_definition(tool).map(Arc::new));
    request.tools = tools.collect::<Result<_, _>>()?;
    request.tool_choice = match params.tool_choice.and_then(|choice| choice.mode) {
        Some(ToolChoiceMode::Required) => ToolChoice::Required,
        Some(ToolChoiceMode::None) => ToolChoice::None,
        _ => ToolChoice::Auto,
    };
    // Conversion to `f64` through text keeps 0.7 exact: `f64::from` would return 0.699999988.
    let temperature = params.temperature.map(|number| number.to_string());
    request.sampling = Sampling {
        temperature: temperature.and_then(|text| text.parse().ok()),
        stop: params.stop_sequences.unwrap_or_default(),
        ..Sampling::default()
    };
    request.max_output_tokens = Some(params.max_tokens.min(max_tokens));
    let preferences = params.model_preferences.unwrap_or_default();
    let hints = preferences.hints.unwrap_or_default();
    Ok(SampleRequest {
        server: server.to_owned(),
        request,
        model_hints: hints.into_iter().filter_map(|hint| hint.name).collect(),
    })
}

/// Converts a message of a sampling request. A user message with tool results gets the role `tool`.
/// `tool_names` contains the tool names of earlier messages by tool use id, and this function adds
/// the names of this message.
fn to_message(message: SamplingMessage, tool_names: &mut HashMap<String, String>) -> Message {
    let mut role = match message.role {
        McpRole::User => Role::User,
        McpRole::Assistant => Role::Assistant,
    };
    let mut parts = Vec::new();
    for block in message.content.into_vec() {
        parts.push(match block {
            Block::Text(text) => Part::text(text.text),
            Block::Image(image) => Part::Image(Media::from_base64(image.mime_type, image.data)),
            Block::Audio(audio) => Part::Audio(Media::from_base64(audio.mime_type, audio.data)),
            Block::ToolUse(tool_use) => {
                tool_names.insert(tool_use.id.clone(), tool_use.name.clone());
                let input = ToolInput::from(tool_use.input);
                Part::ToolUse(ToolUse::new(tool_use.id, tool_use.name, input))
            }
            Block::ToolResult(result) => {
                role = Role::Tool;
                let name = tool_names.get(&result.tool_use_id).cloned();
                let content = result.content.into_iter();
                Part::ToolResult(ToolResult {
                    name: name.unwrap_or_default(),
                    tool_use_id: result.tool_use_id,
                    content: content.map(convert::to_tool_content).collect(),
                    structured: result.structured_content.map(Arc::new),
                    is_error: result.is_error.unwrap_or_default(),
                })
            }
            // The model receives unknown content blocks (of later protocol versions) as JSON text.
            other => Part::text(serde_json::to_string(&other).unwrap_or_default()),
        });
    }
    Message::new(role, parts)
}

/// Converts a tool of a sampling request. The tool keeps the name that the server uses, because the
/// server itself runs the tool. Returns an error for an invalid tool.
fn to_tool_definition(listed: &Tool) -> Result<ToolDefinition, String> {
    let json = serde_json::to_value(listed).unwrap_or_default();
    let converted = convert::tool_from_json("", &json)?.tool;
    Ok(ToolDefinition {
        name: listed.name.to_string(),
        origin: None,
        ..converted
    })
}

/// Converts a model response to a sampling result. Returns an error if the response has no content
/// that MCP can represent.
pub(crate) fn to_sampling_result(response: ChatResponse) -> Result<CreateMessageResult, String> {
    let mut blocks = Vec::new();
    for part in response.message.parts {
        blocks.push(match part {
            Part::Text(text) => Block::text(text.text),
            Part::Image(media) => match to_base64_parts(media) {
                Some((kind, data)) => Block::Image(ImageContent::new(data, kind)),
                None => continue,
            },
            Part::Audio(media) => match to_base64_parts(media) {
                Some((kind, data)) => Block::Audio(AudioContent::new(data, kind)),
                None => continue,
            },
            Part::ToolUse(tool_use) => match tool_use.input {
                ToolInput::Object(input) => {
                    Block::tool_use(tool_use.id, tool_use.name, input.into_object())
                }
                ToolInput::Malformed { reason, .. } => {
                    return Err(format!(
                        "the model's call of `{}` is invalid: {reason}",
                        tool_use.name
                    ));
                }
            },
            // Reasoning and provider state are omitted, because the server must not receive them.
            _ => continue,
        });
    }
    let reason = match &response.finish {
        FinishReason::Stop => END_TURN,
        FinishReason::Length => MAX_TOKENS,
        FinishReason::ToolUse => TOOL_USE,
        other => other.as_str(),
    }
    .to_owned();
    let message = match <[Block; 1]>::try_from(blocks) {
        // A single block is not sent as a list, because servers of versions before 2025-11-25
        // accept only a single block.
        Ok([block]) => SamplingMessage::new(McpRole::Assistant, block),
        Err(blocks) if blocks.is_empty() => match response.finish {
            FinishReason::Stop | FinishReason::Length => SamplingMessage::assistant_text(""),
            _ => return Err(format!("the model gave no answer ({reason})")),
        },
        Err(blocks) => SamplingMessage::new_multiple(McpRole::Assistant, blocks),
    };
    let model = response.model.unwrap_or_else(|| "unknown".to_owned());
    Ok(CreateMessageResult::new(message, model).with_stop_reason(reason))
}

/// Returns the media type and the base64 data of media. Returns `None` for media at a URL.
fn to_base64_parts(media: Media) -> Option<(String, String)> {
    match media.source {
        MediaSource::Base64(data) => Some((media.media_type, data)),
        _ => None,
    }
}

#[cfg(test)]
#[path = "sampling_messages_tests.rs"]
mod tests;

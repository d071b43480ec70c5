//! Prompts: templates that a server offers to a user.

use std::collections::BTreeMap;

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, JsonObject as McpObject,
};
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::ToolContent;

use crate::{
    features::{
        error::FeatureError,
        request::{
            Capability, FeatureClient, ListRequest, Listing, malformed, required_text, text,
        },
    },
    host::McpHost,
    tools::convert,
};

/// A prompt of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prompt {
    /// The name, which identifies the prompt.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The arguments.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the argument is required.
    pub required: bool,
}

/// A prompt with the values of its arguments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RenderedPrompt {
    /// The purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The messages, in order.
    pub messages: Vec<PromptMessage>,
    /// Messages that were skipped because they are not valid, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromptMessage {
    /// The author.
    pub role: PromptRole,
    /// The content.
    pub content: ToolContent,
}

/// The author of a message of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// Prompts.
impl McpHost {
    /// Returns all prompts of a server.
    pub async fn prompts(&self, server: &str) -> Result<Listing<Prompt>, FeatureError> {
        let mut client = FeatureClient::new(self, server).await?;
        client.list(PROMPTS, parse_prompt).await
    }

    /// Returns a prompt with these values of its arguments.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<RenderedPrompt, FeatureError> {
        let mut client = FeatureClient::new(self, server).await?;
        let mut params = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            let arguments = arguments.iter();
            let arguments = arguments.map(|(name, value)| (name.clone(), value.as_str().into()));
            params.arguments = Some(arguments.collect::<McpObject>());
        }
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        let method = request.method().to_owned();
        let result = client.request(Capability::Prompts, request).await?;
        let Some(Value::Array(messages)) = result.get("messages") else {
            return Err(malformed(server, &method, "it has no messages"));
        };
        let mut rendered = RenderedPrompt {
            description: text(&result, "description"),
            messages: Vec::new(),
            problems: Vec::new(),
        };
        for message in messages {
            match parse_messages(message) {
                Ok(messages) => rendered.messages.extend(messages),
                Err(reason) => {
                    tracing::warn!(server, name, reason, "an invalid message of a prompt");
                    let reason = client.server.redact(reason);
                    rendered.problems.push(format!("{reason}; it is skipped"));
                }
            }
        }
        Ok(rendered)
    }
}

const PROMPTS: ListRequest = ListRequest {
    method: "prompts/list",
    key: "prompts",
    capability: Capability::Prompts,
};

fn parse_prompt(item: &Value) -> Result<Prompt, String> {
    let arguments = match item.get("arguments") {
        Some(Value::Array(arguments)) => arguments.as_slice(),
        _ => &[],
    };
    Ok(Prompt {
        name: required_text(item, "name", "prompt")?,
        title: text(item, "title"),
        description: text(item, "description"),
        // An argument without a name cannot be set.
        arguments: arguments.iter().filter_map(parse_argument).collect(),
    })
}

fn parse_argument(item: &Value) -> Option<PromptArgument> {
    Some(PromptArgument {
        name: required_text(item, "name", "argument").ok()?,
        title: text(item, "title"),
        description: text(item, "description"),
        required: item.get("required").and_then(Value::as_bool) == Some(true),
    })
}

/// Parses a message. Some servers put several content blocks into one message, which become several
/// messages.
fn parse_messages(message: &Value) -> Result<Vec<PromptMessage>, String> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("user") => PromptRole::User,
        Some("assistant") => PromptRole::Assistant,
        Some(other) => return Err(format!("a message has the unknown role `{other}`")),
        None => return Err("a message has no role".to_owned()),
    };
    let contents = match message.get("content") {
        Some(Value::Array(blocks)) => blocks
            .iter()
            .cloned()
            .map(convert::content_from_json)
            .collect(),
        Some(Value::String(text)) => vec![ToolContent::text(text)],
        Some(block @ Value::Object(_)) => vec![convert::content_from_json(block.clone())],
        _ => return Err("a message has no content".to_owned()),
    };
    let contents = contents.into_iter();
    Ok(contents
        .map(|content| PromptMessage { role, content })
        .collect())
}

//! Prompts: templates that a server offers to a user.

use std::collections::BTreeMap;

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, JsonObject as McpObject,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::ToolContent;

use crate::{
    features::request::{Capability, FeatureClient, FeatureError, Listing},
    host::McpHost,
    tools::convert,
};

/// A prompt of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(default)]
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(default)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
        let client = FeatureClient::new(self, server)?;
        client
            .list(Capability::Prompts, "prompts/list", "prompts")
            .await
    }

    /// Returns a prompt with these values of its arguments.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<RenderedPrompt, FeatureError> {
        let client = FeatureClient::new(self, server)?;
        let mut params = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            let arguments = arguments.iter();
            let arguments = arguments.map(|(name, value)| (name.clone(), value.as_str().into()));
            params.arguments = Some(arguments.collect::<McpObject>());
        }
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        let result = client.request(Capability::Prompts, request).await?;
        let messages = client.parse_items("prompts/get", &result, "messages", parse_messages)?;
        Ok(RenderedPrompt {
            description: result
                .get("description")
                .and_then(Value::as_str)
                .map(str::to_owned),
            messages: messages.items.into_iter().flatten().collect(),
            problems: messages.problems,
        })
    }
}

/// Parses a message. Some servers put several content blocks into one message, which become several
/// messages.
fn parse_messages(message: &Value) -> Result<Vec<PromptMessage>, String> {
    let Some(Ok(role)) = message.get("role").map(PromptRole::deserialize) else {
        return Err("a message has neither the role `user` nor `assistant`".to_owned());
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
    let messages = contents
        .into_iter()
        .map(|content| PromptMessage { role, content });
    Ok(messages.collect())
}

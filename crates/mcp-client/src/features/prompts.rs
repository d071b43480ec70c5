//! Prompts: message templates that a server offers to a user.

use std::collections::BTreeMap;

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, JsonObject as McpObject,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::ToolContent;

use crate::{
    features::feature_client::{Capability, FeatureClient, FeatureError, ItemList},
    host::McpHost,
    tools::convert,
};

/// Message template that a server offers to a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// Name that identifies the prompt on its server.
    pub name: String,
    /// Display name of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description of the prompt's purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Arguments that the user can set when the prompt is rendered.
    #[serde(default)]
    pub arguments: Vec<PromptArgument>,
}

/// Argument of a prompt, which the user can set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Name that identifies the argument in the prompt.
    pub name: String,
    /// Display name of the argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description of the argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the prompt requires a value for the argument.
    #[serde(default)]
    pub required: bool,
}

/// Messages of a prompt after the server inserted the argument values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RenderedPrompt {
    /// Description of the prompt's purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Messages of the prompt in order.
    pub messages: Vec<PromptMessage>,
    /// Reasons why invalid messages were skipped, one per message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// Message of a prompt, after the server inserted the argument values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromptMessage {
    /// Author that the message is attributed to: the user or the model.
    pub role: PromptRole,
    /// Content block of the message, such as a text or an image.
    pub content: ToolContent,
}

/// Author that a prompt message is attributed to, as in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptRole {
    /// The message is attributed to the user.
    User,
    /// The message is attributed to the model.
    Assistant,
}

/// Methods that list and render prompts.
impl McpHost {
    /// Lists all prompts of a server. Requests as many pages of `prompts/list` as the server has.
    pub async fn list_prompts(&self, server: &str) -> Result<ItemList<Prompt>, FeatureError> {
        FeatureClient::new(self, server)?
            .list_items(Capability::PROMPTS, "prompts/list", "prompts")
            .await
    }

    /// Requests the messages of a prompt. The server inserts the values in `arguments` into the
    /// messages.
    pub async fn render_prompt(
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
        let result = client.send_request(Capability::PROMPTS, request).await?;
        let messages = client.parse_items("prompts/get", &result, "messages", parse_messages)?;
        Ok(RenderedPrompt {
            description: result["description"].as_str().map(str::to_owned),
            messages: messages.items.into_iter().flatten().collect(),
            problems: messages.problems,
        })
    }
}

/// Parses a prompt message. Returns one message per content block, because some servers put several
/// content blocks into one message. Returns an error if the role or the content is missing or
/// invalid.
fn parse_messages(message: &Value) -> Result<Vec<PromptMessage>, String> {
    let Some(Ok(role)) = message.get("role").map(PromptRole::deserialize) else {
        return Err("a message has neither the role `user` nor `assistant`".to_owned());
    };
    let contents = match message.get("content") {
        Some(Value::Array(blocks)) => {
            let blocks = blocks.iter().cloned();
            blocks.map(convert::content_from_json).collect()
        }
        Some(Value::String(text)) => vec![ToolContent::text(text)],
        Some(block @ Value::Object(_)) => vec![convert::content_from_json(block.clone())],
        _ => return Err("a message has no content".to_owned()),
    };
    let contents = contents.into_iter();
    Ok(contents
        .map(|content| PromptMessage { role, content })
        .collect())
}

//! Prompts: what a server has written for a person to begin with.

use std::collections::BTreeMap;

use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, JsonObject as McpObject,
    ListPromptsRequest,
};
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::ToolContent;

use crate::features::{
    error::FeatureError,
    pages::{self, Listing, needed, text},
    request::{Asker, Capability},
};
use crate::{host::McpHost, tools::convert};

/// A prompt that a server offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prompt {
    /// Its name, by which it is asked for.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What is put into it.
    pub arguments: Vec<PromptArgument>,
}

/// Something that is put into a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether there is no prompt without it.
    pub required: bool,
}

/// A prompt with its arguments put in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RenderedPrompt {
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its messages, in order.
    pub messages: Vec<PromptMessage>,
    /// What is missing, and why: messages that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromptMessage {
    /// Who says it.
    pub role: PromptRole,
    /// What is said.
    pub content: ToolContent,
}

/// Who says a message of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptRole {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// What servers have written for a person to begin with.
impl McpHost {
    /// All prompts that a server lists.
    pub async fn prompts(&self, server: &str) -> Result<Listing<Prompt>, FeatureError> {
        let mut asker = Asker::new(self, server).await?;
        let request = |params| {
            ClientRequest::ListPromptsRequest(ListPromptsRequest {
                params,
                ..ListPromptsRequest::default()
            })
        };
        pages::all(&mut asker, Capability::Prompts, "prompts", request, prompt).await
    }

    /// A prompt with these arguments put in.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &BTreeMap<String, String>,
    ) -> Result<RenderedPrompt, FeatureError> {
        let mut asker = Asker::new(self, server).await?;
        let mut params = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            let arguments = arguments.iter();
            let arguments = arguments.map(|(name, value)| (name.clone(), value.as_str().into()));
            params.arguments = Some(arguments.collect::<McpObject>());
        }
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        let method = request.method().to_owned();
        let result = asker.ask(Capability::Prompts, request).await?;
        let Some(Value::Array(said)) = result.get("messages") else {
            return Err(FeatureError::Malformed {
                server: server.to_owned(),
                request: method,
                reason: "it has no messages".to_owned(),
            });
        };
        let mut rendered = RenderedPrompt {
            description: text(&result, "description"),
            messages: Vec::new(),
            problems: Vec::new(),
        };
        for said in said {
            match messages(said) {
                Ok(messages) => rendered.messages.extend(messages),
                Err(why) => {
                    tracing::warn!(server, name, why, "a message of a prompt is left out");
                    let why = asker.server.redactor.clean(why);
                    rendered.problems.push(format!("{why}, so it is left out"));
                }
            }
        }
        Ok(rendered)
    }
}

fn prompt(item: &Value) -> Result<Prompt, String> {
    let arguments = match item.get("arguments") {
        Some(Value::Array(arguments)) => arguments.as_slice(),
        _ => &[],
    };
    Ok(Prompt {
        name: needed(item, "name", "prompt")?,
        title: text(item, "title"),
        description: text(item, "description"),
        // One without a name cannot be given.
        arguments: arguments.iter().filter_map(argument).collect(),
    })
}

fn argument(item: &Value) -> Option<PromptArgument> {
    Some(PromptArgument {
        name: needed(item, "name", "argument").ok()?,
        title: text(item, "title"),
        description: text(item, "description"),
        required: item.get("required").and_then(Value::as_bool) == Some(true),
    })
}

/// Mostly one; some servers put several pieces of content into one message.
fn messages(said: &Value) -> Result<Vec<PromptMessage>, String> {
    let role = match said.get("role").and_then(Value::as_str) {
        Some("user") => PromptRole::User,
        Some("assistant") => PromptRole::Assistant,
        Some(other) => return Err(format!("one message is of nobody known (`{other}`)")),
        None => return Err("one message is of nobody".to_owned()),
    };
    let message = |content| PromptMessage { role, content };
    match said.get("content") {
        Some(Value::Array(pieces)) => {
            let pieces = pieces.iter().cloned();
            let pieces = pieces.map(convert::content_from_json);
            Ok(pieces.map(message).collect())
        }
        Some(Value::String(text)) => Ok(vec![message(ToolContent::text(text))]),
        Some(piece @ Value::Object(_)) => {
            Ok(vec![message(convert::content_from_json(piece.clone()))])
        }
        _ => Err("one message has no content".to_owned()),
    }
}

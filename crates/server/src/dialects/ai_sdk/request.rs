//! What `useChat` posts: `HttpChatTransport.sendMessages` of the npm package `ai` 7.0.173
//! (`src/ui/http-chat-transport.ts`), with messages as `src/ui/ui-messages.ts` has them.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::{
    ApprovalDecision, ApprovalScope, Message, Part, Role, ToolInput, ToolResult, ToolUse,
};
use switchboard_orchestration::tools::arguments::ClientContext;
use utoipa::ToSchema;

use super::super::{
    conversation::{self, Conversation, bad_messages},
    runs::durable::{Regeneration, ClientConversation, Decisions, check_word},
};
use crate::{Parameters, Problem};

/// What `useChat` posts. Fields beside the SDK's own come from its option `body`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AiSdkRequest {
    /// The chat, which is the session.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub(crate) id: String,
    /// The conversation as the client has it. Where the session is known, only what is new in it counts.
    #[schema(value_type = Vec<Object>)]
    pub(crate) messages: Vec<UiMessage>,
    /// Why the request is made.
    #[serde(default)]
    pub(crate) trigger: Trigger,
    /// The message that is meant, if one is.
    #[serde(default, rename = "messageId")]
    pub(crate) message_id: Option<String>,
    /// The provider, where `model` does not name it.
    #[serde(default)]
    pub(crate) provider: Option<String>,
    /// The model, as `PROVIDER/MODEL` or its name alone.
    #[serde(default)]
    pub(crate) model: Option<String>,
    /// The recipe to follow.
    #[serde(default)]
    pub(crate) recipe: Option<String>,
    /// How the run is asked.
    #[serde(default)]
    pub(crate) parameters: Parameters,
    /// Values for tools that the model does not see, by name.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(crate) context: Option<ClientContext>,
}

/// Why the request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Trigger {
    /// Something is said, or a question was answered.
    #[default]
    SubmitMessage,
    /// The last answer is wanted anew.
    RegenerateMessage,
}

/// A message as the client has it. What this server does not look at is not read.
#[derive(Debug, Deserialize)]
pub(crate) struct UiMessage {
    #[serde(default)]
    id: Option<String>,
    role: UiRole,
    #[serde(default)]
    metadata: Option<Value>,
    parts: Vec<UiPart>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UiRole {
    System,
    User,
    Assistant,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UiPart {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    filename: Option<String>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    input: Option<Value>,
    #[serde(default)]
    output: Option<Value>,
    #[serde(default)]
    error_text: Option<String>,
    #[serde(default)]
    approval: Option<Approval>,
}

#[derive(Debug, Deserialize)]
struct Approval {
    /// The run's id of the call.
    id: String,
    #[serde(default)]
    approved: Option<bool>,
    #[serde(default)]
    reason: Option<String>,
}

impl AiSdkRequest {
    /// The words that this request brings, if it is one that does.
    pub(crate) fn words(&self) -> Result<Option<Decisions>, Problem> {
        if self.trigger != Trigger::SubmitMessage {
            return Ok(None);
        }
        let named = self.messages.iter().find(|message| {
            message.role == UiRole::Assistant
                && message.id.is_some()
                && message.id == self.message_id
        });
        let last = self.messages.last();
        let Some(message) = named.or(last).filter(|it| it.role == UiRole::Assistant) else {
            return Ok(None);
        };
        let words: Vec<_> = message.parts.iter().filter_map(UiPart::word).collect();
        if words.is_empty() {
            return Ok(None);
        }
        for (call, word) in &words {
            check_word(&format!("the word about the tool call `{call}`"), word)
                .map_err(bad_messages)?;
        }
        let metadata = message.metadata.as_ref();
        let field = |name: &str| metadata.and_then(|metadata| metadata.get(name));
        let run = field("runId").and_then(Value::as_str);
        let seen = field("lastEvent").and_then(Value::as_u64);
        match (run, seen) {
            (Some(run), Some(seen)) => Ok(Some(Decisions {
                run: run.to_owned(),
                seen,
                said: words,
            })),
            _ => Err(bad_messages(
                "the message whose tool calls were decided about has no `metadata.runId` and \
                 `metadata.lastEvent`: send it with the metadata that it came with"
                    .to_owned(),
            )),
        }
    }
}

impl ClientConversation for AiSdkRequest {
    fn again(&self) -> Result<Option<Regeneration>, Problem> {
        if self.trigger != Trigger::RegenerateMessage {
            return Ok(None);
        }
        // Without the answer that is given anew, the conversation ends with its question.
        let Some(question) = self.newest()?.into_iter().next_back() else {
            return Ok(None);
        };
        let others = self.messages.iter().rev().skip(1).rev();
        let mut before = Vec::new();
        for message in others.filter(|it| it.role == UiRole::User) {
            let mut alone = Conversation::default();
            match message.say_in(&mut alone) {
                // One without anything in it is in no session.
                Ok(()) => before.extend(alone.done().ok().map(|said| said.into_iter().next())),
                Err(_) => before.push(None),
            }
        }
        Ok(Some(Regeneration { question, before }))
    }

    /// The last message, which the person said.
    fn newest(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let last = self.messages.iter().enumerate().next_back();
        let Some((place, last)) = last.filter(|(_, message)| message.role == UiRole::User) else {
            return Err(bad_messages(
                "the last message is not the person's, and brings no word about a tool call"
                    .to_owned(),
            ));
        };
        let mut conversation = Conversation::default();
        last.add_to(&mut conversation, place)?;
        conversation.done().map_err(bad_messages)
    }

    fn conversation(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let mut conversation = Conversation::default();
        for (place, message) in self.messages.iter().enumerate() {
            message.add_to(&mut conversation, place)?;
        }
        conversation.done().map_err(bad_messages)
    }
}

impl UiMessage {
    fn add_to(&self, conversation: &mut Conversation, place: usize) -> Result<(), Problem> {
        self.say_in(conversation)
            .map_err(|why| bad_messages(format!("messages[{place}]: {why}")))
    }

    fn say_in(&self, conversation: &mut Conversation) -> Result<(), String> {
        match self.role {
            UiRole::System => conversation.say(Role::System, self.said()?),
            UiRole::User => conversation.say(Role::User, self.said()?),
            UiRole::Assistant => {
                // One message of the client holds all steps of an answer.
                for step in self.parts.split(|part| part.kind == "step-start") {
                    let mut parts = Vec::new();
                    for part in step {
                        parts.extend(part.said()?);
                        parts.extend(part.call());
                    }
                    conversation.say(Role::Assistant, parts)?;
                    for part in step {
                        if let Some(result) = part.result() {
                            conversation.result(result)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn said(&self) -> Result<Vec<Part>, String> {
        let parts = self.parts.iter().map(UiPart::said);
        parts.filter_map(Result::transpose).collect()
    }
}

impl UiPart {
    /// What was said; data, sources and thinking are for the person.
    fn said(&self) -> Result<Option<Part>, String> {
        match self.kind.as_str() {
            "text" => Ok(self.text.as_deref().and_then(conversation::text)),
            "file" => {
                let url = self
                    .url
                    .as_deref()
                    .ok_or("a part of the type `file` has an `url`")?;
                let (media_type, name) = (self.media_type.as_deref(), self.filename.as_deref());
                conversation::file(url, media_type, name).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn tool(&self) -> Option<(&str, &str)> {
        let name = match self.kind.strip_prefix("tool-") {
            Some(name) => name,
            None if self.kind == "dynamic-tool" => self.tool_name.as_deref()?,
            None => return None,
        };
        Some((self.tool_call_id.as_deref()?, name))
    }

    fn call(&self) -> Option<Part> {
        let (id, name) = self.tool()?;
        let input = ToolInput::from_json(self.input.clone().unwrap_or_default());
        Some(Part::ToolUse(ToolUse::new(id, name, input)))
    }

    /// Every call has a result, also one that was left alone.
    fn result(&self) -> Option<ToolResult> {
        let (id, name) = self.tool()?;
        Some(
            match (self.state.as_deref(), &self.output, &self.error_text) {
                (Some("output-available"), Some(Value::String(text)), _) => {
                    ToolResult::text(id, name, text)
                }
                (Some("output-available"), Some(output), _) => {
                    ToolResult::text(id, name, output.to_string())
                }
                (Some("output-error"), _, Some(why)) => ToolResult::error(id, name, why),
                (Some("output-denied"), ..) => {
                    ToolResult::error(id, name, "Not executed: declined.")
                }
                _ => ToolResult::error(id, name, "Not executed."),
            },
        )
    }

    fn word(&self) -> Option<(String, ApprovalDecision)> {
        self.tool()?;
        if self.state.as_deref() != Some("approval-responded") {
            return None;
        }
        let approval = self.approval.as_ref()?;
        let scope = ApprovalScope::Once;
        let decision = if approval.approved? {
            ApprovalDecision::Allow { input: None, scope }
        } else {
            let reason = approval.reason.clone();
            ApprovalDecision::Deny { reason, scope }
        };
        Some((approval.id.clone(), decision))
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

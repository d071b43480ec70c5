//! Parses requests of the AI SDK's hook `useChat`: `HttpChatTransport.sendMessages` of the npm
//! package `ai` 7.0.173 (`src/ui/http-chat-transport.ts`), messages as in `src/ui/ui-messages.ts`.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::{
    ApprovalDecision, ApprovalScope, Message, Part, Role, ToolInput, ToolResult, ToolUse,
};
use switchboard_orchestration::tools::arguments::ClientContext;
use utoipa::ToSchema;

use super::super::{
    conversation::{self, Conversation, invalid_messages, reject_nul_character},
    runs::durable_request::{ClientApprovalDecisions, ClientConversation, RegenerationRequest},
};
use crate::{Parameters, Problem};

/// A request of `useChat`, with additional fields that clients set in its option `body`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AiSdkRequest {
    /// The id of the chat. The server uses it as the session id.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub(crate) id: String,
    /// The client's messages. If the session exists, the server reads only new messages.
    #[schema(value_type = Vec<Object>)]
    pub(crate) messages: Vec<UiMessage>,
    /// The client's reason for the request: a new message, or a regeneration of the last answer.
    #[serde(default)]
    pub(crate) trigger: Trigger,
    /// The id of the message that the client regenerates or changes.
    #[serde(rename = "messageId")]
    pub(crate) message_id: Option<String>,
    /// The provider of the model, if `model` does not contain it.
    pub(crate) provider: Option<String>,
    /// The model of the run, as `PROVIDER/MODEL` or a model name alone.
    pub(crate) model: Option<String>,
    /// The name of the recipe, which is a file with a prompt, a tool selection and a strategy.
    pub(crate) recipe: Option<String>,
    /// Parameters of the run, such as temperature and limits.
    #[serde(default)]
    pub(crate) parameters: Parameters,
    /// Named values that tools receive but the model does not, such as access tokens.
    #[schema(value_type = Option<Object>)]
    pub(crate) context: Option<ClientContext>,
}

/// The reason why a client sends a chat request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Trigger {
    /// The request contains a new user message or an approval decision.
    #[default]
    SubmitMessage,
    /// The client requests a new answer to the last question, to replace the old answer.
    RegenerateMessage,
}

/// A message in the format of the AI SDK. Fields that this type does not declare are ignored.
#[derive(Debug, Deserialize)]
pub(crate) struct UiMessage {
    id: Option<String>,
    role: UiRole,
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
    text: Option<String>,
    url: Option<String>,
    media_type: Option<String>,
    filename: Option<String>,
    tool_call_id: Option<String>,
    tool_name: Option<String>,
    state: Option<String>,
    input: Option<Value>,
    output: Option<Value>,
    error_text: Option<String>,
    approval: Option<UiApproval>,
}

#[derive(Debug, Deserialize)]
struct UiApproval {
    /// The id of the approval request, which is the id of the tool call within the run.
    id: String,
    approved: Option<bool>,
    reason: Option<String>,
}

impl AiSdkRequest {
    /// Returns the approval decisions in the assistant message `message_id`, or else in the last
    /// message. Returns `None` if that message contains no decision.
    pub(crate) fn parse_decisions(&self) -> Result<Option<ClientApprovalDecisions>, Problem> {
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
        let parts = message.parts.iter();
        let calls: Vec<_> = parts.filter_map(UiPart::parse_decision).collect();
        if calls.is_empty() {
            return Ok(None);
        }
        for (call, decision) in &calls {
            reject_nul_character(decision).map_err(|why| {
                invalid_messages(format!("the decision about the tool call `{call}`: {why}"))
            })?;
        }
        let metadata = message.metadata.as_ref();
        let field = |name: &str| metadata.and_then(|metadata| metadata.get(name));
        let run = field("runId").and_then(Value::as_str);
        let last_seen = field("lastEvent").and_then(Value::as_u64);
        match (run, last_seen) {
            (Some(run), Some(last_seen)) => Ok(Some(ClientApprovalDecisions {
                run: run.to_owned(),
                last_seen,
                calls,
            })),
            _ => Err(invalid_messages(
                "the message with the decided tool calls has no `metadata.runId` and \
                 `metadata.lastEvent`: send the message with its metadata"
                    .to_owned(),
            )),
        }
    }
}

impl ClientConversation for AiSdkRequest {
    fn regeneration_request(&self) -> Result<Option<RegenerationRequest>, Problem> {
        if self.trigger != Trigger::RegenerateMessage {
            return Ok(None);
        }
        // To regenerate an answer, the client removes it, so the last message is the question.
        let Some(question) = self.new_messages()?.into_iter().next_back() else {
            return Ok(None);
        };
        let others = self.messages.iter().rev().skip(1).rev();
        let mut before = Vec::new();
        for message in others.filter(|it| it.role == UiRole::User) {
            let mut single = Conversation::default();
            match message.add_to_conversation(&mut single) {
                // Messages without parts are skipped, because the session does not store them.
                Ok(()) => {
                    let all = single.into_messages().ok();
                    before.extend(all.map(|all| all.into_iter().next()));
                }
                Err(_) => before.push(None),
            }
        }
        Ok(Some(RegenerationRequest { question, before }))
    }

    fn new_messages(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let last = self.messages.iter().enumerate().next_back();
        let Some((index, last)) = last.filter(|(_, message)| message.role == UiRole::User) else {
            return Err(invalid_messages(
                "the last message is not a user message and contains no decision about a tool call"
                    .to_owned(),
            ));
        };
        Conversation::default()
            .parse_client_messages([(index, last)], UiMessage::add_to_conversation)
    }

    fn all_messages(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let messages = self.messages.iter().enumerate();
        Conversation::default().parse_client_messages(messages, UiMessage::add_to_conversation)
    }
}

impl UiMessage {
    fn add_to_conversation(&self, conversation: &mut Conversation) -> Result<(), String> {
        match self.role {
            UiRole::System => conversation.push(Role::System, self.to_parts()?),
            UiRole::User => conversation.push(Role::User, self.to_parts()?),
            UiRole::Assistant => {
                // An assistant message of the AI SDK contains all steps of an answer. A session
                // stores a separate message for each step.
                for step in self.parts.split(|part| part.kind == "step-start") {
                    let mut parts = Vec::new();
                    for part in step {
                        parts.extend(part.to_content_part()?);
                        parts.extend(part.to_tool_use());
                    }
                    conversation.push(Role::Assistant, parts)?;
                    for part in step {
                        if let Some(result) = part.to_tool_result() {
                            conversation.push_tool_result(result)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn to_parts(&self) -> Result<Vec<Part>, String> {
        let parts = self.parts.iter().map(UiPart::to_content_part);
        parts.filter_map(Result::transpose).collect()
    }
}

impl UiPart {
    /// Converts a text or file part of the AI SDK. Returns `None` for empty text, and for all other
    /// types, such as reasoning or tool calls. Fails if the URL of a file is missing or invalid.
    fn to_content_part(&self) -> Result<Option<Part>, String> {
        match self.kind.as_str() {
            "text" => Ok(self.text.as_deref().and_then(conversation::text_part)),
            "file" => {
                let url = self.url.as_deref();
                let url = url.ok_or("a part of the type `file` needs a `url`")?;
                let (media_type, name) = (self.media_type.as_deref(), self.filename.as_deref());
                conversation::file_part(url, media_type, name).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn call_id_and_tool_name(&self) -> Option<(&str, &str)> {
        let name = match self.kind.strip_prefix("tool-") {
            Some(name) => name,
            None if self.kind == "dynamic-tool" => self.tool_name.as_deref()?,
            None => return None,
        };
        Some((self.tool_call_id.as_deref()?, name))
    }

    fn to_tool_use(&self) -> Option<Part> {
        let (id, name) = self.call_id_and_tool_name()?;
        let input = ToolInput::from_json(self.input.clone().unwrap_or_default());
        Some(Part::ToolUse(ToolUse::new(id, name, input)))
    }

    /// Returns the result of a tool call, or `None` for other parts. A call without a result was
    /// not executed and gets an error as its result.
    fn to_tool_result(&self) -> Option<ToolResult> {
        let (id, name) = self.call_id_and_tool_name()?;
        let error = |message: &str| ToolResult::from_error_message(id, name, message);
        let state = (self.state.as_deref(), &self.output, &self.error_text);
        Some(match state {
            (Some("output-available"), Some(Value::String(text)), _) => {
                ToolResult::text(id, name, text)
            }
            (Some("output-available"), Some(output), _) => {
                ToolResult::text(id, name, output.to_string())
            }
            (Some("output-error"), _, Some(why)) => error(why),
            (Some("output-denied"), ..) => error("Not executed: declined."),
            _ => error("Not executed."),
        })
    }

    fn parse_decision(&self) -> Option<(String, ApprovalDecision)> {
        self.call_id_and_tool_name()?;
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

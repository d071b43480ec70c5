//! Parses requests of the AG-UI client `HttpAgent` (npm package `@ag-ui/client` 1.0.0), which have
//! the type `RunAgentInput` of `@ag-ui/core` 1.0.0 (`src/generated/types.ts`).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::{
    ApprovalDecision, ApprovalScope, JsonObject, Message, Part, Role, ToolOutput, ToolResult,
};
use utoipa::ToSchema;

use super::super::{
    conversation::{
        self, ContentPart, Conversation, FileSource, FunctionCall, MessageContent,
        invalid_messages, reject_nul_character, unsupported_field,
    },
    runs::durable_request::{ClientApprovalDecisions, ClientConversation},
    tools::client_tools::DeclaredTool,
};
use crate::{Problem, RunSettings};

/// An AG-UI request to run an agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgUiRequest {
    /// The id of the AG-UI thread. The server uses it as the session id.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub(crate) thread_id: String,
    /// The run id that the client chose. The server assigns another id to the run.
    pub(crate) run_id: String,
    /// The client's messages. If the session exists, the server reads only new messages.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<AgUiMessage>,
    /// State that the client shares with the agent. It must be empty, because the server does not
    /// support it.
    #[schema(value_type = Option<Object>)]
    state: Option<Value>,
    /// Tools that the client declares in this request and executes itself.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub(crate) tools: Vec<DeclaredTool>,
    /// Values that describe the client's situation to the model.
    #[serde(default)]
    context: Vec<Context>,
    /// Settings of the run: `provider`, `model`, `recipe`, `parameters` and `context`, as in `POST
    /// /chat`.
    forwarded_props: Option<RunSettings>,
    /// A person's answers to the interrupts (approval requests) that ended an earlier run.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    resume: Vec<InterruptAnswer>,
}

/// A value that describes the client's situation to the model.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Context {
    /// The description of the value. The model receives the description and the value.
    description: String,
    /// The value that describes the client's situation, as text.
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgUiMessage {
    role: String,
    /// The text or parts of the message. Messages with the role `activity` have content in another
    /// format, which is ignored.
    content: Option<MessageContent<AgUiMessagePart>>,
    #[serde(default)]
    tool_calls: Vec<FunctionCall>,
    tool_call_id: Option<String>,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AgUiMessagePart {
    Text {
        text: String,
    },
    Image {
        source: FileSource,
    },
    Audio {
        source: FileSource,
    },
    Document {
        source: FileSource,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct InterruptAnswer {
    #[serde(rename = "interruptId")]
    interrupt: String,
    status: InterruptStatus,
    payload: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum InterruptStatus {
    Resolved,
    Cancelled,
}

/// The `payload` of an answer to an interrupt, which contains an approval decision. The interrupt's
/// field `responseSchema` declares the fields of this type.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalPayload {
    approved: bool,
    reason: Option<String>,
    input: Option<JsonObject>,
    #[serde(default)]
    scope: ApprovalScope,
}

impl AgUiRequest {
    /// Returns the settings of the run. Fails if the request field `state` is not empty, because
    /// the server does not support state that a client shares.
    pub(crate) fn parse_run_settings(&self) -> Result<RunSettings, Problem> {
        let has_state = match &self.state {
            None | Some(Value::Null) => false,
            Some(Value::Object(state)) => !state.is_empty(),
            Some(_) => true,
        };
        if has_state {
            return Err(unsupported_field(
                "state",
                "`state` is not supported: remove it",
            ));
        }
        Ok(self.forwarded_props.clone().unwrap_or_default())
    }

    /// Returns the approval decisions in `resume`, or `None` if the request has no decision.
    pub(crate) fn parse_decisions(&self) -> Result<Option<ClientApprovalDecisions>, Problem> {
        let mut found: Option<ClientApprovalDecisions> = None;
        for (index, resume) in self.resume.iter().enumerate() {
            let invalid =
                |reason: &str| unsupported_field("resume", &format!("resume[{index}]: {reason}"));
            let Some((run, last_seen, call)) = parse_interrupt_id(&resume.interrupt) else {
                return Err(invalid("`interruptId` is not a valid interrupt id"));
            };
            let decision = resume.parse_decision().map_err(|reason| invalid(&reason))?;
            reject_nul_character(&decision)
                .map_err(|reason| invalid(&format!("`payload`: {reason}")))?;
            let decisions = found.get_or_insert_with(|| ClientApprovalDecisions {
                run: run.to_owned(),
                last_seen,
                calls: Vec::new(),
            });
            if decisions.run != run {
                return Err(invalid("its run differs from the run of the previous one"));
            }
            decisions.calls.push((call.to_owned(), decision));
        }
        Ok(found)
    }

    /// Returns the values in the request field `context` as one text part, or `None` if there are
    /// none. The part is placed before the other parts of the new user message.
    fn build_context_part(&self) -> Option<Part> {
        if self.context.is_empty() {
            return None;
        }
        let entries = self.context.iter();
        let entries: Vec<_> = entries
            .map(|context| format!("{}: {}", context.description, context.value))
            .collect();
        Some(Part::text(format!("Context:\n{}\n\n", entries.join("\n"))))
    }
}

impl ClientConversation for AgUiRequest {
    fn new_messages(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let last = self.messages.iter().enumerate().next_back();
        let Some((index, last)) = last.filter(|(_, message)| message.role == "user") else {
            return Err(invalid_messages(
                "the last message is not a user message and `resume` is empty".to_owned(),
            ));
        };
        let add = |message: &AgUiMessage, conversation: &mut _| {
            message.add_to_conversation(conversation, self.build_context_part())
        };
        Conversation::default().parse_client_messages([(index, last)], add)
    }

    fn all_messages(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let add = |message: &AgUiMessage, conversation: &mut _| {
            let last = self.messages.last();
            let is_last = last.is_some_and(|last| std::ptr::eq(last, message));
            let context = is_last.then(|| self.build_context_part()).flatten();
            message.add_to_conversation(conversation, context)
        };
        Conversation::default().parse_client_messages(self.messages.iter().enumerate(), add)
    }

    fn client_tool_results(&self) -> Result<Vec<(String, ToolOutput)>, Problem> {
        let mut results = Vec::new();
        for (index, message) in self.messages.iter().enumerate().rev() {
            if message.role != "tool" {
                break;
            }
            let result = message
                .to_tool_result()
                .map_err(|reason| invalid_messages(format!("messages[{index}]: {reason}")))?;
            results.push((result.tool_use_id.clone(), ToolOutput::from(&result)));
        }
        results.reverse();
        Ok(results)
    }
}

impl InterruptAnswer {
    fn parse_decision(&self) -> Result<ApprovalDecision, String> {
        if self.status == InterruptStatus::Cancelled {
            return Ok(ApprovalDecision::Deny {
                reason: None,
                scope: ApprovalScope::Once,
            });
        }
        let payload = self.payload.clone().unwrap_or_default();
        let payload: ApprovalPayload = serde_json::from_value(payload).map_err(|why| {
            format!("`payload` does not match the interrupt's `responseSchema`: {why}")
        })?;
        let (scope, reason, input) = (payload.scope, payload.reason, payload.input);
        Ok(if payload.approved {
            ApprovalDecision::Allow { input, scope }
        } else {
            ApprovalDecision::Deny { reason, scope }
        })
    }
}

/// Splits the id of an interrupt (`RUN/NUMBER/CALL`) into the run id, the sequence number of the
/// last event that the client received, and the tool call id. The tool call id may contain slashes.
/// Returns `None` if the id has another form.
fn parse_interrupt_id(id: &str) -> Option<(&str, u64, &str)> {
    let mut pieces = id.splitn(3, '/');
    let (run, last_seen, call) = (pieces.next()?, pieces.next()?, pieces.next()?);
    let last_seen = last_seen.parse().ok()?;
    (!run.is_empty() && !call.is_empty()).then_some((run, last_seen, call))
}

impl AgUiMessage {
    fn add_to_conversation(
        &self,
        conversation: &mut Conversation,
        context: Option<Part>,
    ) -> Result<(), String> {
        match self.role.as_str() {
            "system" | "developer" => conversation.push(Role::System, self.to_parts()?),
            "user" => {
                let parts = context.into_iter().chain(self.to_parts()?);
                conversation.push(Role::User, parts.collect())
            }
            "assistant" => {
                let mut parts = self.to_parts()?;
                for call in &self.tool_calls {
                    parts.push(call.to_part()?);
                }
                conversation.push(Role::Assistant, parts)
            }
            "tool" => conversation.push_tool_result(self.to_tool_result()?),
            // Clients only display messages of these roles, so the model does not receive them.
            "activity" | "reasoning" => Ok(()),
            other => Err(format!("the role `{other}` is not supported")),
        }
    }

    fn to_tool_result(&self) -> Result<ToolResult, String> {
        let id = self.tool_call_id.as_deref();
        let id = id.ok_or("a tool message needs `toolCallId`")?;
        let text = Message::new(Role::Tool, self.to_parts()?).text();
        Ok(match &self.error {
            None => ToolResult::text(id, "", text),
            Some(why) => ToolResult::from_error_message(id, "", why),
        })
    }

    fn to_parts(&self) -> Result<Vec<Part>, String> {
        let content = self.content.as_ref();
        content.map_or(Ok(Vec::new()), MessageContent::to_parts)
    }
}

impl ContentPart for AgUiMessagePart {
    fn to_part(&self) -> Result<Option<Part>, String> {
        match self {
            Self::Text { text } => Ok(conversation::text_part(text)),
            Self::Image { source } => source.to_part("image/*", None),
            Self::Audio { source } => source.to_part("audio/*", None),
            Self::Document { source } => source.to_part("application/pdf", None),
            Self::Other => Err("it contains a part of an unsupported type".to_owned()),
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

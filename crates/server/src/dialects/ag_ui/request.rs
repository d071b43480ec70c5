//! A request of `HttpAgent` of the npm package `@ag-ui/client` 1.0.0: `RunAgentInput` of
//! `@ag-ui/core` 1.0.0 (`src/generated/types.ts`).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_domain::{
    ApprovalDecision, ApprovalScope, JsonObject, Message, Part, Role, ToolInput, ToolOutput,
    ToolResult, ToolUse,
};
use switchboard_orchestration::tools::arguments::ClientContext;
use utoipa::ToSchema;

use super::{
    super::{
        conversation::{self, Conversation, bad_messages, unsupported},
        runs::durable::{ClientConversation, Decisions, check_decision},
    },
    stream::InterruptId,
};
use crate::{Parameters, Problem, RunSettings};

/// A request of AG-UI to run an agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgUiRequest {
    /// The thread, which is the session.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub(crate) thread_id: String,
    /// The client's id of the run.
    pub(crate) run_id: String,
    /// The client's conversation. If the session exists, only new messages are read.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<InMessage>,
    /// State that the agent shares with the client, which must be empty.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    state: Option<Value>,
    /// Tools of the client.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    tools: Vec<Tool>,
    /// Additional information for the agent.
    #[serde(default)]
    context: Vec<Context>,
    /// `provider`, `model`, `recipe`, `parameters` and `context`, as in `POST /chat`.
    #[serde(default)]
    forwarded_props: Option<Forwarded>,
    /// Answers to the interrupts of an earlier run.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    resume: Vec<Resume>,
}

/// A tool of the client.
#[derive(Debug, Deserialize)]
struct Tool {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
}

/// Additional information for the agent.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Context {
    /// The meaning of the value.
    description: String,
    /// The value.
    value: String,
}

/// Settings from the application.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forwarded {
    /// The provider, if `model` does not contain it.
    #[serde(default)]
    provider: Option<String>,
    /// The model, as `PROVIDER/MODEL` or only its name.
    #[serde(default)]
    model: Option<String>,
    /// The recipe of the run.
    #[serde(default)]
    recipe: Option<String>,
    /// The parameters of the run.
    #[serde(default)]
    parameters: Parameters,
    /// Values for tools that the model does not see, by name.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    context: Option<ClientContext>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct InMessage {
    role: String,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
    /// Content of activity messages.
    Other(Value),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart {
    Text {
        text: String,
    },
    Image {
        source: Source,
    },
    Audio {
        source: Source,
    },
    Document {
        source: Source,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
enum Source {
    Data {
        value: String,
        mime_type: String,
    },
    Url {
        value: String,
        #[serde(default)]
        mime_type: Option<String>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    id: String,
    function: Function,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Debug, Deserialize)]
struct Resume {
    #[serde(rename = "interruptId")]
    interrupt: String,
    status: Status,
    #[serde(default)]
    payload: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Resolved,
    Cancelled,
}

/// The answer to an interrupt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    approved: bool,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    input: Option<JsonObject>,
    #[serde(default)]
    scope: ApprovalScope,
}

impl AgUiRequest {
    /// Returns the settings of the run. Unsupported ones are errors.
    pub(crate) fn settings(&self) -> Result<RunSettings, Problem> {
        let has_state = match &self.state {
            None | Some(Value::Null) => false,
            Some(Value::Object(state)) => !state.is_empty(),
            Some(_) => true,
        };
        if has_state {
            return Err(unsupported("state", "`state` is not supported: remove it"));
        }
        let Some(forwarded) = &self.forwarded_props else {
            return Ok(RunSettings::default());
        };
        Ok(RunSettings {
            provider: forwarded.provider.clone(),
            model: forwarded.model.clone(),
            recipe: forwarded.recipe.clone(),
            parameters: forwarded.parameters.clone(),
            context: forwarded.context.clone().unwrap_or_default(),
        })
    }

    /// Returns the client's tools: names, descriptions, schemas.
    pub(crate) fn tools(&self) -> Vec<(String, String, Value)> {
        let tools = self.tools.iter().map(|tool| {
            let schema = match &tool.parameters {
                None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
                Some(schema) => schema.clone(),
            };
            let description = tool.description.clone().unwrap_or_default();
            (tool.name.clone(), description, schema)
        });
        tools.collect()
    }

    /// Returns the decisions of the request, if it has any.
    pub(crate) fn decisions(&self) -> Result<Option<Decisions>, Problem> {
        let mut found: Option<Decisions> = None;
        for (index, resume) in self.resume.iter().enumerate() {
            let invalid =
                |reason: &str| unsupported("resume", &format!("resume[{index}]: {reason}"));
            let Some(id) = InterruptId::parse(&resume.interrupt) else {
                return Err(invalid("`interruptId` is not an id of this server"));
            };
            let decision = resume.decision().map_err(|reason| invalid(&reason))?;
            check_decision("`payload`", &decision).map_err(|reason| invalid(&reason))?;
            let decisions = found.get_or_insert_with(|| Decisions {
                run: id.run.to_owned(),
                last_seen: id.last_seen,
                calls: Vec::new(),
            });
            if decisions.run != id.run {
                return Err(invalid("its run differs from the run of the previous one"));
            }
            decisions.calls.push((id.call.to_owned(), decision));
        }
        Ok(found)
    }

    /// Returns the text that precedes the new user message.
    fn context_part(&self) -> Option<Part> {
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
            return Err(bad_messages(
                "the last message is not a user message and `resume` is empty".to_owned(),
            ));
        };
        let mut conversation = Conversation::default();
        last.add_to(&mut conversation, self.context_part(), index)?;
        conversation.finish().map_err(bad_messages)
    }

    fn all_messages(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let mut conversation = Conversation::default();
        let last = self.messages.len().saturating_sub(1);
        for (index, message) in self.messages.iter().enumerate() {
            let context = (index == last).then(|| self.context_part()).flatten();
            message.add_to(&mut conversation, context, index)?;
        }
        conversation.finish().map_err(bad_messages)
    }

    fn client_results(&self) -> Result<Vec<(String, ToolOutput)>, Problem> {
        let mut results = Vec::new();
        for (index, message) in self.messages.iter().enumerate().rev() {
            if message.role != "tool" {
                break;
            }
            let result = message
                .result()
                .map_err(|reason| bad_messages(format!("messages[{index}]: {reason}")))?;
            results.push((result.tool_use_id.clone(), ToolOutput::from(&result)));
        }
        results.reverse();
        Ok(results)
    }
}

impl Resume {
    fn decision(&self) -> Result<ApprovalDecision, String> {
        if self.status == Status::Cancelled {
            return Ok(ApprovalDecision::Deny {
                reason: None,
                scope: ApprovalScope::Once,
            });
        }
        let payload = self.payload.clone().unwrap_or_default();
        let payload: Payload = serde_json::from_value(payload).map_err(|why| {
            format!("`payload` does not fit the interrupt's `responseSchema`: {why}")
        })?;
        let (scope, reason, input) = (payload.scope, payload.reason, payload.input);
        Ok(if payload.approved {
            ApprovalDecision::Allow { input, scope }
        } else {
            ApprovalDecision::Deny { reason, scope }
        })
    }
}

impl InMessage {
    fn add_to(
        &self,
        conversation: &mut Conversation,
        context: Option<Part>,
        index: usize,
    ) -> Result<(), Problem> {
        self.try_add_to(conversation, context)
            .map_err(|reason| bad_messages(format!("messages[{index}]: {reason}")))
    }

    fn try_add_to(
        &self,
        conversation: &mut Conversation,
        context: Option<Part>,
    ) -> Result<(), String> {
        match self.role.as_str() {
            "system" | "developer" => conversation.push(Role::System, self.parts()?),
            "user" => {
                let parts = context.into_iter().chain(self.parts()?);
                conversation.push(Role::User, parts.collect())
            }
            "assistant" => {
                let mut parts = self.parts()?;
                parts.extend(self.tool_calls.iter().map(|call| {
                    Part::ToolUse(ToolUse::new(
                        &call.id,
                        &call.function.name,
                        ToolInput::parse(&call.function.arguments),
                    ))
                }));
                conversation.push(Role::Assistant, parts)
            }
            "tool" => conversation.push_result(self.result()?),
            // Only for display.
            "activity" | "reasoning" => Ok(()),
            other => Err(format!("the role `{other}` is not supported")),
        }
    }

    fn result(&self) -> Result<ToolResult, String> {
        let id = self
            .tool_call_id
            .as_deref()
            .ok_or("a tool message needs `toolCallId`")?;
        let text = Message::new(Role::Tool, self.parts()?).text();
        Ok(match &self.error {
            None => ToolResult::text(id, "", text),
            Some(why) => ToolResult::error(id, "", why),
        })
    }

    fn parts(&self) -> Result<Vec<Part>, String> {
        match &self.content {
            None | Some(Content::Other(Value::Null)) => Ok(Vec::new()),
            Some(Content::Text(text)) => Ok(conversation::text(text).into_iter().collect()),
            Some(Content::Parts(parts)) => {
                let parts = parts.iter().map(ContentPart::part);
                parts.filter_map(Result::transpose).collect()
            }
            Some(Content::Other(_)) => Err("its content is neither text nor parts".to_owned()),
        }
    }
}

impl ContentPart {
    fn part(&self) -> Result<Option<Part>, String> {
        match self {
            Self::Text { text } => Ok(conversation::text(text)),
            Self::Image { source } => source.part("image/*").map(Some),
            Self::Audio { source } => source.part("audio/*").map(Some),
            Self::Document { source } => source.part("application/pdf").map(Some),
            Self::Other => Err("it has a part of a type that is not supported".to_owned()),
        }
    }
}

impl Source {
    fn part(&self, media_type: &str) -> Result<Part, String> {
        match self {
            Self::Data { value, mime_type } => {
                conversation::file(&format!("data:{mime_type};base64,{value}"), None, None)
            }
            Self::Url { value, mime_type } => {
                conversation::file(value, mime_type.as_deref().or(Some(media_type)), None)
            }
            Self::Other => Err("its source has a type that is not supported".to_owned()),
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

//! What `HttpAgent` of the npm package `@ag-ui/client` 1.0.0 posts: `RunAgentInput` of `@ag-ui/core` 1.0.0
//! (`src/generated/types.ts`).

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
        runs::durable::{ClientConversation, Decisions, check_word},
        response::paused_runs::output,
    },
    stream::InterruptId,
};
use crate::{Parameters, Problem, Wish};

/// A request of AG-UI to run an agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgUiRequest {
    /// The conversation, which is the session.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    pub(crate) thread_id: String,
    /// The client's own name for the run.
    pub(crate) run_id: String,
    /// The conversation as the client has it. Where the session is known, only what is new in it counts.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<InMessage>,
    /// State that the agent shares with the client: there is none here.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    state: Option<Value>,
    /// Tools that run at the client, beside those of the server.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    tools: Vec<Tool>,
    /// What else the agent should know.
    #[serde(default)]
    context: Vec<Context>,
    /// `provider`, `model`, `recipe`, `parameters` and `context`, as in `POST /chat`.
    #[serde(default)]
    forwarded_props: Option<Forwarded>,
    /// Answers to what an earlier run of the thread waits for.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    resume: Vec<Resume>,
}

/// A tool that runs at the client.
#[derive(Debug, Deserialize)]
struct Tool {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
}

/// What else the agent should know.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct Context {
    /// What it is.
    description: String,
    /// The thing itself.
    value: String,
}

/// What an application passes through to the agent.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forwarded {
    /// The provider, where `model` does not name it.
    #[serde(default)]
    provider: Option<String>,
    /// The model, as `PROVIDER/MODEL` or its name alone.
    #[serde(default)]
    model: Option<String>,
    /// The recipe to follow.
    #[serde(default)]
    recipe: Option<String>,
    /// How the run is asked.
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
    /// What a client shows and no agent is told.
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

/// The answer to a question about a call: the schema of the interrupt.
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
    /// How the run is asked, where that can be honoured.
    pub(crate) fn wish(&self) -> Result<Wish, Problem> {
        let has_state = match &self.state {
            None | Some(Value::Null) => false,
            Some(Value::Object(state)) => !state.is_empty(),
            Some(_) => true,
        };
        if has_state {
            return Err(unsupported(
                "state",
                "`state` is not supported here: this agent shares none, so leave it out",
            ));
        }
        let Some(forwarded) = &self.forwarded_props else {
            return Ok(Wish::default());
        };
        Ok(Wish {
            provider: forwarded.provider.clone(),
            model: forwarded.model.clone(),
            recipe: forwarded.recipe.clone(),
            parameters: forwarded.parameters.clone(),
            context: forwarded.context.clone().unwrap_or_default(),
        })
    }

    /// The tools that run at the client: names, descriptions, schemas.
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

    /// The words that this request brings, if it is one that does.
    pub(crate) fn words(&self) -> Result<Option<Decisions>, Problem> {
        let mut found: Option<Decisions> = None;
        for (place, resume) in self.resume.iter().enumerate() {
            let bad = |why: &str| unsupported("resume", &format!("resume[{place}]: {why}"));
            let Some(id) = InterruptId::parse(&resume.interrupt) else {
                return Err(bad("`interruptId` is not one that this server gave"));
            };
            let word = resume.word().map_err(|why| bad(&why))?;
            check_word("`payload`", &word).map_err(|why| bad(&why))?;
            let words = found.get_or_insert_with(|| Decisions {
                run: id.run.to_owned(),
                seen: id.seen,
                said: Vec::new(),
            });
            if words.run != id.run {
                return Err(bad("it belongs to another run than the one before it"));
            }
            words.said.push((id.call.to_owned(), word));
        }
        Ok(found)
    }

    /// What else the agent should know stands before what the person says now.
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
    /// The last message, which the person said.
    fn newest(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let last = self.messages.iter().enumerate().next_back();
        let Some((place, last)) = last.filter(|(_, message)| message.role == "user") else {
            return Err(bad_messages(
                "the last message is not the person's, and `resume` answers nothing".to_owned(),
            ));
        };
        let mut conversation = Conversation::default();
        last.add_to(&mut conversation, self.context_part(), place)?;
        conversation.done().map_err(bad_messages)
    }

    fn conversation(&self) -> Result<Vec<Arc<Message>>, Problem> {
        let mut conversation = Conversation::default();
        let last = self.messages.len().saturating_sub(1);
        for (place, message) in self.messages.iter().enumerate() {
            let context = (place == last).then(|| self.context_part()).flatten();
            message.add_to(&mut conversation, context, place)?;
        }
        conversation.done().map_err(bad_messages)
    }

    fn results(&self) -> Result<Vec<(String, ToolOutput)>, Problem> {
        let mut results = Vec::new();
        for (place, message) in self.messages.iter().enumerate().rev() {
            if message.role != "tool" {
                break;
            }
            let result = message
                .result()
                .map_err(|why| bad_messages(format!("messages[{place}]: {why}")))?;
            results.push((result.tool_use_id.clone(), output(&result)));
        }
        results.reverse();
        Ok(results)
    }
}

impl Resume {
    fn word(&self) -> Result<ApprovalDecision, String> {
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
        before: Option<Part>,
        place: usize,
    ) -> Result<(), Problem> {
        self.say_in(conversation, before)
            .map_err(|why| bad_messages(format!("messages[{place}]: {why}")))
    }

    fn say_in(&self, conversation: &mut Conversation, before: Option<Part>) -> Result<(), String> {
        match self.role.as_str() {
            "system" | "developer" => conversation.say(Role::System, self.parts()?),
            "user" => {
                let parts = before.into_iter().chain(self.parts()?);
                conversation.say(Role::User, parts.collect())
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
                conversation.say(Role::Assistant, parts)
            }
            "tool" => conversation.result(self.result()?),
            // What a client shows, and what a model thought, is told to no model.
            "activity" | "reasoning" => Ok(()),
            other => Err(format!("there is no role `{other}` here")),
        }
    }

    fn result(&self) -> Result<ToolResult, String> {
        let id = self
            .tool_call_id
            .as_deref()
            .ok_or("a message of a tool has `toolCallId`")?;
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

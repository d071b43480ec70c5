//! The lines of a recording.

use std::{
    collections::BTreeMap,
    io::{BufRead, Read as _},
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use switchboard_domain::{
    ChatRequest, JsonObject, Message, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent,
    ModelId, ServerProblem, TimeoutPhase, ToolCallError, ToolDefinition, ToolOutput,
};

use super::{
    RecordingError,
    matching::{Form, Said},
};

/// What this program writes.
pub(super) const VERSION: u32 = 1;

/// A line may hold an image; nothing sensible is longer.
const MOST_BYTES: u64 = 256 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Line {
    /// The first one.
    Recording { version: u32, program: String },
    /// A message that requests name by its number.
    Message { number: usize, message: Value },
    /// Tools that requests name by their number.
    Tools { number: usize, tools: Value },
    /// A model was asked.
    Answer(Box<Exchange>),
    /// The host was asked for its tools.
    Catalog(Box<Catalog>),
    /// A tool was called.
    Call(Box<Call>),
}

/// A model was asked, and answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Exchange {
    /// The conversation that it belongs to, where several were recorded at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) track: Option<Arc<str>>,
    /// How many catalogs had been written when the model was asked: the last of them was in force. 0 where
    /// nobody knows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) catalogs: usize,
    pub(super) model: ModelId,
    pub(super) capabilities: ModelCapabilities,
    /// Numbers of messages.
    pub(super) messages: Vec<usize>,
    /// The number of the tools.
    pub(super) tools: usize,
    /// The request but for both.
    pub(super) request: Value,
    /// Each with the milliseconds since the request.
    pub(super) events: Vec<(u64, Value)>,
    /// Tool uses into whose input the model itself wrote what stands in the place of a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) marked: Vec<String>,
    /// How it ended, if not with the last event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end: Option<End>,
    /// Milliseconds until the end.
    pub(super) took_ms: u64,
}

/// How an answer ended early.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// With this.
    Failed(Box<Fault>),
    /// Whoever listened went away.
    Left,
}

/// An error of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Fault {
    pub(super) provider: String,
    pub(super) kind: String,
    /// The field, the feature, or what was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) what: Option<String>,
    /// How long was waited, or is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after_ms: Option<u64>,
    pub(super) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request_id: Option<String>,
}

/// The tools of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Catalog {
    pub(super) tools: Vec<Arc<ToolDefinition>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) problems: Vec<ServerProblem>,
}

/// A tool was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Call {
    /// As that of an exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) track: Option<Arc<str>>,
    /// How many calls had begun then, with it. Lines are in the order in which calls ended. 0 where nobody knows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) began: usize,
    pub(super) name: String,
    pub(super) input: JsonObject,
    pub(super) took_ms: u64,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Output(ToolOutput),
    Failed(CallFault),
    /// Whoever called did not wait.
    Left,
}

/// A [`ToolCallError`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum CallFault {
    UnknownTool {
        name: String,
        available: Vec<String>,
    },
    Unavailable {
        server: String,
        reason: String,
    },
    Timeout {
        server: String,
        tool: String,
        after_ms: u64,
    },
    Refused {
        server: String,
        tool: String,
        message: String,
        code: i64,
    },
    Broken {
        server: String,
        tool: String,
        reason: String,
    },
    InvalidAnswer {
        server: String,
        tool: String,
        reason: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl From<&ToolCallError> for CallFault {
    fn from(error: &ToolCallError) -> Self {
        match error {
            ToolCallError::UnknownTool { name, available } => Self::UnknownTool {
                name: name.clone(),
                available: available.clone(),
            },
            ToolCallError::Unavailable { server, reason } => Self::Unavailable {
                server: server.clone(),
                reason: reason.clone(),
            },
            ToolCallError::Timeout {
                server,
                tool,
                after,
            } => Self::Timeout {
                server: server.clone(),
                tool: tool.clone(),
                after_ms: millis(*after),
            },
            ToolCallError::Refused {
                server,
                tool,
                message,
                code,
            } => Self::Refused {
                server: server.clone(),
                tool: tool.clone(),
                message: message.clone(),
                code: *code,
            },
            ToolCallError::Broken {
                server,
                tool,
                reason,
            } => Self::Broken {
                server: server.clone(),
                tool: tool.clone(),
                reason: reason.clone(),
            },
            ToolCallError::InvalidAnswer {
                server,
                tool,
                reason,
            } => Self::InvalidAnswer {
                server: server.clone(),
                tool: tool.clone(),
                reason: reason.clone(),
            },
            // A later kind: what is known of every one of them.
            other => Self::Broken {
                server: String::new(),
                tool: String::new(),
                reason: other.to_string(),
            },
        }
    }
}

impl CallFault {
    /// What a server may have written.
    pub(super) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let text = match self {
            Self::UnknownTool { .. } | Self::Timeout { .. } => None,
            Self::Refused { message, .. } => Some(message),
            Self::Unavailable { reason, .. }
            | Self::Broken { reason, .. }
            | Self::InvalidAnswer { reason, .. } => Some(reason),
        };
        text.into_iter()
    }
}

impl From<CallFault> for ToolCallError {
    fn from(fault: CallFault) -> Self {
        match fault {
            CallFault::UnknownTool { name, available } => Self::UnknownTool { name, available },
            CallFault::Unavailable { server, reason } => Self::Unavailable { server, reason },
            CallFault::Timeout {
                server,
                tool,
                after_ms,
            } => Self::Timeout {
                server,
                tool,
                after: Duration::from_millis(after_ms),
            },
            CallFault::Refused {
                server,
                tool,
                message,
                code,
            } => Self::Refused {
                server,
                tool,
                message,
                code,
            },
            CallFault::Broken {
                server,
                tool,
                reason,
            } => Self::Broken {
                server,
                tool,
                reason,
            },
            CallFault::InvalidAnswer {
                server,
                tool,
                reason,
            } => Self::InvalidAnswer {
                server,
                tool,
                reason,
            },
        }
    }
}

impl From<&ModelError> for Fault {
    fn from(error: &ModelError) -> Self {
        let (what, after) = match &error.kind {
            ModelErrorKind::InvalidRequest { field } => (field.clone(), None),
            ModelErrorKind::Unsupported { feature } => (Some(feature.clone()), None),
            ModelErrorKind::RateLimited { retry_after }
            | ModelErrorKind::Overloaded { retry_after } => (None, *retry_after),
            ModelErrorKind::Timeout { phase, after } => {
                let phase = match phase {
                    TimeoutPhase::Connect => "connect",
                    TimeoutPhase::FirstByte => "first_byte",
                    TimeoutPhase::Idle => "idle",
                };
                (Some(phase.to_owned()), Some(*after))
            }
            _ => (None, None),
        };
        Self {
            provider: error.provider().to_owned(),
            kind: error.kind.as_str().to_owned(),
            what,
            after_ms: after.map(millis),
            message: error.message().to_owned(),
            status: error.status(),
            request_id: error.request_id().map(ToOwned::to_owned),
        }
    }
}

impl From<Fault> for ModelError {
    fn from(fault: Fault) -> Self {
        let after = fault.after_ms.map(Duration::from_millis);
        let what = fault.what;
        let kind = match fault.kind.as_str() {
            "authentication" => ModelErrorKind::Authentication,
            "permission" => ModelErrorKind::Permission,
            "not_found" => ModelErrorKind::NotFound,
            "invalid_request" => ModelErrorKind::InvalidRequest { field: what },
            "rate_limited" => ModelErrorKind::RateLimited { retry_after: after },
            "quota_exhausted" => ModelErrorKind::QuotaExhausted,
            "overloaded" => ModelErrorKind::Overloaded { retry_after: after },
            "timeout" => ModelErrorKind::Timeout {
                phase: match what.as_deref() {
                    Some("connect") => TimeoutPhase::Connect,
                    Some("idle") => TimeoutPhase::Idle,
                    _ => TimeoutPhase::FirstByte,
                },
                after: after.unwrap_or_default(),
            },
            "connection" => ModelErrorKind::Connection,
            "context_overflow" => ModelErrorKind::ContextOverflow,
            "content_filter" => ModelErrorKind::ContentFilter,
            "interrupted" => ModelErrorKind::Interrupted,
            "unsupported" => ModelErrorKind::Unsupported {
                feature: what.unwrap_or_default(),
            },
            "configuration" => ModelErrorKind::Configuration,
            _ => ModelErrorKind::Protocol,
        };
        let mut error =
            Self::new(fault.provider, kind, fault.message).with_request_id(fault.request_id);
        if let Some(status) = fault.status {
            error = error.with_status(status);
        }
        error
    }
}

/// A request in two parts: what stands in lines of its own, and the rest.
pub(super) fn without_history(request: &ChatRequest) -> Result<Value, serde_json::Error> {
    let rest = ChatRequest {
        messages: Vec::new(),
        tools: Vec::new(),
        ..request.clone()
    };
    let mut rest = serde_json::to_value(rest)?;
    if let Value::Object(fields) = &mut rest {
        fields.shift_remove("messages");
        fields.shift_remove("tools");
    }
    Ok(rest)
}

/// All that a recording holds.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) exchanges: Vec<Asked>,
    pub(super) catalogs: Vec<Catalog>,
    pub(super) calls: Vec<Call>,
}

/// An exchange with what it names put in.
#[derive(Debug)]
pub(super) struct Asked {
    /// Without its events.
    pub(super) exchange: Exchange,
    /// The request, in the form in which two are compared. Messages and tools are there once for all that name them.
    pub(super) form: Form,
    pub(super) events: Vec<(u64, ModelEvent)>,
}

pub(super) fn read(mut from: impl BufRead) -> Result<Contents, RecordingError> {
    let mut messages = BTreeMap::new();
    let mut tools = BTreeMap::new();
    let mut contents = Contents::default();
    let mut bytes = Vec::new();
    for line in 1_usize.. {
        bytes.clear();
        let read = from
            .by_ref()
            .take(MOST_BYTES + 1)
            .read_until(b'\n', &mut bytes);
        let read = read.map_err(|source| RecordingError::Io {
            writing: false,
            source,
        })?;
        if read == 0 {
            if line == 1 {
                return Err(RecordingError::NotOne);
            }
            break;
        }
        let damaged = |reason: String| RecordingError::Damaged { line, reason };
        if read as u64 > MOST_BYTES {
            return Err(damaged(format!(
                "it is longer than {} MiB",
                MOST_BYTES >> 20
            )));
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let found: Line = match serde_json::from_slice(&bytes) {
            Ok(found) => found,
            Err(_) if line == 1 => return Err(RecordingError::NotOne),
            // The program was killed while it wrote this, within a character maybe: what stands before it holds.
            Err(_) if !bytes.ends_with(b"\n") => break,
            Err(error) => return Err(damaged(without_place(&error))),
        };
        match found {
            Line::Recording {
                version: VERSION, ..
            } if line == 1 => {}
            Line::Recording { version, .. } if line == 1 => {
                return Err(RecordingError::Newer { found: version });
            }
            _ if line == 1 => return Err(RecordingError::NotOne),
            Line::Recording { .. } => return Err(damaged("a second beginning".to_owned())),
            Line::Message { number, message } => {
                checked::<Message>("message", &message).map_err(damaged)?;
                messages.insert(number, Arc::new(Said::new(message)));
            }
            Line::Tools {
                number,
                tools: list,
            } => {
                checked::<Vec<ToolDefinition>>("tools", &list).map_err(damaged)?;
                tools.insert(number, Arc::new(list));
            }
            Line::Answer(exchange) => {
                contents
                    .exchanges
                    .push(assemble(*exchange, &messages, &tools).map_err(damaged)?);
            }
            Line::Catalog(catalog) => contents.catalogs.push(*catalog),
            Line::Call(call) => contents.calls.push(*call),
        }
    }
    contents.calls.sort_by_key(|call| call.began);
    Ok(contents)
}

/// What is wrong with a line: the parser counts lines anew in each.
fn without_place(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    text.strip_suffix(&place).map(str::to_owned).unwrap_or(text)
}

/// That a value is what it must be: what is damaged is told when the file is read, not in the middle of a run.
fn checked<T: DeserializeOwned>(name: &str, value: &Value) -> Result<(), String> {
    let read = T::deserialize(value);
    read.map(drop).map_err(|it| format!("`{name}`: {it}"))
}

fn assemble(
    mut exchange: Exchange,
    messages: &BTreeMap<usize, Arc<Said>>,
    tools: &BTreeMap<usize, Arc<Value>>,
) -> Result<Asked, String> {
    let mut rest = std::mem::take(&mut exchange.request);
    let Value::Object(fields) = &mut rest else {
        return Err("`request` is no object".to_owned());
    };
    let mut history = Vec::with_capacity(exchange.messages.len());
    for number in &exchange.messages {
        let message = messages.get(number);
        history.push(Arc::clone(
            message.ok_or_else(|| format!("there is no message {number} before it"))?,
        ));
    }
    let list = tools.get(&exchange.tools);
    let list = list.ok_or_else(|| format!("there are no tools {} before it", exchange.tools))?;
    fields.insert("messages".to_owned(), Value::Array(Vec::new()));
    checked::<ChatRequest>("request", &rest)?;
    if let Value::Object(fields) = &mut rest {
        fields.shift_remove("messages");
        fields.shift_remove("tools");
    }
    let events = std::mem::take(&mut exchange.events).into_iter();
    let events = events.enumerate().map(|(at, (when, event))| {
        let event = serde_json::from_value(event);
        event
            .map(|event| (when, event))
            .map_err(|it| format!("`events[{at}]`: {it}"))
    });
    Ok(Asked {
        events: events.collect::<Result<_, _>>()?,
        form: Form::new(history, Arc::clone(list), rest),
        exchange,
    })
}

/// A message as it stands in the file.
pub(super) fn message_value(message: &Message) -> Result<Value, serde_json::Error> {
    serde_json::to_value(message)
}

//! Parses the messages of client requests, for all dialects.

use std::sync::Arc;

use axum::http::StatusCode;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Serialize,
    de::{IgnoredAny, IntoDeserializer as _, value::Error as ValueError},
};
use serde_json::{Map, Value};
use switchboard_domain::{
    Document, Media, Message, Part, ReasoningEffort, Role, SessionId, ToolInput, ToolResult,
    ToolUse,
};

use crate::Problem;

/// The model name with which a request selects the configured model, because OpenAI's and
/// Anthropic's SDKs require a model name.
const DEFAULT_MODEL: &str = "default";

/// A conversation that is built from a client's messages. Every tool call gets exactly one result,
/// in the order of the tool calls.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<Message>,
    /// The results received so far for the tool calls of the last message, in the client's order.
    results: Vec<ToolResult>,
}

impl Conversation {
    /// Builds the conversation from the client's messages. The function `add` adds one message, or
    /// returns the reason why the message is invalid. The reason and the index of the message
    /// become an error with status 400.
    pub(crate) fn parse_client_messages<'m, M: 'm>(
        mut self,
        messages: impl IntoIterator<Item = (usize, &'m M)>,
        add: impl Fn(&'m M, &mut Self) -> Result<(), String>,
    ) -> Result<Vec<Arc<Message>>, Problem> {
        for (index, message) in messages {
            add(message, &mut self)
                .map_err(|reason| invalid_messages(format!("messages[{index}]: {reason}")))?;
        }
        self.into_messages().map_err(invalid_messages)
    }

    /// Adds a system, user or assistant message. A message without parts is ignored. Fails if a
    /// tool call of the previous message has no result.
    pub(crate) fn push(&mut self, role: Role, parts: Vec<Part>) -> Result<(), String> {
        self.add_tool_result_message()?;
        reject_nul_character(&parts)?;
        if !parts.is_empty() {
            self.messages.push(Message::new(role, parts));
        }
        Ok(())
    }

    /// Adds a tool result. Fails unless the result belongs to a call of the last assistant message.
    pub(crate) fn push_tool_result(&mut self, mut result: ToolResult) -> Result<(), String> {
        reject_nul_character(&result)?;
        let id = &result.tool_use_id;
        let Some(call) = self.last_tool_uses().find(|call| call.id == *id) else {
            return Err(format!(
                "the result of the tool call `{id}` does not follow a message with that call"
            ));
        };
        if self.results.iter().any(|it| it.tool_use_id == *id) {
            return Err(format!("the tool call `{id}` has two results"));
        }
        result.name.clone_from(&call.name);
        self.results.push(result);
        Ok(())
    }

    /// Returns the tool calls of the last message.
    fn last_tool_uses(&self) -> impl Iterator<Item = &ToolUse> {
        let last = self.messages.last().into_iter();
        last.flat_map(Message::tool_uses)
    }

    /// Adds the collected tool results as one message, in the order of the tool calls. Fails if a
    /// tool call of the last message has no result.
    fn add_tool_result_message(&mut self) -> Result<(), String> {
        let mut results = std::mem::take(&mut self.results);
        let mut ordered = Vec::new();
        for call in self.last_tool_uses() {
            let id = &call.id;
            let found = results.iter().position(|it| it.tool_use_id == *id);
            let missing = || format!("the tool call `{id}` has no result in the messages after it");
            ordered.push(results.swap_remove(found.ok_or_else(missing)?));
        }
        if !ordered.is_empty() {
            self.messages.push(Message::from_tool_results(ordered));
        }
        Ok(())
    }

    /// Completes the conversation. Fails unless the last message is a user message or a tool
    /// result.
    pub(crate) fn into_messages(mut self) -> Result<Vec<Arc<Message>>, String> {
        self.add_tool_result_message()?;
        match self.messages.last().map(|last| last.role) {
            Some(Role::User | Role::Tool) => {}
            Some(_) => {
                return Err("the last message must be a user message or a tool result".to_owned());
            }
            None => return Err("there are no messages".to_owned()),
        }
        Ok(self.messages.into_iter().map(Arc::new).collect())
    }
}

/// Rejects a value that contains the character U+0000, which PostgreSQL cannot store in text.
pub(crate) fn reject_nul_character(value: &impl Serialize) -> Result<(), String> {
    fn has_nul(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains('\0'),
            Value::Array(items) => items.iter().any(has_nul),
            Value::Object(fields) => fields
                .iter()
                .any(|(name, value)| name.contains('\0') || has_nul(value)),
            _ => false,
        }
    }
    if serde_json::to_value(value).is_ok_and(|value| has_nul(&value)) {
        return Err("it contains the character U+0000, which cannot be stored".to_owned());
    }
    Ok(())
}

/// The content of a client's message: a text, or a list of parts in the format of the client's
/// protocol. Content that is neither is `Other`, which `to_parts` rejects.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum MessageContent<P> {
    Text(String),
    Parts(Vec<P>),
    Other(IgnoredAny),
}

/// A message part in the format of a client protocol (dialect), which can be converted to a
/// [`Part`] of the domain crate.
pub(crate) trait ContentPart {
    /// Converts the part. Returns `None` if the part is to be ignored. The error states why the
    /// part is invalid.
    fn to_part(&self) -> Result<Option<Part>, String>;
}

impl<P: ContentPart> MessageContent<P> {
    pub(crate) fn to_parts(&self) -> Result<Vec<Part>, String> {
        match self {
            Self::Text(text) => Ok(text_part(text).into_iter().collect()),
            Self::Parts(parts) => {
                let parts = parts.iter().map(P::to_part);
                parts.filter_map(Result::transpose).collect()
            }
            Self::Other(_) => Err("its content is neither text nor a list of valid parts".into()),
        }
    }
}

/// The source of a file in a message: base64 data, a URL or text, as in Anthropic's API and AG-UI.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FileSource {
    #[serde(alias = "data")]
    Base64 {
        #[serde(alias = "mimeType")]
        media_type: String,
        #[serde(alias = "value")]
        data: String,
    },
    Url {
        #[serde(alias = "value")]
        url: String,
        #[serde(alias = "mimeType")]
        media_type: Option<String>,
    },
    Text {
        data: String,
    },
    #[serde(other)]
    Other,
}

impl FileSource {
    /// Converts the file to a message part. `default` is the media type for a URL source that
    /// declares none. Fails if the URL is invalid or the type of the source is not supported.
    pub(crate) fn to_part(
        &self,
        default: &str,
        title: Option<&str>,
    ) -> Result<Option<Part>, String> {
        match self {
            Self::Base64 { media_type, data } => {
                file_part(&format!("data:{media_type};base64,{data}"), None, title)
            }
            Self::Url { url, media_type } => {
                file_part(url, media_type.as_deref().or(Some(default)), title)
            }
            Self::Text { data } => Ok(Part::Document(Document {
                media: Media::from_base64("text/plain", STANDARD.encode(data)),
                title: title.map(ToOwned::to_owned),
            })),
            Self::Other => Err("its source has an unsupported type".to_owned()),
        }
        .map(Some)
    }
}

/// A tool call of an earlier model answer, in the format that OpenAI's and AG-UI clients use to
/// send it back to the server.
#[derive(Debug, Deserialize)]
pub(crate) struct FunctionCall {
    id: String,
    function: Option<CalledFunction>,
}

#[derive(Debug, Deserialize)]
struct CalledFunction {
    name: String,
    #[serde(default)]
    arguments: String,
}

impl FunctionCall {
    pub(crate) fn to_part(&self) -> Result<Part, String> {
        let id = &self.id;
        let function = self.function.as_ref();
        let function = function.ok_or_else(|| format!("the call `{id}` has no function"))?;
        let input = ToolInput::parse_input(&function.arguments);
        Ok(Part::ToolUse(ToolUse::new(id, &function.name, input)))
    }
}

/// Creates a text part. Returns `None` for an empty text.
pub(crate) fn text_part(text: &str) -> Option<Part> {
    (!text.is_empty()).then(|| Part::text(text))
}

/// Creates the message part of a file from an HTTP URL or a base64 `data:` URL. `media_type`
/// applies if the URL declares no media type. `name` becomes the title of a document. The error
/// states why the URL is invalid.
pub(crate) fn file_part(
    url: &str,
    media_type: Option<&str>,
    name: Option<&str>,
) -> Result<Part, String> {
    let (media_type, media) = match url.strip_prefix("data:") {
        Some(data) => {
            let (head, bytes) = data
                .split_once(',')
                .ok_or("a `data:` URL needs a comma before its data")?;
            let declared = head
                .strip_suffix(";base64")
                .ok_or("a `data:` URL must be base64-encoded")?;
            let declared = declared.split(';').next().unwrap_or_default();
            let media_type = match (declared, media_type) {
                ("", Some(given)) => given,
                ("", None) => return Err("a `data:` URL needs a media type".to_owned()),
                (declared, _) => declared,
            };
            (media_type, Media::from_base64(media_type, bytes))
        }
        None if url.starts_with("https://") || url.starts_with("http://") => {
            // A URL without a media type is treated as an image. The subtype of the image is
            // unknown.
            let media_type = media_type.unwrap_or("image/*");
            (media_type, Media::from_url(media_type, url))
        }
        None => return Err("the URL of a file must start with `https://` or `data:`".to_owned()),
    };
    Ok(match media_type.split('/').next() {
        Some("image") => Part::Image(media),
        Some("audio") => Part::Audio(media),
        _ => Part::Document(Document {
            media,
            title: name.map(ToOwned::to_owned),
        }),
    })
}

/// Checks a session id that the client chose. A valid id has 1 to 128 letters, digits, `-`, `_`,
/// `.` or `:`, and is not `.` or `..`. `field` is the name of the request field in the error.
pub(crate) fn parse_session_id(id: &str, field: &str) -> Result<SessionId, Problem> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if (1..=128).contains(&id.len()) && id.chars().all(is_allowed) && !matches!(id, "." | "..") {
        return Ok(SessionId(id.to_owned()));
    }
    Err(Problem::invalid_field(
        field,
        format!("`{field}` must have 1 to 128 letters, digits, `-`, `_`, `.` or `:`"),
    ))
}

/// Returns the model name of a request, or `None` for the name `default`, which selects the
/// configured model.
pub(crate) fn requested_model(name: &str) -> Option<String> {
    (name != DEFAULT_MODEL).then(|| name.to_owned())
}

/// Changes the error for an unknown model from status 422 to 404, as in the APIs of OpenAI and
/// Anthropic. Returns other errors unchanged.
pub(crate) fn convert_unknown_model_error(problem: Problem) -> Problem {
    if problem.status != StatusCode::UNPROCESSABLE_ENTITY
        || problem.field.as_deref() != Some("model")
    {
        return problem;
    }
    Problem::not_found(problem.detail).with_invalid_field("model")
}

/// Parses a reasoning effort. Returns `None` if `effort` is `None`. An invalid value is an error
/// with status 400, which contains `field`, the top-level request field, and `path`, the full path
/// of the value.
pub(crate) fn parse_reasoning_effort(
    effort: Option<&str>,
    field: &str,
    path: &str,
) -> Result<Option<ReasoningEffort>, Problem> {
    let Some(effort) = effort else {
        return Ok(None);
    };
    let parsed = ReasoningEffort::deserialize(effort.into_deserializer());
    parsed.map(Some).map_err(|_: ValueError| {
        let detail = format!("`{path}` must be none, low, medium or high, not `{effort}`");
        unsupported_field(field, &detail)
    })
}

/// Rejects a request if `rest`, the fields that the server does not read, contains a field with an
/// effect. A field has no effect if its value is `null` or `has_no_effect` returns `true` for it.
pub(crate) fn reject_unsupported_fields(
    rest: &Map<String, Value>,
    has_no_effect: impl Fn(&str, &Value) -> bool,
) -> Result<(), Problem> {
    let unread = rest
        .iter()
        .find(|(field, value)| !value.is_null() && !has_no_effect(field, value));
    match unread {
        None => Ok(()),
        Some((field, _)) => Err(unsupported_field(
            field,
            &format!("`{field}` is not supported: remove it"),
        )),
    }
}

/// Creates an error response with status 400 for a value that the server does not support.
pub(crate) fn unsupported_field(field: &str, detail: &str) -> Problem {
    Problem::malformed_request(detail).with_invalid_field(field)
}

/// Creates an error response with status 400 for messages that the server cannot read.
pub(crate) fn invalid_messages(detail: String) -> Problem {
    Problem::malformed_request(detail).with_invalid_field("messages")
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;

//! What all dialects need to read a client's messages.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};
use switchboard_domain::{
    Document, Media, Message, Part, Role, SessionId, ToolInput, ToolResult, ToolUse,
};

use crate::Problem;

/// The name by which a client asks for the configured model, where its SDK wants one.
const DEFAULT_MODEL: &str = "default";

/// Reads a conversation that a client brings, so that every tool call in it has its one result, in call order.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    messages: Vec<Message>,
    /// Results of the last message's calls, as they come.
    results: Vec<ToolResult>,
}

impl Conversation {
    /// Adds a message of the system, the person or the model. One without anything in it is left out.
    pub(crate) fn say(&mut self, role: Role, parts: Vec<Part>) -> Result<(), String> {
        self.settle()?;
        check_nul(&parts)?;
        if !parts.is_empty() {
            self.messages.push(Message::new(role, parts));
        }
        Ok(())
    }

    /// Adds the result of a call of the model's last message.
    pub(crate) fn result(&mut self, mut result: ToolResult) -> Result<(), String> {
        check_nul(&result)?;
        let id = &result.tool_use_id;
        let calls = self
            .messages
            .last()
            .into_iter()
            .flat_map(Message::tool_uses);
        let Some(call) = calls.into_iter().find(|call| call.id == *id) else {
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

    fn settle(&mut self) -> Result<(), String> {
        let calls: Vec<&ToolUse> = match self.messages.last() {
            Some(last) => last.tool_uses().collect(),
            None => Vec::new(),
        };
        if calls.is_empty() {
            return Ok(());
        }
        let mut results = std::mem::take(&mut self.results);
        let mut ordered = Vec::with_capacity(calls.len());
        for call in calls {
            let found = results.iter().position(|it| it.tool_use_id == call.id);
            match found {
                Some(at) => ordered.push(results.swap_remove(at)),
                None => {
                    return Err(format!(
                        "the tool call `{}` has no result in the messages behind it",
                        call.id
                    ));
                }
            }
        }
        self.messages.push(Message::tool_results(ordered));
        Ok(())
    }

    /// The whole of it, which must end with something to answer.
    pub(crate) fn done(mut self) -> Result<Vec<Arc<Message>>, String> {
        self.settle()?;
        match self.messages.last().map(|last| last.role) {
            Some(Role::User | Role::Tool) => {}
            Some(_) => return Err("the last message is not one that could be answered".to_owned()),
            None => return Err("there is no message".to_owned()),
        }
        Ok(self.messages.into_iter().map(Arc::new).collect())
    }
}

/// Refuses what holds a text that no store takes.
pub(crate) fn check_nul(value: &impl Serialize) -> Result<(), String> {
    fn is_in(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains('\0'),
            Value::Array(items) => items.iter().any(is_in),
            Value::Object(fields) => fields
                .iter()
                .any(|(name, value)| name.contains('\0') || is_in(value)),
            _ => false,
        }
    }
    let is_in_it = serde_json::to_value(value).is_ok_and(|value| is_in(&value));
    if is_in_it {
        return Err("it holds the character U+0000, which cannot be stored".to_owned());
    }
    Ok(())
}

/// A call that a client tells of, with its input as JSON text.
pub(crate) fn call(id: &str, name: &str, input: &str) -> Part {
    Part::ToolUse(ToolUse::new(id, name, ToolInput::parse(input)))
}

/// Text, unless there is none.
pub(crate) fn text(text: &str) -> Option<Part> {
    (!text.is_empty()).then(|| Part::text(text))
}

/// A file at an address, which may hold the file itself (`data:`).
pub(crate) fn file(
    url: &str,
    media_type: Option<&str>,
    name: Option<&str>,
) -> Result<Part, String> {
    let (media_type, media) = match url.strip_prefix("data:") {
        Some(data) => {
            let (head, bytes) = data
                .split_once(',')
                .ok_or("a `data:` address has a comma before its data")?;
            let said = head
                .strip_suffix(";base64")
                .ok_or("a `data:` address must be in base64")?;
            let said = said.split(';').next().unwrap_or_default();
            let media_type = match (said, media_type) {
                ("", Some(given)) => given,
                ("", None) => return Err("a `data:` address names its media type".to_owned()),
                (said, _) => said,
            };
            (media_type, Media::base64(media_type, bytes))
        }
        None if url.starts_with("https://") || url.starts_with("http://") => {
            // What an image's address ends with is no matter: the provider fetches it.
            let media_type = media_type.unwrap_or("image/*");
            (media_type, Media::url(media_type, url))
        }
        None => return Err("an address of a file begins with `https://` or `data:`".to_owned()),
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

/// The id of a session that a client chose.
pub(crate) fn session_id(id: &str, field: &str) -> Result<SessionId, Problem> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if (1..=128).contains(&id.len()) && id.chars().all(is_fit) && !matches!(id, "." | "..") {
        return Ok(SessionId(id.to_owned()));
    }
    Err(Problem::invalid(
        field,
        format!("`{field}` has 1 to 128 letters, digits, `-`, `_`, `.` or `:`"),
    ))
}

/// Returns the model to ask for, as the client names it. `default` is the configured one.
pub(crate) fn chosen_model(name: &str) -> Option<String> {
    (name != DEFAULT_MODEL).then(|| name.to_owned())
}

/// Returns the problem of a model that cannot be asked as a 404, which is the vendors' status.
pub(crate) fn model_not_found(problem: Problem) -> Problem {
    if problem.status != StatusCode::UNPROCESSABLE_ENTITY
        || problem.field.as_deref() != Some("model")
    {
        return problem;
    }
    Problem::not_found(problem.detail).at("model")
}

/// The fields of an object that nobody took, which must be none, but for what says nothing.
pub(crate) fn nothing_left(
    rest: &Map<String, Value>,
    says_nothing: impl Fn(&str, &Value) -> bool,
) -> Result<(), Problem> {
    let left = rest
        .iter()
        .find(|(field, value)| !value.is_null() && !says_nothing(field, value));
    match left {
        None => Ok(()),
        Some((field, _)) => Err(unsupported(
            field,
            &format!("`{field}` is not supported here: leave it out"),
        )),
    }
}

/// 400: a parameter that cannot be honoured. It is not left out silently.
pub(crate) fn unsupported(field: &str, detail: &str) -> Problem {
    Problem::malformed(detail).at(field)
}

/// 400: the messages cannot be read.
pub(crate) fn bad_messages(detail: String) -> Problem {
    Problem::malformed(detail).at("messages")
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;

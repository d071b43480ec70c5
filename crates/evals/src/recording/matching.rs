//! Comparison of a request with the recorded ones.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use switchboard_domain::{ChatRequest, Message};

use super::{Redaction, is_redacted, redacted::may_equal};

/// The way to find the recorded response of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Matching {
    /// By the request: the n-th equal request gets the n-th response. Suits concurrent runs.
    #[default]
    Exact,
    /// By order: each request to a model gets its next response. For requests with changing data,
    /// such as a date, and for one run at a time.
    Order,
}

/// The quality of a match, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quality {
    Exact,
    /// Equal except for redacted text.
    Redacted,
    /// Equal up to a tool use with redacted input. The later messages may differ, because the tool
    /// may reject the redacted input.
    AfterRedactedInput,
}

/// A message without the ids of its tool uses.
#[derive(Debug)]
pub(super) struct CanonicalMessage {
    message: Value,
    /// The removed ids, in the order of the parts.
    ids: Vec<String>,
}

impl CanonicalMessage {
    pub(super) fn new(message: &Message) -> Result<Self, serde_json::Error> {
        let mut message = serde_json::to_value(message)?;
        let mut ids = Vec::new();
        for id in ids_mut(&mut message) {
            ids.push(std::mem::take(id));
        }
        Ok(Self { message, ids })
    }

    /// Returns the message with the ids `call-1`, `call-2` and so on.
    fn numbered(&self, tool_uses: &[usize]) -> Value {
        let mut message = self.message.clone();
        for (id, number) in ids_mut(&mut message).zip(tool_uses) {
            *id = format!("call-{number}");
        }
        message
    }

    fn parts(&self) -> &[Value] {
        let parts = self.message.get("parts").and_then(Value::as_array);
        parts.map(Vec::as_slice).unwrap_or_default()
    }

    fn has_redacted_input(&self) -> bool {
        let mut inputs = self.parts().iter().filter_map(|part| part.get("input"));
        inputs.any(is_redacted)
    }
}

/// Returns the ids of the tool uses and tool results of a message.
fn ids_mut(message: &mut Value) -> impl Iterator<Item = &mut String> {
    let parts = message.get_mut("parts").and_then(Value::as_array_mut);
    parts.into_iter().flatten().filter_map(|part| {
        let field = match part.get("type").and_then(Value::as_str) {
            Some("tool_use") => "id",
            Some("tool_result") => "tool_use_id",
            _ => return None,
        };
        match part.get_mut(field) {
            Some(Value::String(id)) => Some(id),
            _ => None,
        }
    })
}

/// A request whose tool uses are numbered by their first appearance, because some providers
/// generate new ids in every run.
#[derive(Debug)]
pub(super) struct CanonicalRequest {
    messages: Vec<Arc<CanonicalMessage>>,
    /// The number of the tool use for each id in all messages.
    tool_uses: Vec<usize>,
    tools: Arc<Value>,
    settings: Value,
}

impl CanonicalRequest {
    pub(super) fn new(
        messages: Vec<Arc<CanonicalMessage>>,
        tools: Arc<Value>,
        settings: Value,
    ) -> Self {
        let mut known = HashMap::new();
        let ids = messages.iter().flat_map(|message| &message.ids);
        let tool_uses = ids.map(|id| {
            let next = known.len() + 1;
            *known.entry(id.as_str()).or_insert(next)
        });
        let tool_uses = tool_uses.collect();
        Self {
            messages,
            tool_uses,
            tools,
            settings,
        }
    }

    pub(super) fn of(
        request: &ChatRequest,
        redaction: &Redaction,
    ) -> Result<Self, serde_json::Error> {
        let messages = request.messages.iter();
        let messages = messages
            .map(|message| CanonicalMessage::new(&redaction.message(message)).map(Arc::new))
            .collect::<Result<_, _>>()?;
        let tools = serde_json::to_value(redaction.tools(&request.tools))?;
        let settings = serde_json::to_value(redaction.settings(request))?;
        Ok(Self::new(messages, Arc::new(tools), settings))
    }

    /// Compares this recorded request with a new one.
    pub(super) fn matches(&self, new: &Self) -> Option<Quality> {
        if self.messages.len() != new.messages.len() {
            return None;
        }
        let is_equal = |equal: fn(&Value, &Value) -> bool| {
            self.tool_uses == new.tool_uses
                && equal(&self.settings, &new.settings)
                && self.common_messages(new, equal) == new.messages.len()
                && equal(&self.tools, &new.tools)
        };
        if is_equal(|a, b| a == b) {
            return Some(Quality::Exact);
        }
        if is_equal(may_equal) {
            return Some(Quality::Redacted);
        }
        let mut messages = new.messages.iter();
        let redacted = messages.position(|message| message.has_redacted_input())?;
        let is_equal_before = may_equal(&self.settings, &new.settings)
            && may_equal(&self.tools, &new.tools)
            && self.common_messages(new, may_equal) >= redacted;
        is_equal_before.then_some(Quality::AfterRedactedInput)
    }

    /// Returns the number of equal messages at the beginning.
    fn common_messages(&self, new: &Self, equal: fn(&Value, &Value) -> bool) -> usize {
        let pairs = self.messages.iter().zip(&new.messages);
        let equal = |(a, b): &(&Arc<CanonicalMessage>, &Arc<CanonicalMessage>)| {
            equal(&a.message, &b.message)
        };
        pairs.take_while(equal).count()
    }

    /// Returns a value that is larger for a recorded request that is more similar to a new one.
    pub(super) fn similarity(&self, new: &Self) -> (usize, std::cmp::Reverse<usize>) {
        let common = self.common_messages(new, may_equal);
        (common, std::cmp::Reverse(self.messages.len()))
    }

    /// Returns the position and the values of the first difference.
    pub(super) fn difference(&self, new: &Self) -> Option<String> {
        let (mut recorded_uses, mut new_uses) = (self.tool_uses.as_slice(), &new.tool_uses[..]);
        for position in 0..self.messages.len().max(new.messages.len()) {
            let recorded = next_message(&self.messages, position, &mut recorded_uses);
            let new = next_message(&new.messages, position, &mut new_uses);
            let found = difference(&format!("messages[{position}]"), &recorded, &new);
            if found.is_some() {
                return found;
            }
        }
        difference("tools", &self.tools, &new.tools)
            .or_else(|| difference("settings", &self.settings, &new.settings))
    }

    /// Returns an excerpt of the last text or result.
    pub(super) fn last_text(&self) -> String {
        let parts = self.messages.last().map(|message| message.parts());
        let part = parts.and_then(<[Value]>::last);
        let text = part.and_then(|part| {
            let result = || part.pointer("/content/0/text");
            part.get("text").or_else(result).or(Some(part))
        });
        excerpt(text.unwrap_or(&Value::Null))
    }
}

/// Returns the message with numbered tool uses, or null after the last one.
fn next_message(
    messages: &[Arc<CanonicalMessage>],
    position: usize,
    tool_uses: &mut &[usize],
) -> Value {
    let Some(message) = messages.get(position) else {
        return Value::Null;
    };
    let (own, later) = tool_uses.split_at(message.ids.len().min(tool_uses.len()));
    *tool_uses = later;
    message.numbered(own)
}

fn difference(path: &str, recorded: &Value, new: &Value) -> Option<String> {
    let mut path = path.to_owned();
    let (recorded, new) = first_difference(recorded, new, &mut path)?;
    let (recorded, new) = (excerpt(recorded), excerpt(new));
    Some(format!("{path}: recorded {recorded}, now {new}"))
}

/// Finds the first different values and extends the path to them.
fn first_difference<'v>(
    recorded: &'v Value,
    new: &'v Value,
    path: &mut String,
) -> Option<(&'v Value, &'v Value)> {
    let fields: Vec<(String, &Value, &Value)> = match (recorded, new) {
        (Value::Object(recorded), Value::Object(new)) => {
            let added = new.keys().filter(|name| !recorded.contains_key(*name));
            let names = recorded.keys().chain(added);
            let field = |name: &String| {
                let value = |object: &'v serde_json::Map<String, Value>| {
                    object.get(name).unwrap_or(&Value::Null)
                };
                (format!(".{name}"), value(recorded), value(new))
            };
            names.map(field).collect()
        }
        (Value::Array(recorded), Value::Array(new)) => {
            let item = |index: usize| {
                let value = |items: &'v [Value]| items.get(index).unwrap_or(&Value::Null);
                (format!("[{index}]"), value(recorded), value(new))
            };
            (0..recorded.len().max(new.len())).map(item).collect()
        }
        _ => return (!may_equal(recorded, new)).then_some((recorded, new)),
    };
    fields.into_iter().find_map(|(step, recorded, new)| {
        let length = path.len();
        path.push_str(&step);
        let found = first_difference(recorded, new, path);
        if found.is_none() {
            path.truncate(length);
        }
        found
    })
}

/// Maximum size of an excerpt in an error message, in bytes.
const MAX_EXCERPT_BYTES: usize = 80;

pub(super) fn excerpt(value: &Value) -> String {
    if value.is_null() {
        return "nothing".to_owned();
    }
    let text = value.to_string();
    let end = text.floor_char_boundary(MAX_EXCERPT_BYTES);
    if end < text.len() {
        format!("`{}…`", &text[..end])
    } else {
        format!("`{text}`")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchboard_domain::{Part, redact::Redactor};
    use switchboard_domain::{Role, ToolInput, ToolResult, ToolUse};

    use super::*;

    fn conversation(id: &str, result: &str) -> ChatRequest {
        let input = r#"{"object": {"type": "tool_use", "id": "data"}}"#;
        let tool_use = Part::ToolUse(ToolUse::new(id, "sum", ToolInput::parse(input)));
        ChatRequest::new([
            Message::user("How much?"),
            Message::new(Role::Assistant, [tool_use]),
            Message::tool_results([ToolResult::text(id, "sum", result)]),
        ])
    }

    fn canonical(request: &ChatRequest) -> CanonicalRequest {
        CanonicalRequest::of(request, &Redaction::new(Redactor::default())).unwrap()
    }

    #[test]
    fn tool_use_ids_may_differ_but_data_may_not() {
        let one = canonical(&conversation("call_a", "7"));
        let matches = |other: &ChatRequest| one.matches(&canonical(other));
        assert_eq!(
            matches(&conversation("toolu_01", "7")),
            Some(Quality::Exact)
        );
        assert_eq!(matches(&conversation("call_a", "8")), None);
        let mut other_use = conversation("a", "7");
        other_use.messages[2] = Message::tool_results([ToolResult::text("b", "sum", "7")]).into();
        assert_eq!(matches(&other_use), None);
        assert_eq!(
            one.difference(&canonical(&other_use)).unwrap(),
            "messages[2].parts[0].tool_use_id: recorded `\"call-1\"`, now `\"call-2\"`"
        );
        let mut other_input = conversation("a", "7");
        let input = ToolInput::parse(r#"{"object": {"type": "tool_use", "id": "b"}}"#);
        let tool_use = Part::ToolUse(ToolUse::new("a", "sum", input));
        other_input.messages[1] = Message::new(Role::Assistant, [tool_use]).into();
        assert_eq!(matches(&other_input), None);
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        let one = canonical(&conversation("a", "7"));
        assert_eq!(
            one.difference(&canonical(&conversation("a", "8"))).unwrap(),
            "messages[2].parts[0].content[0].text: recorded `\"7\"`, now `\"8\"`"
        );
        assert_eq!(
            difference("x", &json!({"a": 1}), &json!({"a": 1, "b": [2]})).unwrap(),
            "x.b: recorded nothing, now `[2]`"
        );
        assert_eq!(difference("x", &json!(1), &json!(1)), None);
        let long = difference("x", &json!("é".repeat(90)), &json!("")).unwrap();
        assert!(
            long.starts_with("x: recorded `\"é") && long.contains("…`, now `\"\"`"),
            "{long}"
        );
    }
}

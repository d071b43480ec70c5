//! Compares a new model request with the requests of a recording.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use switchboard_domain::ChatRequest;

use super::{Redaction, is_redacted, redacted_comparison::may_match_redacted};

/// Strategy for finding the recorded response to a new model request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RequestMatching {
    /// Matches requests by content: the n-th request with equal content gets the n-th response that
    /// was recorded for it. Suits concurrent runs.
    #[default]
    Exact,
    /// Matches requests by order: each request to a model gets the model's next recorded response.
    /// Suits requests with changing data, such as a date, but only one run at a time.
    Order,
}

/// Quality of the match between a recorded request and a new one. `Equal` is less than
/// `AfterRedactedInput`, so the minimum is the best quality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchQuality {
    /// The requests are equal except where the recording is redacted.
    Equal,
    /// All messages before the first message with a redacted tool input are equal. Later messages
    /// may differ, because a replay calls the tool with the redacted input, which the tool may
    /// reject.
    AfterRedactedInput,
}

/// Returns mutable references to the ids of all tool uses and tool results in the JSON of a
/// message, so that the caller can replace them.
fn tool_use_ids_mut(message: &mut Value) -> impl Iterator<Item = &mut String> {
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

/// A message as JSON in which tool use ids are empty strings. Recorded requests that contain the
/// same message share one `CanonicalMessage`.
#[derive(Debug)]
pub(super) struct CanonicalMessage {
    message: Value,
    /// Tool use ids that were removed from the message, in the order of their occurrence.
    ids: Vec<String>,
}

impl CanonicalMessage {
    pub(super) fn new(mut message: Value) -> Self {
        let ids = tool_use_ids_mut(&mut message).map(std::mem::take).collect();
        Self { message, ids }
    }
}

/// A request in a comparable JSON form. Its tool uses have the ids `call-1`, `call-2` and so on in
/// the order of their first occurrence, because some providers generate new ids in every run.
#[derive(Debug)]
pub(super) struct CanonicalRequest {
    /// Messages, each with the numbers that replace its tool use ids. Number 1 represents `call-1`.
    messages: Vec<(Arc<CanonicalMessage>, Vec<usize>)>,
    tools: Arc<Value>,
    settings: Value,
}

impl CanonicalRequest {
    pub(super) fn new(
        messages: Vec<Arc<CanonicalMessage>>,
        tools: Arc<Value>,
        settings: Value,
    ) -> Self {
        let mut known: HashMap<String, usize> = HashMap::new();
        let messages = messages.into_iter().map(|message| {
            let numbers = message.ids.iter().map(|id| {
                let next = known.len() + 1;
                *known.entry(id.clone()).or_insert(next)
            });
            let numbers = numbers.collect();
            (message, numbers)
        });
        Self {
            messages: messages.collect(),
            tools,
            settings,
        }
    }

    pub(super) fn from_request(
        request: &ChatRequest,
        redaction: &Redaction,
    ) -> Result<Self, serde_json::Error> {
        let messages = request.messages.iter().map(|message| {
            let message = redaction.redact_to_json(message)?;
            Ok(Arc::new(CanonicalMessage::new(message)))
        });
        let messages = messages.collect::<Result<_, serde_json::Error>>()?;
        let tools = Arc::new(redaction.redact_to_json(&request.tools)?);
        let settings = redaction.redact_request_settings(request)?;
        Ok(Self::new(messages, tools, settings))
    }

    /// Compares this recorded request with a new one. Returns `None` if the requests differ.
    pub(super) fn compare_request(&self, new: &Self) -> Option<MatchQuality> {
        if self.messages.len() != new.messages.len() {
            return None;
        }
        let common = self.count_common_messages(new);
        let quality = if common == new.messages.len() {
            MatchQuality::Equal
        } else {
            let mut redacted = new.messages.iter();
            let redacted = redacted.position(|it| has_redacted_input(&it.0.message))?;
            (common >= redacted).then_some(MatchQuality::AfterRedactedInput)?
        };
        let is_equal = may_match_redacted(&self.settings, &new.settings)
            && may_match_redacted(&self.tools, &new.tools);
        is_equal.then_some(quality)
    }

    /// Returns the number of messages at the beginning that are equal in both requests.
    fn count_common_messages(&self, new: &Self) -> usize {
        let pairs = self.messages.iter().zip(&new.messages);
        let equal = pairs.take_while(|((a, a_ids), (b, b_ids))| {
            a_ids == b_ids && may_match_redacted(&a.message, &b.message)
        });
        equal.count()
    }

    /// Returns a sort key that is largest for the recorded request most similar to `new`: first by
    /// the number of equal messages at the beginning, then by the smallest number of messages.
    pub(super) fn similarity_rank(&self, new: &Self) -> (usize, std::cmp::Reverse<usize>) {
        let common = self.count_common_messages(new);
        (common, std::cmp::Reverse(self.messages.len()))
    }

    /// Describes the first difference between this recorded request and `new`: the path and the two
    /// values there. Returns `None` if the requests do not differ.
    pub(super) fn describe_difference(&self, new: &Self) -> Option<String> {
        let messages = |request: &Self| {
            let messages = request.messages.iter().map(|(message, numbers)| {
                let mut message = message.message.clone();
                for (id, number) in tool_use_ids_mut(&mut message).zip(numbers) {
                    *id = format!("call-{number}");
                }
                message
            });
            Value::Array(messages.collect())
        };
        format_difference("messages", &messages(self), &messages(new))
            .or_else(|| format_difference("tools", &self.tools, &new.tools))
            .or_else(|| format_difference("settings", &self.settings, &new.settings))
    }

    /// Returns the beginning of the text or tool result with which the request ends, for error
    /// messages.
    pub(super) fn last_text_excerpt(&self) -> String {
        let last = self.messages.last();
        let part = last.and_then(|(message, _)| message_parts(&message.message).last());
        let text = part.and_then(|part| {
            let result = || part.pointer("/content/0/text");
            part.get("text").or_else(result).or(Some(part))
        });
        value_excerpt(text.unwrap_or(&Value::Null))
    }
}

fn message_parts(message: &Value) -> &[Value] {
    let parts = message.get("parts").and_then(Value::as_array);
    parts.map(Vec::as_slice).unwrap_or_default()
}

fn has_redacted_input(message: &Value) -> bool {
    let parts = message_parts(message).iter();
    parts.filter_map(|part| part.get("input")).any(is_redacted)
}

fn format_difference(path: &str, recorded: &Value, new: &Value) -> Option<String> {
    let (step, recorded, new) = find_first_difference(recorded, new)?;
    let (recorded, new) = (value_excerpt(recorded), value_excerpt(new));
    Some(format!("{path}{step}: recorded {recorded}, now {new}"))
}

/// Returns the path at which two JSON values first differ, and the two values there. Returns `None`
/// if the values are equal except for redacted text.
fn find_first_difference<'v>(
    recorded: &'v Value,
    new: &'v Value,
) -> Option<(String, &'v Value, &'v Value)> {
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
        _ => {
            let is_different = !may_match_redacted(recorded, new);
            return is_different.then_some((String::new(), recorded, new));
        }
    };
    fields.into_iter().find_map(|(step, recorded, new)| {
        let (path, recorded, new) = find_first_difference(recorded, new)?;
        Some((step + &path, recorded, new))
    })
}

/// Maximum size in bytes of an excerpt in an error message. Longer excerpts are cut.
const MAX_EXCERPT_BYTES: usize = 80;

pub(super) fn value_excerpt(value: &Value) -> String {
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
    use switchboard_domain::{
        Message, Part, Role, ToolInput, ToolResult, ToolUse, redact::Redactor,
    };

    use super::*;

    fn conversation(id: &str, result: &str) -> ChatRequest {
        let input = r#"{"object": {"type": "tool_use", "id": "data"}}"#;
        let tool_use = Part::ToolUse(ToolUse::new(id, "sum", ToolInput::parse_input(input)));
        ChatRequest::new([
            Message::user("How much?"),
            Message::new(Role::Assistant, [tool_use]),
            Message::from_tool_results([ToolResult::text(id, "sum", result)]),
        ])
    }

    fn canonical(request: &ChatRequest) -> CanonicalRequest {
        CanonicalRequest::from_request(request, &Redaction::new(Redactor::default())).unwrap()
    }

    #[test]
    fn tool_use_ids_may_differ_but_data_may_not() {
        let one = canonical(&conversation("call_a", "7"));
        let matches = |other: &ChatRequest| one.compare_request(&canonical(other));
        assert_eq!(
            matches(&conversation("toolu_01", "7")),
            Some(MatchQuality::Equal)
        );
        assert_eq!(matches(&conversation("call_a", "8")), None);
        let mut other_use = conversation("a", "7");
        other_use.messages[2] =
            Message::from_tool_results([ToolResult::text("b", "sum", "7")]).into();
        assert_eq!(matches(&other_use), None);
        assert_eq!(
            one.describe_difference(&canonical(&other_use)).unwrap(),
            "messages[2].parts[0].tool_use_id: recorded `\"call-1\"`, now `\"call-2\"`"
        );
        let mut other_input = conversation("a", "7");
        let input = ToolInput::parse_input(r#"{"object": {"type": "tool_use", "id": "b"}}"#);
        let tool_use = Part::ToolUse(ToolUse::new("a", "sum", input));
        other_input.messages[1] = Message::new(Role::Assistant, [tool_use]).into();
        assert_eq!(matches(&other_input), None);
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        let one = canonical(&conversation("a", "7"));
        assert_eq!(
            one.describe_difference(&canonical(&conversation("a", "8")))
                .unwrap(),
            "messages[2].parts[0].content[0].text: recorded `\"7\"`, now `\"8\"`"
        );
        assert_eq!(
            format_difference("x", &json!({"a": 1}), &json!({"a": 1, "b": [2]})).unwrap(),
            "x.b: recorded nothing, now `[2]`"
        );
        assert_eq!(format_difference("x", &json!(1), &json!(1)), None);
        let long = format_difference("x", &json!("é".repeat(90)), &json!("")).unwrap();
        assert!(
            long.starts_with("x: recorded `\"é") && long.contains("…`, now `\"\"`"),
            "{long}"
        );
    }
}

//! Which recorded answer belongs to a request.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use switchboard_domain::JsonObject;

use super::redaction::REDACTED;

/// How recorded answers are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Matching {
    /// The same request gets the same answer; several recorded answers to it come in their order. For
    /// runs that go on at the same time as well.
    #[default]
    Exact,
    /// The answers of a model come in their order, whatever is asked. For requests that hold something which
    /// is different each time, such as the date; one run at a time.
    Order,
}

/// A message without the ids of its tool uses, which may differ.
#[derive(Debug)]
pub(super) struct Said {
    message: Value,
    /// These, in the order in which they stand there.
    ids: Vec<String>,
}

impl Said {
    pub(super) fn new(mut message: Value) -> Self {
        let mut ids = Vec::new();
        each_id(&mut message, &mut |id| ids.push(std::mem::take(id)));
        Self { message, ids }
    }

    /// The message where tool uses are called `call-1`, `call-2`, …
    fn named(&self, uses: &[usize]) -> Value {
        let mut uses = uses.iter();
        let mut message = self.message.clone();
        each_id(&mut message, &mut |id| {
            if let Some(number) = uses.next() {
                *id = format!("call-{number}");
            }
        });
        message
    }
}

/// The ids of tool uses in a message, in their order. Parts are where they are; what stands in an input or a result
/// is data.
fn each_id(message: &mut Value, visit: &mut impl FnMut(&mut String)) {
    let parts = message.get_mut("parts").and_then(Value::as_array_mut);
    for part in parts.into_iter().flatten() {
        let field = match part.get("type").and_then(Value::as_str) {
            Some("tool_use") => "id",
            Some("tool_result") => "tool_use_id",
            _ => continue,
        };
        if let Some(Value::String(id)) = part.get_mut(field) {
            visit(id);
        }
    }
}

/// A request in the form in which two are compared: tool uses are told by the order of their first appearance.
#[derive(Debug)]
pub(super) struct Form {
    messages: Vec<Arc<Said>>,
    /// Which tool use each id is, in all messages.
    uses: Vec<usize>,
    tools: Arc<Value>,
    /// The request but for both.
    rest: Value,
}

impl Form {
    pub(super) fn new(messages: Vec<Arc<Said>>, tools: Arc<Value>, rest: Value) -> Self {
        let uses = {
            let mut known = HashMap::new();
            let ids = messages.iter().flat_map(|it| &it.ids);
            let uses = ids.map(|id| {
                let next = known.len() + 1;
                *known.entry(id.as_str()).or_insert(next)
            });
            uses.collect()
        };
        Self {
            messages,
            uses,
            tools,
            rest,
        }
    }

    /// That of a whole request.
    pub(super) fn of(mut request: Value) -> Self {
        let mut messages = Vec::new();
        let mut tools = Value::Null;
        if let Value::Object(fields) = &mut request {
            if let Some(Value::Array(all)) = fields.shift_remove("messages") {
                messages.extend(all.into_iter().map(|it| Arc::new(Said::new(it))));
            }
            tools = fields.shift_remove("tools").unwrap_or_default();
        }
        Self::new(messages, Arc::new(tools), request)
    }

    /// Whether two are the same, by this comparison of what a recording has with what is asked now.
    pub(super) fn is(&self, now: &Self, fits: fn(&Value, &Value) -> bool) -> bool {
        self.messages.len() == now.messages.len()
            && self.uses == now.uses
            && fits(&self.rest, &now.rest)
            && self.common(now, fits) == now.messages.len()
            && fits(&self.tools, &now.tools)
    }

    /// Whether it is the same request but for which of these tools are offered. One without any of them is not: its
    /// tools were left out.
    pub(super) fn is_but_for(&self, now: &Self, known: &[Value]) -> bool {
        let others = |form: &Self| -> (Vec<Value>, usize) {
            let all = form.tools.as_array().map(Vec::as_slice);
            let all = all.unwrap_or_default();
            let others = all.iter().filter(|it| !known.contains(it));
            let others: Vec<Value> = others.cloned().collect();
            let known = all.len() - others.len();
            (others, known)
        };
        if known.is_empty() || self.messages.len() != now.messages.len() || self.uses != now.uses {
            return false;
        }
        let ((others, of_known), (others_now, of_known_now)) = (others(self), others(now));
        of_known > 0
            && of_known_now > 0
            && same(&self.rest, &now.rest)
            && self.common(now, same) == now.messages.len()
            && same(&Value::Array(others), &Value::Array(others_now))
    }

    /// How many messages two have in common from the beginning, to find the most similar one.
    pub(super) fn common(&self, now: &Self, fits: fn(&Value, &Value) -> bool) -> usize {
        let pairs = self.messages.iter().zip(&now.messages);
        pairs
            .take_while(|(a, b)| fits(&a.message, &b.message))
            .count()
    }

    /// Whether it may be the request that was made then, although it is another: a tool's input was struck out, so
    /// that the call went another way. Everything before it is the same, and there is as much after it.
    pub(super) fn is_after_struck_out(&self, now: &Self) -> bool {
        now.struck_out().is_some_and(|at| {
            self.messages.len() == now.messages.len()
                && same(&self.rest, &now.rest)
                && same(&self.tools, &now.tools)
                && self.common(now, same_but_for_reasons) > at
        })
    }

    /// Where the first message is with an input of a tool out of which something was struck.
    pub(super) fn struck_out(&self) -> Option<usize> {
        self.messages.iter().position(|said| {
            let parts = said.message.get("parts").and_then(Value::as_array);
            let mut inputs = parts.into_iter().flatten().filter_map(|it| it.get("input"));
            inputs.any(is_struck_out)
        })
    }

    /// Whether somebody asked, got no answer, and asked something else.
    pub(super) fn has_unanswered(&self) -> bool {
        let role = |said: &Said| said.message.get("role").and_then(Value::as_str) == Some("user");
        self.messages
            .windows(2)
            .any(|two| two.iter().all(|it| role(it)))
    }

    /// Where the first difference is, and what stands there. Only the messages in which it is are copied.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
        let (mut before, mut before_now) = (0, 0);
        for at in 0..self.messages.len().max(now.messages.len()) {
            let (recorded, said) = (self.messages.get(at), now.messages.get(at));
            let uses = self.uses_of(recorded, &mut before);
            let uses_now = now.uses_of(said, &mut before_now);
            if let (Some(recorded), Some(said)) = (recorded, said)
                && uses == uses_now
                && same(&recorded.message, &said.message)
            {
                continue;
            }
            let recorded = recorded.map_or(Value::Null, |it| it.named(uses));
            let said = said.map_or(Value::Null, |it| it.named(uses_now));
            return difference(&format!("messages[{at}]"), &recorded, &said);
        }
        difference("tools", &self.tools, &now.tools)
            .or_else(|| difference("", &self.rest, &now.rest))
    }

    /// Which tool uses the ids of the next message are.
    fn uses_of(&self, message: Option<&Arc<Said>>, before: &mut usize) -> &[usize] {
        let from = *before;
        *before += message.map_or(0, |it| it.ids.len());
        self.uses.get(from..*before).unwrap_or_default()
    }

    /// Its end in words: its last text or result.
    pub(super) fn end(&self) -> String {
        let last = self.messages.last().map(|it| &it.message);
        let parts = last
            .and_then(|it| it.get("parts"))
            .and_then(Value::as_array);
        let part = parts.and_then(|all| all.last());
        let text = part.and_then(|part| {
            let of_result = || part.pointer("/content/0/text");
            part.get("text").or_else(of_result).or(Some(part))
        });
        excerpt(text.unwrap_or(&Value::Null))
    }
}

/// Whether something was struck out of a value: then nobody knows what it was.
pub(crate) fn is_struck_out(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(REDACTED),
        Value::Array(items) => items.iter().any(is_struck_out),
        Value::Object(fields) => fields.values().any(is_struck_out),
        _ => false,
    }
}

/// [`same`], where it does not matter what is wrong with an input that is malformed: a line and a column are told,
/// and those are others if something was struck out before them.
fn same_but_for_reasons(recorded: &Value, now: &Value) -> bool {
    match (recorded, now) {
        (Value::Array(recorded), Value::Array(now)) => {
            let mut pairs = recorded.iter().zip(now);
            recorded.len() == now.len() && pairs.all(|(a, b)| same_but_for_reasons(a, b))
        }
        (Value::Object(recorded), Value::Object(now)) => {
            recorded.len() == now.len()
                && recorded.iter().all(|(name, value)| {
                    let is_reason = name == "reason" && recorded.contains_key("raw");
                    let now = now.get(name);
                    now.is_some_and(|now| is_reason || same_but_for_reasons(value, now))
                })
        }
        (recorded, now) => same(recorded, now),
    }
}

/// Whether a value is the recorded one, where anything may stand in place of what was struck out: whoever has it again
/// need not know the secrets, nor have the same.
pub(super) fn same(recorded: &Value, now: &Value) -> bool {
    match (recorded, now) {
        // Numbers and lists are struck out as well.
        (Value::String(recorded), now) if recorded == REDACTED => !now.is_null(),
        (Value::String(recorded), Value::String(now)) => same_text(recorded, now),
        (Value::Array(recorded), Value::Array(now)) => {
            recorded.len() == now.len() && recorded.iter().zip(now).all(|(a, b)| same(a, b))
        }
        (Value::Object(recorded), Value::Object(now)) => same_fields(recorded, now),
        (recorded, now) => recorded == now,
    }
}

/// The same of the fields of two objects.
pub(super) fn same_fields(recorded: &JsonObject, now: &JsonObject) -> bool {
    let is_same = |(name, value)| now.get(name).is_some_and(|it| same(value, it));
    recorded.len() == now.len() && recorded.iter().all(is_same)
}

/// [`same`] of texts: what is left around what was struck out must be there.
pub(crate) fn same_text(recorded: &str, now: &str) -> bool {
    let Some((first, after)) = recorded.split_once(REDACTED) else {
        return recorded == now;
    };
    let (between, last) = after.rsplit_once(REDACTED).unwrap_or(("", after));
    let inside = now.strip_prefix(first);
    let Some(mut rest) = inside.and_then(|rest| rest.strip_suffix(last)) else {
        return false;
    };
    // The first place of each piece leaves the most for those after it.
    between.split(REDACTED).all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

/// Longer excerpts tell no more.
const EXCERPT: usize = 80;

/// Where two values differ first below this place, and what stands there; `None` if they do not.
fn difference(place: &str, recorded: &Value, now: &Value) -> Option<String> {
    let mut path = place.to_owned();
    let (recorded, now) = first(recorded, now, &mut path)?;
    let place = if path.is_empty() {
        "at the top"
    } else {
        path.as_str()
    };
    Some(format!(
        "{place}: recorded {}, now {}",
        excerpt(recorded),
        excerpt(now)
    ))
}

fn first<'a>(a: &'a Value, b: &'a Value, path: &mut String) -> Option<(&'a Value, &'a Value)> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<&String> = a.keys().collect();
            names.extend(b.keys().filter(|name| !a.contains_key(*name)));
            for name in names {
                let before = path.len();
                if before > 0 {
                    path.push('.');
                }
                path.push_str(name);
                let found = first(
                    a.get(name).unwrap_or(&Value::Null),
                    b.get(name).unwrap_or(&Value::Null),
                    path,
                );
                if found.is_some() {
                    return found;
                }
                path.truncate(before);
            }
            None
        }
        (Value::Array(a), Value::Array(b)) => {
            for at in 0..a.len().max(b.len()) {
                let before = path.len();
                path.extend(["[", &at.to_string(), "]"]);
                let found = first(
                    a.get(at).unwrap_or(&Value::Null),
                    b.get(at).unwrap_or(&Value::Null),
                    path,
                );
                if found.is_some() {
                    return found;
                }
                path.truncate(before);
            }
            None
        }
        (a, b) => (!same(a, b)).then_some((a, b)),
    }
}

pub(super) fn excerpt(value: &Value) -> String {
    if value.is_null() {
        return "nothing".to_owned();
    }
    let text = value.to_string();
    let end = text.floor_char_boundary(EXCERPT);
    if end < text.len() {
        format!("`{}…`", &text[..end])
    } else {
        format!("`{text}`")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conversation(id: &str, said: &str) -> Value {
        json!({"messages": [
            {"role": "user", "parts": [{"type": "text", "text": "How much?"}]},
            {"role": "assistant", "parts": [{"type": "tool_use", "id": id, "name": "sum", "input": {"object": {"type": "tool_use", "id": "data"}}}]},
            {"role": "tool", "parts": [{"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": said}]}]},
        ]})
    }

    #[test]
    fn ids_of_tool_uses_do_not_count_and_data_does() {
        let form = |id: &str, said: &str| Form::of(conversation(id, said));
        let is = |a: &Form, b: &Form| a.is(b, |a, b| a == b);
        let one = form("call_a", "7");
        assert!(is(&one, &form("toolu_01", "7")));
        assert!(!is(&one, &form("call_a", "8")));
        // The result of another use.
        let mut other = conversation("a", "7");
        other["messages"][2]["parts"][0]["tool_use_id"] = json!("b");
        let other = Form::of(other);
        assert!(!is(&one, &other));
        assert_eq!(
            one.difference(&other).unwrap(),
            "messages[2].parts[0].tool_use_id: recorded `\"call-1\"`, now `\"call-2\"`"
        );
        // What stands in an input is data.
        let mut other = conversation("a", "7");
        other["messages"][1]["parts"][0]["input"]["object"]["id"] = json!("b");
        assert!(!is(&one, &Form::of(other)));
    }

    #[test]
    fn anything_may_stand_where_something_was_struck_out() {
        let recorded = json!({"a": ["My [redacted] is [redacted]!", 1], "b": "[redacted]"});
        let now = |text: &str| json!({"b": "x", "a": [text, 1]});
        for (text, expected) in [
            ("My key is sk-[redacted]!", true),
            ("My [redacted] is [redacted]!", true),
            ("My is is is!", true),
            ("My  is !", true),
            ("My key is it", false),
            ("My key was it!", false),
            ("My is!", false),
            ("", false),
        ] {
            assert_eq!(same(&recorded, &now(text)), expected, "{text}");
            assert_eq!(
                difference("", &recorded, &now(text)).is_none(),
                expected,
                "{text}"
            );
        }
        assert!(!same(&json!("sk-1"), &json!("[redacted]")));
        assert!(same(&json!("[redacted]"), &json!([1])));
        assert!(!same(&json!("[redacted]"), &Value::Null));
        assert!(!same(&recorded, &json!({"a": [], "c": "x"})));
    }

    #[test]
    fn the_first_difference_is_named_by_its_place() {
        let form = |said: &str| Form::of(conversation("a", said));
        let said = form("7").difference(&form("8")).unwrap();
        assert_eq!(
            said,
            "messages[2].parts[0].content[0].text: recorded `\"7\"`, now `\"8\"`"
        );
        assert_eq!(
            difference("", &json!({"a": 1}), &json!({"a": 1, "b": [2]})).unwrap(),
            "b: recorded nothing, now `[2]`"
        );
        assert_eq!(difference("", &json!(1), &json!(1)), None);
        let long = difference("", &json!("é".repeat(90)), &json!("")).unwrap();
        assert!(
            long.starts_with("at the top: recorded `\"é") && long.contains("…`, now `\"\"`"),
            "{long}"
        );
    }
}

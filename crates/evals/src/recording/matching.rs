//! Which recorded answer belongs to a request.

use std::collections::HashMap;

use serde_json::Value;

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

/// A request in the form in which two are compared: tool uses are called `call-1`, `call-2`, … in the order of
/// their first appearance.
pub(super) fn form(mut request: Value) -> Value {
    let mut names = HashMap::new();
    if let Some(messages) = request.get_mut("messages") {
        rename(messages, &mut names);
    }
    request
}

fn rename(value: &mut Value, names: &mut HashMap<String, String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Object(fields) => {
            let field = match fields.get("type").and_then(Value::as_str) {
                Some("tool_use") => Some("id"),
                Some("tool_result") => Some("tool_use_id"),
                _ => None,
            };
            if let Some(Value::String(id)) = field.and_then(|field| fields.get_mut(field)) {
                let next = names.len() + 1;
                let name = names
                    .entry(id.clone())
                    .or_insert_with(|| format!("call-{next}"));
                id.clone_from(name);
            }
            // Parts are where tool uses are; what stands in an input or a result is data.
            if let Some(parts) = fields.get_mut("parts") {
                rename(parts, names);
            }
        }
        _ => {}
    }
}

/// Longer excerpts tell no more.
const EXCERPT: usize = 80;

/// Where two values differ first, and what stands there; `None` if they do not.
pub(super) fn difference(recorded: &Value, now: &Value) -> Option<String> {
    let mut path = String::new();
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

/// How many messages two requests have in common from the beginning, to find the most similar one.
pub(super) fn common(recorded: &Value, now: &Value) -> usize {
    let messages = |value: &'_ Value| {
        value
            .get("messages")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let (recorded, now) = (messages(recorded), messages(now));
    recorded
        .iter()
        .zip(&now)
        .take_while(|(a, b)| a == b)
        .count()
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
        (a, b) => (a != b).then_some((a, b)),
    }
}

fn excerpt(value: &Value) -> String {
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
        let form_of = |id: &str| form(conversation(id, "7"));
        assert_eq!(form_of("call_a"), form_of("toolu_01"));
        assert_eq!(
            form_of("x").pointer("/messages/1/parts/0/input/object/id"),
            Some(&json!("data"))
        );
        assert_ne!(form(conversation("a", "7")), form(conversation("a", "8")));
    }

    #[test]
    fn the_first_difference_is_named_by_its_place() {
        let said = difference(&conversation("a", "7"), &conversation("a", "8")).unwrap();
        assert_eq!(
            said,
            "messages[2].parts[0].content[0].text: recorded `\"7\"`, now `\"8\"`"
        );
        assert_eq!(
            difference(&json!({"a": 1}), &json!({"a": 1, "b": [2]})).unwrap(),
            "b: recorded nothing, now `[2]`"
        );
        assert_eq!(difference(&json!(1), &json!(1)), None);
        let long = difference(&json!("é".repeat(90)), &json!("")).unwrap();
        assert!(
            long.starts_with("at the top: recorded `\"é") && long.contains("…`, now `\"\"`"),
            "{long}"
        );
    }
}

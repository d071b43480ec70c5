//! Writes an answer from tool results.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::{
    conversation::{Call, data},
    text::{label, stem, stems, words},
};

/// Maximum number of list items that an answer shows.
const MAX_ROWS: usize = 20;
/// Maximum length of a result text in characters.
const MAX_TEXT: usize = 4_000;
/// Maximum nesting depth of objects. Deeper objects are shown as JSON.
const MAX_DEPTH: usize = 4;

/// Returns the results of calls as text.
pub(crate) fn answer(question: &str, calls: &[Call<'_>]) -> String {
    let asked = stems(question);
    let several = calls.len() > 1;
    let mut answer = String::new();
    for call in calls {
        let Some(result) = call.result else {
            continue;
        };
        if !answer.is_empty() {
            answer.push_str("\n\n");
        }
        let name = &call.tool_use.name;
        if result.is_error {
            let message = shortened(&result.as_text());
            let _ = write!(answer, "`{name}` failed: {message}");
            continue;
        }
        if several && let Some(input) = call.tool_use.input.as_object() {
            let _ = writeln!(answer, "{}:", scalars(input).join(", "));
        }
        match data(result) {
            Some(data) => answer.push_str(&shown(&data, &asked)),
            None => answer.push_str(&shortened(&result.as_text())),
        }
    }
    if answer.is_empty() {
        "The call has no result.".to_owned()
    } else {
        answer
    }
}

/// Describes the object members that the question names, or all data if it names none.
fn shown(data: &Value, asked: &[String]) -> String {
    if let Some(object) = data.as_object() {
        let is_asked = |key: &str| {
            let key = words(key);
            key.len() > 1 && key.iter().all(|word| asked.contains(&stem(word)))
        };
        let named: Vec<String> = object
            .iter()
            .filter(|(key, value)| is_asked(key) && is_scalar(value))
            .map(|(key, value)| format!("The {} is {}.", label(key), with_unit(value, object)))
            .collect();
        if !named.is_empty() {
            return named.join(" ");
        }
    }
    let mut text = String::new();
    add(data, 0, &mut text);
    shortened(text.trim_end())
}

/// Formats a value with the `currency` or `unit` of the same object.
fn with_unit(value: &Value, object: &Map<String, Value>) -> String {
    let units = ["currency", "unit"].into_iter();
    let unit = units
        .filter_map(|key| object.get(key))
        .find_map(Value::as_str);
    match unit {
        Some(unit) => format!("{} {unit}", plain(value)),
        None => plain(value),
    }
}

fn add(data: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match data {
        Value::Object(object) if depth < MAX_DEPTH => {
            for (key, value) in object {
                if is_scalar(value) {
                    let _ = writeln!(text, "{indent}- {}: {}", label(key), plain(value));
                } else {
                    let _ = writeln!(text, "{indent}- {}:", label(key));
                    add(value, depth + 1, text);
                }
            }
        }
        Value::Array(items) if depth < MAX_DEPTH => {
            for item in items.iter().take(MAX_ROWS) {
                match item.as_object() {
                    Some(object) => {
                        let _ = writeln!(text, "{indent}- {}", scalars(object).join(", "));
                    }
                    None => {
                        let _ = writeln!(text, "{indent}- {}", plain(item));
                    }
                }
            }
            if items.len() > MAX_ROWS {
                let _ = writeln!(text, "{indent}- and {} more", items.len() - MAX_ROWS);
            }
        }
        other => {
            let _ = writeln!(text, "{indent}{}", plain(other));
        }
    }
}

/// Returns the members of an object that are not objects or arrays, as `key value`.
fn scalars(object: &Map<String, Value>) -> Vec<String> {
    let scalars = object.iter().filter(|(_, value)| is_scalar(value));
    scalars
        .map(|(key, value)| format!("{} {}", label(key), plain(value)))
        .collect()
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Returns a value as text, strings without quotation marks.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

//! Writes the text of an answer from tool results.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::{
    conversation_turn::{TurnToolCall, parse_result_data},
    word_stems::{identifier_to_label, stem_all_words, stem_words},
};

/// Maximum number of list items that an answer shows. The answer only counts the other items.
const MAX_ROWS: usize = 20;
/// Maximum length of a result text in characters. Longer texts are cut.
const MAX_TEXT: usize = 4_000;
/// Maximum nesting depth of objects and lists that an answer shows as indented lines. Deeper values
/// are shown as JSON text.
const MAX_DEPTH: usize = 4;

/// Formats the results of tool calls as the text of an answer to the question.
pub(crate) fn format_results(question: &str, calls: &[TurnToolCall<'_>]) -> String {
    let asked = stem_words(question);
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
            let message = truncate_text(&result.as_text());
            let _ = write!(answer, "`{name}` failed: {message}");
            continue;
        }
        if several && let Some(input) = call.tool_use.input.as_object() {
            let _ = writeln!(answer, "{}:", format_scalars(input).join(", "));
        }
        let text = result.as_text();
        let data = parse_result_data(result);
        // The formatted data would omit nested values of list items, so the tool's own text is
        // used.
        let is_prose = data.as_ref().is_some_and(has_nested_items)
            && serde_json::from_str::<Value>(&text).is_err();
        let named = data
            .as_ref()
            .and_then(|data| format_asked_fields(data, &asked));
        answer.push_str(&match (named, data) {
            (Some(named), _) => named,
            (None, Some(data)) if !is_prose || text.is_empty() => format_result_data(&data),
            _ => truncate_text(&text),
        });
    }
    if answer.is_empty() {
        "The call has no result.".to_owned()
    } else {
        answer
    }
}

/// Formats the fields of a JSON result that the question names. Returns `None` if it names no
/// field. `asked` contains the word stems of the question.
fn format_asked_fields(data: &Value, asked: &[String]) -> Option<String> {
    let object = data.as_object()?;
    let is_asked = |key: &str| {
        let key = stem_all_words(key);
        key.len() > 1 && key.iter().all(|stem| asked.contains(stem))
    };
    let named: Vec<String> = object
        .iter()
        .filter(|(key, value)| is_asked(key) && is_scalar(value))
        .map(|(key, value)| {
            let (label, value) = (identifier_to_label(key), format_with_unit(value, object));
            format!("The {label} is {value}.")
        })
        .collect();
    (!named.is_empty()).then(|| named.join(" "))
}

fn format_result_data(data: &Value) -> String {
    let mut text = String::new();
    append_indented_lines(data, 0, &mut text);
    truncate_text(text.trim_end())
}

/// Formats a value. If `object`, which contains the value, has a field `currency` or `unit`,
/// appends the text of this field.
fn format_with_unit(value: &Value, object: &Map<String, Value>) -> String {
    let units = ["currency", "unit"].into_iter();
    let unit = units
        .filter_map(|key| object.get(key))
        .find_map(Value::as_str);
    match unit {
        Some(unit) => format!("{} {unit}", format_scalar(value)),
        None => format_scalar(value),
    }
}

fn append_indented_lines(data: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match data {
        Value::Object(object) if depth < MAX_DEPTH => {
            for (key, value) in object {
                let label = identifier_to_label(key);
                if is_scalar(value) {
                    let _ = writeln!(text, "{indent}- {label}: {}", format_scalar(value));
                } else {
                    let _ = writeln!(text, "{indent}- {label}:");
                    append_indented_lines(value, depth + 1, text);
                }
            }
        }
        Value::Array(items) if depth < MAX_DEPTH => {
            for item in items.iter().take(MAX_ROWS) {
                let item = match item.as_object() {
                    Some(object) => format_scalars(object).join(", "),
                    None => format_scalar(item),
                };
                let _ = writeln!(text, "{indent}- {item}");
            }
            if items.len() > MAX_ROWS {
                let _ = writeln!(text, "{indent}- and {} more", items.len() - MAX_ROWS);
            }
        }
        other => {
            let _ = writeln!(text, "{indent}{}", format_scalar(other));
        }
    }
}

/// Formats the fields of a JSON object as `key value`, and omits nested objects and arrays.
fn format_scalars(object: &Map<String, Value>) -> Vec<String> {
    let scalars = object.iter().filter(|(_, value)| is_scalar(value));
    scalars
        .map(|(key, value)| format!("{} {}", identifier_to_label(key), format_scalar(value)))
        .collect()
}

/// Returns whether data contain a list of objects with objects or lists in them.
fn has_nested_items(data: &Value) -> bool {
    let is_nested = |item: &Value| {
        let fields = item.as_object();
        fields.is_some_and(|fields| !fields.values().all(is_scalar))
    };
    match data {
        Value::Object(fields) => fields.values().any(has_nested_items),
        Value::Array(items) => items.iter().any(is_nested),
        _ => false,
    }
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Formats a JSON value as text. Strings have no quotation marks.
fn format_scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn truncate_text(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

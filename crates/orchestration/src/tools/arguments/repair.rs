//! Repairs of tool input that is not valid JSON.

use std::fmt;

use serde::{Deserialize, Serialize};
use switchboard_domain::{JsonObject, ToolInput};

/// Maximum number of characters that a repair quotes of a value.
const MAX_QUOTED_CHARS: usize = 40;

/// One small change that made an input usable. The run emits every repair as part of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// JSON pointer to the changed value. Empty for the whole input.
    pub path: String,
    /// Description of the change.
    pub description: String,
}

impl Repair {
    pub(super) fn new(path: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            description: description.into(),
        }
    }

    pub(super) fn whole(description: impl Into<String>) -> Self {
        Self::new("", description)
    }
}

/// Formats a repair as `/customer_id: read the text "42" as a number`.
impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.description),
            path => write!(f, "{path}: {}", self.description),
        }
    }
}

/// Returns the shortened text in quotes, on one line.
pub(super) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_QUOTED_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// Parses a malformed input without its code fence and its trailing commas.
///
/// `reason` is the error of the malformed input. Returns `None` if the text has other errors, or if
/// the input is malformed for another reason than its text, such as a cut-off answer.
pub(super) fn repair_text(raw: &str, reason: &str) -> Option<(JsonObject, Vec<Repair>)> {
    match ToolInput::parse(raw) {
        ToolInput::Malformed { reason: own, .. } if own == reason => {}
        _ => return None,
    }
    let mut repairs = Vec::new();
    let mut text = raw.trim();
    if let Some(fenced) = fenced_text(text) {
        repairs.push(Repair::whole("removed the code fence around the object"));
        text = fenced;
    }
    let (text, commas) = without_trailing_commas(text);
    match commas {
        0 => {}
        1 => repairs.push(Repair::whole("removed a trailing comma")),
        n => repairs.push(Repair::whole(format!("removed {n} trailing commas"))),
    }
    match ToolInput::parse(&text) {
        // An empty text is an empty object.
        ToolInput::Object(object) if !repairs.is_empty() && !text.is_empty() => {
            Some((object.into_object(), repairs))
        }
        _ => None,
    }
}

/// Returns the text inside a Markdown code fence that surrounds the whole text.
fn fenced_text(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let is_language = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    Some(inner.trim_start_matches(is_language).trim())
}

/// Returns the text without commas before a closing bracket, and the number of these commas.
fn without_trailing_commas(text: &str) -> (String, usize) {
    let mut clean = String::with_capacity(text.len());
    let mut removed = 0;
    let (mut in_string, mut escaped) = (false, false);
    let mut previous = '\0';
    for (at, c) in text.char_indices() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c == '"' {
            in_string = true;
        } else if c == ','
            && text[at + 1..].trim_start().starts_with(['}', ']'])
            && !matches!(previous, '\0' | '{' | '[' | ',')
        {
            removed += 1;
            continue;
        }
        if !c.is_whitespace() {
            previous = c;
        }
        clean.push(c);
    }
    (clean, removed)
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;

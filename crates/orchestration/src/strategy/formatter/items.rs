//! Conversion of a model's JSON to the items of an answer, with descriptions of the repairs.

use serde_json::{Map, Value};

use super::{
    TOOL,
    json::{self, Found},
    render::{self, UNTITLED},
};
use crate::AnswerItem;

/// The result of reading an answer.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Reading {
    pub(super) items: Vec<AnswerItem>,
    pub(super) thinking: Option<String>,
    pub(super) repairs: Vec<String>,
}

/// Keys that models use instead of `conversation`, most likely first.
const CONVERSATION_ALIASES: [&str; 8] = [
    "items", "messages", "response", "answer", "content", "text", "message", "output",
];
/// Keys that models wrap around the whole answer.
const WRAPPERS: [&str; 5] = [TOOL, "arguments", "parameters", "input", "properties"];
const THINKING: [&str; 3] = ["thinking", "thoughts", "reasoning"];
const CONTENT: [&str; 7] = [
    "content", "text", "value", "body", "markdown", "data", "code",
];
const ARTIFACT_TYPE: [&str; 3] = ["artifactType", "artifact_type", "kind"];
const TITLE: [&str; 2] = ["title", "name"];

/// The meaning of a `type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Artifact,
    /// Another word, which is the type of the artifact.
    ArtifactOf(String),
}

impl Kind {
    pub(super) fn of(word: &str) -> Self {
        match word.trim().to_ascii_lowercase().as_str() {
            "text" | "message" | "paragraph" | "markdown" | "string" | "" => Self::Text,
            "artifact" => Self::Artifact,
            _ => Self::ArtifactOf(word.trim().to_owned()),
        }
    }
}

/// Returns whether a value in a text is probably a formatted answer.
pub(super) fn looks_like_answer(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.contains_key("conversation")
                || is_item(fields)
                || WRAPPERS
                    .iter()
                    .filter_map(|key| fields.get(*key))
                    .any(looks_like_answer)
        }
        Value::Array(items) => {
            !items.is_empty()
                && items
                    .iter()
                    .all(|item| item.as_object().is_some_and(is_item))
        }
        _ => false,
    }
}

fn is_item(fields: &Map<String, Value>) -> bool {
    let has = |keys: &[&str]| keys.iter().any(|key| fields.contains_key(*key));
    let typed = fields.get("type").and_then(Value::as_str);
    fields.contains_key("artifact")
        || has(&ARTIFACT_TYPE[..2])
        || typed.is_some_and(|word| Kind::of(word) != Kind::ArtifactOf("object".into()))
            && has(&CONTENT)
}

/// Reads a formatted answer, and repairs it if necessary.
pub(super) fn read(value: Value) -> Reading {
    let mut reading = Reading::default();
    reading.whole(value);
    reading
}

impl Reading {
    /// Adds the description of a repair, once.
    pub(super) fn repaired(&mut self, repair: impl Into<String>) {
        let repair = repair.into();
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }

    /// Adds the answer of another formatter call.
    pub(super) fn append(&mut self, other: Self) {
        self.items.extend(other.items);
        self.thinking = match (self.thinking.take(), other.thinking) {
            (Some(first), Some(second)) => Some(format!("{first}\n\n{second}")),
            (first, second) => first.or(second),
        };
        for repair in other.repairs {
            self.repaired(repair);
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.items.push(AnswerItem::Text {
                text: text.to_owned(),
            });
        }
    }

    fn whole(&mut self, value: Value) {
        match value {
            Value::Object(fields) => self.whole_object(fields),
            Value::Array(_) => {
                self.repaired("the list of items had no enclosing object");
                self.conversation(value);
            }
            other => {
                self.repaired("the answer was not an object");
                self.conversation(other);
            }
        }
    }

    fn whole_object(&mut self, mut fields: Map<String, Value>) {
        for key in THINKING {
            if let Some(Value::String(thinking)) = fields.get(key)
                && self.thinking.is_none()
                && !thinking.trim().is_empty()
            {
                self.thinking = Some(thinking.trim().to_owned());
            }
        }
        if let Some(conversation) = fields.shift_remove("conversation") {
            return self.conversation(conversation);
        }
        if is_item(&fields) {
            self.repaired("a single item had no enclosing list");
            return self.item(Value::Object(fields));
        }
        for key in WRAPPERS {
            match fields.get(key) {
                Some(Value::Object(_)) => {}
                Some(Value::String(text)) if json::find(text).is_some() => {}
                _ => continue,
            }
            self.repaired(format!("the answer was inside of `{key}`"));
            let inside = fields.shift_remove(key).unwrap_or_default();
            return match inside {
                Value::String(text) => self.encoded(&text),
                inside => self.whole(inside),
            };
        }
        for key in CONVERSATION_ALIASES {
            if let Some(conversation) = fields.shift_remove(key) {
                self.repaired(format!("`{key}` was used instead of `conversation`"));
                return self.conversation(conversation);
            }
        }
    }

    /// Reads a text that may contain a JSON answer.
    fn encoded(&mut self, text: &str) {
        match json::find(text) {
            Some(Found { value, repair }) if looks_like_answer(&value) => {
                self.repaired("JSON inside of a string was decoded");
                if let Some(repair) = repair {
                    self.repaired(repair);
                }
                self.whole(value);
            }
            _ => self.text(text),
        }
    }

    fn conversation(&mut self, value: Value) {
        match value {
            Value::Array(items) => {
                for item in items {
                    self.item(item);
                }
            }
            Value::Object(fields) => {
                self.repaired("`conversation` was a single object");
                // A wrapped answer, or a single item.
                if fields.contains_key("conversation") {
                    self.whole_object(fields);
                } else {
                    self.item(Value::Object(fields));
                }
            }
            Value::String(text) => {
                self.repaired("`conversation` was a string");
                self.encoded(&text);
            }
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => {
                self.repaired("`conversation` was not a list");
                self.text(&value.to_string());
            }
        }
    }

    fn item(&mut self, value: Value) {
        match value {
            Value::Object(fields) => self.item_object(fields),
            Value::Array(items) => {
                self.repaired("a list was nested in the list");
                for item in items {
                    self.item(item);
                }
            }
            Value::String(text) => {
                self.repaired("an item was a plain string");
                self.encoded(&text);
            }
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => {
                self.repaired("an item was not an object");
                self.text(&value.to_string());
            }
        }
    }

    fn item_object(&mut self, mut fields: Map<String, Value>) {
        if let Some(Value::Object(nested)) = fields.shift_remove("artifact") {
            return self.nested_artifact(fields, nested);
        }
        let typed = fields.shift_remove("type");
        let kind = if let Some(word) = typed.as_ref().and_then(Value::as_str) {
            Kind::of(word)
        } else {
            self.repaired("the type of an item was derived from its other fields");
            let keys = ["language", ARTIFACT_TYPE[0], ARTIFACT_TYPE[1], TITLE[0]];
            if keys.iter().any(|key| fields.contains_key(*key)) {
                Kind::Artifact
            } else {
                Kind::Text
            }
        };
        let content = self.content(&mut fields, kind == Kind::Text);
        match kind {
            Kind::Text => self.encoded_text(&content),
            Kind::Artifact => {
                let artifact_type = take_text(&mut fields, &ARTIFACT_TYPE);
                self.artifact(artifact_type, &mut fields, content);
            }
            Kind::ArtifactOf(word) => {
                self.repaired(format!("`{word}` was used as the type of an artifact"));
                let artifact_type = take_text(&mut fields, &ARTIFACT_TYPE).or(Some(word));
                self.artifact(artifact_type, &mut fields, content);
            }
        }
    }

    /// Reads `{"type": "artifact", "artifact": {"type", "title", "content", "language"}}`.
    fn nested_artifact(&mut self, mut outer: Map<String, Value>, mut nested: Map<String, Value>) {
        self.repaired("an artifact was nested in the field `artifact`");
        if let Some(text) = take_text(&mut outer, &CONTENT) {
            self.encoded_text(&text);
        }
        let artifact_type =
            take_text(&mut nested, &["type"]).or_else(|| take_text(&mut nested, &ARTIFACT_TYPE));
        let content = self.content(&mut nested, false);
        self.artifact(artifact_type, &mut nested, content);
    }

    /// Reads a text item, which may contain a whole JSON answer.
    fn encoded_text(&mut self, text: &str) {
        if text.trim_start().starts_with(['{', '`']) && text.contains("\"conversation\"") {
            self.encoded(text);
        } else {
            self.text(text);
        }
    }

    fn artifact(
        &mut self,
        artifact_type: Option<String>,
        fields: &mut Map<String, Value>,
        content: String,
    ) {
        if content.trim().is_empty() {
            return;
        }
        let language = take_text(fields, &["language", "lang"]);
        let artifact_type = artifact_type.unwrap_or_else(|| {
            self.repaired("an artifact had no type");
            let guess = if language.is_some() {
                "code"
            } else {
                "text/markdown"
            };
            guess.to_owned()
        });
        let title = take_text(fields, &TITLE).unwrap_or_else(|| {
            self.repaired("an artifact had no title");
            title_of(&artifact_type, &content)
        });
        self.items.push(AnswerItem::Artifact {
            artifact_type,
            title,
            content,
            language,
        });
    }

    /// Takes the content of an item from the first content key.
    fn content(&mut self, fields: &mut Map<String, Value>, is_text: bool) -> String {
        let given = |key: &&&str| fields.get(**key).is_some_and(|value| !value.is_null());
        let Some(key) = CONTENT.iter().find(given) else {
            return String::new();
        };
        if *key != CONTENT[0] {
            self.repaired(format!("`{key}` was used instead of `content`"));
        }
        match fields.shift_remove(*key).unwrap_or_default() {
            Value::String(content) => content,
            other => {
                self.repaired("the content of an item was not a string");
                match other {
                    other if is_text => readable_text(&other),
                    Value::Array(lines) if lines.iter().all(Value::is_string) => {
                        readable_text(&lines.into())
                    }
                    other => pretty(&other),
                }
            }
        }
    }
}

/// Takes the first of these fields that has text.
fn take_text(fields: &mut Map<String, Value>, keys: &[&str]) -> Option<String> {
    let key = keys.iter().find(|key| {
        let text = fields.get(**key).and_then(Value::as_str);
        text.is_some_and(|text| !text.trim().is_empty())
    })?;
    match fields.shift_remove(*key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns a title from the first heading or the type.
pub(super) fn title_of(artifact_type: &str, content: &str) -> String {
    const MAX_LENGTH: usize = 80;
    let first = content.trim_start().lines().next().unwrap_or_default();
    let heading = first.trim_start_matches('#').trim();
    if first.starts_with('#') && !heading.is_empty() && heading.len() <= MAX_LENGTH {
        return heading.trim_end_matches('#').trim_end().to_owned();
    }
    let kind = render::kind(artifact_type);
    let mut letters = kind.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => UNTITLED.to_owned(),
    }
}

pub(super) fn pretty(value: &Value) -> String {
    // Writing a value cannot fail.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Returns the texts in a value, or the value as JSON if it has only other scalars.
pub(super) fn readable_text(value: &Value) -> String {
    let mut texts = Vec::new();
    collect(value, &mut texts);
    if texts.is_empty() && has_scalar(value) {
        return pretty(value);
    }
    texts.join("\n\n")
}

fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if !text.trim().is_empty() => texts.push(text.trim()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "type" | "artifactType" | "language"))
            .for_each(|(_, value)| collect(value, texts)),
        _ => {}
    }
}

fn has_scalar(value: &Value) -> bool {
    match value {
        Value::Bool(_) | Value::Number(_) => true,
        Value::Array(items) => items.iter().any(has_scalar),
        Value::Object(fields) => fields.values().any(has_scalar),
        Value::Null | Value::String(_) => false,
    }
}

#[cfg(test)]
#[path = "items_tests.rs"]
mod tests;

//! Streaming of the text of a formatted answer, before its JSON is complete.

use serde_json::Value;

use super::{
    answer_items::{ParsedAnswer, looks_like_answer},
    json,
    render::{self, shows_language_in_fence},
};
use crate::AnswerItem;

/// Incremental reader of the JSON of a formatted answer. It returns the text of the answer while
/// the model is still writing the JSON.
///
/// The text of an item is returned as it arrives if `content` is the last key of the item, as in
/// the schema. Otherwise, it is returned when the next item starts. The text of a malformed answer
/// may be missing; [`PartialAnswerReader::unemitted_text`] returns it at the end.
///
/// ```
/// use switchboard_orchestration::strategy::formatter::PartialAnswerReader;
///
/// let mut partial = PartialAnswerReader::new();
/// let pieces = [r#"{"conversation": [{"type": "text", "content": "Hel"#, r#"lo\n"}]}"#];
/// let text: String = pieces.iter().map(|piece| partial.push_json(piece)).collect();
/// assert_eq!(text, "Hello");
/// assert_eq!(partial.unemitted_text("Hello, world"), Some(", world"));
/// ```
#[derive(Debug, Default)]
pub struct PartialAnswerReader {
    is_silent: bool,
    input: String,
    /// Length in bytes that `input` must reach before it is parsed again.
    next_length: usize,
    shown: String,
}

impl PartialAnswerReader {
    /// Creates a reader for an answer that consists of texts and artifacts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a reader that returns no text, for answers with a custom schema.
    pub(super) fn new_without_output() -> Self {
        Self {
            is_silent: true,
            ..Self::default()
        }
    }

    /// Adds the next piece of the streamed JSON. Returns the Markdown text of the answer that is
    /// new since the last call; empty if there is none.
    pub fn push_json(&mut self, json: &str) -> String {
        if self.is_silent {
            return String::new();
        }
        self.input.push_str(json);
        // Each parse reads the whole input, so a long input is parsed only after it has grown by
        // 1/512.
        if self.input.len() < self.next_length {
            return String::new();
        }
        self.next_length = self.input.len() + self.input.len() / 512;
        let text = extract_partial_text(&self.input);
        let new = text
            .strip_prefix(&self.shown)
            .unwrap_or_default()
            .to_owned();
        self.shown.push_str(&new);
        new
    }

    /// Returns the part of the complete answer that was not emitted, or `None` if the answer does
    /// not start with the emitted text.
    pub fn unemitted_text<'a>(&self, answer: &'a str) -> Option<&'a str> {
        answer.strip_prefix(&self.shown)
    }
}

/// Returns the text that the incomplete JSON of an answer already contains, as Markdown.
fn extract_partial_text(input: &str) -> String {
    let input = input.trim_start();
    let json = match input.strip_prefix("```") {
        Some(fence) => fence.split_once('\n').map_or("", |(_, inside)| inside),
        // The input may be the start of a code fence or of text, so nothing is returned until more
        // input arrives.
        None if "```".starts_with(input) => "",
        None => input,
    };
    let json = json.trim_start();
    if !json.is_empty() && !json.starts_with(['{', '[']) {
        return input.trim_end().to_owned();
    }
    let (Some(mut answer), is_complete) = json::parse_json_prefix(json) else {
        return String::new();
    };
    let mut open = None;
    if !is_complete {
        let list = match &mut answer {
            Value::Object(fields) => fields.get_mut("conversation").and_then(Value::as_array_mut),
            list => list.as_array_mut(),
        };
        let Some(list) = list else {
            return String::new();
        };
        open = list.pop();
    }
    let mut reading = ParsedAnswer::default();
    if looks_like_answer(&answer) {
        reading.add_answer_items(answer);
    }
    let open = open.as_ref().and_then(parse_incomplete_item);
    render::render_partial_answer(&reading.items, open.as_ref())
}

/// Converts the last item of an incomplete answer, whose `content` is still being streamed. Returns
/// `None` if `content` is not the last key, or if another key is missing that rendering requires.
fn parse_incomplete_item(item: &Value) -> Option<AnswerItem> {
    let fields = item.as_object()?;
    let text_of = |key: &str| fields.get(key)?.as_str().map(str::to_owned);
    if fields.keys().next_back()? != "content" {
        return None;
    }
    let content = text_of("content")?;
    match text_of("type")?.as_str() {
        "text" => Some(AnswerItem::Text { content }),
        "artifact" => {
            let artifact_type = text_of("artifactType")?;
            let language = text_of("language");
            let is_known = language.is_some()
                || !shows_language_in_fence(&render::short_artifact_type(&artifact_type));
            is_known.then_some(AnswerItem::Artifact {
                artifact_type,
                title: text_of("title")?,
                content,
                language,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "partial_answer_tests.rs"]
mod tests;

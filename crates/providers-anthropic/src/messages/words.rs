//! What a person, or another provider's model, can read of a block of the API's own.
//!
//! The blocks are those of the official SDK (anthropic 2.11.0): calls of the API's tools
//! (`server_tool_use`, `mcp_tool_use`) and their results, `container_upload`, `compaction`,
//! `fallback`. What is encrypted or binary is in fields that are not read.

use serde_json::Value;
use switchboard_domain::JsonObject;

/// Characters of it at most.
pub(crate) const MAX_WORDS: usize = 2_000;

/// Fields of an input that say all of it.
const TELLING: [&str; 4] = ["query", "url", "code", "command"];

/// Texts that are shown as they are.
const TEXTS: [&str; 5] = ["text", "stdout", "stderr", "content", "tool_name"];

/// The words of a block; `None` for one that says nothing to a reader.
pub(crate) fn words(block: &JsonObject) -> Option<String> {
    let mut words = Words::default();
    match field(block, "name") {
        Some(name) if block.contains_key("input") => words.call(name, block.get("input")),
        _ => words.collect(block),
    }
    words.into_text()
}

/// Lines, as many as there is room for.
#[derive(Default)]
struct Words {
    text: String,
    chars: usize,
    is_cut: bool,
}

impl Words {
    fn into_text(mut self) -> Option<String> {
        if self.is_cut {
            self.text.push('…');
        }
        (!self.text.is_empty()).then_some(self.text)
    }

    fn line(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.push("\n");
        }
        self.push(line.trim_end());
    }

    fn push(&mut self, text: &str) {
        if self.is_cut {
            return;
        }
        // One for the mark of what is left out.
        let left = MAX_WORDS - 1 - self.chars;
        let end = text.char_indices().nth(left).map(|(at, _)| at);
        let kept = &text[..end.unwrap_or(text.len())];
        self.text.push_str(kept);
        self.chars += kept.chars().count();
        self.is_cut = end.is_some();
    }

    /// A call: the query, the address or the code alone where that is all it says.
    fn call(&mut self, name: &str, input: Option<&Value>) {
        let fields = input.and_then(Value::as_object);
        let told = fields.filter(|fields| fields.len() == 1).and_then(|it| {
            let mut told = TELLING.iter().filter_map(|name| field(it, name));
            told.next()
        });
        match (told, input) {
            (Some(told), _) if told.contains('\n') => {
                self.line(&format!("[{name}]"));
                self.line(told);
            }
            (Some(told), _) => self.line(&format!("[{name}: {told}]")),
            (None, Some(input)) if fields.is_none_or(|it| !it.is_empty()) => {
                self.line(&format!("[{name} {input}]"));
            }
            (None, _) => self.line(&format!("[{name}]")),
        }
    }

    fn collect(&mut self, object: &JsonObject) {
        if self.is_cut {
            return;
        }
        let before = self.chars;
        match (field(object, "title"), field(object, "url")) {
            (Some(title), Some(url)) => self.line(&format!("{title}: {url}")),
            (Some(line), None) | (None, Some(line)) => self.line(line),
            (None, None) => {}
        }
        self.texts(object);
        if let Some(code) = field(object, "error_code") {
            self.line(&format!("[error: {code}]"));
        }
        if let Some(message) = field(object, "error_message") {
            self.line(message);
        }
        if object.get("is_error") == Some(&Value::Bool(true)) {
            self.line("[failed]");
        }
        if let Some(id) = field(object, "file_id") {
            self.line(&format!("[file: {id}]"));
        }
        match object.get("is_file_update").and_then(Value::as_bool) {
            Some(true) => self.line("[file updated]"),
            Some(false) => self.line("[file created]"),
            None => {}
        }
        if let Some((from, to)) = handed_over(object) {
            self.line(&format!("[{from} declined; {to} goes on]"));
        }
        for name in ["content", "source", "tool_references"] {
            match object.get(name) {
                Some(Value::Object(inner)) => self.collect(inner),
                Some(Value::Array(list)) => {
                    let objects = list.iter().filter_map(Value::as_object);
                    objects.for_each(|inner| self.collect(inner));
                }
                _ => {}
            }
        }
        // That it went well says something where nothing else does.
        let code = object.get("return_code").and_then(Value::as_i64);
        if let Some(code) = code.filter(|code| *code != 0 || self.chars == before) {
            self.line(&format!("[exit code: {code}]"));
        }
    }

    /// What can be read of an object as it is; bytes are named by their type. `data` may be anything
    /// but in a source of type `text`.
    fn texts(&mut self, object: &JsonObject) {
        let is_bytes = object.get("type").is_some_and(|it| it == "base64");
        if let Some(media_type) = field(object, "media_type").filter(|_| is_bytes) {
            self.line(&format!("[{media_type}]"));
        }
        let file_type = field(object, "file_type").filter(|it| *it != "text");
        if let Some(file_type) = file_type {
            self.line(&format!("[{file_type}]"));
        }
        if is_bytes || file_type.is_some() {
            return;
        }
        let is_text = object.get("type").is_some_and(|it| it == "text");
        for name in TEXTS.into_iter().chain(is_text.then_some("data")) {
            if let Some(text) = field(object, name) {
                self.line(text);
            }
        }
        let lines = object.get("lines").and_then(Value::as_array);
        let lines = lines.into_iter().flatten().filter_map(Value::as_str);
        lines.for_each(|line| self.line(line));
    }
}

/// A text that says something.
fn field<'a>(object: &'a JsonObject, name: &str) -> Option<&'a str> {
    let text = object.get(name)?.as_str()?;
    (!text.trim().is_empty()).then_some(text)
}

/// The model that declined and the one that goes on in its place.
fn handed_over(object: &JsonObject) -> Option<(&str, &str)> {
    let model = |side: &str| object.get(side)?.get("model")?.as_str();
    Some((model("from")?, model("to")?))
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;

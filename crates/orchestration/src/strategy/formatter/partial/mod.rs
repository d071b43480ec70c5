//! Streaming of a formatted answer.
//!
//! The input is the formatter's JSON in pieces. The output is the known part of the text that
//! [`render()`](super::render()) returns for the complete answer. Text is emitted by character. An
//! artifact is emitted when its type, its title and, for code, its language are known.

mod item;
mod reader;
mod writer;

use reader::Reader;
use writer::{Sink, Writer};

/// The next part of the answer's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextDelta {
    /// Index of the item. A separator belongs to the item after it.
    pub item: usize,
    /// The text to append.
    pub text: String,
}

/// Reads the formatter's JSON in pieces and returns the text of the answer.
///
/// It never fails, and returns the recognized part of a malformed answer. The complete answer is
/// read by [`FormatState::read`](super::FormatState::read). [`PartialFormatter::rest`] returns the
/// part of it that was not emitted.
///
/// ```
/// use switchboard_orchestration::strategy::formatter::PartialFormatter;
///
/// let mut partial = PartialFormatter::new();
/// let pieces = [r#"{"conversation": [{"type": "text", "content": "Hel"#, r#"lo\n"}]}"#];
/// let text: String = pieces
///     .iter()
///     .flat_map(|piece| partial.push(piece))
///     .map(|delta| delta.text)
///     .collect();
/// assert_eq!(text, "Hello");
/// assert_eq!(partial.rest("Hello, world"), Some(", world"));
/// ```
#[derive(Debug)]
pub struct PartialFormatter {
    source: Source,
    writer: Writer,
}

impl Default for PartialFormatter {
    fn default() -> Self {
        Self::new()
    }
}

/// The kind of the input.
#[derive(Debug)]
enum Source {
    /// Unknown, with the input so far.
    Undecided(String),
    Json(Reader),
    /// Plain text instead of JSON.
    Plain,
    /// The input is not emitted.
    Silent,
}

impl PartialFormatter {
    /// Creates a reader.
    pub fn new() -> Self {
        Self {
            source: Source::Undecided(String::new()),
            writer: Writer::default(),
        }
    }

    /// Creates a reader that emits nothing, for answers with a custom schema.
    pub(super) fn silent() -> Self {
        Self {
            source: Source::Silent,
            ..Self::new()
        }
    }

    /// Reads the next piece and returns the new text.
    pub fn push(&mut self, json: &str) -> Vec<TextDelta> {
        let mut deltas = Vec::new();
        let mut sink = Sink {
            writer: &mut self.writer,
            deltas: &mut deltas,
        };
        self.source.push(json, &mut sink);
        deltas
    }

    /// Returns all emitted text.
    pub fn shown(&self) -> &str {
        &self.writer.shown
    }

    /// Returns the part of the complete answer that was not emitted; `None` if the answer does not
    /// start with the emitted text.
    pub fn rest<'a>(&self, answer: &'a str) -> Option<&'a str> {
        answer.strip_prefix(self.shown())
    }
}

/// Maximum nesting of answers in JSON strings.
const MAX_NESTING: usize = 3;

impl Source {
    fn push(&mut self, text: &str, sink: &mut Sink<'_>) {
        match self {
            Self::Silent => {}
            Self::Plain => sink.text(text),
            Self::Json(reader) => reader.push(text, sink),
            Self::Undecided(held) => {
                held.push_str(text);
                let held = std::mem::take(held);
                *self = Self::decide(&held, sink);
            }
        }
    }

    /// Detects JSON, which starts with a bracket, possibly in a code fence. Other input is text.
    fn decide(held: &str, sink: &mut Sink<'_>) -> Self {
        let start = held.trim_start();
        let in_fence = match start.strip_prefix("```") {
            Some(fence) => match fence.split_once('\n') {
                Some((_, inside)) => inside.trim_start(),
                None => "",
            },
            // Possibly the start of a fence.
            None if "```".starts_with(start) => "",
            None => start,
        };
        if in_fence.is_empty() {
            return Self::Undecided(held.to_owned());
        }
        if in_fence.starts_with(['{', '[']) {
            let mut reader = Reader::new(sink.writer.nesting);
            reader.push(in_fence, sink);
            return Self::Json(reader);
        }
        sink.begin_text();
        sink.text(start);
        Self::Plain
    }
}

#[cfg(test)]
#[path = "../partial_tests.rs"]
mod tests;

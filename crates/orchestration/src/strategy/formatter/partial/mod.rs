//! Shows an answer in the form while it is written.
//!
//! What is fed is the formatter's JSON in whatever pieces it comes; what comes out is the text that
//! [`render()`](super::render()) makes of the finished answer, as far as it can be known. Text is shown
//! letter by letter; an artifact as soon as its kind, its title and, for code, its language are known.

mod item;
mod reader;
mod writer;

use reader::Reader;
use writer::{Sink, Writer};

/// More of an answer's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextDelta {
    /// Which item it belongs to, from 0 on. What separates two items belongs to the later one.
    pub item: usize,
    /// The text to append.
    pub text: String,
}

/// Reads the formatter's JSON piece by piece and gives the answer's text.
///
/// It shows as much of a malformed answer as it understands and never fails. The finished answer is
/// read as a whole by [`FormatState::read`](super::FormatState::read), which has the last word:
/// [`PartialFormatter::rest`] says what is still to be shown of it.
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

/// What is being read.
#[derive(Debug)]
enum Source {
    /// Not known yet: what came so far.
    Undecided(String),
    Json(Reader),
    /// Plain text instead of JSON.
    Plain,
    /// Nothing is shown.
    Silent,
}

impl PartialFormatter {
    /// A reader at the beginning of an answer.
    pub fn new() -> Self {
        Self {
            source: Source::Undecided(String::new()),
            writer: Writer::default(),
        }
    }

    /// A reader that shows nothing: the answer is data in a form of its own.
    pub(super) fn silent() -> Self {
        Self {
            source: Source::Silent,
            ..Self::new()
        }
    }

    /// Takes the next piece, cut anywhere, and gives what is to be shown of it.
    pub fn push(&mut self, json: &str) -> Vec<TextDelta> {
        let mut deltas = Vec::new();
        let mut sink = Sink {
            writer: &mut self.writer,
            deltas: &mut deltas,
        };
        self.source.push(json, &mut sink);
        deltas
    }

    /// All that was shown.
    pub fn shown(&self) -> &str {
        &self.writer.shown
    }

    /// What of the finished answer is still to be shown; `None` if it does not begin with what was
    /// shown.
    pub fn rest<'a>(&self, answer: &'a str) -> Option<&'a str> {
        answer.strip_prefix(self.shown())
    }
}

/// Nested answers in strings are read so deep at most; each level is escaped once more.
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

    /// JSON begins with a bracket, perhaps in a code fence; all else is text.
    fn decide(held: &str, sink: &mut Sink<'_>) -> Self {
        let start = held.trim_start();
        let in_fence = match start.strip_prefix("```") {
            Some(fence) => match fence.split_once('\n') {
                Some((_, inside)) => inside.trim_start(),
                None => "",
            },
            // Perhaps the beginning of a fence.
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

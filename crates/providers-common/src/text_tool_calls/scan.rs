//! Splitting of an answer's text into plain text and tool calls.

use std::ops::Range;

use super::{
    CallRecoverySettings,
    call_format::TextCallFormat,
    cursor::{Cursor, is_call_separator},
    format_parsers,
    json_calls::FoundCall,
    markdown::{ends_with_think_tag, leading_code_or_quote_length, leading_reasoning_length},
};

/// Maximum number of bytes that are searched again after an attempt to read a call has failed.
/// After a longer attempt, the search continues at its end, because repeated searches of a long
/// text would be slow.
const MAX_REREAD: usize = 512;

/// A piece of an answer's text: plain text or a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScannedPiece {
    Text(String),
    Call(FoundCall),
}

/// Scanner that searches a text part of an answer for tool calls, while the text arrives in pieces.
///
/// Text before the first marker of a call, such as `<tool_call>`, is emitted as it arrives. The
/// text from there on is buffered until it ends, and then searched for calls.
#[derive(Debug)]
pub(crate) struct TextScanner {
    recovery: CallRecoverySettings,
    /// Whether the answer has a text part before the scanned one.
    follows_text: bool,
    text: String,
    /// Number of bytes of the scanned text that were emitted.
    emitted: usize,
    /// Position of the first marker that may begin a call, such as `<tool_call>`. Without a marker,
    /// this is the end of the received text.
    place: TextPosition,
}

/// A position in the text, with properties of the text before it that decide whether a call may
/// begin there.
#[derive(Debug)]
struct TextPosition {
    at: usize,
    /// Whether only white space precedes this position in its line.
    line_is_blank: bool,
    /// Last character before this position that is not white space.
    before: Option<char>,
    /// Whether only white space and separators, such as `;`, are between the last call and this
    /// position.
    after_call: bool,
    /// Whether the answer has text before this position, not counting reasoning and calls.
    has_text: bool,
}

/// Consecutive tool calls in a text, all in the same format, with their byte range.
struct CallSequence {
    range: Range<usize>,
    calls: Vec<FoundCall>,
    form: TextCallFormat,
}

impl TextPosition {
    fn new(at: usize, after_call: bool, has_text: bool) -> Self {
        Self {
            at,
            line_is_blank: true,
            before: None,
            after_call,
            has_text,
        }
    }

    fn advance(&mut self, text: &str) {
        self.at += text.len();
        for c in text.chars() {
            let is_between_calls = self.after_call && is_call_separator(c);
            if c == '\n' {
                self.line_is_blank = true;
            } else if !c.is_whitespace() && !is_between_calls {
                self.line_is_blank = false;
                self.before = Some(c);
                self.after_call = false;
                self.has_text = true;
            }
        }
    }

    /// Moves the position past the reasoning or the code example at the beginning of `rest`, or by
    /// one character if there is neither.
    fn skip_to_next_candidate(&mut self, rest: &str) {
        let has_text = self.has_text;
        let thinking = leading_reasoning_length(rest);
        let length = thinking.or_else(|| leading_code_or_quote_length(rest, self.line_is_blank));
        let length = length.unwrap_or_else(|| rest.ceil_char_boundary(1));
        self.advance(rest.get(..length).unwrap_or(rest));
        if thinking.is_some() {
            self.has_text = has_text;
        }
    }
}

impl TextScanner {
    /// Creates a scanner for one text part. `follows_text` is whether the answer has text before
    /// it.
    pub(crate) fn new(recovery: CallRecoverySettings, follows_text: bool) -> Self {
        Self {
            recovery,
            follows_text,
            text: String::new(),
            emitted: 0,
            place: TextPosition::new(0, false, follows_text),
        }
    }

    /// Adds a piece of the text and returns the text that can be emitted now. White space at the
    /// beginning is not returned yet, because it is dropped if a call follows.
    pub(crate) fn push(&mut self, text: &str) -> String {
        self.text.push_str(text);
        while let Some(rest) = self.text.get(self.place.at..)
            && !rest.is_empty()
            && self.candidate_formats(rest, &self.place).next().is_none()
        {
            let c = rest.get(..rest.ceil_char_boundary(1)).unwrap_or(rest);
            self.place.advance(c);
            let before = self.text.get(..self.place.at);
            if before.is_some_and(ends_with_think_tag) {
                self.place.has_text = false;
            }
        }
        let plain = self.text.get(..self.place.at).unwrap_or_default();
        if self.emitted == 0 && plain.trim().is_empty() {
            return String::new();
        }
        let new = plain.get(self.emitted..).unwrap_or_default().to_owned();
        self.emitted = self.place.at;
        new
    }

    /// Searches the whole text for calls, after it has ended. Returns the calls and the text that
    /// `push` has not returned, in order.
    pub(crate) fn into_pieces(self) -> Vec<ScannedPiece> {
        let mut pieces = Vec::new();
        let push_text = |start: usize, end, pieces: &mut Vec<ScannedPiece>| {
            // White space and separators between calls are dropped.
            let text = self.text.get(start..end).unwrap_or_default();
            let is_blank = text
                .chars()
                .all(|c| c.is_whitespace() || (start > 0 && is_call_separator(c)));
            let text = self.text.get(start.max(self.emitted)..end);
            if !is_blank && let Some(text) = text.filter(|text| !text.is_empty()) {
                pieces.push(ScannedPiece::Text(text.to_owned()));
            }
        };
        let mut start = 0;
        for found in self.find_calls() {
            push_text(start, found.range.start, &mut pieces);
            pieces.extend(found.calls.into_iter().map(ScannedPiece::Call));
            start = found.range.end;
        }
        if start == 0 && self.text.trim().is_empty() && !self.text.is_empty() {
            pieces.push(ScannedPiece::Text(self.text));
        } else {
            push_text(start, self.text.len(), &mut pieces);
        }
        pieces
    }

    fn find_calls(&self) -> Vec<CallSequence> {
        let mut all: Vec<CallSequence> = Vec::new();
        let mut place = TextPosition::new(0, false, self.follows_text);
        let mut read_until = 0;
        while let Some(rest) = self.text.get(place.at..)
            && !rest.is_empty()
        {
            if place.at >= read_until {
                match self.read_calls(rest, &place) {
                    Ok(found) => {
                        place = TextPosition::new(found.range.end, true, place.has_text);
                        all.push(found);
                        continue;
                    }
                    Err(length) if length > MAX_REREAD => read_until = place.at + length,
                    Err(_) => {}
                }
            }
            if place.after_call && is_empty_code_block(rest) {
                all.push(CallSequence {
                    range: place.at..self.text.len(),
                    calls: Vec::new(),
                    form: TextCallFormat::BareJson,
                });
                break;
            }
            place.skip_to_next_candidate(rest);
        }
        // A call in a Markdown block counts only if the answer has no other text.
        all.retain(|found| found.form != TextCallFormat::FencedJson || !place.has_text);
        all
    }

    /// Returns the formats in which a call may begin at `place`. `rest` is the text from there on.
    fn candidate_formats(
        &self,
        rest: &str,
        place: &TextPosition,
    ) -> impl Iterator<Item = TextCallFormat> {
        let begins_line = place.line_is_blank && !matches!(place.before, Some('{' | '[' | ','));
        let may_begin = move |form: &TextCallFormat| {
            let is_allowed = match form {
                TextCallFormat::FencedJson => !place.has_text,
                // Calls without a marker count only at the beginning of a line.
                TextCallFormat::Pythonic | TextCallFormat::BareJson => {
                    begins_line || rest.starts_with('<')
                }
                _ => true,
            };
            is_allowed && format_parsers::may_begin_format(*form, rest, &self.recovery.tools)
        };
        // Calls in every format begin with one of these characters.
        let is_marker = rest.starts_with(['<', '[', '{', '`']);
        let forms = is_marker.then(|| self.recovery.forms.iter());
        forms.into_iter().flatten().filter(may_begin)
    }

    /// Reads the calls at the beginning of `rest`. Fails if there are none, with the number of
    /// bytes that were read.
    fn read_calls(&self, rest: &str, place: &TextPosition) -> Result<CallSequence, usize> {
        let text = rest.get(..rest.floor_char_boundary(self.recovery.limit));
        let mut furthest = 0;
        for form in self.candidate_formats(rest, place) {
            let mut cursor = Cursor::new(text.unwrap_or_default());
            if let Ok(calls) =
                format_parsers::read_format_calls(form, &mut cursor, &self.recovery.tools)
            {
                let range = place.at..place.at + cursor.position();
                return Ok(CallSequence { range, calls, form });
            }
            furthest = furthest.max(cursor.furthest_position());
        }
        Err(furthest)
    }
}

/// Returns whether a text is only the first line of a Markdown code block, without any content.
/// Small models open another block after their last call and stop there.
fn is_empty_code_block(text: &str) -> bool {
    let Some(language) = text.strip_prefix("```") else {
        return false;
    };
    let mut language = language.trim_end().chars();
    language.all(|c| c == '_' || c.is_ascii_alphanumeric())
}

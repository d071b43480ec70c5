//! Splits a text into text and calls.

use super::{
    Recovery,
    cursor::{Cursor, is_separator},
    form::RecoveryForm,
    forms,
    json_calls::FoundCall,
    markdown::MarkdownContext,
};

/// Number of bytes, behind the start of a text that is not a call, in which another call may begin.
/// A longer text is skipped as a whole, so that no text is read again and again.
const MAX_REREAD: usize = 512;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Call(FoundCall),
}

/// Finds calls in a text that arrives in pieces.
///
/// Text is emitted up to the first marker of a form. From there it is buffered until the text ends,
/// and then read.
#[derive(Debug)]
pub(crate) struct TextScanner {
    recovery: Recovery,
    context: MarkdownContext,
    /// The text that is not emitted yet.
    buffer: String,
    /// Number of bytes of the buffer before the first marker.
    plain: usize,
    has_emitted: bool,
}

/// Calls that stand together in a text.
struct Found<'t> {
    /// The text since the calls before.
    before: &'t str,
    text: &'t str,
    calls: Vec<FoundCall>,
    form: RecoveryForm,
}

impl TextScanner {
    /// Creates a scanner of one text. `has_text`: the answer has other text before it.
    pub(crate) fn new(recovery: Recovery, has_text: bool) -> Self {
        Self {
            recovery,
            context: MarkdownContext::new(has_text),
            buffer: String::new(),
            plain: 0,
            has_emitted: false,
        }
    }

    /// Adds more of the text. Returns the text that can be emitted now. White space at the
    /// beginning waits, because it is dropped if a call follows.
    pub(crate) fn push(&mut self, text: &str) -> String {
        self.buffer.push_str(text);
        while let Some(rest) = self.buffer.get(self.plain..)
            && let Some(c) = rest.chars().next()
            && !self.may_begin_call(c, rest)
            && !self.context.may_be_mark(rest)
        {
            self.plain += self.context.step(rest);
        }
        let plain = self.buffer.get(..self.plain).unwrap_or_default();
        if !self.has_emitted && plain.trim().is_empty() {
            return String::new();
        }
        self.has_emitted = true;
        let plain = std::mem::take(&mut self.plain);
        self.buffer.drain(..plain).collect()
    }

    /// Reads the buffered rest of the text.
    pub(crate) fn end(mut self) -> Vec<Piece> {
        let buffer = std::mem::take(&mut self.buffer);
        let (found, rest) = self.find_calls(&buffer);
        // Calls in a Markdown block count only if the answer has no other text.
        let is_example =
            |found: &Found<'_>| found.form == RecoveryForm::FencedJson && self.context.has_text();
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut after_call = false;
        for found in found {
            text.push_str(found.before);
            if is_example(&found) {
                text.push_str(found.text);
                continue;
            }
            if !is_blank(&text, after_call) || (self.has_emitted && !after_call) {
                push_text(std::mem::take(&mut text), &mut pieces);
            }
            text.clear();
            pieces.extend(found.calls.into_iter().map(Piece::Call));
            after_call = true;
        }
        text.push_str(rest);
        if !after_call || !is_blank(&text, true) {
            push_text(text, &mut pieces);
        }
        pieces
    }

    /// Returns the calls in a text, and the text after them.
    fn find_calls<'t>(&mut self, mut text: &'t str) -> (Vec<Found<'t>>, &'t str) {
        let mut found = Vec::new();
        while let Some(rest) = text.get(self.plain..)
            && let Some(c) = rest.chars().next()
        {
            let before = text.get(..self.plain).unwrap_or_default();
            let mut skipped = c.len_utf8();
            if self.may_begin_call(c, rest) {
                match self.read_calls(c, rest) {
                    Ok((form, calls, length)) => {
                        self.context.step_over_call();
                        self.plain = 0;
                        let (call, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
                        text = after;
                        found.push(Found {
                            before,
                            text: call,
                            calls,
                            form,
                        });
                        continue;
                    }
                    Err(length) if length > MAX_REREAD => skipped = length,
                    Err(_) => {}
                }
                if !found.is_empty() && is_blank(before, true) && is_empty_block(rest) {
                    return (found, "");
                }
            }
            let end = self.plain + skipped;
            while self.plain < end
                && let Some(rest) = text.get(self.plain..)
            {
                self.plain += self.context.step(rest);
            }
        }
        (found, text)
    }

    fn candidates(&self, c: char) -> impl Iterator<Item = RecoveryForm> {
        // Every form begins with one of these characters.
        let is_marker = matches!(c, '<' | '[' | '{' | '`');
        let forms = is_marker.then(|| self.recovery.forms.iter());
        let forms = forms.into_iter().flatten();
        forms.filter(move |form| self.context.may_begin(*form, c))
    }

    fn may_begin_call(&self, c: char, text: &str) -> bool {
        self.candidates(c)
            .any(|form| forms::may_begin(form, text, &self.recovery.tools))
    }

    /// Reads the calls at the beginning of `text`. Returns them with the length of their text, or
    /// the length of the text that was read in vain.
    fn read_calls(
        &self,
        c: char,
        text: &str,
    ) -> Result<(RecoveryForm, Vec<FoundCall>, usize), usize> {
        let text = text.get(..text.floor_char_boundary(self.recovery.limit));
        let mut furthest = 0;
        for form in self.candidates(c) {
            let mut cursor = Cursor::new(text.unwrap_or_default());
            if let Ok(calls) = forms::read(form, &mut cursor, &self.recovery.tools) {
                return Ok((form, calls, cursor.at()));
            }
            furthest = furthest.max(cursor.furthest());
        }
        Err(furthest)
    }
}

/// Whether a text is only white space, or white space and separators after a call.
fn is_blank(text: &str, after_call: bool) -> bool {
    text.chars()
        .all(|c| c.is_whitespace() || (after_call && is_separator(c)))
}

fn push_text(text: String, pieces: &mut Vec<Piece>) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
}

/// Whether a text is only the beginning of a Markdown block. Small models begin another block
/// behind their last call and stop there.
fn is_empty_block(text: &str) -> bool {
    let Some(language) = text.strip_prefix("```") else {
        return false;
    };
    let mut language = language.trim_end().chars();
    language.all(|c| c == '_' || c.is_ascii_alphanumeric())
}

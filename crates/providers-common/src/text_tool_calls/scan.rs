//! Splits a text into text and calls.

use std::sync::Arc;

use super::{
    cursor::Cursor,
    form::{RecoveryForm, RecoveryForms},
    forms,
    json_calls::{FoundCall, is_separator},
    markdown::MarkdownContext,
    offered_tools::OfferedTools,
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
/// Text is emitted up to the first marker of a form. From there it is buffered until the text ends
/// or the buffer exceeds the size limit of a call, and then read.
///
/// Calls in a Markdown block count only if the answer has no other text. They are held until the
/// text ends or other text follows.
pub(crate) struct TextScanner {
    tools: Arc<OfferedTools>,
    forms: RecoveryForms,
    /// Maximum size of a call in bytes.
    limit: usize,
    /// The text from the first marker on.
    buffer: String,
    context: MarkdownContext,
    /// White space at the beginning or after a call. It is dropped if a call follows.
    blanks: String,
    only_blanks: bool,
    after_call: bool,
    held: Vec<Held>,
    held_bytes: usize,
}

/// A part of a text that waits for what follows.
enum Held {
    /// A Markdown block, and its calls.
    Block { text: String, calls: Vec<FoundCall> },
    /// White space between calls.
    Blanks(String),
    /// Calls in another form, which count in any case.
    Calls(Vec<FoundCall>),
}

impl TextScanner {
    /// Creates a scanner of one text. `has_text`: the answer has other text before it.
    pub(crate) fn new(
        tools: Arc<OfferedTools>,
        forms: RecoveryForms,
        limit: usize,
        has_text: bool,
    ) -> Self {
        Self {
            tools,
            forms,
            limit,
            buffer: String::new(),
            context: MarkdownContext::new(has_text),
            blanks: String::new(),
            only_blanks: true,
            after_call: false,
            held: Vec::new(),
            held_bytes: 0,
        }
    }

    /// Reads more of the text.
    pub(crate) fn push(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        self.buffer.push_str(text);
        self.scan(false, pieces);
    }

    /// Reads the buffered rest of the text.
    pub(crate) fn end(&mut self, pieces: &mut Vec<Piece>) {
        self.scan(true, pieces);
        self.release(true, pieces);
        let blanks = std::mem::take(&mut self.blanks);
        if !self.after_call {
            push_text(blanks, pieces);
        }
    }

    fn scan(&mut self, is_complete: bool, pieces: &mut Vec<Piece>) {
        let buffer = std::mem::take(&mut self.buffer);
        let mut rest = buffer.as_str();
        // The text before `rest` that is not emitted yet.
        let mut plain = 0;
        let mut unsent = rest;
        while let Some(c) = rest.chars().next() {
            let mut skipped = c.len_utf8();
            if self.may_begin_call(c, rest) {
                if !is_complete && rest.len() <= self.limit {
                    break;
                }
                let window = rest.get(..rest.floor_char_boundary(self.limit));
                match self.read_calls(c, window.unwrap_or_default()) {
                    Ok((form, calls, length)) => {
                        let (text, call) = (unsent.get(..plain), rest.get(..length));
                        self.emit_text(text.unwrap_or_default(), pieces);
                        self.emit_calls(form, calls, call.unwrap_or_default(), pieces);
                        rest = rest.get(length..).unwrap_or_default();
                        (unsent, plain) = (rest, 0);
                        continue;
                    }
                    Err(length) if length > MAX_REREAD => skipped = length,
                    Err(_) => {}
                }
                let only_blanks = unsent.get(..plain).is_none_or(|it| it.trim().is_empty());
                if is_complete && self.after_call && only_blanks && is_empty_block(rest) {
                    (rest, unsent) = ("", "");
                    break;
                }
            }
            let (text, after) = rest.split_at_checked(skipped).unwrap_or((rest, ""));
            for c in text.chars() {
                self.context.step(c);
            }
            plain += text.len();
            rest = after;
        }
        self.emit_text(unsent.get(..plain).unwrap_or_default(), pieces);
        rest.clone_into(&mut self.buffer);
    }

    fn candidates(&self, c: char) -> impl Iterator<Item = RecoveryForm> {
        // Every form begins with one of these characters.
        let forms = if matches!(c, '<' | '[' | '{' | '`') {
            self.forms
        } else {
            RecoveryForms::NONE
        };
        forms
            .iter()
            .filter(move |form| self.context.may_begin(*form, c))
    }

    fn may_begin_call(&self, c: char, text: &str) -> bool {
        self.candidates(c)
            .any(|form| forms::may_begin(form, text, &self.tools))
    }

    /// Reads the calls at the beginning of `text`. Returns them with the length of their text, or
    /// the length of the text that was read in vain.
    fn read_calls(
        &self,
        c: char,
        text: &str,
    ) -> Result<(RecoveryForm, Vec<FoundCall>, usize), usize> {
        let mut furthest = 0;
        for form in self.candidates(c) {
            let mut cursor = Cursor::new(text);
            if let Ok(calls) = forms::read(form, &mut cursor, &self.tools) {
                return Ok((form, calls, cursor.at()));
            }
            furthest = furthest.max(cursor.furthest());
        }
        Err(furthest)
    }

    fn emit_calls(
        &mut self,
        form: RecoveryForm,
        calls: Vec<FoundCall>,
        text: &str,
        pieces: &mut Vec<Piece>,
    ) {
        let blanks = std::mem::take(&mut self.blanks);
        self.only_blanks = true;
        self.after_call = true;
        self.context.step_over_call();
        let is_block = form == RecoveryForm::FencedJson;
        if !is_block && self.held.is_empty() {
            pieces.extend(calls.into_iter().map(Piece::Call));
            return;
        }
        self.held_bytes += blanks.len() + text.len();
        self.held.push(Held::Blanks(blanks));
        self.held.push(if is_block {
            let text = text.to_owned();
            Held::Block { text, calls }
        } else {
            Held::Calls(calls)
        });
        if self.held_bytes > self.limit {
            self.context.mark_text();
            self.only_blanks = false;
            self.after_call = false;
            self.release(false, pieces);
        }
    }

    /// Emits the held parts. Blocks become calls, or stay text.
    fn release(&mut self, as_calls: bool, pieces: &mut Vec<Piece>) {
        self.held_bytes = 0;
        for held in std::mem::take(&mut self.held) {
            match held {
                Held::Block { calls, .. } if as_calls => {
                    pieces.extend(calls.into_iter().map(Piece::Call));
                }
                Held::Calls(calls) => pieces.extend(calls.into_iter().map(Piece::Call)),
                Held::Blanks(_) if as_calls => {}
                Held::Block { text, .. } | Held::Blanks(text) => push_text(text, pieces),
            }
        }
    }

    /// Emits text, except for white space that is dropped if a call follows.
    fn emit_text(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        if text.is_empty() {
            return;
        }
        let after_call = self.after_call;
        let is_blank = |c: char| c.is_whitespace() || (after_call && is_separator(c));
        if self.only_blanks && text.chars().all(is_blank) {
            self.blanks.push_str(text);
            return;
        }
        self.only_blanks = false;
        self.after_call = false;
        self.release(false, pieces);
        let mut emitted = std::mem::take(&mut self.blanks);
        emitted.push_str(text);
        push_text(emitted, pieces);
    }
}

/// Appends text to the text before it.
fn push_text(text: String, pieces: &mut Vec<Piece>) {
    if text.is_empty() {
        return;
    }
    match pieces.last_mut() {
        Some(Piece::Text(before)) => before.push_str(&text),
        _ => pieces.push(Piece::Text(text)),
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

//! Cursor for reading tool calls in a text, and the reasons why text is not a call.

/// Reason why the text at a cursor cannot be read as a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallParseError {
    /// The text ends too early to decide whether it is a call.
    End,
    /// The text is not a call of an offered tool in the expected format.
    NotACall,
}

/// Returns whether a character other than white space may separate two calls. Llama 3.1 writes
/// semicolons.
pub(crate) fn is_call_separator(c: char) -> bool {
    matches!(c, ',' | ';')
}

/// A reading position in a text. Positions are byte offsets.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    furthest: usize,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            furthest: 0,
        }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Returns the largest position, as a byte offset, that the cursor has reached, even if it has
    /// moved back since.
    pub(crate) fn furthest_position(&self) -> usize {
        self.furthest
    }

    pub(crate) fn move_back_to(&mut self, position: usize) {
        self.at = position.min(self.at);
    }

    pub(crate) fn remaining_text(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the text between `start` and the current position.
    pub(crate) fn text_since(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Returns the next character without consuming it. Returns `None` at the end of the text.
    pub(crate) fn peek(&self) -> Option<char> {
        self.remaining_text().chars().next()
    }

    /// Returns the next character without consuming it, or [`CallParseError::End`] if there is
    /// none.
    pub(crate) fn peek_required(&self) -> Result<char, CallParseError> {
        self.peek().ok_or(CallParseError::End)
    }

    pub(crate) fn advance(&mut self, length: usize) {
        self.at = self.at.saturating_add(length).min(self.text.len());
        self.furthest = self.furthest.max(self.at);
    }

    /// Consumes and returns the next character. Fails with [`CallParseError::End`] at the end of
    /// the text.
    pub(crate) fn next(&mut self) -> Result<char, CallParseError> {
        let c = self.peek_required()?;
        self.advance(c.len_utf8());
        Ok(c)
    }

    pub(crate) fn skip_while(&mut self, is_skipped: impl Fn(char) -> bool) {
        let rest = self.remaining_text();
        let length = rest.find(|c| !is_skipped(c)).unwrap_or(rest.len());
        self.advance(length);
    }

    pub(crate) fn skip_whitespace(&mut self) {
        self.skip_while(char::is_whitespace);
    }

    /// Consumes one of `texts` if the remaining text begins with it. Returns whether it did.
    pub(crate) fn skip_any(&mut self, texts: &[&str]) -> bool {
        let rest = self.remaining_text();
        let found = texts.iter().find(|text| rest.starts_with(**text));
        self.advance(found.map_or(0, |text| text.len()));
        found.is_some()
    }

    /// Consumes `text`. Fails with [`CallParseError::End`] if the remaining text ends within
    /// `text`, and with [`CallParseError::NotACall`] if it begins otherwise.
    pub(crate) fn expect_text(&mut self, text: &str) -> Result<(), CallParseError> {
        if self.skip_any(&[text]) {
            Ok(())
        } else if text.starts_with(self.remaining_text()) {
            Err(CallParseError::End)
        } else {
            Err(CallParseError::NotACall)
        }
    }

    /// Consumes white space, separators and one of the closing `marks`, such as `</tool_call>`. At
    /// the end of the text, the beginning of a mark is enough. Returns whether there was a mark.
    /// Consumes nothing without a mark.
    pub(crate) fn skip_closing_mark(&mut self, marks: &[&str]) -> bool {
        let start = self.at;
        self.skip_while(|c| c.is_whitespace() || is_call_separator(c));
        let rest = self.remaining_text();
        let is_cut = !rest.is_empty() && marks.iter().any(|mark| mark.starts_with(rest));
        if is_cut {
            self.advance(rest.len());
        }
        let is_closed = is_cut || self.skip_any(marks);
        if !is_closed {
            self.move_back_to(start);
        }
        is_closed
    }

    /// Consumes and returns the text before the first of `marks`, such as `</tool_call>`. Without a
    /// mark, consumes the rest of the text and fails with [`CallParseError::End`].
    pub(crate) fn read_until(&mut self, marks: &[&str]) -> Result<&'t str, CallParseError> {
        let rest = self.remaining_text();
        let end = marks.iter().filter_map(|mark| rest.find(mark)).min();
        self.advance(end.unwrap_or(rest.len()));
        end.and_then(|end| rest.get(..end))
            .ok_or(CallParseError::End)
    }
}

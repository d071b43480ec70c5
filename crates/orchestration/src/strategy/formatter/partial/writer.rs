//! Emission of text with the separators of items.

use super::TextDelta;
use crate::strategy::formatter::render::{Block, separator};

/// The emitted text and the position in it.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) shown: String,
    /// Number of items with emitted text.
    items: usize,
    /// The text before the first visible character of the item.
    opening: Option<Opening>,
    /// White space that is emitted only before further text.
    pending: String,
    /// The fence that closes the item.
    closing: Option<String>,
    /// Nesting depth of the current answer in JSON strings.
    pub(super) nesting: usize,
}

#[derive(Debug)]
pub(super) enum Opening {
    Text,
    Artifact(Block),
}

pub(super) struct Sink<'a> {
    pub(super) writer: &'a mut Writer,
    pub(super) deltas: &'a mut Vec<TextDelta>,
}

impl Sink<'_> {
    pub(super) fn begin_text(&mut self) {
        self.begin(Opening::Text);
    }

    pub(super) fn begin(&mut self, opening: Opening) {
        self.end();
        self.writer.opening = Some(opening);
    }

    pub(super) fn text(&mut self, text: &str) {
        for c in text.chars() {
            self.char(c);
        }
    }

    pub(super) fn char(&mut self, c: char) {
        if c.is_whitespace() {
            let skipped = match &self.writer.opening {
                Some(Opening::Text) => true,
                Some(Opening::Artifact(_)) => {
                    self.writer.pending.is_empty() && matches!(c, '\n' | '\r')
                }
                None => false,
            };
            if !skipped {
                self.writer.pending.push(c);
            }
            return;
        }
        let mut text = String::new();
        if let Some(opening) = self.writer.opening.take() {
            text.push_str(separator(&self.writer.shown));
            if let Opening::Artifact(block) = opening {
                block.open(block.marks, &mut text);
                self.writer.closing = Some(format!("\n{}", "`".repeat(block.marks)));
            }
            self.writer.items += 1;
        }
        text.push_str(&self.writer.pending);
        self.writer.pending.clear();
        text.push(c);
        self.show(&text);
    }

    fn show(&mut self, text: &str) {
        self.writer.shown.push_str(text);
        let item = self.writer.items.saturating_sub(1);
        match self.deltas.last_mut() {
            Some(last) if last.item == item => last.text.push_str(text),
            _ => self.deltas.push(TextDelta {
                item,
                text: text.to_owned(),
            }),
        }
    }

    /// Ends the item.
    pub(super) fn end(&mut self) {
        self.writer.opening = None;
        self.writer.pending.clear();
        if let Some(closing) = self.writer.closing.take() {
            self.show(&closing);
        }
    }
}

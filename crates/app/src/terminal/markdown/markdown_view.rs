//! Draws Markdown at a terminal while the model streams it.

use std::io::{self, Write};

use super::block_layout::{MarkdownStyles, ends_with_blank_line, find_second_block, render_block};

/// Maximum size in bytes of the block that is still growing. Longer blocks are split, because every
/// text delta lays out the whole block again.
const MAX_BLOCK_BYTES: usize = 128 * 1024;

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalSize {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// View that draws each finished Markdown block once and redraws the block that is still growing.
///
/// Every row ends with a line break, so that other output starts on a new row. No row is as wide as
/// the terminal, because terminals differ in how they wrap.
#[derive(Debug)]
pub(crate) struct MarkdownView<W> {
    out: W,
    look: MarkdownStyles,
    /// Markdown source of the block that is still growing.
    open: String,
    /// Rows on the screen that belong to the block that is still growing.
    live: Vec<String>,
    size: TerminalSize,
    /// `true` if a blank row must separate the next block from the previous one.
    gap: bool,
    /// `true` after the first row of the current answer was drawn on the screen.
    begun: bool,
}

impl<W: Write> MarkdownView<W> {
    pub(crate) fn new(out: W, look: MarkdownStyles) -> Self {
        Self {
            out,
            look,
            open: String::new(),
            live: Vec::new(),
            size: TerminalSize {
                columns: 80,
                rows: 24,
            },
            gap: false,
            begun: false,
        }
    }

    /// Adds a text delta of the answer and draws the rows that it changes.
    pub(crate) fn append_text(&mut self, text: &str, size: TerminalSize) -> io::Result<()> {
        let mut finished = Vec::new();
        // Only a complete line can finish a block, so that the result does not depend on how the
        // text is split into deltas.
        for line in text.split_inclusive('\n') {
            self.open.push_str(line);
            if self.open.len() >= MAX_BLOCK_BYTES {
                self.finish_block(self.open.len(), size, &mut finished);
            } else if line.ends_with('\n')
                && let Some(end) = find_second_block(&self.open)
            {
                self.finish_block(end, size, &mut finished);
            }
        }
        self.draw_rows(finished, size)
    }

    /// Draws the rest of the current answer. Then the view is ready for the next answer.
    pub(crate) fn finish_text(&mut self, size: TerminalSize) -> io::Result<()> {
        let mut finished = Vec::new();
        self.finish_block(self.open.len(), size, &mut finished);
        self.draw_rows(finished, size)?;
        self.gap = false;
        self.begun = false;
        Ok(())
    }

    /// Erases the growing block, calls `write` to print other output, and draws the block below it.
    pub(crate) fn print_above_open_block(
        &mut self,
        size: TerminalSize,
        write: impl FnOnce(),
    ) -> io::Result<()> {
        let text = self.erase_escape_sequence(0, size);
        self.write_terminal_update(&text)?;
        self.live.clear();
        write();
        self.draw_rows(Vec::new(), size)
    }

    /// Renders the growing block. Adds a blank row before it if the Markdown source has a blank
    /// line between the previous block and this block.
    fn render_open_block(&self, size: TerminalSize) -> Vec<String> {
        let width = size.columns.saturating_sub(1).max(1);
        let mut rows = render_block(&self.open, width, self.look);
        if self.gap && self.begun && !rows.is_empty() {
            rows.insert(0, String::new());
        }
        rows
    }

    /// Removes the block that ends at byte offset `end` of the unfinished Markdown source, and adds
    /// its rendered rows to `finished`.
    fn finish_block(&mut self, end: usize, size: TerminalSize, finished: &mut Vec<String>) {
        let rest = self.open.split_off(end);
        let rows = self.render_open_block(size);
        if !rows.is_empty() {
            self.gap = false;
            self.begun = true;
            finished.extend(rows);
        }
        self.gap |= ends_with_blank_line(&self.open);
        self.open = rest;
    }

    /// Draws the rows of finished blocks and then the rows of the growing block.
    fn draw_rows(&mut self, finished: Vec<String>, size: TerminalSize) -> io::Result<()> {
        let mut live = self.render_open_block(size);
        // Rows that have scrolled out of the screen cannot be redrawn. Therefore only the last rows
        // of the growing block are drawn.
        let most = size.rows.saturating_sub(2).max(1);
        live.drain(..live.len().saturating_sub(most));
        let mut wanted = finished;
        wanted.extend_from_slice(&live);
        let mut same = 0;
        if size.columns == self.size.columns {
            let pairs = self.live.iter().zip(&wanted);
            same = pairs.take_while(|(old, new)| old == new).count();
        }
        if same < self.live.len() || same < wanted.len() {
            let mut text = self.erase_escape_sequence(same, size);
            for row in &wanted[same..] {
                text.push_str(row);
                text.push('\n');
            }
            self.write_terminal_update(&text)?;
        }
        self.live = live;
        self.size = size;
        Ok(())
    }

    /// Returns the escape sequence that erases the rows of the last block on the screen, except for
    /// its first `standing` rows. Returns an empty text if there is no row to erase.
    fn erase_escape_sequence(&self, standing: usize, size: TerminalSize) -> String {
        let up = self.live.len().saturating_sub(standing);
        match up.min(size.rows.saturating_sub(1)) {
            0 => String::new(),
            up => format!("\u{1b}[{up}A\r\u{1b}[J"),
        }
    }

    /// Writes `text` as one synchronized update of the terminal, which prevents flicker.
    fn write_terminal_update(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let whole = format!("\u{1b}[?2026h{text}\u{1b}[?2026l");
        self.out.write_all(whole.as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
#[path = "markdown_view_tests.rs"]
mod tests;

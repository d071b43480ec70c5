//! Draws Markdown while it arrives.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use anstream::adapter::strip_str;
use unicode_width::UnicodeWidthStr as _;

use super::{
    blocks::{Block, Kind, Splitter},
    rows::{Look, rows},
};

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// Draws finished blocks once and redraws the changed part of the growing ones.
///
/// Every row ends with a line break, so that other output starts on a new row. No row is as wide as
/// the terminal, because terminals differ in how they wrap.
#[derive(Debug)]
pub(crate) struct View<W> {
    out: W,
    look: Look,
    /// The terminal wraps rows again when it becomes narrower.
    reflows: bool,
    splitter: Splitter,
    /// Rows that may still change, below the finished ones.
    live: Vec<String>,
    size: Size,
    /// A blank row is due before the next block.
    gap: bool,
    /// A row of this text was drawn.
    begun: bool,
}

impl<W: Write> View<W> {
    pub(crate) fn new(out: W, look: Look, reflows: bool) -> Self {
        Self {
            out,
            look,
            reflows,
            splitter: Splitter::default(),
            live: Vec::new(),
            size: Size {
                columns: 80,
                rows: 24,
            },
            gap: false,
            begun: false,
        }
    }

    /// Adds text.
    pub(crate) fn push(&mut self, text: &str, size: Size) -> io::Result<()> {
        let ended = self.splitter.push(text);
        let open = self.splitter.preview();
        self.draw(&ended, &open, size)
    }

    /// Ends the text. The next text starts from scratch.
    pub(crate) fn finish(&mut self, size: Size) -> io::Result<()> {
        let ended = self.splitter.finish();
        self.draw(&ended, &[], size)?;
        self.gap = false;
        self.begun = false;
        Ok(())
    }

    /// Removes the growing rows while `write` prints above them.
    pub(crate) fn above(&mut self, size: Size, write: impl FnOnce()) -> io::Result<()> {
        let open = self.splitter.preview();
        let mut text = String::new();
        self.rewind(0, size, &mut text);
        self.put(&text)?;
        self.live.clear();
        write();
        self.draw(&[], &open, size)
    }

    fn draw(&mut self, ended: &[Block], open: &[Block], size: Size) -> io::Result<()> {
        let width = size.columns.saturating_sub(1).max(1);
        let (mut gap, mut begun) = (self.gap, self.begun);
        let mut fixed = Vec::new();
        for block in ended {
            lay(block, width, self.look, &mut gap, &mut begun, &mut fixed);
        }
        let (fixed_gap, fixed_begun) = (gap, begun);
        let mut live = Vec::new();
        for block in open {
            lay(block, width, self.look, &mut gap, &mut begun, &mut live);
        }
        // Rows above the screen cannot be redrawn.
        let most = size.rows.saturating_sub(2).max(1);
        if live.len() > most {
            live.drain(..live.len() - most);
        }
        let wanted: Vec<String> = fixed.iter().chain(&live).cloned().collect();
        let mut text = String::new();
        let same = if size.columns == self.size.columns {
            let pairs = self.live.iter().zip(&wanted);
            pairs.take_while(|(old, new)| old == new).count()
        } else {
            0
        };
        if same < self.live.len() || same < wanted.len() {
            self.rewind(same, size, &mut text);
            for row in wanted.iter().skip(same) {
                text.push_str(row);
                text.push('\n');
            }
        }
        self.put(&text)?;
        self.live = live;
        self.size = size;
        (self.gap, self.begun) = (fixed_gap, fixed_begun);
        Ok(())
    }

    /// Removes the rows after the first `standing` ones.
    fn rewind(&self, standing: usize, size: Size, text: &mut String) {
        let gone = self.live.get(standing..).unwrap_or_default();
        let narrower = size.columns < self.size.columns && self.reflows;
        let height = |row: &String| {
            if narrower {
                let columns = strip_str(row).to_string().width();
                columns.div_ceil(size.columns.max(1)).max(1)
            } else {
                1
            }
        };
        let up: usize = gone.iter().map(height).sum();
        let up = up.min(size.rows.saturating_sub(1));
        if up > 0 {
            let _ = write!(text, "\u{1b}[{up}A\r\u{1b}[J");
        }
    }

    /// Writes the text as one synchronized update.
    fn put(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let whole = format!("\u{1b}[?2026h{text}\u{1b}[?2026l");
        self.out.write_all(whole.as_bytes())?;
        self.out.flush()
    }
}

/// Returns the rows of a block, with a gap before it.
fn lay(
    block: &Block,
    width: usize,
    look: Look,
    gap: &mut bool,
    begun: &mut bool,
    out: &mut Vec<String>,
) {
    if !block.joined {
        *gap = *begun;
    }
    let rows = rows(block, width, look);
    // An empty code line is a row, an empty paragraph is not.
    if rows.is_empty() || (block.kind == Kind::Text && rows.iter().all(String::is_empty)) {
        return;
    }
    if std::mem::take(gap) {
        out.push(String::new());
    }
    *begun = true;
    out.extend(rows);
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;

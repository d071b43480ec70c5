//! Splits growing text into blocks that no longer change.

/// Maximum size of a block in bytes. Longer blocks are split at a line end, because a growing block
/// is laid out for every delta.
const MAX_BLOCK_BYTES: usize = 32 * 1024;
/// Maximum size of a line in bytes. Longer lines are split.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text outside code fences, such as a paragraph, a list or a table.
    Text,
    /// The first or last line of code.
    Fence,
    /// A line of code.
    Code,
}

/// A part of the text. All blocks together are the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    pub(crate) raw: String,
    /// The block continues the previous one without a gap.
    pub(crate) joined: bool,
}

/// A row of backticks or tildes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: usize,
}

/// Splits text into blocks. The result does not depend on the size of the deltas.
#[derive(Debug, Clone, Default)]
pub(crate) struct Splitter {
    /// Lines of the growing block.
    open: String,
    /// The unfinished line.
    line: String,
    /// The previous block was split.
    joined: bool,
    /// The open code fence.
    code: Option<Fence>,
    /// The open code fence in a list item, which is part of the item's block.
    code_in_list: Option<Fence>,
    in_list: bool,
    after_blank: bool,
}

impl Splitter {
    /// Adds text and returns the finished blocks.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Block> {
        let mut ended = Vec::new();
        for c in text.chars() {
            self.line.push(c);
            if c == '\n' || self.line.len() >= MAX_LINE_BYTES {
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, &mut ended);
            }
        }
        ended
    }

    /// Returns the unfinished blocks as if the text ended here.
    pub(crate) fn preview(&self) -> Vec<Block> {
        self.clone().finish()
    }

    /// Ends the text.
    pub(crate) fn finish(&mut self) -> Vec<Block> {
        let mut ended = Vec::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut ended);
        }
        self.end_block(&mut ended);
        *self = Self::default();
        ended
    }

    fn take_line(&mut self, line: &str, ended: &mut Vec<Block>) {
        if let Some(fence) = self.code {
            let closes = fence.is_closed_by(line);
            ended.push(Block {
                kind: if closes { Kind::Fence } else { Kind::Code },
                raw: line.to_owned(),
                joined: true,
            });
            if closes {
                self.code = None;
            }
            return;
        }
        if let Some(fence) = self.code_in_list {
            if fence.is_closed_by(line) {
                self.code_in_list = None;
            }
            return self.add(line, ended);
        }
        if line.trim().is_empty() {
            self.after_blank = true;
            self.add(line, ended);
            if !self.in_list && !self.open.trim().is_empty() {
                self.end_block(ended);
            }
            return;
        }
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let is_item = is_item(line);
        if self.in_list && indent < 2 {
            let after_blank = self.after_blank;
            // List items are blocks, so that a long list does not stay open.
            if is_item || after_blank {
                self.end_block(ended);
                self.joined = !after_blank;
            }
        }
        if let Some(fence) = Fence::of(line) {
            if self.in_list && indent >= 2 {
                self.code_in_list = Some(fence);
                return self.add(line, ended);
            }
            self.end_block(ended);
            self.code = Some(fence);
            ended.push(Block {
                kind: Kind::Fence,
                raw: line.to_owned(),
                joined: false,
            });
            return;
        }
        self.in_list |= is_item;
        self.after_blank = false;
        self.add(line, ended);
    }

    fn add(&mut self, line: &str, ended: &mut Vec<Block>) {
        self.open.push_str(line);
        let is_cut = !line.ends_with('\n') && line.len() >= MAX_LINE_BYTES;
        if is_cut || self.open.len() >= MAX_BLOCK_BYTES {
            self.end_block(ended);
            self.joined = true;
        }
    }

    fn end_block(&mut self, ended: &mut Vec<Block>) {
        self.in_list = false;
        self.after_blank = false;
        self.code_in_list = None;
        let joined = std::mem::take(&mut self.joined);
        if !self.open.is_empty() {
            ended.push(Block {
                kind: Kind::Text,
                raw: std::mem::take(&mut self.open),
                joined,
            });
        }
    }
}

impl Fence {
    fn of(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ').trim_end();
        let mark = *text.as_bytes().first()?;
        if !matches!(mark, b'`' | b'~') {
            return None;
        }
        let length = text.bytes().take_while(|&byte| byte == mark).count();
        // Backticks after the fence mean inline code.
        let is_fence = length >= 3 && (mark == b'~' || !text[length..].contains('`'));
        is_fence.then_some(Self { mark, length })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let text = line.trim();
        Self::of(line).is_some_and(|it| {
            it.mark == self.mark && it.length >= self.length && it.length == text.len()
        })
    }
}

/// Returns whether the line starts a list item.
fn is_item(line: &str) -> bool {
    let text = line.trim_start_matches([' ', '\t']);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after = if (1..=9).contains(&digits) {
        text[digits..].strip_prefix(['.', ')'])
    } else {
        text.strip_prefix(['-', '*', '+'])
    };
    // `---` is a rule and `**` starts bold text.
    after.is_some_and(|after| after.starts_with([' ', '\t', '\n']))
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
pub(crate) mod tests;

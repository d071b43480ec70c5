//! Input of `chat`: from a line editor at a terminal, otherwise from lines of standard input.

pub(super) mod completion;
pub(super) mod editor;
pub(super) mod stdin_lines;

//! Input of a conversation: the line editor and plain lines.

pub(super) mod completion;
pub(super) mod editor;
pub(super) mod stdin_lines;

//! Input of `chat`: a line editor at a terminal, plain lines otherwise.

pub(super) mod completion;
pub(super) mod editor;
pub(super) mod stdin_lines;

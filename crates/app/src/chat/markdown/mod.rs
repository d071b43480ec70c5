//! Renders Markdown at a terminal while the model streams it. [`MarkdownView`] collects the text of
//! the growing block and draws the changed rows. [`block_layout`] renders a block as rows.

mod block_layout;
mod markdown_view;
mod styled_rows;
mod table;

pub(crate) use block_layout::MarkdownStyles;
pub(crate) use markdown_view::{MarkdownView, TerminalSize};

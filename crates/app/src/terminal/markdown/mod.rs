//! Renders Markdown at a terminal while the model streams it. [`MarkdownView`] collects the text of
//! the growing block and draws the changed rows. [`block_layout`] renders a block as rows.

mod block_layout;
mod markdown_view;
mod styled_rows;
mod table;

pub(crate) use block_layout::MarkdownStyles;
pub(crate) use markdown_view::{MarkdownView, TerminalSize};

/// Returns the size of the terminal that shows standard output. If the size is unknown, returns 80
/// columns and 24 rows.
pub(crate) fn terminal_size() -> TerminalSize {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stdout())
        && size.ws_col > 0
    {
        return TerminalSize {
            columns: usize::from(size.ws_col),
            rows: usize::from(size.ws_row.max(1)),
        };
    }
    TerminalSize {
        columns: 80,
        rows: 24,
    }
}

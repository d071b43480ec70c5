//! What is said where there is no terminal to edit lines on.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use super::editor::{Line, joined_lines};
use crate::{
    cli::interrupt::Interrupts,
    terminal::{say, without_controls},
};

const MARK: &str = "> ";

/// Reads what somebody has to say from standard input, a line at a time, until it ends or the program is to end.
/// What is read stands on standard error, so that questions and answers can be read together there.
pub(crate) async fn read(interrupts: &Interrupts) -> io::Result<Line> {
    let reading = tokio::task::spawn_blocking(read_line);
    tokio::select! {
        line = reading => line.map_err(io::Error::other)?,
        () = interrupts.first() => Ok(Line::Interrupted),
    }
}

fn read_line() -> io::Result<Line> {
    let stdin = io::stdin();
    let is_typed = stdin.is_terminal();
    let mut text = String::new();
    loop {
        if is_typed {
            let mut error = anstream::stderr();
            // Whoever cannot see it can still say something.
            let _ = write!(error, "{MARK}");
            let _ = error.flush();
        }
        let before = text.len();
        if stdin.lock().read_line(&mut text)? == 0 && before == text.len() {
            break;
        }
        if !text.trim_end_matches(['\n', '\r']).ends_with('\\') {
            break;
        }
    }
    if text.is_empty() {
        return Ok(Line::End);
    }
    let text = text.replace("\r\n", "\n");
    let text = joined_lines(text.trim_end_matches('\n'));
    if !is_typed {
        say(format_args!("{MARK}{}", without_controls(&text)));
    }
    Ok(Line::Text(text))
}

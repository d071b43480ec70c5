//! Reads questions from standard input if `chat` does not run at a terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use super::editor::{InputLine, join_continued_lines};
use crate::{
    run_session::interrupts::Interrupts,
    terminal::{print_line, strip_control_characters},
};

const MARK: &str = "> ";

/// Reads a line of standard input, or several lines if they are continued. Returns
/// [`InputLine::Interrupted`] after an interruption. Prints piped input on standard error, so that
/// questions and messages appear together there.
pub(crate) async fn read_input_line(interrupts: &Interrupts) -> io::Result<InputLine> {
    let reading = tokio::task::spawn_blocking(read_stdin_line);
    tokio::select! {
        line = reading => line.map_err(io::Error::other)?,
        () = interrupts.wait_for_first_interruption() => Ok(InputLine::Interrupted),
    }
}

fn read_stdin_line() -> io::Result<InputLine> {
    let stdin = io::stdin();
    let is_typed = stdin.is_terminal();
    let mut text = String::new();
    loop {
        if is_typed {
            let mut error = anstream::stderr();
            // Errors are ignored, because a closed standard error must not stop the conversation.
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
        return Ok(InputLine::End);
    }
    let text = text.replace("\r\n", "\n");
    let text = join_continued_lines(text.trim_end_matches('\n'));
    if !is_typed {
        print_line(format_args!("{MARK}{}", strip_control_characters(&text)));
    }
    Ok(InputLine::Text(text))
}

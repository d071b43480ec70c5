//! Reads questions from standard input if `chat` does not run at a terminal.

use std::io::{self, IsTerminal as _};

use super::editor::{InputLine, join_continued_lines};
use crate::{
    run_session::interrupts::Interrupts,
    terminal::{print_line, print_prompt, read_stdin_line, strip_control_characters},
};

const MARK: &str = ">";

/// Reads a line of standard input, or several lines if they are continued. Returns
/// [`InputLine::Interrupted`] after an interruption. Prints piped input on standard error, so that
/// questions and messages appear together there.
pub(crate) async fn read_input_line(interrupts: &Interrupts) -> io::Result<InputLine> {
    tokio::select! {
        line = read_continued_lines() => line,
        () = interrupts.wait_for_first_interruption() => Ok(InputLine::Interrupted),
    }
}

async fn read_continued_lines() -> io::Result<InputLine> {
    let is_typed = io::stdin().is_terminal();
    let mut text = String::new();
    loop {
        let print = || {
            if is_typed {
                print_prompt(MARK);
            }
        };
        let line = read_stdin_line(print).await?;
        text.push_str(&line);
        if line.is_empty() || !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
            break;
        }
    }
    if text.is_empty() {
        return Ok(InputLine::End);
    }
    let text = text.replace("\r\n", "\n");
    let text = join_continued_lines(text.trim_end_matches('\n'));
    if !is_typed {
        print_line(format_args!("{MARK} {}", strip_control_characters(&text)));
    }
    Ok(InputLine::Text(text))
}

//! A question at the terminal and the line that answers it.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// Whether a person can be asked: both ways must be a terminal.
pub fn is_somebody_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Writes `question` to standard error and reads one line; `None` if standard input ended.
pub(super) async fn ask(question: String) -> Option<String> {
    let read = tokio::task::spawn_blocking(move || {
        forget_what_was_typed();
        let mut error = anstream::stderr();
        let _ = write!(error, "{question} ");
        let _ = error.flush();
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line),
        }
    });
    read.await.ok().flatten()
}

/// What was typed before the question was there is no answer to it.
#[cfg(unix)]
fn forget_what_was_typed() {
    use rustix::termios::{QueueSelector, tcflush};
    // Where it does not work there is no terminal.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn forget_what_was_typed() {}

//! A question at the terminal and the line that answers it.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use async_trait::async_trait;

/// Why a question has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// The person pressed Ctrl-C, which stops the run.
    Interrupted,
    /// The input ended.
    Ended,
}

/// Asks a person for a line of text.
#[async_trait]
pub trait AsksForLines: Send + Sync {
    /// Whether a person can be asked.
    fn is_somebody_there(&self) -> bool;

    /// Writes `question` and reads the line that answers it. Dropping the future withdraws the question.
    async fn ask(&self, question: String) -> Result<String, NoAnswer>;

    /// Whether a text can be given to be changed.
    fn can_edit(&self) -> bool {
        false
    }

    /// Has a text changed, which may have several lines; `None` if it is to stay as it is.
    async fn edit(&self, _question: String, _text: String) -> Option<String> {
        None
    }
}

/// Asks on standard error and reads the answer from standard input, as the terminal gives it.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainLines;

#[async_trait]
impl AsksForLines for PlainLines {
    fn is_somebody_there(&self) -> bool {
        is_somebody_there()
    }

    async fn ask(&self, question: String) -> Result<String, NoAnswer> {
        ask(question).await.ok_or(NoAnswer::Ended)
    }
}

/// Whether a person can be asked: both ways must be a terminal.
pub fn is_somebody_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Writes `question` to standard error and reads one line; `None` if standard input ended.
async fn ask(question: String) -> Option<String> {
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

//! Reads the user's replies to questions at the terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use async_trait::async_trait;

/// Reason why a question to the user has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnansweredReason {
    /// The user pressed Ctrl-C, which also cancels the run.
    Interrupted,
    /// Standard input ended before the user answered.
    Ended,
}

/// Reader that asks the user a question and returns the reply.
#[async_trait]
pub(crate) trait LineReader: Send + Sync {
    /// Returns whether a person is present who can answer at the terminal.
    fn is_interactive(&self) -> bool;

    /// Prints `question` and reads one line. Dropping the future withdraws the question.
    /// [`StdinLineReader`] nevertheless reads the next line and discards it.
    async fn prompt_for_line(&self, question: String) -> Result<String, UnansweredReason>;

    /// Returns whether the reader has an editor, so that [`Self::edit_text`] works.
    fn can_edit_text(&self) -> bool {
        false
    }

    /// Lets the user edit `text`, which may have several lines, and returns the edited text.
    /// Returns `None` if the user cancels or if the reader has no editor.
    async fn edit_text(&self, _question: String, _text: String) -> Option<String> {
        None
    }
}

/// Line reader that reads replies from standard input without a line editor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StdinLineReader;

#[async_trait]
impl LineReader for StdinLineReader {
    fn is_interactive(&self) -> bool {
        is_interactive()
    }

    async fn prompt_for_line(&self, question: String) -> Result<String, UnansweredReason> {
        let read = tokio::task::spawn_blocking(move || {
            discard_typed_input();
            let mut error = anstream::stderr();
            let _ = write!(error, "{question} ");
            let _ = error.flush();
            let mut line = String::new();
            match std::io::stdin().lock().read_line(&mut line) {
                Ok(0) | Err(_) => Err(UnansweredReason::Ended),
                Ok(_) => Ok(line),
            }
        });
        read.await.unwrap_or(Err(UnansweredReason::Ended))
    }
}

/// Returns whether a person can answer: standard input and standard error are both terminals.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Discards typed characters before a question, so that they do not answer it by accident.
#[cfg(unix)]
fn discard_typed_input() {
    use rustix::termios::{QueueSelector, tcflush};
    // An error is ignored: it means that standard input is not a terminal.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_typed_input() {}

//! Reads the user's replies to questions at the terminal.

use std::io::{self, IsTerminal as _, Write as _};

use async_trait::async_trait;
use tokio::{sync::Mutex, task::JoinHandle};

/// A read of one line in another thread, or `None`. The read cannot be cancelled.
type PendingRead = Mutex<Option<JoinHandle<io::Result<String>>>>;

/// The current read of standard input. It continues if its caller stops waiting for the line.
static STDIN_READ: PendingRead = PendingRead::const_new(None);

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
        // Discards a line that was typed before the question, because it is not an answer to it.
        if let Ok(mut pending) = STDIN_READ.try_lock() {
            pending.take_if(|read| read.is_finished());
        }
        discard_typed_input();
        let line = read_stdin_line(|| print_prompt(&question)).await;
        line.ok()
            .filter(|line| !line.is_empty())
            .ok_or(UnansweredReason::Ended)
    }
}

/// Calls `print` and returns the next line of standard input, or an empty text at its end. If the
/// caller stops waiting, the next call returns the line.
pub(crate) async fn read_stdin_line(print: impl FnOnce() + Send) -> io::Result<String> {
    read_pending_line(&STDIN_READ, print, || {
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        Ok(line)
    })
    .await
}

async fn read_pending_line(
    pending: &PendingRead,
    print: impl FnOnce() + Send,
    read: impl FnOnce() -> io::Result<String> + Send + 'static,
) -> io::Result<String> {
    let mut pending = pending.lock().await;
    print();
    let running = pending.get_or_insert_with(|| tokio::task::spawn_blocking(read));
    let line = running.await;
    *pending = None;
    line.map_err(io::Error::other)?
}

/// Prints a prompt on standard error. Errors are ignored, because a closed standard error must not
/// stop the conversation.
pub(crate) fn print_prompt(prompt: &str) {
    let mut error = anstream::stderr();
    let _ = write!(error, "{prompt} ");
    let _ = error.flush();
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_line_after_a_withdrawn_question_answers_the_next_one() {
        let pending = PendingRead::const_new(None);
        let (keyboard, lines) = mpsc::channel();
        let read = move || lines.recv().map_err(io::Error::other);
        let withdrawn = read_pending_line(&pending, || {}, read).now_or_never();
        assert!(withdrawn.is_none());
        let print = || keyboard.send("yes".to_owned()).unwrap();
        let line = read_pending_line(&pending, print, || Ok("another line".to_owned())).await;
        assert_eq!(line.unwrap(), "yes");
    }
}

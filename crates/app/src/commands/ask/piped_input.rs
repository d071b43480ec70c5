//! Appends text that another program pipes into `ask` to the question.

use std::{
    io::{self, BufRead as _, Read as _},
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use tokio::{sync::oneshot, time::timeout};

use crate::run_session::{
    failure::{Code, Failure},
    interrupts::Interrupts,
};
use crate::terminal::{print_note, print_warning};

/// Maximum size of piped text in bytes. Larger input is an error.
const MAX_BYTES: u64 = 1 << 20;
/// Time to wait for the first byte of piped text. After this time, a pipe that is inherited from
/// the parent process is ignored. For other input, a note is printed, and the program continues to
/// wait.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(3);

/// Appends the text of standard input to the question.
///
/// Reads a pipe or a file to its end. Ignores a pipe that is inherited from the parent process and
/// contains no data, because its writer may never close it.
pub(crate) async fn append_piped_text(
    question: String,
    interrupts: &Interrupts,
) -> Result<String, Failure> {
    if !is_stdin_pipe_or_file() {
        return Ok(question);
    }
    let (begun, has_begun) = oneshot::channel();
    let mut reading = tokio::task::spawn_blocking(move || read_stdin(begun));
    let read = async {
        if timeout(FIRST_BYTE_TIMEOUT, has_begun).await.is_err() {
            if is_stdin_inherited() {
                print_warning(
                    "standard input is an open pipe without data and is ignored; `< /dev/null` \
                     avoids the wait",
                );
                return Ok(Vec::new());
            }
            print_note("reading standard input to its end; use `< /dev/null` to skip it");
        }
        (&mut reading).await.map_err(io::Error::other)?
    };
    let bytes = tokio::select! {
        bytes = read => bytes
            .context("cannot read standard input")
            .map_err(Failure::runtime_error)?,
        () = interrupts.wait_for_first_interruption() => {
            return Err(Failure {
                code: Code::Interrupted,
                error: anyhow!("interrupted"),
            });
        }
    };
    join_piped_text(question, bytes)
}

fn join_piped_text(question: String, bytes: Vec<u8>) -> Result<String, Failure> {
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_BYTES {
        return Err(Failure::usage_error(anyhow!(
            "standard input is larger than {MAX_BYTES} bytes: pipe a part of it, or let a tool \
             read the file"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        Failure::usage_error(anyhow!(
            "standard input is not UTF-8 text: convert it, or skip it with `< /dev/null`"
        ))
    })?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.trim().is_empty() {
        return Ok(question);
    }
    Ok(format!("{question}\n\n<stdin>\n{text}\n</stdin>"))
}

/// Reads standard input up to one byte over the limit, so that the caller detects larger input.
fn read_stdin(begun: oneshot::Sender<()>) -> io::Result<Vec<u8>> {
    let mut stdin = io::stdin().lock();
    stdin.fill_buf()?;
    // An error is ignored: the receiver is dropped when its time-out has passed.
    let _ = begun.send(());
    let mut bytes = Vec::new();
    stdin.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(unix)]
fn is_stdin_pipe_or_file() -> bool {
    use rustix::fs::{FileType, fstat};
    fstat(io::stdin()).is_ok_and(|stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        matches!(kind, FileType::Fifo | FileType::RegularFile)
    })
}

#[cfg(not(unix))]
fn is_stdin_pipe_or_file() -> bool {
    use std::io::IsTerminal as _;
    !io::stdin().is_terminal()
}

/// Returns whether the parent process has the same standard input. In this case, it is uncertain
/// whether any program writes to the pipe.
#[cfg(target_os = "linux")]
fn is_stdin_inherited() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |process: &str| {
        let file = std::fs::metadata(format!("/proc/{process}/fd/0")).ok()?;
        Some((file.dev(), file.ino()))
    };
    let parent = std::os::unix::process::parent_id().to_string();
    let own = identity("self");
    own.is_some() && own == identity(&parent)
}

#[cfg(not(target_os = "linux"))]
fn is_stdin_inherited() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piped_text_follows_the_question_in_a_block() {
        let joined = |bytes: &[u8]| join_piped_text("Why?".to_owned(), bytes.to_vec());
        assert_eq!(
            joined(b"a\n b\n\n").unwrap(),
            "Why?\n\n<stdin>\na\n b\n</stdin>"
        );
        for nothing in [&b""[..], b" \n\t\r\n"] {
            assert_eq!(joined(nothing).unwrap(), "Why?");
        }
        let most = usize::try_from(MAX_BYTES).unwrap();
        assert!(joined(&vec![b'a'; most]).is_ok());
        for (bytes, reason) in [(vec![b'a'; most + 1], "larger than"), (vec![0xff], "UTF-8")] {
            let failure = joined(&bytes).unwrap_err();
            assert!(failure.error.to_string().contains(reason));
            assert_eq!(failure.code, Code::Usage);
        }
    }
}

use std::io;

/// Why a recording cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file could not be written or read.
    #[error("the recording cannot be {}: {source}", if *.writing { "written" } else { "read" })]
    Io {
        /// While writing.
        writing: bool,
        /// What the system says.
        source: io::Error,
    },
    /// Something cannot be said in JSON.
    #[error("the recording cannot be written: {0}")]
    Unwritable(#[source] serde_json::Error),
    /// A line is not what a recording holds.
    #[error("line {line} of the recording is damaged: {reason}")]
    Damaged {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The file is something else.
    #[error(
        "this is no recording: its first line must be {{\"type\":\"recording\",\"version\":1,…}}; \
         make one with `--record FILE`"
    )]
    NotOne,
    /// A later version of this program wrote it.
    #[error(
        "the recording has version {found}, and this program reads version 1: take a newer one"
    )]
    Newer {
        /// What it says.
        found: u32,
    },
}

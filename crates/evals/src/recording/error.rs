use std::io;

/// An error that prevents writing or reading a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file could not be written.
    #[error("cannot write the recording: {0}")]
    Write(#[source] io::Error),
    /// The file could not be read.
    #[error("cannot read the recording: {0}")]
    Read(#[source] io::Error),
    /// A value has no JSON form.
    #[error("cannot write the recording: {0}")]
    Serialize(#[from] serde_json::Error),
    /// A line has the wrong content.
    #[error("line {line} of the recording is damaged: {reason}")]
    Damaged {
        /// Line number, from 1.
        line: usize,
        /// The problem.
        reason: String,
    },
    /// The file has another format.
    #[error("the file is not a recording: create one with `--record FILE`")]
    NotARecording,
    /// The recording was written before version 1.
    #[error(
        "the recording has an old format: commit f008d49 is the last one that reads it; record it \
         again with this version"
    )]
    OldFormat,
    /// A newer program wrote the recording.
    #[error("the recording has version {found}, and this program reads version 1: update it")]
    UnknownVersion {
        /// The version in the file.
        found: u32,
    },
}

use std::io;

/// An error while writing or reading a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The recording file could not be written.
    #[error("cannot write the recording: {0}")]
    Write(#[source] io::Error),
    /// The recording could not be read, because its input returned an I/O error.
    #[error("cannot read the recording: {0}")]
    Read(#[source] io::Error),
    /// A message, tool or response could not be converted to JSON for the recording.
    #[error("cannot write the recording: {0}")]
    Serialize(#[from] serde_json::Error),
    /// A line of the recording is invalid: it is not a known JSON line, it is longer than 256 MiB,
    /// or it refers to a message or tool list that no earlier line contains.
    #[error("line {line} of the recording is damaged: {reason}")]
    Damaged {
        /// Number of the invalid line, starting at 1.
        line: usize,
        /// Description of the error in the line.
        reason: String,
    },
    /// The first line is not the header of a recording. This includes recordings in the format
    /// before version 1.
    #[error(
        "the file is not a recording: create one with `--record FILE` (commit f008d49 is the last \
         one that reads recordings of the earlier format)"
    )]
    NotARecording,
    /// A newer program wrote the recording in a format version that this program cannot read.
    #[error(
        "the recording has version {found}, but this program reads version 1: update the program"
    )]
    UnknownVersion {
        /// Format version that the recording file contains.
        found: u32,
    },
}

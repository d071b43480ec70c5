use std::io;

/// An error while writing or reading a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The recording file could not be written.
    #[error("cannot write the recording: {0}")]
    Write(#[source] io::Error),
    /// The recording file could not be read from the input.
    #[error("cannot read the recording: {0}")]
    Read(#[source] io::Error),
    /// A message, tool or response could not be converted to JSON for the recording.
    #[error("cannot write the recording: {0}")]
    Serialize(#[from] serde_json::Error),
    /// A line of the recording file is damaged.
    #[error("line {line} of the recording is damaged: {reason}")]
    Damaged {
        /// Number of the invalid line, starting at 1.
        line: usize,
        /// Description of the error in the line.
        reason: String,
    },
    /// The file is not a recording, or a program before format version 1 wrote it.
    #[error(
        "the file is not a recording: create one with `--record FILE` (commit f008d49 is the last \
         one that reads recordings of the earlier format)"
    )]
    NotARecording,
    /// A newer program wrote the recording in a format version that this program cannot read.
    #[error("the recording has version {found}, and this program reads version 1: update it")]
    UnknownVersion {
        /// Format version that the recording file contains.
        found: u32,
    },
}

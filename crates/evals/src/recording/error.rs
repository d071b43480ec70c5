use std::io;

/// An error while writing or reading a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The recording file could not be written.
    #[error("cannot write the recording: {0}")]
    Write(#[source] io::Error),
    /// The recording file could not be read.
    #[error("cannot read the recording: {0}")]
    Read(#[source] io::Error),
    /// A recorded value could not be converted to JSON.
    #[error("cannot write the recording: {0}")]
    Serialize(#[from] serde_json::Error),
    /// A line of the recording is not valid.
    #[error("line {line} of the recording is damaged: {reason}")]
    Damaged {
        /// Number of the invalid line, starting at 1.
        line: usize,
        /// Description of the problem in the line.
        reason: String,
    },
    /// The file is not a recording, or it has the format from before version 1.
    #[error(
        "the file is not a recording: create one with `--record FILE` (commit f008d49 is the last \
         one that reads recordings of the earlier format)"
    )]
    NotARecording,
    /// The recording has a newer format version than this program supports.
    #[error("the recording has version {found}, and this program reads version 1: update it")]
    UnknownVersion {
        /// The format version in the file.
        found: u32,
    },
}

//! The format of an export: one [`Record`] as JSON per line.
//!
//! The header is the first record and the end is the last one, so that a truncated file is noticed.
//! The messages and runs of a session follow its record. The events and state of a run follow its
//! record. Messages, events and states are in the export byte for byte as they are stored.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use switchboard_domain::{RunRecord, Session};

pub(super) const VERSION: u64 = 1;

pub(super) const FORMAT: &str = "switchboard-sessions";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    Header {
        format: String,
        version: u64,
        /// Time of the export in RFC 3339 format, UTC.
        exported_at: String,
    },
    Session(Session),
    /// A message of a session. The nearest `Session` record before it describes the session.
    Message(Box<RawValue>),
    Run(RunRecord),
    /// An event of a run. The nearest `Run` record before it describes the run.
    Event(Box<RawValue>),
    /// The state of an unfinished run, and the number of `RunMessage` records that follow.
    State {
        messages: u64,
        state: Box<RawValue>,
    },
    /// A message in the conversation of the unfinished run that the last `Run` record describes.
    RunMessage(Box<RawValue>),
    End {
        sessions: u64,
    },
}

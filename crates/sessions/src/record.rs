//! The form of an export: one JSON array of records.
//!
//! The first one is the header and the last one the end, so that a file that was cut off is found out. What
//! belongs to a session follows it, what belongs to a run follows that. Messages, events and states stand there
//! as they are stored, byte for byte.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use switchboard_domain::{RunRecord, Session};

/// The version of the form. A change that an older program would misread makes it one more.
pub(crate) const VERSION: u32 = 1;

pub(crate) const FORMAT: &str = "switchboard-sessions";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    Header(Header),
    Session(Session),
    /// Of the session, in order.
    Messages(Vec<Box<RawValue>>),
    Run(RunRecord),
    /// Of the run, in order.
    Events(Vec<Box<RawValue>>),
    /// Of a run that is not over: what it needs to go on, and how many messages its conversation has.
    State {
        messages: u64,
        state: Box<RawValue>,
    },
    /// Of a run that is not over, in order: its own conversation.
    Conversation(Vec<Box<RawValue>>),
    End {
        sessions: u64,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: String,
    pub(crate) version: u32,
    /// RFC 3339 in UTC.
    pub(crate) exported_at: String,
}

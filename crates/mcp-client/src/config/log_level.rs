//! Log levels of servers.

#![allow(deprecated, reason = "servers of every version still log")]

use rmcp::model::LoggingLevel;
use serde::{Deserialize, Serialize};

/// Severity of a log message from a server (RFC 5424 and MCP), in ascending order.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for the developers of the server.
    Debug,
    /// Messages about normal operation.
    #[default]
    Info,
    /// A normal but significant event.
    Notice,
    /// A possible problem.
    Warning,
    /// An operation failed.
    Error,
    /// A component of the server failed.
    Critical,
    /// A person must act immediately.
    Alert,
    /// The whole server is unusable.
    Emergency,
}

/// Equal levels of the two types. The discriminants of both types are indexes of this array.
const LEVELS: [(LogLevel, LoggingLevel); 8] = [
    (LogLevel::Debug, LoggingLevel::Debug),
    (LogLevel::Info, LoggingLevel::Info),
    (LogLevel::Notice, LoggingLevel::Notice),
    (LogLevel::Warning, LoggingLevel::Warning),
    (LogLevel::Error, LoggingLevel::Error),
    (LogLevel::Critical, LoggingLevel::Critical),
    (LogLevel::Alert, LoggingLevel::Alert),
    (LogLevel::Emergency, LoggingLevel::Emergency),
];

impl LogLevel {
    pub(crate) fn to_mcp(self) -> LoggingLevel {
        LEVELS[self as usize].1
    }

    pub(crate) fn from_mcp(level: LoggingLevel) -> Self {
        LEVELS[level as usize].0
    }
}

//! Severities of the log messages that MCP servers send.

#![allow(deprecated, reason = "servers of every version still log")]

use rmcp::model::LoggingLevel;
use serde::{Deserialize, Serialize};

/// Severity of a log message that an MCP server sends (RFC 5424), in ascending order.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// The message contains details for the developers of the server.
    Debug,
    /// The message describes normal operation.
    #[default]
    Info,
    /// A normal but significant event occurred.
    Notice,
    /// The server detected a possible problem.
    Warning,
    /// An operation of the server failed.
    Error,
    /// A component of the server failed.
    Critical,
    /// A person must act immediately to repair the server.
    Alert,
    /// The whole server is unusable.
    Emergency,
}

/// Pairs of a log level and the rmcp type for the same level. The discriminant of either type is
/// the index of its pair in this array.
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

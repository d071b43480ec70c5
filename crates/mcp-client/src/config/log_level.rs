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

impl LogLevel {
    pub(crate) fn to_mcp(self) -> LoggingLevel {
        match self {
            Self::Debug => LoggingLevel::Debug,
            Self::Info => LoggingLevel::Info,
            Self::Notice => LoggingLevel::Notice,
            Self::Warning => LoggingLevel::Warning,
            Self::Error => LoggingLevel::Error,
            Self::Critical => LoggingLevel::Critical,
            Self::Alert => LoggingLevel::Alert,
            Self::Emergency => LoggingLevel::Emergency,
        }
    }

    pub(crate) fn from_mcp(level: LoggingLevel) -> Self {
        match level {
            LoggingLevel::Debug => Self::Debug,
            LoggingLevel::Info => Self::Info,
            LoggingLevel::Notice => Self::Notice,
            LoggingLevel::Warning => Self::Warning,
            LoggingLevel::Error => Self::Error,
            LoggingLevel::Critical => Self::Critical,
            LoggingLevel::Alert => Self::Alert,
            LoggingLevel::Emergency => Self::Emergency,
        }
    }
}

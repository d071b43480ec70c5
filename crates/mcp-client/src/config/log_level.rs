//! Log levels of servers.

#![allow(deprecated, reason = "servers of every version still log")]

use rmcp::model::LoggingLevel;
use serde::{Deserialize, Serialize};

/// The severity of a server's log message (RFC 5424 and MCP), in ascending order.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For developers of the server.
    Debug,
    /// Normal operation.
    #[default]
    Info,
    /// Normal but significant.
    Notice,
    /// A possible problem.
    Warning,
    /// An error.
    Error,
    /// A failed component.
    Critical,
    /// Immediate action is needed.
    Alert,
    /// The server is unusable.
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

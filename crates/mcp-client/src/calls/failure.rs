//! Failures of one request to a server, before they become a [`ToolCallError`].

use std::time::Duration;

use rmcp::{model::ErrorData, service::ServiceError};
use switchboard_domain::ToolCallError;
use tokio::time::timeout;

use crate::{
    server::{connection::Connection, state::Server},
    transport::{
        failure::{FailureKind, TransportFailure},
        instrumented_transport::has_unread_marker,
        invalid_message::invalid_answer_reason,
    },
};

/// Time to wait until the supervisor reports why a connection ended. The error of the failed
/// request contains that reason.
const END_REASON_TIMEOUT: Duration = Duration::from_secs(1);

/// Reason why a request to a server has no result.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// The server answered with an error, or it requested input that the host did not provide.
    Refused(ErrorData),
    /// The server's answer is not valid. The text is a clause such as `is not valid JSON: …`.
    InvalidAnswer(String),
    /// The server is overloaded and did not process the request. The connection stays usable.
    Busy(String),
    /// The server did not process the request. A retry needs a new connection.
    NotSent(String),
    /// The server requires authorization, so a retry does not help.
    Unavailable(String),
    /// The connection broke during the request. The server may have processed the request.
    Broken(String),
    /// The server violated the MCP protocol or cancelled the request.
    Protocol(String),
}

impl RequestFailure {
    /// Converts an error of rmcp. Marks an unusable connection as stale, so that the supervisor
    /// task replaces the connection.
    pub(crate) async fn from_service_error(
        server: &Server,
        connection: &Connection,
        error: ServiceError,
    ) -> Self {
        let is_stdio = server.config.transport.is_stdio();
        let mark_stale = |reason: &str| connection.mark_stale(server.redact(reason));
        match error {
            // A restarted HTTP server rejects the unknown session before it reads the request, so
            // the request can be sent again.
            ServiceError::McpError(error) if has_unread_marker(&error) && !is_stdio => {
                let reason = format!("{} (code {})", error.message, error.code.0);
                mark_stale(&reason);
                Self::NotSent(reason)
            }
            ServiceError::McpError(error) => match invalid_answer_reason(&error) {
                Some(reason) => Self::InvalidAnswer(reason.to_owned()),
                None => Self::Refused(error),
            },
            ServiceError::TransportSend(error) => {
                let TransportFailure { kind, reason } = TransportFailure::new(&error);
                // The exit status of the process explains a broken pipe better than the pipe error.
                if is_stdio
                    && let Ok(reason) =
                        timeout(END_REASON_TIMEOUT, connection.wait_until_ended()).await
                {
                    return Self::Broken(reason);
                }
                if let FailureKind::NotProcessed | FailureKind::Disconnected = kind {
                    mark_stale(&reason);
                }
                match kind {
                    FailureKind::Unauthorized { .. } => Self::Unavailable(reason),
                    FailureKind::NotProcessed => Self::NotSent(reason),
                    FailureKind::Busy => Self::Busy(reason),
                    FailureKind::Disconnected | FailureKind::Unknown => Self::Broken(reason),
                }
            }
            ServiceError::TransportClosed => {
                let reason = timeout(END_REASON_TIMEOUT, connection.wait_until_ended()).await;
                Self::Broken(
                    reason.unwrap_or_else(|_| "the server closed the connection".to_owned()),
                )
            }
            ServiceError::Cancelled { reason } => {
                let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                Self::Protocol(format!("the server cancelled the request{reason}"))
            }
            other => Self::Protocol(other.to_string()),
        }
    }

    /// Converts the failure to the error that a tool call returns.
    pub(crate) fn into_call_error(self, server: &Server, tool: &str) -> ToolCallError {
        let (name, tool) = (server.config.name.clone(), tool.to_owned());
        let clean = |text: String| server.redact(text);
        match self {
            Self::Refused(error) => ToolCallError::Refused {
                server: name,
                tool,
                code: i64::from(error.code.0),
                message: clean(error.message.into_owned()),
            },
            Self::InvalidAnswer(reason) => ToolCallError::InvalidAnswer {
                server: name,
                tool,
                reason: clean(reason),
            },
            Self::Busy(reason) => ToolCallError::Unavailable {
                server: name,
                reason: clean(format!("overloaded ({reason})")),
            },
            Self::NotSent(reason) | Self::Unavailable(reason) => ToolCallError::Unavailable {
                server: name,
                reason: clean(reason),
            },
            Self::Broken(reason) | Self::Protocol(reason) => ToolCallError::Broken {
                server: name,
                tool,
                reason: clean(reason),
            },
        }
    }
}

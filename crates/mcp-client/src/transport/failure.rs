//! Classification of transport errors: whether the server processed the request, and whether the
//! connection is still usable.

use rmcp::{
    service::ClientInitializeError,
    transport::{
        DynamicTransportError,
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
        },
    },
};

use crate::{
    primitives::error::{root_cause, shorten},
    transport::authorized_client::find_auth_error,
};

/// Reason why the transport received no answer to a request.
#[derive(Debug)]
pub(crate) struct TransportFailure {
    pub(crate) kind: FailureKind,
    pub(crate) reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The server requires authorization and did not process the request. `needs_person` is set if
    /// a person must act, for example log in.
    Unauthorized { needs_person: bool },
    /// The request did not reach the server, or the server rejected it before reading its content.
    NotProcessed,
    /// The server is overloaded and rejected the request. The connection stays usable.
    Busy,
    /// The server may have processed the request. Further requests on the connection will fail.
    Disconnected,
    /// The error does not show whether the server processed the request.
    Unknown,
}

impl TransportFailure {
    pub(crate) fn new(error: &DynamicTransportError) -> Self {
        let error = &error.error;
        match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(error) => Self::from_http_error(error),
            // Only HTTP and stdio transports exist. Any error other than an HTTP error is a broken
            // pipe to a server process.
            None => Self::disconnected(root_cause(error.as_ref())),
        }
    }

    fn disconnected(reason: String) -> Self {
        let kind = FailureKind::Disconnected;
        Self { kind, reason }
    }

    fn unauthorized(challenge: &str) -> Self {
        Self {
            kind: FailureKind::Unauthorized { needs_person: true },
            reason: format!(
                "authorization required ({challenge}): set `authorization` or `headers` in the \
                 server's configuration"
            ),
        }
    }

    fn from_http_error(error: &StreamableHttpError<reqwest::Error>) -> Self {
        if let Some(error) = find_auth_error(error) {
            let needs_person = error.needs_login();
            let kind = FailureKind::Unauthorized { needs_person };
            let reason = error.to_string();
            return Self { kind, reason };
        }
        let (status, reason) = match error {
            StreamableHttpError::AuthRequired(AuthRequiredError {
                www_authenticate_header,
                ..
            })
            | StreamableHttpError::InsufficientScope(InsufficientScopeError {
                www_authenticate_header,
                ..
            }) => return Self::unauthorized(www_authenticate_header),
            StreamableHttpError::Client(error) if error.is_connect() => {
                let kind = FailureKind::NotProcessed;
                let reason = format!("connection failed: {}", root_cause(error));
                return Self { kind, reason };
            }
            // The text of a `reqwest` error contains the whole URL, so only its cause is used.
            StreamableHttpError::Client(error) => (None, root_cause(error)),
            StreamableHttpError::HttpStatus(HttpStatusError { status, .. }) => {
                (Some(*status), format!("HTTP {status}"))
            }
            StreamableHttpError::UnexpectedServerResponse(text) => {
                (parse_status(text), shorten(text))
            }
            StreamableHttpError::SessionExpired => (Some(404), "the session expired".to_owned()),
            other => (None, other.to_string()),
        };
        let kind = match status {
            Some(401 | 403) => return Self::unauthorized(&reason),
            Some(429) => FailureKind::Busy,
            // A server sends these statuses before a tool runs: redirect, not found, method not
            // allowed, gone.
            Some(300..=399 | 404 | 405 | 410) => FailureKind::NotProcessed,
            // A restarted server answers an unknown session with 400, and a gateway sends 503
            // during a restart of the server.
            Some(400 | 503) => FailureKind::Disconnected,
            _ => FailureKind::Unknown,
        };
        Self { kind, reason }
    }

    /// Classifies an error of the MCP handshake with a server.
    pub(crate) fn from_handshake_error(error: &ClientInitializeError) -> Self {
        Self::disconnected(match error {
            ClientInitializeError::TransportError { error, .. } => return Self::new(error),
            ClientInitializeError::LegacyFallbackFailed { discover, fallback } => {
                let fallback = Self::from_handshake_error(fallback);
                if let FailureKind::Unauthorized { .. } = fallback.kind {
                    return fallback;
                }
                let discover = Self::from_handshake_error(discover).reason;
                format!(
                    "{} (after `server/discover` failed: {discover})",
                    fallback.reason
                )
            }
            ClientInitializeError::ExpectedInitResponse(_)
            | ClientInitializeError::ExpectedInitResult(_) => {
                "the answer to the handshake is invalid".to_owned()
            }
            ClientInitializeError::ConflictInitResponseId(..)
            | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
                "the server answered a request that was not sent".to_owned()
            }
            ClientInitializeError::ConnectionClosed(waiting_for) => {
                format!("the server closed the connection before it sent its {waiting_for}")
            }
            ClientInitializeError::JsonRpcError(error) => {
                let message = shorten(&error.message);
                format!("the server refused it: {message} (code {})", error.code.0)
            }
            other => other.to_string(),
        })
    }
}

/// Parses the HTTP status in rmcp's error text for an unexpected response, such as `HTTP 404 …`.
fn parse_status(text: &str) -> Option<u16> {
    text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
}

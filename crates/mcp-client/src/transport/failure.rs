//! Classification of transport errors: whether the server processed the request, and whether the
//! connection is usable.

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
    error::{root_cause, shortened},
    transport::authorized_client::auth_error,
};

/// Why the transport has no answer to a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TransportFailure {
    /// The server asks for authorization. It did not process the request.
    Unauthorized { challenge: String },
    /// The server needs a token, and none is available. It did not process the request.
    Login {
        reason: String,
        /// Whether a person must log in.
        needs_person: bool,
    },
    /// The request did not reach the server, or the server rejected it unread.
    NotProcessed { reason: String },
    /// The server rejected the request because of its load. The connection is usable.
    Busy { reason: String },
    /// Any other error. The server may have processed the request.
    Unknown {
        reason: String,
        /// Whether further requests on this connection will fail too.
        connection_unusable: bool,
    },
}

impl TransportFailure {
    pub(crate) fn new(error: &DynamicTransportError) -> Self {
        let error = &error.error;
        match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(error) => Self::of_http(error),
            // A broken pipe.
            None => Self::Unknown {
                reason: root_cause(error.as_ref()),
                connection_unusable: true,
            },
        }
    }

    fn of_http(error: &StreamableHttpError<reqwest::Error>) -> Self {
        if let Some(error) = auth_error(error) {
            return Self::Login {
                reason: error.to_string(),
                needs_person: error.needs_login(),
            };
        }
        let (status, reason) = match error {
            StreamableHttpError::AuthRequired(AuthRequiredError {
                www_authenticate_header: challenge,
                ..
            })
            | StreamableHttpError::InsufficientScope(InsufficientScopeError {
                www_authenticate_header: challenge,
                ..
            }) => {
                return Self::Unauthorized {
                    challenge: challenge.clone(),
                };
            }
            StreamableHttpError::Client(error) if error.is_connect() => {
                let reason = format!("no connection: {}", root_cause(error));
                return Self::NotProcessed { reason };
            }
            // The text of a reqwest error contains the whole URL, so only its cause is used.
            StreamableHttpError::Client(error) => (None, root_cause(error)),
            StreamableHttpError::HttpStatus(HttpStatusError { status, .. }) => {
                (Some(*status), format!("HTTP {status}"))
            }
            StreamableHttpError::UnexpectedServerResponse(text) => {
                (status_in(text), shortened(text))
            }
            StreamableHttpError::SessionExpired => (Some(404), "its session expired".to_owned()),
            other => (None, other.to_string()),
        };
        match status {
            Some(401 | 403) => Self::Unauthorized { challenge: reason },
            Some(429) => Self::Busy { reason },
            // Rejected before any tool runs: not found, wrong method, gone, redirected.
            Some(300..=399 | 404 | 405 | 410) => Self::NotProcessed { reason },
            // A restarted server answers so to an unknown session, and a gateway during a restart.
            Some(400 | 503) => Self::Unknown {
                reason,
                connection_unusable: true,
            },
            _ => Self::Unknown {
                reason,
                connection_unusable: false,
            },
        }
    }

    pub(crate) fn into_reason(self) -> String {
        match self {
            Self::Unauthorized { challenge } => format!("it asks for authorization ({challenge})"),
            Self::Login { reason, .. }
            | Self::NotProcessed { reason }
            | Self::Busy { reason }
            | Self::Unknown { reason, .. } => reason,
        }
    }
}

/// Parses the status at the start of rmcp's text for an unexpected answer.
fn status_in(text: &str) -> Option<u16> {
    text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
}

/// Classifies the error of a handshake.
pub(crate) fn handshake_failure(error: &ClientInitializeError) -> TransportFailure {
    let reason = match error {
        ClientInitializeError::TransportError { error, .. } => {
            return TransportFailure::new(error);
        }
        ClientInitializeError::LegacyFallbackFailed { discover, fallback } => {
            let discover = handshake_failure(discover);
            match handshake_failure(fallback) {
                failure @ (TransportFailure::Unauthorized { .. }
                | TransportFailure::Login { .. }) => return failure,
                fallback => format!(
                    "{} (and `server/discover` before it: {})",
                    fallback.into_reason(),
                    discover.into_reason()
                ),
            }
        }
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "its answer to the handshake is not valid".to_owned()
        }
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "it answered a request that was not sent".to_owned()
        }
        ClientInitializeError::ConnectionClosed(waiting_for) => {
            format!("it closed the connection before it sent its {waiting_for}")
        }
        ClientInitializeError::JsonRpcError(error) => {
            let message = shortened(&error.message);
            format!("it refused: {message} (code {})", error.code.0)
        }
        other => other.to_string(),
    };
    TransportFailure::Unknown {
        reason,
        connection_unusable: true,
    }
}

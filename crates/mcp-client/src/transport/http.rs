//! Streamable HTTP: the client below rmcp, and what its errors mean.

use std::{collections::HashMap, error::Error, net::IpAddr, sync::Arc, time::Duration};

use reqwest::{
    Client, StatusCode, Url,
    header::{HeaderName, HeaderValue},
    redirect::Policy,
};
use rmcp::{
    service::ClientInitializeError,
    transport::{
        DynamicTransportError, WorkerTransport,
        common::client_side_sse::ExponentialBackoff,
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, InsufficientScopeError,
            StreamableHttpClientTransportConfig, StreamableHttpClientWorker, StreamableHttpError,
        },
    },
};
use secrecy::{ExposeSecret, SecretString};

use crate::{
    error::StartError,
    transport::authorized_client::{AuthorizedClient, found_in},
};

pub(crate) type HttpTransport = WorkerTransport<StreamableHttpClientWorker<AuthorizedClient>>;

/// Requests that may run at once on one server. rmcp's 16 would make a seventeenth call wait for
/// another one to end.
const CONCURRENT_REQUESTS: usize = 256;
const MAX_REDIRECTS: usize = 5;
/// Names that the protocol itself uses; rmcp refuses them only when a request is made.
const RESERVED_HEADERS: [&str; 4] = [
    "accept",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
];

/// A client for one server. It limits connecting only: how long an answer may take is the caller's
/// deadline, and streams have no end.
pub(crate) fn client(url: &str, connect_timeout: Duration) -> Result<Client, StartError> {
    let mut builder = Client::builder();
    if is_loopback(url) {
        // A proxy would look for the server on its own machine.
        builder = builder.no_proxy();
    }
    builder
        .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        .redirect(same_origin_redirects())
        // A server that is restarted closes idle connections; a short life keeps few of them.
        .pool_idle_timeout(Duration::from_secs(20))
        .build()
        .map_err(|error| StartError::Configuration {
            reason: root_cause(&error),
        })
}

fn is_loopback(url: &str) -> bool {
    let url = Url::parse(url).ok();
    match url.as_ref().and_then(Url::host_str) {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback()),
        None => false,
    }
}

/// The configured headers, checked and marked so that no log shows them.
pub(crate) fn headers(
    configured: &[(String, SecretString)],
) -> Result<HashMap<HeaderName, HeaderValue>, StartError> {
    let unusable = |reason: String| StartError::Configuration { reason };
    configured
        .iter()
        .map(|(name, value)| {
            let key = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| unusable(format!("`{name}` is no header name")))?;
            if RESERVED_HEADERS.contains(&key.as_str()) {
                return Err(unusable(format!(
                    "the protocol itself sets header `{name}`"
                )));
            }
            let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
                unusable(format!(
                    "the value of header `{name}` has characters that headers cannot have"
                ))
            })?;
            value.set_sensitive(true);
            Ok((key, value))
        })
        .collect()
}

/// A fresh transport. It connects with its first message.
pub(crate) fn transport(
    client: AuthorizedClient,
    url: &str,
    headers: HashMap<HeaderName, HeaderValue>,
) -> HttpTransport {
    // By default rmcp tries for ever to take up a broken stream, waiting twice as long each time, and
    // the call that waits for it hangs.
    let mut retries = ExponentialBackoff::default();
    retries.base_duration = Duration::from_millis(500);
    retries.max_times = Some(5);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers)
        .max_concurrent_requests(CONCURRENT_REQUESTS);
    config.retry_config = Arc::new(retries);
    WorkerTransport::spawn(StreamableHttpClientWorker::new(client, config))
}

/// Follows a redirect only where it keeps the message (307, 308) and stays on the same origin:
/// elsewhere the configured headers would be given to somebody else.
fn same_origin_redirects() -> Policy {
    Policy::custom(|attempt| {
        let keeps_message = matches!(
            attempt.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let same_origin = attempt
            .previous()
            .first()
            .is_some_and(|first| first.origin() == attempt.url().origin());
        if keeps_message && same_origin && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// What became of a request that the transport could not deliver or get an answer to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server wants to know who asks. Nothing was done.
    Unauthorized { challenge: String },
    /// It wants a token, and there is none to be had. Nothing was done.
    Login {
        reason: String,
        /// A person has to log in.
        needs_person: bool,
    },
    /// It did not reach the server, or the server turned it away unread. Nothing was done.
    NotDone { reason: String },
    /// It wants fewer requests. Nothing was done, and the connection is sound.
    Busy { reason: String },
    /// Anything else: the server may have acted on it.
    Unknown {
        reason: String,
        /// Whether what comes next on this connection will fare no better.
        spoilt: bool,
    },
}

impl Failure {
    pub(crate) fn of(error: &DynamicTransportError) -> Self {
        match error
            .error
            .downcast_ref::<StreamableHttpError<reqwest::Error>>()
        {
            Some(error) => Self::of_http(error),
            // A pipe that cannot be written to.
            None => Self::Unknown {
                reason: root_cause(error.error.as_ref()),
                spoilt: true,
            },
        }
    }

    fn of_http(error: &StreamableHttpError<reqwest::Error>) -> Self {
        if let Some(error) = found_in(error) {
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
                return Self::NotDone { reason };
            }
            // The text of a reqwest error holds the whole address, so only its cause is used.
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
            // Not found, wrong method, gone: turned away before any tool runs.
            Some(300..=399 | 404 | 405 | 410) => Self::NotDone { reason },
            // Servers that were restarted answer so to a session that they do not know; and what is
            // in front of them, while they are.
            Some(400 | 503) => Self::Unknown {
                reason,
                spoilt: true,
            },
            _ => Self::Unknown {
                reason,
                spoilt: false,
            },
        }
    }

    pub(crate) fn into_reason(self) -> String {
        match self {
            Self::Unauthorized { challenge } => format!("it asks for authorization ({challenge})"),
            Self::Login { reason, .. }
            | Self::NotDone { reason }
            | Self::Busy { reason }
            | Self::Unknown { reason, .. } => reason,
        }
    }
}

/// An answer that is no MCP is often a whole web page.
pub(crate) fn shortened(text: &str) -> String {
    const ENOUGH: usize = 200;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(ENOUGH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// rmcp puts the status of an answer that it cannot use in front of its text.
fn status_in(text: &str) -> Option<u16> {
    text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
}

/// What failed the handshake, in words.
pub(crate) fn handshake_failure(error: &ClientInitializeError) -> Failure {
    let reason = match error {
        ClientInitializeError::TransportError { error, .. } => return Failure::of(error),
        ClientInitializeError::LegacyFallbackFailed { discover, fallback } => {
            return match (handshake_failure(discover), handshake_failure(fallback)) {
                (_, failure @ (Failure::Unauthorized { .. } | Failure::Login { .. })) => failure,
                (discover, fallback) => Failure::Unknown {
                    spoilt: true,
                    reason: format!(
                        "{} (and `server/discover` before it: {})",
                        fallback.into_reason(),
                        discover.into_reason()
                    ),
                },
            };
        }
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_) => {
            "its answer to the handshake could not be read".to_owned()
        }
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "it answered something that was not asked".to_owned()
        }
        ClientInitializeError::ConnectionClosed(waiting_for) => {
            format!("it closed the connection instead of sending its {waiting_for}")
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!(
                "it refused: {} (code {})",
                shortened(&error.message),
                error.code.0
            )
        }
        other => other.to_string(),
    };
    Failure::Unknown {
        reason,
        spoilt: true,
    }
}

/// The innermost cause, which says what happened without the layers above it.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
#[path = "http_redirect_tests.rs"]
mod redirect_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_page_is_shortened() {
        assert_eq!(
            shortened("HTTP 404:\n  <p>\tno</p>\n"),
            "HTTP 404: <p> no</p>"
        );
        assert_eq!(shortened(&"ä\n".repeat(500)).chars().count(), 201);
    }

    #[test]
    fn this_machine_is_not_reached_through_a_proxy() {
        for (url, expected) in [
            ("http://localhost:8080/mcp", true),
            ("http://127.0.0.1/mcp", true),
            ("http://127.9.9.9/mcp", true),
            ("http://[::1]:80/mcp", true),
            ("http://localhost.example.org/mcp", false),
            ("http://10.0.0.1/mcp", false),
            ("no address", false),
        ] {
            assert_eq!(is_loopback(url), expected, "{url}");
        }
    }

    #[test]
    fn headers_are_checked_and_never_shown() {
        let good = [("X-Key".to_owned(), "secret-1".into())];
        let headers_made = headers(&good).unwrap();
        assert!(!format!("{headers_made:?}").contains("secret-1"));
        for (name, value, expected) in [
            ("no name", "v", "`no name` is no header name"),
            ("X-Key", "line\nsecret-2", "the value of header `X-Key`"),
            ("Mcp-Session-Id", "v", "the protocol itself sets header"),
        ] {
            let error = headers(&[(name.to_owned(), value.into())])
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("secret-2"), "{error}");
        }
    }

    #[test]
    fn only_what_was_turned_away_unread_counts_as_not_done() {
        let of_status = |status: u16| {
            Failure::of_http(&StreamableHttpError::HttpStatus(HttpStatusError::new(
                status, None,
            )))
        };
        assert!(matches!(of_status(404), Failure::NotDone { .. }));
        assert!(matches!(of_status(429), Failure::Busy { .. }));
        assert!(matches!(of_status(503), Failure::Unknown { .. }));
        let of_text = |text: &'static str| {
            Failure::of_http(&StreamableHttpError::UnexpectedServerResponse(text.into()))
        };
        assert!(matches!(
            of_text("HTTP 401 Unauthorized: x"),
            Failure::Unauthorized { .. }
        ));
        assert!(matches!(
            of_text("HTTP 302 Found: "),
            Failure::NotDone { .. }
        ));
        assert!(matches!(of_text("something"), Failure::Unknown { .. }));
    }
}

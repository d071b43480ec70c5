//! Connecting to a server: the choice of the handshake, and a second attempt if the first fails.
//!
//! 2026-07-28 starts with `server/discover`, older versions with `initialize`. Unless the
//! configuration fixes the version, the client tries `server/discover` first.

#![allow(deprecated, reason = "servers of 2025-11-25 and older still log")]

use std::{pin::pin, sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{ClientRequest, ErrorCode, ProtocolVersion, SetLevelRequest, SetLevelRequestParams},
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions,
        RunningService,
    },
    transport::Transport,
};
use tokio::{sync::Notify, time::timeout};

use crate::{
    config::ServerTransport,
    error::StartError,
    host::options::Grace,
    server::{
        process::{Pipes, Program, ServerProcess},
        state::Server,
    },
    server_requests::client_handler::ConnectionHandler,
    transport::{
        authorized_client::{AuthorizedClient, http_transport},
        failure::{TransportFailure, handshake_failure},
        http,
        instrumented_transport::InstrumentedTransport,
        open_requests::OpenRequests,
        server_stream::ServerStream,
        stdio_transport::StdioTransport,
    },
};

/// How long `server/discover` may take over HTTP, at most a third of the connect time-out. Without an
/// answer the client sends `initialize`. Older servers mostly answer with an error immediately.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size in bytes of a line from a stdio server. Longer lines are dropped. The limit of
/// rmcp, 16 MiB, is too small for a large image in base64.
const MAX_LINE: usize = 64 * 1024 * 1024;
/// How long to wait for output that a process wrote before it ended.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);
/// How long a process that closed its output may take to end.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// Grace periods of a process whose handshake failed, before the second attempt.
const RETRY_GRACE: Grace = Grace {
    after_stdin: Duration::from_millis(300),
    after_term: Duration::from_millis(300),
};

/// A server after the handshake.
pub(crate) struct Connected {
    pub(crate) service: RunningService<RoleClient, ConnectionHandler>,
    /// Notified when the server reports that its list of tools changed.
    pub(crate) tools_changed: Arc<Notify>,
}

/// Why one attempt failed.
struct AttemptError {
    error: StartError,
    /// Whether another handshake may succeed.
    retryable: bool,
    /// Whether the connection broke. An exit then explains the failure.
    broke: bool,
    /// Whether the server does not know `initialize`.
    is_modern: bool,
}

impl From<StartError> for AttemptError {
    fn from(error: StartError) -> Self {
        Self {
            error,
            retryable: false,
            broke: false,
            is_modern: false,
        }
    }
}

/// The handshake of one attempt.
enum Handshake {
    /// `server/discover`, then `initialize` on the same connection.
    Auto,
    Discover,
    Initialize(ProtocolVersion),
}

impl Handshake {
    fn latest_initialize() -> Self {
        Self::Initialize(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    /// Returns the handshake for the configured protocol version.
    fn configured(server: &Server) -> Option<Self> {
        let configured = server.config.protocol_version.as_deref()?;
        let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
        let version = known.find(|version| version.as_str() == configured)?;
        Some(if version.has_initialize() {
            Self::Initialize(version.clone())
        } else {
            Self::Discover
        })
    }

    /// Returns the mode for rmcp, and the version for `initialize`.
    fn mode(&self) -> (ClientLifecycleMode, ProtocolVersion) {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        match self {
            Self::Auto => (
                ClientLifecycleMode::Auto {
                    preferred_versions,
                    legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
                },
                ProtocolVersion::LATEST_WITH_INITIALIZE,
            ),
            Self::Discover => (
                ClientLifecycleMode::Discover { preferred_versions },
                ProtocolVersion::LATEST,
            ),
            Self::Initialize(version) => (ClientLifecycleMode::Initialize, version.clone()),
        }
    }
}

/// Connects to a server. `process` receives the process as soon as it runs, so that the caller can
/// end it if this future is dropped.
pub(crate) async fn connect(
    server: &Server,
    process: &mut Option<ServerProcess>,
) -> Result<Connected, StartError> {
    match &server.config.transport {
        ServerTransport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let program = Program {
                command,
                args,
                env,
                cwd: cwd.as_deref(),
            };
            connect_stdio(server, &program, process).await
        }
        ServerTransport::StreamableHttp { url, headers } => {
            let client = http::client(url, server.config.connect_timeout)?;
            let headers = http::headers(headers)?;
            connect_http(server, |stream| {
                let session = server.auth_session.clone();
                let client = AuthorizedClient::new(client.clone(), session, stream);
                http_transport(client, url, headers.clone())
            })
            .await
        }
        ServerTransport::Unusable { reason } => Err(StartError::Configuration {
            reason: reason.clone(),
        }),
    }
}

async fn connect_stdio(
    server: &Server,
    program: &Program<'_>,
    process: &mut Option<ServerProcess>,
) -> Result<Connected, StartError> {
    let configured = Handshake::configured(server);
    let is_configured = configured.is_some();
    let handshake = configured.unwrap_or(Handshake::Auto);
    let first = match attempt_stdio(server, program, process, &handshake).await {
        Ok(connected) => return Ok(connected),
        Err(failed) if is_configured || !failed.retryable => return Err(failed.error),
        Err(failed) => failed,
    };
    let error = first.error;
    tracing::debug!(server = server.config.name, %error, "second attempt in a new process");
    if let Some(process) = process.take() {
        process.end(RETRY_GRACE).await;
    }
    server.stderr.clear();
    // A server of 2026-07-28 that starts slowly answers `server/discover` after rmcp's time limit.
    let handshake = if first.is_modern {
        Handshake::Discover
    } else {
        Handshake::latest_initialize()
    };
    let second = attempt_stdio(server, program, process, &handshake).await;
    second.map_err(|failed| failed.error)
}

async fn attempt_stdio(
    server: &Server,
    program: &Program<'_>,
    process: &mut Option<ServerProcess>,
    handshake: &Handshake,
) -> Result<Connected, AttemptError> {
    let group = server.new_group();
    let (started, Pipes { stdin, stdout }) = ServerProcess::spawn(
        &server.config.name,
        program,
        group,
        server.stderr.clone(),
        server.redactor.clone(),
    )?;
    let process = process.insert(started);
    let stdio = StdioTransport::new(stdout, stdin, MAX_LINE);
    let transport = InstrumentedTransport::new(stdio, server.config.log_level);
    let open_requests = transport.open_requests();
    let mut handshake = pin!(shake_hands(server, transport, open_requests, handshake));
    let failed = tokio::select! {
        biased;
        result = &mut handshake => match result {
            Ok(connected) => return Ok(connected),
            Err(failed) => failed,
        },
        status = process.exited() => {
            // The pipe may still hold the answer, and a grandchild may keep it open.
            if let Ok(Ok(connected)) = timeout(LAST_OUTPUT_TIMEOUT, &mut handshake).await {
                return Ok(connected);
            }
            return Err(exited(status));
        }
    };
    if !failed.broke {
        return Err(failed);
    }
    // A closed pipe is mostly the first sign of an exit, which explains more.
    match timeout(EXIT_TIMEOUT, process.exited()).await {
        Ok(status) => Err(exited(status)),
        Err(_) => Err(failed),
    }
}

async fn connect_http<T, F>(server: &Server, transport: F) -> Result<Connected, StartError>
where
    T: Transport<RoleClient> + 'static,
    F: Fn(ServerStream) -> T,
{
    // Every handshake has a new transport: rmcp sends no second message on a transport whose first
    // message has no answer.
    let attempt = async |handshake: Handshake| {
        let stream = ServerStream::default();
        let inner = transport(stream.clone());
        let transport = InstrumentedTransport::new(inner, server.config.log_level);
        let open_requests = transport.open_requests();
        let connected = shake_hands(server, transport, open_requests, &handshake).await;
        if connected.is_ok() {
            stream.settled().await;
        }
        connected
    };
    if let Some(handshake) = Handshake::configured(server) {
        return attempt(handshake).await.map_err(|failed| failed.error);
    }
    let discover = attempt(Handshake::Discover);
    let first_error = match timeout(discovery_timeout(server), discover).await {
        Ok(Ok(connected)) => return Ok(connected),
        Ok(Err(failed)) if !failed.retryable => return Err(failed.error),
        Ok(Err(failed)) => match failed.error {
            StartError::Handshake { reason } => reason,
            other => other.to_string(),
        },
        Err(_) => "no answer".to_owned(),
    };
    tracing::debug!(
        server = server.config.name,
        first_error,
        "trying `initialize`"
    );
    let second = attempt(Handshake::latest_initialize()).await;
    second.map_err(|failed| match failed.error {
        StartError::Handshake { reason } if reason != first_error => StartError::Handshake {
            reason: format!("{reason} (and `server/discover` before it: {first_error})"),
        },
        other => other,
    })
}

async fn shake_hands<T>(
    server: &Server,
    transport: T,
    open_requests: OpenRequests,
    handshake: &Handshake,
) -> Result<Connected, AttemptError>
where
    T: Transport<RoleClient> + 'static,
{
    let tools_changed = Arc::new(Notify::new());
    let (mode, version) = handshake.mode();
    let handler = ConnectionHandler::new(server, open_requests, tools_changed.clone(), version);
    match handler.serve_with_lifecycle(transport, mode).await {
        Ok(service) => {
            set_log_level(server, service.peer()).await;
            Ok(Connected {
                service,
                tools_changed,
            })
        }
        Err(error) => Err(attempt_error(server, &error)),
    }
}

/// Sends the log level to a server of 2025-11-25 or older. The answer is ignored: messages below
/// the level are dropped in any case.
async fn set_log_level(server: &Server, peer: &Peer<RoleClient>) {
    let is_supported = peer.peer_info().is_some_and(|info| {
        info.protocol_version.has_initialize() && info.capabilities.logging.is_some()
    });
    if !is_supported {
        return;
    }
    let params = SetLevelRequestParams::new(server.config.log_level.to_mcp());
    let request = ClientRequest::SetLevelRequest(SetLevelRequest::new(params));
    let options = PeerRequestOptions::no_options();
    if let Err(error) = peer.send_request_with_option(request, options).await {
        tracing::debug!(server = server.config.name, %error, "the log level was not set");
    }
}

fn discovery_timeout(server: &Server) -> Duration {
    DISCOVERY_TIMEOUT.min(server.config.connect_timeout / 3)
}

fn exited(status: String) -> AttemptError {
    AttemptError {
        error: StartError::Exited { status },
        retryable: true,
        broke: true,
        is_modern: false,
    }
}

/// Returns whether the connection broke, in contrast to a negative answer.
fn connection_broke(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => connection_broke(fallback),
        _ => false,
    }
}

fn attempt_error(server: &Server, error: &ClientInitializeError) -> AttemptError {
    if let ClientInitializeError::NoCompatibleProtocolVersion {
        server_supported, ..
    } = error
    {
        let server_supports = server_supported.iter().map(ToString::to_string).collect();
        return AttemptError {
            error: StartError::NoCommonVersion { server_supports },
            retryable: true,
            broke: false,
            is_modern: false,
        };
    }
    match handshake_failure(error) {
        TransportFailure::Unauthorized { challenge } => StartError::Unauthorized {
            challenge: server.redact(challenge),
        }
        .into(),
        TransportFailure::Login {
            reason,
            needs_person,
        } => StartError::Login {
            reason: server.redact(reason),
            needs_person,
        }
        .into(),
        failure => AttemptError {
            error: StartError::Handshake {
                reason: server.redact(failure.into_reason()),
            },
            retryable: true,
            broke: connection_broke(error),
            is_modern: matches!(
                error,
                ClientInitializeError::JsonRpcError(error)
                    if error.code == ErrorCode::METHOD_NOT_FOUND
            ),
        },
    }
}

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
        process::{Pipes, ServerProcess},
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

/// How long `server/discover` may take over HTTP, at most a third of the connect time-out. Without
/// an answer the client sends `initialize`. Older servers mostly answer with an error immediately.
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

/// The handshake of one attempt: the mode for rmcp, and the version for `initialize`.
type Handshake = (ClientLifecycleMode, ProtocolVersion);

/// `server/discover`, then `initialize` on the same connection.
fn auto() -> Handshake {
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    (mode, ProtocolVersion::LATEST_WITH_INITIALIZE)
}

fn discover() -> Handshake {
    let mode = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::LATEST],
    };
    (mode, ProtocolVersion::LATEST)
}

fn initialize(version: ProtocolVersion) -> Handshake {
    (ClientLifecycleMode::Initialize, version)
}

/// Returns the handshake for the configured protocol version.
fn configured(server: &Server) -> Option<Handshake> {
    let configured = server.config.protocol_version.as_deref()?;
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
    let version = known.find(|version| version.as_str() == configured)?;
    Some(if version.has_initialize() {
        initialize(version.clone())
    } else {
        discover()
    })
}

/// Connects to a server. `process` receives the process as soon as it runs, so that the caller can
/// end it if this future is dropped.
pub(crate) async fn connect(
    server: &Arc<Server>,
    process: &mut Option<ServerProcess>,
) -> Result<Connected, StartError> {
    match &server.config.transport {
        ServerTransport::Stdio { .. } => connect_stdio(server, process).await,
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
    server: &Arc<Server>,
    process: &mut Option<ServerProcess>,
) -> Result<Connected, StartError> {
    let configured = configured(server);
    let is_configured = configured.is_some();
    let handshake = configured.unwrap_or_else(auto);
    let first = match attempt_stdio(server, process, handshake).await {
        Ok(connected) => return Ok(connected),
        Err(error) if is_configured || !error.is_retryable() => return Err(error),
        Err(error) => error,
    };
    tracing::debug!(server = server.config.name, %first, "second attempt in a new process");
    if let Some(process) = process.take() {
        process.end(RETRY_GRACE).await;
    }
    server.stderr.clear();
    // A server of 2026-07-28 that starts slowly answers `server/discover` after rmcp's time limit.
    let handshake = match first {
        StartError::Handshake {
            is_modern: true, ..
        } => discover(),
        _ => initialize(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    attempt_stdio(server, process, handshake).await
}

async fn attempt_stdio(
    server: &Arc<Server>,
    process: &mut Option<ServerProcess>,
    handshake: Handshake,
) -> Result<Connected, StartError> {
    let (started, Pipes { stdin, stdout }) = ServerProcess::spawn(
        &server.config,
        server.new_group(),
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
            return Err(StartError::Exited { status });
        }
    };
    if !matches!(failed, StartError::Handshake { broke: true, .. }) {
        return Err(failed);
    }
    // A closed pipe is mostly the first sign of an exit, which explains more.
    match timeout(EXIT_TIMEOUT, process.exited()).await {
        Ok(status) => Err(StartError::Exited { status }),
        Err(_) => Err(failed),
    }
}

async fn connect_http<T, F>(server: &Arc<Server>, transport: F) -> Result<Connected, StartError>
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
        let connected = shake_hands(server, transport, open_requests, handshake).await;
        if connected.is_ok() {
            stream.settled().await;
        }
        connected
    };
    if let Some(handshake) = configured(server) {
        return attempt(handshake).await;
    }
    let discover = attempt(discover());
    let first_error = match timeout(discovery_timeout(server), discover).await {
        Ok(Ok(connected)) => return Ok(connected),
        Ok(Err(error)) if !error.is_retryable() => return Err(error),
        Ok(Err(StartError::Handshake { reason, .. })) => reason,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer".to_owned(),
    };
    tracing::debug!(
        server = server.config.name,
        first_error,
        "trying `initialize`"
    );
    let mut second = attempt(initialize(ProtocolVersion::LATEST_WITH_INITIALIZE)).await;
    if let Err(StartError::Handshake { reason, .. }) = &mut second
        && *reason != first_error
    {
        *reason = format!("{reason} (and `server/discover` before it: {first_error})");
    }
    second
}

async fn shake_hands<T>(
    server: &Arc<Server>,
    transport: T,
    open_requests: OpenRequests,
    (mode, version): Handshake,
) -> Result<Connected, StartError>
where
    T: Transport<RoleClient> + 'static,
{
    let tools_changed = Arc::new(Notify::new());
    let handler = ConnectionHandler {
        server: Arc::clone(server),
        open_requests,
        tools_changed: tools_changed.clone(),
        version,
    };
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

/// Returns whether the connection broke, in contrast to a negative answer.
fn connection_broke(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => connection_broke(fallback),
        _ => false,
    }
}

fn attempt_error(server: &Server, error: &ClientInitializeError) -> StartError {
    if let ClientInitializeError::NoCompatibleProtocolVersion {
        server_supported, ..
    } = error
    {
        let server_supports = server_supported.iter().map(ToString::to_string).collect();
        return StartError::NoCommonVersion { server_supports };
    }
    match handshake_failure(error) {
        TransportFailure::Unauthorized { challenge } => StartError::Unauthorized {
            challenge: server.redact(challenge),
        },
        TransportFailure::Login {
            reason,
            needs_person,
        } => StartError::Login {
            reason: server.redact(reason),
            needs_person,
        },
        failure => StartError::Handshake {
            reason: server.redact(failure.into_reason()),
            broke: connection_broke(error),
            is_modern: matches!(
                error,
                ClientInitializeError::JsonRpcError(error)
                    if error.code == ErrorCode::METHOD_NOT_FOUND
            ),
        },
    }
}

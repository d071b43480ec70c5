//! Connects to a server. Selects the handshake, and tries another one if the first fails.
//!
//! MCP 2026-07-28 starts with `server/discover`, older versions with `initialize`. Unless the
//! configuration sets the version, the client tries `server/discover` first.

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
use secrecy::SecretString;
use tokio::time::timeout;

use crate::{
    auth::http_client,
    config::ServerTransport,
    options::ShutdownGracePeriods,
    primitives::error::StartError,
    server::{client_handler::ConnectionHandler, process::ServerProcess, state::Server},
    transport::{
        authorized_client::{AuthorizedClient, http_transport},
        failure::{FailureKind, TransportFailure},
        instrumented_transport::InstrumentedTransport,
        server_stream::ServerStream,
        stdio_transport::StdioTransport,
    },
};

/// Time limit of `server/discover` over HTTP. A shorter limit applies if a third of the connect
/// time-out is shorter. If no answer arrives in time, the client sends `initialize` instead. Most
/// older servers answer `server/discover` with an error immediately.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size in bytes of a line from a stdio server. Longer lines are dropped. The default of
/// rmcp, 16 MiB, is too small for a large image in base64.
const MAX_LINE: usize = 64 * 1024 * 1024;
/// Time limit to read the output that a server process wrote before it exited.
pub(super) const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);
/// Time limit for a server process to exit after it closed its output.
pub(super) const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// Short grace periods for a process whose handshake failed, before the second attempt starts.
const RETRY_GRACE: ShutdownGracePeriods = ShutdownGracePeriods {
    after_stdin: Duration::from_millis(300),
    after_term: Duration::from_millis(300),
};

/// rmcp service of a connection after the handshake.
pub(super) type Service = RunningService<RoleClient, ConnectionHandler>;

/// Handshake to perform: rmcp's lifecycle mode, and the protocol version sent in `initialize`.
type Handshake = (ClientLifecycleMode, ProtocolVersion);

const NEWEST: ProtocolVersion = ProtocolVersion::LATEST;
const NEWEST_LEGACY: ProtocolVersion = ProtocolVersion::LATEST_WITH_INITIALIZE;

/// Returns the handshake for a server whose protocol version is not known: `server/discover`, and
/// if that fails, `initialize` on the same connection.
fn auto_handshake() -> Handshake {
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![NEWEST],
        legacy_version: Some(NEWEST_LEGACY),
    };
    (mode, NEWEST_LEGACY)
}

fn discover_handshake() -> Handshake {
    let preferred_versions = vec![NEWEST];
    let mode = ClientLifecycleMode::Discover { preferred_versions };
    (mode, NEWEST)
}

fn initialize_handshake() -> Handshake {
    (ClientLifecycleMode::Initialize, NEWEST_LEGACY)
}

/// Returns the handshake for the configured protocol version. Returns `None` if the configuration
/// sets no version.
fn configured_handshake(server: &Server) -> Option<Handshake> {
    let configured = server.config.protocol_version.as_deref()?;
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
    let version = known.find(|version| version.as_str() == configured)?;
    Some(if version.has_initialize() {
        (ClientLifecycleMode::Initialize, version.clone())
    } else {
        discover_handshake()
    })
}

/// Connects to a server. A new process is stored in `process` immediately, so that the caller can
/// end it if this future is dropped.
pub(super) async fn connect(
    server: &Arc<Server>,
    process: &mut Option<ServerProcess>,
) -> Result<Service, StartError> {
    match &server.config.transport {
        ServerTransport::Stdio { .. } => connect_stdio(server, process).await,
        ServerTransport::StreamableHttp { url, headers } => {
            connect_http(server, url, headers).await
        }
        ServerTransport::Unusable { reason } => Err(StartError::Configuration {
            reason: reason.clone(),
        }),
    }
}

async fn connect_stdio(
    server: &Arc<Server>,
    process: &mut Option<ServerProcess>,
) -> Result<Service, StartError> {
    if let Some(handshake) = configured_handshake(server) {
        return try_connect_stdio(server, process, handshake).await;
    }
    let first = match try_connect_stdio(server, process, auto_handshake()).await {
        Ok(service) => return Ok(service),
        Err(error) if !error.is_retryable() => return Err(error),
        Err(error) => error,
    };
    tracing::debug!(server = server.config.name, %first, "retrying the handshake in a new process");
    if let Some(process) = process.take() {
        process.stop_gracefully(RETRY_GRACE).await;
    }
    server.stderr.clear();
    // A slow server of version 2026-07-28 answers `server/discover` after rmcp's time limit, and
    // rejects the `initialize` that rmcp then sends. The second attempt waits for the answer.
    let handshake = match first {
        StartError::Handshake {
            is_modern: true, ..
        } => discover_handshake(),
        _ => initialize_handshake(),
    };
    try_connect_stdio(server, process, handshake).await
}

async fn try_connect_stdio(
    server: &Arc<Server>,
    process: &mut Option<ServerProcess>,
    handshake: Handshake,
) -> Result<Service, StartError> {
    let (started, stdin, stdout) = ServerProcess::spawn(server)?;
    let process = process.insert(started);
    let transport = StdioTransport::new(stdout, stdin, MAX_LINE);
    let mut handshake = pin!(perform_handshake(server, transport, handshake));
    let failed = tokio::select! {
        biased;
        result = &mut handshake => match result {
            Ok(service) => return Ok(service),
            Err(failed) => failed,
        },
        status = process.wait_for_exit() => {
            // The process has exited, but its answer to the handshake may still be in the pipe. The
            // wait for the end of the handshake is limited, because a child process of the server
            // may keep the pipe open.
            if let Ok(Ok(service)) = timeout(LAST_OUTPUT_TIMEOUT, &mut handshake).await {
                return Ok(service);
            }
            return Err(StartError::Exited { status });
        }
    };
    // The pipe to the process broke. The process usually exits soon afterwards, and its exit status
    // explains the failure better than the broken pipe.
    if let StartError::Handshake { broke: true, .. } = failed
        && let Ok(status) = timeout(EXIT_TIMEOUT, process.wait_for_exit()).await
    {
        return Err(StartError::Exited { status });
    }
    Err(failed)
}

async fn connect_http(
    server: &Arc<Server>,
    url: &str,
    headers: &[(String, SecretString)],
) -> Result<Service, StartError> {
    let client = http_client::build_client(url, server.config.connect_timeout)?;
    let headers = http_client::parse_headers(headers)?;
    // Every attempt uses a new transport, because rmcp sends no second message on a transport whose
    // first message got no answer.
    let attempt = async |handshake: Handshake| {
        let stream = ServerStream::default();
        let client = AuthorizedClient {
            http: client.clone(),
            session: server.auth_session.clone(),
            stream: stream.clone(),
        };
        let transport = http_transport(client, url, headers.clone());
        let service = perform_handshake(server, transport, handshake).await?;
        stream.wait_for_answer().await;
        Ok(service)
    };
    if let Some(handshake) = configured_handshake(server) {
        return attempt(handshake).await;
    }
    let limit = DISCOVERY_TIMEOUT.min(server.config.connect_timeout / 3);
    let first_error = match timeout(limit, attempt(discover_handshake())).await {
        Ok(Ok(service)) => return Ok(service),
        Ok(Err(error)) if !error.is_retryable() => return Err(error),
        Ok(Err(StartError::Handshake { reason, .. })) => reason,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no response".to_owned(),
    };
    tracing::debug!(
        server = server.config.name,
        first_error,
        "trying `initialize`"
    );
    let mut second = attempt(initialize_handshake()).await;
    if let Err(StartError::Handshake { reason, .. }) = &mut second
        && *reason != first_error
    {
        *reason = format!("{reason} (after `server/discover` failed: {first_error})");
    }
    second
}

async fn perform_handshake<T: Transport<RoleClient> + 'static>(
    server: &Arc<Server>,
    transport: T,
    (mode, version): Handshake,
) -> Result<Service, StartError> {
    let transport = InstrumentedTransport::new(transport, server.config.log_level.to_mcp());
    let handler = ConnectionHandler {
        server: Arc::clone(server),
        open_requests: transport.open_requests(),
        version,
    };
    let service = handler.serve_with_lifecycle(transport, mode).await;
    let service = service.map_err(|error| convert_handshake_error(server, &error))?;
    set_log_level(server, service.peer()).await;
    Ok(service)
}

/// Sends the log level to a server of version 2025-11-25 or older. The answer is ignored, because
/// the client also drops messages below this level itself.
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
        tracing::debug!(server = server.config.name, %error, "failed to set the log level");
    }
}

/// Returns whether a handshake failed because the connection broke, rather than because the server
/// answered with an error.
fn is_connection_failure(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            is_connection_failure(fallback)
        }
        _ => false,
    }
}

fn convert_handshake_error(server: &Server, error: &ClientInitializeError) -> StartError {
    if let ClientInitializeError::NoCompatibleProtocolVersion {
        server_supported, ..
    } = error
    {
        let server_supports = server_supported.iter().map(ToString::to_string).collect();
        return StartError::NoCommonVersion { server_supports };
    }
    let TransportFailure { kind, reason } = TransportFailure::from_handshake_error(error);
    let reason = server.redact(reason);
    if let FailureKind::Unauthorized { needs_person } = kind {
        return StartError::Unauthorized {
            reason,
            needs_person,
        };
    }
    StartError::Handshake {
        reason,
        broke: is_connection_failure(error),
        is_modern: matches!(
            error,
            ClientInitializeError::JsonRpcError(error)
                if error.code == ErrorCode::METHOD_NOT_FOUND
        ),
    }
}

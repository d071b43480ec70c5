//! Coming to terms with a server: which era it belongs to, and a second try where the first fails.

#![allow(deprecated, reason = "servers of the older era still log")]

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{ClientRequest, ProtocolVersion, SetLevelRequest, SetLevelRequestParams},
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
    host::Grace,
    server::{
        process::{Pipes, Program, ServerProcess},
        state::Server,
    },
    server_requests::client_handler::ClientSide,
    transport::{
        authorized_client::AuthorizedClient,
        direct::Direct,
        http::{self, Failure, handshake_failure},
        instrumented_transport::{LateDiscovery, Wire},
        open_requests::OpenRequests,
        server_stream::ServerStream,
        stdio_transport::Lines,
    },
};

/// How long a server may take to answer `server/discover` before it is taken to be of the older
/// era, unless a third of its connect time-out is less. Servers of the older era answer with an
/// error at once; the rare silent one costs this much.
const DISCOVERY_PATIENCE: Duration = Duration::from_secs(5);
/// The longest line a stdio server may send. Longer ones are dropped, and the call hangs until its
/// deadline; rmcp's own limit is 16 MiB, which a large image in base64 exceeds.
const MAX_LINE: usize = 64 * 1024 * 1024;
/// How long what a server said before it ended may take to be read.
const LAST_ANSWER: Duration = Duration::from_millis(200);
/// How long a server that closed its output may take to end.
const TO_EXIT: Duration = Duration::from_millis(500);
/// How a server is ended whose handshake failed, before it is started again.
const BEFORE_RETRY: Grace = Grace {
    after_stdin: Duration::from_millis(300),
    after_term: Duration::from_millis(300),
};

/// A server with which the handshake is done.
pub(crate) struct Connected {
    pub(crate) service: RunningService<RoleClient, ClientSide>,
    pub(crate) tools_changed: Arc<Notify>,
    /// For calls past rmcp; over stdio only.
    pub(crate) direct: Option<Arc<Direct>>,
}

/// Why one try failed.
struct Failed {
    error: StartError,
    /// Whether another handshake may do better.
    retry: bool,
    /// Whether the connection broke. If not, an exit that follows is only its end.
    broke: bool,
}

impl From<StartError> for Failed {
    fn from(error: StartError) -> Self {
        Self {
            error,
            retry: false,
            broke: false,
        }
    }
}

/// Which handshake to make.
#[derive(Clone)]
enum Handshake {
    /// That of 2026-07-28, then the older one on the same connection.
    Either(LateDiscovery),
    Discover,
    Initialize(ProtocolVersion),
}

/// Connects. A started process is put into `process` as soon as it runs, so that it can be ended
/// properly if this future is dropped.
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
            over_stdio(server, &program, process).await
        }
        ServerTransport::StreamableHttp { url, headers } => {
            let client = http::client(url, server.config.connect_timeout)?;
            let headers = http::headers(headers)?;
            over_http(server, |stream| {
                let session = server.session.clone();
                let client = AuthorizedClient::new(client.clone(), session, stream);
                http::transport(client, url, headers.clone())
            })
            .await
        }
        ServerTransport::Unusable { reason } => Err(StartError::Configuration {
            reason: reason.clone(),
        }),
    }
}

async fn over_stdio(
    server: &Server,
    program: &Program<'_>,
    process: &mut Option<ServerProcess>,
) -> Result<Connected, StartError> {
    if let Some(handshake) = fixed(server) {
        return one_process(server, program, process, handshake)
            .await
            .map_err(|failed| failed.error);
    }
    let late = LateDiscovery::default();
    let first = match one_process(server, program, process, Handshake::Either(late.clone())).await {
        Ok(connected) => return Ok(connected),
        Err(failed) if !failed.retry => return Err(failed.error),
        Err(failed) => failed.error,
    };
    tracing::debug!(server = server.config.name, %first, "trying once more in a fresh process");
    if let Some(process) = process.take() {
        process.end(BEFORE_RETRY).await;
    }
    server.stderr.clear();
    let handshake = if late.happened() {
        Handshake::Discover
    } else {
        Handshake::Initialize(ProtocolVersion::LATEST_WITH_INITIALIZE)
    };
    one_process(server, program, process, handshake)
        .await
        .map_err(|failed| failed.error)
}

async fn one_process(
    server: &Server,
    program: &Program<'_>,
    process: &mut Option<ServerProcess>,
    handshake: Handshake,
) -> Result<Connected, Failed> {
    let group = server.new_group();
    let (started, Pipes { stdin, stdout }) = ServerProcess::spawn(
        &server.config.name,
        program,
        group,
        server.stderr.clone(),
        server.redactor.clone(),
    )?;
    let process = process.insert(started);
    let lines = Lines::new(stdout, stdin, MAX_LINE);
    let direct = lines.direct();
    let wire = Wire::new(lines)
        .with_direct(direct.clone())
        .logging(server.config.log_level);
    let open = wire.open_requests();
    let mut serving = std::pin::pin!(async {
        let connected = match handshake {
            Handshake::Either(late) => {
                let wire = wire.probed(patience(server), late);
                shake_hands(server, wire, open, either()).await
            }
            Handshake::Discover => shake_hands(server, wire, open, discover()).await,
            Handshake::Initialize(version) => {
                let mode = (ClientLifecycleMode::Initialize, version);
                shake_hands(server, wire, open, mode).await
            }
        };
        connected.map(|connected| Connected {
            direct: Some(direct),
            ..connected
        })
    });
    let failed = tokio::select! {
        biased;
        result = &mut serving => match result {
            Ok(connected) => return Ok(connected),
            Err(failed) => failed,
        },
        how = process.ended() => {
            // What it said last may still be in the pipe; and a grandchild may hold the pipe open.
            if let Ok(Ok(connected)) = timeout(LAST_ANSWER, &mut serving).await {
                return Ok(connected);
            }
            return Err(exited(how));
        }
    };
    if !failed.broke {
        return Err(failed);
    }
    // A closed pipe is mostly the first sign of an exit, which says more.
    match timeout(TO_EXIT, process.ended()).await {
        Ok(how) => Err(exited(how)),
        Err(_) => Err(failed),
    }
}

async fn over_http<T, F>(server: &Server, transport: F) -> Result<Connected, StartError>
where
    T: Transport<RoleClient> + 'static,
    F: Fn(ServerStream) -> T,
{
    let connect = async |(mode, version)| {
        let stream = ServerStream::default();
        let wire = Wire::new(transport(stream.clone())).logging(server.config.log_level);
        let open = wire.open_requests();
        let connected = shake_hands(server, wire, open, (mode, version)).await;
        if connected.is_ok() {
            stream.settled().await;
        }
        connected
    };
    match fixed(server) {
        Some(Handshake::Initialize(version)) => {
            return connect((ClientLifecycleMode::Initialize, version))
                .await
                .map_err(|failed| failed.error);
        }
        Some(_) => {
            return connect(discover()).await.map_err(|failed| failed.error);
        }
        None => {}
    }
    // A fresh transport costs nothing here, and a server that is silent to the first message of one
    // is never sent a second, so the two handshakes are two transports.
    let first = match timeout(patience(server), connect(discover())).await {
        Ok(Ok(connected)) => return Ok(connected),
        Ok(Err(failed)) if !failed.retry => return Err(failed.error),
        Ok(Err(failed)) => match failed.error {
            StartError::Handshake { reason } => reason,
            other => other.to_string(),
        },
        Err(_) => "no answer".to_owned(),
    };
    tracing::debug!(
        server = server.config.name,
        first,
        "trying the older handshake"
    );
    let initialize = (
        ClientLifecycleMode::Initialize,
        ProtocolVersion::LATEST_WITH_INITIALIZE,
    );
    connect(initialize)
        .await
        .map_err(|failed| match failed.error {
            StartError::Handshake { reason } if reason != first => StartError::Handshake {
                reason: format!("{reason} (and `server/discover` before it: {first})"),
            },
            other => other,
        })
}

async fn shake_hands<T>(
    server: &Server,
    transport: T,
    open: OpenRequests,
    (mode, version): (ClientLifecycleMode, ProtocolVersion),
) -> Result<Connected, Failed>
where
    T: Transport<RoleClient> + 'static,
{
    let tools_changed = Arc::new(Notify::new());
    let client = ClientSide::new(server, open, tools_changed.clone(), version);
    match client.serve_with_lifecycle(transport, mode).await {
        Ok(service) => {
            set_log_level(server, service.peer()).await;
            Ok(Connected {
                service,
                tools_changed,
                direct: None,
            })
        }
        Err(error) => Err(failure(server, &error)),
    }
}

/// Tells a server of the older era from which level on its messages are wanted. Nobody waits for the
/// answer: a server that does not know the request logs as it likes, and less grave messages are dropped
/// here.
async fn set_log_level(server: &Server, peer: &Peer<RoleClient>) {
    let wanted = peer.peer_info().is_some_and(|about| {
        about.protocol_version.has_initialize() && about.capabilities.logging.is_some()
    });
    if !wanted {
        return;
    }
    let params = SetLevelRequestParams::new(server.config.log_level.to_mcp());
    let request = ClientRequest::SetLevelRequest(SetLevelRequest::new(params));
    let sent = peer
        .send_request_with_option(request, PeerRequestOptions::no_options())
        .await;
    if let Err(error) = sent {
        tracing::debug!(server = server.config.name, %error, "no log level was set");
    }
}

/// The handshake that the configuration asks for.
fn fixed(server: &Server) -> Option<Handshake> {
    let version = server.config.protocol_version.as_deref()?;
    let known = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .find(|known| known.as_str() == version)?;
    Some(if known.has_initialize() {
        Handshake::Initialize(known.clone())
    } else {
        Handshake::Discover
    })
}

fn patience(server: &Server) -> Duration {
    DISCOVERY_PATIENCE.min(server.config.connect_timeout / 3)
}

fn either() -> (ClientLifecycleMode, ProtocolVersion) {
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    (mode, ProtocolVersion::LATEST_WITH_INITIALIZE)
}

fn discover() -> (ClientLifecycleMode, ProtocolVersion) {
    let mode = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::LATEST],
    };
    (mode, ProtocolVersion::LATEST)
}

fn exited(how: String) -> Failed {
    Failed {
        error: StartError::Exited { how },
        retry: true,
        broke: true,
    }
}

/// Whether the connection broke, and did not only carry bad news.
fn broke(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => true,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => broke(fallback),
        _ => false,
    }
}

fn failure(server: &Server, error: &ClientInitializeError) -> Failed {
    if let ClientInitializeError::NoCompatibleProtocolVersion {
        server_supported, ..
    } = error
    {
        let server_supports = server_supported.iter().map(ToString::to_string).collect();
        return Failed {
            error: StartError::NoCommonVersion { server_supports },
            retry: true,
            broke: false,
        };
    }
    match handshake_failure(error) {
        Failure::Unauthorized { challenge } => StartError::Unauthorized {
            challenge: server.redactor.clean(challenge),
        }
        .into(),
        Failure::Login {
            reason,
            needs_person,
        } => StartError::Login {
            reason: server.redactor.clean(reason),
            needs_person,
        }
        .into(),
        Failure::NotDone { reason }
        | Failure::Busy { reason }
        | Failure::Unknown { reason, .. } => Failed {
            error: StartError::Handshake {
                reason: server.redactor.clean(reason),
            },
            retry: true,
            broke: broke(error),
        },
    }
}

//! Bundled servers on standard input and output or another pair of byte streams.

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::{catalogue, error::ServerError, options::ServerOptions, tool::server::ToolServer};

/// Serves one client on standard input and output.
///
/// Runs until the input is closed or `shutdown` completes (`std::future::pending()` never
/// completes). Then writes the responses to received requests before it returns, for at most five
/// seconds after the end of the input or two seconds after `shutdown`. Standard output contains
/// only the protocol. Input lines longer than 16 MiB (rmcp 3.9) and lines that are not JSON are
/// ignored.
///
/// After `shutdown`, a thread may still block in a read of standard input. A tokio runtime waits
/// for this thread without limit when the runtime is dropped, so end the runtime with
/// `Runtime::shutdown_timeout`.
///
/// # Errors
///
/// [`ServerError::UnknownServer`], [`ServerError::Setting`], [`ServerError::Data`] and
/// [`ServerError::Memory`] before the first read; [`ServerError::Handshake`] if the first message
/// is not a request; [`ServerError::Ended`] if the server fails later.
pub async fn serve_stdio(
    name: &str,
    options: ServerOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServerError> {
    let (reader, writer) = rmcp::transport::stdio_pipes();
    serve_stream(name, options, reader, writer, shutdown).await
}

/// Serves one client on a pair of byte streams, with one message per line. See [`serve_stdio`].
///
/// # Errors
///
/// The errors of [`serve_stdio`].
pub async fn serve_stream<R, W>(
    name: &str,
    options: ServerOptions,
    reader: R,
    writer: W,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServerError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let server = catalogue::open_server(name, &options).await?;
    let stop = CancellationToken::new();
    let session = run_session(server, (reader, writer), stop.clone());
    tokio::pin!(session);
    tokio::select! {
        ended = &mut session => return ended,
        () = shutdown => stop.cancel(),
    }
    session.await
}

async fn run_session<R, W>(
    server: ToolServer,
    transport: (R, W),
    stop: CancellationToken,
) -> Result<(), ServerError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let server = server.with_shutdown_token(stop.clone());
    let reason = match serve_server_with_ct(server, transport, stop).await {
        Ok(running) => {
            let ended = running.waiting().await.map(drop);
            return ended.map_err(|error| ServerError::Ended {
                reason: error.to_string(),
            });
        }
        // The client disconnected before its first request, or a shutdown was requested. Neither is
        // an error.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        // The reason does not contain the message that the client sent, because this message may
        // contain arbitrary data.
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            "its first message is not a request".to_owned()
        }
        Err(ServerInitializeError::InitializeFailed(error)) => error.message.to_string(),
        Err(error) => error.to_string(),
    };
    Err(ServerError::Handshake { reason })
}

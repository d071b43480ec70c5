//! A bundled server on standard input and output, or on any other pair of byte streams.

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::{ServerError, ServerOptions, catalogue};

/// Serves one client on standard input and output, as a client starts its servers.
///
/// Ends well when the input is closed or `shutdown` is ready (`std::future::pending()` for never);
/// answers to requests that have arrived are written first, within five and two seconds
/// respectively. Nothing but the protocol goes to standard output. A line of input that is longer
/// than 16 MiB is dropped (rmcp 3.9), as are lines that are no JSON.
///
/// After an end by `shutdown` a terminal's input may still have a blocked reader, for which nobody
/// should wait: a runtime that is dropped does, without end. `Runtime::shutdown_timeout` gives what is
/// being dropped a moment, 100 ms in `switchboard mcp-server`, and leaves the reader.
///
/// # Errors
///
/// [`ServerError::UnknownServer`], [`ServerError::Data`] and [`ServerError::Memory`] before anything
/// is read; [`ServerError::Handshake`] if the client begins with something else than a request.
pub async fn serve_stdio(
    name: &str,
    options: ServerOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServerError> {
    let (reader, writer) = rmcp::transport::stdio_pipes();
    serve_stream(name, options, reader, writer, shutdown).await
}

/// Serves one client on a pair of byte streams, one message a line. See [`serve_stdio`].
///
/// # Errors
///
/// As for [`serve_stdio`].
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
    let server = catalogue::open(name, &options).await?;
    let stop = CancellationToken::new();
    let session = session(server, (reader, writer), stop.clone());
    tokio::pin!(session);
    tokio::select! {
        ended = &mut session => return ended,
        () = shutdown => stop.cancel(),
    }
    session.await
}

async fn session<R, W>(
    server: crate::tool_server::ToolServer,
    transport: (R, W),
    stop: CancellationToken,
) -> Result<(), ServerError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let server = server.ending_with(stop.clone());
    let running = match serve_server_with_ct(server, transport, stop).await {
        Ok(running) => running,
        // It left before it asked for anything, or was told to.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => {
            return Err(ServerError::Handshake {
                reason: handshake_fault(&error),
            });
        }
    };
    match running.waiting().await {
        Ok(_) => Ok(()),
        Err(error) => Err(ServerError::Ended {
            reason: error.to_string(),
        }),
    }
}

/// What the client did, without what it sent: that may hold anything.
fn handshake_fault(error: &ServerInitializeError) -> String {
    match error {
        ServerInitializeError::ExpectedInitializeRequest(_) => {
            "its first message is not a request".to_owned()
        }
        ServerInitializeError::InitializeFailed(error) => error.message.to_string(),
        other => other.to_string(),
    }
}

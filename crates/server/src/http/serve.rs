//! Accepts connections, serves HTTP requests on them, and closes them at shutdown.

use std::{io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use futures_util::{FutureExt as _, future::BoxFuture};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use switchboard_domain::{RunStore, SessionStore};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::write_timeout::WriteTimeout;
use crate::{App, Engine, ServerOptions, hub::RunHub, router};

/// An HTTP server that executes runs and stores sessions. Clones are cheap.
#[derive(Clone, derive_more::Debug)]
#[debug("Server {{ .. }}")]
pub struct Server {
    app: App,
}

/// The two signals that shut down a server: the first gracefully, the second immediately.
#[derive(derive_more::Debug)]
#[debug("Shutdown {{ .. }}")]
pub struct Shutdown {
    /// A future whose completion starts the shutdown. The server then accepts no new work, and
    /// active runs may take [`ServerOptions::run_drain_time`] to end.
    pub first: BoxFuture<'static, ()>,
    /// A future whose completion interrupts the runs that are still active. It has an effect only
    /// after `first` has completed.
    pub second: BoxFuture<'static, ()>,
}

/// The reason why a [`Server`] cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Other machines can reach the address, and no access token is configured.
    #[error(
        "{address} is reachable from other machines, but no access token is configured: bind to \
         127.0.0.1, or configure `serve.tokens`"
    )]
    Unguarded {
        /// The address that the server should listen on.
        address: SocketAddr,
    },
    /// The operating system cannot report the address of the listening socket.
    #[error("the listener has no address: {source}")]
    Listener {
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl Server {
    /// Creates a server. [`Server::serve`] starts it.
    pub fn new(
        engine: Arc<dyn Engine>,
        sessions: Arc<dyn SessionStore>,
        runs: Arc<dyn RunStore>,
        options: ServerOptions,
    ) -> Self {
        let hub = RunHub::new(engine, sessions, runs, options);
        Self { app: App::new(hub) }
    }

    /// Returns the routes for a program that listens on `address` itself. They check tokens, hosts,
    /// origins and limits of requests like [`Server::serve`], and can be nested below any path. The
    /// program is responsible for connections and their time-outs.
    ///
    /// # Errors
    /// [`ServerError::Unguarded`] if the address can be reached from other machines and no access
    /// token is configured.
    pub fn build_router(&self, address: SocketAddr) -> Result<Router, ServerError> {
        Self::check_listen_address(self.app.options(), address)?;
        Ok(router::build_router(&self.app, address.ip()))
    }

    /// Checks that the server may listen on `address`. A server without tokens may listen only on a
    /// loopback address.
    pub fn check_listen_address(
        options: &ServerOptions,
        address: SocketAddr,
    ) -> Result<(), ServerError> {
        if address.ip().is_loopback() || !options.tokens.is_empty() {
            return Ok(());
        }
        Err(ServerError::Unguarded { address })
    }

    /// Serves HTTP requests on `listener` until the shutdown is complete. Fails before the first
    /// request if the listener has no address, or if other machines can reach the address and no
    /// access token is configured.
    pub async fn serve(self, listener: TcpListener, shutdown: Shutdown) -> Result<(), ServerError> {
        let address = listener.local_addr();
        let address = address.map_err(|source| ServerError::Listener { source })?;
        let options = self.app.options();
        let router = self.build_router(address)?;
        let slots = options.max_connections.min(Semaphore::MAX_PERMITS);
        let connections = OpenConnections {
            app: self.app.clone(),
            slots: Arc::new(Semaphore::new(slots)),
            open: TaskTracker::new(),
            ending: CancellationToken::new(),
            abort: CancellationToken::new(),
        };
        let Shutdown { first, second } = shutdown;
        let mut first = pin!(first);
        loop {
            let (stream, slot) = tokio::select! {
                biased;
                () = &mut first => break,
                accepted = connections.accept_connection(&listener) => accepted,
            };
            connections.serve_connection(stream, slot, router.clone());
        }
        drop(listener);
        connections.shut_down(second).await;
        Ok(())
    }
}

struct OpenConnections {
    app: App,
    slots: Arc<Semaphore>,
    open: TaskTracker,
    /// A token that is cancelled when connections must end after their current request.
    ending: CancellationToken,
    /// A token that is cancelled when connections must end immediately.
    abort: CancellationToken,
}

impl OpenConnections {
    /// Waits for the next connection. If all slots are in use, further connections wait in the
    /// queue of the operating system.
    async fn accept_connection(&self, listener: &TcpListener) -> (TcpStream, OwnedSemaphorePermit) {
        loop {
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else {
                // Nothing closes the semaphore, so this branch is never taken.
                std::future::pending::<()>().await;
                continue;
            };
            match listener.accept().await {
                Ok((stream, _)) => return (stream, slot),
                Err(error) => {
                    // The cause may be a lack of file descriptors, so the server waits before the
                    // next attempt.
                    if !is_connection_error(&error) {
                        tracing::error!(%error, "failed to accept a connection");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
            }
        }
    }

    fn serve_connection(&self, stream: TcpStream, slot: OwnedSemaphorePermit, router: Router) {
        // Small text deltas must be sent immediately, not combined (Nagle's algorithm).
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "the connection is already closed");
        }
        let options = self.app.options();
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(options.header_time)
            // hyper panics if the buffer for headers is smaller than 8 KiB.
            .max_buf_size(options.max_headers.max(8 << 10))
            .half_close(false);
        let stream = TokioIo::new(WriteTimeout::new(stream, options.write_time));
        let connection = builder.serve_connection(stream, TowerToHyperService::new(router));
        let (ending, abort) = (self.ending.clone(), self.abort.clone());
        let count = Arc::clone(&self.app.metrics().connections);
        self.open.spawn(async move {
            // The slot and the metrics count this connection until the task drops them.
            let _guards = (slot, count);
            let mut connection = pin!(connection);
            tokio::select! {
                result = connection.as_mut() => log_connection_error(result),
                () = ending.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        result = connection.as_mut() => log_connection_error(result),
                        () = abort.cancelled() => {}
                    }
                }
            }
        });
    }

    /// Stops all runs and their event streams, and then closes all connections. Returns at the
    /// latest halfway between [`ServerOptions::run_drain_time`] and
    /// [`ServerOptions::shutdown_time`], so that the caller has time to close stores and MCP
    /// servers.
    async fn shut_down(self, second: BoxFuture<'static, ()>) {
        let options = self.app.options();
        let (runs_end, all_end) = (options.run_drain_time(), options.shutdown_time());
        let closing = all_end.saturating_sub(runs_end);
        let runs_end = Instant::now() + runs_end;
        let second = second.shared();
        self.ending.cancel();
        self.open.close();
        let hub = self.app.hub();
        hub.stop_all_runs(second.clone(), runs_end + closing / 4)
            .await;
        // Clients can read the rest of their responses until this time is over.
        let close_time = if second.now_or_never().is_some() {
            IMMEDIATE_CLOSE_TIME
        } else {
            CLOSE_TIME
        };
        let limit = (Instant::now() + close_time).min(runs_end + closing / 2);
        // If the time limit is exceeded, the remaining connections are closed below.
        let _ = timeout_at(limit, self.open.wait()).await;
        self.abort.cancel();
        self.open.wait().await;
    }
}

/// Maximum time for closing connections after all runs have ended in a graceful shutdown.
const CLOSE_TIME: Duration = Duration::from_secs(2);
/// Maximum time for closing connections in an immediate shutdown.
const IMMEDIATE_CLOSE_TIME: Duration = Duration::from_millis(500);

fn log_connection_error(result: Result<(), hyper::Error>) {
    if let Err(error) = result {
        // Clients often close connections early, so these errors are normal.
        tracing::debug!(%error, "the connection ended with an error");
    }
}

/// Returns whether an accept error concerns only one connection and not the listener.
fn is_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

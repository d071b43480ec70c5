//! Accepts, serves and closes connections.

use std::{
    fmt,
    future::Future,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use futures_core::future::BoxFuture;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use switchboard_domain::{RunStore, SessionStore};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use utoipa::openapi::OpenApi;

use crate::{App, Engine, ServerOptions, app, document, hub::Hub, patience::Patient};

/// The HTTP server. Clones are cheap.
#[derive(Clone)]
pub struct Server {
    app: App,
}

/// The signals for the shutdown of a server.
pub struct Shutdown {
    /// Starts the shutdown: nothing new begins, and active runs have
    /// [`ServerOptions::run_drain_time`].
    pub first: BoxFuture<'static, ()>,
    /// Abandons active runs immediately.
    pub second: BoxFuture<'static, ()>,
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shutdown").finish_non_exhaustive()
    }
}

/// The reason why the server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address is reachable by others, and no token is configured.
    #[error(
        "{address} can be reached from other machines, and no access token is configured: bind to 127.0.0.1, or \
         configure `serve.tokens`"
    )]
    Unguarded {
        /// The address.
        address: SocketAddr,
    },
    /// The listener is unusable.
    #[error("the listener has no address: {source}")]
    Listener {
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl Server {
    /// Returns a server that does not listen yet.
    pub fn new(
        engine: Arc<dyn Engine>,
        sessions: Arc<dyn SessionStore>,
        runs: Arc<dyn RunStore>,
        options: ServerOptions,
    ) -> Self {
        let hub = Hub::new(engine, sessions, runs, options);
        Self { app: App::new(hub) }
    }

    /// Returns the routes for a program that listens itself on `address`, with everything that
    /// [`Server::serve`] checks: tokens, hosts, origins and limits of requests. They can be nested
    /// below any path. Connections and their time-outs are the program's.
    ///
    /// # Errors
    /// [`ServerError::Unguarded`] where `serve` would refuse the address: it can be reached from
    /// other machines, and no access token is configured.
    pub fn router(&self, address: SocketAddr) -> Result<Router, ServerError> {
        Self::check(self.app.options(), address)?;
        Ok(app::router(&self.app, address.ip()))
    }

    /// Returns the OpenAPI document.
    pub fn openapi() -> OpenApi {
        document::of(app::parts().into_openapi())
    }

    /// Checks that the server may listen there: on a loopback address, or anywhere with tokens.
    pub fn check(options: &ServerOptions, address: SocketAddr) -> Result<(), ServerError> {
        if address.ip().is_loopback() || !options.tokens.is_empty() {
            return Ok(());
        }
        Err(ServerError::Unguarded { address })
    }

    /// Serves until the shutdown completes.
    pub async fn serve(self, listener: TcpListener, shutdown: Shutdown) -> Result<(), ServerError> {
        let address = listener.local_addr();
        let address = address.map_err(|source| ServerError::Listener { source })?;
        let options = self.app.options();
        let router = self.router(address)?;
        let places = options.max_connections.min(Semaphore::MAX_PERMITS);
        let connections = Connections {
            app: self.app.clone(),
            places: Arc::new(Semaphore::new(places)),
            open: TaskTracker::new(),
            ending: CancellationToken::new(),
            cut: CancellationToken::new(),
        };
        let Shutdown { first, second } = shutdown;
        let mut first = pin!(first);
        loop {
            let taken = tokio::select! {
                biased;
                () = &mut first => break,
                taken = connections.take(&listener) => taken,
            };
            connections.serve(taken, router.clone());
        }
        drop(listener);
        connections.end(second).await;
        Ok(())
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

struct Connections {
    app: App,
    places: Arc<Semaphore>,
    open: TaskTracker,
    /// Connections end after their current request.
    ending: CancellationToken,
    /// Connections end immediately.
    cut: CancellationToken,
}

/// A connection with its slot.
struct Taken {
    stream: TcpStream,
    place: tokio::sync::OwnedSemaphorePermit,
}

impl Connections {
    /// Waits for the next connection. At the limit, further connections wait in the system's queue.
    async fn take(&self, listener: &TcpListener) -> Taken {
        loop {
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
                // The semaphore is never closed.
                std::future::pending::<()>().await;
                continue;
            };
            match listener.accept().await {
                Ok((stream, _)) => return Taken { stream, place },
                Err(error) => {
                    // An error of one connection, or a temporary lack of file descriptors.
                    if !is_of_one(&error) {
                        tracing::error!(%error, "a connection cannot be taken");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
            }
        }
    }

    fn serve(&self, taken: Taken, router: Router) {
        let Taken { stream, place } = taken;
        // Deltas are sent without delay.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection is gone already");
        }
        let options = self.app.options();
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(options.header_time)
            // The minimum of hyper.
            .max_buf_size(options.max_headers.max(8 << 10))
            .half_close(false);
        let stream = TokioIo::new(Patient::new(stream, options.write_time));
        let connection = builder.serve_connection(stream, TowerToHyperService::new(router));
        let (ending, cut) = (self.ending.clone(), self.cut.clone());
        let counted = self.app.metrics().connections.open();
        self.open.spawn(async move {
            // The connection is closed in all cases.
            let _held = (place, counted);
            let mut connection = pin!(connection);
            tokio::select! {
                done = connection.as_mut() => tell(done),
                () = ending.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        done = connection.as_mut() => tell(done),
                        () = cut.cancelled() => {}
                    }
                }
            }
        });
    }

    /// Ends the runs first, and with them the streams of their events. Returns in time for the
    /// caller to close what the server used: halfway between [`ServerOptions::run_drain_time`] and
    /// [`ServerOptions::shutdown_time`].
    async fn end(self, second: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let options = self.app.options();
        let (runs_end, all_end) = (options.run_drain_time(), options.shutdown_time());
        let closing = all_end.saturating_sub(runs_end);
        let runs_end = Instant::now() + runs_end;
        let at_once = CancellationToken::new();
        let heard = at_once.clone();
        let listening = tokio::spawn(async move {
            second.await;
            heard.cancel();
        });
        self.ending.cancel();
        self.open.close();
        let hub = self.app.hub();
        hub.stop(at_once.cancelled(), runs_end + closing / 4).await;
        // Responses in progress are completed for clients that still read.
        let patience = if at_once.is_cancelled() {
            LAST_WORD
        } else {
            LAST_WORDS
        };
        let limit = (Instant::now() + patience).min(runs_end + closing / 2);
        // In both cases no connection remains.
        let _ = timeout_at(limit, self.open.wait()).await;
        self.cut.cancel();
        self.open.wait().await;
        listening.abort();
    }
}

/// Time limit for closing connections after all runs have ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Time limit for closing connections in an immediate shutdown.
const LAST_WORD: Duration = Duration::from_millis(500);

fn tell(done: Result<(), hyper::Error>) {
    if let Err(error) = done {
        // Connection errors are normal.
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Returns whether an error concerns one connection, not the listener.
fn is_of_one(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

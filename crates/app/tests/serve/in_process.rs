//! A server in the test's process, around an engine of the test.

use std::sync::Arc;

use axum::Router;
use futures_util::{FutureExt as _, future::BoxFuture};
use reqwest::Client;
use serde_json::Value;
use switchboard_server::{Engine, Server, ServerOptions, Shutdown};
use switchboard_sessions::{Store, StoreOptions};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::serving::{Answered, Events, read};

/// A running server on a free port, with a store in a temporary folder and a client.
pub(crate) struct InProcess {
    pub(crate) base: String,
    client: Client,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

/// Makes a server with a store in a temporary folder.
pub(crate) async fn make_server(engine: Arc<dyn Engine>, options: ServerOptions) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let store = StoreOptions::sqlite(folder.path().join("sessions.db"));
    let store = Arc::new(Store::open(store).await.unwrap());
    let (runs, sessions) = (Arc::clone(&store), Arc::clone(&store));
    let server = Server::new(engine, runs, sessions, options);
    (server, store, folder)
}

/// A server that does not listen yet, with its store.
pub(crate) type Made = (Server, Arc<Store>, tempfile::TempDir);

impl InProcess {
    /// Starts a server on the current runtime.
    pub(crate) async fn start((server, store, folder): Made) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::run(listener, store, folder, |listener, stopped| async move {
            let shutdown = Shutdown {
                first: stopped.boxed(),
                second: std::future::pending().boxed(),
            };
            server.serve(listener, shutdown).await.unwrap();
        })
    }

    /// Starts another application that has the routes of the server.
    pub(crate) async fn start_nested(
        (server, store, folder): Made,
        nest: fn(Router) -> Router,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let app = nest(server.build_router(listener.local_addr().unwrap()).unwrap());
        Self::run(listener, store, folder, |listener, stopped| async move {
            let serving = axum::serve(listener, app).with_graceful_shutdown(stopped);
            serving.await.unwrap();
        })
    }

    fn run<F: Future<Output = ()> + Send + 'static>(
        listener: TcpListener,
        store: Arc<Store>,
        folder: tempfile::TempDir,
        serve: impl FnOnce(TcpListener, BoxFuture<'static, ()>) -> F,
    ) -> Self {
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let serving = serve(listener, stopped.map(drop).boxed());
        let task = tokio::spawn(async move {
            serving.await;
            store.close().await;
        });
        Self {
            base,
            client: Client::builder().no_proxy().build().unwrap(),
            stop,
            task,
            _folder: folder,
        }
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answered {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request.header("content-type", "application/json");
        read(request.body(body.to_string()).send().await.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        let request = self.client.get(format!("{}{path}", self.base));
        read(request.send().await.unwrap()).await
    }

    pub(crate) async fn follow(&self, path: &str) -> Events {
        let request = self.client.get(format!("{}{path}", self.base));
        Events::of(request.send().await.unwrap()).await
    }

    /// Stops the server and waits for its end.
    pub(crate) async fn end(self) {
        self.stop.send(()).unwrap();
        // Idle connections keep another application open.
        drop(self.client);
        self.task.await.unwrap();
    }
}

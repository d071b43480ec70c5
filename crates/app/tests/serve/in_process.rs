//! A server in the test's process, around an engine of the test.

use std::sync::Arc;

use futures_util::FutureExt as _;
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
pub(crate) async fn make_server(
    engine: Arc<dyn Engine>,
    options: ServerOptions,
) -> (Server, Arc<Store>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = StoreOptions::sqlite(folder.path().join("sessions.db"));
    let store = Arc::new(Store::open(store).await.unwrap());
    let (runs, sessions) = (Arc::clone(&store), Arc::clone(&store));
    let server = Server::new(engine, runs, sessions, options);
    (server, store, folder)
}

impl InProcess {
    /// Starts a server on the current runtime.
    pub(crate) async fn start(
        (server, store, folder): (Server, Arc<Store>, tempfile::TempDir),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let shutdown = Shutdown {
            first: stopped.map(drop).boxed(),
            second: std::future::pending().boxed(),
        };
        let task = tokio::spawn(async move {
            server.serve(listener, shutdown).await.unwrap();
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
        self.task.await.unwrap();
    }
}

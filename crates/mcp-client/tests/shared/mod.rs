//! Shared parts of the test programs.

#![allow(dead_code, reason = "not every test program uses all of it")]

use std::{env, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use rmcp::{
    ServerHandler,
    model::{ProtocolVersion, Tool},
    serve_server,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use switchboard_domain::JsonObject;
use switchboard_mcp_client::{ServerConfig, ServerTransport};
use tokio::{net::TcpListener, task::AbortHandle};

/// Maximum time of an operation. It is long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Panics if the future takes too long, instead of hanging.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future)
        .await
        .expect("a time-out")
}

pub(crate) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

/// Returns this program as a server of a kind.
pub(crate) fn this_program(name: &str, variable: &str, kind: &str) -> ServerConfig {
    let itself = env::current_exe().unwrap();
    let args = ["--exact", "server", "--ignored", "--nocapture"];
    let mut config = ServerConfig::stdio(name, itself.to_str().unwrap(), args);
    set_env(&mut config, variable, kind);
    config
}

pub(crate) fn set_env(config: &mut ServerConfig, name: &str, value: &str) {
    if let ServerTransport::Stdio { env, .. } = &mut config.transport {
        env.push((name.to_owned(), value.into()));
    }
}

/// Serves over the standard input and output until the end of the input.
pub(crate) fn serve_stdio(server: impl ServerHandler) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let transport = (tokio::io::stdin(), tokio::io::stdout());
        let serving = serve_server(server, transport).await.unwrap();
        serving.waiting().await.unwrap();
    });
}

/// Serves over HTTP until the task is aborted. Returns the URL.
pub(crate) async fn serve_http(server: impl ServerHandler + Clone) -> (String, AbortHandle) {
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    serve_app(Router::new().nest_service("/mcp", service)).await
}

/// Serves an application on loopback until the task is aborted. Returns the URL of `/mcp`.
pub(crate) async fn serve_app(app: Router) -> (String, AbortHandle) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TcpListener::bind(any).await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (url, serving.abort_handle())
}

pub(crate) fn known_version(name: &str) -> ProtocolVersion {
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
    let version = known.find(|version| version.as_str() == name);
    version.unwrap().clone()
}

/// Creates tools without parameters.
pub(crate) fn tools(names: &[&'static str]) -> Vec<Tool> {
    let schema = Arc::new(object(json!({"type": "object"})));
    let tool = |name: &&'static str| Tool::new(*name, format!("Does {name}."), schema.clone());
    names.iter().map(tool).collect()
}

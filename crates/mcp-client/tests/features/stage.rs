//! What the tests share: the server in every form, hosts, and a person who answers.

use std::{env, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::Router;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde_json::{Value, json};
use switchboard_domain::{
    Elicitation, ElicitationAnswer, Elicitor, JsonObject, ToolCall, ToolCallError, ToolHost,
};
use switchboard_mcp_client::{ClientHandlers, HostOptions, McpHost, ServerConfig, ServerTransport};
use tokio::{net::TcpListener, task::AbortHandle};

use crate::{SERVER, library::Library};

/// Far more than anything here takes. A test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const OLDER: &str = "2025-11-25";
pub(crate) const NEWER: &str = "2026-07-28";
/// In the configuration of every server here.
const SECRET: &str = "sk-secret-77";

/// A host with one server, `s`.
pub(crate) struct Stage {
    pub(crate) host: McpHost,
    pub(crate) version: &'static str,
    /// Of the HTTP server.
    accepting: Option<AbortHandle>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

/// The server over both transports.
pub(crate) async fn both(version: &'static str) -> [Stage; 2] {
    [over_stdio(version).await, over_http(version).await]
}

/// The server of both eras over both transports.
pub(crate) async fn every() -> Vec<Stage> {
    let mut every = Vec::from(both(OLDER).await);
    every.extend(both(NEWER).await);
    every
}

pub(crate) async fn over_stdio(version: &'static str) -> Stage {
    Stage {
        host: host(program(version)).await,
        version,
        accepting: None,
    }
}

async fn over_http(version: &'static str) -> Stage {
    let server = Library::new(version);
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let app = Router::new().nest_service("/mcp", service);
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TcpListener::bind(any).await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let mut config = ServerConfig::http("s", format!("http://{address}/mcp"));
    config.secrets = vec![SECRET.into()];
    Stage {
        host: host(config).await,
        version,
        accepting: Some(serving.abort_handle()),
    }
}

/// This program as a server of this kind.
pub(crate) fn program(kind: &str) -> ServerConfig {
    let itself = env::current_exe().unwrap();
    let args = ["--exact", "server", "--ignored", "--nocapture"];
    let mut config = ServerConfig::stdio("s", itself.to_str().unwrap(), args);
    if let ServerTransport::Stdio { env, .. } = &mut config.transport {
        env.push((SERVER.to_owned(), kind.into()));
        env.push(("KEY".to_owned(), SECRET.into()));
    }
    config
}

/// A host whose server is ready, with a person who answers.
pub(crate) async fn host(config: ServerConfig) -> McpHost {
    let options = HostOptions {
        restart_delay: Duration::from_millis(10),
        client_handlers: ClientHandlers {
            elicitor: Some(Arc::new(Ada)),
            ..ClientHandlers::default()
        },
        ..HostOptions::default()
    };
    let host = McpHost::start(vec![config], options).unwrap();
    soon(host.settled()).await;
    let status = &host.servers()[0];
    assert!(status.state.takes_calls(), "{status:#?}");
    host
}

/// Says its name whenever it is asked.
struct Ada;

#[async_trait]
impl Elicitor for Ada {
    async fn elicit(&self, _elicitation: &Elicitation) -> ElicitationAnswer {
        ElicitationAnswer::Accept {
            content: object(json!({"name": "Ada"})),
        }
    }
}

/// Fails the test instead of hanging.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("it hangs")
}

pub(crate) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        other => panic!("no object: {other}"),
    }
}

pub(crate) fn tool(name: &str, input: Value) -> ToolCall {
    ToolCall {
        name: format!("s__{name}"),
        input: object(input).into(),
        ..ToolCall::default()
    }
}

/// What a tool says.
pub(crate) async fn call(
    host: &McpHost,
    name: &str,
    input: Value,
) -> Result<String, ToolCallError> {
    let output = soon(host.call(tool(name, input))).await?;
    Ok(output.content[0].as_text())
}

//! Shared parts of the tests: all variants of the server, hosts, and a person who answers.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::{Value, json};
use switchboard_domain::{
    Elicitation, ElicitationAnswer, Elicitor, ToolCall, ToolCallError, ToolHost,
};
use switchboard_mcp_client::{ClientHandlers, HostOptions, McpHost, ServerConfig};
use tokio::task::AbortHandle;

pub(crate) use crate::shared::{object, soon};
use crate::{
    features::SERVER,
    features::library::Library,
    shared::{serve_http, set_env, this_program},
};

pub(crate) const OLDER: &str = "2025-11-25";
pub(crate) const NEWER: &str = "2026-07-28";
/// A secret in the configuration of every server.
const SECRET: &str = "sk-secret-77";

/// A host with one server, `s`.
pub(crate) struct Stage {
    pub(crate) host: McpHost,
    pub(crate) version: &'static str,
    /// The task of the HTTP server.
    accepting: Option<AbortHandle>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

/// Starts the server with this protocol over both transports.
pub(crate) async fn both(version: &'static str) -> [Stage; 2] {
    [over_stdio(version).await, over_http(version).await]
}

/// Starts the server with both protocols over both transports.
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
    let (url, accepting) = serve_http(Library::new(version)).await;
    let mut config = ServerConfig::http("s", url);
    config.secrets = vec![SECRET.into()];
    Stage {
        host: host(config).await,
        version,
        accepting: Some(accepting),
    }
}

/// Returns the configuration of this program as a server of this kind.
pub(crate) fn program(kind: &str) -> ServerConfig {
    let mut config = this_program("s", SERVER, kind);
    set_env(&mut config, "KEY", SECRET);
    config
}

/// Starts a host whose server is ready, with a person who answers.
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
    soon(host.wait_for_startup()).await;
    let status = &host.server_statuses()[0];
    assert!(status.state.takes_calls(), "{status:#?}");
    host
}

/// A person who answers each question with her name.
struct Ada;

#[async_trait]
impl Elicitor for Ada {
    async fn elicit(&self, _elicitation: &Elicitation) -> ElicitationAnswer {
        ElicitationAnswer::Accept {
            content: object(json!({"name": "Ada"})),
        }
    }
}

pub(crate) fn tool(name: &str, input: Value) -> ToolCall {
    ToolCall {
        name: format!("s__{name}"),
        input: object(input).into(),
        ..ToolCall::default()
    }
}

/// Returns the text of a tool result.
pub(crate) async fn call(
    host: &McpHost,
    name: &str,
    input: Value,
) -> Result<String, ToolCallError> {
    let output = soon(host.call_tool(tool(name, input))).await?;
    Ok(output.content[0].as_text())
}

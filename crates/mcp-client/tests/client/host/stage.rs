//! Shared parts of the tests: servers, hosts, and waiting for an event.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use switchboard_domain::{ToolCall, ToolCallError, ToolContent, ToolHost, ToolOutput};
use switchboard_mcp_client::{
    HostOptions, McpHost, ServerConfig, ServerState, ServerStatus, ServerTransport,
    ShutdownGracePeriods,
};

pub(crate) use crate::shared::{object, set_env, soon};
use crate::{host::SERVER, shared::this_program};

/// A server that supports both protocols.
pub(crate) const BOTH_ERAS: &str = "good 2025-11-25,2026-07-28";
pub(crate) const OLDER_ERA: &str = "good 2025-06-18,2025-11-25";
pub(crate) const NEWER_ERA: &str = "good 2026-07-28";

/// Returns the configuration of this program as a server of this kind.
pub(crate) fn program(name: &str, kind: &str) -> ServerConfig {
    this_program(name, SERVER, kind)
}

/// Like `program`, but started by a shell that first runs `script`.
#[cfg(unix)]
pub(crate) fn program_after(script: &str, name: &str, kind: &str) -> ServerConfig {
    let mut config = program(name, kind);
    if let ServerTransport::Stdio { command, args, .. } = &mut config.transport {
        let line = format!("{script}\nexec \"$0\" \"$@\"");
        let itself = std::mem::replace(command, "sh".to_owned());
        let mut all = vec!["-c".to_owned(), line, itself];
        all.append(args);
        *args = all;
    }
    config
}

pub(crate) fn options() -> HostOptions {
    HostOptions {
        restart_delay: Duration::from_millis(10),
        grace: ShutdownGracePeriods {
            after_stdin: Duration::from_secs(10),
            after_term: Duration::from_millis(300),
        },
        ..HostOptions::default()
    }
}

/// Starts a host and waits until all servers are ready or have failed.
pub(crate) async fn host(servers: impl IntoIterator<Item = ServerConfig>) -> McpHost {
    host_with(servers, options()).await
}

pub(crate) async fn host_with(
    servers: impl IntoIterator<Item = ServerConfig>,
    options: HostOptions,
) -> McpHost {
    let host = McpHost::start(servers.into_iter().collect(), options).unwrap();
    soon(host.wait_for_startup()).await;
    host
}

pub(crate) fn tool_call(name: &str, input: Value) -> ToolCall {
    ToolCall {
        name: name.to_owned(),
        input: object(input).into(),
        ..ToolCall::default()
    }
}

pub(crate) async fn call(
    host: &McpHost,
    name: &str,
    input: Value,
) -> Result<ToolOutput, ToolCallError> {
    soon(host.call_tool(tool_call(name, input))).await
}

/// Calls a tool without input. Returns the text of the result, or panics.
pub(crate) async fn text(host: &McpHost, name: &str) -> String {
    match call(host, name, json!({})).await {
        Ok(output) => all_text(&output),
        Err(error) => panic!("{name}: {error}"),
    }
}

pub(crate) fn all_text(output: &ToolOutput) -> String {
    let pieces: Vec<String> = output.content.iter().map(ToolContent::as_text).collect();
    pieces.join("\n")
}

pub(crate) fn status(host: &McpHost, name: &str) -> ServerStatus {
    let servers = host.server_statuses();
    let found = servers.into_iter().find(|server| server.name == name);
    found.unwrap_or_else(|| panic!("no server {name}"))
}

pub(crate) fn assert_ready(host: &McpHost, name: &str) {
    let status = status(host, name);
    assert_eq!(status.state, ServerState::Ready, "{status:#?}");
}

/// Waits until a server has the wanted status.
pub(crate) async fn status_when(
    host: &McpHost,
    name: &str,
    wanted: impl Fn(&ServerStatus) -> bool,
) -> ServerStatus {
    let mut changes = host.watch_changes();
    soon(async {
        loop {
            let status = status(host, name);
            if wanted(&status) {
                return status;
            }
            changes.next().await.expect("the host is there");
        }
    })
    .await
}

pub(crate) async fn tool_names(host: &McpHost) -> Vec<String> {
    let catalog = host.list_tools().await;
    catalog.tools.iter().map(|tool| tool.name.clone()).collect()
}

pub(crate) async fn problems(host: &McpHost) -> Vec<String> {
    let catalog = host.list_tools().await;
    catalog
        .problems
        .iter()
        .map(|problem| format!("{}: {}", problem.server, problem.message))
        .collect()
}

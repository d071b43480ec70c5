//! The reference server with all features of the protocol.

use std::{net::TcpListener, time::Duration};

use serde_json::json;
use switchboard_domain::{ToolCall, ToolCallError, ToolContent, ToolHost};
use switchboard_mcp_client::{McpHost, ServerConfig};
use tokio::process::{Child, Command};

use crate::stage::*;

const TOOLS: &[&str] = &[
    "echo",
    "get-sum",
    "get-tiny-image",
    "get-structured-content",
    "trigger-long-running-operation",
];

/// Uses the features that work over both transports.
async fn exercise(host: &McpHost, peer: &Peer) {
    let echo = call(host, peer, "echo", json!({"message": "grüße"})).await;
    assert_eq!(echo.content, [ToolContent::text("Echo: grüße")]);

    let sum = text(host, peer, "get-sum", json!({"a": 2, "b": 40})).await;
    assert!(sum.contains("42"), "{sum}");

    let image = call(host, peer, "get-tiny-image", json!({})).await;
    let is_image = |piece: &ToolContent| matches!(piece, ToolContent::Image(_));
    assert!(image.content.iter().any(is_image), "{image:?}");

    let input = json!({"location": "New York"});
    let structured = call(host, peer, "get-structured-content", input).await;
    assert!(structured.structured.unwrap()["temperature"].is_number());

    misuse(host, peer, "get-sum", json!({"a": "x"})).await;

    let input = json!({"duration": 0.3, "steps": 3});
    let told = progress(host, peer, "trigger-long-running-operation", input).await;
    assert_eq!(told, [1.0, 2.0, 3.0]);

    // The server still works after a call that timed out.
    let long = ToolCall {
        name: format!("{}__trigger-long-running-operation", peer.name()),
        input: object(json!({"duration": 600, "steps": 2})).into(),
        deadline: Some(Duration::from_millis(200)),
        ..ToolCall::default()
    };
    let given_up = soon(host.call_tool(long)).await;
    assert!(
        matches!(given_up, Err(ToolCallError::Timeout { .. })),
        "{given_up:?}"
    );
    let echo = text(host, peer, "echo", json!({"message": "still here"})).await;
    assert_eq!(echo, "Echo: still here");
}

fn peer(config: ServerConfig) -> Peer {
    Peer {
        config,
        version: OLDER,
        tools: TOOLS,
        folder: None,
        process: None,
    }
}

pub(crate) fn over_stdio() -> Peer {
    let script = script("server-everything");
    peer(ServerConfig::stdio(
        "everything",
        "node",
        [script.as_str(), "stdio"],
    ))
}

/// Starts the server on `port`. It ends when the returned value is dropped.
async fn listen(port: u16) -> Child {
    let mut command = Command::new("node");
    command.args([script("server-everything").as_str(), "streamableHttp"]);
    command.env("PORT", port.to_string());
    let listens = |line: &str| line.contains("listening on port").then_some(());
    serve(&mut command, true, listens).await.0
}

/// Returns a free port. Another process may take it before the server does; then the test fails.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

async fn over_http_at(port: u16) -> Peer {
    let process = Some(listen(port).await);
    let url = format!("http://127.0.0.1:{port}/mcp");
    Peer {
        process,
        ..peer(ServerConfig::http("everything-http", url))
    }
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_everything_over_stdio() {
    alone(over_stdio(), exercise).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_everything_over_http_also_after_its_restart() {
    let port = free_port();
    let mut peer = over_http_at(port).await;
    let host = host(&peer).await;
    exercise(&host, &peer).await;

    // The new process does not know the old session.
    let mut process = peer.process.take().unwrap();
    process.kill().await.unwrap();
    peer.process = Some(listen(port).await);
    let echo = text(&host, &peer, "echo", json!({"message": "again"})).await;
    assert_eq!(echo, "Echo: again");
    close(&host).await;
}

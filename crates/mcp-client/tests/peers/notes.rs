//! A server of this project (`notes.py`) with the frameworks that most Python servers use.

use serde_json::json;
use switchboard_domain::ToolHost;
use switchboard_mcp_client::{McpHost, ServerConfig};
use tokio::process::Command;

use crate::stage::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/notes.py");

fn python(framework: &str) -> String {
    let environment = match framework {
        "fastmcp" => "python",
        _ => "older-python",
    };
    program(environment, "python")
}

fn peer(config: ServerConfig, version: &'static str) -> Peer {
    Peer {
        config,
        version,
        tools: &["put", "get", "wait", "ask"],
        folder: None,
        process: None,
    }
}

fn over_stdio(name: &str, framework: &str, version: &'static str) -> Peer {
    let args = [SCRIPT, framework, "stdio"];
    peer(ServerConfig::stdio(name, python(framework), args), version)
}

async fn over_http(name: &str, framework: &str, version: &'static str) -> Peer {
    let mut command = Command::new(python(framework));
    command.args([SCRIPT, framework, "http"]);
    let port = |line: &str| line.trim().parse::<u16>().ok();
    let (process, port) = serve(&mut command, false, port).await;
    let url = format!("http://127.0.0.1:{port}/mcp");
    Peer {
        process: Some(process),
        ..peer(ServerConfig::http(name, url), version)
    }
}

/// Returns the server with `FastMCP` 4.
pub(crate) fn newer() -> Peer {
    over_stdio("newer", "fastmcp", NEWER)
}

pub(crate) async fn newer_over_http() -> Peer {
    over_http("newer-http", "fastmcp", NEWER).await
}

/// Returns the server with an SDK that does not know protocol 2026-07-28.
pub(crate) fn older() -> Peer {
    over_stdio("older", "mcp", OLDER)
}

pub(crate) async fn older_over_http() -> Peer {
    over_http("older-http", "mcp", OLDER).await
}

async fn exercise(host: &McpHost, peer: &Peer) {
    let input = json!({"name": "a", "text": "grüße"});
    call(host, peer, "put", input).await;
    let note = text(host, peer, "get", json!({"name": "a"})).await;
    assert_eq!(note, "grüße");
    let unknown = failure(host, peer, "get", json!({"name": "b"})).await;
    assert!(unknown.contains("there is no note b"), "{unknown}");
    misuse(host, peer, "get", json!({"nothing": 1})).await;

    let told = progress(host, peer, "count", json!({"to": 3})).await;
    assert_eq!(told, [1.0, 2.0, 3.0]);

    // The cancelled call is cancelled on the server too.
    let (long, mut runs) = running(peer, "wait");
    {
        let call = host.call_tool(long);
        tokio::select! {
            answer = call => panic!("{answer:?}"),
            runs = soon(runs.wait_for(|runs| *runs)) => assert!(*runs.unwrap()),
        }
    }
    text(host, peer, "was_given_up", json!({})).await;

    let asked = outcome(host, peer, "ask", json!({})).await;
    // `FastMCP` 4 cannot send elicitations with protocol 2026-07-28, and returns an error.
    if peer.version == OLDER || !asked.is_error {
        assert_eq!(text_of(&asked), "accept green");
    }
}

/// Uses the older protocol with a server that supports both.
fn held_back(mut peer: Peer) -> Peer {
    peer.config.protocol_version = Some(OLDER.to_owned());
    peer.version = OLDER;
    peer
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_fastmcp_over_stdio() {
    alone(newer(), exercise).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_fastmcp_over_http() {
    alone(newer_over_http().await, exercise).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_fastmcp_in_the_older_protocol_over_stdio() {
    alone(held_back(newer()), exercise).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_fastmcp_in_the_older_protocol_over_http() {
    alone(held_back(newer_over_http().await), exercise).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_older_sdk_over_stdio() {
    alone(older(), exercise).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_older_sdk_over_http() {
    alone(older_over_http().await, exercise).await;
}

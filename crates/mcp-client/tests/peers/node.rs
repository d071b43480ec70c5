//! Servers of the protocol's own authors, from npm.

use std::fs;

use futures_util::FutureExt;
use serde_json::{Value, json};
use switchboard_mcp_client::{McpHost, ServerConfig, ServerTransport};
use tempfile::TempDir;

use crate::stage::*;

pub(crate) fn files() -> Peer {
    let folder = TempDir::new().unwrap();
    let place = folder.path().to_str().unwrap();
    let script = script("server-filesystem");
    Peer {
        config: ServerConfig::stdio("files", "node", [script.as_str(), place]),
        version: OLDER,
        tools: &["write_file", "read_text_file", "edit_file"],
        exercise: |host, peer| use_files(host, peer).boxed(),
        folder: Some(folder),
        process: None,
    }
}

async fn use_files(host: &McpHost, peer: &Peer) {
    let file = peer.path().join("größe.txt");
    let input = json!({"path": file, "content": "one\ntwo\n"});
    call(host, peer, "write_file", input).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\ntwo\n");

    let edits = json!([{"oldText": "two", "newText": "three"}]);
    let input = json!({"path": file, "edits": edits});
    call(host, peer, "edit_file", input).await;
    let read = text(host, peer, "read_text_file", json!({"path": file})).await;
    assert_eq!(read, "one\nthree\n");

    let outside = peer.path().parent().unwrap().join("outside.txt");
    let refused = failure(host, peer, "read_text_file", json!({"path": outside})).await;
    assert!(refused.contains("outside allowed directories"), "{refused}");
}

pub(crate) fn memory() -> Peer {
    let folder = TempDir::new().unwrap();
    let script = script("server-memory");
    let mut config = ServerConfig::stdio("memory", "node", [script.as_str()]);
    if let ServerTransport::Stdio { env, .. } = &mut config.transport {
        let file = folder.path().join("memory.jsonl");
        let file = file.into_os_string().into_string().unwrap();
        env.push(("MEMORY_FILE_PATH".to_owned(), file.into()));
    }
    Peer {
        config,
        version: OLDER,
        tools: &["create_entities", "add_observations", "search_nodes"],
        exercise: |host, peer| use_memory(host, peer).boxed(),
        folder: Some(folder),
        process: None,
    }
}

async fn use_memory(host: &McpHost, peer: &Peer) {
    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["counts"]});
    call(host, peer, "create_entities", json!({"entities": [ada]})).await;
    let input = json!({"observations": [{"entityName": "Ada", "contents": ["writes"]}]});
    call(host, peer, "add_observations", input).await;
    let kept = fs::read_to_string(peer.path().join("memory.jsonl")).unwrap();
    assert!(kept.contains("Ada") && kept.contains("writes"), "{kept}");

    let found = call(host, peer, "search_nodes", json!({"query": "writes"})).await;
    let found = found.structured.unwrap();
    assert_eq!(found["entities"][0]["name"], "Ada", "{found}");

    let input = json!({"observations": [{"entityName": "Bob", "contents": ["x"]}]});
    let unknown = failure(host, peer, "add_observations", input).await;
    assert!(unknown.contains("Bob"), "{unknown}");
}

pub(crate) fn thinking() -> Peer {
    let script = script("server-sequential-thinking");
    Peer {
        config: ServerConfig::stdio("thinking", "node", [script.as_str()]),
        version: OLDER,
        tools: &["sequentialthinking"],
        exercise: |host, peer| think(host, peer).boxed(),
        folder: None,
        process: None,
    }
}

async fn think(host: &McpHost, peer: &Peer) {
    let thought = |number: u32| {
        json!({
            "thought": format!("thought {number}"),
            "nextThoughtNeeded": number < 2,
            "thoughtNumber": number,
            "totalThoughts": 2,
        })
    };
    // It counts what it was told: the process is the same for both calls.
    for number in 1..=2 {
        let told = call(host, peer, "sequentialthinking", thought(number)).await;
        let told = told.structured.unwrap();
        assert_eq!(told["thoughtHistoryLength"], json!(number), "{told}");
    }
    misuse(host, peer, "sequentialthinking", json!({"thought": 1})).await;
}

/// An MCP App: its tool comes with a page, which models have no use for.
pub(crate) fn app() -> Peer {
    let script = script("server-basic-vanillajs");
    Peer {
        config: ServerConfig::stdio("app", "node", [script.as_str(), "--stdio"]),
        version: OLDER,
        tools: &["get-time"],
        exercise: |host, peer| use_app(host, peer).boxed(),
        folder: None,
        process: None,
    }
}

async fn use_app(host: &McpHost, peer: &Peer) {
    let told = call(host, peer, "get-time", json!({})).await;
    let structured: Value = told.structured.clone().unwrap();
    let time = structured["time"].as_str().unwrap();
    assert!(text_of(&told).contains(time), "{told:?}");
    assert!(time.starts_with("20") && time.contains('T'), "{time}");
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_filesystem() {
    alone(files()).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_memory() {
    alone(memory()).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_sequential_thinking() {
    alone(thinking()).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_app() {
    alone(app()).await;
}

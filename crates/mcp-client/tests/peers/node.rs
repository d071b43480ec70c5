//! Servers of the protocol's authors, from npm.

use std::fs;

use serde_json::json;
use switchboard_mcp_client::{McpHost, ServerConfig};
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

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_filesystem() {
    alone(files(), use_files).await;
}

//! Servers of the protocol's authors, from `PyPI`.

use std::{fs, process::Command};

use serde_json::json;
use switchboard_mcp_client::{McpHost, ServerConfig};
use tempfile::TempDir;

use crate::stage::*;

pub(crate) fn git() -> Peer {
    let folder = TempDir::new().unwrap();
    let place = folder.path().to_str().unwrap();
    in_repository(place, &["init", "--quiet"]);
    for (key, value) in [
        ("user.name", "Ada"),
        ("user.email", "ada@example.org"),
        ("commit.gpgsign", "false"),
    ] {
        in_repository(place, &["config", key, value]);
    }
    let program = program("python", "mcp-server-git");
    Peer {
        config: ServerConfig::stdio("git", program, ["--repository", place]),
        version: NEWER,
        tools: &["git_add", "git_commit", "git_log"],
        folder: Some(folder),
        process: None,
    }
}

/// Returns the output of git.
fn in_repository(place: &str, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(place).args(args).output();
    let output = output.expect("git is there");
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

async fn use_git(host: &McpHost, peer: &Peer) {
    let place = peer.path().to_str().unwrap();
    fs::write(peer.path().join("a.txt"), "a\n").unwrap();
    let input = json!({"repo_path": place, "files": ["a.txt"]});
    call(host, peer, "git_add", input).await;
    let input = json!({"repo_path": place, "message": "The first letter"});
    call(host, peer, "git_commit", input).await;
    let log = in_repository(place, &["log", "--format=%an: %s"]);
    assert_eq!(log.trim(), "Ada: The first letter");
    let log = text(host, peer, "git_log", json!({"repo_path": place})).await;
    assert!(log.contains("The first letter"), "{log}");

    let input = json!({"repo_path": place, "branch_name": "nowhere"});
    let unknown = failure(host, peer, "git_checkout", input).await;
    assert!(unknown.contains("nowhere"), "{unknown}");
}

pub(crate) fn time() -> Peer {
    let program = program("python", "mcp-server-time");
    Peer {
        config: ServerConfig::stdio("time", program, ["--local-timezone", "UTC"]),
        version: NEWER,
        tools: &["get_current_time", "convert_time"],
        folder: None,
        process: None,
    }
}

async fn use_time(host: &McpHost, peer: &Peer) {
    // Neither zone has summer time.
    let input = json!({
        "source_timezone": "Asia/Tokyo",
        "time": "16:30",
        "target_timezone": "Asia/Kolkata",
    });
    let converted = call(host, peer, "convert_time", input).await;
    let converted = converted.structured.unwrap();
    assert_eq!(converted["time_difference"], "-3.5h", "{converted}");
    let there = converted["target"]["datetime"].as_str().unwrap();
    assert!(there.contains("T13:00:00"), "{there}");

    let input = json!({"timezone": "Asia/Nowhere"});
    let unknown = failure(host, peer, "get_current_time", input).await;
    assert!(unknown.contains("Asia/Nowhere"), "{unknown}");
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_git() {
    alone(git(), use_git).await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_time() {
    alone(time(), use_time).await;
}

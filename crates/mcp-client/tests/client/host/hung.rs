//! Servers that hang are restarted. Slow servers are not.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use switchboard_domain::{ProgressSink, ToolCallError, ToolHost, ToolHostChange, ToolRetry};
use switchboard_mcp_client::{CircuitOptions, HangDetection, McpHost, ServerConfig, ServerState};

use crate::host::stage::*;

const fn hang_detection(ping_timeout: u64, max_failed_pings: u32) -> HangDetection {
    HangDetection {
        ping_timeout: Duration::from_millis(ping_timeout),
        max_failed_pings,
    }
}

async fn host_that_probes(config: ServerConfig, hang_detection: HangDetection) -> McpHost {
    let mut options = options();
    options.hang_detection = hang_detection;
    // After one call without a response, the circuit breaker blocks the server until its process is
    // replaced.
    options.circuits = CircuitOptions {
        server_failures: 1,
        ..CircuitOptions::default()
    };
    options.grace.after_stdin = Duration::from_millis(50);
    let host = host_with([config], options).await;
    assert_ready(&host, "s");
    host
}

/// Returns a server that hangs in its first call. After a restart it works.
fn hangs_once(era: &str, folder: &tempfile::TempDir) -> ServerConfig {
    let mut config = program("s", "hangs in a call");
    config.call_timeout = Some(Duration::from_millis(200));
    set_env(&mut config, "ERA", era);
    let mark = folder.path().join("mark");
    set_env(&mut config, "MARK", mark.to_str().unwrap());
    config
}

#[tokio::test]
async fn a_server_that_hangs_is_started_again() {
    for era in ["older", "newer"] {
        let folder = tempfile::tempdir().unwrap();
        let host = host_that_probes(hangs_once(era, &folder), hang_detection(100, 2)).await;
        let first = status(&host, "s").pid;
        let mut changes = host.watch_changes();
        let error = call(&host, "s__work", json!({})).await.unwrap_err();
        assert!(matches!(error, ToolCallError::Timeout { .. }), "{error:?}");
        let mut states = Vec::new();
        while states.last().is_none_or(|(state, _)| state != "ready") {
            if let Some(ToolHostChange::ServerState { state, reason, .. }) =
                soon(changes.next()).await
            {
                states.push((state, reason.unwrap_or_default()));
            }
        }
        let names: Vec<&str> = states.iter().map(|(state, _)| state.as_str()).collect();
        assert_eq!(names, ["blocked", "starting", "ready"], "{era}");
        assert_eq!(
            states[1].1,
            "restarting (attempt 1 of 5): the server hangs: it answered neither a call nor 2 pings \
             within 100ms each"
        );
        assert_ne!(status(&host, "s").pid, first);
        // The restart closed the circuit breaker.
        assert_eq!(text(&host, "s__work").await, "did \"work\"");
        soon(host.close()).await;
    }
}

#[tokio::test]
async fn a_server_that_answers_pings_is_left_alone() {
    let mut config = program("s", "silent in three calls");
    config.call_timeout = Some(Duration::from_millis(100));
    let mut options = options();
    // One ping without a response would be enough for a restart.
    options.hang_detection = hang_detection(5000, 1);
    let host = host_with([config], options).await;
    let first = status(&host, "s").pid;
    for _ in 0..2 {
        let error = call(&host, "s__work", json!({})).await.unwrap_err();
        assert!(matches!(error, ToolCallError::Timeout { .. }), "{error:?}");
        assert_eq!(text(&host, "s__rest").await, "did \"rest\"");
    }
    assert_ready(&host, "s");
    assert_eq!(status(&host, "s").pid, first);
    soon(host.close()).await;
}

#[tokio::test]
async fn a_server_that_is_busy_with_another_call_does_not_hang() {
    let mut options = options();
    options.hang_detection = hang_detection(100, 3);
    let host = host_with([program("s", "slow in a call")], options).await;
    let first = status(&host, "s").pid;
    let mut long = tool_call("s__work", json!({"ms": 1500}));
    long.deadline = Some(Duration::from_secs(20));
    let mut short = tool_call("s__work", json!({"ms": 0}));
    short.deadline = Some(Duration::from_millis(100));
    let (long, short) =
        soon(async { tokio::join!(host.call_tool(long), host.call_tool(short)) }).await;
    assert_eq!(all_text(&long.unwrap()), "did \"work\"");
    assert!(matches!(short, Err(ToolCallError::Timeout { .. })));
    assert_eq!(status(&host, "s").pid, first);
    assert_eq!(status(&host, "s").state, ServerState::Ready);
    soon(host.close()).await;
}

#[tokio::test]
async fn a_call_that_is_made_again_is_told_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = program("s", "dies once");
    let mark = folder.path().join("mark");
    set_env(&mut config, "MARK", mark.to_str().unwrap());
    set_env(&mut config, "TOOLS", "work,read");
    let host = host([config]).await;
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let mut read = tool_call("s__read", json!({}));
    // The retry is reported also to a sink that receives progress.
    read.progress = ProgressSink::new(|_| {}).on_retry(move |retry| {
        // The send fails after the end of the test.
        let _ = told.send(retry);
    });
    let output = soon(host.call_tool(read)).await.unwrap();
    assert_eq!(all_text(&output), "did \"read\"");
    assert_eq!(
        soon(heard.recv()).await,
        Some(ToolRetry {
            attempt: 2,
            reason: "process exited with code 9".to_owned(),
        })
    );
    // The sink is dropped with the call.
    assert_eq!(soon(heard.recv()).await, None);
    soon(host.close()).await;
}

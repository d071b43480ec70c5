//! The end of servers. No process of them stays.

#![cfg(unix)]

use std::{task::Poll, time::Duration};

use rustix::process::{Pid, test_kill_process};
use serde_json::json;
use switchboard_domain::ToolHost;
use switchboard_mcp_client::{McpHost, ServerConfig, ServerState};

use crate::host::stage::*;

/// Whether the process runs. A zombie does not count.
pub(crate) fn runs(pid: u32) -> bool {
    let raw = i32::try_from(pid).unwrap();
    if test_kill_process(Pid::from_raw(raw).unwrap()).is_err() {
        return false;
    }
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        // The state follows the process name, which is in parentheses and may contain any
        // character.
        Ok(stat) => !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with('Z'),
        // The process has just ended, or the system has no `/proc`.
        Err(_) => !cfg!(target_os = "linux"),
    }
}

pub(crate) async fn gone(pid: u32) {
    soon(async {
        while runs(pid) {
            // sleep: only the parent of a process can wait for its end
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Returns a server whose shell starts a grandchild. Both ignore `SIGTERM`. The grandchild's id is
/// in the stderr output.
pub(crate) fn stubborn(name: &str) -> ServerConfig {
    program_after(
        "trap '' TERM; sleep 1000 </dev/null >/dev/null 2>&1 & echo grandchild $! >&2",
        name,
        "stubborn",
    )
}

/// Returns the id of the grandchild from the stderr output.
async fn grandchild(host: &McpHost, name: &str) -> u32 {
    soon(async {
        loop {
            let status = status(host, name);
            let mut lines = status.stderr_tail.iter();
            if let Some(pid) = lines.find_map(|line| line.strip_prefix("grandchild ")) {
                return pid.parse().unwrap();
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

pub(crate) async fn pids(host: &McpHost, name: &str) -> (u32, u32) {
    (
        status(host, name).pid.unwrap(),
        grandchild(host, name).await,
    )
}

#[tokio::test]
async fn a_server_leaves_when_its_input_ends() {
    // A server that ends only at a signal takes the whole grace period, which fails the test.
    let host = host([program("old", OLDER_ERA), program("new", NEWER_ERA)]).await;
    let all: Vec<u32> = host
        .server_statuses()
        .iter()
        .map(|s| s.pid.unwrap())
        .collect();
    let begun = std::time::Instant::now();
    soon(host.close()).await;
    assert!(
        begun.elapsed() < options().grace.after_stdin,
        "it took the whole grace"
    );
    for pid in all {
        assert!(!runs(pid));
    }
    for status in host.server_statuses() {
        assert_eq!((status.state, status.pid), (ServerState::Stopped, None));
    }
    let error = call(&host, "old__echo", json!({})).await.unwrap_err();
    let expected = "server `old` is not available: the server was stopped";
    assert_eq!(error.to_string(), expected);
    assert!(host.list_tools().await.tools.is_empty());
    // A second call of `close` is allowed.
    soon(host.close()).await;
}

/// The grace period is longer than the time limit of the test.
#[tokio::test]
async fn killing_waits_for_nobody() {
    let mut patient = options();
    patient.grace.after_stdin = Duration::from_mins(10);
    let servers = vec![
        stubborn("s"),
        program("good", BOTH_ERAS),
        program("mute", "mute"),
    ];
    let host = McpHost::start(servers, patient).unwrap();
    for name in ["s", "good"] {
        status_when(&host, name, |status| status.state == ServerState::Ready).await;
    }
    let (server, grandchild) = pids(&host, "s").await;
    let mute = status(&host, "mute").pid.unwrap();
    let killing = async {
        // The result shows that the pending call has reached its server.
        assert_eq!(text(&host, "good__echo").await, "{}");
        host.kill_servers().await;
    };
    let (answer, ()) = soon(async {
        tokio::join!(
            host.call_tool(tool_call("good__endless", json!({}))),
            killing
        )
    })
    .await;
    let error = answer.unwrap_err().to_string();
    assert!(error.ends_with("the server was stopped"), "{error}");
    for status in host.server_statuses() {
        assert_eq!((status.state, status.pid), (ServerState::Stopped, None));
    }
    for pid in [server, grandchild, mute] {
        gone(pid).await;
    }
    // All processes have ended, so this returns immediately.
    soon(host.close()).await;
    soon(host.kill_servers()).await;
}

#[tokio::test]
async fn killing_ends_a_close_that_takes_its_time() {
    let mut patient = options();
    patient.grace.after_stdin = Duration::from_mins(10);
    let host = host_with([stubborn("s")], patient).await;
    let (server, grandchild) = pids(&host, "s").await;
    let mut closing = std::pin::pin!(host.close());
    // One poll starts the closing.
    let under_way =
        std::future::poll_fn(|context| Poll::Ready(closing.as_mut().poll(context).is_pending()));
    assert!(under_way.await);
    soon(async { tokio::join!(host.kill_servers(), closing) }).await;
    assert_eq!(status(&host, "s").state, ServerState::Stopped);
    gone(server).await;
    gone(grandchild).await;
}

#[tokio::test]
async fn dropping_the_host_kills_everything() {
    let host = host([stubborn("s")]).await;
    let (server, grandchild) = pids(&host, "s").await;
    assert!(runs(server) && runs(grandchild));
    drop(host);
    gone(server).await;
    gone(grandchild).await;
}

#[test]
fn ending_the_runtime_kills_everything() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (host, (server, grandchild)) = runtime.block_on(async {
        let host = host([stubborn("s")]).await;
        let pids = pids(&host, "s").await;
        (host, pids)
    });
    runtime.shutdown_background();
    drop(host);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        gone(server).await;
        gone(grandchild).await;
    });
}

#[tokio::test]
async fn a_server_that_never_came_up_leaves_nothing_behind() {
    let mut config = program_after(
        "trap '' TERM; sleep 1000 </dev/null >/dev/null 2>&1 & echo grandchild $! >&2",
        "s",
        "mute",
    );
    config.connect_timeout = Duration::from_millis(500);
    let mut options = options();
    options.grace.after_stdin = Duration::from_millis(50);
    options.grace.after_term = Duration::from_millis(50);
    let host = host_with([config], options).await;
    let status = status(&host, "s");
    assert_eq!(status.state, ServerState::Failed);
    gone(grandchild(&host, "s").await).await;
}

#[tokio::test]
async fn what_a_dead_server_started_goes_with_it() {
    let config = program_after(
        "sleep 1000 </dev/null >/dev/null 2>&1 & echo grandchild $! >&2",
        "s",
        "dies in a call",
    );
    let mut options = options();
    options.restarts = 0;
    options.grace.after_stdin = Duration::from_millis(50);
    let host = host_with([config], options).await;
    let (_, grandchild) = pids(&host, "s").await;
    call(&host, "s__work", json!({})).await.unwrap_err();
    gone(grandchild).await;
}

#[tokio::test]
async fn closing_ends_calls_and_servers_that_are_still_starting() {
    let mut mute = program("mute", "mute");
    mute.connect_timeout = Duration::from_mins(10);
    let host = McpHost::start(vec![mute, program("s", BOTH_ERAS)], options()).unwrap();
    status_when(&host, "s", |status| status.state == ServerState::Ready).await;
    let (answer, ()) = soon(async {
        let endless = host.call_tool(tool_call("s__endless", json!({})));
        tokio::join!(endless, host.close())
    })
    .await;
    let error = answer.unwrap_err().to_string();
    assert!(error.ends_with("the server was stopped"), "{error}");
    assert_eq!(status(&host, "mute").state, ServerState::Stopped);
}

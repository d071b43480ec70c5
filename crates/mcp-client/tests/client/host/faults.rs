//! Misbehaving servers, one test each. For every fault:
//!
//! - the result is a typed error or a recovery, within the deadline;
//! - calls of another server succeed all the while;
//! - after the host is closed, no process and no task is left.
//!
//! | fault | result |
//! |---|---|
//! | slow response | `Timeout` within the deadline; the late response belongs to no other call |
//! | a line of 20 MiB | the response arrives |
//! | a line that exceeds the maximum length | `Timeout` within the deadline |
//! | `SIGTERM` is ignored, also by grandchildren | the processes are killed |
//! | a flood of notifications | the call works |

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use serde_json::json;
use switchboard_domain::ToolCallError;
use switchboard_mcp_client::{
    McpHost, ServerConfig, ServerState, ServerTransport, ShutdownGracePeriods,
};
use tokio::runtime::Handle;

#[cfg(unix)]
use crate::host::endings::stubborn;
use crate::host::stage::*;

/// An environment variable of the test's servers, which their child processes inherit. Its value
/// identifies the test.
const OWNER: &str = "SWITCHBOARD_TEST_OWNER";
/// Maximum response time of the healthy server on a busy machine.
const HEALTHY: Duration = Duration::from_secs(10);

/// Runs `check` within `limit` on a host with the faulty server and a healthy one. Then checks the
/// properties that hold for all faults.
async fn fault(mut sick: ServerConfig, limit: Duration, check: impl AsyncFnOnce(&McpHost)) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let owner = format!("{}-{count}", std::process::id());
    let mut good = program("good", BOTH_ERAS);
    for config in [&mut sick, &mut good] {
        if matches!(config.transport, ServerTransport::Stdio { .. }) {
            set_env(config, OWNER, &owner);
        }
    }
    let tasks = alive_tasks();
    let mut options = options();
    options.grace = ShutdownGracePeriods {
        after_stdin: Duration::from_millis(300),
        after_term: Duration::from_millis(300),
    };
    let host = McpHost::start(vec![sick, good], options).unwrap();
    status_when(&host, "good", |status| status.state == ServerState::Ready).await;
    {
        let begun = Instant::now();
        let mut check = std::pin::pin!(check(&host));
        let mut answers = 0;
        loop {
            let asked = Instant::now();
            tokio::select! {
                biased;
                () = &mut check => break,
                output = call(&host, "good__echo", json!({"n": answers})) => {
                    assert_eq!(output.unwrap().structured, Some(json!({"n": answers})));
                    assert!(asked.elapsed() < HEALTHY, "{:?}", asked.elapsed());
                    answers += 1;
                }
            }
        }
        assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
        let last = call(&host, "good__echo", json!({})).await;
        assert!(last.is_ok(), "{last:?}");
    }
    soon(host.close()).await;
    drop(host);
    no_process_of(&owner).await;
    soon(async {
        while alive_tasks() > tasks {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Waits until no process of this test is left. Works only where the environment of a process can
/// be read.
async fn no_process_of(owner: &str) {
    let mark = format!("{OWNER}={owner}");
    soon(async {
        while !processes_with(&mark).is_empty() {
            // sleep: only the parent of a process can wait for its end
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn processes_with(mark: &str) -> Vec<String> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .filter_map(|process| {
            let process = process.ok()?;
            let environment = std::fs::read(process.path().join("environ")).ok()?;
            let mut variables = environment.split(|byte| *byte == 0);
            let has = variables.any(|variable| variable == mark.as_bytes());
            has.then(|| process.file_name().to_string_lossy().into_owned())
        })
        .collect()
}

async fn error(host: &McpHost, tool: &str, input: serde_json::Value) -> ToolCallError {
    call(host, tool, input).await.unwrap_err()
}

#[tokio::test]
async fn slow() {
    let mut sick = program("s", "slow in a call");
    sick.call_timeout = Some(Duration::from_millis(300));
    fault(sick, Duration::from_secs(20), async |host| {
        let error = error(host, "s__work", json!({"ms": 600})).await;
        assert!(matches!(error, ToolCallError::Timeout { .. }), "{error:?}");
        // The late response to the first call arrives before the response to the second call.
        let mut patient = tool_call("s__work", json!({"ms": 0}));
        patient.deadline = Some(Duration::from_secs(20));
        let output = soon(switchboard_domain::ToolHost::call_tool(host, patient)).await;
        assert_eq!(all_text(&output.unwrap()), "did \"work\"");
        assert_ready(host, "s");
    })
    .await;
}

#[tokio::test]
async fn a_line_of_20_mib() {
    let sick = program("s", "says much in a call");
    fault(sick, Duration::from_mins(1), async |host| {
        let bytes = 20 * 1024 * 1024;
        let output = call(host, "s__work", json!({"bytes": bytes}))
            .await
            .unwrap();
        assert_eq!(all_text(&output).len(), bytes);
    })
    .await;
}

#[tokio::test]
async fn a_line_that_is_too_long_for_anybody() {
    let mut sick = program("s", "says much in a call");
    sick.call_timeout = Some(Duration::from_secs(1));
    fault(sick, Duration::from_mins(1), async |host| {
        let error = error(host, "s__work", json!({"bytes": 70 * 1024 * 1024})).await;
        assert!(matches!(error, ToolCallError::Timeout { .. }), "{error:?}");
        // The line after the overlong one is read.
        let mut patient = tool_call("s__work", json!({"bytes": 3}));
        patient.deadline = Some(Duration::from_secs(20));
        let output = soon(switchboard_domain::ToolHost::call_tool(host, patient)).await;
        assert_eq!(all_text(&output.unwrap()), "xxx");
    })
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn deaf_to_sigterm_with_grandchildren() {
    fault(stubborn("s"), Duration::from_secs(20), async |host| {
        assert_eq!(text(host, "s__work").await, "did \"work\"");
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_notifications() {
    let sick = program("s", "floods in a call");
    fault(sick, Duration::from_mins(1), async |host| {
        for _ in 0..3 {
            assert_eq!(text(host, "s__work").await, "did \"work\"");
        }
        assert_ready(host, "s");
    })
    .await;
}

//! Time limits, repetitions, circuit breakers and the number of concurrent calls.

use std::time::Duration;

use futures_util::{StreamExt, future::join_all};
use serde_json::json;
use switchboard_domain::{ToolCallError, ToolHost, ToolHostChange};
use switchboard_mcp_client::{CircuitOptions, McpHost, ServerState};

use crate::host::stage::*;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn timed_out(answer: Result<switchboard_domain::ToolOutput, ToolCallError>) -> Duration {
    match answer {
        Err(ToolCallError::Timeout { after, .. }) => after,
        other => panic!("no time-out: {other:?}"),
    }
}

/// Calls a tool that times out. Returns the exceeded limit.
async fn time_limit(host: &McpHost, tool: &str) -> Duration {
    timed_out(call(host, tool, json!({})).await)
}

#[tokio::test]
async fn progress_keeps_a_call_alive_and_never_beyond_its_whole_time() {
    for kind in [OLDER_ERA, NEWER_ERA] {
        // The tool works for 500 ms and reports progress every 50 ms.
        let mut options = options();
        options.call_timeout = ms(250);
        let host = host_with([program("s", kind)], options.clone()).await;
        assert_eq!(text(&host, "s__labour").await, "done", "{kind}");
        assert_eq!(time_limit(&host, "s__endless").await, ms(250));

        // Progress does not extend the maximum time of the whole call.
        options.max_call_time = ms(300);
        let host = host_with([program("s", kind)], options).await;
        assert_eq!(time_limit(&host, "s__labour").await, ms(300));

        // The same limits can be set for one server.
        let mut config = program("s", kind);
        config.call_timeout = Some(ms(20_000));
        config.idle_timeout = Some(ms(200));
        let host = crate::host::stage::host([config]).await;
        assert_eq!(text(&host, "s__labour").await, "done", "{kind}");
        assert_eq!(time_limit(&host, "s__endless").await, ms(200));
        let mut short = tool_call("s__labour", json!({}));
        short.deadline = Some(ms(300));
        assert_eq!(timed_out(soon(host.call_tool(short)).await), ms(300));
    }
}

#[tokio::test]
async fn a_tool_may_have_a_time_of_its_own() {
    let mut config = program("s", BOTH_ERAS);
    config.call_timeout = Some(ms(20_000));
    config.tool_timeouts = vec![("endless".to_owned(), ms(150))];
    let host = host([config]).await;
    assert_eq!(time_limit(&host, "s__endless").await, ms(150));
    let raw = soon(host.call_server_tool("s", "endless", object(json!({})))).await;
    assert_eq!(timed_out(raw), ms(150));
    assert_eq!(text(&host, "s__labour").await, "done");
}

#[tokio::test]
async fn the_time_of_a_tool_also_limits_the_wait_for_its_server() {
    let mut config = program("s", "never lists");
    config.connect_timeout = ms(600_000);
    config.call_timeout = Some(ms(600_000));
    config.tool_timeouts = vec![("work".to_owned(), ms(150))];
    let host = McpHost::start(vec![config], options()).unwrap();
    let error = call(&host, "s__work", json!({})).await.unwrap_err();
    assert!(
        matches!(error, ToolCallError::Unavailable { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_call_that_broke_is_made_again_where_the_tool_only_reads() {
    let folder = tempfile::tempdir().unwrap();
    let server = |mark: &str| {
        let mut config = program("s", "dies once");
        set_env(&mut config, "TOOLS", "work,read");
        set_env(
            &mut config,
            "MARK",
            folder.path().join(mark).to_str().unwrap(),
        );
        config
    };
    let host = host([server("reads")]).await;
    assert_eq!(text(&host, "s__read").await, "did \"read\"");

    let mut never = options();
    never.retries = 0;
    let host = host_with([server("never")], never).await;
    let error = call(&host, "s__read", json!({})).await.unwrap_err();
    assert!(matches!(error, ToolCallError::Broken { .. }), "{error:?}");

    // A tool that is not read-only is not called again.
    let host = crate::host::stage::host([server("works")]).await;
    let error = call(&host, "s__work", json!({})).await.unwrap_err();
    assert!(matches!(error, ToolCallError::Broken { .. }), "{error:?}");
}

#[tokio::test]
async fn a_repetition_has_its_end_too() {
    let mut options = options();
    options.restarts = 10;
    let mut config = program("s", "dies in a call");
    config.tool_timeouts = vec![("read".to_owned(), ms(20_000))];
    set_env(&mut config, "TOOLS", "work,read");
    let host = host_with([config], options).await;
    let error = call(&host, "s__read", json!({})).await.unwrap_err();
    // The error is that of the first attempt.
    assert!(
        error.to_string().contains("process exited with code 3"),
        "{error}"
    );
    assert!(!error.did_not_run());
}

#[tokio::test]
async fn a_tool_that_gives_no_answers_is_left_alone_for_a_while() {
    let mut options = options();
    options.circuits = CircuitOptions {
        pause: ms(400),
        ..CircuitOptions::default()
    };
    let mut config = program("s", "silent in three calls");
    config.tool_timeouts = vec![("work".to_owned(), ms(100))];
    let host = host_with([config], options).await;
    let mut changes = host.watch_changes();
    for _ in 0..3 {
        assert_eq!(timed_out(call(&host, "s__work", json!({})).await), ms(100));
    }
    let error = call(&host, "s__work", json!({})).await.unwrap_err();
    assert!(error.did_not_run());
    assert_eq!(
        error.to_string(),
        "server `s` is not available: the last calls of `work` failed (no response within 100ms); \
         retry in 1 s"
    );
    let Some(ToolHostChange::ServerState { state, reason, .. }) = soon(changes.next()).await else {
        panic!("no state");
    };
    assert_eq!(state, "degraded");
    assert!(
        reason
            .unwrap()
            .contains("`work` (no response within 100ms)")
    );
    assert_eq!(status(&host, "s").state, ServerState::Degraded);
    // The server's other tools work, and the blocked tool stays in the list.
    assert_eq!(text(&host, "s__rest").await, "did \"rest\"");
    assert_eq!(tool_names(&host).await, ["s__work", "s__rest"]);
    assert_eq!(problems(&host).await.len(), 1);
    host.wait_until_ready().await.unwrap();

    // After the pause, one call is allowed. Its success closes the circuit breaker.
    soon(async {
        while call(&host, "s__work", json!({})).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let Some(ToolHostChange::ServerState { state, .. }) = soon(changes.next()).await else {
        panic!("no state");
    };
    assert_eq!(state, "ready");
    assert_ready(&host, "s");
}

#[tokio::test]
async fn a_server_that_answers_nothing_is_blocked_until_somebody_starts_it_again() {
    let mut options = options();
    options.circuits = CircuitOptions {
        server_failures: 2,
        ..CircuitOptions::default()
    };
    let mut config = program("s", "silent in a call");
    config.call_timeout = Some(ms(100));
    let host = host_with([config], options).await;
    for _ in 0..2 {
        timed_out(call(&host, "s__work", json!({})).await);
    }
    let blocked = status(&host, "s");
    assert_eq!(blocked.state, ServerState::Blocked);
    assert!(blocked.reason.unwrap().starts_with("calls are paused"));
    let raw = soon(host.call_server_tool("s", "work", object(json!({})))).await;
    assert!(raw.unwrap_err().did_not_run());

    assert!(host.restart_server("s"));
    let again = status_when(&host, "s", |now| {
        now.state == ServerState::Ready && now.pid != blocked.pid
    });
    again.await;
    // The restarted server gets calls again.
    timed_out(call(&host, "s__work", json!({})).await);
}

#[tokio::test]
async fn one_death_is_held_against_a_tool_once() {
    let mut options = options();
    options.circuits.tool_failures = 2;
    options.circuits.server_failures = 2;
    let host = host_with([program("s", BOTH_ERAS)], options).await;
    let many = (0..10).map(|_| host.call_tool(tool_call("s__endless", json!({}))));
    let crash = host.call_tool(tool_call("s__crash", json!({})));
    let (all, crash) = soon(async { tokio::join!(join_all(many), crash) }).await;
    for answer in all.into_iter().chain([crash]) {
        assert!(
            matches!(answer, Err(ToolCallError::Broken { .. })),
            "{answer:?}"
        );
    }
    assert_eq!(text(&host, "s__echo").await, "{}");
    assert_ready(&host, "s");
}

#[tokio::test]
async fn no_more_calls_run_at_once_than_a_server_takes() {
    let mut config = program("s", BOTH_ERAS);
    config.max_concurrent_calls = Some(2);
    let host = host([config]).await;
    let crowd = (0..6).map(|_| text(&host, "s__crowd"));
    let at_once = join_all(crowd).await;
    assert!(at_once.iter().all(|n| n == "1" || n == "2"), "{at_once:?}");
    assert!(at_once.contains(&"2".to_owned()), "{at_once:?}");

    let mut impatient = tool_call("s__echo", json!({}));
    impatient.deadline = Some(ms(100));
    let endless = [(); 2].map(|()| host.call_tool(tool_call("s__endless", json!({}))));
    let mut endless = std::pin::pin!(join_all(endless));
    let error = tokio::select! {
        biased;
        answer = &mut endless => panic!("{answer:?}"),
        answer = host.call_tool(impatient) => answer.unwrap_err(),
    };
    assert!(error.did_not_run());
    assert!(
        error
            .to_string()
            .contains("the limit of 2 calls at a time is reached"),
        "{error}"
    );
}

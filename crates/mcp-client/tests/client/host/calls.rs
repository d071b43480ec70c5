//! Tool calls: their results and their failures.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use switchboard_domain::{ProgressSink, ToolCallError, ToolContent, ToolHost, ToolProgress};
use switchboard_mcp_client::{McpHost, ServerState};

use crate::host::stage::*;

#[tokio::test]
async fn input_goes_in_and_content_data_and_failure_come_out() {
    for kind in [OLDER_ERA, NEWER_ERA] {
        let host = host([program("s", kind)]).await;
        let input = json!({"name": "Ä", "n": [1, 2]});
        let output = call(&host, "s__echo", input.clone()).await.unwrap();
        assert_eq!(output.content, [ToolContent::text(input.to_string())]);
        assert_eq!(output.structured, Some(input.clone()));
        assert!(!output.is_error);

        let raw = host.call_server_tool("s", "echo", object(input.clone()));
        assert_eq!(soon(raw).await.unwrap().structured, Some(input));

        let failed = call(&host, "s__fail", json!({})).await.unwrap();
        assert!(failed.is_error);
        assert_eq!(all_text(&failed), "no such customer");

        let refused = call(&host, "s__refuse", json!({})).await.unwrap_err();
        let expected = "server `s` refused `refuse`: `id` is missing (code -32602)";
        assert_eq!(refused.to_string(), expected);
        assert!(refused.did_not_run());
    }
}

#[tokio::test]
async fn content_of_an_unknown_kind_does_not_hide_the_rest() {
    let host = host([program("s", "odd result")]).await;
    let output = call(&host, "s__work", json!({})).await.unwrap();
    let hologram = json!({"type": "hologram", "beams": 3});
    assert_eq!(
        output.content,
        [
            ToolContent::text("one"),
            ToolContent::Unknown { value: hologram }
        ]
    );
}

#[tokio::test]
async fn a_result_that_is_nested_too_deeply_is_an_error_of_the_tool() {
    let host = host([program("s", "deep call")]).await;
    let output = call(&host, "s__work", json!({})).await.unwrap();
    assert!(output.is_error);
    assert_eq!(
        output.content,
        [ToolContent::text(
            "The tool ran, but its result cannot be used: it is nested more than 64 levels deep."
        )]
    );
    assert_eq!(output.structured, None);
}

#[tokio::test]
async fn a_tool_or_server_that_is_not_there_is_named_with_what_is() {
    let mut config = program("s", BOTH_ERAS);
    config.allowed_tools = Some(vec!["echo".to_owned()]);
    let host = host([config, program("dead", "dead")]).await;
    let error = call(&host, "s__ecko", json!({})).await.unwrap_err();
    let expected = "unknown tool `s__ecko`. Available: s__echo";
    assert_eq!(error.to_string(), expected);

    // The tools of this server are unknown, so the error is not "unknown tool".
    let error = call(&host, "dead__anything", json!({})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `dead` is not available: process exited with code 3; last lines of stderr: cannot \
         open the database | bye"
    );
    let error = host
        .call_server_tool("ded", "x", object(json!({})))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "server `ded` is not available: not configured (did you mean `dead`?); configured servers: \
         s, dead"
    );
}

#[tokio::test]
async fn progress_is_told_in_order_and_before_the_answer() {
    for kind in [OLDER_ERA, NEWER_ERA] {
        let host = host([program("s", kind)]).await;
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut call = tool_call("s__count", json!({}));
        let listener = told.clone();
        call.progress = ProgressSink::new(move |progress| listener.lock().unwrap().push(progress));
        let output = soon(host.call_tool(call)).await.unwrap();
        assert_eq!(all_text(&output), "counted");
        let step = |n: u8| ToolProgress {
            progress: f64::from(n),
            total: Some(3.0),
            message: Some(format!("step {n}")),
        };
        assert_eq!(*told.lock().unwrap(), [step(1), step(2), step(3)], "{kind}");
        // Without a listener, progress is still requested: it shows that the server works.
        assert_eq!(text(&host, "s__count").await, "counted");
        // With a fixed deadline and without a listener, progress is not requested.
        let mut call = tool_call("s__count", json!({}));
        call.deadline = Some(Duration::from_secs(20));
        let output = soon(host.call_tool(call)).await.unwrap();
        assert_eq!(all_text(&output), "nobody listens");
    }
}

#[tokio::test]
async fn a_repetition_can_be_told_by_its_key() {
    let host = host([program("s", OLDER_ERA)]).await;
    let mut call = tool_call("s__meta", json!({}));
    // With a fixed deadline, no progress is requested.
    call.deadline = Some(Duration::from_secs(20));
    let without = call.clone();
    call.idempotency_key = Some("run-1/call-2".to_owned());
    let meta = all_text(&soon(host.call_tool(call)).await.unwrap());
    assert_eq!(meta, r#"{"switchboard/idempotency-key":"run-1/call-2"}"#);
    let meta = all_text(&soon(host.call_tool(without)).await.unwrap());
    assert_eq!(meta, "{}");
}

#[tokio::test]
async fn the_server_hears_of_a_call_that_is_dropped() {
    for kind in [OLDER_ERA, NEWER_ERA] {
        let host = host([program("s", kind)]).await;
        let endless = host.call_tool(tool_call("s__endless", json!({})));
        let seen = host.call_tool(tool_call("s__await_cancellation", json!({})));
        let mut seen = std::pin::pin!(seen);
        {
            let mut endless = std::pin::pin!(endless);
            tokio::select! {
                biased;
                answer = &mut endless => panic!("{answer:?}"),
                // The result shows that the endless call has reached the server.
                output = call(&host, "s__echo", json!({})) => assert!(output.is_ok()),
            }
        }
        assert_eq!(all_text(&soon(&mut seen).await.unwrap()), "seen", "{kind}");
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let mut config = program("s", BOTH_ERAS);
    config.call_timeout = Some(Duration::from_millis(200));
    let host = host([config]).await;
    let error = call(&host, "s__endless", json!({})).await.unwrap_err();
    let expected = "`endless` of server `s` did not respond within 200ms";
    assert_eq!(error.to_string(), expected);
    assert!(!error.did_not_run());

    // The deadline of a call replaces the default time limit.
    let mut patient = tool_call("s__await_cancellation", json!({}));
    patient.deadline = Some(Duration::from_secs(20));
    assert_eq!(
        all_text(&soon(host.call_tool(patient)).await.unwrap()),
        "seen"
    );
    assert_ready(&host, "s");
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_reported_at_once_with_its_last_words() {
    for (kind, tool) in [
        ("dies in a call", "work"),
        (OLDER_ERA, "crash"),
        (NEWER_ERA, "crash"),
    ] {
        let host = host([program("s", kind)]).await;
        let error = call(&host, &format!("s__{tool}"), json!({}))
            .await
            .unwrap_err();
        assert!(matches!(error, ToolCallError::Broken { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!(
                "the call of `{tool}` on server `s` was interrupted: process exited with code \
                 3; last lines of stderr: disk full | giving up"
            )
        );
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_open_does_not_hide_the_death() {
    let host = host([program_after("sleep 1000 &", "s", "dies in a call")]).await;
    assert_ready(&host, "s");
    let error = call(&host, "s__work", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("exited with code 3"), "{error}");
}

#[tokio::test]
async fn a_server_that_died_is_started_again_and_calls_wait_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = program("s", "dies once");
    let mark = folder.path().join("mark");
    set_env(&mut config, "MARK", mark.to_str().unwrap());
    let host = host([config]).await;
    let first = status(&host, "s").pid;
    let error = call(&host, "s__work", json!({})).await.unwrap_err();
    assert!(
        error.to_string().contains("process exited with code 9"),
        "{error}"
    );
    assert_eq!(text(&host, "s__work").await, "did \"work\"");
    assert_ready(&host, "s");
    assert_ne!(status(&host, "s").pid, first);
}

#[tokio::test]
async fn a_server_that_dies_again_and_again_is_given_up() {
    let servers = vec![program("s", "dies in a call")];
    let mut options = options();
    options.restarts = 2;
    let host = McpHost::start(servers, options).unwrap();
    for _ in 0..3 {
        let error = call(&host, "s__work", json!({})).await.unwrap_err();
        assert!(matches!(error, ToolCallError::Broken { .. }), "{error:?}");
    }
    let status = status_when(&host, "s", |status| status.state == ServerState::Failed).await;
    assert!(
        status
            .reason
            .unwrap()
            .starts_with("process exited with code 3")
    );
    assert!(tool_names(&host).await.is_empty());
    let error = call(&host, "s__work", json!({})).await.unwrap_err();
    assert!(
        matches!(error, ToolCallError::Unavailable { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_sequential_server_gets_one_call_at_a_time() {
    let mut config = program("s", BOTH_ERAS);
    config.sequential = true;
    let host = host([config]).await;
    let crowd = || call(&host, "s__crowd", json!({}));
    let (a, b, c) = tokio::join!(crowd(), crowd(), crowd());
    for output in [a, b, c] {
        assert_eq!(all_text(&output.unwrap()), "1");
    }
}

#[tokio::test]
async fn a_server_that_asks_the_person_is_declined() {
    let host = host([program("s", "asks back")]).await;
    assert_ready(&host, "s");
    let expected = r#"{"name":{"action":"decline"}}"#;
    assert_eq!(text(&host, "s__work").await, expected);
}

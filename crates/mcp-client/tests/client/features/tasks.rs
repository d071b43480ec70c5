//! Calls that become tasks.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use switchboard_domain::{ProgressSink, ToolCallError, ToolHost};

use crate::features::stage::*;

#[tokio::test]
async fn a_task_is_followed_to_its_result() {
    for stage in both(NEWER).await {
        let told: Arc<Mutex<Vec<(f64, String)>>> = Arc::default();
        let heard = told.clone();
        let mut work = tool("work", json!({}));
        work.progress = ProgressSink::new(move |progress| {
            let message = progress.message.unwrap_or_default();
            heard.lock().unwrap().push((progress.progress, message));
        });
        let output = soon(stage.host.call_tool(work)).await.unwrap();
        assert_eq!(output.content[0].as_text(), "done");
        // A repeated progress message is reported once.
        let told = told.lock().unwrap().clone();
        let expected = [(1.0, "begun".to_owned()), (2.0, "halfway".to_owned())];
        assert_eq!(told, expected);
        soon(stage.host.close()).await;
    }
}

#[tokio::test]
async fn the_older_era_has_no_tasks() {
    let stage = over_stdio(OLDER).await;
    let answer = call(&stage.host, "work", json!({})).await.unwrap();
    assert_eq!(answer, "no task");
    soon(stage.host.close()).await;
}

#[tokio::test]
async fn a_task_that_fails_is_an_error_as_the_call_would_be() {
    for stage in both(NEWER).await {
        let error = call(&stage.host, "fail", json!({})).await.unwrap_err();
        assert!(error.did_not_run());
        let expected = "server `s` refused `fail`: no paper for [redacted] (code -32001)";
        assert_eq!(error.to_string(), expected);
        let lost = call(&stage.host, "lost", json!({})).await.unwrap_err();
        let ToolCallError::Broken { reason, .. } = &lost else {
            panic!("{lost}");
        };
        assert!(reason.contains("there is no such task"), "{reason}");
        soon(stage.host.close()).await;
    }
}

#[tokio::test]
async fn what_a_task_wants_to_know_is_answered_once() {
    for stage in both(NEWER).await {
        let told = call(&stage.host, "ask", json!({})).await.unwrap();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["content"], json!({"name": "Ada"}));
        soon(stage.host.close()).await;
    }
}

#[tokio::test]
async fn a_task_of_a_call_that_is_given_up_is_cancelled() {
    for stage in both(NEWER).await {
        let mut endless = tool("endless", json!({}));
        endless.deadline = Some(Duration::from_millis(200));
        let error = soon(stage.host.call_tool(endless)).await.unwrap_err();
        assert!(matches!(error, ToolCallError::Timeout { .. }), "{error}");
        let cancelled = call(&stage.host, "cancelled", json!({})).await.unwrap();
        assert_eq!(cancelled, "endless");
        soon(stage.host.close()).await;
    }
}

#[tokio::test]
async fn answers_about_a_task_are_signs_of_life() {
    let mut config = program(NEWER);
    config.idle_timeout = Some(Duration::from_millis(300));
    config.call_timeout = Some(Duration::from_millis(1200));
    let host = host(config).await;
    let begun = std::time::Instant::now();
    let error = call(&host, "endless", json!({})).await.unwrap_err();
    let ToolCallError::Timeout { after, .. } = error else {
        panic!("{error}");
    };
    // The maximum time of the whole call ended it, and not the limit without progress.
    assert_eq!(after, Duration::from_millis(1200));
    assert!(begun.elapsed() >= after);
    soon(host.close()).await;
}

#[tokio::test]
async fn the_end_of_a_task_is_heard_before_it_is_asked_after() {
    let host = host(program("teller")).await;
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = told.clone();
    let mut work = tool("work", json!({}));
    work.progress = ProgressSink::new(move |progress| {
        heard.lock().unwrap().extend(progress.message);
    });
    // The task's poll interval is 20 seconds, so only notifications can bring the result in time.
    work.deadline = Some(Duration::from_secs(15));
    let output = soon(host.call_tool(work)).await.unwrap();
    assert_eq!(output.content[0].as_text(), "worked");
    assert_eq!(told.lock().unwrap()[..2], ["begun", "halfway"]);
    // The server gets the end of the subscription.
    let over = call(&host, "over", json!({})).await.unwrap();
    assert_eq!(over, "nobody listens");
    soon(host.close()).await;
}

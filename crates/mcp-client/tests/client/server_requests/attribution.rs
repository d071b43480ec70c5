//! The call that an elicitation belongs to if the server does not name it. This occurs over stdio
//! in versions before 2026-07-28.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::join;
use serde_json::{Value, json};
use switchboard_domain::{ToolCall, ToolCallError, ToolHost};
use switchboard_mcp_client::McpHost;

use crate::server_requests::support::*;

const SHORT: Duration = Duration::from_millis(50);

/// Starts a host for several users, with a legacy stdio server.
async fn host(users: &Arc<User>) -> McpHost {
    over_stdio(LEGACY).host(users.handlers()).await
}

fn known(key: &str) -> (Option<String>, Vec<String>) {
    (Some(key.to_owned()), Vec::new())
}

fn either(keys: [&str; 2]) -> (Option<String>, Vec<String>) {
    (None, keys.map(str::to_owned).to_vec())
}

fn cancelled() -> Value {
    json!({"action": "cancel"})
}

/// Returns the answer of a call as JSON.
async fn answer(host: &McpHost, call: ToolCall) -> Value {
    let output = soon(host.call_tool(call)).await.unwrap();
    serde_json::from_str(&output.content[0].as_text()).unwrap()
}

#[tokio::test]
async fn a_late_request_of_a_cancelled_call_is_not_shown_to_another_user() {
    let users = User::several([]);
    let host = host(&users).await;
    {
        let mut late = pin!(host.call_tool(keyed("late", "ada/1/a")));
        tokio::select! {
            biased;
            answer = &mut late => panic!("{answer:?}"),
            waiting = call(&host, "waiting") => assert_eq!(waiting.unwrap(), json!(1)),
        }
        // The call is cancelled.
    }
    let of_bob = answer(&host, keyed("last_answer", "bob/1/b"));
    let (received, _) = join(of_bob, call(&host, "release")).await;
    assert_eq!(received, cancelled());
    assert_eq!(users.attributions(), [either(["ada/1/a", "bob/1/b"])]);
    assert!(users.shown().is_empty());
    soon(host.close()).await;
}

#[tokio::test]
async fn a_late_request_of_a_timed_out_call_is_not_shown_to_another_user() {
    let users = User::several([]);
    let host = host(&users).await;
    let of_ada = ToolCall {
        deadline: Some(SHORT),
        ..keyed("late", "ada/1/a")
    };
    let timed_out = soon(host.call_tool(of_ada)).await;
    assert!(matches!(timed_out, Err(ToolCallError::Timeout { .. })));
    let of_bob = answer(&host, keyed("last_answer", "bob/1/b"));
    let (received, _) = join(of_bob, call(&host, "release")).await;
    assert_eq!(received, cancelled());
    assert!(users.shown().is_empty());
    soon(host.close()).await;
}

#[tokio::test]
async fn a_request_during_calls_of_one_user_is_shown() {
    let users = User::several([accept(json!({"name": "Ada"}))]);
    let host = host(&users).await;
    let waiting = host.call_tool(keyed("wait", "ada/1/a"));
    let form = async {
        call(&host, "waiting").await.unwrap();
        let form = answer(&host, keyed("form", "ada/1/b")).await;
        (form, call(&host, "release").await)
    };
    let (_, (form, _)) = soon(join(waiting, form)).await;
    assert_eq!(form["content"]["name"], "Ada");
    assert_eq!(users.shown().len(), 1);
    soon(host.close()).await;
}

#[tokio::test]
async fn a_server_may_name_the_call_of_its_request() {
    let users = User::several([]);
    let host = host(&users).await;
    {
        let calls = join(
            host.call_tool(keyed("named", "ada/1/a")),
            host.call_tool(keyed("named", "bob/1/b")),
        );
        let mut calls = pin!(calls);
        tokio::select! {
            biased;
            answers = &mut calls => panic!("{answers:?}"),
            () = users.has_pending(2) => {}
        }
    }
    let mut attributions = users.attributions();
    attributions.sort();
    assert_eq!(attributions, [known("ada/1/a"), known("bob/1/b")]);
    soon(host.close()).await;
}

#[tokio::test]
async fn a_request_to_one_user_does_not_pause_the_deadline_of_another() {
    let users = User::several([]);
    let host = host(&users).await;
    let mut of_ada = Box::pin(host.call_tool(keyed("form", "ada/1/a")));
    tokio::select! {
        biased;
        answer = &mut of_ada => panic!("{answer:?}"),
        () = users.has_pending(1) => {}
    }
    let of_bob = ToolCall {
        deadline: Some(SHORT),
        ..keyed("wait", "bob/1/b")
    };
    tokio::select! {
        biased;
        answer = &mut of_ada => panic!("{answer:?}"),
        answer = soon(host.call_tool(of_bob)) => {
            assert!(matches!(answer, Err(ToolCallError::Timeout { .. })), "{answer:?}");
        }
    }
    assert_eq!(users.attributions(), [known("ada/1/a")]);
    soon(host.close()).await;
}

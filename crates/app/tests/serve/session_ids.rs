//! Sessions with ids that clients choose: each user has a separate set of ids.

use serde_json::{Value, json};

use crate::{
    serving::{ANN, BOB, Serving},
    support::Place,
};

/// A token without a user. It acts for the same principal as the command line, so its session ids
/// are stored unchanged.
const NOBODY: &str = "nobody-0123456789abcdef";

fn guarded() -> Place {
    let config = json!({
        "mcp_servers": {},
        "serve": {"tokens": [{"token": ANN, "user": "ann"}, {"token": BOB, "user": "bob"}, NOBODY]},
    });
    Place::new().with_file("switchboard.json", &config.to_string())
}

fn ui(text: &str) -> Value {
    let said = json!({"id": text, "role": "user", "parts": [{"type": "text", "text": text}]});
    json!({"id": "default", "messages": [said]})
}

fn ag_ui(text: &str) -> Value {
    json!({
        "threadId": "default", "runId": text, "messages": [{"id": text, "role": "user", "content": text}],
        "tools": [], "context": [], "state": {}, "forwardedProps": {},
    })
}

/// Sends a question and returns the session id of the response.
async fn said(server: &Serving, path: &str, body: &Value) -> String {
    let answered = server.post(path, body).await;
    assert_eq!(answered.status, 200, "{answered:?}");
    // The client gets the id that it chose.
    if path == "/ag-ui" {
        assert!(
            answered.text.contains("\"threadId\":\"default\""),
            "{answered:?}"
        );
    }
    answered.header("x-switchboard-session-id").to_owned()
}

#[tokio::test]
async fn another_users_client_id_does_not_conflict() {
    for (path, asked) in [("/api/chat", ui as fn(&str) -> Value), ("/ag-ui", ag_ui)] {
        let server = Serving::start_owned(guarded(), &[]).await.with_token(ANN);
        let first = said(&server, path, &asked("one")).await;
        let server = server.with_token(BOB);
        let other = said(&server, path, &asked("two")).await;
        assert_ne!(first, other);
        // A user cannot read the session of another user. A further request uses the user's own
        // session again.
        for hidden in [&first, &"default".to_owned()] {
            let shown = server.get(&format!("/sessions/{hidden}")).await;
            assert_eq!(shown.problem(404), "not-found", "{hidden}");
        }
        assert_eq!(said(&server, path, &asked("three")).await, other);
        let server = server.with_token(ANN);
        assert_eq!(said(&server, path, &asked("four")).await, first);
        let shown = server.get(&format!("/sessions/{first}")).await.expect(200);
        let text = shown["messages"].to_string();
        assert!(text.contains("one") && text.contains("four"), "{text}");
        assert!(!text.contains("two") && !text.contains("three"), "{text}");
        // The stored id finds the session as well.
        let mut stored = asked("five");
        stored[if path == "/ag-ui" { "threadId" } else { "id" }] = json!(first);
        let answered = server.post(path, &stored).await;
        assert_eq!(
            answered.header("x-switchboard-session-id"),
            first,
            "{answered:?}"
        );
        let sessions = server.get("/sessions").await.expect(200);
        assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn an_id_cannot_be_claimed_before_its_owner() {
    // The unkeyed hash of "", "ann" and "default".
    const COMPUTED: &str = "default.8a623e9c3a9cb374401e8c05";
    for (path, asked) in [("/api/chat", ui as fn(&str) -> Value), ("/ag-ui", ag_ui)] {
        let server = Serving::start_owned(guarded(), &[])
            .await
            .with_token(NOBODY);
        let mut taken = asked("mine");
        taken[if path == "/ag-ui" { "threadId" } else { "id" }] = json!(COMPUTED);
        let answered = server.post(path, &taken).await;
        assert_eq!(answered.header("x-switchboard-session-id"), COMPUTED);
        let server = server.with_token(ANN);
        let own = said(&server, path, &asked("one")).await;
        assert_ne!(own, COMPUTED);
        // Another user who knows the id gets a separate session.
        let server = server.with_token(BOB);
        let mut guessed = asked("two");
        guessed[if path == "/ag-ui" { "threadId" } else { "id" }] = json!(own);
        let other = server.post(path, &guessed).await;
        assert_ne!(other.header("x-switchboard-session-id"), own, "{other:?}");
        let server = server.with_token(ANN);
        let shown = server.get(&format!("/sessions/{own}")).await.expect(200);
        assert!(!shown["messages"].to_string().contains("two"), "{shown}");
    }
}

#[tokio::test]
async fn an_id_stays_the_same_after_a_restart_and_differs_between_stores() {
    let (place, other) = (guarded(), guarded());
    let mut ids = Vec::new();
    for place in [&place, &place, &other] {
        let server = Serving::start(place, &[]).await.with_token(ANN);
        ids.push(said(&server, "/api/chat", &ui("one")).await);
        server.kill().await;
    }
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2]);
}

#[tokio::test]
async fn without_users_a_chat_id_is_the_session_id() {
    let server = Serving::start_owned(Place::new(), &["--no-tools"]).await;
    assert_eq!(said(&server, "/api/chat", &ui("one")).await, "default");
    assert_eq!(said(&server, "/ag-ui", &ag_ui("two")).await, "default");
    let shown = server.get("/sessions/default").await.expect(200);
    assert_eq!(shown["runs"].as_array().unwrap().len(), 2);
}

//! Error responses and invalid answers.

use futures_util::future::join_all;
use serde_json::json;
use switchboard_domain::{ModelError, ModelErrorKind};

use super::{Fixtures, aimock, failure, start, statuses, tell};
use crate::{
    conversation::{TEXT, ask_plainly},
    entry::{Entry, Form},
    wires::{WIRES, Wire},
};

/// Checks the status, the message and the request id of an error.
fn check_context(entry: &Entry, error: &ModelError, status: u16) {
    assert_eq!(error.http_status(), Some(status), "{entry}: {error}");
    assert!(error.message().contains("as the test wants"), "{error}");
    let id = error.request_id().unwrap_or_default();
    assert!(id.starts_with("req-"), "{entry}: {error}");
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_names_the_offending_field() {
    let peer = aimock().await;
    let streamed = |wire| Entry::new(&peer, wire, Form::Streamed);
    let wants = "as the test wants";
    // Each wire names the invalid field in another way. Gemini uses `details`, which this server
    // does not support.
    let table = [
        (
            streamed(Wire::Anthropic),
            json!({"message": format!("max_tokens: {wants}")}),
            "max_tokens",
        ),
        (
            streamed(Wire::Chat),
            json!({"param": "messages[0].content"}),
            "messages[0].content",
        ),
        (
            streamed(Wire::Responses),
            json!({"param": "input"}),
            "input",
        ),
        (
            streamed(Wire::Ollama),
            json!({"message": format!(
                "json: cannot unmarshal bool into Go struct field ChatRequest.messages of type \
                 string ({wants})"
            )}),
            "messages",
        ),
    ];
    let mut fixtures = Fixtures::default();
    for (entry, further, _) in &table {
        let failure = failure(entry.wire, 400, further);
        fixtures.add(&entry.to_string(), &failure, &json!({}));
    }
    tell(&peer, fixtures).await;
    for (entry, _, field) in &table {
        let error = ask_plainly(entry, &entry.to_string()).await.error();
        let kind = ModelErrorKind::InvalidRequest {
            field: Some((*field).to_owned()),
        };
        assert_eq!(error.kind, kind, "{entry}: {error}");
        check_context(entry, &error, 400);
    }
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_talks_nonsense_or_hangs_up() {
    let peer = aimock().await;
    let entries = Entry::each(&peer, &WIRES);
    let answer = json!({"content": TEXT});
    let chaos = |name: &str| json!({"chaos": {name: 1}});
    let mut fixtures = Fixtures::default();
    for entry in &entries {
        fixtures
            .add(
                &format!("nonsense, {entry}"),
                &answer,
                &chaos("malformedRate"),
            )
            .add(&format!("gone, {entry}"), &answer, &chaos("disconnectRate"))
            .add(&format!("dropped, {entry}"), &answer, &chaos("dropRate"));
    }
    tell(&peer, fixtures).await;

    join_all(entries.iter().map(async |entry| {
        // The server returns status 200 and the body `{malformed json: <<<chaos>>>`.
        let question = format!("nonsense, {entry}");
        let error = ask_plainly(entry, &question).await.error();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{entry}: {error}");
        assert_eq!(error.http_status(), Some(200), "{entry}: {error}");
        // No text was shown, so the request is repeated.
        assert_eq!(statuses(&peer, &question).await, [200, 200, 200], "{entry}");

        let question = format!("gone, {entry}");
        let error = ask_plainly(entry, &question).await.error();
        assert_eq!(error.kind, ModelErrorKind::Connection, "{entry}: {error}");
        assert_eq!(statuses(&peer, &question).await.len(), 3, "{entry}");

        let question = format!("dropped, {entry}");
        let error = ask_plainly(entry, &question).await.error();
        let kind = ModelErrorKind::Overloaded { retry_after: None };
        assert_eq!(error.kind, kind, "{entry}: {error}");
        assert_eq!(statuses(&peer, &question).await, [500, 500, 500], "{entry}");
    }))
    .await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_knows_us_by_our_key() {
    let auth = json!({"auth": {"apiKeys": ["the-right-one"]}});
    let peer = start(auth, "let me in").await;

    join_all(Entry::each(&peer, &WIRES).into_iter().map(async |entry| {
        let right = entry.clone().with_key("the-right-one");
        assert_eq!(
            ask_plainly(&right, "let me in")
                .await
                .answer()
                .message
                .text(),
            TEXT
        );
        for wrong in ["a-wrong-one", ""] {
            let error = ask_plainly(&entry.clone().with_key(wrong), "let me in").await;
            let error = error.error();
            assert_eq!(
                error.kind,
                ModelErrorKind::Authentication,
                "{entry}: {error}"
            );
            assert_eq!(error.http_status(), Some(401), "{entry}: {error}");
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("a-wrong-one"), "{entry}: {shown}");
        }
    }))
    .await;
}

//! Answers that are none.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use switchboard_domain::{FinishReason, ModelError, ModelErrorKind};

use super::{Fixtures, aimock, attempts, failure, start, statuses, tell};
use crate::{
    conversation::{TEXT, ask_plainly},
    entry::{Entry, Form, Wire, late},
};

/// Of whom, with which status and under which id.
fn check_context(entry: &Entry, error: &ModelError, status: u16) {
    assert_eq!(error.status(), Some(status), "{entry}: {error}");
    assert!(error.message().contains("as the test wants"), "{error}");
    let id = error.request_id().unwrap_or_default();
    assert!(id.starts_with("req-"), "{entry}: {error}");
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_is_asked_again_when_it_says_so() {
    let peer = aimock().await;
    let entries = Entry::each(&peer, &Wire::ALL);
    let mut fixtures = Fixtures::default();
    let answer = json!({"content": TEXT});
    for entry in &entries {
        let limited = failure(entry.wire, 429, &json!({"retryAfter": 0.6}));
        fixtures
            .add_at(&format!("limited, {entry}"), 0, &limited)
            .add_at(&format!("limited, {entry}"), 1, &answer);
        let failed = |status| failure(entry.wire, status, &json!({}));
        fixtures
            .add_at(&format!("failing, {entry}"), 0, &failed(500))
            .add_at(&format!("failing, {entry}"), 1, &failed(529))
            .add_at(&format!("failing, {entry}"), 2, &answer);
    }
    tell(&peer, fixtures).await;

    join_all(entries.iter().map(async |entry| {
        // Our own pause would be minutes, so only the server's wish can end it so early.
        let question = format!("limited, {entry}");
        let heard = ask_plainly(&entry.clone().with_retry(late()), &question).await;
        assert_eq!(heard.text, TEXT, "{entry}");
        assert_eq!(heard.answer().finish, FinishReason::Stop);
        let attempts = attempts(&peer, &question).await;
        assert_eq!(attempts.len(), 2, "{entry}: {attempts:?}");
        assert_eq!((attempts[0].0, attempts[1].0), (429, 200), "{entry}");
        let waited = attempts[1].1 - attempts[0].1;
        assert!(waited >= 595, "{entry}: came back after {waited} ms");
    }))
    .await;
    join_all(entries.iter().map(async |entry| {
        let question = format!("failing, {entry}");
        let heard = ask_plainly(entry, &question).await;
        assert_eq!(heard.text, TEXT, "{entry}");
        assert_eq!(heard.answer().message.text(), TEXT, "{entry}");
        assert_eq!(statuses(&peer, &question).await, [500, 529, 200], "{entry}");
    }))
    .await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_is_given_up_with_a_typed_error() {
    let peer = aimock().await;
    let entries = Entry::each(&peer, &Wire::ALL);
    let limited = ModelErrorKind::RateLimited {
        retry_after: Some(Duration::from_hours(1)),
    };
    let overloaded = ModelErrorKind::Overloaded { retry_after: None };
    let refused = ModelErrorKind::InvalidRequest { field: None };
    // What it says, how often it is asked, and what the caller gets.
    let table = [
        (429, json!({"retryAfter": 3600}), 1, limited),
        (500, json!({}), 3, overloaded.clone()),
        (529, json!({}), 3, overloaded),
        (400, json!({}), 1, refused),
        (401, json!({}), 1, ModelErrorKind::Authentication),
        (403, json!({}), 1, ModelErrorKind::Permission),
        (404, json!({}), 1, ModelErrorKind::NotFound),
    ];
    let mut fixtures = Fixtures::default();
    for entry in &entries {
        for (status, further, _, _) in &table {
            let failure = failure(entry.wire, *status, further);
            fixtures.add(&format!("{status} for {entry}"), &failure, &json!({}));
        }
    }
    tell(&peer, fixtures).await;

    join_all(entries.iter().map(async |entry| {
        for (status, _, asked, kind) in &table {
            let question = format!("{status} for {entry}");
            let heard = ask_plainly(entry, &question).await;
            assert_eq!(heard.text, "");
            let error = heard.error();
            assert_eq!(error.kind, *kind, "{entry}: {error}");
            check_context(entry, &error, *status);
            assert_eq!(statuses(&peer, &question).await.len(), *asked, "{entry}");
        }
    }))
    .await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_names_the_offending_field() {
    let peer = aimock().await;
    let streamed = |wire| Entry::new(&peer, wire, Form::Streamed);
    let wants = "as the test wants";
    // Each wire has its own way to say it; Gemini's is in `details`, which this server has not.
    let table = [
        (
            streamed(Wire::Anthropic),
            json!({"message": format!("max_tokens: {wants}")}),
            "max_tokens",
        ),
        (
            streamed(Wire::OpenAiChat),
            json!({"param": "messages[0].content"}),
            "messages[0].content",
        ),
        (
            streamed(Wire::OpenAiResponses),
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
    let entries = Entry::each(&peer, &Wire::ALL);
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
        // 200 and `{malformed json: <<<chaos>>>`, whatever was asked for.
        let question = format!("nonsense, {entry}");
        let error = ask_plainly(entry, &question).await.error();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{entry}: {error}");
        assert_eq!(error.status(), Some(200), "{entry}: {error}");
        // Nothing of it was shown, so that it is asked for again.
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

    join_all(
        Entry::each(&peer, &Wire::ALL)
            .into_iter()
            .map(async |entry| {
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
                    assert_eq!(error.status(), Some(401), "{entry}: {error}");
                    let shown = format!("{error} {error:?}");
                    assert!(!shown.contains("a-wrong-one"), "{entry}: {shown}");
                }
            }),
    )
    .await;
}

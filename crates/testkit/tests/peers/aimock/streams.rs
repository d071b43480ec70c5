//! Streams that break off or hardly move.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use switchboard_domain::{ModelErrorKind, TimeoutPhase};
use switchboard_providers_common::RetryPolicy;

use super::{Fixtures, aimock, statuses, tell};
use crate::{
    conversation::{TEXT, ask_plainly},
    entry::{Entry, Form, Wire},
};

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_breaks_off_and_nothing_is_said_twice() {
    const CUTS: [usize; 4] = [1, 2, 5, 8];
    let peer = aimock().await;
    let entries: Vec<Entry> = Wire::ALL
        .iter()
        .map(|wire| Entry::new(&peer, *wire, Form::Streamed))
        .collect();
    let answer = json!({"content": TEXT});
    let mut fixtures = Fixtures::default();
    for entry in &entries {
        for cut in CUTS {
            let question = format!("{cut} pieces for {entry}.");
            fixtures.add(&question, &answer, &json!({"truncateAfterChunks": cut}));
        }
        // Cut by the clock, wherever that is.
        let how = json!({"disconnectAfterMs": 1000, "latency": 90});
        fixtures.add(&format!("a while for {entry}"), &answer, &how);
    }
    tell(&peer, fixtures).await;

    join_all(entries.iter().map(async |entry| {
        for cut in CUTS {
            let question = format!("{cut} pieces for {entry}.");
            let heard = ask_plainly(entry, &question).await;
            check_break(entry, &heard.text);
            let (pieces, error) = (heard.pieces, heard.error());
            assert!(pieces <= cut, "{entry}: {pieces} of {cut}");
            // It cuts after it wrote. What it wrote may be lost with the connection, and then there
            // was no answer yet: only in that case it is asked again.
            let asked = statuses(&peer, &question).await.len();
            match error.kind {
                ModelErrorKind::Interrupted => assert!((1..=3).contains(&asked), "{entry}"),
                ModelErrorKind::Connection => {
                    assert_eq!((pieces, asked), (0, 3), "{entry}: {error}");
                }
                _ => panic!("{entry}: {error}"),
            }
        }
        let heard = ask_plainly(entry, &format!("a while for {entry}")).await;
        check_break(entry, &heard.text);
        assert!(heard.pieces > 0, "{entry}: nothing was heard in a second");
        assert_eq!(heard.error().kind, ModelErrorKind::Interrupted, "{entry}");
    }))
    .await;
}

/// What was heard is the beginning of what was said, once.
fn check_break(entry: &Entry, heard: &str) {
    assert!(TEXT.starts_with(heard), "{entry}: {heard}");
    assert!(heard.len() < TEXT.len(), "{entry}: all was heard");
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_is_slow() {
    let peer = aimock().await;
    let entries: Vec<Entry> = Wire::ALL
        .iter()
        .map(|wire| Entry::new(&peer, *wire, Form::Streamed))
        .collect();
    let answer = json!({"content": TEXT});
    let mut fixtures = Fixtures::default();
    for entry in &entries {
        fixtures
            .add(&format!("steadily, {entry}"), &answer, &json!({"latency": 120}))
            // The first piece at once, each further one after a minute.
            .add(
                &format!("stalling, {entry}"),
                &answer,
                &json!({"streamingProfile": {"ttft": 0, "tps": 0.016}}),
            )
            .add(
                &format!("thinking, {entry}"),
                &answer,
                &json!({"streamingProfile": {"ttft": 60_000, "tps": 1000}}),
            );
    }
    tell(&peer, fixtures).await;

    join_all(entries.iter().map(async |entry| {
        // The whole takes longer than any one piece may.
        let mut patient = entry.clone();
        patient.transport.idle_timeout = Duration::from_millis(1200);
        let heard = ask_plainly(&patient, &format!("steadily, {entry}")).await;
        assert!(heard.pieces > 10, "{entry}: {}", heard.pieces);
        assert_eq!(heard.answer().message.text(), TEXT, "{entry}");

        let heard = ask_plainly(&patient, &format!("stalling, {entry}")).await;
        check_break(entry, &heard.text);
        let shown = heard.text.clone();
        let kind = ModelErrorKind::Timeout {
            phase: TimeoutPhase::Idle,
            after: patient.transport.idle_timeout,
        };
        assert_eq!(heard.error().kind, kind, "{entry}");
        let asked = statuses(&peer, &format!("stalling, {entry}")).await;
        // It is asked again only while no text was shown.
        let expected = if shown.is_empty() { 3 } else { 1 };
        assert_eq!(asked.len(), expected, "{entry}: after {shown:?}");

        let mut hasty = entry.clone();
        hasty.transport.first_byte_timeout = Duration::from_millis(300);
        hasty.transport.retry = RetryPolicy {
            max_attempts: 2,
            ..entry.transport.retry.clone()
        };
        let heard = ask_plainly(&hasty, &format!("thinking, {entry}")).await;
        assert_eq!(heard.text, "", "{entry}");
        let kind = ModelErrorKind::Timeout {
            phase: TimeoutPhase::FirstByte,
            after: hasty.transport.first_byte_timeout,
        };
        assert_eq!(heard.error().kind, kind, "{entry}");
    }))
    .await;
}

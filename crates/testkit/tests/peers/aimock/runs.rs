//! Whole runs: the loop of the core with a model behind aimock and tools of this process.

use std::sync::Arc;

use futures_util::{StreamExt as _, future::join_all};
use serde_json::json;
use switchboard_domain::{ChatModel, Part};
use switchboard_orchestration::{Agent, Outcome, RunErrorKind, RunEventKind, RunReport};

use super::{Fixtures, aimock, failure, statuses, tell};
use crate::{
    conversation::{BEFORE, TEXT, Weather, cities},
    entry::{Entry, Form, Wire, late},
};

/// What a surface was shown of a run, and what is left of it.
struct Seen {
    text: String,
    finished_tools: usize,
    report: RunReport,
    /// Ids of tool uses and of results in the history, in order.
    uses: Vec<String>,
    results: Vec<String>,
    /// How often a tool really ran.
    ran: usize,
}

async fn watch(entry: &Entry, question: &str) -> Seen {
    let tools = Arc::new(Weather::default());
    let model: Arc<dyn ChatModel> = Arc::from(entry.chat_model());
    let mut run = Agent::new(model).with_tools(tools.clone()).ask(question);
    let (mut text, mut finished_tools, mut report) = (String::new(), 0, None);
    while let Some(event) = run.next().await {
        match event.kind {
            RunEventKind::TextDelta { text: more } => text.push_str(&more),
            RunEventKind::ToolFinished { is_error, .. } => {
                assert!(!is_error, "{entry}");
                finished_tools += 1;
            }
            RunEventKind::RunFinished { report: last } => report = Some(*last),
            _ => {}
        }
    }
    let run = run.into_run().unwrap();
    let (mut uses, mut results) = (Vec::new(), Vec::new());
    for part in run.messages().iter().flat_map(|message| &message.parts) {
        match part {
            Part::ToolUse(tool_use) => uses.push(tool_use.id.clone()),
            Part::ToolResult(result) => results.push(result.tool_use_id.clone()),
            _ => {}
        }
    }
    let ran = tools.ran.lock().unwrap().len();
    Seen {
        text,
        finished_tools,
        report: report.unwrap(),
        uses,
        results,
        ran,
    }
}

/// Two calls, whose results are answered with `after`, one after the other.
fn add(fixtures: &mut Fixtures, question: &str, after: &[(serde_json::Value, serde_json::Value)]) {
    let [kiel, luebeck] = cities();
    let first = json!({"content": BEFORE, "toolCalls": [
        {"name": "get_weather", "arguments": kiel},
        {"name": "get_weather", "arguments": luebeck},
    ]});
    let before = json!({"userMessage": question, "hasToolResult": false});
    fixtures.add_if(&before, &first, &json!({}));
    for (time, (response, how)) in after.iter().enumerate() {
        let condition = json!({
            "userMessage": question,
            "hasToolResult": true,
            "toolResultContains": "Lübeck: 7 °C, grüner Regen",
            "sequenceIndex": time,
        });
        fixtures.add_if(&condition, response, how);
    }
}

fn check_tools(entry: &Entry, seen: &Seen) {
    assert_eq!((seen.finished_tools, seen.ran), (2, 2), "{entry}");
    assert_eq!(seen.uses.len(), 2, "{entry}");
    assert_eq!(seen.uses, seen.results, "{entry}");
    assert_eq!(seen.report.tool_calls.len(), 2, "{entry}");
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_goes_through_whole_runs() {
    let peer = aimock().await;
    let entries = Entry::each(&peer, &Wire::ALL);
    let answer = (json!({"content": TEXT}), json!({}));
    let mut fixtures = Fixtures::default();
    for entry in &entries {
        add(
            &mut fixtures,
            &format!("calm, {entry}"),
            std::slice::from_ref(&answer),
        );
        let limited = failure(entry.wire, 429, &json!({"retryAfter": 0.3}));
        let faulty = [(limited, json!({})), answer.clone()];
        add(&mut fixtures, &format!("limited, {entry}"), &faulty);
    }
    tell(&peer, fixtures).await;
    join_all(entries.iter().map(async |entry| {
        for (question, asked) in [("calm", &[200, 200][..]), ("limited", &[200, 429, 200])] {
            let question = format!("{question}, {entry}");
            let seen = watch(&entry.clone().with_retry(late()), &question).await;
            check_tools(entry, &seen);
            assert_eq!(seen.report.outcome, Outcome::Completed, "{entry}");
            assert_eq!(seen.report.answer, TEXT, "{entry}");
            assert_eq!(seen.text, format!("{BEFORE}{TEXT}"), "{entry}");
            assert_eq!(statuses(&peer, &question).await, asked, "{entry}");
        }
    }))
    .await;
}

#[tokio::test]
#[ignore = "needs peers: cargo xtask test --peers"]
async fn peer_aimock_breaks_off_a_run_after_its_tools() {
    let peer = aimock().await;
    let streamed = |wire: &Wire| Entry::new(&peer, *wire, Form::Streamed);
    let entries: Vec<Entry> = Wire::ALL.iter().map(streamed).collect();
    let cut = json!({"disconnectAfterMs": 1000, "latency": 90});
    let mut fixtures = Fixtures::default();
    for entry in &entries {
        let answers = [(json!({"content": TEXT}), cut.clone())];
        add(&mut fixtures, &format!("cut, {entry}"), &answers);
    }
    tell(&peer, fixtures).await;
    join_all(entries.iter().map(async |entry| {
        let seen = watch(entry, &format!("cut, {entry}")).await;
        check_tools(entry, &seen);
        assert_eq!(seen.report.outcome, Outcome::Failed, "{entry}");
        let error = seen.report.error.unwrap();
        let kind = RunErrorKind::Model("interrupted".to_owned());
        assert_eq!(error.kind, kind, "{entry}: {error:?}");
        assert_eq!(error.provider.as_deref(), Some(&*entry.provider));
        // What came was shown once.
        let shown = seen.text.strip_prefix(BEFORE).unwrap();
        assert!(
            !shown.is_empty() && TEXT.starts_with(shown),
            "{entry}: {shown}"
        );
        assert!(shown.len() < TEXT.len(), "{entry}: all was heard");
    }))
    .await;
}

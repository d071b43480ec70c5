//! Metrics and audit records of a run.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use switchboard_domain::{ApprovalDecision, ApprovalRequest, Approver, ToolOutput, Usage};
use switchboard_orchestration::{
    RunEvent,
    observe::audit::{AuditKind, AuditOptions, AuditTrail},
    observe::metrics::Metrics,
    tools::results::{CacheOptions, ResultCache},
};

use crate::support::{
    Answer, Scripted, Tools, agent_with, allow_once, ask, asking, calls, deny, echo, elsewhere,
    reading, tool,
};

/// Approves every call except number 9.
struct NotNine;

#[async_trait]
impl Approver for NotNine {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        let n = request
            .tool_use
            .input
            .as_object()
            .and_then(|input| input["n"].as_i64());
        if n == Some(9) {
            deny("not nine")
        } else {
            allow_once()
        }
    }
}

/// Returns the events of a run with one call of each kind.
async fn events_of_a_run() -> Vec<RunEvent> {
    let tools = Tools::new()
        .with(elsewhere(reading("look")), echo)
        .with(tool("write"), echo)
        .with(tool("fail"), |_| {
            Ok(ToolOutput {
                is_error: true,
                ..ToolOutput::text("no")
            })
        });
    let model = Scripted::new([
        calls(&[
            ("a", "srv__look", json!({"n": 1})),
            ("b", "srv__fail", json!({"n": 1})),
            ("c", "srv__nothing", json!({"n": 1})),
            (
                "d",
                "srv__write",
                json!({"n": "one", "password": "hunter2"}),
            ),
            ("e", "srv__write", json!({"n": 1})),
            ("f", "srv__write", json!({"n": 9})),
        ]),
        calls(&[("g", "srv__look", json!({"n": 1}))]),
        Answer::Costs(
            "ok",
            Usage {
                input_tokens: Some(100),
                output_tokens: Some(20),
                ..Usage::default()
            },
        ),
    ]);
    let agent = agent_with(&model, &Arc::new(tools), asking())
        .with_cache(Arc::new(ResultCache::new(CacheOptions::default())))
        .with_approver(Arc::new(NotNine));
    ask(&agent, "go").await.0
}

#[tokio::test]
async fn a_run_is_counted() {
    let mut metrics = Metrics::default();
    for event in &events_of_a_run().await {
        metrics.observe(event);
    }
    let counted = metrics.snapshot();
    assert_eq!((counted.runs_started, counted.runs_completed), (1, 1));
    let model = &counted.models[0];
    assert_eq!((model.requests.total, model.requests.successful), (3, 3));
    assert_eq!((model.tokens.input, model.tokens.output), (100, 20));
    let calls = model.tool_calls;
    assert_eq!(calls.total, 7);
    assert_eq!(
        calls.successful, 3,
        "a look, a write, and a look from the cache"
    );
    assert_eq!(calls.failed, 1);
    assert_eq!(
        calls.hallucinated, 2,
        "a tool that is not there, and a number that is none"
    );
    assert_eq!(calls.not_executed, 1, "the denied call");
    assert_eq!(calls.unnecessary, 1, "the second look");
    assert_eq!(calls.cached, 1);
    let accuracy = calls.accuracy().unwrap();
    assert!((accuracy - 2.0 / 7.0).abs() < 1e-9, "{accuracy}");
    let look = counted
        .tools
        .iter()
        .find(|tool| tool.tool == "look")
        .unwrap();
    assert_eq!((look.calls.total, look.server.as_deref()), (2, Some("lib")));
}

#[tokio::test]
async fn a_run_is_audited() {
    let mut trail = AuditTrail::new(AuditOptions::default());
    let events = events_of_a_run().await;
    let records: Vec<_> = events
        .iter()
        .flat_map(|event| trail.observe(event))
        .collect();
    let lines: Vec<_> = records
        .iter()
        .map(|record| serde_json::to_value(record).unwrap())
        .collect();
    assert!(matches!(records[0].kind, AuditKind::Run(_)));
    assert!(matches!(records.last().unwrap().kind, AuditKind::Run(_)));
    let of = |kind: &str, key: &str, is: &str| {
        let wanted = lines
            .iter()
            .filter(|line| line["kind"] == kind && line[key] == is);
        wanted
            .map(|line| line["id"].as_str().unwrap())
            .collect::<Vec<_>>()
    };
    // Every call has an end. Executed calls have a start before it.
    let mut ends = of("tool_call", "moment", "finished");
    ends.sort_unstable();
    assert_eq!(ends, ["a", "b", "c", "d", "e", "f", "g"]);
    let mut left = of("tool_call", "moment", "started");
    left.sort_unstable();
    assert_eq!(left, ["a", "b", "e"]);
    let mut asked = of("approval", "decision", "asked");
    asked.sort_unstable();
    assert_eq!(asked, ["b", "e", "f"]);
    assert_eq!(of("approval", "decision", "denied"), ["f"]);
    let text = serde_json::to_string(&lines).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    // The records are in the order of the events.
    assert!(records.windows(2).all(|two| two[0].seq <= two[1].seq));
}

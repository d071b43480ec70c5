use serde_json::{Value, json};
use switchboard_domain::{ApprovalScope, ToolContent, ToolProgress, Usage, Warning, WarningKind};

use super::*;
use crate::{
    QuestionAction, RunError, RunErrorKind, ToolFailure,
    observe::events::{
        event, finished, model_finished, model_started, planned, sent, started, tool_finished,
    },
};

fn lines(options: AuditOptions, kinds: impl IntoIterator<Item = RunEventKind>) -> Vec<Value> {
    let mut trail = AuditTrail::new(options);
    let events = (1..).zip(kinds);
    let records: Vec<_> = events
        .flat_map(|(seq, kind)| trail.records_of_event(&event("run-1", seq, kind)))
        .collect();
    let lines = records.iter().map(|record| {
        let line = serde_json::to_string(record).unwrap();
        assert!(!line.contains('\n'));
        let back: AuditRecord = serde_json::from_str(&line).unwrap();
        assert_eq!(&back, record);
        serde_json::from_str(&line).unwrap()
    });
    lines.collect()
}

fn answered(step: u32) -> RunEventKind {
    let usage = Usage {
        input_tokens: Some(100),
        output_tokens: Some(7),
        ..Usage::default()
    };
    model_finished(step, usage)
}

/// Plans a call of `create_ticket`.
fn ticket(id: &str, input: Value) -> RunEventKind {
    planned(id, "create_ticket", input)
}

#[test]
fn a_run_gives_one_record_per_action() {
    let options = AuditOptions {
        session_id: Some("s-1".into()),
        principal: Some(Principal {
            tenant: "t".into(),
            user: "ada".into(),
        }),
        cost: Some(Arc::new(|model, usage| {
            assert_eq!(model.to_string(), "acme/large");
            usage.input_tokens.map(|_| 0.25)
        })),
        ..AuditOptions::default()
    };
    let lines = lines(
        options,
        [
            started(false),
            model_started(1, "large"),
            RunEventKind::TextDelta {
                text: "Let me look.".into(),
            },
            answered(1),
            ticket("c1", json!({"subject": "Broken", "api_key": "k"})),
            sent("c1"),
            RunEventKind::ToolProgressed {
                id: "c1".into(),
                progress: ToolProgress {
                    progress: 1.0,
                    total: None,
                    message: None,
                },
            },
            tool_finished("c1", None, "password: abc", 12),
            finished(None),
        ],
    );
    insta::assert_json_snapshot!("a_run", lines);
}

#[test]
fn approvals_have_a_decision_a_decider_and_a_reason() {
    let denied = |id: &str| RunEventKind::ToolDenied {
        id: id.into(),
        reason: "not with token=abc123".into(),
    };
    let approved = |id: &str, remembered: bool| RunEventKind::ToolApproved {
        id: id.into(),
        scope: ApprovalScope::Session,
        edited: !remembered,
        remembered,
    };
    let waiting = |id: &str| RunEventKind::ToolAwaitingApproval { id: id.into() };
    let lines = lines(
        AuditOptions::default(),
        [
            ticket("c1", json!({})),
            waiting("c1"),
            denied("c1"),
            ticket("c2", json!({})),
            denied("c2"),
            ticket("c3", json!({"n": 1})),
            waiting("c3"),
            RunEventKind::ToolInputRepaired {
                id: "c3".into(),
                repairs: vec!["a person changed it".into()],
                input: Arc::new(json!({"n": 2})),
            },
            approved("c3", false),
            sent("c3"),
            ticket("c4", json!({})),
            approved("c4", true),
        ],
    );
    let shown: Vec<Value> = lines
        .iter()
        .map(|line| {
            json!([
                line["kind"],
                line["id"],
                line["decision"],
                line["by"],
                line["reason"],
                line["input"]
            ])
        })
        .collect();
    assert_eq!(
        json!(shown),
        json!([
            ["approval", "c1", "asked", "policy", null, null],
            ["approval", "c1", "denied", "approver", "not with token=[redacted]", null],
            ["approval", "c2", "denied", "policy", "not with token=[redacted]", null],
            ["approval", "c3", "asked", "policy", null, null],
            ["approval", "c3", "allowed", "approver", null, null],
            ["tool_call", "c3", null, null, null, {"n": 2}],
            ["approval", "c4", "allowed", "remembered", null, null],
        ])
    );
    assert_eq!(lines[4]["scope"], "session");
    assert_eq!(lines[4]["edited"], true);
}

#[test]
fn failures_have_a_kind() {
    let error = RunError {
        kind: RunErrorKind::Model("rate_limited".into()),
        message: "slow down".into(),
        provider: Some("acme".into()),
        status: Some(429),
        request_id: Some("req-1".into()),
    };
    let lines = lines(
        AuditOptions::default(),
        [
            started(false),
            model_started(1, "large"),
            answered(1),
            ticket("c1", json!("not json")),
            tool_finished("c1", Some(ToolFailure::MalformedInput), "password: abc", 12),
            model_started(2, "large"),
            RunEventKind::ModelCallFailed {
                step: 2,
                error: Box::new(error.clone()),
            },
            finished(Some(error)),
        ],
    );
    assert_eq!(lines[2]["failure"], "malformed_input");
    assert_eq!(lines[2]["is_error"], true);
    assert_eq!(lines[2]["moment"], "finished");
    assert_eq!(lines[3]["end"], "failed");
    assert_eq!(lines[3]["error"], "rate_limited");
    assert_eq!(lines[3]["status"], 429);
    assert_eq!(lines[3]["request_id"], "req-1");
    assert_eq!(lines[3]["duration_ms"], 100);
    assert_eq!(lines[4]["error"], "rate_limited");
    // The price of the first call is unknown.
    assert_eq!(lines[4].get("cost_usd"), None);
}

#[test]
fn a_model_call_without_an_end_is_cancelled() {
    let lines = lines(
        AuditOptions::default(),
        [
            started(false),
            model_started(1, "large"),
            RunEventKind::TextDelta { text: "I".into() },
            finished(None),
        ],
    );
    let kinds: Vec<_> = lines.iter().map(|line| &line["kind"]).collect();
    assert_eq!(kinds, ["run", "model_call", "run"]);
    assert_eq!(lines[1]["end"], "cancelled");
    assert_eq!(lines[1]["duration_ms"], 200);
}

#[test]
fn results_are_recorded_only_on_request_and_redacted() {
    for results in [false, true] {
        let options = AuditOptions {
            results,
            ..AuditOptions::default()
        };
        let lines = lines(
            options,
            [
                ticket("c1", json!({})),
                tool_finished("c1", None, "password: abc", 12),
            ],
        );
        assert_eq!(
            lines[0].get("result").cloned(),
            results.then(|| json!(["password: [redacted]"]))
        );
        let whole = serde_json::to_string(&[ToolContent::text("password: abc")]).unwrap();
        assert_eq!(lines[0]["result_bytes"], whole.len());
    }
}

#[test]
fn a_resumed_run_has_records_without_its_earlier_events() {
    let lines = lines(
        AuditOptions::default(),
        [
            started(true),
            sent("c9"),
            tool_finished("c9", Some(ToolFailure::Interrupted), "password: abc", 12),
            RunEventKind::RunParked {
                waiting: vec!["c8".into()],
            },
        ],
    );
    assert_eq!(lines[0]["moment"], "resumed");
    assert_eq!(lines[1]["tool"], "unknown");
    assert_eq!(lines[2]["failure"], "interrupted");
    assert_eq!(lines[3]["moment"], "parked");
}

#[test]
fn records_contain_no_text_of_the_conversation() {
    let said = "what the person and the model said";
    let warning = Warning::new(WarningKind::PartDropped, said);
    let lines = lines(
        AuditOptions::default(),
        [
            started(false),
            model_started(1, "large"),
            RunEventKind::TextDelta { text: said.into() },
            RunEventKind::ReasoningDelta { text: said.into() },
            RunEventKind::Warning { warning },
            answered(1),
            finished(None),
        ],
    );
    assert_eq!(lines.len(), 3);
    let all = serde_json::to_string(&lines).unwrap();
    assert!(
        !all.contains("said") && !all.contains("the answer"),
        "{all}"
    );
}

#[test]
fn questions_are_recorded_without_their_text_and_answer() {
    let question = json!({
        "server": "crm", "message": "What is your pet's name?", "form": "fields",
        "schema": {"type": "object", "properties": {"pet": {"type": "string"}}},
    });
    let asked = RunEventKind::QuestionAsked {
        id: "q1".into(),
        question: Box::new(serde_json::from_value(question).unwrap()),
    };
    let answered = |id: &str, action| RunEventKind::QuestionAnswered {
        id: id.into(),
        action,
    };
    let options = AuditOptions {
        principal: Some(Principal {
            tenant: String::new(),
            user: "ann".into(),
        }),
        ..AuditOptions::default()
    };
    let kept = lines(
        options,
        [
            asked,
            answered("q1", QuestionAction::Accept),
            // Asked in another process.
            answered("q0", QuestionAction::Cancel),
        ],
    );
    assert_eq!(kept.len(), 3);
    let expected = [
        json!({"moment": "asked", "id": "q1", "server": "crm"}),
        json!({"moment": "answered", "id": "q1", "server": "crm", "action": "accept"}),
        json!({"moment": "answered", "id": "q0", "action": "cancel"}),
    ];
    for (line, expected) in kept.iter().zip(expected) {
        assert_eq!(line["kind"], "question");
        assert_eq!(line["principal"]["user"], "ann");
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&line[field], value, "{line}");
        }
        assert!(!line.to_string().contains("pet"), "{line}");
    }
}

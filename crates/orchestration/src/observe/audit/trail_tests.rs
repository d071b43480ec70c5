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
        .flat_map(|(seq, kind)| trail.create_records(&event("run-1", seq, kind)))
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
fn approvals_failures_interruptions_and_questions_have_records() {
    let denied = |id: &str| RunEventKind::ToolDenied {
        id: id.into(),
        reason: "not with token=abc123".into(),
        remembered: false,
    };
    let approved = |id: &str, remembered: bool| RunEventKind::ToolApproved {
        id: id.into(),
        scope: ApprovalScope::Session,
        edited: !remembered,
        remembered,
    };
    let waiting = |id: &str| RunEventKind::ToolAwaitingApproval { id: id.into() };
    let error = RunError {
        kind: RunErrorKind::Model("rate_limited".into()),
        message: "slow down".into(),
        provider: Some("acme".into()),
        status: Some(429),
        request_id: Some("req-1".into()),
    };
    let failed = RunEventKind::ModelCallFailed {
        step: 2,
        error: Box::new(error.clone()),
    };
    let question = json!({
        "server": "crm", "message": "What is your pet's name?", "form": "fields",
        "schema": {"type": "object", "properties": {"pet": {"type": "string"}}},
    });
    let asked = RunEventKind::QuestionAsked {
        id: "q1".into(),
        question: Box::new(serde_json::from_value(question).unwrap()),
    };
    let replied = |id: &str, action| RunEventKind::QuestionAnswered {
        id: id.into(),
        action,
    };
    let repaired = RunEventKind::ToolInputRepaired {
        id: "c3".into(),
        repairs: vec!["a person changed it".into()],
        input: Arc::new(json!({"n": 2})),
    };
    let parked = RunEventKind::RunParked {
        waiting: vec!["c8".into()],
    };
    let malformed = Some(ToolFailure::MalformedInput);
    let approvals = vec![
        ticket("c1", json!({})),
        waiting("c1"),
        denied("c1"),
        ticket("c2", json!({})),
        denied("c2"),
        ticket("c3", json!({"n": 1})),
        waiting("c3"),
        repaired,
        approved("c3", false),
        sent("c3"),
        ticket("c4", json!({})),
        approved("c4", true),
    ];
    let failures = vec![
        started(false),
        model_started(1, "large"),
        answered(1),
        ticket("c1", json!("not json")),
        tool_finished("c1", malformed, "password: abc", 12),
        model_started(2, "large"),
        failed,
        finished(Some(error)),
    ];
    // The model call has no end.
    let cancelled = vec![
        started(false),
        model_started(1, "large"),
        RunEventKind::TextDelta { text: "I".into() },
        finished(None),
    ];
    // The earlier events of the run are missing.
    let resumed = vec![
        started(true),
        sent("c9"),
        tool_finished("c9", Some(ToolFailure::Interrupted), "password: abc", 12),
        parked,
        asked,
        replied("q1", QuestionAction::Accept),
        replied("q0", QuestionAction::Cancel),
    ];
    let runs = [approvals, failures, cancelled, resumed];
    let records = runs.map(|kinds| lines(AuditOptions::default(), kinds));
    insta::assert_json_snapshot!("actions", records);
    let all = serde_json::to_string(&records).unwrap();
    assert!(!all.contains("pet") && !all.contains("abc"), "{all}");
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

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use switchboard_domain::{FinishReason, ModelId, ToolChoiceOutcome, Usage};

use super::*;
use crate::observe::trace::capture::CapturedTrace;

fn lines(kinds: impl IntoIterator<Item = RunEventKind>) -> Vec<String> {
    let captured = CapturedTrace::of(false, || {
        let mut log = RunLog::new(Redactor::default().with_secrets(["the-known-secret"]));
        for (seq, kind) in (1..).zip(kinds) {
            log.observe(&RunEvent {
                run_id: "run-1".into(),
                seq,
                time: Timestamp::UNIX_EPOCH,
                kind,
            });
        }
    });
    captured.lines(LOG)
}

fn planned(id: &str) -> RunEventKind {
    RunEventKind::ToolPlanned {
        id: id.into(),
        server: Some("crm".into()),
        tool: "get_customer".into(),
        input: Arc::new(json!({"id": 42, "token": "abc", "note": "the-known-secret"})),
    }
}

fn finished(id: &str, failure: Option<ToolFailure>, text: &str) -> RunEventKind {
    RunEventKind::ToolFinished {
        id: id.into(),
        is_error: failure.is_some(),
        failure,
        cached: false,
        attempts: 1,
        duration_ms: 7,
        content: vec![ToolContent::text(text)].into(),
        structured: None,
    }
}

#[test]
fn log_lines_describe_model_calls_and_tool_calls() {
    let asked = json!({"type": "model_call_started", "step": 1, "model": "acme/large", "tools": 3, "tool_choice": "required"});
    let lines = lines([
        RunEventKind::RunStarted {
            model: ModelId::new("acme", "large"),
            resumed: false,
        },
        serde_json::from_value(asked).unwrap(),
        RunEventKind::ReasoningDelta { text: "hm".into() },
        RunEventKind::TextDelta {
            text: "Let me ".into(),
        },
        RunEventKind::TextDelta {
            text: "look.".into(),
        },
        RunEventKind::ToolInputStarted {
            id: "c1".into(),
            name: "crm_get_customer".into(),
        },
        RunEventKind::ToolInputDelta {
            id: "c1".into(),
            json: "{\"id\":".into(),
        },
        RunEventKind::ToolInputDelta {
            id: "c1".into(),
            json: "42}".into(),
        },
        RunEventKind::ProviderBlock {
            kind: "web_search".into(),
            text: Some("said".into()),
        },
        RunEventKind::ModelCallFinished {
            step: 1,
            model: Some("large-1".into()),
            finish_reason: FinishReason::ToolUse,
            finish_raw: Some("tool_calls".into()),
            usage: Box::new(Usage {
                input_tokens: Some(9),
                ..Usage::default()
            }),
            tool_choice: ToolChoiceOutcome::Emulated {
                how: "by words".into(),
            },
        },
        planned("c1"),
        RunEventKind::ToolStarted { id: "c1".into() },
        finished("c1", None, "a customer"),
        planned("c2"),
        finished("c2", Some(ToolFailure::Repeated), "a customer"),
        planned("c3"),
        finished(
            "c3",
            Some(ToolFailure::UnknownTool),
            "there is no such tool",
        ),
        planned("c4"),
        RunEventKind::ToolStarted { id: "c4".into() },
        finished("c4", Some(ToolFailure::ToolError), "customer 42 owes money"),
    ]);
    insta::assert_snapshot!("log", lines.join("\n"));
    let all = lines.join("\n");
    for said in [
        "Let me",
        "abc",
        "the-known-secret",
        "a customer",
        "owes",
        "said",
    ] {
        assert!(!all.contains(said), "{said}");
    }
}

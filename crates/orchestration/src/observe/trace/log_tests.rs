use serde_json::json;
use switchboard_domain::{FinishReason, ToolChoiceOutcome, Usage};

use super::*;
use crate::observe::{
    events::{event, planned, sent, started, tool_finished},
    trace::capture::CapturedTrace,
};

fn lines(kinds: impl IntoIterator<Item = RunEventKind>) -> Vec<String> {
    let captured = CapturedTrace::of(false, || {
        let mut log = RunLog::new(Redactor::default().with_secrets(["the-known-secret"]));
        for (seq, kind) in (1..).zip(kinds) {
            log.log_run_event(&event("run-1", seq, kind));
        }
    });
    captured.lines(LOG)
}

fn get_customer(id: &str) -> RunEventKind {
    let input = json!({"id": 42, "token": "abc", "note": "the-known-secret"});
    planned(id, "get_customer", input)
}

fn finished(id: &str, failure: Option<ToolFailure>, text: &str) -> RunEventKind {
    let mut finished = tool_finished(id, failure, text, 7);
    if let RunEventKind::ToolFinished { attempts, .. } = &mut finished {
        *attempts = 1;
    }
    finished
}

#[test]
fn log_lines_describe_model_calls_and_tool_calls() {
    let asked = json!({"type": "model_call_started", "step": 1, "model": "acme/large", "tools": 3, "tool_choice": "required"});
    let lines = lines([
        started(false),
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
        get_customer("c1"),
        sent("c1"),
        finished("c1", None, "a customer"),
        get_customer("c2"),
        finished("c2", Some(ToolFailure::Repeated), "a customer"),
        get_customer("c3"),
        finished(
            "c3",
            Some(ToolFailure::UnknownTool),
            "there is no such tool",
        ),
        get_customer("c4"),
        sent("c4"),
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

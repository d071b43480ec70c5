//! Events of runs for the tests of observers.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use switchboard_domain::{FinishReason, ModelId, ToolChoiceOutcome, ToolContent, Usage};

use crate::{Outcome, RunError, RunEvent, RunEventKind, RunReport, ToolFailure};

/// Creates an event. Events with consecutive numbers are 100 ms apart.
pub(super) fn event(run_id: &str, seq: u64, kind: RunEventKind) -> RunEvent {
    let start: Timestamp = "2026-11-21T08:00:00Z".parse().unwrap();
    RunEvent {
        run_id: run_id.into(),
        seq,
        time: start + SignedDuration::from_millis(100 * i64::try_from(seq).unwrap()),
        kind,
    }
}

pub(super) fn model() -> ModelId {
    ModelId::new("acme", "large")
}

pub(super) fn started(resumed: bool) -> RunEventKind {
    let model = model();
    RunEventKind::RunStarted { model, resumed }
}

pub(super) fn model_started(step: u32, model: &str) -> RunEventKind {
    serde_json::from_value(json!({
        "type": "model_call_started", "step": step, "model": format!("acme/{model}"), "tools": 2,
        "tool_choice": {"only": ["create_ticket"]},
    }))
    .unwrap()
}

pub(super) fn model_finished(step: u32, usage: Usage) -> RunEventKind {
    RunEventKind::ModelCallFinished {
        step,
        model: Some("large-0601".into()),
        finish_reason: FinishReason::ToolUse,
        finish_raw: Some("tool_calls".into()),
        usage: Box::new(usage),
        tool_choice: ToolChoiceOutcome::Native,
    }
}

pub(super) fn planned(id: &str, tool: &str, input: Value) -> RunEventKind {
    RunEventKind::ToolPlanned {
        id: id.into(),
        server: Some("crm".into()),
        tool: tool.into(),
        input: Arc::new(input),
    }
}

/// Returns the start of a tool call.
pub(super) fn sent(id: &str) -> RunEventKind {
    RunEventKind::ToolStarted { id: id.into() }
}

pub(super) fn tool_finished(
    id: &str,
    failure: Option<ToolFailure>,
    text: &str,
    duration_ms: u64,
) -> RunEventKind {
    RunEventKind::ToolFinished {
        id: id.into(),
        is_error: failure.is_some_and(|failure| failure != ToolFailure::Repeated),
        failure,
        cached: false,
        attempts: u32::from(!failure.is_some_and(ToolFailure::did_not_run)),
        duration_ms,
        content: vec![ToolContent::text(text)].into(),
        structured: None,
    }
}

pub(super) fn report(outcome: Outcome, error: Option<RunError>) -> RunReport {
    RunReport {
        run_id: "run-1".into(),
        session_id: None,
        model: model(),
        answer: "the answer".into(),
        content: Vec::new(),
        thinking: None,
        outcome,
        finish_reason: Some(FinishReason::Stop),
        steps: 1,
        usage: Usage::default(),
        tool_calls: Vec::new(),
        warnings: Vec::new(),
        error,
    }
}

pub(super) fn finished(error: Option<RunError>) -> RunEventKind {
    let report = Box::new(report(Outcome::Completed, error));
    RunEventKind::RunFinished { report }
}

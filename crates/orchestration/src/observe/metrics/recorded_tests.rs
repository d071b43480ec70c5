use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use switchboard_domain::{FinishReason, ToolChoiceOutcome, Usage};

use super::*;
use crate::{
    RunEvent, RunEventKind, RunReport,
    observe::audit::{AuditOptions, AuditProjection, CostOf},
    observe::metrics::Metrics,
};

fn cost() -> CostOf {
    Arc::new(|model, _| (&*model.name == "large").then_some(0.5))
}

/// Events of one run, numbered and a hundred milliseconds apart, and what their audit says.
struct Story {
    id: &'static str,
    events: Vec<RunEvent>,
}

impl Story {
    fn of(id: &'static str) -> Self {
        let mut story = Self {
            id,
            events: Vec::new(),
        };
        story.tell(RunEventKind::RunStarted {
            model: ModelId::new("acme", "large"),
            resumed: false,
        });
        story
    }

    fn tell(&mut self, kind: RunEventKind) {
        let start: Timestamp = "2026-11-21T08:00:00Z".parse().unwrap();
        let seq = self.events.len() as u64 + 1;
        self.events.push(RunEvent {
            run_id: self.id.into(),
            seq,
            time: start + SignedDuration::from_millis(100 * i64::try_from(seq).unwrap()),
            kind,
        });
    }

    /// A model is asked and answers with calls `(tool, input, failure)`, each of which comes to its end.
    fn step(&mut self, model: &str, calls: &[(&str, Value, Option<ToolFailure>)]) {
        let asked = json!({
            "type": "model_call_started", "step": 1, "model": format!("acme/{model}"), "tools": 2,
        });
        self.tell(serde_json::from_value(asked).unwrap());
        self.tell(RunEventKind::ModelCallFinished {
            step: 1,
            model: None,
            finish_reason: FinishReason::ToolUse,
            finish_raw: None,
            usage: Box::new(Usage {
                input_tokens: Some(100),
                output_tokens: Some(50),
                ..Usage::default()
            }),
            tool_choice: ToolChoiceOutcome::Native,
        });
        let ids: Vec<_> = (0..calls.len())
            .map(|n| format!("c{}-{n}", self.events.len()))
            .collect();
        for (id, (tool, input, _)) in ids.iter().zip(calls) {
            self.tell(RunEventKind::ToolPlanned {
                id: id.clone(),
                server: Some("crm".into()),
                tool: (*tool).into(),
                input: Arc::new(input.clone()),
            });
        }
        for (id, (_, _, failure)) in ids.iter().zip(calls) {
            let runs = !failure.is_some_and(ToolFailure::did_not_run);
            if runs {
                self.tell(RunEventKind::ToolStarted { id: id.clone() });
            }
            self.tell(RunEventKind::ToolFinished {
                id: id.clone(),
                is_error: failure.is_some_and(|failure| failure != ToolFailure::Repeated),
                failure: *failure,
                cached: false,
                attempts: u32::from(runs),
                duration_ms: 30,
                content: Vec::new().into(),
                structured: None,
            });
        }
    }

    fn end(&mut self, outcome: Outcome) {
        let report = RunReport {
            run_id: self.id.into(),
            session_id: None,
            model: ModelId::new("acme", "large"),
            answer: String::new(),
            content: Vec::new(),
            outcome,
            finish_reason: None,
            steps: 1,
            usage: Usage::default(),
            tool_calls: Vec::new(),
            warnings: Vec::new(),
            error: None,
        };
        self.tell(RunEventKind::RunFinished {
            report: Box::new(report),
        });
    }

    /// Its audit, as it is read from a file.
    fn records(&self) -> Vec<AuditRecord> {
        let mut audit = AuditProjection::new(AuditOptions {
            cost: Some(cost()),
            ..AuditOptions::default()
        });
        let records = self.events.iter().flat_map(|event| audit.observe(event));
        records
            .map(|record| serde_json::to_string(&record).unwrap())
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect()
    }
}

fn recorded(stories: &[&Story]) -> RecordedMetrics {
    let mut metrics = RecordedMetrics::default();
    for record in stories.iter().flat_map(|story| story.records()) {
        metrics.observe(&record);
    }
    metrics
}

/// Everything that can happen to a call, repetitions within an answer and after it included.
fn eventful(id: &'static str, outcome: Outcome) -> Story {
    let mut story = Story::of(id);
    story.step(
        "large",
        &[
            ("get", json!({"id": 1}), None),
            ("get", json!({"id": 1}), None),
            ("get", json!({"id": 2}), Some(ToolFailure::ToolError)),
            ("get", json!({"id": "x"}), Some(ToolFailure::InvalidInput)),
            ("delete", json!({}), Some(ToolFailure::Denied)),
            ("imagined_1", json!({}), Some(ToolFailure::UnknownTool)),
        ],
    );
    story.step(
        "small",
        &[
            ("get", json!({"id": 1.0}), None),
            ("get", json!({"id": 1}), Some(ToolFailure::Repeated)),
            ("get", json!({"id": 2}), None),
            ("imagined_2", json!({}), Some(ToolFailure::UnknownTool)),
        ],
    );
    story.step("small", &[]);
    story.end(outcome);
    story
}

#[test]
fn the_record_counts_as_the_events_do() {
    let stories = [
        eventful("run-1", Outcome::Completed),
        eventful("run-2", Outcome::Limited),
        eventful("run-3", Outcome::Failed),
        eventful("run-4", Outcome::Cancelled),
    ];
    let mut live = Metrics::default().with_cost(cost());
    for event in stories.iter().flat_map(|story| &story.events) {
        live.observe(event);
    }
    let recorded = recorded(&stories.each_ref());
    assert_eq!(recorded.snapshot(), live.snapshot());
    let get = &recorded.snapshot().tools[2];
    assert_eq!((get.calls.total, get.calls.unnecessary), (28, 8));
    assert_eq!(recorded.unfinished_runs(), 0);
    assert_eq!(recorded.unfinished_calls(), 0);
}

#[test]
fn what_has_no_end_is_told_and_not_counted() {
    let mut story = eventful("run-1", Outcome::Completed);
    // The program was killed while the last call was under way.
    let last = story
        .events
        .iter()
        .rposition(|event| matches!(event.kind, RunEventKind::ToolStarted { .. }));
    story.events.truncate(last.unwrap() + 1);
    let metrics = recorded(&[&story]);
    assert_eq!(
        (metrics.unfinished_calls(), metrics.unfinished_runs()),
        (1, 1)
    );
    let snapshot = metrics.snapshot();
    assert_eq!((snapshot.runs_started, snapshot.runs_completed), (1, 0));
    assert_eq!(snapshot.tools[2].calls.total, 6);
}

#[test]
fn a_run_that_waits_is_no_lost_one_and_goes_on_as_the_same() {
    let mut story = Story::of("run-1");
    story.step("large", &[("get", json!({"id": 1}), None)]);
    story.tell(RunEventKind::RunParked {
        waiting: vec!["c".into()],
    });
    let metrics = recorded(&[&story]);
    assert_eq!((metrics.parked_runs(), metrics.unfinished_runs()), (1, 0));
    // In another process, which has a projection of its own.
    let mut second = Story {
        id: "run-1",
        events: Vec::new(),
    };
    second.tell(RunEventKind::RunStarted {
        model: ModelId::new("acme", "large"),
        resumed: true,
    });
    second.step("large", &[("get", json!({"id": 1}), None)]);
    second.end(Outcome::Completed);
    let metrics = recorded(&[&story, &second]);
    let snapshot = metrics.snapshot();
    assert_eq!((metrics.parked_runs(), metrics.unfinished_runs()), (0, 0));
    assert_eq!((snapshot.runs_started, snapshot.runs_completed), (1, 1));
    assert_eq!(snapshot.tools[0].calls.unnecessary, 1);
    // One whose beginning is not in the record is a run, too.
    let snapshot = recorded(&[&second]).snapshot();
    assert_eq!((snapshot.runs_started, snapshot.runs_completed), (1, 1));
}

#[test]
fn a_price_that_is_not_known_is_not_taken_for_nothing() {
    let snapshot = recorded(&[&eventful("run-1", Outcome::Completed)]).snapshot();
    let [large, small] = &snapshot.models[..] else {
        panic!("{snapshot:?}");
    };
    assert!((large.cost_usd - 0.5).abs() < 1e-9);
    assert_eq!((large.unpriced, small.unpriced), (0, 2));
    assert_eq!(small.tokens.input, 200);
}

use serde_json::json;
use switchboard_domain::{FinishReason, ToolChoiceOutcome, Usage};

use super::*;
use crate::{RunError, RunErrorKind, RunReport};

/// Feeds the events of one run, a hundred milliseconds apart.
struct Feed {
    metrics: Metrics,
    seq: u64,
}

impl Feed {
    fn new() -> Self {
        let cost: CostOf = Arc::new(|model, usage| {
            (&*model.name == "large" && usage.output_tokens == Some(50)).then_some(0.5)
        });
        Self {
            metrics: Metrics::default().with_cost(cost),
            seq: 0,
        }
    }

    fn of(&mut self, run_id: &str, kind: RunEventKind) {
        self.seq += 1;
        let start: Timestamp = "2026-11-21T08:00:00Z".parse().unwrap();
        self.metrics.observe(&RunEvent {
            run_id: run_id.into(),
            seq: self.seq,
            time: start + jiff::SignedDuration::from_millis(100 * i64::try_from(self.seq).unwrap()),
            kind,
        });
    }

    fn tell(&mut self, kind: RunEventKind) {
        self.of("run-1", kind);
    }

    fn ask(&mut self, model: &str) {
        let event = json!({"type": "model_call_started", "step": 1, "model": format!("acme/{model}"), "tools": 2});
        self.tell(serde_json::from_value(event).unwrap());
    }

    fn answer(&mut self) {
        self.tell(RunEventKind::ModelCallFinished {
            step: 1,
            model: None,
            finish_reason: FinishReason::ToolUse,
            finish_raw: None,
            usage: Box::new(Usage {
                input_tokens: Some(100),
                output_tokens: Some(50),
                cache_read_tokens: Some(40),
                ..Usage::default()
            }),
            tool_choice: ToolChoiceOutcome::Native,
        });
    }

    fn plan(&mut self, id: &str, tool: &str, input: Value) {
        self.tell(RunEventKind::ToolPlanned {
            id: id.into(),
            server: Some("crm".into()),
            tool: tool.into(),
            input: Arc::new(input),
        });
    }

    fn end(&mut self, id: &str, failure: Option<ToolFailure>) {
        let did_not_run = failure.is_some_and(ToolFailure::did_not_run);
        self.tell(RunEventKind::ToolFinished {
            id: id.into(),
            is_error: failure.is_some_and(|failure| failure != ToolFailure::Repeated),
            failure,
            cached: false,
            attempts: u32::from(!did_not_run),
            duration_ms: 30,
            content: Vec::new().into(),
            structured: None,
        });
    }

    fn call(&mut self, tool: &str, input: Value, failure: Option<ToolFailure>) {
        let id = format!("c{}", self.seq);
        self.plan(&id, tool, input);
        self.end(&id, failure);
    }

    fn finish(&mut self, outcome: Outcome) {
        let report = RunReport {
            run_id: "run-1".into(),
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
}

/// A run in which everything happens once.
fn eventful() -> Feed {
    let mut feed = Feed::new();
    feed.tell(RunEventKind::RunStarted {
        model: ModelId::new("acme", "large"),
        resumed: false,
    });
    feed.ask("large");
    feed.answer();
    feed.call("get", json!({"id": 1, "all": true}), None);
    feed.call("get", json!({"all": true, "id": 1.0}), None);
    feed.call("get", json!({"id": 2}), Some(ToolFailure::ToolError));
    feed.call("get", json!({"id": "x"}), Some(ToolFailure::InvalidInput));
    feed.call("delete", json!({}), Some(ToolFailure::Denied));
    feed.call("imagined_1", json!({}), Some(ToolFailure::UnknownTool));
    feed.call("imagined_2", json!({}), Some(ToolFailure::UnknownTool));
    feed.ask("small");
    let error = RunError {
        kind: RunErrorKind::Internal,
        message: "no".into(),
        provider: None,
        status: None,
        request_id: None,
    };
    feed.tell(RunEventKind::ModelCallFailed {
        step: 2,
        error: Box::new(error),
    });
    feed.ask("small");
    feed.answer();
    feed.finish(Outcome::Completed);
    feed
}

#[test]
fn every_call_is_counted_once_for_its_tool_and_once_for_its_model() {
    let snapshot = eventful().metrics.snapshot();
    let names: Vec<_> = snapshot
        .tools
        .iter()
        .map(|tool| tool.tool.as_str())
        .collect();
    assert_eq!(names, ["(unknown)", "delete", "get"]);
    let get = &snapshot.tools[2];
    assert_eq!(
        get.calls,
        CallCounts {
            total: 4,
            successful: 2,
            failed: 1,
            hallucinated: 1,
            not_executed: 0,
            unnecessary: 1,
            useful: 1,
            cached: 0,
        }
    );
    assert_eq!(get.calls.accuracy(), Some(0.25));
    // The one that was never executed took no time.
    assert_eq!((get.latency.count, get.latency.sum_ms), (3, 90));
    assert_eq!(snapshot.tools[0].calls.hallucinated, 2);
    assert_eq!(snapshot.tools[1].calls.not_executed, 1);

    let large = &snapshot.models[0];
    assert_eq!(large.model.to_string(), "acme/large");
    assert_eq!(large.tool_calls.total, 7);
    assert_eq!(large.tool_calls.hallucinated, 3);
    assert_eq!(large.requests.total, 1);
    assert_eq!(large.tokens.cache_read, 40);
    assert!((large.cost_usd - 0.5).abs() < 1e-9);
    assert_eq!(large.latency.sum_ms, 100);
    let small = &snapshot.models[1];
    assert_eq!(
        (
            small.requests.total,
            small.requests.failed,
            small.requests.successful
        ),
        (2, 1, 1)
    );
    assert_eq!(small.unpriced, 1);
    assert_eq!((snapshot.runs_started, snapshot.runs_completed), (1, 1));
}

#[test]
fn a_repeat_is_unnecessary_only_when_the_result_was_there_already() {
    let mut feed = Feed::new();
    // Both are asked for before either has its result.
    feed.plan("a", "get", json!({"id": 1}));
    feed.plan("b", "get", json!({"id": 1}));
    feed.end("a", None);
    feed.end("b", None);
    // What failed may be tried again.
    feed.call("get", json!({"id": 2}), Some(ToolFailure::Timeout));
    feed.call("get", json!({"id": 2}), None);
    // In another run it is another question.
    feed.of(
        "run-2",
        RunEventKind::ToolPlanned {
            id: "a".into(),
            server: Some("crm".into()),
            tool: "get".into(),
            input: Arc::new(json!({"id": 1})),
        },
    );
    let calls = feed.metrics.snapshot().tools[0].calls;
    assert_eq!((calls.total, calls.unnecessary), (4, 0));
    feed.call("get", json!({"id": 1}), None);
    let calls = feed.metrics.snapshot().tools[0].calls;
    assert_eq!((calls.total, calls.unnecessary), (5, 1));
}

#[test]
fn a_repeat_that_the_loop_stopped_is_unnecessary_and_no_failure() {
    let mut feed = Feed::new();
    feed.call("get", json!({"id": 1}), None);
    feed.call("get", json!({"id": 1}), Some(ToolFailure::Repeated));
    let calls = feed.metrics.snapshot().tools[0].calls;
    assert_eq!(
        (
            calls.successful,
            calls.unnecessary,
            calls.useful,
            calls.failed
        ),
        (2, 1, 1, 0)
    );
}

#[test]
fn every_way_to_fail_is_in_exactly_one_class() {
    for failure in [
        ToolFailure::UnknownTool,
        ToolFailure::MalformedInput,
        ToolFailure::InvalidInput,
        ToolFailure::Denied,
        ToolFailure::NotApproved,
        ToolFailure::Skipped,
        ToolFailure::LimitReached,
        ToolFailure::Repeated,
        ToolFailure::Withheld,
        ToolFailure::Unavailable,
        ToolFailure::Refused,
        ToolFailure::Timeout,
        ToolFailure::Broken,
        ToolFailure::Interrupted,
        ToolFailure::Cancelled,
        ToolFailure::ToolError,
        ToolFailure::InvalidOutput,
    ] {
        let mut feed = Feed::new();
        feed.call("get", json!({}), Some(failure));
        let calls = feed.metrics.snapshot().tools[0].calls;
        assert_eq!(calls.total, 1);
        assert_eq!(
            calls.successful + calls.failed + calls.hallucinated + calls.not_executed,
            1,
            "{failure:?}"
        );
        assert_eq!(
            calls.hallucinated == 1,
            failure.is_hallucination(),
            "{failure:?}"
        );
        assert_eq!(calls.useful, 0, "{failure:?}");
    }
}

#[test]
fn a_model_call_that_nobody_waited_for_is_counted_as_cancelled() {
    let mut feed = Feed::new();
    feed.ask("large");
    feed.finish(Outcome::Cancelled);
    let snapshot = feed.metrics.snapshot();
    assert_eq!(snapshot.models[0].requests.cancelled, 1);
    assert_eq!(snapshot.models[0].latency.count, 0);
    assert_eq!(snapshot.runs_cancelled, 1);
}

#[test]
fn what_counts_does_not_grow_without_end() {
    let mut feed = Feed::new();
    for n in 0..MAX_NAMES + 50 {
        feed.call(&format!("tool-{n:04}"), json!({}), None);
    }
    for n in 0..MAX_RUNS + 50 {
        let started = RunEventKind::RunStarted {
            model: ModelId::new("acme", "large"),
            resumed: false,
        };
        feed.of(&format!("run-{n}"), started);
    }
    let snapshot = feed.metrics.snapshot();
    assert_eq!(snapshot.tools.len(), MAX_NAMES + 1);
    let other = snapshot.tools.iter().find(|tool| tool.tool == "(other)");
    assert_eq!(other.unwrap().calls.total, 50);
    assert_eq!(feed.metrics.runs.len(), MAX_RUNS);
    feed.metrics.forget("run-10049");
    assert_eq!(feed.metrics.runs.len(), MAX_RUNS - 1);
}

#[test]
fn names_of_models_that_somebody_makes_up_push_no_other_out() {
    let mut feed = Feed::new();
    let known: KnownModel = Arc::new(|model| model.name.starts_with("known"));
    feed.metrics = std::mem::take(&mut feed.metrics).with_known_models(known);
    let fail = |feed: &mut Feed, model: &str| {
        feed.ask(model);
        let failed = json!({"type": "model_call_failed", "step": 1, "error": {"kind": "internal", "message": "no"}});
        feed.tell(serde_json::from_value(failed).unwrap());
    };
    for n in 0..3 * MAX_NAMES {
        fail(&mut feed, &format!("made-up-{n}"));
    }
    // A server that answers whatever it is called.
    for n in 0..MAX_STRANGERS + 20 {
        feed.ask(&format!("answers-{n:03}"));
        feed.answer();
    }
    fail(&mut feed, "known-1");
    feed.ask("known-2");
    feed.answer();
    let counted = |feed: &Feed, name: &str| {
        let models = feed.metrics.snapshot().models;
        let found = models.iter().find(|model| &*model.model.name == name);
        found.map(|model| (model.requests.successful, model.requests.failed))
    };
    assert_eq!(counted(&feed, "known-1"), Some((0, 1)));
    assert_eq!(counted(&feed, "known-2"), Some((1, 0)));
    assert_eq!(counted(&feed, "made-up-0"), None);
    assert_eq!(counted(&feed, "answers-099"), Some((1, 0)));
    assert_eq!(counted(&feed, "answers-100"), None);
    assert_eq!(
        counted(&feed, "(other)"),
        Some((20, 3_000)),
        "nothing is lost"
    );
    assert_eq!(feed.metrics.snapshot().models.len(), MAX_STRANGERS + 3);
}

#[test]
fn a_snapshot_can_be_stored_and_read() {
    let snapshot = eventful().metrics.snapshot();
    let text = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), snapshot);
}

#[test]
fn people_read_a_table() {
    assert_eq!(Metrics::default().snapshot().table(), "");
    insta::assert_snapshot!("table", eventful().metrics.snapshot().table());
}

#[test]
fn prometheus_reads_text() {
    let mut feed = eventful();
    feed.call("quote\"back\\slash\nline", json!({}), None);
    let text = feed.metrics.snapshot().prometheus();
    // Every sample belongs to the family before it, and every family is told once.
    let mut families = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().unwrap();
            assert!(!families.contains(&name), "{name} twice");
            families.push(name);
        } else if !line.starts_with('#') {
            let family = families.last().unwrap();
            assert!(line.starts_with(family), "{line} after {family}");
            let value = line.rsplit(' ').next().unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(
        text.contains(r#"tool="quote\"back\\slash\nline""#),
        "{text}"
    );
    insta::assert_snapshot!("prometheus", eventful().metrics.snapshot().prometheus());
}

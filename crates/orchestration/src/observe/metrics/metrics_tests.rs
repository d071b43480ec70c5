use serde_json::json;
use switchboard_domain::Usage;

use super::*;
use crate::{
    RunEventKind,
    observe::{
        audit::{AuditOptions, AuditTrail},
        events::{
            event, finished, model_finished, model_started, planned, sent, started, tool_finished,
        },
    },
};

fn cost() -> CostFunction {
    Arc::new(|model, usage| {
        (&*model.name == "large" && usage.output_tokens == Some(50)).then_some(0.5)
    })
}

/// Feeds events to metrics and records them. The events are 100 ms apart.
struct Feed {
    metrics: Metrics,
    events: Vec<RunEvent>,
    run_id: &'static str,
}

impl Feed {
    fn new() -> Self {
        Self {
            metrics: Metrics::default().with_cost_function(cost()),
            events: Vec::new(),
            run_id: "run-1",
        }
    }

    fn emit(&mut self, kind: RunEventKind) {
        let seq = self.events.len() as u64 + 1;
        let event = event(self.run_id, seq, kind);
        self.metrics.count_event(&event);
        self.events.push(event);
    }

    fn fail_model_call(&mut self, model: &str) {
        self.emit(model_started(1, model));
        let error = json!({"kind": "internal", "message": "no"});
        let event = json!({"type": "model_call_failed", "step": 1, "error": error});
        self.emit(serde_json::from_value(event).unwrap());
    }

    fn call_model(&mut self, model: &str) {
        self.emit(model_started(1, model));
        let usage = Usage {
            input_tokens: Some(100),
            output_tokens: Some(50),
            cache_read_tokens: Some(40),
            ..Usage::default()
        };
        self.emit(model_finished(1, usage));
    }

    fn finish_tool_call(&mut self, id: &str, failure: Option<ToolFailure>) {
        if !failure.is_some_and(ToolFailure::did_not_run) {
            self.emit(sent(id));
        }
        self.emit(tool_finished(id, failure, "", 30));
    }

    fn call_tool(&mut self, tool: &str, input: Value, failure: Option<ToolFailure>) {
        let id = format!("c{}", self.events.len());
        self.emit(planned(&id, tool, input));
        self.finish_tool_call(&id, failure);
    }

    fn calls(&self, tool: &str) -> ToolCallCounts {
        let tools = self.metrics.take_snapshot().tools;
        tools.iter().find(|it| it.tool == tool).unwrap().calls
    }

    /// Returns the audit records of the events, as they are read from a file.
    fn records(&self) -> Vec<AuditRecord> {
        let mut trail = AuditTrail::new(AuditOptions {
            cost: Some(cost()),
            ..AuditOptions::default()
        });
        let records = self
            .events
            .iter()
            .flat_map(|event| trail.create_records(event));
        records
            .map(|record| serde_json::to_string(&record).unwrap())
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect()
    }
}

fn recorded(feeds: &[&Feed]) -> Metrics {
    let mut metrics = Metrics::default();
    for record in feeds.iter().flat_map(|feed| feed.records()) {
        metrics.count_audit_record(&record);
    }
    metrics
}

/// Returns the events of a run with every kind of tool call and model call.
fn complete_run() -> Feed {
    let mut feed = Feed::new();
    feed.emit(started(false));
    feed.call_model("large");
    feed.call_tool("get", json!({"id": 1, "all": true}), None);
    feed.call_tool("get", json!({"id": 2}), Some(ToolFailure::ToolError));
    feed.call_tool("get", json!({"id": "x"}), Some(ToolFailure::InvalidInput));
    feed.call_tool("delete", json!({}), Some(ToolFailure::Denied));
    feed.call_tool("imagined_1", json!({}), Some(ToolFailure::UnknownTool));
    feed.call_tool("imagined_2", json!({}), Some(ToolFailure::UnknownTool));
    feed.fail_model_call("small");
    feed.call_model("small");
    feed.call_tool("get", json!({"all": true, "id": 1.0}), None);
    feed.emit(finished(None));
    feed
}

#[test]
fn a_call_that_was_not_stored_counts_as_not_executed() {
    let mut feed = Feed::new();
    feed.emit(started(false));
    feed.call_tool("get", json!({}), Some(ToolFailure::NotStored));
    assert_eq!(feed.calls("get").not_executed, 1);
}

#[test]
fn every_call_is_counted_once_per_tool_and_once_per_model() {
    let feed = complete_run();
    let snapshot = feed.metrics.take_snapshot();
    let names = snapshot.tools.iter().map(|tool| tool.tool.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["(unknown)", "delete", "get"]);
    let get = &snapshot.tools[2];
    assert_eq!(
        get.calls,
        ToolCallCounts {
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
    // The call that was not executed has no duration.
    assert_eq!((get.latency.count, get.latency.sum_ms), (3, 90));
    assert_eq!(snapshot.tools[0].calls.hallucinated, 2);
    assert_eq!(snapshot.tools[1].calls.not_executed, 1);

    let [large, small] = &snapshot.models[..] else {
        panic!("{snapshot:?}");
    };
    assert_eq!(large.model.to_string(), "acme/large");
    assert_eq!(large.tool_calls.total, 6);
    assert_eq!(large.tool_calls.hallucinated, 3);
    assert_eq!(large.requests.total, 1);
    assert_eq!(large.tokens.cache_read, 40);
    assert!((large.cost_usd - 0.5).abs() < 1e-9);
    assert_eq!(large.latency.sum_ms, 100);
    let requests = small.requests;
    assert_eq!(
        (requests.total, requests.failed, requests.successful),
        (2, 1, 1)
    );
    assert_eq!((snapshot.runs_started, snapshot.runs_completed), (1, 1));
}

#[test]
fn audit_records_give_the_same_counts_as_events() {
    let mut live = Metrics::default().with_cost_function(cost());
    let feeds = ["run-1", "run-2", "run-3"].map(|run_id| {
        let mut feed = complete_run();
        for event in &mut feed.events {
            event.run_id = run_id.into();
            live.count_event(event);
        }
        feed
    });
    let recorded = recorded(&feeds.each_ref());
    assert_eq!(recorded.take_snapshot(), live.take_snapshot());
    assert_eq!(recorded.take_snapshot().runs_completed, 3);
    assert_eq!(recorded.unfinished_run_count(), 0);
    assert_eq!(recorded.unfinished_call_count(), 0);
}

#[test]
fn a_repeated_call_is_unnecessary_only_if_an_earlier_answer_had_its_result() {
    let mut feed = Feed::new();
    feed.call_model("large");
    // The model requests both calls in one response.
    feed.emit(planned("a", "get", json!({"id": 1})));
    feed.emit(planned("b", "get", json!({"id": 1})));
    feed.finish_tool_call("a", None);
    feed.finish_tool_call("b", None);
    feed.call_tool("get", json!({"id": 2}), Some(ToolFailure::Timeout));
    feed.call_model("large");
    // A repetition of a failed call does not count as a repeated call.
    feed.call_tool("get", json!({"id": 2}), None);
    // An equal call in another run does not count as a repeated call.
    feed.run_id = "run-2";
    feed.call_model("large");
    feed.call_tool("get", json!({"id": 1}), None);
    let calls = feed.calls("get");
    assert_eq!((calls.total, calls.unnecessary), (5, 0));
    feed.run_id = "run-1";
    feed.call_tool("get", json!({"id": 1}), None);
    let calls = feed.calls("get");
    assert_eq!((calls.total, calls.unnecessary), (6, 1));
}

#[test]
fn every_failure_is_in_exactly_one_class() {
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
        feed.call_tool("get", json!({}), Some(failure));
        let calls = feed.metrics.take_snapshot().tools[0].calls;
        assert_eq!(calls.total, 1);
        let classes = [
            calls.successful,
            calls.failed,
            calls.hallucinated,
            calls.not_executed,
        ];
        assert_eq!(classes.iter().sum::<u64>(), 1, "{failure:?}");
        assert_eq!(calls.hallucinated == 1, failure.is_hallucination());
        assert_eq!(calls.useful, 0, "{failure:?}");
    }
}

#[test]
fn the_number_of_names_and_runs_is_limited() {
    let mut feed = Feed::new();
    for n in 0..MAX_NAMES + 50 {
        feed.call_tool(&format!("tool-{n:04}"), json!({}), None);
    }
    assert_eq!(feed.metrics.take_snapshot().tools.len(), MAX_NAMES + 1);
    assert_eq!(feed.calls("(other)").total, 50);
    for n in 0..MAX_RUNS + 50 {
        let mut event = feed.events[0].clone();
        event.run_id = format!("run-{n}").into();
        feed.metrics.count_event(&event);
    }
    assert_eq!(feed.metrics.runs.len(), MAX_RUNS);
    feed.metrics.forget_run("run-10049");
    assert_eq!(feed.metrics.runs.len(), MAX_RUNS - 1);
}

#[test]
fn invented_model_names_do_not_displace_known_models() {
    let mut feed = Feed::new();
    let is_known: KnownModelPredicate = Arc::new(|model| model.name.starts_with("known"));
    feed.metrics = std::mem::take(&mut feed.metrics).with_known_models(is_known);
    for n in 0..3 * MAX_NAMES {
        feed.fail_model_call(&format!("invented-{n}"));
    }
    // A server that reports another model name in each response.
    for n in 0..MAX_UNKNOWN_MODELS + 20 {
        feed.call_model(&format!("answers-{n:03}"));
    }
    feed.fail_model_call("known-1");
    feed.call_model("known-2");
    let models = feed.metrics.take_snapshot().models;
    let counted = |name: &str| {
        let found = models.iter().find(|model| &*model.model.name == name);
        found.map(|model| (model.requests.successful, model.requests.failed))
    };
    assert_eq!(counted("known-1"), Some((0, 1)));
    assert_eq!(counted("known-2"), Some((1, 0)));
    assert_eq!(counted("invented-0"), None);
    assert_eq!(counted("answers-099"), Some((1, 0)));
    assert_eq!(counted("answers-100"), None);
    assert_eq!(counted("(other)"), Some((20, 3_000)));
    assert_eq!(models.len(), MAX_UNKNOWN_MODELS + 3);
}

#[test]
fn calls_and_runs_without_an_end_are_not_counted() {
    let mut feed = complete_run();
    let is_start = |event: &RunEvent| matches!(event.kind, RunEventKind::ToolStarted { .. });
    let last = feed.events.iter().rposition(is_start);
    feed.events.truncate(last.unwrap() + 1);
    let metrics = recorded(&[&feed]);
    assert_eq!(metrics.unfinished_call_count(), 1);
    assert_eq!(metrics.unfinished_run_count(), 1);
    let snapshot = metrics.take_snapshot();
    assert_eq!((snapshot.runs_started, snapshot.runs_completed), (1, 0));
    assert_eq!(snapshot.tools[2].calls.total, 3);
}

#[test]
fn a_parked_run_continues_as_the_same_run() {
    let mut first = Feed::new();
    first.emit(started(false));
    first.call_model("large");
    first.call_tool("get", json!({"id": 1}), None);
    first.emit(RunEventKind::RunParked {
        waiting: vec!["c".into()],
    });
    let metrics = recorded(&[&first]);
    assert_eq!(
        (metrics.parked_run_count(), metrics.unfinished_run_count()),
        (1, 0)
    );
    // Like another process, the second value has its own audit trail.
    let mut second = Feed::new();
    second.emit(started(true));
    second.call_model("large");
    second.call_tool("get", json!({"id": 1}), None);
    second.emit(finished(None));
    let metrics = recorded(&[&first, &second]);
    let snapshot = metrics.take_snapshot();
    assert_eq!(
        (metrics.parked_run_count(), metrics.unfinished_run_count()),
        (0, 0)
    );
    assert_eq!((snapshot.runs_started, snapshot.runs_completed), (1, 1));
    assert_eq!(snapshot.tools[0].calls.unnecessary, 1);
    // A run is counted even if its start is not recorded.
    let snapshot = recorded(&[&second]).take_snapshot();
    assert_eq!((snapshot.runs_started, snapshot.runs_completed), (1, 1));
}

#[test]
fn the_table_lists_tools_and_models() {
    assert_eq!(Metrics::default().take_snapshot().to_text_table(), "");
    insta::assert_snapshot!(
        "table",
        complete_run().metrics.take_snapshot().to_text_table()
    );
}

#[cfg(feature = "prometheus")]
#[test]
fn the_registry_encodes_every_metric() {
    use std::sync::Mutex;

    use prometheus_client::{encoding::text::encode, registry::Registry};

    use crate::observe::metrics::MetricsCollector;

    let encoded = |metrics: Metrics| {
        let mut registry = Registry::with_prefix("switchboard");
        let metrics = Arc::new(Mutex::new(metrics));
        registry.register_collector(Box::new(MetricsCollector(metrics)));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    };
    insta::assert_snapshot!("prometheus", encoded(complete_run().metrics));
    let mut feed = Feed::new();
    feed.call_tool("quote\"back\\slash\nline", json!({}), None);
    let text = encoded(feed.metrics);
    assert!(
        text.contains(r#"tool="quote\"back\\slash\nline""#),
        "{text}"
    );
}

use serde_json::{Value, json};

use super::*;
use crate::{
    report::metric::Metric,
    scoring::{CallOutcome, ScoredCall, Verdict},
};

fn call(tool: &str, outcome: CallOutcome, verdict: Verdict, duration_ms: u64) -> ScoredCall {
    ScoredCall {
        server: Some("shop".to_owned()),
        tool: tool.to_owned(),
        input: Value::Null,
        outcome,
        verdict,
        reason: None,
        duration_ms,
        result: String::new(),
    }
}

fn turn(
    calls: Vec<ScoredCall>,
    missing: usize,
    attempted: usize,
    duration_ms: u64,
    cost_usd: Option<f64>,
) -> TurnResult {
    TurnResult {
        message: "x".to_owned(),
        answer: "y".to_owned(),
        outcome: Outcome::Completed,
        error: None,
        faults: Vec::new(),
        made_up_values: Some(vec!["42".to_owned()]),
        score: TurnScore {
            calls,
            missing: vec!["z".to_owned(); missing],
            attempted,
            not_executed: Vec::new(),
        },
        steps: 1,
        usage: Usage {
            input_tokens: Some(10),
            ..Usage::default()
        },
        unmetered: 0,
        cost_usd,
        duration_ms,
        transcript: Transcript::default(),
    }
}

fn report(runs: Vec<(bool, Vec<TurnResult>)>) -> Report {
    let run = |(passed, turns)| RunResult {
        scenario: "s".to_owned(),
        kind: "k".to_owned(),
        model: ModelId::new("acme", "one"),
        recipe: None,
        repetition: 1,
        passed,
        error: None,
        turns,
        unfinished_turn: None,
        not_reached: Vec::new(),
    };
    Report {
        format: FORMAT.to_owned(),
        version: VERSION,
        title: "t".to_owned(),
        program: "p".to_owned(),
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        thresholds: Thresholds::default(),
        no_tools: false,
        not_run: 0,
        runs: runs.into_iter().map(run).collect(),
    }
}

#[test]
fn calls_are_counted_by_outcome_and_verdict() {
    use CallOutcome::{Failed, Hallucinated, NotExecuted, Successful};
    let calls = vec![
        call("a", Successful, Verdict::Right, 5),
        call("a", Failed, Verdict::Right, 7),
        call("b", NotExecuted, Verdict::Unnecessary, 0),
        call("b", Successful, Verdict::WrongInput, 9),
        call("b", Hallucinated, Verdict::Hallucinated, 0),
        call("c", Successful, Verdict::Unjudged, 1),
        call("c", Successful, Verdict::Forbidden, 1),
    ];
    let report = report(vec![
        (true, vec![turn(calls, 2, 1, 100, Some(0.5))]),
        (
            false,
            vec![
                turn(Vec::new(), 0, 0, 300, Some(0.25)),
                turn(Vec::new(), 0, 0, 200, None),
            ],
        ),
    ]);
    let summary = report.summarize_models().remove(0);
    assert_eq!(summary.runs, 2);
    assert_eq!(summary.passed, 1);
    assert_eq!(summary.turn_ms, Some((200, 300)));
    assert_eq!(
        summary.counts,
        CallCounts {
            calls: 7,
            successful: 4,
            failed: 1,
            hallucinated: 2,
            not_executed: 1,
            unnecessary: 1,
            forbidden: 1,
            right: 2,
            unknown: 0,
            judged: 7
        }
    );
    assert_eq!(summary.counts.accuracy(), Some(2.0 / 7.0));
    assert_eq!(summary.usage.input_tokens, Some(30));
    assert_eq!(summary.cost_usd, None);
    assert_eq!(summary.made_up_values, Some(3));
    assert_eq!(summary.kinds["k"], (2, 1));
    assert_eq!(summary.tools["shop/a"].call_ms, Some((5, 7)));
    assert_eq!(summary.tools["shop/b"].counts.hallucinated, 2);
    assert_eq!(summary.tools["shop/b"].call_ms, Some((9, 9)));
    let value = serde_json::to_value(&report).unwrap();
    assert_eq!(serde_json::from_value::<Report>(value).unwrap(), report);
}

#[test]
fn shares_without_calls_are_undefined() {
    let report = report(vec![(true, vec![turn(Vec::new(), 0, 0, 1, None)])]);
    let counts = report.summarize_models()[0].counts;
    let hallucinated = compute_share(counts.hallucinated, counts.calls);
    assert_eq!((counts.accuracy(), hallucinated), (None, None));
}

#[test]
fn calls_that_were_not_reached_are_not_right() {
    let right = call("a", CallOutcome::Successful, Verdict::Right, 1);
    let mut report = report(vec![(false, vec![turn(vec![right], 0, 0, 1, None)])]);
    report.runs[0].not_reached = vec!["b {}".to_owned(), "c {}".to_owned()];
    assert_eq!(
        report.summarize_models()[0].counts.accuracy(),
        Some(1.0 / 3.0)
    );
    // A run that could not be executed is a failure, even without thresholds.
    assert_eq!(report.list_unmet_requirements(), Vec::<String>::new());
    report.runs[0].error = Some("there is no such recipe".to_owned());
    assert_eq!(
        report.list_unmet_requirements(),
        ["acme/one: `s` failed: there is no such recipe"]
    );
}

#[test]
fn a_missed_threshold_is_named_with_both_values() {
    let right = || call("a", CallOutcome::Successful, Verdict::Right, 1);
    let extra = call("a", CallOutcome::Successful, Verdict::Unnecessary, 1);
    let mut report = report(vec![
        (
            true,
            vec![turn(vec![right(), right(), right(), extra], 0, 0, 1, None)],
        ),
        (false, Vec::new()),
    ]);
    report.thresholds = serde_json::from_value(
        json!({"passed": 0.5, "accuracy": 0.75, "hallucinated": 0.0, "unnecessary": 0.25}),
    )
    .unwrap();
    assert_eq!(report.list_unmet_requirements(), Vec::<String>::new());
    report.thresholds = serde_json::from_value(
        json!({"passed": 0.51, "accuracy": 0.8, "hallucinated": 0, "unnecessary": 0.2}),
    )
    .unwrap();
    assert_eq!(
        report.list_unmet_requirements(),
        [
            "acme/one: passed is 0.500, but must be at least 0.51",
            "acme/one: accuracy is 0.750, but must be at least 0.8",
            "acme/one: unnecessary is 0.250, but must be at most 0.2",
        ]
    );
}

#[test]
fn a_threshold_without_calls_is_missed() {
    let all = json!({"passed": 0.5, "accuracy": 0.5, "hallucinated": 0, "unnecessary": 0});
    // No call was expected and none was made, so the share of hallucinated calls is known (0), but
    // the accuracy is unknown.
    let mut casual = report(vec![(true, vec![turn(Vec::new(), 0, 0, 1, None)])]);
    casual.thresholds = serde_json::from_value(all.clone()).unwrap();
    assert_eq!(
        casual.list_unmet_requirements(),
        [
            "acme/one: accuracy is unknown, but must be at least 0.5: no call was expected, and none was made"
        ]
    );
    // The turn lists no expected calls, so the call of the model was not judged.
    let unjudged = call("a", CallOutcome::Successful, Verdict::Unjudged, 1);
    let mut open = report(vec![(true, vec![turn(vec![unjudged], 0, 0, 1, None)])]);
    open.thresholds = serde_json::from_value(all.clone()).unwrap();
    assert_eq!(
        open.list_unmet_requirements(),
        ["acme/one: accuracy is unknown, but must be at least 0.5: none of the calls was judged"]
    );
    // Two calls were expected and none was made, so the shares of hallucinated and unnecessary
    // calls are unknown.
    let mut silent = report(vec![(true, vec![turn(Vec::new(), 2, 0, 1, None)])]);
    silent.thresholds = serde_json::from_value(all.clone()).unwrap();
    assert_eq!(
        silent.list_unmet_requirements(),
        [
            "acme/one: accuracy is 0.000, but must be at least 0.5",
            "acme/one: hallucinated is unknown, but must be at most 0: none of the 2 expected calls was made",
            "acme/one: unnecessary is unknown, but must be at most 0: none of the 2 expected calls was made",
        ]
    );
    // A report without runs is a failure.
    let mut nothing = report(Vec::new());
    assert_eq!(nothing.list_unmet_requirements(), ["no runs were executed"]);
    nothing.not_run = 4;
    nothing.thresholds = serde_json::from_value(all).unwrap();
    assert_eq!(
        nothing.list_unmet_requirements(),
        [
            "no runs were executed",
            "the evaluation was stopped: 4 of 4 runs were not executed"
        ]
    );
}

#[test]
fn runs_with_the_same_error_are_reported_together() {
    let mut report = report(vec![
        (false, Vec::new()),
        (false, Vec::new()),
        (false, Vec::new()),
    ]);
    for (run, error) in report
        .runs
        .iter_mut()
        .zip(["no key", "no server", "no key"])
    {
        run.error = Some(error.to_owned());
    }
    assert_eq!(
        report.list_unmet_requirements(),
        [
            "acme/one: `s` and 1 more failed: no key",
            "acme/one: `s` failed: no server"
        ]
    );
}

#[test]
fn partly_reported_tokens_have_no_metric() {
    let mut partly = turn(Vec::new(), 0, 0, 1, None);
    partly.unmetered = 1;
    let report = report(vec![(
        true,
        vec![turn(Vec::new(), 0, 0, 1, Some(0.5)), partly],
    )]);
    let summary = report.summarize_models().remove(0);
    assert_eq!((summary.turns, summary.unmetered_turns), (2, 1));
    assert_eq!(summary.usage.input_tokens, Some(20));
    assert_eq!(summary.cost_usd, None);
    assert_eq!(Metric::InputTokens.value_in_summary(&summary), None);
    assert_eq!(Metric::Cost.value_in_summary(&summary), None);
}

#[test]
fn percentiles_are_of_the_nearest_rank() {
    let turns = |count: u64| {
        (1..=count)
            .map(|ms| turn(Vec::new(), 0, 0, ms, None))
            .collect()
    };
    let found = |count| report(vec![(true, turns(count))]).summarize_models()[0].turn_ms;
    assert_eq!(found(0), None);
    assert_eq!(
        [1, 2, 20, 21, 100].map(found),
        [
            Some((1, 1)),
            Some((1, 2)),
            Some((10, 19)),
            Some((11, 20)),
            Some((50, 95))
        ]
    );
}

#[test]
fn a_report_is_read_unless_it_has_another_version() {
    let right = call("a", CallOutcome::Successful, Verdict::Right, 1);
    let report = report(vec![(true, vec![turn(vec![right], 1, 1, 1, Some(0.5))])]);
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(Report::parse_report(&json).unwrap(), report);
    // A report of a newer program may contain unknown fields.
    let mut value: Value = serde_json::from_str(&json).unwrap();
    value["mood"] = json!("good");
    value["runs"][0]["turns"][0]["mood"] = json!({"is": "good"});
    value["runs"][0]["turns"][0]["transcript"] =
        json!({"entries": [{"at_ms": 1, "type": "future", "by": "the model"}]});
    let read = Report::parse_report(&value.to_string()).unwrap();
    let entry = &read.runs[0].turns[0].transcript.entries[0];
    assert_eq!(entry["type"], "future");
    assert_eq!(read.runs[0].turns[0].score, report.runs[0].turns[0].score);
    value["version"] = json!(VERSION + 1);
    value["runs"] = json!("elsewhere");
    let newer = Report::parse_report(&value.to_string())
        .unwrap_err()
        .to_string();
    assert_eq!(
        newer,
        "the report has version 2, but this program reads version 1: update the program"
    );
    for (text, part) in [
        ("", "EOF"),
        ("[]", "invalid length"),
        (
            r#"{"format": "switchboard-evaluation", "version": 1}"#,
            "missing field `title`",
        ),
        (r#"{"format": "x", "version": 1}"#, "`format` must be"),
        (r#"{"version": 1, "title": "t"}"#, "commit f008d49"),
        (r#"{"version": "x"}"#, "u64"),
    ] {
        let fault = Report::parse_report(text).unwrap_err().to_string();
        assert!(
            fault.starts_with("the file is not an evaluation report: ") && fault.contains(part),
            "{fault}"
        );
    }
}

/// A report of version 1. It must stay readable.
#[test]
fn the_fixture_of_version_1_is_read() {
    let report = Report::parse_report(include_str!("fixtures/version_1.json")).unwrap();
    assert_eq!((report.version, report.runs.len()), (1, 3));
    let summary = &report.summarize_models()[0];
    assert_eq!((summary.counts.calls, summary.made_up_values), (2, None));
}

#[test]
fn a_report_may_contain_any_numbers() {
    let counts = CallCounts {
        calls: 3,
        successful: u64::MAX,
        failed: u64::MAX,
        not_executed: 1,
        ..CallCounts::default()
    };
    assert_eq!(counts.count_invalid_calls(), 0);
    let turns = |tokens| {
        let mut turn = turn(Vec::new(), 0, usize::MAX, u64::MAX, None);
        turn.usage.input_tokens = Some(tokens);
        turn
    };
    let mut report = report(vec![(true, vec![turns(u64::MAX), turns(7)])]);
    report.not_run = u64::MAX;
    let summary = &report.summarize_models()[0];
    assert_eq!(summary.usage.input_tokens, Some(u64::MAX));
    assert_eq!(summary.turn_ms, Some((u64::MAX, u64::MAX)));
    assert_eq!(summary.counts.judged, 0);
    let missed = report.list_unmet_requirements();
    assert!(
        missed[0].contains("18446744073709551615 of 18446744073709551615"),
        "{missed:?}"
    );
}

use serde_json::{Value, json};

use super::*;

fn call(tool: &str, end: CallEnd, worth: Worth, duration_ms: u64) -> JudgedCall {
    JudgedCall {
        server: Some("shop".to_owned()),
        tool: tool.to_owned(),
        input: Value::Null,
        end,
        worth,
        why: None,
        duration_ms,
        result: String::new(),
    }
}

fn turn(
    calls: Vec<JudgedCall>,
    missing: usize,
    attempted: usize,
    duration_ms: u64,
    cost_usd: Option<f64>,
) -> TurnResult {
    TurnResult {
        said: "x".to_owned(),
        answer: "y".to_owned(),
        outcome: Outcome::Completed,
        error: None,
        faults: Vec::new(),
        judgement: Judgement {
            calls,
            missing: vec!["z".to_owned(); missing],
            attempted,
        },
        steps: 1,
        usage: Usage {
            input_tokens: Some(10),
            ..Usage::default()
        },
        cost_usd,
        duration_ms,
    }
}

fn report(runs: Vec<(bool, Vec<TurnResult>)>) -> Report {
    let run = |(passed, turns)| RunResult {
        scenario: "s".to_owned(),
        kind: "k".to_owned(),
        model: ModelId::new("acme", "one"),
        repetition: 1,
        passed,
        error: None,
        turns,
        not_reached: Vec::new(),
    };
    Report {
        version: VERSION,
        title: "t".to_owned(),
        program: "p".to_owned(),
        made: "2026-01-01T00:00:00Z".to_owned(),
        thresholds: Thresholds::default(),
        runs: runs.into_iter().map(run).collect(),
    }
}

#[test]
fn every_call_is_counted_for_what_it_is() {
    use CallEnd::{Failed, Hallucinated, NotExecuted, Successful};
    let calls = vec![
        call("a", Successful, Worth::Right, 5),
        call("a", Failed, Worth::Right, 7),
        call("b", NotExecuted, Worth::Unnecessary, 0),
        call("b", Successful, Worth::WrongInput, 9),
        call("b", Hallucinated, Worth::Hallucinated, 0),
        call("c", Successful, Worth::Unjudged, 1),
        call("c", Successful, Worth::Forbidden, 1),
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
    let summary = report.summary().remove(0);
    assert_eq!(
        (summary.runs, summary.passed, summary.turn_ms),
        (2, 1, Some((200, 300)))
    );
    assert_eq!(
        summary.counts,
        Counts {
            calls: 7,
            successful: 4,
            failed: 1,
            hallucinated: 2,
            not_executed: 1,
            unnecessary: 1,
            forbidden: 1,
            right: 2,
            judged: 7
        }
    );
    assert_eq!(summary.counts.accuracy(), Some(2.0 / 7.0));
    assert_eq!(
        (summary.usage.input_tokens, summary.cost_usd),
        (Some(30), None)
    );
    assert_eq!(summary.kinds["k"], (2, 1));
    assert_eq!(summary.tools["shop/a"].call_ms, Some((5, 7)));
    assert_eq!(
        (
            summary.tools["shop/b"].counts.hallucinated,
            summary.tools["shop/b"].call_ms
        ),
        (2, Some((9, 9)))
    );
    let value = serde_json::to_value(&report).unwrap();
    assert_eq!(serde_json::from_value::<Report>(value).unwrap(), report);
}

#[test]
fn nothing_expected_and_nothing_done_is_no_share() {
    let report = report(vec![(true, vec![turn(Vec::new(), 0, 0, 1, None)])]);
    let counts = report.summary()[0].counts;
    assert_eq!(
        (counts.accuracy(), counts.hallucinated_share()),
        (None, None)
    );
}

#[test]
fn what_was_not_reached_is_not_right() {
    let right = call("a", CallEnd::Successful, Worth::Right, 1);
    let mut report = report(vec![(false, vec![turn(vec![right], 0, 0, 1, None)])]);
    report.runs[0].not_reached = vec!["b {}".to_owned(), "c {}".to_owned()];
    assert_eq!(report.summary()[0].counts.accuracy(), Some(1.0 / 3.0));
    // And what could not be run is no success, whatever was asked for.
    assert_eq!(report.missed(), Vec::<String>::new());
    report.runs[0].error = Some("there is no such recipe".to_owned());
    assert_eq!(
        report.missed(),
        ["acme/one: `s` could not be run: there is no such recipe"]
    );
}

#[test]
fn a_threshold_that_is_missed_is_named_with_both_numbers() {
    let right = || call("a", CallEnd::Successful, Worth::Right, 1);
    let extra = call("a", CallEnd::Successful, Worth::Unnecessary, 1);
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
    assert_eq!(report.missed(), Vec::<String>::new());
    report.thresholds = serde_json::from_value(
        json!({"passed": 0.51, "accuracy": 0.8, "hallucinated": 0, "unnecessary": 0.2}),
    )
    .unwrap();
    assert_eq!(
        report.missed(),
        [
            "acme/one: passed is 0.500, at least 0.51 is asked for",
            "acme/one: accuracy is 0.750, at least 0.8 is asked for",
            "acme/one: unnecessary is 0.250, at most 0.2 is allowed",
        ]
    );
}

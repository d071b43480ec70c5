use serde_json::{Value, json};

use super::*;

/// Creates a report. Each run consists of model, scenario, whether it passed, and the verdicts of
/// its calls.
fn report(runs: &[(&str, &str, bool, &[&str])]) -> Report {
    let run = |(model, scenario, passed, calls): &(&str, &str, bool, &[&str])| {
        let calls = calls.iter().map(|verdict| {
            json!({"server": "s", "tool": "t", "input": {}, "outcome": "successful", "verdict": verdict, "duration_ms": 5, "result": ""})
        });
        json!({
            "scenario": scenario, "kind": "k", "model": model, "repetition": 1, "passed": passed,
            "turns": [{"message": "x", "answer": "y", "outcome": "completed", "faults": [], "calls": calls.collect::<Value>(), "missing": [],
                "steps": 1, "usage": {"input_tokens": 10}, "cost_usd": 0.25, "duration_ms": 40}],
        })
    };
    let value = json!({"format": "switchboard-evaluation", "version": 1, "title": "t", "program": "p", "created_at": "now", "thresholds": {}, "runs": runs.iter().map(run).collect::<Value>()});
    Report::parse_report(&value.to_string()).unwrap()
}

fn changes(it: &ModelComparison) -> Vec<(&str, Change, String, String)> {
    let scenarios = it.scenarios.iter();
    scenarios
        .map(|it| {
            (
                &*it.scenario,
                it.change,
                it.format_earlier_result(),
                it.format_later_result(),
            )
        })
        .collect()
}

fn figure(it: &ModelComparison, figure: Metric) -> (Change, String, String, String) {
    let found = it.metrics.iter().find(|it| it.metric == figure).unwrap();
    (
        found.change,
        found.format_earlier_result(),
        found.format_later_result(),
        found.format_result_difference(),
    )
}

#[test]
fn scenarios_are_matched_by_name_and_repetitions_are_pooled() {
    let earlier = report(&[
        ("a/one", "up", false, &[]),
        ("a/one", "up", true, &[]),
        ("a/one", "down", true, &[]),
        ("a/one", "even", true, &[]),
        ("a/one", "even", false, &[]),
        ("a/one", "gone", true, &[]),
        ("a/old", "up", true, &[]),
    ]);
    let later = report(&[
        ("b/new", "up", true, &[]),
        ("a/one", "down", false, &[]),
        ("a/one", "new", false, &[]),
        ("a/one", "up", true, &[]),
        ("a/one", "even", true, &[]),
        ("a/one", "even", false, &[]),
        ("a/one", "even", true, &[]),
        ("a/one", "even", false, &[]),
    ]);
    let found = ReportComparison::compare_reports(&earlier, &later);
    let names = |models: &[ModelId]| models.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&found.only_earlier), ["a/old"]);
    assert_eq!(names(&found.only_later), ["b/new"]);
    let [model] = &found.models[..] else {
        panic!("{found:?}")
    };
    let text = |it: &str| it.to_owned();
    assert_eq!(
        changes(model),
        [
            ("down", Change::Worse, text("1 of 1"), text("0 of 1")),
            ("new", Change::New, text("–"), text("0 of 1")),
            ("up", Change::Better, text("1 of 2"), text("1 of 1")),
            ("even", Change::Same, text("1 of 2"), text("2 of 4")),
            ("gone", Change::Gone, text("1 of 1"), text("–")),
        ]
    );
    // Scenarios that only one report has do not count. Of the common runs, 3 of 5 passed before and
    // 3 of 6 pass now.
    assert!(model.partial);
    let passed = figure(model, Metric::Passed);
    assert_eq!(
        passed,
        (
            Change::Worse,
            text("60.0%"),
            text("50.0%"),
            text("−10.0 points")
        )
    );
    assert_eq!(
        found.list_regressions(),
        [
            "a/one: passed: 60.0% before, 50.0% now",
            "a/one: `down` passed 1 of 1 before, 0 of 1 now"
        ]
    );
    assert!(!found.list_regressions().is_empty() && !found.is_empty());
    let written = serde_json::to_string(&found).unwrap();
    assert_eq!(
        serde_json::from_str::<ReportComparison>(&written).unwrap(),
        found
    );
}

#[test]
fn metrics_are_better_or_worse_by_their_direction() {
    let earlier = report(&[("a/one", "s", true, &["right", "unnecessary"])]);
    let mut later = report(&[(
        "a/one",
        "s",
        true,
        &["right", "wrong_input", "right", "forbidden"],
    )]);
    later.runs[0].turns[0].duration_ms = 90;
    later.runs[0].turns[0].cost_usd = None;
    let found = ReportComparison::compare_reports(&earlier, &later);
    let model = &found.models[0];
    let change = |which| figure(model, which).0;
    assert_eq!(change(Metric::Passed), Change::Same);
    assert_eq!(change(Metric::Accuracy), Change::Same);
    assert_eq!(change(Metric::Unnecessary), Change::Better);
    assert_eq!(change(Metric::Hallucinated), Change::Worse);
    assert_eq!(change(Metric::Forbidden), Change::Worse);
    assert_eq!(change(Metric::Calls), Change::Changed);
    // Time, tokens and costs never count as better or worse.
    assert_eq!(
        figure(model, Metric::MedianTurn),
        (
            Change::Changed,
            "40 ms".into(),
            "90 ms".into(),
            "+50 ms".into()
        )
    );
    assert_eq!(
        figure(model, Metric::Cost),
        (Change::Changed, "$0.2500".into(), "–".into(), "–".into())
    );
    assert_eq!(
        figure(model, Metric::OutputTokens),
        (Change::Same, "–".into(), "–".into(), "–".into())
    );
    assert_eq!(
        found.list_regressions(),
        [
            "a/one: hallucinated calls: 0.0% before, 25.0% now",
            "a/one: forbidden calls: 0.0% before, 25.0% now"
        ]
    );
}

#[test]
fn equal_and_unrelated_reports_have_no_changes() {
    let one = report(&[
        ("a/one", "s", true, &["right"]),
        ("a/two", "s", false, &["unnecessary"]),
    ]);
    let same = ReportComparison::compare_reports(&one, &one);
    let all = same.models.iter().flat_map(|it| &it.metrics);
    assert!(all.clone().count() == 28 && all.into_iter().all(|it| it.change == Change::Same));
    assert!(same.list_regressions().is_empty() && !same.is_empty());
    let other = report(&[("a/one", "t", false, &[])]);
    let found = ReportComparison::compare_reports(&one, &other);
    assert!(
        found.is_empty() && found.list_regressions().is_empty(),
        "{found:?}"
    );
    assert!(ReportComparison::compare_reports(&one, &report(&[])).is_empty());
}

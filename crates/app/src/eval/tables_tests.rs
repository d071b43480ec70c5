use serde_json::json;

use super::*;

fn report() -> Report {
    let call = |tool: &str, outcome: &str, verdict: &str| {
        json!({
            "server": "shop", "tool": tool, "input": {}, "outcome": outcome, "verdict": verdict,
            "duration_ms": 12, "result": "…",
        })
    };
    let turn = |faults: &[&str], calls: &[serde_json::Value]| {
        json!({
            "message": "?", "answer": "!", "outcome": "completed", "faults": faults, "made_up_values": ["42"], "calls": calls,
            "missing": [], "steps": 1, "usage": {"input_tokens": 20, "output_tokens": 10},
            "cost_usd": 0.25, "duration_ms": 1_234,
        })
    };
    let run = |scenario: &str, kind: &str, model: &str, turns: &[serde_json::Value]| {
        let passed = turns.iter().all(|turn| turn["faults"] == json!([]));
        json!({
            "scenario": scenario, "kind": kind, "model": model, "repetition": 1,
            "passed": passed, "turns": turns,
        })
    };
    let right = turn(&[], &[call("sum", "successful", "right")]);
    let wrong = turn(
        &["`sum` was\u{1b}[31m called twice"],
        &[
            call("sum", "successful", "wrong_input"),
            call("find", "failed", "unnecessary"),
        ],
    );
    let report = json!({
        "format": "switchboard-evaluation", "version": 1, "title": "A shop", "program": "test", "created_at": "2026-11-22T00:00:00Z",
        "thresholds": {}, "no_tools": true, "not_run": 1,
        "runs": [
            run("One", "entity exists", "acme/one", std::slice::from_ref(&right)),
            run("Two", "follow-up", "acme/one", &[right.clone(), wrong]),
            run("One", "entity exists", "acme/two", &[right]),
        ],
    });
    Report::parse_report(&report.to_string()).unwrap()
}

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[test]
fn a_report_is_laid_out_for_people() {
    insta::assert_snapshot!(plain(&format_report(&report())));
}

#[test]
fn a_report_from_elsewhere_can_do_nothing() {
    let mut report = report();
    report.not_run = u64::MAX;
    for run in &mut report.runs {
        run.model.name = "one\u{202e}drow\u{1b}[2J\nnext".into();
    }
    let text = plain(&format_report(&report));
    assert!(text.contains("acme/onedrow[2J next"), "{text}");
    let is_odd = |c: char| crate::terminal::is_control_character(c);
    assert!(!text.contains(is_odd), "{text:?}");
    let unfinished = format!("{0} of {0} runs were not executed", u64::MAX);
    assert!(text.contains(&unfinished), "{text}");
    let progress = printable_model_name(&report.runs[0].model);
    assert!(!progress.contains(is_odd), "{progress:?}");
}

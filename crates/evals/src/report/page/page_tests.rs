use std::time::Instant;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::prelude::*;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::*;

/// A report with the text in every field.
fn report(text: &str) -> Report {
    let excerpt = |omitted: u64| json!({"text": text, "omitted": omitted});
    let call = |verdict: &str, outcome: &str| json!({"server": text, "tool": text, "input": {text: text}, "outcome": outcome, "verdict": verdict, "reason": text, "duration_ms": 12, "result": text});
    let entries = json!([
        {"at_ms": 0, "type": "model_request", "step": 1, "model": format!("acme/{text}"), "tools": 3},
        {"at_ms": 5, "type": "reasoning", "text": text},
        {"at_ms": 6, "type": "text", "text": text, "omitted": 12},
        {"at_ms": 7, "type": "provider", "kind": text, "text": text},
        {"at_ms": 8, "type": "model_response", "step": 1, "model": text, "reason": text, "usage": {"input_tokens": 100, "output_tokens": 20}},
        {"at_ms": 9, "type": "call", "id": "1", "server": text, "tool": text, "scored_call": 0, "input": {"text": json!({"a": text}).to_string()},
            "notes": [{"at_ms": 10, "kind": text, "text": text}],
            "result": {"at_ms": 20, "is_error": true, "failure": text, "cached": true, "attempts": 2, "duration_ms": 12, "content": [excerpt(3)]}},
        {"at_ms": 21, "type": "call", "id": "2", "tool": text, "scored_call": 1, "input": excerpt(0)},
        {"at_ms": 22, "type": "note", "kind": text, "text": text},
        {"at_ms": 23, "type": "future"},
    ]);
    let turn = json!({
        "message": text, "answer": format!("{text}!"), "outcome": "limited", "error": text, "faults": [text], "made_up_values": [text, text],
        "calls": [call("wrong_input", "failed"), call("right", "successful")], "missing": [text], "attempted": 1, "steps": 2,
        "usage": {"input_tokens": 1_234, "output_tokens": 56}, "unmetered": 1, "cost_usd": 0.0012, "duration_ms": 1_240,
        "transcript": {"entries": entries, "omitted": 4},
    });
    let fine = json!({"message": text, "answer": text, "outcome": "completed", "faults": [], "calls": [], "missing": [], "steps": 1, "usage": {},
        "cost_usd": null, "duration_ms": 300});
    let run = |model: &str, passed: bool, turns: Value| json!({"scenario": text, "kind": text, "model": format!("{model}{text}"), "recipe": text, "repetition": 1, "passed": passed, "turns": turns});
    let mut stopped = run("acme/", false, json!([]));
    stopped["error"] = json!(text);
    stopped["unfinished_turn"] = json!({"message": text, "transcript": {"entries": entries}});
    stopped["not_reached"] = json!([text]);
    let value = json!({
        "format": "switchboard-evaluation", "version": 1, "title": text, "program": text, "created_at": text, "not_run": 2, "thresholds": {"passed": 0.9, "hallucinated": 0.1},
        "runs": [run("acme/", false, json!([turn])), run("acme/two-", true, json!([fine])), stopped],
    });
    Report::parse_report(&value.to_string()).unwrap()
}

/// An earlier report with better results and another scenario.
fn earlier(text: &str) -> Report {
    let mut earlier = report(text);
    earlier.no_tools = true;
    earlier.runs[0].passed = true;
    earlier.runs[0].turns[0].score.calls.truncate(1);
    earlier.runs[1].scenario.push('x');
    let mut old = earlier.runs[1].clone();
    old.model = format!("old/{text}").parse().unwrap();
    earlier.runs.push(old);
    earlier
}

/// Returns the tags of a page without text and attribute values.
fn skeleton(page: &str) -> String {
    let mut tags = String::new();
    let (mut in_tag, mut in_value) = (false, false);
    for c in page.chars() {
        match c {
            '<' if !in_tag => in_tag = true,
            '>' if in_tag && !in_value => {
                in_tag = false;
                tags.push_str(">\n");
            }
            '"' if in_tag => in_value = !in_value,
            _ => {}
        }
        if in_tag && !in_value {
            tags.push(c);
        }
    }
    tags
}

#[test]
fn a_page_shows_all_fields_of_a_report() {
    let page = render_html(&report("Ann & Bob"), Some(&earlier("Ann & Bob"))).unwrap();
    let page = page.replace(STYLE, "…").replace(SCRIPT, "…");
    insta::assert_snapshot!(page);
}

#[test]
fn a_report_without_runs_has_a_page() {
    let mut nothing = report("x");
    nothing.runs.clear();
    nothing.title.clear();
    let page = render_html(&nothing, Some(&nothing)).unwrap();
    assert!(
        page.contains("<h1><bdi>Evaluation</bdi></h1>")
            && page.contains("<li>no runs were executed</li>")
    );
    assert!(!page.contains("<figure"), "{page}");
}

#[test]
fn the_policy_has_the_hashes_of_style_and_script() {
    for (directive, source) in [("style-src", STYLE), ("script-src", SCRIPT)] {
        let hash = STANDARD.encode(Sha256::digest(source));
        assert!(
            POLICY.contains(&format!("{directive} 'sha256-{hash}';")),
            "{directive} must be 'sha256-{hash}'"
        );
        // This text would end the element.
        assert!(!source.contains("</"), "{directive}");
    }
}

#[test]
fn a_page_can_show_two_thousand_runs() {
    let mut large = report("some words of an answer, as they come ".repeat(20).trim());
    let run = large.runs[0].clone();
    large.runs = (0..2_000)
        .map(|at| {
            let mut run = run.clone();
            run.scenario = format!("scenario {}", at / 4);
            run.kind = format!("kind {}", at % 7);
            run.model = format!("acme/{}", at % 4).parse().unwrap();
            run.passed = at % 3 == 0;
            run
        })
        .collect();
    let began = Instant::now();
    let page = render_html(&large, Some(&large)).unwrap();
    let took = began.elapsed();
    assert_eq!(page.matches("<details class=\"run\"").count(), 2_000);
    assert!(page.len() < 40 << 20, "{} bytes", page.len());
    // A quadratic algorithm takes minutes.
    assert!(took.as_secs() < 30, "{took:?}");
}

#[test]
fn the_size_of_a_page_is_limited() {
    let long = "<b>".repeat(30_000);
    let mut large = report(&long);
    large.runs.truncate(1);
    large.runs[0].scenario.clear();
    let run = large.runs[0].clone();
    large.runs = vec![run; 60];
    let page = render_html(&large, None).unwrap();
    assert!(page.contains("The page has reached its maximum size"));
    assert!(
        (64 << 20..72 << 20).contains(&page.len()),
        "{} bytes",
        page.len()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn text_of_a_report_never_becomes_markup(text in hostile()) {
        let tags = |text: &str| skeleton(&render_html(&report(text), Some(&earlier(text))).unwrap());
        prop_assert_eq!(tags(&text), tags("words"));
    }
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("</details>".to_owned()),
        Just("<script>alert(1)</script>".to_owned()),
        Just("\"><img src=x onerror=alert(1)>".to_owned()),
        Just("' onmouseover='x".to_owned()),
        Just("</style></title></textarea><!-- ".to_owned()),
        Just("&lt;b&gt;&#60;".to_owned()),
        Just("\u{202e}\u{0}\u{1b}]8;;x\u{7}".to_owned()),
        any::<String>(),
    ];
    // Names are trimmed.
    prop::collection::vec(piece, 1..5).prop_map(|pieces| format!("a{}z", pieces.concat()))
}

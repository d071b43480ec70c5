//! The planner and the bundled server over stdio, without a key.

use serde_json::{Value, json};

use crate::support::{Place, calls};

/// Asks the bundled server directly.
async fn called_by_hand(place: &Place, tool: &str, input: Value) -> Value {
    let input = input.to_string();
    let args = ["tools", "call", "customer-service", tool, &input];
    let done = place.run(args.into_iter().chain(["-o", "json"])).await;
    assert_eq!(done.code, 0, "{done}");
    done.json()["structured"].clone()
}

#[tokio::test]
async fn the_readme_question_is_answered() {
    let place = Place::new();
    let done = place
        .run(["ask", "What is the account value of customer 42?"])
        .await;
    assert_eq!(done.code, 0, "{done}");
    // The call is shown on standard error.
    assert!(done.stderr.contains("calculate_account_value"), "{done}");
    assert!(done.stderr.contains("offline/planner"), "{done}");
    let truth = called_by_hand(
        &place,
        "calculate_account_value",
        json!({"customer_id": 42}),
    )
    .await;
    let value = truth["account_value"].as_str().unwrap();
    assert!(value.parse::<f64>().unwrap() > 0.0);
    // With or without a thousands separator.
    let answer = done.stdout.replace(',', "");
    assert!(answer.contains(value), "{done}\n{truth}");
}

#[cfg(unix)]
#[tokio::test]
async fn standard_error_is_written_line_by_line() {
    for wants_colours in [false, true] {
        let mut place = Place::new();
        if wants_colours {
            place = place.with_variable("CLICOLOR_FORCE", "1");
        }
        let question = "What is the account value of customer 42?";
        let writes = place.writes_to_stderr(["ask", question]).await;
        // The automatically chosen model, and the call.
        assert!(writes.len() >= 2, "{writes:?}");
        let whole = |write: &String| write.ends_with('\n') && write.trim_end().len() > 5;
        assert!(writes.iter().all(whole), "{writes:?}");
        let coloured = writes.iter().any(|write| write.contains('\x1b'));
        assert_eq!(coloured, wants_colours, "{writes:?}");
    }
}

#[tokio::test]
async fn the_json_report_has_the_documented_form() {
    let report = Place::new()
        .ask("What is the account value of customer 42?")
        .await;
    assert_eq!(
        calls(&report),
        [(
            "customer-service".into(),
            "calculate_account_value".into(),
            json!({"customer_id": 42}),
            false
        )]
    );
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "run_id",
            "session_id",
            "model",
            "answer",
            "content",
            "outcome",
            "finish_reason",
            "steps",
            "usage",
            "tool_calls",
            "warnings",
            "error"
        ]
    );
    let keys: Vec<&String> = report["tool_calls"][0]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(
        keys,
        [
            "id",
            "server",
            "tool",
            "input",
            "is_error",
            "cached",
            "attempts",
            "duration_ms",
            "result"
        ]
    );
    assert_eq!(report["model"], "offline/planner");
    assert_eq!(report["outcome"], "completed");
    assert_eq!(report["error"], Value::Null);
    assert_eq!(report["content"][0]["content"], report["answer"]);
    for count in [
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
    ] {
        assert!(report["usage"].get(count).is_some(), "{count}");
    }
}

#[tokio::test]
async fn events_are_numbered_lines() {
    let done = Place::new()
        .run([
            "ask",
            "-o",
            "jsonl",
            "What is the account value of customer 42?",
        ])
        .await;
    let lines = done.lines();
    let numbers: Vec<u64> = lines
        .iter()
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    let expected: Vec<u64> = (1..).take(lines.len()).collect();
    assert_eq!(numbers, expected);
    assert_eq!(lines[0]["type"], "run_started");
    let last = lines.last().unwrap();
    assert_eq!(last["type"], "run_finished");
    assert_eq!(last["report"]["outcome"], "completed");
    let kinds: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    for kind in [
        "tool_planned",
        "tool_started",
        "tool_finished",
        "text_delta",
    ] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
}

#[tokio::test]
async fn without_tools_the_planner_describes_itself() {
    let done = Place::new()
        .run([
            "ask",
            "--no-tools",
            "-m",
            "offline/planner",
            "What is the meaning of life?",
        ])
        .await;
    assert_eq!(done.code, 0, "{done}");
    assert!(done.stdout.contains("not a language model"), "{done}");
}

#[tokio::test]
async fn a_limit_has_its_own_exit_code() {
    let done = Place::new()
        .run([
            "ask",
            "--max-steps",
            "1",
            "-o",
            "json",
            "What is the account value of customer 42?",
        ])
        .await;
    assert_eq!(done.code, 3, "{done}");
    assert_eq!(done.json()["outcome"], "limited");
    assert_eq!(done.json()["error"]["kind"], "step_limit");
}

#[tokio::test]
async fn without_a_person_a_changing_call_is_denied() {
    for policy in ["ask", "none"] {
        let done = Place::new()
            .run([
                "ask",
                "--approve",
                policy,
                "-o",
                "json",
                "Create a low priority ticket for customer 7 with subject \"test\"",
            ])
            .await;
        let report = done.json();
        let call = &report["tool_calls"][0];
        assert_eq!(call["tool"], "create_support_ticket", "{done}");
        assert_eq!(call["is_error"], json!(true));
        assert_eq!(call["attempts"], 0);
        // Reading is allowed under every policy.
        let args = [
            "ask",
            "--approve",
            policy,
            "-o",
            "json",
            "Account value of customer 7?",
        ];
        let report = Place::new().run(args).await.json();
        assert_eq!(report["tool_calls"][0]["is_error"], false);
    }
}

//! The audit file and log lines of a run.

use serde_json::{Value, json};

use crate::support::Place;

const QUESTION: &str = "What is the account value of customer 42?";

#[tokio::test]
async fn the_audit_contains_every_model_and_tool_call() {
    let place = Place::new().with_file("switchboard.yaml", "audit: kept/audit.jsonl\n");
    for _ in 0..2 {
        place.run(["ask", QUESTION]).await.exits(0);
    }
    let file = place.path().join("kept/audit.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let records: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<String> = records
        .iter()
        .map(|record| {
            let words = [&record["kind"], &record["moment"], &record["end"]];
            let words = words.into_iter().filter_map(Value::as_str);
            words.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let one_run = [
        "run started",
        "model_call answered",
        "tool_call started",
        "tool_call finished",
        "model_call answered",
        "run finished",
    ];
    assert_eq!(kinds, [one_run, one_run].concat());
    assert_ne!(records[0]["run_id"], records[6]["run_id"]);
    let call = &records[3];
    assert_eq!(call["server"], "customer-service");
    assert_eq!(call["tool"], "calculate_account_value");
    assert_eq!(call["input"], json!({"customer_id": 42}));
    assert_eq!(call["is_error"], false);
    assert_eq!(call["attempts"], 1);
    assert_eq!(records[1]["tool_choice_asked"], "auto");
    assert!(!text.contains("account value of"), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn the_log_explains_a_run() {
    let place = Place::new()
        .with_variable("SWITCHBOARD_LOG", "switchboard::run=debug")
        .with_variable("SWITCHBOARD_LOG_FILE", "run.log")
        .with_variable("ACME_API_KEY", "42-is-a-part-of-this-key");
    let done = place.run(["ask", QUESTION]).await.exits(0);
    assert!(!done.stderr.contains("switchboard::run"), "{done}");
    let log = place.read_file("run.log");
    for expected in [
        "model call started",
        r#"\"tool_choice\":\"auto\""#,
        "model call finished",
        r#"\"tool_choice\":{\"outcome\":\"native\"}"#,
        "parts=\"tool call ",
        "tool call started",
        r#"\"server\":\"customer-service\",\"tool\":\"calculate_account_value\""#,
        r#"\"input\":{\"customer_id\":42}"#,
        "run finished",
    ] {
        assert!(log.contains(expected), "{expected} is not in\n{log}");
    }
    assert!(!log.contains(QUESTION), "{log}");
}

#[cfg(not(feature = "otlp"))]
#[tokio::test]
async fn a_collector_needs_the_feature() {
    let config = "otlp_endpoint: http://127.0.0.1:1\n";
    let place = Place::new().with_file("switchboard.yaml", config);
    let done = place.run(["ask", QUESTION]).await.exits(2);
    assert!(done.stderr.contains("feature `otlp`"), "{done}");
}

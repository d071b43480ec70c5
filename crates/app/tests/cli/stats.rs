//! `runs stats`: the sums of the audit log.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::{Done, Place};

/// Runs two questions: one with calls that succeed, are repeated, have invalid input and name an
/// unknown tool, and one that fails.
async fn eventful() -> (Place, FakeModel) {
    let fake = FakeModel::start().await.unwrap();
    let value =
        |id: &str, input: Value| Say::call(id, "customer-service__calculate_account_value", input);
    for answer in [
        Answer::openai_chat([
            value("a", json!({"customer_id": 42})),
            value("b", json!({"customer_id": "x"})),
            Say::call("c", "customer-service__imagined", json!({})),
        ]),
        Answer::openai_chat([value("d", json!({"customer_id": 42}))]),
        Answer::openai_chat([Say::text("Done.")]),
        Answer::json(400, &json!({"error": {"message": "no", "code": "bad"}})),
    ] {
        fake.answer(answer);
    }
    let place = Place::openai(&fake).with_file("switchboard.yaml", "audit: kept.jsonl\n");
    for code in [0, 1] {
        let done = place.run(["ask", "-m", "openai/gpt-4o-mini", "Hi"]).await;
        assert_eq!(done.code, code, "{done}");
    }
    (place, fake)
}

async fn stats(place: &Place, options: &[&str]) -> Done {
    place.run(["runs", "stats"].iter().chain(options)).await
}

#[tokio::test]
async fn statistics_are_computed_from_the_audit() {
    let (place, _fake) = eventful().await;
    let done = stats(&place, &["-o", "json"]).await.exits(0);
    let report = done.json();
    assert_eq!(
        report["runs"],
        json!({"started": 2, "completed": 1, "limited": 0, "failed": 1, "cancelled": 0,
               "waiting": 0, "unfinished": 0})
    );
    let tools = report["tools"].as_array().unwrap();
    assert_eq!(tools[0]["tool"], "(unknown)");
    assert_eq!(tools[0]["calls"]["hallucinated"], 1);
    let tool = &tools[1];
    assert_eq!(tool["server"], "customer-service");
    assert_eq!(tool["tool"], "calculate_account_value");
    let counts = [
        ("total", 3),
        ("successful", 2),
        ("failed", 0),
        ("hallucinated", 1),
        ("not_executed", 0),
        ("unnecessary", 1),
    ];
    for (name, expected) in counts {
        assert_eq!(tool["calls"][name], expected, "{name}: {report:#}");
    }
    let accuracy = tool["calls"]["accuracy"].as_f64().unwrap();
    assert!((accuracy - 1.0 / 3.0).abs() < 1e-9, "{accuracy}");
    assert!(tool["latency"]["p95_ms"].is_u64(), "{report:#}");
    let model = &report["models"][0];
    assert_eq!(model["model"], "openai/gpt-4o-mini");
    assert_eq!(model["requests"]["total"], 4);
    assert_eq!(model["requests"]["failed"], 1);
    assert_eq!(model["tool_calls"]["total"], 4);
    assert!(model["tokens"]["input"].as_u64().unwrap() > 0);
    assert!(model["cost_usd"].as_f64().unwrap() > 0.0, "{report:#}");

    let table = stats(&place, &[]).await.exits(0);
    assert!(
        table.stdout.starts_with("runs: 1 completed, 1 failed ("),
        "{table}"
    );
    for shown in [
        "customer-service / calculate_account_value",
        "(unknown)",
        "openai/gpt-4o-mini",
        "accuracy",
        "33%",
    ] {
        assert!(table.stdout.contains(shown), "{shown}: {table}");
    }
}

#[tokio::test]
async fn unknown_statistics_are_marked() {
    let (place, _fake) = eventful().await;
    let file = place.path().join("kept.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    // The file ends as after a kill during a tool call, within its next line.
    let lines: Vec<&str> = whole.lines().collect();
    let left = lines.iter().position(|line| {
        line.contains("\"kind\":\"tool_call\"") && line.contains("\"moment\":\"started\"")
    });
    let cut = lines[..=left.unwrap()].join("\n");
    let torn = format!("{cut}\n{{\"time\":\"2026");
    std::fs::write(place.path().join("torn.jsonl"), torn).unwrap();
    let done = stats(&place, &["torn.jsonl"]).await.exits(0);
    assert!(done.stdout.contains("1 unfinished"), "{done}");
    done.stderr_contains("unfinished tool calls, not counted: 1");
    done.stderr_contains("not audit records of this version");
    let report = stats(&place, &["torn.jsonl", "-o", "json"]).await.json();
    assert_eq!(report["unfinished_calls"], 1);
    assert_eq!(report["unreadable_lines"], 1);
}

#[tokio::test]
async fn statistics_are_filtered() {
    let (place, _fake) = eventful().await;
    let later = stats(&place, &["--since", "2999-01-01", "-o", "json"]).await;
    assert_eq!(later.json()["records"], 0, "{later}");
    let all = stats(&place, &["--since", "1h", "-o", "json"]).await.json();
    assert_eq!(all["runs"]["started"], 2);
    let twice = stats(&place, &["kept.jsonl", "kept.jsonl", "-o", "json"]).await;
    assert_eq!(twice.json()["runs"]["started"], 4);
    let wrong = stats(&place, &["--since", "yesterday"]).await.exits(2);
    assert!(wrong.stderr.contains("12h"), "{wrong}");
}

#[tokio::test]
async fn records_in_the_session_store_and_in_a_file_are_counted_once() {
    let place = Place::new();
    place.run_with_input(["chat"], "Hi\n").await.exits(0);
    let stored = stats(&place, &["-o", "json"]).await.json();
    assert_eq!(
        (&stored["runs"]["completed"], &stored["files"]),
        (&json!(1), &json!([]))
    );
    // One run is in the store and in the file, and the other one is only in the file.
    let place = place.with_variable("SWITCHBOARD_AUDIT", "kept.jsonl");
    place.run(["ask", "--session", "s", "Hi"]).await.exits(0);
    place.run(["ask", "Hi"]).await.exits(0);
    let both = stats(&place, &["-o", "json"]).await.json();
    assert_eq!(both["runs"]["completed"], 3, "{both}");
    assert_eq!(both["records"], 3 * stored["records"].as_u64().unwrap());
}

#[tokio::test]
async fn a_missing_audit_is_explained() {
    let place = Place::new();
    let none = stats(&place, &[]).await;
    assert_eq!((none.code, none.stdout.as_str()), (0, ""), "{none}");
    assert!(none.stderr.contains("no audit records found"), "{none}");
    assert_eq!(stats(&place, &["-o", "json"]).await.json()["records"], 0);
    let missing = stats(&place, &["nothing.jsonl"]).await.exits(2);
    assert!(missing.stderr.contains("file not found"), "{missing}");
    let off = Place::new().with_file("switchboard.yaml", "audit: false\n");
    let off = stats(&off, &[]).await.exits(2);
    assert!(off.stderr.contains("the audit is disabled"), "{off}");
}

//! Judging of replayed calls whose arguments contain redacted secrets.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::Place;

const MODEL: &str = "openai/gpt-4o-mini";

fn suite() -> String {
    let text = json!({"type": "string"});
    let log_in = json!({
        "name": "log_in",
        "input_schema": {
            "type": "object",
            "properties": {"user": text, "password": text, "pin": {"type": "integer"}},
            "required": ["user"],
        },
    });
    let expects = |input: Value| json!([{"tool": "log_in", "input": input}]);
    json!({
        "thresholds": {"passed": 1.0},
        "scenarios": [{"name": "Logs in", "tools": [log_in], "turns": [
            {"say": "As ada", "calls": expects(json!({"user": "ada", "password": "tulip"}))},
            {"say": "With the pin", "calls": expects(json!({"user": "ada", "pin": 4711}))},
            {"say": "As bob", "calls": expects(json!({"user": "bob"}))},
        ]}],
    })
    .to_string()
}

#[tokio::test]
async fn redacted_values_are_neither_right_nor_wrong() {
    let fake = FakeModel::start().await.unwrap();
    for input in [
        json!({"user": "ada", "password": "tulip"}),
        json!({"user": "ada", "pin": 4711, "password": "tulip"}),
        json!({"user": "bob", "password": "rose"}),
    ] {
        fake.answer(Answer::openai_chat([Say::call("a", "log_in", input)]));
        fake.answer(Answer::openai_chat([Say::text("Done.")]));
    }
    let place = Place::new()
        .with_variable("OPENAI_API_KEY", "sk-proj-0123456789abcdefghij")
        .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()))
        .with_file("login.json", &suite());
    let record = ["eval", "login.json", "-m", MODEL, "--record", "run.jsonl"];
    let done = place
        .run([&record[..], &["-q", "-o", "json"]].concat())
        .await;
    assert_eq!(done.code, 0, "{done}");
    let counts = |report: &Value| report["summary"][0]["counts"].clone();
    let live = counts(&done.json());
    assert_eq!((&live["right"], &live["judged"]), (&json!(3), &json!(3)));
    assert!(live.get("unknown").is_none(), "{live}");
    let recorded = std::fs::read_to_string(place.path().join("run.jsonl")).unwrap();
    assert!(!recorded.contains("tulip"), "{recorded}");
    let other = Place::new()
        .with_file("login.json", &suite())
        .with_file("run.jsonl", &recorded);
    let replay = ["eval", "login.json", "--replay", "run.jsonl", "-q"];
    let done = other.run([&replay[..], &["-o", "json"]].concat()).await;
    assert_eq!(done.code, 0, "{done}");
    let report = done.json();
    let again = counts(&report);
    // The password of the first call is unknown; the others have no expectation of it.
    assert_eq!(again["unknown"], json!(1), "{again}");
    assert_eq!((&again["right"], &again["judged"]), (&json!(2), &json!(2)));
    let summary = &report["summary"][0];
    let passed = (&summary["passed"], &summary["passed_unknown"]);
    assert_eq!(passed, (&json!(1), &json!(1)), "{summary}");
    let call = &report["runs"][0]["turns"][0]["calls"][0];
    assert_eq!(call["verdict"], json!("unknown"), "{call}");
    assert_eq!(
        call["reason"],
        json!("`password` was redacted in the recording")
    );
    let done = other.run(replay).await;
    assert!(done.stdout.contains("1 (1 not known)"), "{done}");
    assert!(
        done.stdout
            .contains("not known: 1 call with redacted arguments"),
        "{done}"
    );
}

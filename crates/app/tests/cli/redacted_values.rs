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

/// Errors in the remaining arguments of a call are found in the replay too.
#[tokio::test]
async fn a_redacted_value_does_not_hide_other_errors() {
    const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let text = json!({"type": "string"});
    let log_in = json!({
        "name": "log_in",
        "input_schema": {
            "type": "object",
            "properties": {
                "user": text, "password": text, "pin": {"type": "integer"}, "note": text,
                "age": {"type": "integer"},
            },
            "required": ["user"],
        },
    });
    let note = |note: &str| json!({"user": "ada", "note": note});
    let between = json!({"user": "ada", "note": {"$between": [1, 5]}});
    let turns = [
        (
            json!({"user": "ada", "pin": "not a number at all", "password": "x"}),
            json!({"user": "ada"}),
            "hallucinated",
        ),
        (
            note(&format!("completely wrong text token={TOKEN} end")),
            note("Berlin"),
            "wrong_input",
        ),
        (note(&format!("x {TOKEN} y")), between, "wrong_input"),
        // The model wrote the placeholder.
        (note("[redacted]"), note("Berlin"), "wrong_input"),
        // The loop repairs the quoted number, also beside a redacted value.
        (
            json!({"user": "ada", "pin": 4711, "age": "44", "password": "x"}),
            json!({"user": "ada", "age": 44}),
            "right",
        ),
        (
            json!({"user": "ada", "pin": 4711, "age": "45"}),
            json!({"user": "ada", "age": 44}),
            "wrong_input",
        ),
        // The redacted value may have been the other one, so the verdict is unknown.
        (note(TOKEN), note(&TOKEN.replace('z', "y")), "unknown"),
    ];
    let fake = FakeModel::start().await.unwrap();
    let mut said = Vec::new();
    for (at, (input, expected, _)) in turns.iter().enumerate() {
        let id = format!("call-{at}");
        fake.answer(Answer::openai_chat([Say::call(
            &id,
            "log_in",
            input.clone(),
        )]));
        fake.answer(Answer::openai_chat([Say::text("Done.")]));
        let calls = json!([{"tool": "log_in", "input": expected}]);
        said.push(json!({"say": format!("Turn {at}"), "calls": calls}));
    }
    let suite = json!({"scenarios": [{"name": "Logs in", "tools": [log_in], "turns": said}]});
    let place = Place::new()
        .with_variable("OPENAI_API_KEY", "sk-proj-0123456789abcdefghij")
        .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()))
        .with_file("login.json", &suite.to_string());
    let worths = |report: &Value| {
        let turns = report["runs"][0]["turns"].as_array().unwrap().clone();
        let verdict = |turn: &Value| turn["calls"][0]["verdict"].as_str().unwrap().to_owned();
        turns.iter().map(verdict).collect::<Vec<_>>()
    };
    let record = [
        "eval",
        "login.json",
        "-m",
        MODEL,
        "--record",
        "run.jsonl",
        "-q",
        "-o",
        "json",
    ];
    let live = worths(&place.run(record).await.json());
    let replay = [
        "eval",
        "login.json",
        "--replay",
        "run.jsonl",
        "-q",
        "-o",
        "json",
    ];
    let again = worths(&place.run(replay).await.json());
    let expected: Vec<&str> = turns.iter().map(|(_, _, verdict)| *verdict).collect();
    let written = std::fs::read_to_string(place.path().join("run.jsonl")).unwrap();
    assert!(!written.contains(TOKEN), "{written}");
    assert_eq!(again, expected, "{written}");
    assert_eq!(live[..6], again[..6]);
    assert_eq!(live[6], "wrong_input");
}

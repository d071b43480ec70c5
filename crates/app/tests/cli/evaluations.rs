//! The reports in `docs/evaluations` match the program.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::support::Place;

fn stored(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/evaluations")
        .join(file)
}

/// Removes the parts that differ between runs: program, time, durations, and the
/// servers that became ready.
fn lasting(report: &str) -> Value {
    fn forget(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| !name.ends_with("_ms"));
                fields.values_mut().for_each(forget);
            }
            Value::Array(items) => {
                items.retain(|item| item["kind"] != "server_changed");
                items.iter_mut().for_each(forget);
            }
            _ => {}
        }
    }
    let mut report: Value = serde_json::from_str(report).unwrap();
    let fields = report.as_object_mut().unwrap();
    assert!(fields.remove("created_at").is_some());
    assert!(fields.remove("program").is_some());
    forget(&mut report);
    report
}

/// Runs the ten scenarios and compares the result with the committed report of this name.
async fn gives(name: &str, args: &[&str]) {
    let place = Place::new();
    let run = ["eval", "ten-scenarios", "--json", "report.json", "-q"];
    let done = place.run([&run, args].concat()).await;
    // The run may miss some thresholds.
    assert_eq!(done.code, 1, "{done}");
    let now = lasting(&fs::read_to_string(place.path().join("report.json")).unwrap());
    let then = lasting(&fs::read_to_string(stored(&format!("{name}.json"))).unwrap());
    let (runs, before) = (now["runs"].as_array(), then["runs"].as_array());
    for (now, then) in runs.unwrap().iter().zip(before.unwrap()) {
        assert_eq!(
            now, then,
            "docs/evaluations/README.md says how {name}.json is made"
        );
    }
    assert_eq!(now, then);
}

#[tokio::test]
async fn the_committed_report_of_the_planner_is_current() {
    gives("planner", &["--model", "offline/planner"]).await;
}

/// Replays in recorded order: a description or the prompt may have changed since, and the model's
/// recorded answers are judged.
#[tokio::test]
async fn the_committed_report_of_the_local_model_is_replayed() {
    let recording = stored("qwen2.5-coder-1.5b.jsonl");
    let recording = recording.to_str().unwrap();
    let args = ["--replay", recording, "--match", "order"];
    gives("qwen2.5-coder-1.5b", &args).await;
}

#[test]
fn the_committed_page_matches_its_report() {
    for name in ["planner"] {
        let page = fs::read_to_string(stored(&format!("{name}.html"))).unwrap();
        let report: Value =
            serde_json::from_str(&fs::read_to_string(stored(&format!("{name}.json"))).unwrap())
                .unwrap();
        assert!(
            page.contains(report["created_at"].as_str().unwrap()),
            "{name}"
        );
        for run in report["runs"].as_array().unwrap() {
            let scenario = run["scenario"].as_str().unwrap();
            assert!(page.contains(scenario), "{name}: {scenario}");
        }
    }
}

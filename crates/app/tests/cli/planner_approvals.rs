//! Calls of the offline planner to tools that are not read-only: they need a person's approval.

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::{stdio_server, support::Place};

/// A variable that makes this program the server.
const SERVER: &str = "SWITCHBOARD_TEST_OFFICE";
/// The file that a call of `delete_customer` writes.
const DELETED: &str = "deleted";

/// Serves `delete_customer`.
pub(crate) fn serve_stdio() {
    stdio_server::serve(SERVER, |message| {
        let result = match message["method"].as_str().unwrap_or_default() {
            "tools/list" => Some(tools()),
            "tools/call" => {
                std::fs::write(DELETED, message["params"]["arguments"].to_string()).unwrap();
                Some(json!({"content": [{"type": "text", "text": "It is done."}]}))
            }
            _ => None,
        };
        stdio_server::respond(&message, &json!({"tools": {}}), result)
    });
}

fn tools() -> Value {
    let delete = json!({
        "name": "delete_customer",
        "description": "Deletes a customer.",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string", "description": "Name of the customer"}},
            "required": ["name"],
        },
    });
    json!({"tools": [delete]})
}

/// Returns a working folder with the server and these configuration keys.
fn place(keys: &Value) -> Place {
    let office = stdio_server::entry(&json!({SERVER: "1"}));
    let mut config = json!({"mcp_servers": {"office": office}});
    for (key, value) in keys.as_object().unwrap() {
        config[key] = value.clone();
    }
    Place::new().with_file("switchboard.json", &config.to_string())
}

fn has_deleted(place: &Place) -> bool {
    place.path().join(DELETED).exists()
}

/// Sentences that are not requests to act now, and one that is.
const SENTENCES: [&str; 4] = [
    "Delete Bob tomorrow",
    "Delete Bob if he does not pay",
    "I wish somebody could delete Bob",
    "Delete Bob",
];

#[tokio::test]
async fn the_planner_never_deletes_without_approval() {
    let ask = |sentence: &'static str| async move {
        let place = place(&json!({}));
        let done = place.run(["ask", "-o", "json", sentence]).await;
        assert_eq!(done.code, 0, "{sentence}: {done}");
        assert!(!has_deleted(&place), "{sentence}: {done}");
        let report = done.json();
        let mut calls = report["tool_calls"].as_array().unwrap().iter();
        let is_open = calls.any(|call| call["failure"] == "not_approved");
        assert_eq!(
            is_open,
            done.stderr
                .contains("Allow such calls with `--approve all`"),
            "{sentence}: {done}"
        );
        usize::from(is_open)
    };
    let asked = stream::iter(SENTENCES).map(ask).buffer_unordered(4);
    let open: Vec<usize> = asked.collect().await;
    // At least one sentence must cause a call. Otherwise this test checks nothing.
    assert!(open.iter().sum::<usize>() > 0, "{open:?}");
}

#[tokio::test]
async fn only_a_person_approves_planner_calls() {
    let recipe = json!({"name": "careless", "policy": {"requires_approval": false}}).to_string();
    let rules = json!({"rules": [{"server": "office", "verdict": "allow"}]});
    let question = "Delete Bob";
    let with_keys = |keys: Value| place(&keys).with_file("careless.json", &recipe);
    for (keys, variable, options) in [
        (json!({"approve": "all"}), None, vec![]),
        (json!({"approve": "all", "approvals": rules}), None, vec![]),
        (json!({}), Some("all"), vec![]),
        (json!({}), None, vec!["--recipe", "careless.json"]),
    ] {
        let mut place = with_keys(keys.clone());
        if let Some(value) = variable {
            place = place.with_variable("SWITCHBOARD_APPROVE", value);
        }
        let args = ["ask"].into_iter().chain(options).chain([question]);
        let done = place.run(args).await;
        assert_eq!(done.code, 0, "{keys}: {done}");
        assert!(!has_deleted(&place), "{keys}: {done}");
        let message = "not run, because no terminal is available to approve them: \
                       `delete_customer`. Allow such calls with `--approve all`";
        assert!(done.stderr.contains(message), "{keys}: {done}");

        let done = place.run(["ask", "--approve", "all", question]).await;
        assert_eq!(done.code, 0, "{keys}: {done}");
        assert!(has_deleted(&place), "{keys}: {done}");
    }
}

#[tokio::test]
async fn a_planner_call_is_stored_and_decided_later() {
    for (decision, expected) in [("--allow", true), ("--deny", false)] {
        let place = place(&json!({}));
        let done = place.run(["ask", "--approve", "later", "Delete Bob"]).await;
        assert_eq!(done.code, 4, "{done}");
        assert!(!has_deleted(&place), "{done}");
        let runs = place.run(["runs", "-o", "json"]).await.json();
        let id = runs[0]["run_id"].as_str().unwrap();
        let mut args = vec!["runs", "resume", id, decision];
        args.extend((!expected).then_some("no"));
        let done = place.run(args).await.exits(0);
        assert_eq!(has_deleted(&place), expected, "{done}");
    }
}

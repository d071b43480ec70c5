//! Calls of the offline planner to tools that are not read-only: they need a person's approval.

use std::io::{BufRead as _, Write as _};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::support::{Done, Place, calls};

/// Set where this program is to be the server: how many meters it has.
const SERVER: &str = "SWITCHBOARD_TEST_OFFICE";
/// The file that a call of `delete_customer` writes.
const DELETED: &str = "deleted";

/// Serves `delete_customer`, `get_weather` and some meters to read.
pub(crate) fn serve_stdio() {
    let Ok(count) = std::env::var(SERVER) else {
        return;
    };
    let count: usize = count.parse().unwrap();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let Some(id) = message.get("id") else {
            continue;
        };
        let params = &message["params"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": params["protocolVersion"],
                "serverInfo": {"name": "office", "version": "1"},
                "capabilities": {"tools": {}},
            }),
            "tools/list" => tools(count),
            "tools/call" => {
                if params["name"] == "delete_customer" {
                    std::fs::write(DELETED, params["arguments"].to_string()).unwrap();
                }
                json!({"content": [{"type": "text", "text": "It is done."}]})
            }
            _ => Value::Null,
        };
        let mut answer = json!({"jsonrpc": "2.0", "id": id});
        if result.is_null() {
            answer["error"] = json!({"code": -32601, "message": "Method not found"});
        } else {
            answer["result"] = result;
        }
        let mut out = std::io::stdout();
        writeln!(out, "{answer}").unwrap();
        out.flush().unwrap();
    }
}

fn tools(count: usize) -> Value {
    let delete = json!({
        "name": "delete_customer",
        "description": "Deletes a customer.",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string", "description": "Name of the customer"}},
            "required": ["name"],
        },
    });
    let weather = json!({
        "name": "get_weather",
        "description": "Tells the weather in a city.",
        "inputSchema": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "The city"}},
            "required": ["city"],
        },
        "annotations": {"readOnlyHint": true},
    });
    let read = |n: usize| {
        json!({
            "name": format!("read_meter_{n}"),
            "description": format!("Reads the meter number {n}."),
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true},
        })
    };
    let tools: Vec<Value> = [delete, weather]
        .into_iter()
        .chain((0..count).map(read))
        .collect();
    json!({"tools": tools})
}

/// Returns a working folder with the server and these configuration keys.
fn place(count: usize, keys: &Value) -> Place {
    let mut config = json!({"mcp_servers": {"office": {
        "command": std::env::current_exe().unwrap(),
        "args": ["--exact", "server", "--ignored", "--nocapture"],
        "env": {SERVER: count.to_string()},
    }}});
    for (key, value) in keys.as_object().unwrap() {
        config[key] = value.clone();
    }
    Place::new().with_file("switchboard.json", &config.to_string())
}

fn has_deleted(place: &Place) -> bool {
    place.path().join(DELETED).exists()
}

/// Sentences that are not requests to act now. The planner treats about half of them as
/// requests.
const SENTENCES: [&str; 26] = [
    "Delete Bob tomorrow",
    concat!("TO", "DO: delete Bob"),
    "I wish somebody could delete Bob",
    "Delete Bob next week",
    "Delete Bob at noon",
    "Delete Bob on Monday",
    "Delete Bob if he does not pay",
    "Delete Bob, or so they say",
    "Delete Bob one day",
    "Bob asked me to delete Bob",
    "Maybe delete Bob",
    "Delete Bob? Never!",
    "Imagine we delete Bob",
    "Let us delete Bob some time",
    "To do: delete Bob",
    "Plan: delete Bob",
    "Delete Bob once the audit is over",
    "In case of fraud delete Bob",
    "It would be nice to delete Bob",
    "Delete Bob in your dreams",
    "Soon delete Bob",
    "Delete Bob after lunch",
    "Delete Bob later",
    "Next year delete Bob",
    "Delete Bob, said Alice",
    "Delete Bob",
];

#[tokio::test]
async fn the_planner_never_deletes_without_approval() {
    let ask = |sentence: &'static str| async move {
        let place = place(0, &json!({}));
        let done = place.run(["ask", "-o", "json", sentence]).await;
        assert_eq!(done.code, 0, "{sentence}: {done}");
        assert!(!has_deleted(&place), "{sentence}: {done}");
        let report = done.json();
        let mut calls = report["tool_calls"].as_array().unwrap().iter();
        let is_open = calls.any(|call| call["failure"] == "not_approved");
        assert_eq!(
            is_open,
            done.stderr.contains("allow it with `--approve all`"),
            "{sentence}: {done}"
        );
        usize::from(is_open)
    };
    let asked = stream::iter(SENTENCES).map(ask).buffer_unordered(4);
    let open: Vec<usize> = asked.collect().await;
    // Otherwise this test checks nothing.
    assert!(open.iter().sum::<usize>() >= 10, "{open:?}");
}

#[tokio::test]
async fn only_a_person_approves_planner_calls() {
    let recipe = json!({"name": "careless", "policy": {"requires_approval": false}}).to_string();
    let rules = json!({"rules": [{"server": "office", "verdict": "allow"}]});
    let question = "Delete Bob";
    let place = |keys: Value| place(0, &keys).with_file("careless.json", &recipe);
    for (keys, variable, options) in [
        (json!({"approve": "all"}), None, vec![]),
        (json!({"approve": "all", "approvals": rules}), None, vec![]),
        (json!({}), Some("all"), vec![]),
        (json!({}), None, vec!["--recipe", "careless.json"]),
    ] {
        let mut place = place(keys.clone());
        if let Some(value) = variable {
            place = place.with_variable("SWITCHBOARD_APPROVE", value);
        }
        let args = ["ask"].into_iter().chain(options).chain([question]);
        let done = place.run(args).await;
        assert_eq!(done.code, 0, "{keys}: {done}");
        assert!(!has_deleted(&place), "{keys}: {done}");
        let message = "`delete_customer` was not run: nobody is there to approve it; allow it with \
                       `--approve all`";
        assert!(done.stderr.contains(message), "{keys}: {done}");

        let done = place.run(["ask", "--approve", "all", question]).await;
        assert_eq!(done.code, 0, "{keys}: {done}");
        assert!(has_deleted(&place), "{keys}: {done}");
    }
}

#[tokio::test]
async fn a_planner_call_is_stored_and_decided_later() {
    for (decision, expected) in [("--allow", true), ("--deny", false)] {
        let place = place(0, &json!({}));
        let done = place.run(["ask", "--approve", "later", "Delete Bob"]).await;
        assert_eq!(done.code, 4, "{done}");
        assert!(!has_deleted(&place), "{done}");
        let runs = place.run(["runs", "-o", "json"]).await.json();
        let id = runs[0]["run_id"].as_str().unwrap();
        let mut args = vec!["runs", "resume", id, decision];
        args.extend((!expected).then_some("no"));
        let done = place.run(args).await;
        assert_eq!(done.code, 0, "{done}");
        assert_eq!(has_deleted(&place), expected, "{done}");
    }
}

#[tokio::test]
async fn the_planner_changes_no_data_of_the_bundled_server() {
    let ticket = "Create a low priority ticket for customer 7 with subject \"test\"";
    let place = Place::new();
    for (options, failure) in [
        (vec![], json!("not_approved")),
        (vec!["--approve", "none"], json!("denied")),
        (vec!["--approve", "all"], Value::Null),
    ] {
        let args = ["ask", "-o", "json"]
            .into_iter()
            .chain(options)
            .chain([ticket]);
        let done: Done = place.run(args).await;
        assert_eq!(done.code, 0, "{done}");
        assert_eq!(done.json()["tool_calls"][0]["failure"], failure, "{done}");
    }
}

#[tokio::test]
async fn the_planner_finds_its_tool_among_sixty() {
    let place = place(60, &json!({}));
    for (question, tool, input) in [
        ("Use read_meter_47", "read_meter_47", json!({})),
        (
            "What is the weather in Oslo?",
            "get_weather",
            json!({"city": "Oslo"}),
        ),
    ] {
        let report = place.ask(question).await;
        let expected = ("office".into(), tool.into(), input, false);
        assert_eq!(calls(&report), [expected], "{report}");
    }
    let done = place.run(["ask", "--approve", "all", "Delete Bob"]).await;
    assert_eq!(done.code, 0, "{done}");
    assert!(has_deleted(&place), "{done}");
}

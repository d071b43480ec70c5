//! Approval rules and guards that match no server or tool.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::{library::over_stdio, support::Place};

const WRONG: [&str; 4] = [
    "`approvals.rules`: a rule with verdict `deny` names server `libary`, but no configured \
     server has this name (did you mean `library`?)",
    "`approvals.rules`: a rule with verdict `ask` names tool `lent`, but no tool of server \
     `library` has this name (did you mean `lend`?)",
    "`approvals.rules`: a rule with verdict `deny` names tool `erase_*`, but no tool has this name",
    "`guards`: a guard names tool `library__led`, but no tool has this name (did you mean \
     `library__lend`?)",
];

/// Returns a working folder with these rules. With `broken`, one server does not start.
fn place(rules: &Value, guards: &Value, broken: bool) -> Place {
    let mut config = json!({
        "mcp_servers": {"library": over_stdio("Lends.")},
        "approvals": {"rules": rules},
        "guards": guards,
    });
    if broken {
        config["mcp_servers"]["absent"] = json!({"command": "no-such-program"});
    }
    Place::new().with_file("switchboard.json", &config.to_string())
}

fn wrong() -> Place {
    let rules = json!([
        {"server": "libary", "verdict": "deny"},
        {"server": "library", "tool": ["lend", "lent"], "verdict": "ask"},
        {"tool": "erase_*", "verdict": "deny"},
    ]);
    let guards = json!([{"tool": "library__led", "when": "error"}]);
    place(&rules, &guards, false)
}

#[tokio::test]
async fn doctor_reports_rules_that_match_nothing_as_errors() {
    let place = wrong();
    let done = place.run(["doctor", "--no-network", "-o", "json"]).await;
    assert_eq!(done.code, 1, "{done}");
    let findings = done.json();
    let findings = findings.as_array().unwrap();
    let of_rules = findings.iter().filter(|it| it["about"] == "rule");
    let of_rules: Vec<&Value> = of_rules.collect();
    assert_eq!(of_rules.len(), WRONG.len(), "{done}");
    for (finding, wrong) in of_rules.into_iter().zip(WRONG) {
        assert_eq!(finding["state"], "bad", "{finding}");
        let what = finding["what"].as_str().unwrap();
        assert!(what.starts_with(wrong), "{what}");
    }
}

#[tokio::test]
async fn ask_and_chat_warn_of_rules_that_match_nothing() {
    let place = wrong().with_variable("SWITCHBOARD_LOG_FILE", "log");
    let asked = place.run(["ask", "Hello"]).await;
    let talked = place.run_with_input(["chat"], "/quit\n").await;
    let log = place.read_file("log");
    for wrong in WRONG {
        for done in [&asked, &talked] {
            assert_eq!(done.code, 0, "{done}");
            assert!(done.stderr.contains(&format!("warning: {wrong}")), "{done}");
        }
        assert_eq!(log.matches(wrong).count(), 2, "{log}");
    }
    let done = place.run(["ask", "--no-tools", "Hello"]).await;
    assert!(!done.stderr.contains("warning"), "{done}");
}

#[tokio::test]
async fn serve_warns_of_rules_that_match_nothing() {
    let place = wrong();
    let mut child = place.start(["serve", "--bind", "127.0.0.1:0"]);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut missing = WRONG.to_vec();
    while !missing.is_empty() {
        // The stream ends with the process. Then `unwrap` fails the test.
        let line = lines.next_line().await.unwrap().unwrap();
        missing.retain(|wrong| !line.starts_with(&format!("warning: {wrong}")));
    }
    child.kill().await.unwrap();
}

#[tokio::test]
async fn rules_that_match_or_may_match_are_not_reported() {
    let rules = json!([
        {"server": "lib*", "tool": "l?nd", "verdict": "deny"},
        {"tool": ["lend", "library__*"], "verdict": "ask"},
        // A rule may name any tool of a server that did not start, because its tools are unknown.
        {"server": "absent", "tool": "erase", "verdict": "deny"},
        {"server": "absent", "verdict": "deny"},
        {"tool": "erase", "verdict": "deny"},
        {"destructive": true, "verdict": "ask"},
    ]);
    let guards = json!([
        {"tool": "library__lend", "when": "error"},
        {"tool": "absent__check", "when": "error"},
    ]);
    let place = place(&rules, &guards, true);
    let done = place.run(["ask", "Hello"]).await.exits(0);
    assert!(!done.stderr.contains("has this name"), "{done}");
    let done = place.run(["doctor", "--no-network"]).await;
    assert!(!done.stdout.contains("has this name"), "{done}");
    assert!(done.stdout.contains("absent: failed"), "{done}");
}

//! Questions that were written down before any rule was tuned, and that no rule is tuned for. They
//! tell how the planner does with what it has not seen: 14 of 15 with the servers that the first
//! rules were made with, 5 of 5 with two servers that these rules had not seen (later rules were
//! tried on other questions of theirs). The floor is below that, so that a row may be lost to a
//! better rule, and nobody is tempted to mend the row.

#![allow(
    clippy::expect_used,
    reason = "a fixture that cannot be read is a failed test"
)]

mod support;

use serde::Deserialize;
use serde_json::Value;
use support::{first, tools};

#[derive(Deserialize)]
struct Row {
    question: String,
    tool: Option<String>,
    input: Option<Value>,
}

fn hits(rows: &str, servers: &str) -> (usize, usize, Vec<String>) {
    let rows: Vec<Row> = serde_json::from_str(rows).expect("rows");
    let tools = tools(servers);
    let mut missed = Vec::new();
    for row in &rows {
        let (calls, text) = first(&row.question, &tools);
        let hit = match (&row.tool, &row.input, calls.as_slice()) {
            (None, _, []) => true,
            (Some(tool), Some(input), [(name, given)]) => tool == name && input == given,
            _ => false,
        };
        if !hit {
            missed.push(format!(
                "{}\n  wanted {:?} {:?}\n  got {calls:?} {text}",
                row.question, row.tool, row.input
            ));
        }
    }
    (rows.len() - missed.len(), rows.len(), missed)
}

const KNOWN: &str = "customer_service everything filesystem time";

#[test]
fn questions_of_servers_that_the_first_rules_were_made_with() {
    let (hit, all, missed) = hits(include_str!("fixtures/held_out.json"), KNOWN);
    println!("{hit} of {all}\n{}", missed.join("\n"));
    assert!(hit >= 12, "{hit} of {all}:\n{}", missed.join("\n"));
}

#[test]
fn questions_of_servers_that_the_first_rules_had_not_seen() {
    let (hit, all, missed) = hits(
        include_str!("fixtures/held_out_unseen_servers.json"),
        "git memory",
    );
    println!("{hit} of {all}\n{}", missed.join("\n"));
    assert!(hit >= 4, "{hit} of {all}:\n{}", missed.join("\n"));
}

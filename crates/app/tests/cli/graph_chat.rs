//! The recipe `graph-chat` and its servers, without network.

use serde_json::json;

use crate::support::{Done, Place, calls, program};

const QUESTION: &str = "Find genes connected to MPO";
/// A loopback address on which nothing listens.
const UNREACHABLE: &str = "http://127.0.0.1:1";

fn place() -> Place {
    Place::new()
        .with_variable("SWITCHBOARD_BTE_URL", UNREACHABLE)
        .with_variable("SWITCHBOARD_NAME_RESOLVER_URL", UNREACHABLE)
}

async fn ask(place: &Place, options: &[&str], question: &str) -> Done {
    let ask = [
        "ask",
        "--recipe",
        "graph-chat",
        "--session",
        "s1",
        "-o",
        "json",
    ];
    place
        .run(ask.iter().chain(options).chain(&[question]))
        .await
}

/// The state of the conversation's graph, as text.
async fn graph_state(place: &Place) -> String {
    let done = ask(place, &[], "What is the state of the graph?").await;
    let report = done.json();
    assert_eq!(calls(&report)[0].1, "get_graph_state", "{done}");
    report["answer"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn with_approval_found_nodes_are_named_and_added_to_the_graph() {
    let place = place();
    let done = ask(&place, &["--approve", "all"], QUESTION).await.exits(0);
    let report = done.json();
    let made: Vec<_> = calls(&report);
    let made: Vec<_> = made
        .iter()
        .map(|call| (&*call.0, &*call.1, call.3))
        .collect();
    let expected = [
        ("bte", "lookup_name", false),
        ("bte", "query_bte_by_categories", false),
    ];
    assert_eq!(made, expected, "{done}");
    let input = json!({"entityId": "NCBIGene:4353", "categories": ["biolink:Gene"]});
    assert_eq!(calls(&report)[1].2, input);
    let answer = report["answer"].as_str().unwrap();
    assert!(
        answer.starts_with("These are bundled sample data"),
        "{answer}"
    );
    for part in [
        "CP (NCBIGene:1356)",
        "ALB (NCBIGene:213)",
        "Added to the graph",
        "10 nodes",
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let state = graph_state(&place).await;
    assert!(
        state.contains("NCBIGene:1356") && state.contains("interacts_with"),
        "{state}"
    );
}

#[tokio::test]
async fn other_kinds_of_things_are_found_too() {
    let question = "Find diseases connected to MPO";
    let done = ask(&place(), &["--approve", "all"], question).await;
    let answer = done.json()["answer"].as_str().unwrap().to_owned();
    assert!(answer.contains("atherosclerosis (MONDO:0005311)"), "{done}");
}

#[tokio::test]
async fn without_approval_nothing_is_written_and_the_remedy_is_named() {
    let place = place();
    let done = ask(&place, &[], QUESTION).await.exits(0);
    let report = done.json();
    let made = report["tool_calls"].as_array().unwrap();
    assert_eq!(made[0]["is_error"], false, "{done}");
    assert_eq!(made[1]["failure"], "not_approved", "{done}");
    done.stderr_contains("Allow such calls with `--approve all`");
    let state = graph_state(&place).await;
    assert!(!state.contains("NCBIGene"), "{state}");
}

#[tokio::test]
async fn a_stored_run_continues_with_the_servers_of_its_recipe() {
    let place = place();
    let done = ask(&place, &["--approve", "later"], QUESTION).await;
    assert_eq!(done.code, 4, "{done}");
    let id = done.json()["run_id"].as_str().unwrap().to_owned();
    let done = place
        .run(["runs", "resume", &id, "--allow", "-o", "json"])
        .await;
    assert_eq!(done.code, 0, "{done}");
    let answer = done.json()["answer"].as_str().unwrap().to_owned();
    assert!(answer.contains("CP (NCBIGene:1356)"), "{answer}");
}

#[tokio::test]
async fn an_unknown_name_is_a_tool_error_and_the_run_continues() {
    let done = ask(
        &place(),
        &["--approve", "all"],
        "Find genes connected to Qwertz",
    )
    .await;
    assert_eq!(done.code, 0, "{done}");
    let report = done.json();
    let (_, tool, _, is_error) = &calls(&report)[0];
    assert_eq!((tool.as_str(), *is_error), ("lookup_name", true), "{done}");
    let answer = report["answer"].as_str().unwrap();
    assert!(answer.contains("No match for Qwertz"), "{answer}");
}

#[tokio::test]
async fn a_recipe_starts_only_servers_that_are_not_configured() {
    let settings = json!({"mcpServers": {"graph": {
        "command": program(), "args": ["mcp-server", "customer-service"],
    }}});
    let place = place()
        .with_file("switchboard.json", &settings.to_string())
        .with_file("mine.yaml", "servers: [graph]");
    let done = place
        .run([
            "ask",
            "--recipe",
            "mine.yaml",
            "-o",
            "json",
            "account value of customer 42",
        ])
        .await;
    assert_eq!(calls(&done.json())[0].0, "graph", "{done}");
}

#[tokio::test]
async fn servers_that_a_recipe_cannot_start_are_errors() {
    for (server, hint) in [("grap", "did you mean `graph`?"), ("workspace", "")] {
        let place = place().with_file("mine.yaml", &format!("servers: [{server}]"));
        let done = place.run(["ask", "--recipe", "mine.yaml", "?"]).await;
        assert_eq!(done.code, 2, "{done}");
        for part in [server, hint, "Available: customer-service, graph, bte"] {
            assert!(done.stderr.contains(part), "{part}: {done}");
        }
    }
}

#[tokio::test]
async fn a_recipe_that_is_selected_in_a_conversation_does_not_start_its_servers() {
    let done = place()
        .run_with_input(["chat"], "/recipe graph-chat\n")
        .await;
    done.stderr_contains("recipe graph-chat needs the server `graph`, which is not running");
}

//! Context values of tools at the command line.

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::{Place, program};

const MODEL: &str = "openai/gpt-4o-mini";

fn graph(fake: &FakeModel) -> Place {
    let place = Place::new();
    let file = place.path().join("graph.db");
    let server = json!({"command": program(), "args": ["mcp-server", "graph", "--data", file]});
    let config = json!({"model": MODEL, "mcp_servers": {"graph": server}});
    place
        .with_variable("OPENAI_API_KEY", "sk-secret")
        .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()))
        .with_file("switchboard.json", &config.to_string())
}

/// Returns the content of the graph after a question that adds this node.
async fn ask(place: &Place, fake: &FakeModel, options: &[&str], adds: Option<&str>) -> Vec<String> {
    if let Some(id) = adds {
        let input = json!({"nodes": [{"id": id, "type": "Gene", "label": id}]});
        fake.answer(Answer::openai_chat([Say::call(
            "a",
            "graph__add_nodes",
            input,
        )]));
    }
    let reading = Say::call("b", "graph__get_graph_state", json!({}));
    fake.answer(Answer::openai_chat([reading]));
    fake.answer(Answer::openai_chat([Say::text("ok")]));
    let args = ["ask", "-o", "json"].iter().chain(options).chain(&["go"]);
    let done = place.run(args).await;
    assert_eq!(done.code, 0, "{done}");
    let report = done.json();
    let state = report["tool_calls"].as_array().unwrap().last().unwrap();
    let nodes = state["result"]["structured"]["nodes"].as_array();
    let ids = nodes.unwrap_or_else(|| panic!("{done}")).iter();
    ids.map(|node| node["id"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn questions_of_one_session_share_a_graph_and_no_other_session_sees_it() {
    let fake = FakeModel::start().await.unwrap();
    let place = graph(&fake);
    let (one, two) = (["--session", "one"], ["--session", "two"]);
    assert_eq!(ask(&place, &fake, &one, Some("x:1")).await, ["x:1"]);
    assert_eq!(ask(&place, &fake, &one, Some("x:2")).await, ["x:1", "x:2"]);
    assert_eq!(ask(&place, &fake, &two, Some("x:3")).await, ["x:3"]);
    assert_eq!(ask(&place, &fake, &one, None).await, ["x:1", "x:2"]);
    // A question without session has a separate graph.
    assert_eq!(ask(&place, &fake, &[], Some("x:4")).await, ["x:4"]);
    assert_eq!(ask(&place, &fake, &[], None).await, [""; 0]);
    for request in fake.requests() {
        let asked: &Value = request.json();
        assert!(!asked.to_string().contains("databaseContext"), "{asked}");
    }
}

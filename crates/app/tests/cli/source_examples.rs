//! The examples of the systems from which Switchboard was developed, end to end: real servers as
//! processes, and a scripted model on loopback.

use std::fs;

use serde_json::{Value, json};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Say},
    trapi::Service,
};

use crate::support::{Place, calls, program};

const MODEL: &str = "openai/gpt-4o-mini";
const SOURCE: &str = "pub fn limit() -> u32 {\n    3\n}\n";

/// Creates a folder with code, configures the bundled server for it, and uses the recipe for
/// discussions about code.
fn code(fake: &FakeModel) -> Place {
    let place = Place::openai(fake);
    let code = place.path().join("code");
    fs::create_dir_all(code.join("src")).unwrap();
    fs::write(code.join("src/lib.rs"), SOURCE).unwrap();
    fs::write(
        code.join("check.sh"),
        "grep -q 'fn limit' src/lib.rs && echo 1 test passed\n",
    )
    .unwrap();
    let config = json!({
        "recipe": "code-discussion",
        "mcp_servers": {"code": {
            "command": program(),
            "args": ["mcp-server", "workspace", "--root", code, "--allow", "test:sh check.sh"],
        }},
        // The tests may run without a question. For saving, the recipe requires an approval.
        "approvals": {"rules": [{"tool": "test_run", "verdict": "allow"}]},
    });
    place.with_file("switchboard.json", &config.to_string())
}

fn call(id: &str, tool: &str, input: Value) -> Say {
    Say::call(id, format!("code__{tool}"), input)
}

fn read(place: &Place) -> String {
    fs::read_to_string(place.path().join("code/src/lib.rs")).unwrap()
}

#[tokio::test]
async fn code_is_edited_only_after_approval() {
    let fake = FakeModel::start().await.unwrap();
    let place = code(&fake);
    let path = "src/lib.rs";
    let edit = json!({"path": path, "old_text": "    3\n", "new_text": "    5\n"});
    for said in [
        call("a", "file_load", json!({"path": path})),
        call("b", "file_save", edit),
        call("c", "test_run", json!({})),
        Say::text("Raised to 5; one test passed."),
    ] {
        fake.answer(Answer::openai_chat([said]));
    }
    let ask = ["ask", "-m", MODEL, "--approve", "later", "-o", "jsonl"];
    let done = place.run(ask.iter().chain(&["Raise the limit to 5"])).await;
    assert_eq!(done.code, 4, "{done}");
    assert_eq!(
        read(&place),
        SOURCE,
        "nothing is changed before somebody says yes"
    );
    let asked = fake.request(1).await.json().clone();
    let prompt = asked["messages"][0]["content"].to_string();
    assert!(prompt.contains("experienced developer"), "{prompt}");
    let loaded = asked["messages"].as_array().unwrap().last().unwrap();
    assert!(loaded.to_string().contains("pub fn limit()"), "{loaded}");

    let id = done.lines().last().unwrap()["run_id"].clone();
    let resume = [
        "runs",
        "resume",
        id.as_str().unwrap(),
        "--allow",
        "-o",
        "json",
    ];
    let done = place.run(resume).await.exits(0);
    assert_eq!(read(&place), SOURCE.replace("    3", "    5"));
    let report = done.json();
    let ran = calls(&report);
    let ran: Vec<_> = ran
        .iter()
        .map(|(_, tool, _, is_error)| (tool.as_str(), *is_error))
        .collect();
    let tools = ["file_load", "file_save", "test_run"];
    assert_eq!(ran, tools.map(|tool| (tool, false)), "{done}");
    let tested = &report["tool_calls"][2]["result"]["structured"]["output"];
    assert!(
        tested.as_str().unwrap().contains("1 test passed"),
        "{tested}"
    );
}

#[tokio::test]
async fn genes_connected_to_mpo_are_found_shown_and_kept_in_the_graph() {
    const SECRET: &str = "hunter2-of-the-graph";
    let knowledge = Service::good().await;
    let fake = FakeModel::start().await.unwrap();
    let place = Place::openai(&fake);
    let graph = place.path().join("graph.db");
    let server = |args: &[&str]| json!({"command": program(), "args": args});
    let file = graph.to_str().unwrap();
    let config = json!({
        "strategy": "gather-format",
        "audit_results": true,
        "context": {"databaseContext": {
            "conversationId": "c-1", "apiBaseUrl": "http://127.0.0.1:9", "accessToken": SECRET,
        }},
        "mcp_servers": {
            "bte": server(&["mcp-server", "bte", "--url", &knowledge.url, "--data", file]),
            "graph": server(&["mcp-server", "graph", "--database", file]),
        },
    });
    let place = place.with_file("switchboard.json", &config.to_string());

    fake.answer(Answer::openai_chat([
        Say::text("NEED MORE DATA: how strongly they are connected"),
        Say::call(
            "a",
            "bte__query_bte_getall",
            json!({"entityId": "NCBIGene:4353", "addToGraph": true}),
        ),
    ]));
    fake.answer(Answer::openai_chat([Say::call(
        "b",
        "graph__analyze_node_relationships",
        json!({"nodeId": "NCBIGene:4353"}),
    )]));
    fake.answer(Answer::openai_chat([Say::call(
        "f",
        "response_formatter",
        json!({"conversation": [
            {"type": "text", "content": "CAT is connected most strongly."},
            {"type": "artifact", "artifactType": "table", "title": "Genes connected to MPO",
             "content": "| gene |\n|---|\n| CAT |"},
        ]}),
    )]));
    let args = [
        "ask",
        "-m",
        MODEL,
        "-o",
        "jsonl",
        "Find genes connected to MPO",
    ];
    let done = place.run(args).await.exits(0);
    let events = done.lines();
    let report = &events.last().unwrap()["report"];
    let made = calls(report);
    let made: Vec<_> = made
        .iter()
        .map(|(server, .., is_error)| (server.as_str(), *is_error))
        .collect();
    assert_eq!(made, [("bte", false), ("graph", false)], "{done}");
    assert_eq!(report["content"][0]["type"], "text");
    assert_eq!(report["content"][1]["title"], "Genes connected to MPO");
    // The second server reads the nodes that the first one added to the graph of this conversation.
    let analysed = &report["tool_calls"][1]["result"]["structured"];
    assert_eq!(analysed["strongest"][0]["id"], "NCBIGene:847", "{analysed}");
    // The conversation id is a context value of the host: the model neither sees nor sends it.
    for n in 0..3 {
        let asked = fake.request(n).await.json().to_string();
        assert!(
            !asked.contains("databaseContext") && !asked.contains(SECRET),
            "{asked}"
        );
    }
    assert!(
        !done.stdout.contains(SECRET) && !done.stderr.contains(SECRET),
        "{done}"
    );
    let audit = place.path().join(".local/state/switchboard/audit.jsonl");
    let audit = fs::read_to_string(audit).unwrap();
    assert!(
        audit.contains("query_bte_getall") && !audit.contains(SECRET),
        "{audit}"
    );
}

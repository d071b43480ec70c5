//! The examples of the systems that Switchboard comes from, end to end: real servers as processes,
//! a scripted model on loopback.

use std::fs;

use serde_json::{Value, json};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Say},
    trapi::Service,
};

use crate::support::{Done, Place, program};

const MODEL: &str = "openai/gpt-4o-mini";
const SOURCE: &str = "pub fn limit() -> u32 {\n    3\n}\n";

/// A folder with code, the bundled server over it, and the recipe for discussing it.
fn code(fake: &FakeModel, place: Place) -> Place {
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
        // The tests may run; saving is asked for, as the recipe has it.
        "approvals": {"rules": [{"tool": "test_run", "verdict": "allow"}]},
    });
    place
        .with_variable("OPENAI_API_KEY", "sk-secret")
        .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()))
        .with_file("switchboard.json", &config.to_string())
}

fn call(id: &str, tool: &str, input: Value) -> Say {
    Say::call(id, format!("code__{tool}"), input)
}

fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap();
    messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

fn read(place: &Place) -> String {
    fs::read_to_string(place.path().join("code/src/lib.rs")).unwrap()
}

#[tokio::test]
async fn code_questions_read_the_files() {
    let fake = FakeModel::start().await.unwrap();
    fake.answer(Answer::openai_chat([call(
        "a",
        "file_load",
        json!({"path": "src/lib.rs"}),
    )]));
    fake.answer(Answer::openai_chat([Say::text(
        "It is 3 (`src/lib.rs:2`).",
    )]));
    let place = code(&fake, Place::new());
    let done = place
        .run(["ask", "-m", MODEL, "-o", "json", "What is the limit?"])
        .await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(done.json()["answer"], "It is 3 (`src/lib.rs:2`).");
    let asked = fake.request(1).await.json().clone();
    let loaded = results(&asked);
    assert!(
        loaded.last().unwrap().contains("pub fn limit()"),
        "{loaded:?}"
    );
    let prompt = asked["messages"][0]["content"].to_string();
    assert!(prompt.contains("experienced developer"), "{prompt}");
}

async fn edit(fake: &FakeModel, place: &Place) -> (String, Done) {
    fake.answer(Answer::openai_chat([call(
        "a",
        "file_load",
        json!({"path": "src/lib.rs"}),
    )]));
    fake.answer(Answer::openai_chat([call(
        "b",
        "file_save",
        json!({"path": "src/lib.rs", "old_text": "    3\n", "new_text": "    5\n"}),
    )]));
    let args = [
        "ask",
        "-m",
        MODEL,
        "--approve",
        "later",
        "-o",
        "jsonl",
        "Raise the limit to 5",
    ];
    let done = place.run(args).await;
    assert_eq!(done.code, 4, "{done}");
    assert_eq!(
        read(place),
        SOURCE,
        "nothing is changed before somebody says yes"
    );
    let id = done.lines().last().unwrap()["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    (id, done)
}

#[tokio::test]
async fn code_is_edited_only_after_approval() {
    let fake = FakeModel::start().await.unwrap();
    let place = code(&fake, Place::new());
    let (id, _) = edit(&fake, &place).await;
    fake.answer(Answer::openai_chat([call("c", "test_run", json!({}))]));
    fake.answer(Answer::openai_chat([Say::text(
        "Raised to 5; one test passed.",
    )]));
    let done = place
        .run(["runs", "resume", &id, "--allow", "-o", "json"])
        .await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(read(&place), SOURCE.replace("    3", "    5"));
    let report = done.json();
    let ran: Vec<_> = report["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            (
                call["tool"].as_str().unwrap(),
                call["is_error"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        ran,
        [
            ("file_load", false),
            ("file_save", false),
            ("test_run", false)
        ],
        "{done}"
    );
    let tested = &report["tool_calls"][2]["result"]["structured"];
    assert!(
        tested["output"].as_str().unwrap().contains("1 test passed"),
        "{tested}"
    );
}

#[tokio::test]
async fn a_declined_edit_leaves_the_code_as_it_is() {
    let fake = FakeModel::start().await.unwrap();
    let place = code(&fake, Place::new());
    let (id, _) = edit(&fake, &place).await;
    fake.answer(Answer::openai_chat([Say::text(
        "Then here is the change as a block.",
    )]));
    let done = place
        .run([
            "runs",
            "resume",
            &id,
            "--deny",
            "I want to see it first",
            "-o",
            "json",
        ])
        .await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(read(&place), SOURCE);
    let received = results(&fake.request(2).await.json().clone());
    assert!(
        received.last().unwrap().contains("I want to see it first"),
        "{received:?}"
    );
}

#[tokio::test]
async fn genes_connected_to_mpo_are_found_shown_and_kept_in_the_graph() {
    const SECRET: &str = "hunter2-of-the-graph";
    let knowledge = Service::good().await;
    let fake = FakeModel::start().await.unwrap();
    let place = Place::new();
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
    let place = place
        .with_variable("OPENAI_API_KEY", "sk-secret")
        .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()))
        .with_file("switchboard.json", &config.to_string());

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
    let done = place.run(args).await;
    assert_eq!(done.code, 0, "{done}");
    let events = done.lines();
    let report = &events.last().unwrap()["report"];
    let made: Vec<_> = report["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            (
                call["server"].as_str().unwrap(),
                call["is_error"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(made, [("bte", false), ("graph", false)], "{done}");
    assert_eq!(report["content"][0]["type"], "text");
    assert_eq!(report["content"][1]["title"], "Genes connected to MPO");
    // What the second server knows is what the first one put into the graph of this conversation.
    let analysed = &report["tool_calls"][1]["result"]["structured"];
    assert_eq!(analysed["strongest"][0]["id"], "NCBIGene:847", "{analysed}");
    // Where the conversation is kept is a matter of the host: the model sees and writes nothing of
    // it.
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

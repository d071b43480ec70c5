//! Suites with their own servers and files.

use serde_json::json;
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{evals::eval, support::Place};

#[tokio::test]
async fn a_suite_has_its_own_servers_and_files() {
    let fake = FakeModel::start().await.unwrap();
    let input = json!({"path": "src/limit.rs"});
    fake.answer(Answer::openai_chat([Say::call(
        "a",
        "code__file_load",
        input,
    )]));
    fake.answer(Answer::openai_chat([Say::text("It is 3.")]));
    let suite = json!({
        "models": ["openai/gpt-4o-mini"],
        "files": {"src/limit.rs": "pub fn limit() -> u32 {\n    3\n}\n"},
        "mcp_servers": {
            "code": {"bundled": "workspace", "args": ["--root", "${SUITE_FILES}", "--read-only"]},
            "shop": {"bundled": "customer-service"},
        },
        "scenarios": [{
            "name": "The limit", "servers": ["code"],
            "turns": [{
                "say": "What is the limit?",
                "calls": [{"server": "code", "tool": "file_load", "input": {"path": "src/limit.rs"}}],
                "answer": {"contains": ["3"]},
            }],
        }],
    });
    // The configured server is not part of the suite and does not start.
    let broken = r#"{"mcp_servers": {"broken": {"command": "no-such-program", "required": true}}}"#;
    let place = Place::openai(&fake)
        .with_file("switchboard.json", broken)
        .with_file("a.json", &suite.to_string());
    let done = eval(&place, &["a.json", "-o", "json", "-q", "--min-passed", "1"]).await;
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done}");
    let asked = fake.request(0).await;
    let tools = asked.json()["tools"].to_string();
    assert!(tools.contains("code__file_load"), "{tools}");
    assert!(
        !tools.contains("code__file_save") && !tools.contains("account_value"),
        "{tools}"
    );
    let received = fake.request(1).await.json()["messages"].to_string();
    assert!(received.contains("pub fn limit()"), "{received}");
    // One call of tokens is 20 in and 10 out.
    let usage = &done.json()["summary"][0]["usage"];
    assert_eq!(usage["input_tokens"], 40);
    assert_eq!(usage["output_tokens"], 20);
}

#[tokio::test]
async fn a_suite_uses_the_folder_of_its_files_in_messages_and_expectations() {
    let path = "${SUITE_FILES}/src/limit.rs";
    let turn = json!({
        "say": format!("What is the limit in {path}?"),
        "calls": [{"server": "code", "tool": "file_load", "input": {"path": path}, "exactly": true}],
        "answer": {"contains": ["3"]},
    });
    let suite = json!({
        "models": ["openai/gpt-4o-mini"],
        "files": {"src/limit.rs": "pub fn limit() -> u32 {\n    3\n}\n"},
        "mcp_servers": {
            "code": {"bundled": "workspace", "args": ["--root", "${SUITE_FILES}", "--read-only"]},
        },
        "scenarios": [
            {"name": "Shared", "turns": [turn]},
            {"name": "Fresh", "turns": [turn], "fresh_servers": true},
        ],
    });
    let fake = FakeModel::start().await.unwrap();
    for _ in 0..2 {
        let input = json!({"path": path});
        fake.answer(Answer::openai_chat([Say::call(
            "a",
            "code__file_load",
            input,
        )]));
        fake.answer(Answer::openai_chat([Say::text("It is 3.")]));
    }
    let place = Place::openai(&fake).with_file("a.json", &suite.to_string());
    let args = ["a.json", "-o", "json", "-q", "--min-passed", "1"];
    let recorded = [&args[..], &["--at-once", "1", "--record", "r.jsonl"]].concat();
    let done = eval(&place, &recorded).await;
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done}");
    let received = fake.request(1).await.json()["messages"].to_string();
    assert!(received.contains("pub fn limit()"), "{received}");
    assert!(
        received.contains(&format!("What is the limit in {path}?")),
        "{received}"
    );
    assert!(!received.contains("switchboard-eval-"), "{received}");
    // A replay has the same result with another folder or none.
    let again = [&args[..], &["--replay", "r.jsonl"]].concat();
    eval(&place, &again).await.exits(0);
}

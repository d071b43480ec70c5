//! A hand-written stdio server that samples the run's model during a call.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::support::Place;

const MODEL: &str = "openai/gpt-4o-mini";
/// A variable that makes this program the server.
const SERVER: &str = "SWITCHBOARD_TEST_SAMPLING";

fn config() -> String {
    let poet = json!({
        "command": std::env::current_exe().unwrap(),
        "args": ["--exact", "server", "--ignored", "--nocapture"],
        "env": {SERVER: "1"},
        "sampling": true,
    });
    json!({"mcp_servers": {"poet": poet}}).to_string()
}

/// A sampled text is part of the tool's result. A replay in recorded
/// order returns the answers of the run without it.
#[tokio::test]
async fn sampled_text_is_not_an_answer_of_the_run() {
    let fake = FakeModel::start().await.unwrap();
    for said in [
        Say::call("a", "poet__write", json!({})),
        Say::text("Said to the server."),
        Say::text("Said to the person."),
    ] {
        fake.answer(Answer::openai_chat([said]));
    }
    let place = Place::new()
        .with_variable("OPENAI_API_KEY", "sk-proj-0123456789abcdefghij")
        .with_variable("OPENAI_BASE_URL", &format!("{}/v1", fake.base_url()))
        .with_file("switchboard.json", &config());
    let question = "Write a poem";
    let record = ["ask", "-o", "json", "-m", MODEL, "--record", "run.jsonl"];
    let done = place.run([&record[..], &[question]].concat()).await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(fake.requests().len(), 3);
    let first = done.json();
    assert_eq!(first["answer"], json!("Said to the person."), "{first}");
    let written = std::fs::read_to_string(place.path().join("run.jsonl")).unwrap();
    assert!(written.contains("it says Said to the server."), "{written}");

    for matching in ["exact", "order"] {
        let elsewhere = Place::new()
            .with_file("switchboard.json", &config())
            .with_file("run.jsonl", &written);
        let replay = [
            "ask",
            "-o",
            "json",
            "--replay",
            "run.jsonl",
            "--match",
            matching,
        ];
        let done = elsewhere.run([&replay[..], &[question]].concat()).await;
        assert_eq!(done.code, 0, "{done}");
        let again = done.json();
        assert_eq!(again["answer"], first["answer"], "{matching}: {again}");
    }
}

pub(crate) fn serve_stdio() {
    if std::env::var(SERVER).is_err() {
        return;
    }
    let mut called: Option<Value> = None;
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let id = message["id"].clone();
        match message["method"].as_str() {
            None if id == "sample" => {
                let said = &message["result"]["content"]["text"];
                let text = format!("it says {}", said.as_str().unwrap_or_default());
                let result = json!({"content": [{"type": "text", "text": text}]});
                say(&json!({"id": called.take(), "result": result}));
            }
            Some("initialize") => say(&json!({"id": id, "result": {
                "protocolVersion": "2025-06-18",
                "serverInfo": {"name": "poet", "version": "1"},
                "capabilities": {"tools": {}},
            }})),
            Some("tools/list") => say(&json!({"id": id, "result": {"tools": [{
                "name": "write", "description": "Writes a poem", "inputSchema": {"type": "object"},
            }]}})),
            Some("tools/call") => {
                called = Some(id);
                let content = json!({"type": "text", "text": "A poem, please"});
                let params = json!({
                    "messages": [{"role": "user", "content": content}], "maxTokens": 50,
                });
                say(&json!({"id": "sample", "method": "sampling/createMessage", "params": params}));
            }
            Some(_) if !id.is_null() => {
                say(&json!({"id": id, "error": {"code": -32601, "message": "Method not found"}}));
            }
            _ => {}
        }
    }
}

fn say(message: &Value) {
    let mut message = message.clone();
    message["jsonrpc"] = "2.0".into();
    let mut out = std::io::stdout();
    writeln!(out, "{message}").unwrap();
    out.flush().unwrap();
}

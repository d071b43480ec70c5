//! A hand-written stdio server that samples the run's model during a call.

use serde_json::json;
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{stdio_server, support::Place};

const MODEL: &str = "openai/gpt-4o-mini";
/// A variable that makes this program the server.
const SERVER: &str = "SWITCHBOARD_TEST_SAMPLING";

fn config() -> String {
    let mut poet = stdio_server::entry(&json!({SERVER: "1"}));
    poet["sampling"] = json!(true);
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
    let place = Place::openai(&fake).with_file("switchboard.json", &config());
    let question = "Write a poem";
    let record = ["ask", "-o", "json", "-m", MODEL, "--record", "run.jsonl"];
    let done = place.run([&record[..], &[question]].concat()).await;
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(fake.requests().len(), 3);
    let first = done.json();
    assert_eq!(first["answer"], json!("Said to the person."), "{first}");
    let written = place.read_file("run.jsonl");
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
    let mut called = None;
    stdio_server::serve(SERVER, |message| {
        let result = match message["method"].as_str() {
            None if message["id"] == "sample" => {
                let said = &message["result"]["content"]["text"];
                let text = format!("it says {}", said.as_str().unwrap_or_default());
                let result = json!({"content": [{"type": "text", "text": text}]});
                return vec![json!({"id": called.take(), "result": result})];
            }
            Some("tools/list") => Some(json!({"tools": [{
                "name": "write", "description": "Writes a poem", "inputSchema": {"type": "object"},
            }]})),
            Some("tools/call") => {
                called = Some(message["id"].clone());
                let content = json!({"type": "text", "text": "A poem, please"});
                let params = json!({
                    "messages": [{"role": "user", "content": content}], "maxTokens": 50,
                });
                let method = "sampling/createMessage";
                return vec![json!({"id": "sample", "method": method, "params": params})];
            }
            _ => None,
        };
        stdio_server::respond(&message, &json!({"tools": {}}), result)
    });
}

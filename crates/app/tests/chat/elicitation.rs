//! A server that wants to know something in the middle of a call, written by hand, over stdio.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};
use switchboard_testkit::fake::{Answer, FakeModel, Say};

use crate::{
    conversation::{chat_with, is_ready, of_model},
    support::Place,
};

/// A variable that makes this program the server.
const SERVER: &str = "SWITCHBOARD_TEST_ASKING";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_is_filled_in_line_by_line() {
    let fake = FakeModel::start().await.unwrap();
    for call in ["call_1", "call_2"] {
        fake.answer(Answer::openai_chat([Say::call(
            call,
            "shop__order",
            json!({}),
        )]));
        fake.answer(Answer::openai_chat([Say::text("So it is.")]));
    }
    let servers = json!({"shop": {
        "command": std::env::current_exe().unwrap(),
        "args": ["--exact", "server", "--ignored", "--nocapture"],
        "env": {SERVER: "1"},
    }});
    let config = json!({"mcpServers": servers}).to_string();
    let place = Place::new().with_file("switchboard.json", &config);
    let args = ["--model", "openai/gpt-test"];
    let mut chat = chat_with(&place, &args, of_model(&fake), (45, 90));
    chat.wait_for("prompt", is_ready);
    chat.line("Order boots");
    chat.shows("? shop asks: Which boots?");
    chat.wait_for("first field", |screen| screen.ends_with('›'));
    chat.keys("99\r");
    chat.shows("greater than the maximum of 50");
    chat.wait_for("first field again", |screen| screen.ends_with('›'));
    chat.keys("42\r");
    chat.wait_for("second field", |screen| {
        screen.contains("Colour") && screen.ends_with('›')
    });
    chat.keys("red\r");
    chat.shows(r#"got {"action":"accept","content":{"size":42,"colour":"red"}}"#);
    chat.shows("So it is.");
    chat.wait_for("prompt", is_ready);

    // Nothing is told to a server that is refused.
    chat.line("Order more boots");
    chat.wait_for("the form again", |screen| {
        screen.matches("shop asks").count() == 2 && screen.ends_with('›')
    });
    chat.keys(":decline\r");
    chat.shows(r#"got {"action":"decline"}"#);
    chat.wait_for("prompt", is_ready);
    chat.keys("\u{4}");
    assert_eq!(chat.end(), 0);
}

/// Not a test: the server.
pub(crate) fn serve() {
    if std::env::var(SERVER).is_err() {
        return;
    }
    let mut asked: Option<Value> = None;
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let id = message["id"].clone();
        match message["method"].as_str() {
            // What was answered is the result of the call.
            None if id == "boots" => {
                let text = format!("got {}", message["result"]);
                let result = json!({"content": [{"type": "text", "text": text}]});
                say(&json!({"id": asked.take(), "result": result}));
            }
            Some("initialize") => say(&json!({"id": id, "result": {
                "protocolVersion": "2025-06-18",
                "serverInfo": {"name": "shop", "version": "1"},
                "capabilities": {"tools": {}},
            }})),
            Some("tools/list") => say(&json!({"id": id, "result": {"tools": [{
                "name": "order", "description": "Orders boots", "inputSchema": {"type": "object"},
            }]}})),
            Some("tools/call") => {
                asked = Some(id);
                say(
                    &json!({"id": "boots", "method": "elicitation/create", "params": {
                        "message": "Which boots?",
                        "requestedSchema": {
                            "type": "object",
                            "required": ["size"],
                            "properties": {
                                "size": {"type": "integer", "minimum": 10, "maximum": 50},
                                "colour": {"type": "string", "title": "Colour"},
                            },
                        },
                    }}),
                );
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

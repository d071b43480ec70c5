//! An MCP server over stdio, written by hand, whose tool elicits a form during its call.

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

/// Environment variable with which the test program acts as the server.
const SERVER: &str = "SWITCHBOARD_TEST_ASKING";

/// Returns settings with only this server, named `shop`. The test program runs it as its ignored
/// test `server`.
pub(crate) fn config() -> Value {
    json!({"mcpServers": {"shop": {
        "command": std::env::current_exe().unwrap(),
        "args": ["--exact", "server", "--ignored", "--nocapture"],
        "env": {SERVER: "1"},
    }}})
}

/// Serves the tool. Its result is the answer to the form.
pub(crate) fn serve() {
    if std::env::var(SERVER).is_err() {
        return;
    }
    let mut asked: Option<Value> = None;
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let id = message["id"].clone();
        match message["method"].as_str() {
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

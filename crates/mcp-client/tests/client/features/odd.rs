//! A hand-written server with the older protocol and a fault in every response.

use std::io::{BufRead, Write};

use serde_json::{Value, json};

pub(crate) fn serve() {
    answer_with(answer);
}

/// Serves with protocol 2026-07-28. Its tools differ in each list, and a list may be cached
/// briefly.
pub(crate) fn serve_fleeting() {
    let mut listed = 0;
    answer_with(|method, _| {
        Some(json!({"result": match method {
            "server/discover" => json!({
                "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "fleeting", "version": "1"},
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            }),
            "tools/list" => {
                let tool = json!({"name": format!("tool_{listed}"), "inputSchema": {"type": "object"}});
                listed += 1;
                json!({"tools": [tool], "resultType": "complete", "ttlMs": 20, "cacheScope": "public"})
            }
            _ => return Some(json!({"error": {"code": -32601, "message": "no such method"}})),
        }}))
    });
}

fn answer_with(mut answer: impl FnMut(&str, &Value) -> Option<Value>) {
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
            continue;
        };
        let Some(answer) = answer(method, &message["params"]) else {
            continue;
        };
        let mut answer = answer;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id.clone();
        writeln!(out, "{answer}").unwrap();
        out.flush().unwrap();
    }
}

fn answer(method: &str, params: &Value) -> Option<Value> {
    let result = match method {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "serverInfo": {"name": "odd", "version": "1"},
            "capabilities": {"tools": {}, "resources": {}, "completions": {}, "prompts": {}},
        }),
        "tools/list" => json!({"tools": []}),
        "resources/read" => json!({
            "contents": [{"text": "no address"}, {"uri": "f:///a#2"}, {"uri": "f:///a#3", "blob": "AA=="}],
        }),
        "prompts/list" => json!({"prompts": [{"name": "greet"}]}),
        "prompts/get" => json!({
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "hologram"}]},
                {"role": "narrator", "content": {"type": "text", "text": "two"}},
                {"role": "assistant"},
                {"role": "assistant", "content": {"type": "text", "text": "three"}},
            ],
        }),
        // This request gets no response.
        "completion/complete" => return None,
        "resources/templates/list" => {
            let message = "templates are kept with sk-secret-77";
            return Some(json!({"error": {"code": -32603, "message": message}}));
        }
        _ => return Some(json!({"error": {"code": -32601, "message": "no such method"}})),
    };
    Some(json!({"result": result}))
}

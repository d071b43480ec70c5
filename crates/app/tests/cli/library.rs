//! A hand-written server with resources, templates, prompts and completions, over stdio and HTTP.

use axum::{
    Json, Router,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::post,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::stdio_server;

/// The description of its tool, if it differs from the default.
const DESCRIPTION: &str = "SWITCHBOARD_TEST_DESCRIPTION";
/// A variable that makes this program the server.
const SERVER: &str = "SWITCHBOARD_TEST_LIBRARY";

/// Returns the configuration entry that starts the server.
pub(crate) fn over_stdio(description: &str) -> Value {
    stdio_server::entry(&json!({SERVER: "1", DESCRIPTION: description}))
}

/// Starts the server and returns its configuration entry. The server ends with the test.
pub(crate) async fn over_http() -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // `GET` opens a separate stream, which this server does not have.
    let app = Router::new().route("/mcp", post(received));
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    json!({"url": format!("http://{address}/mcp")})
}

async fn received(Json(message): Json<Value>) -> Response {
    match answer(&message) {
        Some(answer) => Json(answer).into_response(),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

pub(crate) fn serve_stdio() {
    stdio_server::serve(SERVER, |message| answer(&message).into_iter().collect());
}

fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let method = message["method"].as_str()?;
    let mut answer = match result(method, &message["params"]) {
        Ok(result) => json!({"result": result}),
        Err((code, message)) => json!({"error": {"code": code, "message": message}}),
    };
    answer["jsonrpc"] = "2.0".into();
    answer["id"] = id.clone();
    Some(answer)
}

fn result(method: &str, params: &Value) -> Result<Value, (i64, String)> {
    let text = |text: &str| json!({"type": "text", "text": text});
    Ok(match method {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "serverInfo": {"name": "library", "version": "1"},
            "capabilities": {"tools": {}, "resources": {}, "completions": {}, "prompts": {}},
        }),
        "tools/list" => {
            let said = std::env::var(DESCRIPTION).unwrap_or_default();
            json!({"tools": [{
                "name": "lend", "description": said, "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": true},
            }]})
        }
        "tools/call" => json!({"content": [text("lent")]}),
        "resources/list" => json!({"resources": [
            {"uri": "f:///notes", "name": "notes", "title": "Notes", "mimeType": "text/plain",
             "description": "What was noted\u{1b}[31m"},
            {"uri": "f:///logo", "name": "logo", "size": 6},
        ]}),
        "resources/templates/list" => json!({"resourceTemplates": [
            {"uriTemplate": "db://{table}/{id}", "name": "rows", "description": "One row"},
        ]}),
        "resources/read" => {
            let uri = params["uri"].as_str().unwrap_or_default();
            let contents = match uri {
                "f:///notes" => {
                    json!({"uri": uri, "mimeType": "text/plain", "text": "first\nsecond"})
                }
                "f:///logo" => json!({"uri": uri, "mimeType": "image/gif", "blob": "R0lGODlh"}),
                "db://users/7" => json!({"uri": uri, "text": "Ada"}),
                _ => return Err((-32002, "Resource not found".to_owned())),
            };
            json!({"contents": [contents]})
        }
        "prompts/list" => json!({"prompts": [
            {"name": "greet", "description": "Greets somebody", "arguments": [
                {"name": "name", "description": "Who is greeted", "required": true},
                {"name": "tone"},
            ]},
            {"name": "farewell"},
        ]}),
        "prompts/get" => {
            let given = &params["arguments"];
            let who = given["name"].as_str().unwrap_or("everybody");
            let mut said = vec![json!({"role": "user", "content": text(&format!("Greet {who}."))})];
            match given["tone"].as_str() {
                Some("warm") => {
                    said.push(json!({"role": "assistant", "content": text("My dear,")}));
                }
                Some(tone) if tone != "dry" => {
                    return Err((-32602, format!("there is no tone {tone}")));
                }
                _ => {}
            }
            json!({"description": "A greeting", "messages": said})
        }
        "completion/complete" => {
            let values = match params["argument"]["name"].as_str() {
                Some("name") => json!(["Ada", "Grace"]),
                Some("tone") => json!(["warm", "dry"]),
                _ => json!([]),
            };
            json!({"completion": {"values": values}})
        }
        _ => return Err((-32601, "Method not found".to_owned())),
    })
}

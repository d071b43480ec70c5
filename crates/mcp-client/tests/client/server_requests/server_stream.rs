//! A server with the older protocol that sends requests only on its own stream (HTTP GET). It opens
//! the stream late, and loses the requests that it sends before. Servers with the TypeScript SDK do
//! this if they do not name the related request.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::stream;
use serde_json::{Value, json};
use switchboard_domain::ToolHost;
use switchboard_mcp_client::{HostOptions, McpHost, ServerConfig};
use tokio::sync::{mpsc, oneshot};

use crate::{server_requests::support::*, shared::serve_app};

#[derive(Clone, Default)]
struct StreamServer {
    stream: Arc<Mutex<Option<mpsc::UnboundedSender<String>>>>,
    answer: Arc<Mutex<Option<oneshot::Sender<Value>>>>,
}

async fn open(State(server): State<StreamServer>) -> Response {
    // sleep: a call that does not wait for the slow stream would start during this time
    tokio::time::sleep(Duration::from_millis(150)).await;
    let (say, heard) = mpsc::unbounded_channel();
    *server.stream.lock().unwrap() = Some(say);
    let events = stream::unfold(heard, |mut heard| async move {
        let message = heard.recv().await?;
        Some((Ok::<_, Infallible>(format!("data: {message}\n\n")), heard))
    });
    (
        [(header::CONTENT_TYPE, "text/event-stream")],
        Body::from_stream(events),
    )
        .into_response()
}

async fn take(State(server): State<StreamServer>, Json(message): Json<Value>) -> Response {
    let id = &message["id"];
    let result = |result: Value| Json(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    match message["method"].as_str() {
        Some("initialize") => {
            let result = result(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "server_stream", "version": "0"},
            }));
            ([("mcp-session-id", "1")], result).into_response()
        }
        Some("tools/list") => {
            let tool = json!({"name": "ask", "inputSchema": {"type": "object"}});
            result(json!({"tools": [tool]})).into_response()
        }
        Some("tools/call") => {
            let (answer, answered) = oneshot::channel();
            *server.answer.lock().unwrap() = Some(answer);
            let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            let params = json!({"message": "Who?", "requestedSchema": schema});
            let request = json!({
                "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params,
            });
            if let Some(stream) = &*server.stream.lock().unwrap() {
                let _ = stream.send(request.to_string());
            }
            let answer = answered.await.unwrap_or_default();
            let text = json!({"type": "text", "text": answer.to_string()});
            result(json!({"content": [text]})).into_response()
        }
        Some("server/discover") => StatusCode::BAD_REQUEST.into_response(),
        Some(_) => StatusCode::ACCEPTED.into_response(),
        None => {
            if let Some(waiting) = server.answer.lock().unwrap().take() {
                let _ = waiting.send(message["result"].clone());
            }
            StatusCode::ACCEPTED.into_response()
        }
    }
}

#[tokio::test]
async fn a_server_is_ready_only_when_its_questions_can_reach_us() {
    let route = post(take).get(open).with_state(StreamServer::default());
    let (url, serving) = serve_app(Router::new().route("/mcp", route)).await;
    let user = User::with_answers([accept(json!({"name": "Ada"}))]);
    let options = HostOptions {
        client_handlers: user.handlers(),
        ..HostOptions::default()
    };
    let host = McpHost::start(vec![ServerConfig::http("s", url)], options).unwrap();
    soon(host.wait_for_startup()).await;
    let output = soon(host.call_tool(tool("ask"))).await.unwrap();
    let expected = r#"{"action":"accept","content":{"name":"Ada"}}"#;
    assert_eq!(output.content[0].as_text(), expected);
    soon(host.close()).await;
    serving.abort();
}

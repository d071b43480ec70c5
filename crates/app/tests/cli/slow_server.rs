//! An MCP server over HTTP that answers on command of the test and returns its requests. It is
//! written by hand, so that the test sees the exact requests.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::post,
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc},
    task::JoinHandle,
};

/// Two tools, `left` and `right`, whose calls stay open until [`SlowServer::answer`].
pub(crate) struct SlowServer {
    url: String,
    calls: mpsc::UnboundedReceiver<Value>,
    cancelled: mpsc::UnboundedReceiver<Value>,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    calls: mpsc::UnboundedSender<Value>,
    cancelled: mpsc::UnboundedSender<Value>,
    answers: Semaphore,
}

impl SlowServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (calls_in, calls) = mpsc::unbounded_channel();
        let (cancelled_in, cancelled) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            calls: calls_in,
            cancelled: cancelled_in,
            answers: Semaphore::new(0),
        });
        let router = Router::new()
            .route("/mcp", post(answer))
            .with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            calls,
            cancelled,
            shared,
            task,
        }
    }

    /// Returns a configuration with only this server, named `slow`.
    pub(crate) fn config(&self) -> String {
        json!({"mcpServers": {"slow": {"url": self.url}}}).to_string()
    }

    /// The parameters of the next `tools/call`.
    pub(crate) async fn called(&mut self) -> Value {
        self.calls.recv().await.unwrap()
    }

    /// The parameters of the next `notifications/cancelled`.
    pub(crate) async fn cancelled(&mut self) -> Value {
        self.cancelled.recv().await.unwrap()
    }

    /// Releases this number of calls.
    pub(crate) fn answer(&self, calls: usize) {
        self.shared.answers.add_permits(calls);
    }
}

impl Drop for SlowServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, Json(message): Json<Value>) -> Response {
    let params = message["params"].clone();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "slow", "version": "1"},
        }),
        "tools/list" => json!({"tools": [tool("left"), tool("right")]}),
        "tools/call" => {
            shared.calls.send(params.clone()).unwrap();
            shared.answers.acquire().await.unwrap().forget();
            let name = params["name"].as_str().unwrap();
            json!({"content": [{"type": "text", "text": format!("{name} is done")}]})
        }
        "ping" => json!({}),
        "notifications/cancelled" => {
            shared.cancelled.send(params).unwrap();
            return StatusCode::ACCEPTED.into_response();
        }
        notification if notification.starts_with("notifications/") => {
            return StatusCode::ACCEPTED.into_response();
        }
        other => {
            let error = json!({"code": -32601, "message": format!("no method {other}")});
            return Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
                .into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}

fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("Looks to the {name}."),
        "inputSchema": {
            "type": "object",
            "properties": {"far": {"type": "integer"}},
            "required": ["far"],
        },
    })
}

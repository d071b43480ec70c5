//! The least that answers as the server does: what the model says is handed on as it comes. It reads nothing of a request
//! and little of an answer, checks nothing, keeps nothing and bounds nothing.

use std::{process::Stdio, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use rmcp::{
    RoleClient,
    model::{CallToolRequestParams, ContentBlock, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt, RunningService},
    transport::async_rw::AsyncRwTransport,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::{Outcome, process::serve_with};

struct Floor {
    http: reqwest::Client,
    url: String,
    tools: Option<Tools>,
}

/// An MCP server over pipes, and its tools in the model's words.
struct Tools {
    declared: Value,
    client: RunningService<RoleClient, ()>,
    _server: Child,
}

/// What is read of a request, and sent to the model.
#[derive(Deserialize, Serialize)]
struct Request {
    model: String,
    messages: Vec<Value>,
    #[serde(default)]
    stream: bool,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    tools: Value,
}

/// What is read of an answer: the one call in it.
#[derive(Default)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(alias = "message")]
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    tool_calls: Vec<CallDelta>,
}

#[derive(Deserialize)]
struct CallDelta {
    id: Option<String>,
    function: FunctionDelta,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

impl Call {
    fn read(answer: &[u8], stream: bool) -> Outcome<Self> {
        let mut call = Self::default();
        if stream {
            for line in answer.split(|byte| *byte == b'\n') {
                if let Some(data) = line.strip_prefix(b"data: ")
                    && data != b"[DONE]"
                {
                    call.take(serde_json::from_slice(data)?);
                }
            }
        } else {
            call.take(serde_json::from_slice(answer)?);
        }
        Ok(call)
    }

    fn take(&mut self, chunk: Chunk) {
        for piece in chunk.choices.into_iter().flat_map(|it| it.delta.tool_calls) {
            self.id.extend(piece.id);
            self.name.extend(piece.function.name);
            self.arguments.extend(piece.function.arguments);
        }
    }
}

impl Tools {
    async fn of(turn: &str) -> Outcome<Self> {
        let mut server = Command::new(turn)
            .arg("serve-tools")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let pipes = server.stdout.take().zip(server.stdin.take());
        let (stdout, stdin) = pipes.ok_or("the pipes are missing")?;
        // What the host comes to by itself with this server.
        let mode = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::LATEST],
        };
        let transport = AsyncRwTransport::new_client(stdout, stdin);
        let client = ().serve_with_lifecycle(transport, mode).await?;
        let tools = client.list_all_tools().await?.into_iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": format!("orders__{}", tool.name), "description": tool.description,
                "parameters": *tool.input_schema,
            }})
        });
        Ok(Self {
            declared: tools.collect(),
            client,
            _server: server,
        })
    }

    /// The text that the tool answers.
    async fn call(&self, call: &Call) -> Outcome<String> {
        let name = call.name.trim_start_matches("orders__").to_owned();
        let input = serde_json::from_str(&call.arguments)?;
        let params = CallToolRequestParams::new(name).with_arguments(input);
        let result = self.client.call_tool(params).await?;
        let texts = result.content.into_iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text),
            _ => None,
        });
        Ok(texts.collect())
    }
}

impl Floor {
    async fn ask(&self, body: impl Into<reqwest::Body>) -> Outcome<reqwest::Response> {
        let post = self.http.post(&self.url).bearer_auth("sk-bench");
        let post = post.header("content-type", "application/json");
        Ok(post.body(body).send().await?.error_for_status()?)
    }

    async fn answer(&self, body: Bytes) -> Outcome<Response> {
        let Some(tools) = &self.tools else {
            return Ok(handed_on(self.ask(body).await?));
        };
        let mut request: Request = serde_json::from_slice(&body)?;
        request.tools = tools.declared.clone();
        let answer = self.ask(serde_json::to_vec(&request)?).await?;
        let call = Call::read(&answer.bytes().await?, request.stream)?;
        let text = tools.call(&call).await?;
        let function = json!({"name": call.name, "arguments": call.arguments});
        let calls = json!([{"id": call.id, "type": "function", "function": function}]);
        request.messages.extend([
            json!({"role": "assistant", "content": null, "tool_calls": calls}),
            json!({"role": "tool", "tool_call_id": call.id, "content": text}),
        ]);
        Ok(handed_on(self.ask(serde_json::to_vec(&request)?).await?))
    }
}

fn handed_on(answer: reqwest::Response) -> Response {
    let kind = answer.headers().get(CONTENT_TYPE).cloned();
    let body = Body::from_stream(answer.bytes_stream());
    (kind.map(|kind| [(CONTENT_TYPE, kind)]), body).into_response()
}

async fn completions(State(floor): State<Arc<Floor>>, request: Bytes) -> Response {
    let answer = floor.answer(request).await.map_err(|it| it.to_string());
    answer
        .map_err(|why| (StatusCode::BAD_GATEWAY, why))
        .into_response()
}

/// Serves with the model at this address, and with the tools of this program if there is one.
pub(super) async fn serve(model: &str, turn: Option<&&str>) -> Outcome<()> {
    let tools = match turn {
        Some(turn) => Some(Tools::of(turn).await?),
        None => None,
    };
    let floor = Floor {
        http: reqwest::Client::builder().no_proxy().build()?,
        url: format!("{model}/v1/chat/completions"),
        tools,
    };
    let routes = Router::new()
        .route("/v1/chat/completions", post(completions))
        .with_state(Arc::new(floor));
    serve_with(routes).await
}

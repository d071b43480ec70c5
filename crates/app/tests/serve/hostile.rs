//! JSON Schemas that are slow to process, from API clients and MCP servers. The server runs in
//! this process on one thread, so that a heartbeat sees every blocked worker.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::post,
};
use proptest::{
    strategy::{Strategy, ValueTree as _},
    test_runner::TestRunner,
};
use serde_json::{Value, json};
use switchboard_domain::{ChatModel, Principal, SessionId, ToolCatalog, ToolHost as _};
use switchboard_mcp_client::{HostOptions, McpHost, ServerConfig};
use switchboard_orchestration::Agent;
use switchboard_providers_openai::{OpenAiClient, OpenAiConfig};
use switchboard_server::{
    Engine, ModelInfo, RecipeInfo, RunSettings, RunSettingsError, ServerOptions,
};
use switchboard_testkit::{
    fake::{Answer, FakeModel, Request, Say},
    hostile::{self, Heartbeat},
};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::in_process::{InProcess, make_server};

/// Maximum time that a worker may be blocked. A debug build is about twenty times slower than a
/// release build.
const MAX_BLOCKED: Duration =
    Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 100 });
/// Schemas and values of each test.
const CASES: usize = 1_000;
/// Tools of one request or MCP server.
const BATCH: usize = 50;

/// One tool: its schema, and the value that it is called with or returns.
#[derive(Debug, Clone)]
struct Case {
    schema: Value,
    value: Value,
}

fn random_cases() -> Vec<Case> {
    let mut runner = TestRunner::deterministic();
    let strategy = (hostile::schemas(), hostile::values());
    let cases = (0..CASES).map(|_| {
        let (schema, value) = strategy.new_tree(&mut runner).unwrap().current();
        Case { schema, value }
    });
    cases.collect()
}

/// Schemas of 3 kB that take 2^40 steps without a limit.
fn bombs() -> Vec<Case> {
    let bombs = ["anyOf", "oneOf", "allOf"].map(|applicator| Case {
        schema: hostile::chain(40, applicator, 2),
        value: json!(1),
    });
    bombs.into()
}

/// Places the schema where a tool's input and output have it: below an object's property.
fn object_schema(case: &Case) -> Value {
    let mut schema = json!({"type": "object", "properties": {"a": case.schema}});
    schema["properties"]["a"]
        .as_object_mut()
        .unwrap()
        .shift_remove("$defs");
    schema["$defs"] = case.schema["$defs"].clone();
    schema
}

/// MCP servers over HTTP: `/N/mcp` has the N-th batch of tools.
async fn mcp_servers(cases: Arc<Vec<Case>>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .route("/{batch}/mcp", post(answer_mcp))
        .with_state(cases);
    let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (base, task)
}

async fn answer_mcp(
    State(cases): State<Arc<Vec<Case>>>,
    Path(batch): Path<usize>,
    Json(message): Json<Value>,
) -> Response {
    let params = &message["params"];
    let batch = cases.chunks(BATCH).nth(batch).unwrap();
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "hostile", "version": "1"},
        }),
        "tools/list" => {
            let tools = (0..).zip(batch).map(|(n, case): (usize, _)| {
                let schema = object_schema(case);
                json!({
                    "name": format!("t{n}"), "inputSchema": schema, "outputSchema": schema,
                    "annotations": {"readOnlyHint": true},
                })
            });
            json!({"tools": tools.collect::<Vec<_>>()})
        }
        "tools/call" => {
            let number: usize = params["name"].as_str().unwrap()[1..].parse().unwrap();
            json!({"content": [], "structuredContent": {"a": batch[number].value}})
        }
        "ping" => json!({}),
        notification if notification.starts_with("notifications/") => {
            return StatusCode::ACCEPTED.into_response();
        }
        method => {
            let error = json!({"code": -32601, "message": format!("no method {method}")});
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            return Json(body).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}

struct HostileEngine {
    model: Arc<dyn ChatModel>,
    tools: Arc<McpHost>,
}

#[async_trait]
impl Engine for HostileEngine {
    async fn create_agent(
        &self,
        _: &RunSettings,
        _: &Principal,
        _: Option<&SessionId>,
    ) -> Result<Agent, RunSettingsError> {
        let tools = Arc::clone(&self.tools);
        Ok(Agent::new(Arc::clone(&self.model)).with_tools(tools))
    }

    async fn available_models(&self) -> Vec<ModelInfo> {
        vec![ModelInfo::from_model_id(self.model.id())]
    }

    async fn available_recipes(&self) -> Vec<RecipeInfo> {
        Vec::new()
    }

    async fn mcp_server_states(&self) -> Vec<Value> {
        Vec::new()
    }

    async fn tool_catalog(&self) -> ToolCatalog {
        self.tools.list_tools().await
    }

    async fn check_readiness(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Starts a server in this process with these MCP servers.
async fn start(fake: &FakeModel, servers: Vec<ServerConfig>) -> InProcess {
    let mut config = OpenAiConfig::new("key");
    config.base_url = format!("{}/v1", fake.base_url());
    let model = OpenAiClient::new(config).unwrap().model("fake-model");
    let tools = Arc::new(McpHost::start(servers, HostOptions::default()).unwrap());
    tools.wait_until_ready().await.unwrap();
    let engine = HostileEngine {
        model: Arc::new(model),
        tools,
    };
    let made = make_server(Arc::new(engine), ServerOptions::default());
    InProcess::start(made.await).await
}

fn calls(cases: &[Case], prefix: &str) -> Answer {
    let calls = (0..).zip(cases).map(|(n, case): (usize, _)| {
        let input = json!({"a": case.value});
        Say::call(format!("call_{n}"), format!("{prefix}t{n}"), input)
    });
    Answer::openai_chat(calls.collect::<Vec<_>>())
}

/// Sends every schema as the schema of a client's tool and of the answer's format.
async fn from_clients(cases: &[Case]) {
    let fake = FakeModel::start().await.unwrap();
    let server = start(&fake, Vec::new()).await;
    let heartbeat = Heartbeat::start();
    for batch in cases.chunks(BATCH) {
        let tools = (0..).zip(batch).map(|(n, case): (usize, _)| {
            let function = json!({"name": format!("t{n}"), "parameters": object_schema(case)});
            json!({"type": "function", "function": function})
        });
        let mut body = json!({
            "model": "openai/fake-model",
            "messages": [{"role": "user", "content": "Call the tools."}],
            "tools": tools.collect::<Vec<_>>(),
        });
        fake.answer(calls(batch, ""));
        let answered = server.post("/v1/chat/completions", &body).await;
        assert!(answered.status < 500, "{answered:?}");
        body.as_object_mut().unwrap().shift_remove("tools");
        let asked_before = fake.requests().len();
        for case in batch {
            let text = json!({"a": case.value}).to_string();
            fake.otherwise(move |_, _: &Request| Answer::openai_chat([Say::text(text.clone())]));
            let format = json!({"name": "answer", "schema": object_schema(case)});
            body["response_format"] = json!({"type": "json_schema", "json_schema": format});
            let answered = server.post("/v1/chat/completions", &body).await;
            assert!(answered.status < 503, "{answered:?}");
        }
        assert!(fake.requests().len() > asked_before);
    }
    let longest = heartbeat.longest();
    assert!(longest < MAX_BLOCKED, "{longest:?}");
    assert_eq!(server.get("/healthz").await.status, 200);
    server.end().await;
}

/// Has every schema as `inputSchema` and `outputSchema` of an MCP server's tool, and calls it.
async fn from_servers(cases: Vec<Case>) {
    let cases = Arc::new(cases);
    let (base, mcp) = mcp_servers(Arc::clone(&cases)).await;
    let fake = FakeModel::start().await.unwrap();
    let heartbeat = Heartbeat::start();
    for (n, batch) in cases.chunks(BATCH).enumerate() {
        // A timer fires after all tasks that are ready have run: servers start one at a time.
        let config = ServerConfig::http("s", format!("{base}/{n}/mcp"));
        let server = start(&fake, vec![config]).await;
        fake.answer(calls(batch, "s__"));
        fake.answer(Answer::openai_chat([Say::text("Done.")]));
        let report = server.post("/chat", &json!({"message": "Call."})).await;
        let report = report.expect(200);
        assert_eq!(report["outcome"], "completed", "{report}");
        assert_eq!(report["tool_calls"].as_array().unwrap().len(), batch.len());
        // The stored sessions can be read.
        let session = report["session_id"].as_str().unwrap();
        let shown = server.get(&format!("/sessions/{session}")).await;
        shown.expect(200);
        server.end().await;
    }
    let longest = heartbeat.longest();
    assert!(longest < MAX_BLOCKED, "{longest:?}");
    mcp.abort();
}

#[tokio::test]
async fn schema_bombs_of_clients_block_no_worker() {
    from_clients(&bombs()).await;
}

#[tokio::test]
async fn schema_bombs_of_servers_block_no_worker() {
    from_servers(bombs()).await;
}

#[tokio::test]
async fn a_thousand_schemas_of_clients_block_no_worker() {
    from_clients(&random_cases()).await;
}

#[tokio::test]
async fn a_thousand_schemas_of_servers_block_no_worker() {
    from_servers(random_cases()).await;
}

//! The server with an engine of the test, which waits and fails on command.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use futures_util::stream;
use serde_json::{Value, json};
use switchboard_domain::{
    ChatModel, ChatRequest, FinishReason, ModelCapabilities, ModelError, ModelEvent, ModelId,
    ModelStream, Part, PartStart, Principal, Role, SessionId, ToolCall, ToolCallError, ToolCatalog,
    ToolDefinition, ToolHost, ToolHostChanges, ToolInput, ToolOrigin, ToolOutput, ToolUse,
};
use switchboard_orchestration::{Agent, RunEvent, RunEventKind};
use switchboard_server::{
    Engine, ModelInfo, RecipeInfo, RunEventObserver, RunSettings, RunSettingsError, ServerOptions,
};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    sync::{Semaphore, mpsc},
};

use crate::in_process::{InProcess, make_server};

/// A server in this process.
pub(crate) struct Own {
    pub(crate) http: InProcess,
    script: Arc<Script>,
    /// Requests for agents, and running calls of the tool.
    news: mpsc::UnboundedReceiver<&'static str>,
}

/// The commands of the test.
struct Script {
    /// One permit for each agent and each tool result.
    agents: Semaphore,
    results: Arc<Semaphore>,
    sender: mpsc::UnboundedSender<&'static str>,
    /// The recorder of a run panics at the next event of this kind.
    panics_at: Arc<Mutex<Option<&'static str>>>,
}

impl Own {
    async fn start(options: ServerOptions) -> Self {
        Self::start_with(options, None).await
    }

    /// Starts the server, or with `nest` another application that has its routes.
    pub(crate) async fn start_with(
        options: ServerOptions,
        nest: Option<fn(Router) -> Router>,
    ) -> Self {
        let (sender, news) = mpsc::unbounded_channel();
        let script = Arc::new(Script {
            agents: Semaphore::new(0),
            results: Arc::new(Semaphore::new(0)),
            sender,
            panics_at: Arc::default(),
        });
        let made = make_server(Arc::clone(&script) as Arc<dyn Engine>, options).await;
        let http = match nest {
            Some(nest) => InProcess::start_nested(made, nest).await,
            None => InProcess::start(made).await,
        };
        Self { http, script, news }
    }

    /// Starts the server and a run that panics at this event. Returns the id of the run.
    async fn start_and_panic_at(kind: &'static str) -> (Self, String) {
        let server = Self::start(one_each()).await;
        server.let_all();
        server.panic_at(kind);
        let asked = json!({"message": "Work."});
        let left = server.http.post("/chat", &asked).await;
        assert_eq!(left.problem(503), "unavailable");
        let run = left.json()["run_id"].as_str().unwrap().to_owned();
        (server, run)
    }

    /// Cancels a run and checks that it is finished.
    async fn cancel(&self, run: &str) {
        let path = format!("/runs/{run}/cancel");
        let ended = self.http.post(&path, &json!({})).await;
        assert_eq!(ended.expect(202)["state"], "finished");
    }

    /// Waits for the end of a run and returns its report.
    async fn report(&self, run: &str) -> Value {
        let mut events = self.http.follow(&format!("/runs/{run}/events")).await;
        events.rest().await.last().unwrap().data["report"].clone()
    }

    async fn state(&self, run: &str) -> Value {
        self.http.get(&format!("/runs/{run}")).await.expect(200)["run"]["state"].clone()
    }

    /// Returns the value of a metric.
    async fn gauge(&self, name: &str) -> u64 {
        let text = self.http.get("/metrics").await.text;
        let mut lines = text.lines();
        let line = lines.find(|line| line.starts_with(name) && !line.starts_with('#'));
        let value = line.and_then(|line| line.rsplit(' ').next());
        value
            .unwrap_or_else(|| panic!("{name}: {text}"))
            .parse()
            .unwrap()
    }

    fn panic_at(&self, kind: &'static str) {
        *self.script.panics_at.lock().unwrap() = Some(kind);
    }

    /// Releases waiting agents and tool calls.
    pub(crate) fn let_all(&self) {
        self.script.agents.add_permits(100);
        self.script.results.add_permits(100);
    }

    async fn wait_for(&mut self, news: &str) {
        assert_eq!(self.news.recv().await, Some(news));
    }
}

#[async_trait]
impl Engine for Script {
    async fn create_agent(
        &self,
        _: &RunSettings,
        _: &Principal,
        _: Option<&SessionId>,
    ) -> Result<Agent, RunSettingsError> {
        self.sender.send("agent").unwrap();
        self.agents.acquire().await.unwrap().forget();
        let tools = Tools {
            results: Arc::clone(&self.results),
            sender: self.sender.clone(),
        };
        Ok(Agent::new(Arc::new(Worker::new())).with_tools(Arc::new(tools)))
    }

    async fn available_models(&self) -> Vec<ModelInfo> {
        vec![ModelInfo::from_model_id(Worker::new().id())]
    }

    async fn available_recipes(&self) -> Vec<RecipeInfo> {
        Vec::new()
    }

    async fn mcp_server_states(&self) -> Vec<Value> {
        Vec::new()
    }

    async fn tool_catalog(&self) -> ToolCatalog {
        ToolCatalog::default()
    }

    async fn check_readiness(&self) -> Result<(), String> {
        Ok(())
    }

    fn create_run_observer(
        &self,
        _: &Principal,
        _: Option<&str>,
    ) -> Option<Box<dyn RunEventObserver>> {
        Some(Box::new(Panics(Arc::clone(&self.panics_at))))
    }
}

struct Panics(Arc<Mutex<Option<&'static str>>>);

#[async_trait]
impl RunEventObserver for Panics {
    async fn observe_event(&mut self, event: &RunEvent) {
        let kind = match &event.kind {
            RunEventKind::ToolFinished { .. } => "tool_finished",
            RunEventKind::ModelCallStarted { .. } => "model_call_started",
            _ => return,
        };
        let is_now = self.0.lock().unwrap().take_if(|at| *at == kind).is_some();
        assert!(!is_now, "as the test wants it");
    }
}

/// A model that calls the tool once and then answers.
struct Worker(ModelId, ModelCapabilities);

impl Worker {
    fn new() -> Self {
        Self(ModelId::new("test", "worker"), ModelCapabilities::default())
    }
}

#[async_trait]
impl ChatModel for Worker {
    fn id(&self) -> &ModelId {
        &self.0
    }

    fn capabilities(&self) -> &ModelCapabilities {
        &self.1
    }

    async fn stream(&self, request: &ChatRequest) -> Result<ModelStream, ModelError> {
        // The pause of a real model. Meanwhile the earlier events are stored and then
        // published.
        tokio::task::yield_now().await;
        let is_done = request
            .messages
            .last()
            .is_some_and(|it| it.role == Role::Tool);
        let (part, reason) = if is_done {
            (Part::text("Done."), FinishReason::Stop)
        } else {
            let call = ToolUse::new("call_1", "desk__work", ToolInput::parse_input("{}"));
            (Part::ToolUse(call), FinishReason::ToolUse)
        };
        let part = PartStart::Whole {
            part: Box::new(part),
        };
        let events = [
            ModelEvent::PartStarted { index: 0, part },
            ModelEvent::PartFinished { index: 0 },
            ModelEvent::Finished { reason, raw: None },
        ];
        Ok(Box::pin(stream::iter(events.map(Ok))))
    }
}

struct Tools {
    results: Arc<Semaphore>,
    sender: mpsc::UnboundedSender<&'static str>,
}

#[async_trait]
impl ToolHost for Tools {
    async fn list_tools(&self) -> ToolCatalog {
        let mut tool = ToolDefinition::new("desk__work", "Works.", json!({"type": "object"}));
        tool.origin = Some(ToolOrigin {
            server: "desk".to_owned(),
            tool: "work".to_owned(),
        });
        ToolCatalog {
            tools: vec![Arc::new(tool)],
            problems: Vec::new(),
        }
    }

    async fn call_tool(&self, _: ToolCall) -> Result<ToolOutput, ToolCallError> {
        self.sender.send("call").unwrap();
        self.results.acquire().await.unwrap().forget();
        Ok(ToolOutput::text("worked"))
    }

    fn watch_changes(&self) -> ToolHostChanges {
        Box::pin(stream::pending())
    }
}

fn one_each() -> ServerOptions {
    let mut options = ServerOptions::default();
    options.max_runs_each = 1;
    options
}

#[tokio::test]
async fn a_run_that_panicked_can_be_resumed() {
    let (server, run) = Own::start_and_panic_at("tool_finished").await;
    // The run is interrupted, and its permit is released.
    assert_eq!(server.state(&run).await, "interrupted");
    assert_eq!(server.gauge("switchboard_runs_active").await, 0);
    let path = format!("/runs/{run}/continue");
    let going = server.http.post(&path, &json!({})).await;
    assert_eq!(going.expect(202)["state"], "running");
    let report = server.report(&run).await;
    assert_eq!(report["answer"], "Done.", "{report}");
    assert_eq!(report["outcome"], "completed");
    let calls = report["tool_calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["is_error"]), (1, &json!(false)));
    server.http.end().await;
}

#[tokio::test]
async fn a_run_that_panicked_can_be_cancelled() {
    let (server, run) = Own::start_and_panic_at("model_call_started").await;
    server.cancel(&run).await;
    // Runs of the dialects are not stored, and their clients get an error.
    server.panic_at("tool_finished");
    let asked = json!({"model": "default", "messages": [{"role": "user", "content": "Work."}]});
    let answered = server.http.post("/v1/chat/completions", &asked).await;
    assert!(answered.status >= 500, "{answered:?}");
    let answered = server.http.post("/v1/chat/completions", &asked).await;
    let answer = &answered.expect(200)["choices"][0]["message"]["content"];
    assert_eq!(answer, "Done.");
    server.http.end().await;
}

/// Panics like a faulty store: the run is left unfinished.
#[tokio::test]
async fn a_run_that_panics_during_cancellation_is_finished() {
    let mut server = Own::start(one_each()).await;
    server.script.agents.add_permits(2);
    let asked = json!({"message": "Work.", "background": true});
    let begun = server.http.post("/chat", &asked).await.expect(202);
    let run = begun["run_id"].as_str().unwrap().to_owned();
    server.wait_for("agent").await;
    server.wait_for("call").await;
    server.panic_at("tool_finished");
    server.cancel(&run).await;
    let shown = server.http.get(&format!("/runs/{run}")).await.expect(200);
    assert_eq!(shown["report"]["outcome"], "cancelled", "{shown}");
    server.http.end().await;
}

#[tokio::test]
async fn a_run_starts_although_its_client_disconnected() {
    let said = json!({"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Work."}]});
    let ui = json!({"id": "chat-1", "messages": [said]});
    let said = json!({"id": "m1", "role": "user", "content": "Work."});
    let ag_ui = json!({
        "threadId": "chat-1", "runId": "r1", "messages": [said],
        "tools": [], "context": [], "state": {}, "forwardedProps": {},
    });
    for (path, body) in [("/api/chat", ui), ("/ag-ui", ag_ui)] {
        let mut server = Own::start(ServerOptions::default()).await;
        let address = server.http.base.trim_start_matches("http://").to_owned();
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: \
             application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut client = TcpStream::connect(&address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        // The client disconnects while the run waits for its start, and the server
        // notices it.
        server.wait_for("agent").await;
        drop(client);
        while server.gauge("switchboard_http_connections_open").await > 1 {
            tokio::task::yield_now().await;
        }
        server.let_all();
        server.wait_for("call").await;
        let sessions = server.http.get("/sessions").await.expect(200)["sessions"].clone();
        assert_eq!(sessions.as_array().unwrap().len(), 1, "{path}: {sessions}");
        assert_eq!(sessions[0]["id"], "chat-1");
        let shown = server.http.get("/sessions/chat-1").await.expect(200);
        let run = shown["runs"][0]["id"].as_str().unwrap();
        let report = server.report(run).await;
        assert_eq!(report["answer"], "Done.", "{path}: {report}");
        server.http.end().await;
    }
}

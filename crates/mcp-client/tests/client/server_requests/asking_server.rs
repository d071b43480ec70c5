//! A server that sends requests during its calls, made with the server side of the SDK.

#![allow(
    deprecated,
    reason = "sampling, roots and logging are what is tested, and servers still have them"
)]

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
        CustomNotification, ErrorCode, ErrorData, InputRequest, InputRequiredResult,
        ListToolsResult, LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams,
        ProtocolVersion, ServerCapabilities, ServerConfig, ServerNotification, ServerRequest,
        SetLevelRequestParams,
    },
    service::{NotificationContext, Peer, RequestContext},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::shared::{known_version, tools};

/// All connections share the state of the server.
#[derive(Clone)]
pub(crate) struct AskingServer {
    version: ProtocolVersion,
    /// Whether the server sends a request outside every call. It lists its tools only after the
    /// answer.
    eager: bool,
    /// The answer to a request that belonged to no call, or whose call was cancelled.
    last_answer: Arc<watch::Sender<Option<Value>>>,
    level: Arc<Mutex<Option<LoggingLevel>>>,
    visited: Arc<AtomicBool>,
    /// The number of waiting calls.
    waiting: Arc<watch::Sender<usize>>,
    released: Arc<watch::Sender<bool>>,
}

/// Returns the request that a tool sends, in a form that both protocols have.
fn server_request(tool: &str) -> Option<Value> {
    Some(match tool {
        "form" | "endless" => json!({
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "Who are you?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "minLength": 2},
                        "colour": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
                        "age": {"type": "integer", "minimum": 0},
                    },
                    "required": ["name"],
                },
            },
        }),
        "visit" => json!({
            "method": "elicitation/create",
            "params": {
                "mode": "url",
                "message": "Log in there.",
                "url": "https://example.org/login",
                "elicitationId": "matter-1",
            },
        }),
        "sample" => json!({
            "method": "sampling/createMessage",
            "params": {
                "messages": [{"role": "user", "content": {"type": "text", "text": "Say hello"}}],
                "systemPrompt": "Be brief.",
                "maxTokens": 5000,
            },
        }),
        "roots" => json!({"method": "roots/list"}),
        _ => return None,
    })
}

impl AskingServer {
    /// Creates a server with this protocol. A version such as `2025-11-25 eager` sets `eager`.
    pub(crate) fn new(version: &str) -> Self {
        let (version, eager) = match version.strip_suffix(" eager") {
            Some(version) => (version, true),
            None => (version, false),
        };
        Self {
            version: known_version(version),
            eager,
            last_answer: Arc::new(watch::Sender::new(None)),
            level: Arc::default(),
            visited: Arc::default(),
            waiting: Arc::new(watch::Sender::new(0)),
            released: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Waits until the tool `go` is called.
    async fn wait(&self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        let mut released = self.released.subscribe();
        released.wait_for(|released| *released).await.unwrap();
    }

    fn is_legacy(&self) -> bool {
        self.version.has_initialize()
    }

    /// Sends a request during a call, as in the older protocol. Returns an error as an answer.
    async fn ask(peer: &Peer<RoleServer>, request: Value) -> Value {
        let request: ServerRequest = serde_json::from_value(request).unwrap();
        match peer.send_request(request).await {
            Ok(answer) => serde_json::to_value(answer).unwrap(),
            Err(error) => json!({"error": error.to_string()}),
        }
    }

    /// Sends the request in the way of the protocol. Returns the answer.
    async fn asking(
        &self,
        tool: &str,
        request: Value,
        params: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        if self.is_legacy() {
            let answer = Self::ask(&context.peer, request).await;
            if tool == "endless" {
                self.last_answer.send_replace(Some(answer.clone()));
            }
            return text(&answer).into();
        }
        match (params.input_responses, params.request_state) {
            (Some(mut answers), Some(state)) if state == format!("{tool} \u{e4}\n") => {
                text(&answers.remove("it").unwrap_or_default()).into()
            }
            (None, None) => {
                let request: InputRequest = serde_json::from_value(request).unwrap();
                let requests = BTreeMap::from([("it".to_owned(), request)]);
                // The state may contain any character.
                let state = format!("{tool} \u{e4}\n");
                InputRequiredResult::new(Some(requests), Some(state)).into()
            }
            (answers, state) => text(&json!({"unexpected": [answers.is_some(), state]})).into(),
        }
    }

    /// Needs a visit of a URL first. The second call counts as the visit.
    async fn gated(&self, context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
        if self.visited.swap(true, Ordering::SeqCst) {
            return Ok(json!("welcome"));
        }
        let peer = context.peer.clone();
        let data = json!({"elicitations": [{
            "mode": "url", "message": "Log in there.", "url": "https://example.org/login",
            "elicitationId": "matter-2",
        }]});
        let params = json!({"elicitationId": "matter-2"});
        let done = CustomNotification::new("notifications/elicitation/complete", Some(params));
        peer.send_notification(ServerNotification::CustomNotification(done))
            .await
            .unwrap();
        Err(ErrorData::new(
            ErrorCode(-32042),
            "log in first",
            Some(data),
        ))
    }

    async fn log(&self, context: &RequestContext<RoleServer>) {
        for (level, data) in [
            (LoggingLevel::Debug, json!("details")),
            (LoggingLevel::Info, json!("key sk-secret-77 \u{1b}[31mused")),
            (LoggingLevel::Error, json!({"disk": "full"})),
        ] {
            let message = LoggingMessageNotificationParam::new(level, data).with_logger("db");
            context.peer.notify_logging_message(message).await.unwrap();
        }
    }

    /// Returns the capabilities of the client.
    fn offered(&self, context: &RequestContext<RoleServer>) -> ClientCapabilities {
        if self.is_legacy() {
            context.peer.peer_info().unwrap().capabilities.clone()
        } else {
            context.meta.client_capabilities().unwrap()
        }
    }
}

fn text(value: &Value) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(value.to_string())])
}

impl ServerHandler for AskingServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_logging()
                .enable_tools()
                .build(),
        )
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        vec![self.version.clone()].into()
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.level.lock().unwrap() = Some(request.level);
        Ok(())
    }

    /// Sends a request outside every call.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.eager {
            let answer = Self::ask(&context.peer, server_request("form").unwrap()).await;
            self.last_answer.send_replace(Some(answer));
        }
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if self.eager {
            let mut last_answer = self.last_answer.subscribe();
            last_answer.wait_for(Option::is_some).await.unwrap();
        }
        let tools = tools(&[
            "form",
            "visit",
            "endless",
            "sample",
            "roots",
            "gated",
            "last_answer",
            "log",
            "level",
            "offered",
            "wait",
            "fails",
            "late",
            "named",
            "waiting",
            "release",
        ]);
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = params.name.clone();
        if let Some(request) = server_request(&tool) {
            return Ok(self.asking(&tool, request, params, &context).await);
        }
        let answer = match tool.as_ref() {
            "gated" => self.gated(&context).await?,
            // Waits for the last answer.
            "last_answer" => {
                let mut last_answer = self.last_answer.subscribe();
                let answer = last_answer.wait_for(Option::is_some).await.unwrap();
                answer.clone().unwrap()
            }
            "wait" => {
                self.wait().await;
                json!("waited")
            }
            "fails" => {
                self.wait().await;
                let why = ContentBlock::text("\"in vain\"");
                return Ok(CallToolResult::error(vec![why]).into());
            }
            // Sends its request also after the call was cancelled.
            "late" => {
                self.wait().await;
                let answer = Self::ask(&context.peer, server_request("form").unwrap()).await;
                self.last_answer.send_replace(Some(answer.clone()));
                answer
            }
            // Sends the key of its call with the request.
            "named" => {
                let mut request = server_request("form").unwrap();
                let key = context.meta.get("switchboard/idempotency-key");
                request["params"]["_meta"] = json!({"switchboard/idempotency-key": key});
                Self::ask(&context.peer, request).await
            }
            // Waits until a call waits.
            "waiting" => {
                let mut waiting = self.waiting.subscribe();
                json!(*waiting.wait_for(|waiting| *waiting > 0).await.unwrap())
            }
            "release" => {
                self.released.send_replace(true);
                json!("released")
            }
            "log" => {
                self.log(&context).await;
                json!("logged")
            }
            "level" if self.is_legacy() => json!(*self.level.lock().unwrap()),
            "level" => json!(context.meta.log_level()),
            "offered" => {
                let mut offered = self.offered(&context);
                // Not relevant here: every client declares task support.
                offered.extensions = None;
                serde_json::to_value(offered).unwrap()
            }
            other => {
                return Err(ErrorData::invalid_params(format!("no tool {other}"), None));
            }
        };
        Ok(text(&answer).into())
    }
}

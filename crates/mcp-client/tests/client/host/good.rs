//! A correct server, made with the server side of the SDK, over stdio or HTTP and with any
//! protocol.

use std::{
    borrow::Cow,
    env,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
        Implementation, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
        ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use crate::shared::{known_version, tools};

/// All connections share the state of the server.
#[derive(Clone)]
pub(crate) struct Good {
    versions: Arc<[ProtocolVersion]>,
    cancelled: Arc<Notify>,
    running: Arc<AtomicUsize>,
    more_tools: Arc<watch::Sender<bool>>,
}

impl Good {
    pub(crate) fn new(versions: &str) -> Self {
        Self {
            versions: versions.split(',').map(known_version).collect(),
            cancelled: Arc::default(),
            running: Arc::default(),
            more_tools: Arc::new(watch::Sender::new(env::var("GROWN").is_ok())),
        }
    }

    async fn run(
        &self,
        tool: &str,
        params: &CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let text = |text: String| CallToolResult::success(vec![ContentBlock::text(text)]);
        Ok(match tool {
            "echo" => {
                let arguments = Value::Object(params.arguments.clone().unwrap_or_default());
                let mut result = text(arguments.to_string());
                result.structured_content = Some(arguments);
                result
            }
            "environment" => {
                let mut names: Vec<String> = env::vars().map(|(name, _)| name).collect();
                names.sort();
                text(names.join("\n"))
            }
            "meta" => text(serde_json::to_string(&context.meta).unwrap()),
            "fail" => CallToolResult::error(vec![ContentBlock::text("no such customer")]),
            "refuse" => return Err(ErrorData::invalid_params("`id` is missing", None)),
            "crash" => {
                std::io::stderr()
                    .write_all(b"disk full\ngiving up\n")
                    .unwrap();
                std::process::exit(3);
            }
            // Waits for its cancellation.
            "endless" => {
                context.ct.cancelled().await;
                self.cancelled.notify_one();
                text("cancelled".to_owned())
            }
            // Waits for the cancellation of an `endless` call.
            "await_cancellation" => {
                self.cancelled.notified().await;
                text("seen".to_owned())
            }
            "count" => {
                for step in 1..=3_u8 {
                    let Some(token) = context.meta.get_progress_token() else {
                        return Ok(text("nobody listens".to_owned()));
                    };
                    let progress = ProgressNotificationParam::new(token, f64::from(step))
                        .with_total(3.0)
                        .with_message(format!("step {step}"));
                    context.peer.notify_progress(progress).await.unwrap();
                }
                text("counted".to_owned())
            }
            // Works for half a second and reports progress ten times.
            "labour" => {
                for step in 1..=10_u8 {
                    // sleep: this tool takes time
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    if let Some(token) = context.meta.get_progress_token() {
                        let progress = ProgressNotificationParam::new(token, f64::from(step));
                        context.peer.notify_progress(progress).await.unwrap();
                    }
                }
                text("done".to_owned())
            }
            // Returns the number of concurrent calls of this tool.
            "crowd" => {
                let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
                // sleep: another call can start during this one
                tokio::time::sleep(Duration::from_millis(50)).await;
                self.running.fetch_sub(1, Ordering::SeqCst);
                text(running.to_string())
            }
            "grow" => {
                self.more_tools.send_replace(true);
                // With protocol 2026-07-28, clients subscribe to the notification.
                if self.versions.iter().any(ProtocolVersion::has_initialize) {
                    context.peer.notify_tool_list_changed().await.unwrap();
                }
                text("grown".to_owned())
            }
            other => {
                return Err(ErrorData::invalid_params(format!("no tool {other}"), None));
            }
        })
    }
}

impl ServerHandler for Good {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("good", "1.2.3"))
            .with_instructions("Be good.")
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.versions.to_vec().into()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = tools(&[
            "echo",
            "environment",
            "meta",
            "fail",
            "refuse",
            "crash",
            "endless",
            "await_cancellation",
            "count",
            "labour",
            "crowd",
            "grow",
            "grown",
        ]);
        if *self.more_tools.borrow() {
            // An existing tool gets another definition.
            tools[2].description = Some("Does meta, and more.".into());
        } else {
            tools.pop();
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = params.name.clone();
        self.run(&tool, &params, context).await.map(Into::into)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut more_tools = self.more_tools.subscribe();
        if *more_tools.borrow_and_update() {
            more_tools.mark_changed();
        }
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                changed = more_tools.changed() => {
                    changed.unwrap();
                    subscription.sink().notify_tool_list_changed().await.unwrap();
                }
            }
        }
    }
}

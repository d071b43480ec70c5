//! A server with all features, made with the server side of the SDK.

#![allow(
    deprecated,
    reason = "servers of the older era are subscribed to in the older way"
)]

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
        CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, CreateTaskResult,
        DetailedTask, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
        GetTaskParams, GetTaskResult, InputRequest, InputRequiredResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject,
        PaginatedRequestParams, Prompt, PromptArgument, PromptMessage, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
        ResourceContents, ResourceTemplate, ResourceUpdatedNotificationParam, Role,
        ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Task,
        TaskPayload, TaskStatus, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};

use crate::shared::{known_version, tools};

pub(crate) const APP: &str = "text/html;profile=mcp-app";

/// All connections share the state of the server.
#[derive(Clone)]
pub(crate) struct Library {
    version: ProtocolVersion,
    touched: broadcast::Sender<String>,
    /// The names of lists to send change notifications for.
    rewritten: broadcast::Sender<&'static str>,
    /// The number of streams that get change notifications.
    listening: Arc<watch::Sender<usize>>,
    prompts_listed: Arc<AtomicU32>,
    /// The subscribed resources.
    watched: Arc<watch::Sender<Vec<String>>>,
    /// The number of `tasks/get` requests for each task.
    asked_after: Arc<Mutex<HashMap<String, u32>>>,
    told: Arc<Mutex<Option<Value>>>,
    cancelled: Arc<watch::Sender<Vec<String>>>,
}

fn meta(value: Value) -> MetaObject {
    serde_json::from_value(value).unwrap()
}

fn question() -> BTreeMap<String, InputRequest> {
    let question = json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Who are you?",
            "requestedSchema": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
        },
    });
    BTreeMap::from([("who".to_owned(), serde_json::from_value(question).unwrap())])
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn task(id: &str) -> Task {
    let now = "2026-07-28T00:00:00Z";
    Task::new(id, TaskStatus::Working, now, now).with_poll_interval_ms(20)
}

impl Library {
    pub(crate) fn new(version: &str) -> Self {
        Self {
            version: known_version(version),
            touched: broadcast::Sender::new(16),
            rewritten: broadcast::Sender::new(16),
            listening: Arc::new(watch::Sender::new(0)),
            prompts_listed: Arc::default(),
            watched: Arc::new(watch::Sender::new(Vec::new())),
            asked_after: Arc::default(),
            told: Arc::default(),
            cancelled: Arc::new(watch::Sender::new(Vec::new())),
        }
    }

    fn is_older(&self) -> bool {
        self.version.has_initialize()
    }

    fn watch(&self, uri: &str) {
        self.watched
            .send_modify(|watched| watched.push(uri.to_owned()));
    }

    fn unwatch(&self, uri: &str) {
        self.watched.send_modify(|watched| {
            let at = watched.iter().position(|one| one == uri);
            watched.remove(at.expect("it was watched"));
        });
    }
}

/// Removes the subscriptions of a stream when the stream ends.
struct Listening<'a>(&'a Library, Vec<String>);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        for uri in &self.1 {
            self.0.unwatch(uri);
        }
    }
}

impl ServerHandler for Library {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_completions()
                .enable_prompts()
                .enable_prompts_list_changed()
                .enable_resources()
                .enable_resources_list_changed()
                .enable_resources_subscribe()
                .enable_tools()
                .enable_tasks()
                .build(),
        )
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        vec![self.version.clone()].into()
    }

    /// Returns the resources in two pages.
    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        if request.and_then(|request| request.cursor).as_deref() == Some("2") {
            let logo = Resource::new("f:///logo", "logo").with_size(4);
            return Ok(ListResourcesResult::with_all_items(vec![logo]));
        }
        let notes = Resource::new("f:///notes", "notes")
            .with_title("Notes")
            .with_description("What was noted")
            .with_mime_type("text/plain");
        let mut page = Resource::new("ui://report", "report").with_mime_type(APP);
        page.meta = Some(meta(json!({"ui": {"prefersBorder": true}})));
        let mut result = ListResourcesResult::with_all_items(vec![notes, page]);
        result.next_cursor = Some("2".to_owned());
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("f:///{path}", "files").with_mime_type("text/plain");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let contents = match uri {
            "f:///notes" => ResourceContents::text("noted", uri),
            "f:///logo" => ResourceContents::blob("AAECAw==", uri).with_mime_type("image/png"),
            "ui://report" => ResourceContents::text("<p>report</p>", uri)
                .with_mime_type(APP)
                .with_meta(meta(json!({"ui": {"csp": {"connectDomains": []}}}))),
            "ui://plain" => ResourceContents::text("<p>plain</p>", uri).with_mime_type("text/html"),
            // This resource needs the name of the user first.
            "f:///private" => match request.input_responses {
                None => {
                    return Ok(InputRequiredResult::new(Some(question()), None).into());
                }
                Some(answers) => ResourceContents::text(answers["who"].to_string(), uri),
            },
            other => {
                let why = format!("there is no {other}");
                return Err(ErrorData::invalid_params(why, None));
            }
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watch(&request.uri);
        if request.uri == "f:///slow" {
            // sleep: the response takes longer than the time limit of an unsubscription
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.unwatch(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        let uris = accepted.resource_subscriptions.take();
        let uris = uris.into_iter().flatten();
        let known: Vec<String> = uris.filter(|uri| uri.starts_with("f:///")).collect();
        accepted.resource_subscriptions = (!known.is_empty()).then_some(known);
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let uris = subscription.accepted().resource_subscriptions.clone();
        let uris = uris.unwrap_or_default();
        let mut touched = self.touched.subscribe();
        for uri in &uris {
            self.watch(uri);
        }
        let _listening = Listening(self, uris.clone());
        let tells_of_lists = subscription.accepted().prompts_list_changed == Some(true);
        let mut rewritten = self.rewritten.subscribe();
        if tells_of_lists {
            self.listening.send_modify(|listening| *listening += 1);
        }
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                list = rewritten.recv() => {
                    let sink = subscription.sink();
                    match list.unwrap() {
                        _ if !tells_of_lists => {}
                        "prompts" => sink.notify_prompt_list_changed().await.unwrap(),
                        _ => sink.notify_resource_list_changed().await.unwrap(),
                    }
                }
                uri = touched.recv() => {
                    let uri = uri.unwrap();
                    if uris.contains(&uri) {
                        subscription.sink().notify_resource_updated(uri).await.unwrap();
                    }
                }
            }
        }
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = vec![
            PromptArgument::new("name")
                .with_title("Name")
                .with_description("Who is greeted")
                .with_required(true),
            PromptArgument::new("tone"),
        ];
        self.prompts_listed.fetch_add(1, Ordering::Relaxed);
        let greet = Prompt::new("greet", Some("Greets somebody"), Some(arguments));
        let greet = vec![greet.with_title("Greet")];
        let listed = ListPromptsResult::with_all_items(greet);
        Ok(listed
            .with_ttl_ms(3_600_000)
            .with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let Some(name) = arguments.get("name").and_then(Value::as_str) else {
            return Err(ErrorData::invalid_params("`name` is missing", None));
        };
        let messages = vec![
            PromptMessage::new_text(Role::User, format!("Greet {name}")),
            PromptMessage::new(Role::Assistant, ContentBlock::image("AA==", "image/png")),
        ];
        let mut result = GetPromptResult::new(messages);
        result.description = Some("A greeting".to_owned());
        Ok(result.into())
    }

    /// Returns its own parameters.
    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let asked = vec![
            serde_json::to_string(&request.r#ref).unwrap(),
            format!("{}={}", request.argument.name, request.argument.value),
            serde_json::to_string(&request.context).unwrap(),
        ];
        let info = CompletionInfo::with_pagination(asked, Some(7), true).unwrap();
        Ok(CompleteResult::new(info))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = tools(&[
            "touch",
            "watched",
            "crash",
            "work",
            "fail",
            "ask",
            "endless",
            "lost",
            "cancelled",
            "rewrite",
            "listed",
            "offered",
            "report",
        ]);
        let report = tools.last_mut().unwrap();
        let ui = json!({"ui": {"resourceUri": "ui://report", "visibility": ["app"]}});
        report.meta = Some(meta(ui));
        let crash = tools.iter_mut().find(|tool| tool.name == "crash").unwrap();
        crash.meta = Some(meta(json!({"ui": {"visibility": ["model"]}})));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(match params.name.as_ref() {
            "touch" => {
                let uri = params.arguments.unwrap()["uri"]
                    .as_str()
                    .unwrap()
                    .to_owned();
                if self.is_older() {
                    if !self.watched.borrow().is_empty() {
                        let updated = ResourceUpdatedNotificationParam::new(uri);
                        context.peer.notify_resource_updated(updated).await.unwrap();
                    }
                } else {
                    // The send fails if no stream listens.
                    let _ = self.touched.send(uri);
                }
                text("touched").into()
            }
            // Waits until this number of resources is subscribed.
            "watched" => {
                let count = &params.arguments.unwrap()["count"];
                let mut watched = self.watched.subscribe();
                let is_so = |watched: &Vec<String>| json!(watched.len()) == *count;
                watched.wait_for(is_so).await.unwrap();
                text("so it is").into()
            }
            "crash" => std::process::exit(3),
            "rewrite" => {
                let prompts = params.arguments.unwrap()["list"] == "prompts";
                if !self.is_older() {
                    // The client subscribes in the background after the start.
                    let mut listening = self.listening.subscribe();
                    listening
                        .wait_for(|listening| *listening > 0)
                        .await
                        .unwrap();
                    let list = if prompts { "prompts" } else { "resources" };
                    self.rewritten.send(list).unwrap();
                } else if prompts {
                    context.peer.notify_prompt_list_changed().await.unwrap();
                } else {
                    context.peer.notify_resource_list_changed().await.unwrap();
                }
                text("rewritten").into()
            }
            "listed" => text(self.prompts_listed.load(Ordering::Relaxed).to_string()).into(),
            "offered" => {
                let here = context.meta.client_capabilities();
                let once = context.peer.peer_info();
                let once = once.map(|client| client.capabilities.clone());
                let offered = here.or(once).unwrap_or_default().extensions;
                text(serde_json::to_string(&offered).unwrap()).into()
            }
            // Waits until a task is cancelled.
            "cancelled" => {
                let mut cancelled = self.cancelled.subscribe();
                let cancelled = cancelled.wait_for(|ids| !ids.is_empty()).await.unwrap();
                text(cancelled.join(",")).into()
            }
            // With protocol 2026-07-28, the other tools become tasks if the client supports tasks.
            tool => {
                let offered = context.meta.client_capabilities();
                if !offered.is_some_and(|offered| offered.supports_tasks()) {
                    return Ok(text("no task").into());
                }
                let task = task(tool).with_status_message("begun");
                CallToolResponse::Task(CreateTaskResult::new(task))
            }
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let asked = {
            let mut asked_after = self.asked_after.lock().unwrap();
            let asked = asked_after.entry(request.task_id.clone()).or_default();
            *asked += 1;
            *asked
        };
        let complete = |said: String| {
            let result = serde_json::to_value(text(said)).unwrap();
            let result = result.as_object().unwrap().clone();
            TaskPayload::Completed { result }
        };
        let task = task(&request.task_id);
        let (task, payload) = match request.task_id.as_str() {
            "work" if asked < 3 => (task.with_status_message("halfway"), TaskPayload::Working),
            "work" => (task, complete("done".to_owned())),
            "fail" => {
                let error = json!({"code": -32001, "message": "no paper for sk-secret-77"});
                let error = error.as_object().unwrap().clone();
                (task, TaskPayload::Failed { error })
            }
            "ask" => {
                let told = self.told.lock().unwrap();
                let input_requests = question();
                let wants = TaskPayload::InputRequired { input_requests };
                let told = told.as_ref().map(|told| complete(told.to_string()));
                (task, told.unwrap_or(wants))
            }
            "endless" => (task, TaskPayload::Working),
            _ => return Err(ErrorData::invalid_params("there is no such task", None)),
        };
        Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut answers = request.input_responses;
        let earlier = self
            .told
            .lock()
            .unwrap()
            .replace(answers.remove("who").unwrap());
        assert_eq!(earlier, None, "an answer is told once");
        Ok(())
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.cancelled.send_modify(|ids| ids.push(request.task_id));
        Ok(())
    }
}

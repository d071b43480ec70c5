//! The client side of one MCP connection: its identity, its capabilities, and its handlers of
//! requests and notifications from the server.

#![allow(
    deprecated,
    reason = "servers of 2025-11-25 and older use logging, sampling and roots"
)]

use std::sync::Arc;

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomNotification,
        CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ElicitationAction,
        ErrorCode, ErrorData, Implementation, JsonObject, ListRootsResult,
        LoggingMessageNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam,
        TASKS_EXTENSION_ID, TaskStatusNotificationParams,
    },
    service::{NotificationContext, RequestContext as McpContext},
};
use serde_json::{Value, json};

use crate::{
    server::{list_cache::ListKind, state::Server, stderr_and_logs::record_log},
    tools::visibility::{APP_MEDIA_TYPE, APPS_EXTENSION_ID},
    transport::{call_context::RequestContext, open_requests::OpenRequests},
};

/// Method of the MCP 2025-11-25 notification that a URL elicitation is complete.
const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

/// Handler of the messages that a server sends on one connection. The client declares only the
/// capabilities that the application and the configuration of the server support, and rejects
/// requests that need another capability.
pub(crate) struct ConnectionHandler {
    pub(crate) server: Arc<Server>,
    /// Requests of the client on this connection that the server has not answered.
    pub(crate) open_requests: OpenRequests,
    /// MCP protocol version that the client sends in `initialize`.
    pub(crate) version: ProtocolVersion,
}

impl ConnectionHandler {
    /// Waits for `answer`, the answer to a server request. Returns `None` if the server cancels the
    /// request, or if every call that may have caused the request has ended.
    async fn wait_for_answer<T>(
        &self,
        mcp: &McpContext<RoleClient>,
        context: &RequestContext,
        answer: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            () = mcp.ct.cancelled() => None,
            () = self.open_requests.wait_until_calls_end(context) => None,
            answer = answer => Some(answer),
        }
    }

    async fn handle_elicitation(
        &self,
        params: Value,
        mcp: &McpContext<RoleClient>,
    ) -> Result<Value, ErrorData> {
        let answer = async {
            let context = request_context(mcp)?;
            let answer = self.server.responder.answer_elicitation(params, &context);
            self.wait_for_answer(mcp, &context, answer).await
        };
        answer.await.unwrap_or_else(|| {
            tracing::debug!(
                server = self.server.config.name,
                "received an elicitation without a running call"
            );
            Ok(json!({"action": "cancel"}))
        })
    }
}

/// Returns the calls that a server request may belong to. The transport stores them in the
/// extensions of the message.
fn request_context(mcp: &McpContext<RoleClient>) -> Option<RequestContext> {
    mcp.extensions.get::<RequestContext>().cloned()
}

fn call_ended_error() -> ErrorData {
    let message = "the call that this request belongs to has ended";
    ErrorData::new(ErrorCode::INVALID_REQUEST, message, None)
}

impl ClientHandler for ConnectionHandler {
    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        mcp: McpContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let context = request_context(&mcp).ok_or_else(call_ended_error)?;
        let answer = self.server.responder.answer_sampling(params, &context);
        let answer = self.wait_for_answer(&mcp, &context, answer).await;
        answer.unwrap_or_else(|| Err(call_ended_error()))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        mcp: McpContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(params).unwrap_or_default();
        let answer = self.handle_elicitation(params, &mcp).await?;
        serde_json::from_value(answer).or(Ok(ElicitResult::new(ElicitationAction::Cancel)))
    }

    async fn list_roots(&self, _: McpContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.server.responder.list_roots()
    }

    /// Handles a server request that rmcp could not parse, such as a form with an unknown field
    /// type.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        mcp: McpContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let params = request.params.unwrap_or_default();
        if request.method == "elicitation/create" {
            return self
                .handle_elicitation(params, &mcp)
                .await
                .map(CustomResult::new);
        }
        let context = request_context(&mcp).ok_or_else(call_ended_error)?;
        let answer = self
            .server
            .responder
            .answer_request(&request.method, params, &context);
        let answer = self.wait_for_answer(&mcp, &context, answer).await;
        answer
            .unwrap_or_else(|| Err(call_ended_error()))
            .map(CustomResult::new)
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _: NotificationContext<RoleClient>,
    ) {
        let params = notification.params.unwrap_or_default();
        if notification.method == ELICITATION_COMPLETE
            && let Some(id) = params.get("elicitationId").and_then(Value::as_str)
        {
            self.server.responder.complete_url_elicitation(id);
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let Server {
            config,
            redactor,
            logs,
            ..
        } = &*self.server;
        record_log(logs, &config.name, redactor, config.log_level, params);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        // Sending fails if the application watches no resource.
        let _ = self.server.resource_updates.send(params.uri);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.server.list_cache.mark_list_changed(ListKind::Tools);
        self.server.relist_requested.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.server.list_cache.mark_list_changed(ListKind::Prompts);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.server
            .list_cache
            .mark_list_changed(ListKind::Resources);
    }

    async fn on_task_status(
        &self,
        params: TaskStatusNotificationParams,
        _: NotificationContext<RoleClient>,
    ) {
        let task = serde_json::to_value(params.task).unwrap_or_default();
        // Sending fails if no call waits for a task to end.
        let _ = self.server.task_updates.send(task);
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = self.server.responder.client_capabilities();
        let extensions = capabilities.extensions.get_or_insert_default();
        extensions.insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
        if self.server.supports_apps {
            let mut types = JsonObject::new();
            types.insert("mimeTypes".to_owned(), json!([APP_MEDIA_TYPE]));
            extensions.insert(APPS_EXTENSION_ID.to_owned(), types);
        }
        let identity = Implementation::new("switchboard", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, identity).with_protocol_version(self.version.clone())
    }
}

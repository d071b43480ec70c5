//! Our side of the protocol: who we are, and what we answer to a server's own requests.

#![allow(
    deprecated,
    reason = "servers of the older era still log, and ask for samples and roots"
)]

use std::sync::Arc;

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomNotification,
        CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ElicitationAction,
        ErrorCode, ErrorData, Implementation, ListRootsResult, LoggingMessageNotificationParam,
        ProtocolVersion, ResourceUpdatedNotificationParam, TaskStatusNotificationParams,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    calls::tasks::{TaskNews, offered},
    features::{
        list_cache::{ListKind, Lists},
        resource_updates::Told,
    },
    redact::Redactor,
    server::{
        logs::{LogLevel, LogTail},
        state::Server,
    },
    server_requests::{responder::Asks, within::Within},
    transport::open_requests::OpenRequests,
};

/// How a server of 2025-11-25 says that it is done with an address that a person was to visit.
const DONE: &str = "notifications/elicitation/complete";
/// Of a question that was withdrawn: nobody waits for what the server would do with an answer.
const WITHDRAWN: &str = "the request that this belonged to is over";

/// One connection's client side. What nobody answers is not offered as a capability; a server that asks
/// anyway is declined at once, so that it does not wait for a person who is not asked.
pub(crate) struct ClientSide {
    server: String,
    redactor: Redactor,
    asks: Arc<Asks>,
    logs: LogTail,
    log_level: LogLevel,
    open: OpenRequests,
    tools_changed: Arc<Notify>,
    told: Told,
    lists: Arc<Lists>,
    tasks: TaskNews,
    shows_apps: bool,
    version: ProtocolVersion,
}

impl ClientSide {
    /// `open` are our own requests on the connection; `version` is the one named in `initialize`.
    pub(crate) fn new(
        server: &Server,
        open: OpenRequests,
        tools_changed: Arc<Notify>,
        version: ProtocolVersion,
    ) -> Self {
        Self {
            server: server.config.name.clone(),
            redactor: server.redactor.clone(),
            asks: server.asks.clone(),
            logs: server.logs.clone(),
            log_level: server.config.log_level,
            open,
            tools_changed,
            told: server.told.clone(),
            lists: server.lists.clone(),
            tasks: server.tasks.clone(),
            shows_apps: server.shows_apps,
            version,
        }
    }

    /// Waits for an answer as long as the server has a use for it: until it withdraws its question,
    /// or until every call of ours within which it may ask is over. `None` after that, and at once
    /// if there is none, for a question belongs to a call.
    async fn within_a_call<T>(
        &self,
        context: &RequestContext<RoleClient>,
        within: &Within,
        answer: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            () = context.ct.cancelled() => None,
            () = within.over(&self.open) => None,
            answer = answer => Some(answer),
        }
    }

    async fn elicitation(
        &self,
        params: Value,
        context: &RequestContext<RoleClient>,
    ) -> Result<Value, ErrorData> {
        let asked = async {
            let within = within(context)?;
            let asked = self.asks.elicit(params, &within);
            self.within_a_call(context, &within, asked).await
        };
        asked.await.unwrap_or_else(|| {
            tracing::debug!(
                server = self.server,
                "a question outside a call, or after it"
            );
            Ok(serde_json::json!({"action": "cancel"}))
        })
    }
}

/// Within which request the server asks; the wire has written it there, where requests and answers are seen in
/// order.
fn within(context: &RequestContext<RoleClient>) -> Option<Within> {
    context.extensions.get::<Within>().cloned()
}

fn withdrawn() -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, WITHDRAWN, None)
}

impl ClientHandler for ClientSide {
    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let within = within(&context).ok_or_else(withdrawn)?;
        let answer = self.asks.sample(params, &within);
        self.within_a_call(&context, &within, answer)
            .await
            .unwrap_or_else(|| Err(withdrawn()))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(params).unwrap_or_default();
        let answer = self.elicitation(params, &context).await?;
        // It is one of ours.
        serde_json::from_value(answer).or(Ok(ElicitResult::new(ElicitationAction::Cancel)))
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.asks.list_roots()
    }

    /// What rmcp could not read as the request that it is.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let params = request.params.unwrap_or_default();
        if request.method == "elicitation/create" {
            return self
                .elicitation(params, &context)
                .await
                .map(CustomResult::new);
        }
        let within = within(&context).ok_or_else(withdrawn)?;
        let answer = self.asks.answer_one(&request.method, params, &within);
        self.within_a_call(&context, &within, answer)
            .await
            .unwrap_or_else(|| Err(withdrawn()))
            .map(CustomResult::new)
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        let params = notification.params.unwrap_or_default();
        if notification.method == DONE
            && let Some(matter) = params.get("elicitationId").and_then(Value::as_str)
        {
            self.asks.done_with(matter);
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.logs
            .take(&self.server, &self.redactor, self.log_level, params);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.told.tell(params.uri);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.lists.changed(ListKind::Tools);
        self.tools_changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.lists.changed(ListKind::Prompts);
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.lists.changed(ListKind::Resources);
    }

    async fn on_task_status(
        &self,
        params: TaskStatusNotificationParams,
        _context: NotificationContext<RoleClient>,
    ) {
        self.tasks.tell(&params.task);
    }

    fn get_info(&self) -> ClientConfig {
        let identity = Implementation::new("switchboard", env!("CARGO_PKG_VERSION"));
        let offered = offered(self.asks.capabilities(), self.shows_apps);
        ClientConfig::new(offered, identity).with_protocol_version(self.version.clone())
    }
}

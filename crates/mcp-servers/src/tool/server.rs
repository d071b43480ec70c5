//! The MCP request handler of all bundled servers.

use std::{convert::Infallible, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, Implementation, ListResourcesResult,
        ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
        ResourceContents, ResourcesCapability, ServerCapabilities, ServerConfig, Tool,
    },
    service::{RequestContext, RoleServer},
};

use tokio_util::sync::CancellationToken;

use super::{AppPage, BundledServer, BundledTool};
use crate::text::suggest_name;

/// Time for which a client may cache lists and resources, in milliseconds. They never change.
const TTL_MS: u64 = 60 * 60 * 1000;

/// Media type of the HTML pages of MCP Apps.
const APP_MEDIA_TYPE: &str = "text/html;profile=mcp-app";

/// Interval between two progress notifications of a tool call. It is shorter than the usual
/// time-outs of clients.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum time for completing a running tool call after a shutdown request. The MCP library rmcp
/// also waits two seconds for pending responses before it closes the connection.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// An MCP server with a fixed list of tools. Clones share the tools.
#[derive(Clone)]
pub(crate) struct ToolServer {
    inner: Arc<ToolServerState>,
    /// Token that is cancelled to request a shutdown.
    stop: CancellationToken,
}

struct ToolServerState {
    config: ServerConfig,
    tools: Vec<BundledTool>,
}

impl ToolServer {
    /// Creates a server. `instructions` describe the server and its tools to the model.
    pub(crate) fn new(
        identity: BundledServer,
        instructions: String,
        tools: Vec<BundledTool>,
    ) -> Self {
        let implementation = Implementation::new(identity.name, env!("CARGO_PKG_VERSION"))
            .with_title(identity.title)
            .with_description(identity.description);
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        if tools.iter().any(|tool| tool.app.is_some()) {
            capabilities.resources = Some(ResourcesCapability::default());
        }
        let config = ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(instructions);
        Self {
            inner: Arc::new(ToolServerState { config, tools }),
            stop: CancellationToken::new(),
        }
    }

    /// Sets the token whose cancellation requests a shutdown. After its cancellation, running tool
    /// calls have two seconds to complete.
    pub(crate) fn with_shutdown_token(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    fn find_tool(&self, name: &str) -> Option<&BundledTool> {
        let mut tools = self.inner.tools.iter();
        tools.find(|tool| tool.definition().name == name)
    }

    fn apps(&self) -> impl Iterator<Item = &'static AppPage> {
        self.inner.tools.iter().filter_map(|tool| tool.app)
    }

    /// Returns the protocol error (`invalid params`) for a call of an unknown tool. The error
    /// suggests a similar name and lists all tools.
    fn unknown_tool_error(&self, name: &str) -> ErrorData {
        let known = || {
            let tools = self.inner.tools.iter();
            tools.map(|tool| tool.definition().name.as_ref())
        };
        let suggestion = suggest_name(name, known());
        let known = known().collect::<Vec<_>>().join(", ");
        let message = format!("Unknown tool {name}.{suggestion} Available tools: {known}.");
        ErrorData::invalid_params(message, None)
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        self.inner.config.clone()
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.inner.tools.iter();
        let tools = tools.map(|tool| tool.definition().clone()).collect();
        Ok(ListToolsResult::with_all_items(tools)
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = self
            .apps()
            .map(|app| Resource::new(app.uri, app.name).with_mime_type(APP_MEDIA_TYPE));
        Ok(ListResourcesResult::with_all_items(resources.collect())
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let app = self.apps().find(|app| app.uri == request.uri);
        let app = app.ok_or_else(|| {
            ErrorData::resource_not_found(format!("Unknown resource {}.", request.uri), None)
        })?;
        let page = ResourceContents::text(app.html, app.uri).with_mime_type(APP_MEDIA_TYPE);
        let result = ReadResourceResult::new(vec![page]);
        Ok(result
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public)
            .into())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.find_tool(name).map(|tool| tool.definition().clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self
            .find_tool(&request.name)
            .ok_or_else(|| self.unknown_tool_error(&request.name))?;
        let arguments = request.arguments.unwrap_or_default();
        let mut call = Box::pin(tool.call(arguments));
        tokio::select! {
            biased;
            result = &mut call => return Ok(result.into()),
            () = context.ct.cancelled() => {}
            never = send_progress(&context) => match never {},
        }
        if self.stop.is_cancelled()
            && let Ok(result) = tokio::time::timeout(SHUTDOWN_TIMEOUT, call).await
        {
            return Ok(result.into());
        }
        // The client has cancelled the request, or the call did not complete within
        // `SHUTDOWN_TIMEOUT` after a shutdown request.
        Err(ErrorData::internal_error("cancelled", None))
    }
}

/// Sends progress notifications for a tool call until this future is dropped, so that a long
/// command or query does not exceed the time-out of the client. Sends nothing if the client has not
/// requested progress with a progress token.
async fn send_progress(context: &RequestContext<RoleServer>) -> Infallible {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    let mut elapsed = Duration::ZERO;
    loop {
        tokio::time::sleep(PROGRESS_INTERVAL).await;
        elapsed += PROGRESS_INTERVAL;
        let message = format!("running for {} seconds", elapsed.as_secs());
        let progress = ProgressNotificationParam::new(token.clone(), elapsed.as_secs_f64());
        // Errors are ignored, because a lost progress notification does not affect the result.
        let _ = context
            .peer
            .notify_progress(progress.with_message(message))
            .await;
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

//! The one MCP handler of this crate: any list of tools as a server.

use std::{convert::Infallible, sync::Arc, time::Duration};

use rmcp::{
    ErrorData, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool,
    },
    service::{RequestContext, RoleServer},
};

use tokio_util::sync::CancellationToken;

use crate::{
    catalogue::BundledServer,
    tool::{BundledTool, ServedTool},
};
use switchboard_domain::nearest::nearest;

/// How long a client may keep the list of tools: it never changes while the process runs.
const LIST_TTL_MS: u64 = 60 * 60 * 1000;

/// How often a client hears that a call is still at work: well within the time-out of any client,
/// and not at all for a call that is as short as most.
const PROGRESS: Duration = Duration::from_secs(10);

/// How long a call may take to end after its server was told to. rmcp waits so long for the answer.
const LAST_ANSWER: Duration = Duration::from_secs(2);

/// A server of tools. Cloning is cheap and gives the same server.
#[derive(Clone)]
pub(crate) struct ToolServer {
    inner: Arc<Inner>,
    /// The server as a whole is to end.
    stop: CancellationToken,
}

struct Inner {
    config: ServerConfig,
    tools: Vec<ServedTool>,
}

impl ToolServer {
    /// `instructions` tell the model what the server is for and how its tools belong together.
    pub(crate) fn build(identity: BundledServer, instructions: String) -> ToolServerBuilder {
        let implementation = Implementation::new(identity.name, env!("CARGO_PKG_VERSION"))
            .with_title(identity.title)
            .with_description(identity.description);
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ToolServerBuilder(Inner {
            config: ServerConfig::new(capabilities)
                .with_server_info(implementation)
                .with_instructions(instructions),
            tools: Vec::new(),
        })
    }

    /// When `stop` is cancelled, calls that are being worked on still have a moment to be answered.
    pub(crate) fn ending_with(mut self, stop: CancellationToken) -> Self {
        self.stop = stop;
        self
    }

    fn find(&self, name: &str) -> Option<&ServedTool> {
        self.inner
            .tools
            .iter()
            .find(|tool| tool.definition().name == name)
    }

    /// The protocol wants an error of its own for a tool that is not there.
    fn no_such_tool(&self, name: &str) -> ErrorData {
        let known = || {
            let tools = self.inner.tools.iter();
            tools.map(|tool| tool.definition().name.as_ref())
        };
        let meant = nearest(name, known())
            .map_or_else(String::new, |meant| format!(" Did you mean {meant}?"));
        let known = known().collect::<Vec<_>>().join(", ");
        let message = format!("There is no tool {name}.{meant} The tools are {known}.");
        ErrorData::invalid_params(message, None)
    }
}

/// A [`ToolServer`] that still gets its tools.
pub(crate) struct ToolServerBuilder(Inner);

impl ToolServerBuilder {
    /// Adds a tool to the end of the list.
    pub(crate) fn with(mut self, tool: impl BundledTool) -> Self {
        self.0.tools.push(ServedTool::new(tool));
        self
    }

    /// Adds a tool that the settings may leave out.
    pub(crate) fn with_some(self, tool: Option<impl BundledTool>) -> Self {
        match tool {
            Some(tool) => self.with(tool),
            None => self,
        }
    }

    pub(crate) fn finish(self) -> ToolServer {
        ToolServer {
            inner: Arc::new(self.0),
            stop: CancellationToken::new(),
        }
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
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.find(name).map(|tool| tool.definition().clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self
            .find(&request.name)
            .ok_or_else(|| self.no_such_tool(&request.name))?;
        let arguments = request.arguments.unwrap_or_default();
        let mut call = Box::pin(tool.call(arguments));
        tokio::select! {
            biased;
            result = &mut call => return Ok(result.into()),
            () = context.ct.cancelled() => {}
            never = tell_progress(&context) => match never {},
        }
        if self.stop.is_cancelled()
            && let Ok(result) = tokio::time::timeout(LAST_ANSWER, call).await
        {
            return Ok(result.into());
        }
        // Nobody waits for the result any more. With the call ends what it is at.
        Err(ErrorData::internal_error("cancelled", None))
    }
}

/// Tells a client that asked for it that the call is still at work, so that its own time-out need
/// not strike before that of a command or a query does. Never ends.
async fn tell_progress(context: &RequestContext<RoleServer>) -> Infallible {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    let mut told = Duration::ZERO;
    loop {
        tokio::time::sleep(PROGRESS).await;
        told += PROGRESS;
        let message = format!("at work for {} seconds", told.as_secs());
        let progress = ProgressNotificationParam::new(token.clone(), told.as_secs_f64());
        // A client that does not hear it loses nothing but that.
        let _ = context
            .peer
            .notify_progress(progress.with_message(message))
            .await;
    }
}

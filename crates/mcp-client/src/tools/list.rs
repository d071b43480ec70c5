//! Listing the tools of a server.

use rmcp::{
    RoleClient,
    model::{
        ClientRequest, ErrorCode, Extensions, ListToolsRequest, ListToolsRequestMethod,
        PaginatedRequestParams,
    },
    service::{Peer, PeerRequestOptions, ServiceError},
};
use serde_json::{Value, json};

use crate::{
    features::list_cache::Freshness,
    server::state::Server,
    tools::{
        catalog::ServerTools,
        convert::{self, ListedTool},
        pagination::{PagedList, read_pages},
    },
    transport::failure::TransportFailure,
};

/// Lists the tools of a server. Returns the reason if the first page fails. Later failures and
/// invalid tools become problems of the result.
pub(crate) async fn list_tools(
    server: &Server,
    peer: &Peer<RoleClient>,
) -> Result<ServerTools, String> {
    let clean = |text: String| server.redact(text);
    let mut list = ToolList { server, peer };
    let pages = read_pages(&mut list).await.map_err(clean)?;
    let problems = pages.problems.into_iter().map(clean).collect();
    let mut tools = ServerTools::new(&server.config, pages.items, problems);
    tools.freshness = pages.hint.map(Freshness::new);
    Ok(tools)
}

struct ToolList<'a> {
    server: &'a Server,
    peer: &'a Peer<RoleClient>,
}

impl PagedList for ToolList<'_> {
    type Item = ListedTool;
    type Error = String;

    const KEY: &'static str = "tools";

    async fn fetch(&mut self, cursor: Option<String>) -> Result<Value, String> {
        let info = self.peer.peer_info();
        let has_capability = info.is_none_or(|info| info.capabilities.tools.is_some());
        match fetch_page(self.peer, cursor).await {
            // Some servers have tools without the capability, so the request is sent in any case.
            Err(ServiceError::McpError(error))
                if error.code == ErrorCode::METHOD_NOT_FOUND && !has_capability =>
            {
                Ok(json!({"tools": []}))
            }
            page => page.map_err(|error| failure_reason(&error)),
        }
    }

    fn parse(&self, tool: &Value) -> Result<ListedTool, String> {
        convert::tool_from_json(&self.server.config.name, tool)
    }

    fn malformed(&self, reason: String) -> String {
        reason
    }
}

async fn fetch_page(
    peer: &Peer<RoleClient>,
    cursor: Option<String>,
) -> Result<Value, ServiceError> {
    // `Peer::list_tools` fails for a page with one invalid tool.
    let request = ListToolsRequest {
        method: ListToolsRequestMethod,
        params: cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor))),
        extensions: Extensions::default(),
    };
    let request = ClientRequest::ListToolsRequest(request);
    let options = PeerRequestOptions::no_options();
    let handle = peer.send_request_with_option(request, options).await?;
    let result = handle.await_response().await?;
    Ok(serde_json::to_value(result).unwrap_or_default())
}

fn failure_reason(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            "it does not support `tools/list`".to_owned()
        }
        ServiceError::McpError(error) => format!("{} (code {})", error.message, error.code.0),
        ServiceError::TransportSend(error) => TransportFailure::new(error).into_reason(),
        ServiceError::TransportClosed => "it closed the connection".to_owned(),
        other => other.to_string(),
    }
}

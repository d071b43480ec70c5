//! Requests the list of a server's tools (`tools/list`).

use rmcp::{
    RoleClient,
    model::ErrorCode,
    service::{Peer, PeerRequestOptions, ServiceError},
};
use serde_json::{Value, json};
use switchboard_domain::redact::Redactor;

use crate::{
    config::ServerConfig,
    tools::{
        catalog::ServerTools,
        convert,
        pagination::{collect_pages, page_request},
    },
    transport::failure::TransportFailure,
};

/// Lists the tools of a server. Returns an error with the reason if the first page fails. Failures
/// of later pages and invalid tools are recorded as problems.
pub(crate) async fn list_tools(
    config: &ServerConfig,
    redactor: &Redactor,
    peer: &Peer<RoleClient>,
) -> Result<ServerTools, String> {
    let clean = |text: String| redactor.redact_known(&text).into_owned();
    let list = collect_pages(
        "tools",
        |cursor| fetch_tool_page(peer, cursor),
        |tool| convert::tool_from_json(&config.name, tool),
        |reason| format!("the answer {reason}"),
    );
    let list = list.await.map_err(clean)?;
    let problems = list.problems.into_iter().map(clean).collect();
    let mut tools = ServerTools::new(config, list.items, problems);
    tools.freshness = list.freshness;
    Ok(tools)
}

async fn fetch_tool_page(peer: &Peer<RoleClient>, cursor: Option<String>) -> Result<Value, String> {
    let info = peer.peer_info();
    let has_capability = info.is_none_or(|info| info.capabilities.tools.is_some());
    match fetch_page(peer, cursor).await {
        // Some servers offer tools without declaring the `tools` capability, so `tools/list` is
        // always sent. If such a server answers `Method not found`, it has no tools.
        Err(ServiceError::McpError(error))
            if error.code == ErrorCode::METHOD_NOT_FOUND && !has_capability =>
        {
            Ok(json!({"tools": []}))
        }
        page => page.map_err(|error| failure_reason(&error)),
    }
}

async fn fetch_page(
    peer: &Peer<RoleClient>,
    cursor: Option<String>,
) -> Result<Value, ServiceError> {
    // `Peer::list_tools` is not used, because it rejects a page that contains one invalid tool.
    let request = page_request("tools/list", cursor);
    let options = PeerRequestOptions::no_options();
    let handle = peer.send_request_with_option(request, options).await?;
    let result = handle.await_response().await?;
    Ok(serde_json::to_value(result).unwrap_or_default())
}

fn failure_reason(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            "the server does not support `tools/list`".to_owned()
        }
        ServiceError::McpError(error) => format!("{} (code {})", error.message, error.code.0),
        ServiceError::TransportSend(error) => TransportFailure::new(error).reason,
        ServiceError::TransportClosed => "the server closed the connection".to_owned(),
        other => other.to_string(),
    }
}

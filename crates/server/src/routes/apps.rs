//! Routes for HTML pages of MCP servers, which show tool results (MCP Apps).

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{App, Problem, ToolPage, http::extractors::QueryParameters};

/// The list of tools that have an HTML page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageList {
    /// The tools that have an HTML page.
    apps: Vec<ToolPage>,
}

/// The query parameters that select the HTML page of a tool.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// The MCP server that offers the page.
    server: String,
    /// The URI of the page, such as `ui://report`.
    uri: String,
}

/// The HTML page of a tool. Show it only in a sandboxed frame with a separate origin.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageContent {
    /// The URI of the page.
    uri: String,
    /// The HTML text of the page. It is untrusted.
    html: String,
}

/// List the tools that have a page
#[utoipa::path(
    get, path = "/mcp/apps", operation_id = "listApps", tag = "offers",
    responses((
        status = 200,
        description = "The tools of ready servers that have a page.",
        body = PageList
    ))
)]
pub(super) async fn list_pages(State(app): State<App>) -> Json<PageList> {
    let apps = app.engine().list_tool_ui_pages().await;
    Json(PageList { apps })
}

/// Read the page of a tool
#[utoipa::path(
    get, path = "/mcp/apps/page", operation_id = "readApp", tag = "offers",
    params(PageQuery),
    responses(
        (status = 200, description = "The page.", body = PageContent),
        (
            status = 404,
            description = "The page does not exist or its server does not return it.",
            body = Problem
        ),
    )
)]
pub(super) async fn read_page(
    State(app): State<App>,
    QueryParameters(PageQuery { server, uri }): QueryParameters<PageQuery>,
) -> Result<Json<PageContent>, Problem> {
    let html = app.engine().read_tool_ui_page(&server, &uri).await;
    html.map(|html| Json(PageContent { uri, html }))
        .map_err(Problem::not_found)
}

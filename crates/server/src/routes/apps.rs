//! Pages that MCP servers have for showing what their tools do (MCP Apps).

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{App, Problem, ToolPage, problem::ProblemBody, read::ReadQuery};

/// The pages there are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageList {
    /// Them.
    apps: Vec<ToolPage>,
}

/// Which page.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// The server that has it.
    server: String,
    /// Its address, such as `ui://report`.
    uri: String,
}

/// A page. It is somebody else's: to be shown in a sandboxed frame of an origin of its own.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PageShown {
    /// Its address.
    uri: String,
    /// HTML; untrusted.
    html: String,
}

/// List the tools that have a page of their own
#[utoipa::path(
    get, path = "/mcp/apps", operation_id = "listApps", tag = "offers",
    responses((status = 200, description = "The tools with a page, of the servers that are ready.", body = PageList))
)]
pub(super) async fn list(State(app): State<App>) -> Json<PageList> {
    let apps = app.engine().tool_pages().await;
    Json(PageList { apps })
}

/// Read the page of a tool
#[utoipa::path(
    get, path = "/mcp/apps/page", operation_id = "readApp", tag = "offers",
    params(PageQuery),
    responses(
        (status = 200, description = "The page.", body = PageShown),
        (status = 400, description = "The query does not fit.", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such page, or its server does not give it.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(app): State<App>,
    ReadQuery(PageQuery { server, uri }): ReadQuery<PageQuery>,
) -> Result<Json<PageShown>, Problem> {
    let read = app.engine().read_tool_page(&server, &uri).await;
    read.map(|html| Json(PageShown { uri, html }))
        .map_err(Problem::not_found)
}

//! What there is to choose from: tools, servers, models, recipes.

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{ServerProblem, ToolAnnotations, ToolDefinition};
use utoipa::ToSchema;

use crate::{App, ModelInfo, RecipeInfo, schema};

/// The tools there are now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolList {
    /// Them.
    tools: Vec<ToolShown>,
    /// Servers that cannot say which they have.
    #[schema(value_type = Vec<schema::ServerProblem>)]
    problems: Vec<ServerProblem>,
}

/// A tool.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolShown {
    /// Its name, as models are told.
    name: String,
    /// The server that offers it.
    server: Option<String>,
    /// Its own name there.
    tool: String,
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    title: Option<String>,
    /// What it does.
    description: String,
    /// JSON Schema of its input.
    input_schema: Value,
    /// JSON Schema of its structured result, where it promises one.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    /// What it says about its effects; untrusted.
    #[schema(value_type = schema::ToolAnnotations)]
    annotations: ToolAnnotations,
}

/// The MCP servers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerList {
    /// Them.
    #[schema(value_type = Vec<schema::ServerStatus>)]
    servers: Vec<Value>,
}

/// The models.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// The one that is asked where nobody names one; `null` if there is none.
    default: Option<String>,
    /// Those that can be named. Others of the same providers may be named as well.
    models: Vec<ModelInfo>,
}

/// The recipes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecipeList {
    /// Those that can be named.
    recipes: Vec<RecipeInfo>,
}

impl From<&ToolDefinition> for ToolShown {
    fn from(tool: &ToolDefinition) -> Self {
        let origin = tool.origin.as_ref();
        Self {
            name: tool.name.clone(),
            server: origin.map(|origin| origin.server.clone()),
            tool: origin.map_or_else(|| tool.name.clone(), |origin| origin.tool.clone()),
            title: tool.title.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
            output_schema: tool.output_schema.clone(),
            annotations: tool.annotations,
        }
    }
}

/// List the tools of the MCP servers
#[utoipa::path(
    get, path = "/mcp/tools", operation_id = "listTools", tag = "offers",
    responses((status = 200, description = "The tools there are now.", body = ToolList))
)]
pub(super) async fn tools(State(app): State<App>) -> Json<ToolList> {
    let catalog = app.engine().tools().await;
    Json(ToolList {
        tools: catalog.tools.iter().map(|tool| (&**tool).into()).collect(),
        problems: catalog.problems,
    })
}

/// List the MCP servers and how they stand
#[utoipa::path(
    get, path = "/mcp/servers", operation_id = "listServers", tag = "offers",
    responses((status = 200, description = "Every server that is configured.", body = ServerList))
)]
pub(super) async fn servers(State(app): State<App>) -> Json<ServerList> {
    let servers = app.engine().servers().await;
    Json(ServerList { servers })
}

/// List the models that can be named
#[utoipa::path(
    get, path = "/models", operation_id = "listModels", tag = "offers",
    responses((status = 200, description = "The models.", body = ModelList))
)]
pub(super) async fn models(State(app): State<App>) -> Json<ModelList> {
    let models = app.engine().models().await;
    let default = models.iter().find(|model| model.default);
    Json(ModelList {
        default: default.map(|model| model.id.clone()),
        models,
    })
}

/// List the recipes that can be named
#[utoipa::path(
    get, path = "/recipes", operation_id = "listRecipes", tag = "offers",
    responses((status = 200, description = "The recipes.", body = RecipeList))
)]
pub(super) async fn recipes(State(app): State<App>) -> Json<RecipeList> {
    let recipes = app.engine().recipes().await;
    Json(RecipeList { recipes })
}

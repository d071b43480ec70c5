//! Routes that list the available tools, MCP servers, models and recipes.

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{ServerProblem, ToolAnnotations, ToolDefinition};
use utoipa::ToSchema;

use crate::{App, ModelInfo, RecipeInfo, openapi::schema};

/// The tools that runs can use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolList {
    /// The tools of all ready MCP servers.
    tools: Vec<ToolInfo>,
    /// The MCP servers whose tools are missing from the list, because the servers are not ready.
    #[schema(value_type = Vec<schema::ServerProblem>)]
    problems: Vec<ServerProblem>,
}

/// A tool that runs can use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolInfo {
    /// The name under which the tool is declared to models.
    name: String,
    /// The MCP server of the tool, or `null`.
    server: Option<String>,
    /// The tool's name at its MCP server.
    tool: String,
    /// The title of the tool, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    title: Option<String>,
    /// The description of the tool, for models.
    description: String,
    /// The JSON Schema of the tool input.
    input_schema: Value,
    /// The JSON Schema of the structured result, if the tool declares one.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    /// The MCP server's statements about the effects of the tool. They are untrusted.
    #[schema(value_type = schema::ToolAnnotations)]
    annotations: ToolAnnotations,
}

/// The configured MCP servers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerList {
    /// The state of each configured MCP server.
    #[schema(value_type = Vec<schema::ServerStatus>)]
    servers: Vec<Value>,
}

/// The models that runs can use, and the default model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// The configured default model, or `null` if there is none.
    default: Option<String>,
    /// Models that the server can list. Requests may also name other models of the same providers.
    models: Vec<ModelInfo>,
}

/// The list of recipes that runs can use.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecipeList {
    /// The recipes that runs can use.
    recipes: Vec<RecipeInfo>,
}

impl From<&ToolDefinition> for ToolInfo {
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
    responses((status = 200, description = "The available tools.", body = ToolList))
)]
pub(super) async fn tools(State(app): State<App>) -> Json<ToolList> {
    let catalog = app.engine().tool_catalog().await;
    Json(ToolList {
        tools: catalog.tools.iter().map(|tool| (&**tool).into()).collect(),
        problems: catalog.problems,
    })
}

/// List the MCP servers and their states
#[utoipa::path(
    get, path = "/mcp/servers", operation_id = "listServers", tag = "offers",
    responses((status = 200, description = "The configured servers.", body = ServerList))
)]
pub(super) async fn servers(State(app): State<App>) -> Json<ServerList> {
    let servers = app.engine().mcp_server_states().await;
    Json(ServerList { servers })
}

/// List the known models
#[utoipa::path(
    get, path = "/models", operation_id = "listModels", tag = "offers",
    responses((status = 200, description = "The models.", body = ModelList))
)]
pub(super) async fn models(State(app): State<App>) -> Json<ModelList> {
    let models = app.engine().available_models().await;
    let default = models.iter().find(|model| model.default);
    Json(ModelList {
        default: default.map(|model| model.id.clone()),
        models,
    })
}

/// List the recipes
#[utoipa::path(
    get, path = "/recipes", operation_id = "listRecipes", tag = "offers",
    responses((status = 200, description = "The recipes.", body = RecipeList))
)]
pub(super) async fn recipes(State(app): State<App>) -> Json<RecipeList> {
    let recipes = app.engine().available_recipes().await;
    Json(RecipeList { recipes })
}

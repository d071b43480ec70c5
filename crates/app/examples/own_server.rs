//! Example of an HTTP server with the web page and all HTTP dialects. A Rust function is the tool
//! of its agent. Needs no API key, because the demo model answers. Try `curl -X POST
//! localhost:8484/chat -H 'content-type: application/json' -d '{"message": "What is the weather in
//! Oslo?"}'`.
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::Value;
use switchboard_domain::{ChatModel, Principal, SessionId, ToolCatalog, ToolHost};
use switchboard_orchestration::{
    Agent,
    tools::functions::{Function, FunctionTools, schemars},
};
use switchboard_providers_offline::DemoModel;
use switchboard_server::{
    Engine, ModelInfo, RecipeInfo, RunSettings, RunSettingsError, Server, ServerOptions, Shutdown,
};
use switchboard_sessions::{Store, StoreOptions};
use tokio::net::TcpListener;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[schemars(crate = "switchboard_orchestration::tools::functions::schemars")]
struct CityInput {
    city: String,
}

struct WeatherEngine {
    model: Arc<dyn ChatModel>,
    tools: Arc<dyn ToolHost>,
}

#[async_trait]
impl Engine for WeatherEngine {
    // Returns the same agent for every request. Another engine could choose an agent per request.
    async fn create_agent(
        &self,
        _settings: &RunSettings,
        _principal: &Principal,
        _session: Option<&SessionId>,
    ) -> Result<Agent, RunSettingsError> {
        Ok(Agent::new(Arc::clone(&self.model)).with_tools(Arc::clone(&self.tools)))
    }

    async fn available_models(&self) -> Vec<ModelInfo> {
        vec![ModelInfo::from_model_id(self.model.id())]
    }

    async fn available_recipes(&self) -> Vec<RecipeInfo> {
        Vec::new()
    }

    async fn mcp_server_states(&self) -> Vec<Value> {
        Vec::new()
    }

    async fn tool_catalog(&self) -> ToolCatalog {
        self.tools.list_tools().await
    }

    async fn check_readiness(&self) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weather = Function::new(
        "weather",
        "Returns the current weather of a city.",
        |place: CityInput| async move { Ok::<_, String>(format!("It rains in {}.", place.city)) },
    );
    // The function only reads data, so its calls run without an approval by the user.
    let tools = FunctionTools::new().with_function(weather.read_only());
    let engine = WeatherEngine {
        model: Arc::new(DemoModel::new()),
        tools: Arc::new(tools),
    };
    let store = Arc::new(Store::open(StoreOptions::sqlite("own_server.db")).await?);
    let options = ServerOptions::default();
    let server = Server::new(Arc::new(engine), store.clone(), store.clone(), options);
    let shutdown = Shutdown {
        first: tokio::signal::ctrl_c().map(|_| ()).boxed(),
        second: std::future::pending().boxed(),
    };
    let listener = TcpListener::bind("127.0.0.1:8484").await?;
    server.serve(listener, shutdown).await?;
    store.close().await;
    Ok(())
}

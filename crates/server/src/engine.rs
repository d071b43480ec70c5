//! The interface between the server and the program that builds agents.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{
    ModelId, Principal, ReasoningEffort, SessionId, SessionStoreError, StoredAuditRecord,
    ToolCatalog, ToolChoice,
};
use switchboard_orchestration::{
    Agent, RunEvent, questions::Questions, strategy::Strategy, tools::arguments::ClientContext,
};
use utoipa::ToSchema;

use crate::openapi::schema;

/// A factory that builds the agents of runs, and lists models, recipes, MCP servers and tools. The
/// program that embeds the server implements this trait.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Builds an agent for the settings of a request. The server adds its own approver, the session
    /// and the checkpoints to the returned agent. The server calls this method for every run, so an
    /// engine should share expensive parts between calls.
    ///
    /// `session` is the id of the run's session, or `None` for an ephemeral run. A new session is
    /// stored only after this call. An agent that is shared between calls must not contain values
    /// of one session, principal or client.
    async fn create_agent(
        &self,
        settings: &RunSettings,
        principal: &Principal,
        session: Option<&SessionId>,
    ) -> Result<Agent, RunSettingsError>;

    /// Returns the models that clients can use in requests.
    async fn available_models(&self) -> Vec<ModelInfo>;

    /// Returns the recipes that clients can use in requests.
    async fn available_recipes(&self) -> Vec<RecipeInfo>;

    /// Returns the state of every MCP server as the JSON objects that `switchboard servers --output
    /// json` prints.
    async fn mcp_server_states(&self) -> Vec<Value>;

    /// Returns the tools of all ready MCP servers, and the servers whose tools are missing.
    async fn tool_catalog(&self) -> ToolCatalog;

    /// Returns the tools with an HTML page (MCP Apps) that the ready MCP servers offer. The default
    /// implementation returns none.
    async fn list_tool_ui_pages(&self) -> Vec<ToolPage> {
        Vec::new()
    }

    /// Reads the HTML page with the URI `uri` from the MCP server `server`. The HTML is untrusted.
    /// The error states why the page cannot be read.
    async fn read_tool_ui_page(&self, server: &str, uri: &str) -> Result<String, String> {
        Err(format!("server `{server}` has no page `{uri}`"))
    }

    /// Checks that all required MCP servers are ready. The error lists the missing servers.
    async fn check_readiness(&self) -> Result<(), String>;

    /// Returns whether a model is configured or in the model catalogue. The metrics count only a
    /// limited number of other models under their own names, because clients can send any model
    /// name. The default implementation returns `true`.
    fn is_model_available(&self, _model: &ModelId) -> bool {
        true
    }

    /// Returns the store of open elicitation requests of MCP servers, or `None` if HTTP clients
    /// cannot answer such requests. The engine must give the same store to its agents and its tool
    /// host.
    fn pending_questions(&self) -> Option<&Questions> {
        None
    }

    /// Removes the approval decisions that were remembered for a session. The server calls this
    /// method when the session is deleted, or when an ephemeral run has ended. `_session` is the id
    /// of the session or of the ephemeral run.
    fn forget_session_approvals(&self, _principal: &Principal, _session: &str) {}

    /// Returns audit records of a principal, as
    /// [`AuditStore::list_audit_records`](switchboard_domain::AuditStore::list_audit_records) does.
    /// The default implementation returns none.
    async fn list_audit_records(
        &self,
        _owner: &Principal,
        _before: &str,
        _limit: u32,
    ) -> Result<Vec<StoredAuditRecord>, SessionStoreError> {
        Ok(Vec::new())
    }

    /// Creates the observer, such as an audit log, that receives the events of one run. The server
    /// calls this method when it starts to execute a new or resumed run. `_session` is `None` for
    /// an ephemeral run. The default implementation returns `None`: no observer.
    fn create_run_observer(
        &self,
        _principal: &Principal,
        _session: Option<&str>,
    ) -> Option<Box<dyn RunEventObserver>> {
        None
    }
}

/// A receiver of the events of one run, such as an audit log. [`Engine::create_run_observer`]
/// creates it.
#[async_trait]
pub trait RunEventObserver: Send {
    /// Receives every event of the run except deltas of text, reasoning and tool input. The run
    /// waits until this method returns.
    async fn observe_event(&mut self, event: &RunEvent);
}

/// Settings of a run in a client's request. Missing settings use the configured values.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunSettings {
    /// The provider of the model, if `model` does not contain it.
    pub provider: Option<String>,
    /// The model of the run: `PROVIDER/MODEL` or a model name alone.
    pub model: Option<String>,
    /// The name of the recipe (prompt, tool selection and strategy). File paths are not accepted.
    pub recipe: Option<String>,
    /// Parameters of the run, such as temperature and limits.
    pub parameters: Parameters,
    /// Named values that tools receive but the model does not, such as access tokens. They are not
    /// stored, so a resumed run lacks them. Unknown names are errors.
    #[schema(value_type = Object)]
    pub context: ClientContext,
}

/// Parameters of a run, such as temperature and limits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Sampling temperature. 0 is the most predictable. The provider sets the maximum, at most 2.
    #[schema(minimum = 0.0, maximum = 2.0)]
    pub temperature: Option<f64>,
    /// Nucleus sampling (`top_p`): the probability mass of the tokens to sample from.
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub top_p: Option<f64>,
    /// Stop sequences: texts that end the answer. At most 16.
    #[schema(max_items = 16)]
    pub stop: Vec<String>,
    /// The seed for reproducible answers, where the provider supports one.
    pub seed: Option<u64>,
    /// Maximum number of model calls in the run. The limit of a recipe applies too.
    #[schema(minimum = 1)]
    pub max_steps: Option<u32>,
    /// Maximum number of output tokens of one model call.
    #[schema(minimum = 1)]
    pub max_output_tokens: Option<u32>,
    /// The tool choice of the first model call: `"auto"`, `"none"`, `"required"`, or `{"only":
    /// ["NAME", …]}`.
    #[schema(value_type = Option<schema::ToolChoice>)]
    pub tool_choice: Option<ToolChoice>,
    /// The reasoning effort of the model.
    #[schema(value_type = Option<schema::ReasoningEffort>)]
    pub reasoning: Option<ReasoningEffort>,
    /// Whether one model call may request several tool calls.
    pub parallel_tool_use: Option<bool>,
    /// The approval policy for tool calls. Only a stricter policy than the configured one has an
    /// effect.
    pub approve: Option<Approve>,
    /// Whether the model may use tools. The default is `true`.
    pub tools: Option<bool>,
    /// The strategy of the run, instead of that of the recipe: `"loop"`, `"gather-format"`, or
    /// `{"gather-format": {…}}` with settings such as `max_thinking_steps`.
    #[schema(value_type = Option<schema::Strategy>)]
    pub strategy: Option<Strategy>,
}

/// The approval policy of a run: which tool calls need a decision by a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// No tool call needs approval.
    All,
    /// Tool calls that are not read-only need approval.
    Ask,
    /// Only read-only tool calls are allowed. All others are denied.
    None,
}

impl Parameters {
    /// Checks the value ranges and field combinations that the types do not express. The error
    /// names the invalid field.
    pub fn validate_parameters(&self) -> Result<(), RunSettingsError> {
        let invalid = |field: &str, message: &str| {
            Err(RunSettingsError::Invalid {
                field: format!("parameters.{field}"),
                message: message.to_owned(),
            })
        };
        let is_up_to =
            |value: Option<f64>, max: f64| value.is_none_or(|value| (0.0..=max).contains(&value));
        if !is_up_to(self.temperature, 2.0) {
            return invalid("temperature", "must be a number from 0 to 2");
        }
        if !is_up_to(self.top_p, 1.0) {
            return invalid("top_p", "must be a number from 0 to 1");
        }
        if self.max_steps == Some(0) {
            return invalid("max_steps", "must be a whole number of at least 1");
        }
        if self.max_output_tokens == Some(0) {
            return invalid("max_output_tokens", "must be a whole number of at least 1");
        }
        if self.stop.len() > 16 || self.stop.iter().any(String::is_empty) {
            return invalid("stop", "must be a list of at most 16 non-empty strings");
        }
        match &self.tool_choice {
            Some(ToolChoice::Only(names)) if names.is_empty() => invalid(
                "tool_choice",
                "must contain at least one tool; use \"none\" to disable all tools",
            ),
            Some(ToolChoice::Only(_) | ToolChoice::Required) if self.tools == Some(false) => {
                invalid("tool_choice", "requires a tool, but `tools` is false")
            }
            _ => Ok(()),
        }
    }
}

/// The reason why an [`Engine`] cannot build an agent for the settings in a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunSettingsError {
    /// A field of the request names a model, recipe, tool or other value that does not exist.
    #[error("{message}")]
    Unknown {
        /// The path of the field in the request, such as `parameters.tool_choice`.
        field: String,
        /// The error text for the client. It names the model, recipe, tool or other value that does
        /// not exist, and can state how to find the existing ones.
        message: String,
    },
    /// A field of the request has an invalid value.
    #[error("`{field}` {message}")]
    Invalid {
        /// The path of the invalid field in the request, such as `parameters.stop`.
        field: String,
        /// The rule for valid values, such as "must be a number from 0 to 2". The text of this
        /// error is the field name, followed by the rule.
        message: String,
    },
    /// A model or MCP server that the run needs is unavailable.
    #[error("{message}")]
    Unavailable {
        /// The error text for the client. It states why the model or MCP server is unavailable, and
        /// a remedy.
        message: String,
        /// The delay after which a retry may succeed, if it is known.
        retry_after: Option<Duration>,
    },
}

/// A model that runs can use.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ModelInfo {
    /// The id of the model for the field `model`, as `PROVIDER/MODEL`.
    pub id: String,
    /// The provider of the model.
    pub provider: String,
    /// The name of the model at its provider.
    pub name: String,
    /// Whether the provider of the model has an API key or needs none.
    pub ready: bool,
    /// Whether this model is the configured default.
    pub default: bool,
    /// Whether the model supports tools.
    pub tools: bool,
    /// Whether the model accepts images.
    pub images: bool,
    /// The context window in tokens: prompt and answer together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub context_window: Option<u64>,
    /// Maximum number of output tokens of one model call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_output_tokens: Option<u64>,
    /// The price of a million input tokens in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub input_price: Option<f64>,
    /// The price of a million output tokens in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub output_price: Option<f64>,
}

impl ModelInfo {
    /// Creates the entry of the configured default model when only the id of the model is known.
    /// The model counts as ready and able to use tools, but not as able to read images. Its limits
    /// and prices are unknown.
    pub fn from_model_id(id: &ModelId) -> Self {
        Self {
            id: id.to_string(),
            provider: id.provider.to_string(),
            name: id.name.to_string(),
            ready: true,
            default: true,
            tools: true,
            images: false,
            context_window: None,
            max_output_tokens: None,
            input_price: None,
            output_price: None,
        }
    }
}

/// A tool of an MCP server that has an HTML page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToolPage {
    /// The MCP server of the tool.
    pub server: String,
    /// The tool's name at its MCP server.
    pub tool: String,
    /// The URI of the HTML page, with the scheme `ui:`.
    pub uri: String,
}

/// A recipe: a file with a prompt, a tool selection and a strategy for runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RecipeInfo {
    /// The name of the recipe, as requests contain it in the field `recipe`.
    pub name: String,
    /// The title of the recipe, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub title: Option<String>,
    /// The description of the recipe, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<String>,
    /// The model that the recipe selects, as `PROVIDER/MODEL` or a model name alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

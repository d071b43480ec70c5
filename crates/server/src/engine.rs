//! The interface between the server and the program that builds agents.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{ModelId, Principal, ReasoningEffort, SessionId, ToolCatalog, ToolChoice};
use switchboard_orchestration::{
    Agent, RunEvent, questions::Questions, tools::arguments::ClientContext,
};
use utoipa::ToSchema;

use crate::openapi::schema;

/// Builds agents, and lists models, recipes, servers and tools.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Returns an agent for the parameters of a request. It has no approver, session and
    /// checkpoints; the server adds them. It is called for every run, so expensive parts should be
    /// shared between calls.
    ///
    /// `session` is the session of the run, which is stored when the run begins. `None` means no
    /// session. A shared agent must not contain values of one session, principal or client.
    async fn agent(
        &self,
        settings: &RunSettings,
        principal: &Principal,
        session: Option<&SessionId>,
    ) -> Result<Agent, RunSettingsError>;

    /// Returns the available models.
    async fn models(&self) -> Vec<ModelInfo>;

    /// Returns the available recipes.
    async fn recipes(&self) -> Vec<RecipeInfo>;

    /// Returns the state of every MCP server: the objects of `switchboard servers --output json`.
    async fn servers(&self) -> Vec<Value>;

    /// Returns the current tools.
    async fn tools(&self) -> ToolCatalog;

    /// Returns the tools of ready servers that have a page (MCP Apps).
    async fn tool_pages(&self) -> Vec<ToolPage> {
        Vec::new()
    }

    /// Returns such a page as untrusted HTML. The error states why there is none.
    async fn read_tool_page(&self, server: &str, uri: &str) -> Result<String, String> {
        Err(format!("server `{server}` has no page `{uri}`"))
    }

    /// Checks that all required servers are ready. The error lists the missing ones.
    async fn readiness(&self) -> Result<(), String>;

    /// Returns whether a model is configured or in the catalogue. Metrics limit the number of other
    /// models.
    fn knows_model(&self, _model: &ModelId) -> bool {
        true
    }

    /// Returns the elicitation requests of servers, if clients can answer them. Agents and tool
    /// host must have the same.
    fn questions(&self) -> Option<&Questions> {
        None
    }

    /// Releases the decisions of a deleted session or a finished run without session. `id` is the
    /// id of the session or the run.
    fn forget(&self, _principal: &Principal, _session: &str) {}

    /// Returns an observer for a run, such as an audit.
    fn observer(
        &self,
        _principal: &Principal,
        _session: Option<&str>,
    ) -> Option<Box<dyn Observer>> {
        None
    }
}

/// Observer of one run.
#[async_trait]
pub trait Observer: Send {
    /// Receives every stored event except deltas of text and input. The run waits for it.
    async fn observe(&mut self, event: &RunEvent);
}

/// The parameters of a request. Missing values use the configuration.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunSettings {
    /// The provider, if `model` does not contain it.
    pub provider: Option<String>,
    /// The model: `PROVIDER/MODEL` or a name alone. The engine resolves it.
    pub model: Option<String>,
    /// The name of the recipe, never a file.
    pub recipe: Option<String>,
    /// The parameters of the run.
    pub parameters: Parameters,
    /// Values for tools that are hidden from the model. They are not stored, so a resumed run lacks
    /// them. An engine refuses unknown names.
    #[schema(value_type = Object)]
    pub context: ClientContext,
}

/// Parameters of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// From 0, the most predictable, to a maximum of the provider, at most 2.
    #[schema(minimum = 0.0, maximum = 2.0)]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[schema(minimum = 0.0, maximum = 1.0)]
    pub top_p: Option<f64>,
    /// Stop sequences, at most 16.
    #[schema(max_items = 16)]
    pub stop: Vec<String>,
    /// The seed for reproducible answers, where the provider supports one.
    pub seed: Option<u64>,
    /// Maximum number of model calls. The limit of a recipe applies too.
    #[schema(minimum = 1)]
    pub max_steps: Option<u32>,
    /// Maximum number of tokens of one answer.
    #[schema(minimum = 1)]
    pub max_output_tokens: Option<u32>,
    /// The tool choice of the first step: `"auto"`, `"none"`, `"required"`, or
    /// `{"only": ["NAME", …]}`.
    #[schema(value_type = Option<schema::ToolChoice>)]
    pub tool_choice: Option<ToolChoice>,
    /// The reasoning effort.
    #[schema(value_type = Option<schema::ReasoningEffort>)]
    pub reasoning: Option<ReasoningEffort>,
    /// Whether one answer may contain several tool uses.
    pub parallel_tool_use: Option<bool>,
    /// The approval policy. Only a stricter policy than the configured one has an effect.
    pub approve: Option<Approve>,
    /// `false` offers the model no tools.
    pub tools: Option<bool>,
}

/// The tool calls that need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// No calls.
    All,
    /// Calls of tools that are not read-only.
    Ask,
    /// Only calls of read-only tools are allowed.
    None,
}

impl Parameters {
    /// Checks what types do not express. The error names the field.
    pub fn check(&self) -> Result<(), RunSettingsError> {
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
            return invalid(
                "stop",
                "must be a list of at most 16 texts that are not empty",
            );
        }
        match &self.tool_choice {
            Some(ToolChoice::Only(names)) if names.is_empty() => invalid(
                "tool_choice",
                "contains no tool: use \"none\" to disable all tools",
            ),
            Some(ToolChoice::Only(_) | ToolChoice::Required) if self.tools == Some(false) => {
                invalid("tool_choice", "requires a tool, but `tools` is false")
            }
            _ => Ok(()),
        }
    }
}

/// The reason why an engine cannot build an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunSettingsError {
    /// A named model, recipe, tool or other value does not exist.
    #[error("{message}")]
    Unknown {
        /// The field of the request.
        field: String,
        /// The unknown name and the existing ones.
        message: String,
    },
    /// A field has an invalid value.
    #[error("`{field}` {message}")]
    Invalid {
        /// The field.
        field: String,
        /// The expected value.
        message: String,
    },
    /// A model or server is unavailable.
    #[error("{message}")]
    Unavailable {
        /// The reason and a remedy.
        message: String,
        /// When a retry may succeed.
        retry_after: Option<Duration>,
    },
}

/// An available model.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ModelInfo {
    /// The name for `model`: `PROVIDER/MODEL`.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// The provider's name of the model.
    pub name: String,
    /// Whether the provider is usable: it has a key or needs none.
    pub ready: bool,
    /// Whether it is the default model.
    pub default: bool,
    /// Whether it supports tools.
    pub tools: bool,
    /// Whether it supports images.
    pub images: bool,
    /// Tokens of prompt and answer together, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub context_window: Option<u64>,
    /// Maximum tokens of one answer, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_output_tokens: Option<u64>,
    /// US dollars for a million input tokens, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub input_price: Option<f64>,
    /// US dollars for a million output tokens, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub output_price: Option<f64>,
}

impl ModelInfo {
    /// Returns the default model without further information.
    pub fn unknown(id: &ModelId) -> Self {
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

/// A tool with a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToolPage {
    /// The server.
    pub server: String,
    /// The original name of the tool.
    pub tool: String,
    /// The URI of the page, with the scheme `ui:`.
    pub uri: String,
}

/// An available recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RecipeInfo {
    /// The name for `recipe`.
    pub name: String,
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub title: Option<String>,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<String>,
    /// The model of the recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

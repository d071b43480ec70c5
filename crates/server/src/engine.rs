//! What the server sees of the rest of the program: who makes agents, and what there is to choose from.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{ModelId, Principal, ReasoningEffort, SessionId, ToolCatalog, ToolChoice};
use switchboard_orchestration::{
    Agent, RunEvent, questions::Questions, tools::arguments::ClientContext,
};
use utoipa::ToSchema;

/// Makes agents, and says what models, recipes, servers and tools there are.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Returns an agent for a wish. It has no approver, no session and no checkpoints: the server gives it these. Called
    /// for every run, so that what is costly should be kept between calls.
    ///
    /// `session` is the session of the run, which is stored only when the run begins; `None` for a run that is in no
    /// session. An agent that is kept between calls must not hold values of one session, principal or client.
    async fn agent(
        &self,
        wish: &Wish,
        principal: &Principal,
        session: Option<&SessionId>,
    ) -> Result<Agent, WishError>;

    /// The models that can be named.
    async fn models(&self) -> Vec<ModelInfo>;

    /// The recipes that can be named.
    async fn recipes(&self) -> Vec<RecipeInfo>;

    /// Every MCP server and how it stands, one JSON object each: the objects of `switchboard servers --output json`.
    async fn servers(&self) -> Vec<Value>;

    /// The tools there are now.
    async fn tools(&self) -> ToolCatalog;

    /// The tools that have a page of their own for showing what they do (MCP Apps), of the servers that are ready.
    async fn tool_pages(&self) -> Vec<ToolPage> {
        Vec::new()
    }

    /// Reads such a page as HTML, which is untrusted. The error says why there is none.
    async fn read_tool_page(&self, server: &str, uri: &str) -> Result<String, String> {
        Err(format!("server `{server}` has no page `{uri}`"))
    }

    /// Whether everything that is required is there; else what is missing.
    async fn readiness(&self) -> Result<(), String>;

    /// Whether a model is one that is configured or that a catalogue has. Clients may name others, which are counted apart
    /// only within limits.
    fn knows_model(&self, _model: &ModelId) -> bool {
        true
    }

    /// Where what servers ask is answered, if anybody can be asked. The same that agents and the tool host were given.
    fn questions(&self) -> Option<&Questions> {
        None
    }

    /// A session is deleted, or a run that is in none is over: what somebody decided for it alone (by the session's id,
    /// or the run's) is needed no more.
    fn forget(&self, _principal: &Principal, _session: &str) {}

    /// Who watches a run, for an audit, say.
    fn observer(
        &self,
        _principal: &Principal,
        _session: Option<&str>,
    ) -> Option<Box<dyn Observer>> {
        None
    }
}

/// Watches one run.
#[async_trait]
pub trait Observer: Send {
    /// Told of every event once it is stored, but for pieces of text and of input. The run waits for it.
    async fn observe(&mut self, event: &RunEvent);
}

/// What a client wants a run to be like. What it does not say is as configured.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wish {
    /// The provider, where `model` does not name it.
    pub provider: Option<String>,
    /// The model as the client names it: `PROVIDER/MODEL` or a name alone. The engine resolves it.
    pub model: Option<String>,
    /// The recipe, by its name; never a file.
    pub recipe: Option<String>,
    /// How it is asked.
    pub parameters: Parameters,
    /// Values for tools that the model does not see. They are never stored: a run that is resumed lacks them. An engine
    /// refuses the names that it does not know.
    pub context: ClientContext,
}

/// Parameters of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// 0 is the most predictable; the upper end depends on the provider, and is 2 at most.
    #[schema(minimum = 0.0, maximum = 2.0)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[schema(minimum = 0.0, maximum = 1.0)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub top_p: Option<f64>,
    /// Texts at which the answer ends; 16 at most.
    #[schema(max_items = 16)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// For answers that can be had again, where the provider supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub seed: Option<u64>,
    /// Calls of the model at most. A limit of a recipe holds as well.
    #[schema(minimum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_steps: Option<u32>,
    /// Tokens of one answer at most.
    #[schema(minimum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_output_tokens: Option<u32>,
    /// Which tools the model must use in its first step: `"auto"`, `"none"`, `"required"`, or
    /// `{"only": ["NAME", …]}`.
    #[schema(value_type = Option<ToolChoiceWord>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tool_choice: Option<ToolChoice>,
    /// How much thinking is wanted.
    #[schema(value_type = Option<ReasoningWord>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reasoning: Option<ReasoningEffort>,
    /// Whether several tool uses in one answer are welcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub parallel_tool_use: Option<bool>,
    /// Which tool calls need a person's word. Only what is stricter than the configuration counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub approve: Option<Approve>,
    /// `false` offers the model no tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tools: Option<bool>,
}

/// Which tools the model must use in its first step.
#[derive(Debug, ToSchema)]
#[schema(as = ToolChoice)]
#[expect(
    dead_code,
    reason = "only its schema is used; a test holds it against the domain's type"
)]
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolChoiceWord {
    /// The model decides.
    Auto,
    /// No tool, though they stay declared.
    None,
    /// At least one tool, whichever.
    Required,
    /// At least one tool, of these names.
    Only(Vec<String>),
}

/// How much thinking is wanted before the answer.
#[derive(Debug, ToSchema)]
#[schema(as = ReasoningEffort)]
#[expect(
    dead_code,
    reason = "only its schema is used; a test holds it against the domain's type"
)]
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasoningWord {
    /// None, where it can be switched off.
    None,
    /// A little.
    Low,
    /// A middling amount.
    Medium,
    /// A lot.
    High,
}

/// Which tool calls need a person's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// None.
    All,
    /// Those of tools that do not say they are read-only.
    Ask,
    /// None may run but those of tools that say they are read-only.
    None,
}

impl Parameters {
    /// Looks at what types do not say. The error names the field.
    pub fn check(&self) -> Result<(), WishError> {
        let invalid = |field: &str, message: &str| {
            Err(WishError::Invalid {
                field: format!("parameters.{field}"),
                message: message.to_owned(),
            })
        };
        let within =
            |value: Option<f64>, most: f64| value.is_none_or(|value| (0.0..=most).contains(&value));
        if !within(self.temperature, 2.0) {
            return invalid("temperature", "is a number from 0 to 2");
        }
        if !within(self.top_p, 1.0) {
            return invalid("top_p", "is a number from 0 to 1");
        }
        if self.max_steps == Some(0) {
            return invalid("max_steps", "is a whole number from 1 on");
        }
        if self.max_output_tokens == Some(0) {
            return invalid("max_output_tokens", "is a whole number from 1 on");
        }
        if self.stop.len() > 16 || self.stop.iter().any(String::is_empty) {
            return invalid("stop", "is a list of at most 16 texts, none of them empty");
        }
        match &self.tool_choice {
            Some(ToolChoice::Only(names)) if names.is_empty() => invalid(
                "tool_choice",
                "names no tool: write \"none\" if none may be used",
            ),
            Some(ToolChoice::Only(_) | ToolChoice::Required) if self.tools == Some(false) => {
                invalid("tool_choice", "asks for a tool, and `tools` is false")
            }
            _ => Ok(()),
        }
    }
}

/// Why there is no agent for a wish.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WishError {
    /// Something of this name is not there.
    #[error("{message}")]
    Unknown {
        /// The field of the request that names it.
        field: String,
        /// What is not there, and what there is.
        message: String,
    },
    /// A field's value cannot be.
    #[error("`{field}` {message}")]
    Invalid {
        /// The field.
        field: String,
        /// What it should be.
        message: String,
    },
    /// It cannot be had now.
    #[error("{message}")]
    Unavailable {
        /// What is missing, and what to do about it.
        message: String,
        /// When it is worth trying again.
        retry_after: Option<Duration>,
    },
}

/// A model that can be named.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ModelInfo {
    /// As `model` wants it: `PROVIDER/MODEL`.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// Its name at the provider.
    pub name: String,
    /// The provider can be asked: its key is there, or it needs none.
    pub ready: bool,
    /// It is asked where nobody names one.
    pub default: bool,
    /// It takes tools.
    pub tools: bool,
    /// It takes images.
    pub images: bool,
    /// Tokens of prompt and answer together, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub context_window: Option<u64>,
    /// Tokens of one answer at most, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_output_tokens: Option<u64>,
    /// US dollars for a million tokens of input, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub input_price: Option<f64>,
    /// US dollars for a million tokens of output, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub output_price: Option<f64>,
}

impl ModelInfo {
    /// The default model, of which nothing more is known.
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

/// A tool with a page of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToolPage {
    /// The server.
    pub server: String,
    /// The tool's own name there.
    pub tool: String,
    /// The page's address, in the scheme `ui:`.
    pub uri: String,
}

/// A recipe that can be named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RecipeInfo {
    /// As `recipe` wants it.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<String>,
    /// The model that it wants, if it names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

//! Recipes: settings of an agent for one kind of task, in a file.
//!
//! A recipe contains a system prompt, a selection and better descriptions of tools, their policy,
//! few-shot examples, the reasoning style and the strategy. [`Recipe::from_value`] reads parsed
//! YAML or JSON. It also accepts recipes of another program, which have the key `uniqueId`.
//!
//! ```
//! use switchboard_orchestration::recipe::Recipe;
//!
//! let recipe = Recipe::from_value(&serde_json::json!({
//!     "name": "orders",
//!     "instructions": "You help with orders.",
//!     "tools": {"allow": ["shop__*"], "descriptions": {"find_order": "Finds an order."}},
//!     "policy": {"maxToolsPerResponse": 3, "requiresApproval": ["cancel_*"]},
//! }))?;
//! assert_eq!(recipe.policy.max_tools_per_response, Some(3));
//! # Ok::<(), switchboard_orchestration::recipe::RecipeError>(())
//! ```

mod error;
mod examples;
mod instructions;
mod openai_messages;
mod read;
mod tool_policy;
mod tools;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::{Message, ReasoningEffort, ToolDefinition};

use crate::{strategy::Strategy, tools::arguments::InputValidators};
pub use error::RecipeError;
pub use examples::{Example, ExampleCall};
pub use tool_policy::{ApprovalRequirement, RecipeLimits, ToolPolicy};
pub use tools::{RecipeTools, SelectedTools, ToolRules, matches_tool};

/// Names and YAML texts of the built-in recipes.
pub const SHIPPED: [(&str, &str); 4] = [
    (
        "general-chat",
        include_str!("../../recipes/general-chat.yaml"),
    ),
    (
        "customer-service",
        include_str!("../../recipes/customer-service.yaml"),
    ),
    (
        "code-discussion",
        include_str!("../../recipes/code-discussion.yaml"),
    ),
    ("graph-chat", include_str!("../../recipes/graph-chat.yaml")),
];

/// Settings of an agent for one kind of task, usually read from a file.
///
/// A recipe serializes to the format of recipe files: with `snake_case` keys, and without
/// abbreviations such as `tools: false`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Recipe {
    /// Name of the recipe: at most 64 ASCII letters, digits, `-`, `_` and `.`. It does not start
    /// with `.`.
    #[serde(deserialize_with = "read::deserialize_recipe_name")]
    pub name: String,
    /// Title of the recipe for display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description of the tasks that the recipe is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Preferred model as `provider/model`, or only a provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// System prompt in the recipe file. [`Recipe::system_prompt`] returns the complete system
    /// prompt.
    #[serde(alias = "system_prompt", skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Names of the servers that the recipe needs. A program can start a bundled server if no
    /// server with this name is configured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Rules that select tools and replace their descriptions.
    #[serde(alias = "mcp_tools")]
    pub tools: ToolRules,
    /// Restrictions of tool calls, such as maximum numbers of calls.
    #[serde(alias = "tool_policy", skip_serializing_if = "ToolPolicy::is_empty")]
    pub policy: ToolPolicy,
    /// Few-shot examples for the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// Reasoning style and effort of the model.
    pub reasoning: ReasoningSettings,
    /// Strategy of the run. `None` uses the configured strategy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Sampling temperature of the model. `None` uses the configured temperature.
    #[serde(
        deserialize_with = "tool_policy::deserialize_non_negative_number",
        skip_serializing_if = "Option::is_none"
    )]
    pub temperature: Option<f64>,
    /// Whether model responses are streamed. `None` uses the configured value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Limits of each run with this recipe, such as the maximum number of model calls.
    #[serde(skip_serializing_if = "RecipeLimits::is_empty")]
    pub limits: RecipeLimits,
    /// Keys of the recipe file that this program does not support. Only a recipe of another program
    /// can have such keys; see [`Recipe::from_value`].
    #[serde(skip)]
    pub ignored: Vec<String>,
}

/// Settings for the reasoning of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ReasoningSettings {
    /// Reasoning instructions that are added to the system prompt.
    pub style: ReasoningStyle,
    /// Reasoning effort for the provider. `None` uses the configured effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
}

/// The reasoning instructions that a recipe adds to the system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningStyle {
    /// The system prompt contains no reasoning instructions.
    #[default]
    None,
    /// The model is instructed to write one sentence before each tool call.
    Brief,
    /// The model is instructed to consider a list of questions before it answers.
    Structured,
}

impl Recipe {
    /// Reads a recipe from a parsed YAML or JSON document.
    ///
    /// Keys can be `snake_case`, `camelCase` or `kebab-case`. An unknown key is an error that
    /// suggests the most similar key. A document with `uniqueId` is a recipe of another program,
    /// whose unknown keys are listed in [`Recipe::ignored`] instead.
    pub fn from_value(value: &Value) -> Result<Self, RecipeError> {
        read::parse_recipe(value)
    }

    /// Returns the complete system prompt: the prompt in the recipe file, reasoning instructions
    /// and a note about the examples. Returns `None` if the recipe has none of these.
    pub fn system_prompt(&self) -> Option<String> {
        instructions::build_system_prompt(self)
    }

    /// Returns the few-shot examples as messages, to be inserted between the system prompt and the
    /// conversation. Also returns a warning for each omitted example.
    ///
    /// The tool calls use the tool names in `tools`. An example is omitted if it calls a tool that
    /// is not in `tools`, or if the input of a successful call does not match the tool's input
    /// schema, because the model would learn to make such calls.
    pub fn example_messages(
        &self,
        tools: &[Arc<ToolDefinition>],
        validators: &InputValidators,
    ) -> (Vec<Message>, Vec<String>) {
        examples::convert_examples(&self.examples, tools, validators)
    }
}

#[cfg(test)]
#[path = "recipe_tests.rs"]
mod tests;

//! Recipes: settings of an agent for one kind of task, in a file.
//!
//! A recipe contains a system prompt, a selection and better descriptions of tools, their policy,
//! few-shot examples, the reasoning style and the strategy. [`Recipe::from_value`] reads parsed
//! YAML or JSON, in our form or in the form with `uniqueId` and `mcpTools` of other programs.
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
mod messages;
mod policy;
mod read;
mod tools;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_domain::ReasoningEffort;

use crate::strategy::Strategy;
pub use error::RecipeError;
pub use examples::{Example, ExampleCall, Examples};
pub use policy::{RecipeLimits, RequiresApproval, ToolPolicy};
pub use tools::{RecipeTools, SelectedTools, ToolRules, matches};

/// The built-in recipes: names and YAML.
pub const SHIPPED: [(&str, &str); 3] = [
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
];

/// Settings of an agent for one kind of task.
///
/// The serialized form is the file form with our keys and without short forms.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Recipe {
    /// Name of letters, digits, `-`, `_` and `.`.
    #[serde(deserialize_with = "read::name")]
    pub name: String,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Purpose of the recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Preferred model, `provider/model` or a provider alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Prompt of the file. [`Recipe::instructions`] returns the complete system prompt.
    #[serde(alias = "system_prompt", skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Selection and descriptions of tools.
    #[serde(alias = "mcp_tools")]
    pub tools: ToolRules,
    /// Restrictions of tool calls.
    #[serde(alias = "tool_policy", skip_serializing_if = "ToolPolicy::is_empty")]
    pub policy: ToolPolicy,
    /// Few-shot examples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// Reasoning style and effort.
    pub reasoning: Reasoning,
    /// Strategy. `None` uses the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// Sampling temperature.
    #[serde(
        deserialize_with = "policy::optional_amount",
        skip_serializing_if = "Option::is_none"
    )]
    pub temperature: Option<f64>,
    /// Whether answers are streamed. `None` uses the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Limits of a run.
    #[serde(skip_serializing_if = "RecipeLimits::is_empty")]
    pub limits: RecipeLimits,
    /// Keys of other programs that have no meaning here.
    #[serde(skip)]
    pub ignored: Vec<String>,
}

/// Reasoning style and effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Reasoning {
    /// Instructions about reasoning in the system prompt.
    pub style: ReasoningStyle,
    /// Effort for the provider. `None` uses the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
}

/// Instructions about reasoning in the system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningStyle {
    /// No instructions.
    #[default]
    None,
    /// One sentence before each tool call.
    Brief,
    /// A list of questions to consider before an answer.
    Structured,
}

impl Recipe {
    /// Reads a recipe from parsed YAML or JSON.
    ///
    /// Keys can be `snake_case`, `camelCase` or `kebab-case`. An unknown key is an error that names
    /// the most similar key. A document with `uniqueId` is a recipe of another program: unknown
    /// keys are then listed in [`Recipe::ignored`].
    pub fn from_value(value: &Value) -> Result<Self, RecipeError> {
        read::recipe(value)
    }

    /// Returns the system prompt: the prompt of the file, reasoning instructions and a note about
    /// the examples.
    pub fn instructions(&self) -> Option<String> {
        instructions::instructions(self)
    }

    /// Returns the examples as messages between the system prompt and the conversation. Tool calls
    /// use the names in `tools`. An example with a missing tool is omitted, because the model would
    /// learn to call that tool.
    pub fn examples(
        &self,
        tools: &[std::sync::Arc<switchboard_domain::ToolDefinition>],
    ) -> Examples {
        examples::messages(&self.examples, tools)
    }
}

#[cfg(test)]
#[path = "recipe_tests.rs"]
mod tests;

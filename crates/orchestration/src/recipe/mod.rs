//! Recipes: everything that makes a model good at one sort of task, as a file.
//!
//! A recipe brings a prompt, the tools that count and better descriptions of them, what they may do,
//! examples, how much is to be thought, and how the answer comes about. [`Recipe::from_value`] reads
//! one from parsed YAML or JSON, in our form or in the form with `uniqueId` and `mcpTools` that other
//! programs have; whatever a recipe says is a value here, and the run applies it.
//!
//! ```
//! use switchboard_orchestration::recipe::Recipe;
//!
//! let recipe = Recipe::from_value(&serde_json::json!({
//!     "name": "orders",
//!     "instructions": "You help with orders.",
//!     "tools": {"allow": ["shop__*"], "descriptions": {"find_order": "Finds an order by its number."}},
//!     "policy": {"maxToolsPerResponse": 3, "requiresApproval": ["cancel_*"]},
//! }))?;
//! assert_eq!(recipe.policy.max_tools_per_response, Some(3));
//! # Ok::<(), switchboard_orchestration::recipe::RecipeError>(())
//! ```

mod error;
mod examples;
mod fields;
mod policy;
mod read;
mod tools;
mod words;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;
use switchboard_domain::ReasoningEffort;

use crate::strategy::Strategy;
pub use error::RecipeError;
pub use examples::{Example, ExampleCall, Examples};
pub use policy::{RecipeLimits, RequiresApproval, ToolPolicy};
pub use tools::{RecipeTools, SelectedTools, ToolRules, matches};

/// The recipes that ship, as their names and the YAML of their files.
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

/// Everything that makes a model good at one sort of task.
///
/// It is stored in the form in which it is read, with the keys of our own form.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Recipe {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The model that it was made for, `provider/model` or a provider alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The prompt as it was written. [`Recipe::instructions`] is what a model gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Which tools are offered, and how they are described.
    pub tools: ToolRules,
    /// What the tools may do.
    #[serde(skip_serializing_if = "ToolPolicy::is_empty")]
    pub policy: ToolPolicy,
    /// How it is done, shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// How much is to be thought, and how.
    pub reasoning: Reasoning,
    /// How the answer comes about; `None` leaves it to the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// How tokens are drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Whether answers come piece by piece, as they are written; `None` leaves it to the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// What ends a run early.
    #[serde(skip_serializing_if = "RecipeLimits::is_empty")]
    pub limits: RecipeLimits,
    /// Keys of the other programs' form that mean nothing here.
    #[serde(skip)]
    pub ignored: Vec<String>,
}

/// How much is to be thought, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Reasoning {
    /// What the prompt says of it.
    pub style: ReasoningStyle,
    /// How much the provider is asked for; `None` leaves it to the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
}

/// What the prompt says of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningStyle {
    /// Nothing.
    #[default]
    None,
    /// One sentence before a tool call.
    Brief,
    /// The questions to go through before an answer.
    Structured,
}

impl Recipe {
    /// Reads a recipe from parsed YAML or JSON.
    ///
    /// Keys may be written in `snake_case`, `camelCase` or `kebab-case`. A key that does not exist is
    /// an error that names the nearest one. A document with `uniqueId` is one of another program:
    /// there, keys that mean nothing here are listed in [`Recipe::ignored`].
    pub fn from_value(value: &Value) -> Result<Self, RecipeError> {
        read::recipe(value)
    }

    /// The system prompt: the recipe's own, how to think, and what the examples are.
    pub fn instructions(&self) -> Option<String> {
        words::instructions(self)
    }

    /// The examples as messages, to stand between the system prompt and the conversation. Tools are
    /// called by the names under which `tools` declares them; an example with a tool that is not there
    /// is left out, as it would teach the model to call it.
    pub fn examples(
        &self,
        tools: &[std::sync::Arc<switchboard_domain::ToolDefinition>],
    ) -> Examples {
        examples::messages(&self.examples, tools)
    }
}

impl<'de> Deserialize<'de> for Recipe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(&value).map_err(de::Error::custom)
    }
}

#[cfg(test)]
#[path = "recipe_tests.rs"]
mod tests;

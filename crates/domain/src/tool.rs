//! What tools there are and which of them the model may or must use.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as it is declared to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Unique among the tools of one request, `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema (2020-12 unless `$schema` says otherwise) of the input object.
    pub input_schema: Value,
    /// JSON Schema of the structured result, where the tool promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the tool says about itself. Untrusted: a hint, never a permission.
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// Where the tool lives, if it came through a [`ToolHost`](crate::ToolHost) of several servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ToolOrigin>,
    /// A call of it runs alone: after the calls before it have ended, and before those after it
    /// begin. The host says so, by its configuration; no wire carries it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
}

impl ToolDefinition {
    /// A tool with a name, a description and an input schema.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
    ) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema,
            output_schema: None,
            annotations: ToolAnnotations::default(),
            origin: None,
            sequential: false,
        }
    }
}

/// The server that offers a tool and the tool's name there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolOrigin {
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's own name, before any alias.
    pub tool: String,
}

/// A tool's word about its effects, as in MCP's `ToolAnnotations`. `None` is "not said", which is
/// not "no".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolAnnotations {
    /// It changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// What it changes may be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Calling it again with the same input changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It reaches beyond a closed world of data, such as the web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// Which tools the model may or must use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool, though they stay declared.
    None,
    /// At least one tool, whichever.
    Required,
    /// At least one tool, of these names.
    Only(Vec<String>),
}

/// What a provider made of a [`ToolChoice`]. A choice is never dropped silently.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ToolChoiceOutcome {
    /// The wire has it and it was sent.
    #[default]
    Native,
    /// Brought about by other means.
    Emulated {
        /// By which means.
        how: String,
    },
    /// Not enforced: the model may do otherwise.
    Relaxed {
        /// Why it could not be enforced.
        why: String,
    },
}

//! Tool definitions and tool choice.

mod identity;

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
    /// The description for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema (2020-12 unless `$schema` says otherwise) of the input object.
    pub input_schema: Value,
    /// JSON Schema of the structured result, if the tool declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The tool's own description of its effects. Untrusted: it never grants a permission.
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// The server of the tool, if it comes from a [`ToolHost`](crate::ToolHost) of several servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ToolOrigin>,
    /// Whether its calls run alone, after all earlier calls end and before later calls begin. It is
    /// set by the configuration of the host and not sent to providers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
}

impl ToolDefinition {
    /// Returns a tool with a name, a description and an input schema.
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

/// A tool's statements about its effects, as in MCP's `ToolAnnotations`. `None` means unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolAnnotations {
    /// The tool changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The tool may delete or overwrite data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// A second call with the same input has no additional effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The tool accesses external systems, such as the web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// The tools that the model may or must use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool. The tools stay declared.
    None,
    /// At least one tool of any name.
    Required,
    /// At least one tool of these names.
    Only(Vec<String>),
}

/// The treatment of a [`ToolChoice`] by a provider. A choice is never dropped silently.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ToolChoiceOutcome {
    /// The wire supports the choice, and it was sent.
    #[default]
    Native,
    /// Achieved by other means.
    Emulated {
        /// The means.
        how: String,
    },
    /// Not enforced. The model may choose differently.
    Relaxed {
        /// The reason.
        why: String,
    },
}

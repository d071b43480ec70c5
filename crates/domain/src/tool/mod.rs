//! Tool definitions and tool choice.

mod canonical_text;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as it is declared to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name, unique among the tools of one request, `[A-Za-z0-9_-]{1,64}`.
    pub name: String,
    /// The display name of the tool for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description of the tool for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the input object (2020-12 unless `$schema` names another draft).
    pub input_schema: Value,
    /// JSON Schema of the structured result, if the tool declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The statements of the tool about its effects, such as read-only. They are untrusted and
    /// never grant a permission.
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// The server of the tool, if it comes from a [`ToolHost`](crate::ToolHost) of several servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ToolOrigin>,
    /// Whether a call of the tool runs alone: it starts after all earlier calls of the same model
    /// answer have ended, and later calls wait for its end. The tool's host sets this field, and
    /// providers do not receive it.
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

    /// Returns the configured name of the tool's server. `None` if the tool has no origin.
    pub fn server_name(&self) -> Option<&str> {
        self.origin.as_ref().map(|origin| origin.server.as_str())
    }

    /// Returns the tool's name on its server, or its name here if it has no origin.
    pub fn original_name(&self) -> &str {
        let origin = self.origin.as_ref();
        origin.map_or(&self.name, |origin| &origin.tool)
    }
}

/// The server that offers a tool and the tool's name there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolOrigin {
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's name on that server. [`ToolDefinition::name`] may be an alias.
    pub tool: String,
}

/// A tool's statements about its effects, as in MCP's `ToolAnnotations`. `None` means unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolAnnotations {
    /// Whether the tool only reads and changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether the tool may delete or overwrite data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Whether a second call with the same input has no additional effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Whether the tool accesses external systems, such as the web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// The tools that the model may or must use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides whether to use tools.
    #[default]
    Auto,
    /// The model may use no tool, although the request declares tools.
    None,
    /// The model must use at least one tool.
    Required,
    /// The model must use at least one of the tools with these names.
    Only(Vec<String>),
}

/// The treatment of a [`ToolChoice`] by a provider. A choice is never dropped silently.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ToolChoiceOutcome {
    /// The provider's API supports the choice, and the request contains it.
    #[default]
    Native,
    /// The API does not support the choice, but the adapter enforces it, as `how` describes.
    Emulated {
        /// Description of how the adapter enforces the choice.
        how: String,
    },
    /// The choice is not enforced. The model may choose differently.
    Relaxed {
        /// The reason why the choice is not enforced.
        why: String,
    },
}

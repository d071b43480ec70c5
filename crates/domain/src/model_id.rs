//! Model ids and model capabilities.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

/// A provider and one of its models, written `provider/model`.
///
/// The provider is the name of its configuration entry (`anthropic`, `openai`, `litellm`…). The
/// model is the provider's model name, which may contain slashes.
///
/// Clones are cheap, because every answer, event and record of a run contains one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelId {
    /// The provider's name, without a slash.
    pub provider: Arc<str>,
    /// The provider's name for the model.
    pub name: Arc<str>,
}

impl ModelId {
    /// Returns the model id `provider/name`. Does not check the two names.
    pub fn new(provider: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            provider: provider.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.name)
    }
}

/// An error about a text that is not a model id of the form `provider/model`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid model: use provider/model, such as anthropic/claude-sonnet-5-5")]
pub struct InvalidModelId(pub String);

impl FromStr for ModelId {
    type Err = InvalidModelId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((provider, name)) if !provider.is_empty() && !name.is_empty() => {
                Ok(Self::new(provider, name))
            }
            _ => Err(InvalidModelId(text.to_owned())),
        }
    }
}

impl TryFrom<String> for ModelId {
    type Error = InvalidModelId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ModelId> for String {
    fn from(id: ModelId) -> Self {
        id.to_string()
    }
}

/// The capabilities of a model. `None` means unknown. A request that needs an unknown capability is
/// sent, and the provider accepts or rejects it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelCapabilities {
    /// Maximum number of tokens of prompt and answer together.
    pub context_window: Option<u64>,
    /// Maximum number of tokens of one answer.
    pub max_output_tokens: Option<u64>,
    /// Whether the model supports native tool calls.
    pub tools: Option<bool>,
    /// Whether one answer can contain several tool calls.
    pub parallel_tools: Option<bool>,
    /// Whether the provider enforces [`ToolChoice::Required`](crate::ToolChoice::Required) and
    /// [`ToolChoice::Only`](crate::ToolChoice::Only).
    pub forced_tool_choice: Option<bool>,
    /// Whether the provider can enforce a JSON Schema for the answer.
    pub structured_output: Option<bool>,
    /// Whether the model accepts sampling parameters such as the temperature.
    pub sampling: Option<bool>,
    /// Whether the model can reason before it answers (extended thinking).
    pub reasoning: Option<bool>,
    /// Whether the model accepts images.
    pub images: Option<bool>,
    /// Whether the model accepts documents, such as PDF.
    pub documents: Option<bool>,
    /// Whether the model accepts audio.
    pub audio: Option<bool>,
    /// Whether the model can use a search tool to find tools that a request does not declare. With
    /// `Some(false)`, every request declares all tools. Otherwise, a request may declare only a
    /// selection of the tools and the search tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_search: Option<bool>,
    /// Whether calls of tools that are not read-only need a person's approval, even if the
    /// configuration allows them without approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requires_approval: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slash_separates_provider_and_model() {
        let id: ModelId = "openrouter/meta/llama".parse().unwrap();
        assert_eq!((&*id.provider, &*id.name), ("openrouter", "meta/llama"));
        assert_eq!(id.to_string(), "openrouter/meta/llama");
    }

    #[test]
    fn an_incomplete_id_returns_an_error_with_the_format() {
        for text in ["claude", "/claude", "anthropic/", ""] {
            let error = text.parse::<ModelId>().unwrap_err().to_string();
            assert!(error.contains("provider/model"), "{error}");
        }
    }
}

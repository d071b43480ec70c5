//! Which model, and what it can do.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

/// A provider and one of its models, written `provider/model`.
///
/// The provider is the name of the configured entry (`anthropic`, `openai`, `litellm`…); the model
/// is whatever that server calls it and may hold further slashes.
///
/// Cheap to clone: every answer, event and record of a run names its model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelId {
    /// The provider's name, without a slash.
    pub provider: Arc<str>,
    /// The provider's name for the model.
    pub name: Arc<str>,
}

impl ModelId {
    /// An id from its two halves.
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

/// The text is not `provider/model`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a model: write provider/model, such as anthropic/claude-sonnet-5-5")]
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

/// What a model can do. `None` is "not known", which is not "no": the request is tried, and the
/// provider's own answer decides.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelCapabilities {
    /// Tokens of prompt and answer together.
    pub context_window: Option<u64>,
    /// Tokens it can write at most.
    pub max_output_tokens: Option<u64>,
    /// It calls tools natively.
    pub tools: Option<bool>,
    /// It may ask for several tools in one answer.
    pub parallel_tools: Option<bool>,
    /// [`ToolChoice::Required`](crate::ToolChoice::Required) and
    /// [`ToolChoice::Only`](crate::ToolChoice::Only) are honoured.
    pub forced_tool_choice: Option<bool>,
    /// It answers in the form of a given JSON Schema.
    pub structured_output: Option<bool>,
    /// It takes temperature and the like.
    pub sampling: Option<bool>,
    /// It thinks and shows it.
    pub reasoning: Option<bool>,
    /// It sees images.
    pub images: Option<bool>,
    /// It reads documents such as PDF.
    pub documents: Option<bool>,
    /// It hears audio.
    pub audio: Option<bool>,
    /// It searches for tools that a request does not list. `Some(false)` means that every request lists all
    /// tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_search: Option<bool>,
    /// Its calls of tools that are not read-only need a person's approval, whatever the configuration allows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requires_approval: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slash_divides() {
        let id: ModelId = "openrouter/meta/llama".parse().unwrap();
        assert_eq!((&*id.provider, &*id.name), ("openrouter", "meta/llama"));
        assert_eq!(id.to_string(), "openrouter/meta/llama");
    }

    #[test]
    fn half_a_name_is_refused_with_the_way_out() {
        for text in ["claude", "/claude", "anthropic/", ""] {
            let error = text.parse::<ModelId>().unwrap_err().to_string();
            assert!(error.contains("provider/model"), "{error}");
        }
    }
}

//! What a provider needs back unchanged.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ModelId;

/// Opaque data that a provider attached to a part and wants to see again exactly as it was:
/// thinking signatures, encrypted reasoning, Gemini thought signatures, wire ids.
///
/// It is stamped with its minter. [`ProviderState::for_model`] gives it back to the minter only;
/// every other adapter drops the state or downgrades its part to text, and says so in a
/// [`Warning`](crate::Warning).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderState {
    /// The provider that minted it, as in [`ModelId::provider`].
    pub provider: Arc<str>,
    /// The model that minted it; `None` when any model of the provider may read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The data, in the form the minting adapter chose. Nobody else looks inside.
    pub data: Value,
}

impl ProviderState {
    /// State minted by one model, for that model only.
    pub fn minted_by(model: &ModelId, data: Value) -> Self {
        Self {
            provider: model.provider.clone(),
            model: Some(model.name.clone()),
            data,
        }
    }

    /// The data if `model` is the minter, else `None`.
    pub fn for_model(&self, model: &ModelId) -> Option<&Value> {
        let same_model = self
            .model
            .as_ref()
            .is_none_or(|minter| *minter == model.name);
        (self.provider == model.provider && same_model).then_some(&self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_minter_reads_it_again() {
        let minter = ModelId::new("anthropic", "claude-a");
        let state = ProviderState::minted_by(&minter, json!({"signature": "s"}));
        assert!(state.for_model(&minter).is_some());
        assert!(
            state
                .for_model(&ModelId::new("anthropic", "claude-b"))
                .is_none()
        );
        assert!(
            state
                .for_model(&ModelId::new("litellm", "claude-a"))
                .is_none()
        );
    }

    #[test]
    fn state_without_a_model_belongs_to_the_whole_provider() {
        let state = ProviderState {
            provider: "gemini".into(),
            model: None,
            data: json!(1),
        };
        assert!(state.for_model(&ModelId::new("gemini", "any")).is_some());
        assert!(state.for_model(&ModelId::new("openai", "any")).is_none());
    }
}

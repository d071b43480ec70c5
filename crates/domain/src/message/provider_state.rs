//! Opaque provider data that must be sent back unchanged.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ModelId;

/// Opaque data that a provider attached to a part and requires unchanged in later requests:
/// thinking signatures, encrypted reasoning, Gemini thought signatures, ids of the provider.
///
/// The state names its issuer. [`ProviderState::data_for_model`] returns data to the issuer only.
/// Other adapters drop it or send the part as text, with a [`Warning`](crate::Warning).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderState {
    /// The provider that issued the data, as in [`ModelId::provider`].
    pub provider: Arc<str>,
    /// The model that issued the data. `None` means any model of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The data, in a format that only the issuing adapter reads.
    pub data: Value,
}

impl ProviderState {
    /// Returns state that only `model` may receive.
    pub fn new_for_model(model: &ModelId, data: Value) -> Self {
        Self {
            provider: model.provider.clone(),
            model: Some(model.name.clone()),
            data,
        }
    }

    /// Returns the data if `model` issued it.
    pub fn data_for_model(&self, model: &ModelId) -> Option<&Value> {
        let issuer = self.model.as_ref();
        let same_model = issuer.is_none_or(|issuer| *issuer == model.name);
        (self.provider == model.provider && same_model).then_some(&self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_issuer_receives_the_data_again() {
        let issuer = ModelId::new("anthropic", "claude-a");
        let state = ProviderState::new_for_model(&issuer, json!({"signature": "s"}));
        assert!(state.data_for_model(&issuer).is_some());
        assert!(
            state
                .data_for_model(&ModelId::new("anthropic", "claude-b"))
                .is_none()
        );
        assert!(
            state
                .data_for_model(&ModelId::new("litellm", "claude-a"))
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
        assert!(
            state
                .data_for_model(&ModelId::new("gemini", "any"))
                .is_some()
        );
        assert!(
            state
                .data_for_model(&ModelId::new("openai", "any"))
                .is_none()
        );
    }
}

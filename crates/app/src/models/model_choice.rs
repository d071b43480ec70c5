//! Chooses the model of a run, and finds a default if the user named none.

use std::sync::Arc;

use anyhow::anyhow;
use switchboard_domain::{ChatModel, similar_names::list_available_names};
use switchboard_providers_offline::DemoModel;

use super::{Provider, Providers, Readiness};

/// A model and the reason why it was chosen.
#[derive(Clone)]
pub(crate) struct ChosenModel {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) reason: ModelChoiceReason,
}

/// The reason why a model was chosen, which commands print for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelChoiceReason {
    /// The user or the configuration named the model, so it was not chosen automatically.
    Named,
    /// The model's provider is the first one with an API key. The value is the environment variable
    /// that contains the key.
    Key(String),
    /// No API key is set, and the local server that provides the model responds.
    Answers,
    /// No other model is available, so the demo model is used.
    NothingElse,
}

impl Providers {
    /// Returns the model `named`. Without a name, returns the default model of the first provider
    /// with a key, else a model of a local Ollama server, else the demo model.
    pub(crate) async fn choose_model(&self, named: Option<&str>) -> anyhow::Result<ChosenModel> {
        let found = match named {
            Some(text) => {
                let (provider, name) = self.resolve_model(text)?;
                Some((provider, name, ModelChoiceReason::Named))
            }
            None => self.find_default_model().await,
        };
        let Some((provider, name, reason)) = found else {
            return Ok(ChosenModel {
                model: Arc::new(DemoModel::new()),
                reason: ModelChoiceReason::NothingElse,
            });
        };
        let model = self.create_model(provider, &name).await?;
        Ok(ChosenModel { model, reason })
    }

    /// Returns the default model of the first provider with a key, else a model of a local Ollama
    /// server, with the provider and the reason of the choice.
    async fn find_default_model(&self) -> Option<(&Provider, String, ModelChoiceReason)> {
        for provider in self.iter() {
            if let Some(model) = &provider.default_model
                && let Readiness::Key(variable) = self.check_readiness(provider)
            {
                return Some((provider, model.clone(), ModelChoiceReason::Key(variable)));
            }
        }
        let (provider, model) = self.find_local_model().await?;
        Some((provider, model, ModelChoiceReason::Answers))
    }

    /// Returns the provider with this name. The error for an unknown name suggests similar names.
    pub(crate) fn find_provider(&self, name: &str) -> anyhow::Result<&Provider> {
        self.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.iter().map(|it| it.name.as_str()).collect();
            anyhow!(
                "unknown provider `{name}`{}. Add your own under `providers:` in \
                 switchboard.yaml, with its `base_url`",
                list_available_names(name, &known)
            )
        })
    }
}

//! Chooses the model of a run.

use std::sync::Arc;

use switchboard_domain::{ChatModel, ModelError};
use switchboard_providers_offline::DemoModel;

use super::{Provider, Providers, Readiness};
use switchboard_domain::nearest::{did_you_mean, nearest};

/// The chosen model.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) model: Arc<dyn ChatModel>,
    /// The reason of the choice.
    pub(crate) reason: ChoiceReason,
}

/// The reason why a model was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChoiceReason {
    /// The user or the configuration named it.
    Named,
    /// Its provider is the first with a key, in this variable.
    Key(String),
    /// No key is set, and this local server answers.
    Answers,
    /// No other model is available.
    NothingElse,
}

/// A model cannot be chosen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelChoiceError {
    /// Unknown provider.
    #[error(
        "there is no provider `{name}`{}. Available: {}. Another one is added under `providers:` \
         in switchboard.yaml, with its `base_url`",
        did_you_mean(nearest.as_deref()),
        known.join(", ")
    )]
    UnknownProvider {
        /// The part before the slash.
        name: String,
        /// The most similar provider.
        nearest: Option<String>,
        known: Vec<String>,
    },
    /// A model name without provider that matches no provider.
    #[error(
        "no provider was found for model `{name}`{hint}. Write PROVIDER/MODEL; known models: {}",
        known.join(", ")
    )]
    NoProvider {
        name: String,
        /// A hint, or empty.
        hint: String,
        /// Available models.
        known: Vec<String>,
    },
    /// A provider without model name and without default model.
    #[error(
        "`{provider}` names no model: write {provider}/MODEL, or set `providers.{provider}.model`"
    )]
    NoModel { provider: String },
    /// A model that this program does not include.
    #[error("`{provider}` has no model `{name}`. Available: {provider}/{known}")]
    UnknownModel {
        provider: String,
        name: String,
        /// The only model of the provider.
        known: String,
    },
    /// The provider cannot be used.
    #[error(transparent)]
    Provider(#[from] ModelError),
}

impl Providers {
    /// Returns the model `named`. Without a name: the default of the first provider with a key,
    /// else a model of a local Ollama that answers, else the demo model.
    pub(crate) async fn choose(&self, named: Option<&str>) -> Result<Chosen, ModelChoiceError> {
        if let Some(text) = named {
            let (provider, name) = self.resolve(text)?;
            return Ok(Chosen {
                model: self.model(provider, &name).await?,
                reason: ChoiceReason::Named,
            });
        }
        for provider in self.iter() {
            if let Some(model) = &provider.default_model
                && let Readiness::Key(variable) = self.readiness(provider)
            {
                return Ok(Chosen {
                    model: self.model(provider, model).await?,
                    reason: ChoiceReason::Key(variable),
                });
            }
        }
        if let Some((provider, model)) = self.local().await {
            return Ok(Chosen {
                model: self.model(provider, &model).await?,
                reason: ChoiceReason::Answers,
            });
        }
        Ok(Chosen {
            model: Arc::new(DemoModel::new()),
            reason: ChoiceReason::NothingElse,
        })
    }

    /// Returns a provider by name.
    pub(crate) fn find_provider(&self, name: &str) -> Result<&Provider, ModelChoiceError> {
        self.get(name).ok_or_else(|| {
            let names = self.iter().map(|provider| provider.name.as_str());
            ModelChoiceError::UnknownProvider {
                name: name.to_owned(),
                nearest: nearest(name, names).map(str::to_owned),
                known: self.iter().map(|provider| provider.name.clone()).collect(),
            }
        })
    }
}

//! From what the user said to the model that is asked.

use std::{fmt, sync::Arc};

use switchboard_domain::{ChatModel, ModelError};
use switchboard_providers_offline::DemoModel;

use super::{Provider, Providers, Readiness};
use switchboard_domain::nearest::{did_you_mean, nearest};

/// The model that will be asked.
#[derive(Clone)]
pub struct Chosen {
    /// It.
    pub model: Arc<dyn ChatModel>,
    /// Why it is this one.
    pub because: Because,
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chosen")
            .field("model", self.model.id())
            .field("because", &self.because)
            .finish()
    }
}

/// Why a model is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// The user named it.
    Named,
    /// It is the first whose key is there, in this variable.
    Key(String),
    /// No key is there, but this local server answers.
    Answers,
    /// There is nothing else.
    NothingElse,
}

/// Why no model can be asked.
#[derive(Debug, thiserror::Error)]
pub enum ModelChoiceError {
    /// The text names no provider that there is.
    #[error(
        "there is no provider `{name}`{}; there are: {}. Another one is added under `providers:` \
         in switchboard.yaml, with its `base_url`",
        did_you_mean(nearest.as_deref()),
        known.join(", ")
    )]
    UnknownProvider {
        /// What stands before the slash.
        name: String,
        /// The provider most like it.
        nearest: Option<String>,
        /// All providers.
        known: Vec<String>,
    },
    /// A name without a provider that no provider was found for.
    #[error(
        "no provider was found for model `{name}`{hint}. Write PROVIDER/MODEL; known models: {}",
        known.join(", ")
    )]
    NoProvider {
        /// The name.
        name: String,
        /// The likely cause, or nothing.
        hint: String,
        /// Models that can be asked.
        known: Vec<String>,
    },
    /// A provider alone, which has no default model.
    #[error(
        "`{provider}` names no model: write {provider}/MODEL, or set `providers.{provider}.model`"
    )]
    NoModel {
        /// The provider.
        provider: String,
    },
    /// A model that this program itself does not have.
    #[error("there is no model `{name}` of `{provider}`; there is: {provider}/{known}")]
    UnknownModel {
        /// The provider.
        provider: String,
        /// What stands after the slash.
        name: String,
        /// The one there is.
        known: String,
    },
    /// The provider cannot be asked.
    #[error(transparent)]
    Provider(#[from] ModelError),
}

impl Providers {
    /// The model that `named` means; without it the default of the first provider whose key is
    /// there, else a model of a local Ollama that answers, else the offline planner.
    pub async fn choose(&self, named: Option<&str>) -> Result<Chosen, ModelChoiceError> {
        if let Some(text) = named {
            let (provider, name) = self.resolve(text)?;
            return Ok(Chosen {
                model: self.model(provider, &name).await?,
                because: Because::Named,
            });
        }
        for provider in self.iter() {
            if let Some(model) = &provider.default_model
                && let Readiness::Key(variable) = self.readiness(provider)
            {
                return Ok(Chosen {
                    model: self.model(provider, model).await?,
                    because: Because::Key(variable),
                });
            }
        }
        if let Some((provider, model)) = self.local().await {
            return Ok(Chosen {
                model: self.model(provider, &model).await?,
                because: Because::Answers,
            });
        }
        Ok(Chosen {
            model: Arc::new(DemoModel::new()),
            because: Because::NothingElse,
        })
    }

    /// The provider of that name, or an error that names those there are.
    pub fn find_provider(&self, name: &str) -> Result<&Provider, ModelChoiceError> {
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

//! From what the user said to the model that is asked.

use std::{fmt, sync::Arc};

use switchboard_domain::{ChatModel, ModelError, ModelId};
use switchboard_providers_offline::OfflinePlanner;

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
    /// A model without its provider.
    #[error("`{name}` says no provider: write provider/model, such as {example}")]
    NoProvider {
        /// What is written.
        name: String,
        /// How it could be written.
        example: String,
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
            let (provider, name) = self.find(text)?;
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
            model: Arc::new(OfflinePlanner::new()),
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

    fn no_provider(&self, name: String) -> ModelChoiceError {
        let has = |provider: &&Provider| {
            let models = self.known_models(provider);
            models.iter().any(|(model, _)| *model == name)
        };
        let names = self.iter().map(|provider| provider.name.as_str());
        let example = match (self.iter().find(has), nearest(&name, names)) {
            (Some(provider), _) => format!("{}/{name}", provider.name),
            // A provider that was mistyped.
            (None, Some(near)) => near.to_owned(),
            (None, None) => "anthropic/claude-sonnet-5-5".to_owned(),
        };
        ModelChoiceError::NoProvider { name, example }
    }

    fn find(&self, text: &str) -> Result<(&Provider, String), ModelChoiceError> {
        let (provider, model) = match text.parse::<ModelId>() {
            Ok(id) => (id.provider.to_string(), Some(id.name.to_string())),
            Err(_) => (text.trim_end_matches('/').to_owned(), None),
        };
        if model.is_none() && self.get(&provider).is_none() {
            return Err(self.no_provider(provider));
        }
        let provider = self.find_provider(&provider)?;
        let model = model.or_else(|| provider.default_model.clone());
        match (model, &provider.default_model) {
            (None, _) => Err(ModelChoiceError::NoModel {
                provider: provider.name.clone(),
            }),
            (Some(name), Some(known)) if provider.is_offline() && name != *known => {
                Err(ModelChoiceError::UnknownModel {
                    provider: provider.name.clone(),
                    name,
                    known: known.clone(),
                })
            }
            (Some(name), _) => Ok((provider, name)),
        }
    }
}

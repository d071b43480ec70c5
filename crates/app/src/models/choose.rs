//! Chooses the model of a run.

use std::sync::Arc;

use anyhow::anyhow;
use switchboard_domain::ChatModel;
use switchboard_providers_offline::DemoModel;

use super::{Provider, Providers, Readiness};
use crate::run_session::failure::available;

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

impl Providers {
    /// Returns the model `named`. Without a name: the default of the first provider with a key,
    /// else a model of a local Ollama that answers, else the demo model.
    pub(crate) async fn choose(&self, named: Option<&str>) -> anyhow::Result<Chosen> {
        if let Some(text) = named {
            let (provider, name) = self.resolve(text)?;
            return self.connect(provider, &name, ChoiceReason::Named).await;
        }
        for provider in self.iter() {
            if let Some(model) = &provider.default_model
                && let Readiness::Key(variable) = self.readiness(provider)
            {
                return self
                    .connect(provider, model, ChoiceReason::Key(variable))
                    .await;
            }
        }
        if let Some((provider, model)) = self.local().await {
            return self.connect(provider, &model, ChoiceReason::Answers).await;
        }
        Ok(Chosen {
            model: Arc::new(DemoModel::new()),
            reason: ChoiceReason::NothingElse,
        })
    }

    async fn connect(
        &self,
        provider: &Provider,
        name: &str,
        reason: ChoiceReason,
    ) -> anyhow::Result<Chosen> {
        let model = self.model(provider, name).await?;
        Ok(Chosen { model, reason })
    }

    /// Returns a provider by name.
    pub(crate) fn find_provider(&self, name: &str) -> anyhow::Result<&Provider> {
        self.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.iter().map(|it| it.name.as_str()).collect();
            anyhow!(
                "there is no provider `{name}`{}. Another one is added under `providers:` in \
                 switchboard.yaml, with its `base_url`",
                available(name, &known)
            )
        })
    }
}

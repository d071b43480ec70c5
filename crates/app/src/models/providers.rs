//! The available providers and their models.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use switchboard_domain::{ChatModel, ModelCapabilities, ModelError, ModelId};
use switchboard_providers_common::catalog;
use switchboard_providers_offline::{self as offline, DemoModel};

use super::{
    client::{self, Client},
    whole::WholeAnswers,
};
use crate::config::{Config, KINDS, ProviderEntry, ProviderKind, environment::Environment};

/// All providers.
#[allow(clippy::struct_field_names)] // They are the providers.
pub(crate) struct Providers {
    environment: Environment,
    providers: Vec<Provider>,
    /// The models that the configuration names.
    configured: Vec<ModelId>,
    /// One connection per provider, created on first use.
    clients: Mutex<HashMap<String, Arc<Client>>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Provider {
    /// The part of its model names before the slash.
    pub(crate) name: String,
    pub(crate) default_model: Option<String>,
    /// The connection settings. `None` for the demo model.
    entry: Option<ProviderEntry>,
}

/// Whether a provider can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// It has a key, from this variable.
    Key(String),
    NoKeyNeeded,
    /// The variable of its key is not set.
    KeyMissing(String),
}

impl Providers {
    /// Creates the built-in providers with their configuration, then the additional ones.
    pub(crate) fn new(config: &Config, environment: &Environment) -> Self {
        let mut entries: Vec<ProviderEntry> = KINDS
            .into_iter()
            .filter(|(_, kind)| *kind != ProviderKind::OpenAiCompatible)
            .map(|(name, kind)| ProviderEntry::plain(name, kind))
            .collect();
        for entry in &config.providers {
            match entries.iter_mut().find(|old| old.name == entry.name) {
                Some(old) => old.clone_from(entry),
                None => entries.push(entry.clone()),
            }
        }
        let mut providers: Vec<Provider> = entries.into_iter().map(Provider::of).collect();
        providers.push(Provider {
            name: offline::PROVIDER.to_owned(),
            default_model: Some(offline::MODEL.to_owned()),
            entry: None,
        });
        let fallbacks = config.fallback_models.iter().flatten();
        let named = config.model.iter().chain(fallbacks);
        Self {
            environment: environment.clone(),
            providers,
            configured: named.filter_map(|name| name.parse().ok()).collect(),
            clients: Mutex::default(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.providers.iter()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// Returns whether a provider can be used, without a request.
    pub(crate) fn readiness(&self, provider: &Provider) -> Readiness {
        let Some(entry) = &provider.entry else {
            return Readiness::NoKeyNeeded;
        };
        let variables = client::key_variables(entry);
        let is_set = |variable: &&&str| self.environment.get(variable).is_some();
        match (variables.iter().find(is_set), variables.first()) {
            (Some(set), _) => Readiness::Key((*set).to_owned()),
            (None, None) => Readiness::NoKeyNeeded,
            // A server at another address may need no key.
            (None, Some(_)) if self.is_elsewhere(entry) => Readiness::NoKeyNeeded,
            (None, Some(first)) => Readiness::KeyMissing((*first).to_owned()),
        }
    }

    /// Returns whether a server of OpenAI's wire is not OpenAI.
    fn is_elsewhere(&self, entry: &ProviderEntry) -> bool {
        let speaks_openai = matches!(
            entry.kind,
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses
        );
        speaks_openai && entry.api_key_env.is_none() && self.address_of(entry).is_some()
    }

    /// Returns the address that the configuration or a variable sets for a provider.
    pub(crate) fn address(&self, provider: &Provider) -> Option<String> {
        self.address_of(provider.entry.as_ref()?)
    }

    fn address_of(&self, entry: &ProviderEntry) -> Option<String> {
        let variable = || self.environment.get(client::address_variable(entry.kind)?);
        let address = entry.base_url.as_deref().or_else(variable);
        address.map(str::to_owned)
    }

    /// Returns the models that the configuration names with their providers.
    pub(crate) fn configured(&self) -> &[ModelId] {
        &self.configured
    }

    /// Returns a model. Only Ollama needs a request, for the capabilities of its model.
    pub(crate) async fn model(
        &self,
        provider: &Provider,
        name: &str,
    ) -> Result<Arc<dyn ChatModel>, ModelError> {
        let model = self.client(provider)?.model(name).await?;
        let Some(entry) = &provider.entry else {
            return Ok(model);
        };
        let model = client::with_text_calls(model, entry);
        Ok(if entry.streams {
            model
        } else {
            Arc::new(WholeAnswers(model))
        })
    }

    /// Returns the models that a provider lists, with their capabilities. `None` if it has no list.
    pub(crate) async fn served_models(
        &self,
        provider: &Provider,
    ) -> Option<Result<Vec<(String, ModelCapabilities)>, ModelError>> {
        let client = match self.client(provider) {
            Ok(client) => client,
            Err(error) => return Some(Err(error)),
        };
        let served = client.served().await?;
        Some(served.map(|models| {
            models
                .into_iter()
                .map(|model| {
                    let mut capabilities = provider.capabilities(&model.name);
                    capabilities.context_window =
                        model.context_window.or(capabilities.context_window);
                    (model.name, capabilities)
                })
                .collect()
        }))
    }

    /// Returns the first local provider without key that answers, and one of its models.
    pub(crate) async fn local(&self) -> Option<(&Provider, String)> {
        for provider in &self.providers {
            if !provider.is_local() {
                continue;
            }
            let Ok(client) = self.client(provider) else {
                continue;
            };
            if !client.is_there().await {
                continue;
            }
            let installed = match &provider.default_model {
                Some(model) => Some(model.clone()),
                None => match client.served().await {
                    Some(Ok(models)) => models.into_iter().next().map(|model| model.name),
                    _ => None,
                },
            };
            if let Some(model) = installed {
                return Some((provider, model));
            }
        }
        None
    }

    fn client(&self, provider: &Provider) -> Result<Arc<Client>, ModelError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&provider.name) {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(match &provider.entry {
            Some(entry) => Client::of(entry, &self.environment)?,
            None => Client::Offline,
        });
        clients.insert(provider.name.clone(), Arc::clone(&client));
        Ok(client)
    }
}

impl Provider {
    /// Returns all models of the catalogue for this provider.
    pub(crate) fn catalogued_models(&self) -> Vec<(String, ModelCapabilities)> {
        match self.vendor() {
            None => self.known_models(),
            Some(vendor) => catalog::models(vendor)
                .map(|model| (model.name.to_owned(), self.capabilities(model.name)))
                .collect(),
        }
    }

    /// Returns the models that are known without a request, with their capabilities.
    pub(crate) fn known_models(&self) -> Vec<(String, ModelCapabilities)> {
        let mut names = self.featured();
        if let Some(default) = &self.default_model
            && !names.contains(default)
        {
            names.insert(0, default.clone());
        }
        let models = names.into_iter().map(|name| {
            let capabilities = self.capabilities(&name);
            (name, capabilities)
        });
        models.collect()
    }

    fn of(entry: ProviderEntry) -> Self {
        let mut provider = Self {
            name: entry.name.clone(),
            default_model: entry.model.clone(),
            entry: Some(entry),
        };
        if provider.default_model.is_none() {
            provider.default_model = provider.featured().into_iter().next();
        }
        provider
    }

    /// Returns the variable of its key, if it has one.
    pub(crate) fn key_variable(&self) -> Option<&str> {
        let entry = self.entry.as_ref()?;
        client::key_variables(entry).into_iter().next()
    }

    /// Returns whether it is a local server, which may not be running.
    pub(crate) fn is_local(&self) -> bool {
        let is_ollama = |entry: &ProviderEntry| entry.kind == ProviderKind::Ollama;
        self.entry.as_ref().is_some_and(is_ollama)
    }

    /// Returns whether its models run in this program.
    pub(crate) fn is_offline(&self) -> bool {
        self.entry.is_none()
    }

    /// Returns the vendor in the catalogue.
    pub(crate) fn vendor(&self) -> Option<&'static str> {
        match self.entry.as_ref()?.kind {
            ProviderKind::Anthropic => Some("anthropic"),
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses => Some("openai"),
            ProviderKind::Gemini => Some("gemini"),
            ProviderKind::Ollama | ProviderKind::OpenAiCompatible => None,
        }
    }

    /// Returns the catalogue's entry of a model.
    pub(crate) fn catalogued(&self, model: &str) -> Option<catalog::ModelEntry> {
        let entry = self.entry.as_ref()?;
        match (self.vendor(), &entry.profile) {
            (Some(vendor), _) => catalog::lookup(vendor, model),
            // Profiles have the names of the catalogue's vendors.
            (None, Some(profile)) => catalog::lookup(&profile.name, model),
            (None, None) => None,
        }
    }

    /// Returns the catalogue's name for a model that this provider's wire serves.
    pub(crate) fn catalogued_here(&self, model: &str) -> Option<&'static str> {
        let serves_chat_only = self.entry.as_ref()?.kind == ProviderKind::OpenAi;
        let entry = self.catalogued(model)?;
        (!(serves_chat_only && entry.responses_only)).then_some(entry.name)
    }

    /// Returns the models to suggest, with the default first.
    fn featured(&self) -> Vec<String> {
        match (self.vendor(), self.is_offline()) {
            (Some(vendor), _) => catalog::featured(vendor)
                .into_iter()
                .map(|model| model.name.to_owned())
                .collect(),
            (None, true) => vec![offline::MODEL.to_owned()],
            (None, false) => Vec::new(),
        }
    }

    fn capabilities(&self, model: &str) -> ModelCapabilities {
        match &self.entry {
            Some(entry) => client::capabilities(entry, model),
            None => DemoModel::new().capabilities().clone(),
        }
    }
}

//! The providers there are, and models of them on demand.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use switchboard_domain::{ChatModel, ModelCapabilities, ModelError, ModelId};
use switchboard_providers_common::catalog;
use switchboard_providers_offline::{self as offline, DemoModel};

use super::{
    client::{self, Client},
    whole::WholeAnswers,
};
use crate::{
    config::{Config, ProviderEntry, ProviderKind},
    environment::Environment,
};

/// The providers that are there without being configured, in the order in which one is looked for
/// when no model was chosen.
const BUILT_IN: [(&str, ProviderKind); 5] = [
    ("anthropic", ProviderKind::Anthropic),
    ("openai", ProviderKind::OpenAi),
    ("openai-responses", ProviderKind::OpenAiResponses),
    ("gemini", ProviderKind::Gemini),
    ("ollama", ProviderKind::Ollama),
];

/// All providers.
#[allow(clippy::struct_field_names)] // They are the providers.
pub struct Providers {
    environment: Environment,
    providers: Vec<Provider>,
    /// The models that the configuration names.
    configured: Vec<ModelId>,
    /// One connection each, made when it is first wanted: the models of a provider share its pool.
    clients: Mutex<HashMap<String, Arc<Client>>>,
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers")
            .field("environment", &self.environment)
            .field("providers", &self.providers)
            .finish_non_exhaustive()
    }
}

/// One provider.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The name before the slash of its models.
    pub name: String,
    /// The model to ask where none is named.
    pub default_model: Option<String>,
    /// How it is reached; `None` for the planner, which is in this program.
    entry: Option<ProviderEntry>,
}

/// Whether a provider can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It has its key, from this variable.
    Key(String),
    /// It needs none.
    NoKeyNeeded,
    /// The variable that should hold its key is not set.
    KeyMissing(String),
}

impl Providers {
    /// The built-in ones as configured, then the others in the order of the configuration.
    pub fn new(config: &Config, environment: &Environment) -> Self {
        let mut entries: Vec<ProviderEntry> = BUILT_IN
            .into_iter()
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
        let fallbacks = config.run.fallback_models.iter().flatten();
        let named = config.model.iter().chain(fallbacks);
        Self {
            environment: environment.clone(),
            providers,
            configured: named.filter_map(|name| name.parse().ok()).collect(),
            clients: Mutex::default(),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.providers.iter()
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// Whether a provider can be asked, without asking it.
    pub fn readiness(&self, provider: &Provider) -> Readiness {
        let Some(entry) = &provider.entry else {
            return Readiness::NoKeyNeeded;
        };
        let variables = client::key_variables(entry);
        let is_set = |variable: &&&str| self.environment.get(variable).is_some();
        match (variables.iter().find(is_set), variables.first()) {
            (Some(set), _) => Readiness::Key((*set).to_owned()),
            (None, None) => Readiness::NoKeyNeeded,
            // A server at another address may need none.
            (None, Some(_)) if self.is_elsewhere(entry) => Readiness::NoKeyNeeded,
            (None, Some(first)) => Readiness::KeyMissing((*first).to_owned()),
        }
    }

    /// Only OpenAI's wire is spoken by servers that want no key.
    fn is_elsewhere(&self, entry: &ProviderEntry) -> bool {
        let speaks_openai = matches!(
            entry.kind,
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses
        );
        speaks_openai && entry.api_key_env.is_none() && self.address_of(entry).is_some()
    }

    /// Returns the address that the configuration or a variable sets for a provider.
    pub(super) fn address(&self, provider: &Provider) -> Option<String> {
        self.address_of(provider.entry.as_ref()?)
    }

    fn address_of(&self, entry: &ProviderEntry) -> Option<String> {
        let variable = || self.environment.get(client::address_variable(entry.kind)?);
        let address = entry.base_url.as_deref().or_else(variable);
        address.map(str::to_owned)
    }

    /// Returns the models that the configuration names with their providers.
    pub(super) fn configured(&self) -> &[ModelId] {
        &self.configured
    }

    /// A model of a provider. No request is made, but to a server that alone knows what its model
    /// can do (Ollama).
    pub async fn model(
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

    /// The models of a provider that can be named without asking it, with what is known of them.
    pub fn known_models(&self, provider: &Provider) -> Vec<(String, ModelCapabilities)> {
        let mut names = provider.featured();
        if let Some(default) = &provider.default_model
            && !names.contains(default)
        {
            names.insert(0, default.clone());
        }
        names
            .into_iter()
            .map(|name| {
                let capabilities = provider.capabilities(&name);
                (name, capabilities)
            })
            .collect()
    }

    /// All models of the catalogue for a provider.
    pub fn catalogued_models(&self, provider: &Provider) -> Vec<(String, ModelCapabilities)> {
        match provider.vendor() {
            None => self.known_models(provider),
            Some(vendor) => catalog::models(vendor)
                .map(|model| (model.name.to_owned(), provider.capabilities(model.name)))
                .collect(),
        }
    }

    /// The models that a provider says it serves, with what is known of them. `None` if there is
    /// nothing to ask.
    pub async fn served_models(
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
                    let known = provider.capabilities(&model.name);
                    let capabilities = ModelCapabilities {
                        context_window: model.context_window.or(known.context_window),
                        ..known
                    };
                    (model.name, capabilities)
                })
                .collect()
        }))
    }

    /// The first provider that needs no key, runs on this machine and answers, with a model of it.
    pub(super) async fn local(&self) -> Option<(&Provider, String)> {
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

    /// The variable that holds its key, if it has one.
    pub fn key_variable(&self) -> Option<&str> {
        let entry = self.entry.as_ref()?;
        client::key_variables(entry).into_iter().next()
    }

    /// Whether it is a server that may or may not run on this machine.
    pub fn is_local(&self) -> bool {
        let is_ollama = |entry: &ProviderEntry| entry.kind == ProviderKind::Ollama;
        self.entry.as_ref().is_some_and(is_ollama)
    }

    /// Whether its models run in this program.
    pub fn is_offline(&self) -> bool {
        self.entry.is_none()
    }

    /// The vendor under which the catalogue has its models.
    pub(super) fn vendor(&self) -> Option<&'static str> {
        match self.entry.as_ref()?.kind {
            ProviderKind::Anthropic => Some("anthropic"),
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses => Some("openai"),
            ProviderKind::Gemini => Some("gemini"),
            ProviderKind::Ollama | ProviderKind::OpenAiCompatible => None,
        }
    }

    /// What the catalogue says of one of its models.
    pub fn catalogued(&self, model: &str) -> Option<catalog::ModelEntry> {
        let entry = self.entry.as_ref()?;
        match (self.vendor(), &entry.profile) {
            (Some(vendor), _) => catalog::lookup(vendor, model),
            // The profiles have the names that the catalogue knows.
            (None, Some(profile)) => catalog::lookup(&profile.name, model),
            (None, None) => None,
        }
    }

    /// Returns the catalogue's name for a model that this provider's wire serves.
    pub(super) fn catalogued_here(&self, model: &str) -> Option<&'static str> {
        let serves_chat_only = self.entry.as_ref()?.kind == ProviderKind::OpenAi;
        let entry = self.catalogued(model)?;
        (!(serves_chat_only && entry.responses_only)).then_some(entry.name)
    }

    /// Models worth naming, the default first.
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

//! All model providers that a run can use, with their models.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use switchboard_domain::{ChatModel, ModelCapabilities, ModelError, ModelId};
use switchboard_providers_common::catalog;
use switchboard_providers_offline::{self as offline, DemoModel};

use super::{
    non_streaming_model::NonStreamingModel,
    provider_client::{self, ProviderClient},
};
use crate::config::{self, Config, KINDS, ProviderEntry, ProviderKind, environment::Environment};

/// The built-in and the configured model providers.
#[allow(clippy::struct_field_names, reason = "the list of providers")]
pub(crate) struct Providers {
    environment: Environment,
    providers: Vec<Provider>,
    /// Ids of the configured default model and of the configured fallback models.
    pub(super) configured: Vec<ModelId>,
    /// Connections by provider name. Each connection is created at its first use.
    clients: Mutex<HashMap<String, Arc<ProviderClient>>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Provider {
    /// Name of the provider, which is the part of a model id before the slash, such as `openai`.
    pub(crate) name: String,
    pub(crate) default_model: Option<String>,
    /// Connection settings. `None` for the built-in provider of the demo model.
    entry: Option<ProviderEntry>,
}

/// Whether a provider can be used: it has an API key, needs none, or lacks one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// The provider's API key is in this environment variable.
    Key(String),
    NoKeyNeeded,
    /// The provider cannot be used before this environment variable contains an API key.
    KeyMissing(String),
}

impl Providers {
    /// Creates the built-in providers and the configured ones. A configured provider replaces a
    /// built-in provider with the same name.
    pub(crate) fn new(config: &Config, environment: &Environment) -> Self {
        let mut entries: Vec<ProviderEntry> = KINDS
            .into_iter()
            .filter(|(_, kind)| *kind != ProviderKind::OpenAiCompatible)
            .map(|(name, kind)| ProviderEntry::with_default_settings(name, kind))
            .collect();
        let configured = config.providers.clone();
        config::replace_by_name(&mut entries, configured, |entry| &entry.name);
        let mut providers: Vec<Provider> = entries.into_iter().map(Provider::from_entry).collect();
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

    /// Returns whether the API key of the provider is set, missing or not needed. Sends no request.
    pub(crate) fn check_readiness(&self, provider: &Provider) -> Readiness {
        let Some(entry) = &provider.entry else {
            return Readiness::NoKeyNeeded;
        };
        let variables = provider_client::api_key_variables(entry);
        let is_set = |variable: &&&str| self.environment.get(variable).is_some();
        match (variables.iter().find(is_set), variables.first()) {
            (Some(set), _) => Readiness::Key((*set).to_owned()),
            (None, None) => Readiness::NoKeyNeeded,
            // A server at a configured address may accept requests without an API key.
            (None, Some(_)) if self.is_custom_openai_server(entry) => Readiness::NoKeyNeeded,
            (None, Some(first)) => Readiness::KeyMissing((*first).to_owned()),
        }
    }

    /// Returns whether a provider uses an OpenAI API format at a configured address, and names no
    /// variable for an API key.
    fn is_custom_openai_server(&self, entry: &ProviderEntry) -> bool {
        let speaks_openai = matches!(
            entry.kind,
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses
        );
        speaks_openai && entry.api_key_env.is_none() && self.find_server_address(entry).is_some()
    }

    /// Returns the provider's address from the configuration or an environment variable, if set.
    pub(crate) fn configured_address(&self, provider: &Provider) -> Option<String> {
        self.find_server_address(provider.entry.as_ref()?)
    }

    fn find_server_address(&self, entry: &ProviderEntry) -> Option<String> {
        let (_, name) = provider_client::sdk_variable_names(entry.kind);
        let variable = || self.environment.get(name?);
        let address = entry.base_url.as_deref().or_else(variable);
        address.map(str::to_owned)
    }

    /// Creates a model of a provider. Sends a request only to Ollama, which returns the
    /// capabilities of the model.
    pub(crate) async fn create_model(
        &self,
        provider: &Provider,
        name: &str,
    ) -> Result<Arc<dyn ChatModel>, ModelError> {
        let client = self.get_or_create_client(provider)?;
        let model = client.create_model(name).await?;
        let Some(entry) = &provider.entry else {
            return Ok(model);
        };
        let model = provider_client::with_text_call_parser(model, entry);
        Ok(if entry.stream == Some(false) {
            Arc::new(NonStreamingModel(model))
        } else {
            model
        })
    }

    /// Requests the list of models and their capabilities from a provider. Returns `None` if the
    /// provider offers no such list.
    pub(crate) async fn request_served_models(
        &self,
        provider: &Provider,
    ) -> Option<Result<Vec<(String, ModelCapabilities)>, ModelError>> {
        let client = match self.get_or_create_client(provider) {
            Ok(client) => client,
            Err(error) => return Some(Err(error)),
        };
        let served = client.list_models().await?;
        Some(served.map(|models| {
            models
                .into_iter()
                .map(|model| {
                    let mut capabilities = provider.model_capabilities(&model.name);
                    capabilities.context_window =
                        model.context_window.or(capabilities.context_window);
                    (model.name, capabilities)
                })
                .collect()
        }))
    }

    /// Returns the first local provider whose server responds, with its configured default model or
    /// else its first installed model. Returns `None` if no such provider has a model.
    pub(crate) async fn find_local_model(&self) -> Option<(&Provider, String)> {
        for provider in &self.providers {
            if !provider.is_local() {
                continue;
            }
            let Ok(client) = self.get_or_create_client(provider) else {
                continue;
            };
            if !client.is_reachable().await {
                continue;
            }
            let installed = match &provider.default_model {
                Some(model) => Some(model.clone()),
                None => match client.list_models().await {
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

    fn get_or_create_client(&self, provider: &Provider) -> Result<Arc<ProviderClient>, ModelError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&provider.name) {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(match &provider.entry {
            Some(entry) => ProviderClient::from_entry(entry, &self.environment)?,
            None => ProviderClient::Offline,
        });
        clients.insert(provider.name.clone(), Arc::clone(&client));
        Ok(client)
    }
}

impl Provider {
    /// Returns the names and capabilities of this provider's models in the model catalogue. If the
    /// catalogue does not contain the vendor, returns [`Self::known_models`].
    pub(crate) fn catalogued_models(&self) -> Vec<(String, ModelCapabilities)> {
        match self.catalogue_vendor() {
            None => self.known_models(),
            Some(vendor) => catalog::list_models(vendor)
                .map(|model| (model.name.to_owned(), self.model_capabilities(model.name)))
                .collect(),
        }
    }

    /// Returns the models that are known without a request, with their capabilities.
    pub(crate) fn known_models(&self) -> Vec<(String, ModelCapabilities)> {
        let mut names = self.suggested_models();
        if let Some(default) = &self.default_model
            && !names.contains(default)
        {
            names.insert(0, default.clone());
        }
        let models = names.into_iter().map(|name| {
            let capabilities = self.model_capabilities(&name);
            (name, capabilities)
        });
        models.collect()
    }

    fn from_entry(entry: ProviderEntry) -> Self {
        let mut provider = Self {
            name: entry.name.clone(),
            default_model: entry.model.clone(),
            entry: Some(entry),
        };
        if provider.default_model.is_none() {
            provider.default_model = provider.suggested_models().into_iter().next();
        }
        provider
    }

    /// Returns whether the provider uses Ollama, which counts as a local server. Such a server may
    /// not be running.
    pub(crate) fn is_local(&self) -> bool {
        let is_ollama = |entry: &ProviderEntry| entry.kind == ProviderKind::Ollama;
        self.entry.as_ref().is_some_and(is_ollama)
    }

    /// Returns whether the models of the provider run in this program, as the demo model does.
    pub(crate) fn runs_in_process(&self) -> bool {
        self.entry.is_none()
    }

    /// Returns the provider's vendor name in the model catalogue. `None` if the catalogue does not
    /// contain the vendor.
    pub(crate) fn catalogue_vendor(&self) -> Option<&'static str> {
        match self.entry.as_ref()?.kind {
            ProviderKind::Anthropic => Some("anthropic"),
            ProviderKind::OpenAi | ProviderKind::OpenAiResponses => Some("openai"),
            ProviderKind::Gemini => Some("gemini"),
            ProviderKind::Ollama | ProviderKind::OpenAiCompatible => None,
        }
    }

    /// Returns the entry of the model catalogue for a model of this provider. Returns `None` if the
    /// catalogue does not contain the model.
    pub(crate) fn find_catalogue_entry(&self, model: &str) -> Option<catalog::ModelEntry> {
        let entry = self.entry.as_ref()?;
        match (self.catalogue_vendor(), &entry.profile) {
            (Some(vendor), _) => catalog::find_model_entry(vendor, model),
            // The profile of an OpenAI-compatible server has the name of its vendor in the model
            // catalogue.
            (None, Some(profile)) => catalog::find_model_entry(&profile.name, model),
            (None, None) => None,
        }
    }

    /// Returns the name under which the catalogue lists `model`. `model` may be an alias of this
    /// name. Returns `None` if the catalogue does not list the model, or if the model supports only
    /// the Responses API and the provider uses Chat Completions.
    pub(crate) fn find_catalogue_name(&self, model: &str) -> Option<&'static str> {
        let serves_chat_only = self.entry.as_ref()?.kind == ProviderKind::OpenAi;
        let entry = self.find_catalogue_entry(model)?;
        (!(serves_chat_only && entry.responses_only)).then_some(entry.name)
    }

    /// Returns the names of the recommended models of the vendor, with the default model first.
    fn suggested_models(&self) -> Vec<String> {
        let vendor = self.catalogue_vendor().into_iter();
        let models = vendor.flat_map(catalog::featured_models);
        models.map(|model| model.name.to_owned()).collect()
    }

    fn model_capabilities(&self, model: &str) -> ModelCapabilities {
        match &self.entry {
            Some(entry) => provider_client::known_capabilities(entry, model),
            None => DemoModel::new().capabilities().clone(),
        }
    }
}

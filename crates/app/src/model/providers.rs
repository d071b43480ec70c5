//! The providers there are, and models of them on demand.

use std::sync::Arc;

use secrecy::SecretString;
use switchboard_domain::{ChatModel, ModelCapabilities, ModelError};
use switchboard_providers_anthropic::{self as anthropic, AnthropicClient, AnthropicConfig};
use switchboard_providers_offline::{self as offline, OfflinePlanner};
use switchboard_providers_openai::{self as openai, OpenAiClient, OpenAiConfig, Profile};

use crate::{
    config::{Config, ProviderEntry, ProviderKind},
    environment::Environment,
};

/// Models to name where only the provider is known, the default first.
const ANTHROPIC_MODELS: [&str; 3] = ["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"];
const OPENAI_MODELS: [&str; 2] = ["gpt-6.1-sol", "gpt-6-luna"];

/// All providers, in the order in which one is looked for when no model was chosen.
#[derive(Debug)]
pub struct Providers {
    environment: Environment,
    providers: Vec<Provider>,
}

/// One provider.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The name before the slash of its models.
    pub name: String,
    /// The model to ask where none is named.
    pub default_model: Option<String>,
    wire: Wire,
}

#[derive(Debug, Clone)]
enum Wire {
    Anthropic(ProviderEntry),
    OpenAi(ProviderEntry),
    Offline,
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

/// A connection to a provider.
enum Client {
    Anthropic(AnthropicClient),
    OpenAi(OpenAiClient),
    Offline,
}

impl Providers {
    /// The built-in ones as configured, then the others in the order of the configuration.
    pub fn new(config: &Config, environment: &Environment) -> Self {
        let mut entries = vec![
            plain("anthropic", ProviderKind::Anthropic),
            plain("openai", ProviderKind::OpenAi),
        ];
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
            wire: Wire::Offline,
        });
        Self {
            environment: environment.clone(),
            providers,
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
        match provider.key_variable() {
            None => Readiness::NoKeyNeeded,
            Some(variable) if self.environment.get(variable).is_some() => {
                Readiness::Key(variable.to_owned())
            }
            Some(_) if self.has_auth_token(provider) => {
                Readiness::Key(anthropic::config::AUTH_TOKEN_VARIABLE.to_owned())
            }
            // A server at another address may need none.
            Some(_) if self.is_elsewhere(provider) => Readiness::NoKeyNeeded,
            Some(variable) => Readiness::KeyMissing(variable.to_owned()),
        }
    }

    fn has_auth_token(&self, provider: &Provider) -> bool {
        let variable = anthropic::config::AUTH_TOKEN_VARIABLE;
        matches!(provider.wire, Wire::Anthropic(_)) && self.environment.get(variable).is_some()
    }

    fn is_elsewhere(&self, provider: &Provider) -> bool {
        match &provider.wire {
            Wire::OpenAi(entry) if entry.api_key_env.is_none() => {
                entry.base_url.is_some()
                    || self
                        .environment
                        .get(openai::config::BASE_URL_VARIABLE)
                        .is_some()
            }
            _ => false,
        }
    }

    /// A model of a provider. No request is made.
    pub fn model(&self, provider: &Provider, name: &str) -> Result<Arc<dyn ChatModel>, ModelError> {
        Ok(match self.client(provider)? {
            Client::Anthropic(client) => Arc::new(client.model(name)),
            Client::OpenAi(client) => Arc::new(client.model(name)),
            Client::Offline => Arc::new(OfflinePlanner::new()),
        })
    }

    /// The models of a provider that can be named without asking it, with what is known of them.
    pub fn known_models(&self, provider: &Provider) -> Vec<(String, ModelCapabilities)> {
        let names: &[&str] = match &provider.wire {
            Wire::Anthropic(_) => &ANTHROPIC_MODELS,
            Wire::OpenAi(entry) if entry.kind == ProviderKind::OpenAi => &OPENAI_MODELS,
            Wire::OpenAi(_) => &[],
            Wire::Offline => &[offline::MODEL],
        };
        let mut names: Vec<&str> = names.to_vec();
        if let Some(default) = provider.default_model.as_deref()
            && !names.contains(&default)
        {
            names.insert(0, default);
        }
        names
            .into_iter()
            .map(|name| (name.to_owned(), provider.capabilities(name)))
            .collect()
    }

    /// The models that a provider says it serves, with what is known of them. `None` if there is
    /// nothing to ask.
    pub async fn served_models(
        &self,
        provider: &Provider,
    ) -> Option<Result<Vec<(String, ModelCapabilities)>, ModelError>> {
        let served = match self.client(provider) {
            Err(error) => return Some(Err(error)),
            Ok(Client::Offline) => return None,
            Ok(Client::Anthropic(client)) => client.list_models().await.map(|models| {
                let pair = |model: anthropic::ServedModel| (model.name, model.context_window);
                models.into_iter().map(pair).collect::<Vec<_>>()
            }),
            Ok(Client::OpenAi(client)) => client.list_models().await.map(|models| {
                let pair = |model: openai::ServedModel| (model.name, model.context_window);
                models.into_iter().map(pair).collect()
            }),
        };
        let with_capabilities = |(name, context_window): (String, Option<u64>)| {
            let known = provider.capabilities(&name);
            let capabilities = ModelCapabilities {
                context_window: context_window.or(known.context_window),
                ..known
            };
            (name, capabilities)
        };
        Some(served.map(|models| models.into_iter().map(with_capabilities).collect()))
    }

    fn client(&self, provider: &Provider) -> Result<Client, ModelError> {
        // What the entry says wins over the variables of the vendor's own SDK.
        let lookup = |entry: &ProviderEntry, base_url: &str, key: &str, name: &str| {
            if name == base_url && entry.base_url.is_some() {
                return entry.base_url.clone();
            }
            let variable = match &entry.api_key_env {
                Some(variable) if name == key => variable,
                _ => name,
            };
            self.environment.get(variable).map(str::to_owned)
        };
        match &provider.wire {
            Wire::Anthropic(entry) => {
                let mut config = AnthropicConfig::from_lookup(|name| {
                    lookup(
                        entry,
                        anthropic::config::BASE_URL_VARIABLE,
                        anthropic::config::API_KEY_VARIABLE,
                        name,
                    )
                })?;
                config.provider.clone_from(&entry.name);
                Ok(Client::Anthropic(AnthropicClient::new(config)?))
            }
            Wire::OpenAi(entry) if entry.kind == ProviderKind::OpenAi => {
                let mut config = OpenAiConfig::from_lookup(|name| {
                    lookup(
                        entry,
                        openai::config::BASE_URL_VARIABLE,
                        openai::config::API_KEY_VARIABLE,
                        name,
                    )
                })?;
                config.provider.clone_from(&entry.name);
                Ok(Client::OpenAi(OpenAiClient::new(config)?))
            }
            Wire::OpenAi(entry) => {
                let mut config = OpenAiConfig::compatible(
                    &entry.name,
                    entry.base_url.as_deref().unwrap_or_default(),
                )
                .with_profile(entry.profile.clone().unwrap_or_else(Profile::generic));
                if let Some(variable) = &entry.api_key_env {
                    let key = self
                        .environment
                        .get(variable)
                        .ok_or_else(|| missing_key(&entry.name, variable))?;
                    config = config.with_api_key(SecretString::from(key));
                }
                Ok(Client::OpenAi(OpenAiClient::new(config)?))
            }
            Wire::Offline => Ok(Client::Offline),
        }
    }
}

impl Provider {
    fn of(entry: ProviderEntry) -> Self {
        let default = match entry.kind {
            ProviderKind::Anthropic => Some(ANTHROPIC_MODELS[0]),
            ProviderKind::OpenAi => Some(OPENAI_MODELS[0]),
            ProviderKind::OpenAiCompatible => None,
        };
        Self {
            name: entry.name.clone(),
            default_model: entry.model.clone().or(default.map(str::to_owned)),
            wire: match entry.kind {
                ProviderKind::Anthropic => Wire::Anthropic(entry),
                ProviderKind::OpenAi | ProviderKind::OpenAiCompatible => Wire::OpenAi(entry),
            },
        }
    }

    /// The variable that holds its key, if it has one.
    pub fn key_variable(&self) -> Option<&str> {
        let (entry, own) = match &self.wire {
            Wire::Anthropic(entry) => (entry, Some(anthropic::config::API_KEY_VARIABLE)),
            Wire::OpenAi(entry) if entry.kind == ProviderKind::OpenAi => {
                (entry, Some(openai::config::API_KEY_VARIABLE))
            }
            Wire::OpenAi(entry) => (entry, None),
            Wire::Offline => return None,
        };
        entry.api_key_env.as_deref().or(own)
    }

    /// Whether its models run in this program.
    pub fn is_offline(&self) -> bool {
        matches!(self.wire, Wire::Offline)
    }

    fn capabilities(&self, model: &str) -> ModelCapabilities {
        match &self.wire {
            Wire::Anthropic(_) => anthropic::capabilities(model),
            Wire::OpenAi(entry) if entry.kind == ProviderKind::OpenAi => {
                openai::capabilities(model, &Profile::openai())
            }
            Wire::OpenAi(entry) => openai::capabilities(
                model,
                &entry.profile.clone().unwrap_or_else(Profile::generic),
            ),
            Wire::Offline => OfflinePlanner::new().capabilities().clone(),
        }
    }
}

fn plain(name: &str, kind: ProviderKind) -> ProviderEntry {
    ProviderEntry {
        name: name.to_owned(),
        kind,
        base_url: None,
        api_key_env: None,
        model: None,
        profile: None,
    }
}

fn missing_key(provider: &str, variable: &str) -> ModelError {
    ModelError::new(
        provider,
        switchboard_domain::ModelErrorKind::Configuration,
        format!(
            "the variable `{variable}`, which `providers.{provider}.api_key_env` names, is not set: \
             set it to the server's key, or remove `api_key_env` if the server needs none"
        ),
    )
}

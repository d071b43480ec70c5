//! Connections to providers, for all supported API formats.

use std::sync::Arc;

use secrecy::SecretString;
use switchboard_domain::{ChatModel, ModelCapabilities, ModelError, ModelErrorKind};
use switchboard_providers_anthropic::{self as anthropic, AnthropicClient, AnthropicConfig};
use switchboard_providers_common::{
    TextCallModel, provider::ServedModel, text_tool_calls::TextCallFormats,
};
use switchboard_providers_gemini::{
    self as gemini, GeminiClient, GeminiConfig, ProviderConfig as _,
};
use switchboard_providers_offline::DemoModel;
use switchboard_providers_ollama::{self as ollama, OllamaClient, OllamaConfig, ToolsByPrompt};
use switchboard_providers_openai::{self as openai, OpenAiClient, OpenAiConfig, Profile};

use crate::config::{AdapterOptions, ProviderEntry, ProviderKind, environment::Environment};

/// A connection to a model provider. All models of the provider use its HTTP connection pool.
pub(crate) enum ProviderClient {
    Anthropic(AnthropicClient),
    Chat(OpenAiClient),
    Responses(OpenAiClient),
    Gemini(GeminiClient),
    Ollama(OllamaClient),
    Offline,
}

/// Returns the environment variables of a vendor's SDK: the variables of the API key and the
/// variable of the address.
pub(crate) fn sdk_variable_names(
    kind: ProviderKind,
) -> (&'static [&'static str], Option<&'static str>) {
    match kind {
        ProviderKind::Anthropic => (
            &[
                anthropic::config::API_KEY_VARIABLE,
                anthropic::config::AUTH_TOKEN_VARIABLE,
            ],
            Some(anthropic::config::BASE_URL_VARIABLE),
        ),
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses => (
            &[openai::config::API_KEY_VARIABLE],
            Some(openai::config::BASE_URL_VARIABLE),
        ),
        // `GEMINI_API_KEY` comes first, because Google's API guide uses this variable.
        ProviderKind::Gemini => (
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Some(gemini::config::BASE_URL_VARIABLE),
        ),
        ProviderKind::Ollama => (
            &[ollama::config::API_KEY_VARIABLE],
            Some(ollama::config::HOST_VARIABLE),
        ),
        ProviderKind::OpenAiCompatible => (&[], None),
    }
}

/// Returns the environment variables that may contain the API key of a provider, the preferred one
/// first. Messages name only the first. The list is empty if no variable is known, for example for
/// Ollama.
pub(crate) fn api_key_variables(entry: &ProviderEntry) -> Vec<&str> {
    match &entry.api_key_env {
        Some(variable) => vec![variable],
        // Ollama needs no API key. A server that does not belong to the vendor does not receive the
        // API key in the variable of the vendor.
        None if entry.kind == ProviderKind::Ollama || !is_vendor_server(entry) => Vec::new(),
        None => sdk_variable_names(entry.kind).0.to_vec(),
    }
}

impl ProviderClient {
    /// Creates the client of a provider without sending a request. Returns an error if the API key
    /// or the address is missing or invalid.
    pub(crate) fn from_entry(
        entry: &ProviderEntry,
        environment: &Environment,
    ) -> Result<Self, ModelError> {
        // The configuration takes precedence over variables of the vendor's SDK. A server at
        // another address gets an API key only if `api_key_env` names the variable that contains
        // the key.
        let (keys, address) = sdk_variable_names(entry.kind);
        let lookup = |name: &str| -> Option<String> {
            if Some(name) == address && entry.base_url.is_some() {
                return entry.base_url.clone();
            }
            let variable = match &entry.api_key_env {
                Some(variable) if keys.first() == Some(&name) => Some(variable.as_str()),
                // If the configuration names a key variable, other key variables are ignored.
                Some(_) if Some(name) != address => None,
                _ => is_vendor_server(entry).then_some(name),
            };
            environment.get(variable?).map(str::to_owned)
        };
        Ok(match entry.kind {
            ProviderKind::Anthropic => {
                let mut config = AnthropicConfig::from_env_lookup(lookup)?;
                config.transport.retry = entry.retry_policy();
                if let Some(AdapterOptions::Anthropic(options)) = &entry.adapter_options {
                    config.options.clone_from(options);
                }
                config.provider.clone_from(&entry.name);
                Self::Anthropic(AnthropicClient::new(config)?)
            }
            ProviderKind::OpenAi
            | ProviderKind::OpenAiResponses
            | ProviderKind::OpenAiCompatible => {
                let mut config = if entry.kind == ProviderKind::OpenAiCompatible {
                    openai_compatible_config(entry, environment)?
                } else {
                    OpenAiConfig::from_env_lookup(lookup)?
                };
                config.transport.retry = entry.retry_policy();
                config.provider.clone_from(&entry.name);
                if entry.profile.is_some() {
                    config.profile = build_openai_profile(entry);
                }
                match &entry.adapter_options {
                    Some(AdapterOptions::Chat(options)) => config.chat.clone_from(options),
                    Some(AdapterOptions::Responses(options)) => {
                        config.responses.clone_from(options);
                    }
                    _ => {}
                }
                let client = OpenAiClient::new(config)?;
                if entry.kind == ProviderKind::OpenAiResponses {
                    Self::Responses(client)
                } else {
                    Self::Chat(client)
                }
            }
            ProviderKind::Gemini => {
                let mut config = GeminiConfig::from_env_lookup(lookup)?;
                config.transport.retry = entry.retry_policy();
                if let Some(AdapterOptions::Gemini(options)) = &entry.adapter_options {
                    config.options.clone_from(options);
                }
                config.provider.clone_from(&entry.name);
                Self::Gemini(GeminiClient::new(config)?)
            }
            ProviderKind::Ollama => {
                let mut config = OllamaConfig::from_env_lookup(lookup)?;
                config.transport.retry = entry.retry_policy();
                config.provider.clone_from(&entry.name);
                if let Some(forms) = entry.text_calls {
                    config.text_calls = forms;
                }
                config.tools_by_prompt = entry.tools_by_prompt.unwrap_or(ToolsByPrompt::Auto);
                Self::Ollama(OllamaClient::new(config)?)
            }
        })
    }

    /// Creates a model of the provider. Sends a request only to Ollama, because only the Ollama
    /// server knows the capabilities of its models.
    pub(crate) async fn create_model(&self, name: &str) -> Result<Arc<dyn ChatModel>, ModelError> {
        Ok(match self {
            Self::Anthropic(client) => Arc::new(client.model(name)),
            Self::Chat(client) => Arc::new(client.model(name)),
            Self::Responses(client) => {
                Arc::new(client.model_with_protocol::<openai::ResponsesApi>(name))
            }
            Self::Gemini(client) => Arc::new(client.model(name)),
            Self::Ollama(client) => Arc::new(ollama::described_model(client, name).await?),
            Self::Offline => Arc::new(DemoModel::new()),
        })
    }

    /// Requests the list of models from the provider. Returns `None` if the provider has no list.
    pub(crate) async fn list_models(&self) -> Option<Result<Vec<ServedModel>, ModelError>> {
        Some(match self {
            Self::Offline => return None,
            Self::Anthropic(client) => client.list_models().await,
            Self::Chat(client) | Self::Responses(client) => client.list_models().await,
            Self::Gemini(client) => client.list_models().await,
            Self::Ollama(client) => client.list_models().await,
        })
    }

    /// Returns whether the local server responds, if the provider is Ollama. Returns `false` for
    /// all other providers.
    pub(crate) async fn is_reachable(&self) -> bool {
        match self {
            Self::Ollama(client) => ollama::is_reachable(client).await,
            _ => false,
        }
    }
}

/// Returns the capabilities of a model as far as they are known without a request.
pub(crate) fn known_capabilities(entry: &ProviderEntry, model: &str) -> ModelCapabilities {
    match entry.kind {
        ProviderKind::Anthropic => anthropic::capabilities(model),
        ProviderKind::OpenAi | ProviderKind::OpenAiResponses => {
            let profile = entry.profile.clone().unwrap_or_else(Profile::openai);
            openai::capabilities(model, &profile)
        }
        ProviderKind::OpenAiCompatible => openai::capabilities(model, &build_openai_profile(entry)),
        ProviderKind::Gemini => gemini::capabilities(model),
        ProviderKind::Ollama => ModelCapabilities::default(),
    }
}

/// Returns whether this is the provider with the vendor's name and without a configured `base_url`.
/// The client reads the variables of the vendor's SDK only for this provider.
fn is_vendor_server(entry: &ProviderEntry) -> bool {
    entry.base_url.is_none() && entry.name == entry.kind.name()
}

fn openai_compatible_config(
    entry: &ProviderEntry,
    environment: &Environment,
) -> Result<OpenAiConfig, ModelError> {
    let address = entry.base_url.as_deref().unwrap_or_default();
    let config = OpenAiConfig::for_compatible_server(&entry.name, address)
        .with_profile(build_openai_profile(entry));
    let Some(variable) = &entry.api_key_env else {
        return Ok(config);
    };
    match environment.get(variable) {
        Some(key) => Ok(config.with_api_key(SecretString::from(key))),
        None => Err(ModelError::new(
            &entry.name,
            ModelErrorKind::Configuration,
            format!(
                "the variable `{variable}` of `providers.{name}.api_key_env` is not set. Set it to \
                 the server's API key, or remove `api_key_env` if the server needs no key",
                name = entry.name
            ),
        )),
    }
}

fn build_openai_profile(entry: &ProviderEntry) -> Profile {
    let mut profile = entry.profile.clone().unwrap_or_else(Profile::generic);
    if let Some(forms) = entry.text_calls {
        profile.recovery = forms;
    }
    if let Some(tools_by_prompt) = entry.tools_by_prompt {
        // With `Auto`, tools are described in the prompt only for models without tool support. The
        // adapter always does this, so `Auto` is `false` here.
        profile.tools_by_prompt = tools_by_prompt == ToolsByPrompt::Always;
    }
    profile
}

/// Wraps `model`, so that it recognizes tool calls in the answer text and gets tools in the prompt,
/// as `text_calls` and `tools_by_prompt` of the provider specify. Returns `model` unchanged if
/// neither is configured or if the adapter has its own implementation.
pub(crate) fn with_text_call_parser(
    model: Arc<dyn ChatModel>,
    entry: &ProviderEntry,
) -> Arc<dyn ChatModel> {
    let has_its_own = matches!(
        entry.kind,
        ProviderKind::OpenAiCompatible | ProviderKind::Ollama
    );
    let (forms, tools) = (entry.text_calls, entry.tools_by_prompt);
    if has_its_own || (forms.is_none() && tools.is_none()) {
        return model;
    }
    let is_prompted = match tools {
        None | Some(ToolsByPrompt::Never) => false,
        Some(ToolsByPrompt::Auto) => model.capabilities().tools == Some(false),
        Some(ToolsByPrompt::Always) => true,
    };
    let model = TextCallModel::wrap_model(model, forms.unwrap_or(TextCallFormats::NONE));
    Arc::new(if is_prompted {
        model.with_prompted_tools()
    } else {
        model
    })
}

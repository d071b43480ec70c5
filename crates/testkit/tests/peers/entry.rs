//! A model as a user enters it.

use std::{fmt, time::Duration};

use switchboard_domain::ChatModel;
use switchboard_providers_anthropic::{AnthropicConfig, AnthropicModel};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_providers_gemini::{GeminiConfig, GeminiModel};
use switchboard_providers_ollama::{OllamaConfig, OllamaModel};
use switchboard_providers_openai::{OpenAiChatModel, OpenAiConfig, OpenAiResponsesModel, Profile};

use crate::peer::Peer;

/// What our adapters speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Anthropic,
    OpenAiChat,
    OpenAiResponses,
    Gemini,
    Ollama,
}

impl Wire {
    pub(crate) const ALL: [Self; 5] = [
        Self::Anthropic,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Gemini,
        Self::Ollama,
    ];

    /// Those that everyone offers beside Ollama.
    pub(crate) const HOSTED: [Self; 4] = [
        Self::Anthropic,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Gemini,
    ];

    /// What servers call it in their paths and logs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// What our address needs beside the server's own, for a server that has one root for all.
    fn root(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => "/v1",
            Self::Anthropic | Self::Gemini | Self::Ollama => "",
        }
    }

    /// A model of the vendor that takes all that is asked here.
    fn model(self) -> &'static str {
        match self {
            Self::Anthropic => "claude-haiku-4-5",
            Self::OpenAiChat | Self::OpenAiResponses => "gpt-4.1",
            Self::Gemini => "gemini-2.5-flash",
            Self::Ollama => "qwen3:8b",
        }
    }
}

/// In which form the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Streamed,
    Whole,
}

impl Form {
    pub(crate) const BOTH: [Self; 2] = [Self::Streamed, Self::Whole];
}

/// A model as a user enters it in the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) wire: Wire,
    pub(crate) form: Form,
    /// The name of the entry.
    pub(crate) provider: String,
    pub(crate) address: String,
    pub(crate) model: String,
    pub(crate) key: String,
    /// For Chat Completions.
    pub(crate) profile: Profile,
    pub(crate) transport: TransportConfig,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.provider, self.form)
    }
}

impl Entry {
    /// On a server that has all wires at its root.
    pub(crate) fn new(peer: &Peer, wire: Wire, form: Form) -> Self {
        Self::under(peer, wire.root(), wire, form)
    }

    /// On a server that has this wire under a path.
    pub(crate) fn under(peer: &Peer, path: &str, wire: Wire, form: Form) -> Self {
        // Gemini's wire has an endpoint for each form.
        let address = if form == Form::Whole && wire != Wire::Gemini {
            peer.whole_at(path)
        } else {
            peer.at(path)
        };
        Self {
            wire,
            form,
            provider: format!("my-{}", wire.name()),
            address,
            model: wire.model().to_owned(),
            key: "key-of-a-test".to_owned(),
            profile: Profile::generic(),
            transport: TransportConfig {
                system_proxy: false,
                retry: soon(),
                ..TransportConfig::default()
            },
        }
    }

    /// Every wire of these, in both forms.
    pub(crate) fn each(peer: &Peer, wires: &[Wire]) -> Vec<Self> {
        let both = |wire: &Wire| Form::BOTH.map(|form| Self::new(peer, *wire, form));
        wires.iter().flat_map(both).collect()
    }

    pub(crate) fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.transport.retry = retry;
        self
    }

    pub(crate) fn with_key(mut self, key: &str) -> Self {
        key.clone_into(&mut self.key);
        self
    }

    /// The adapter, made as the application makes it.
    pub(crate) fn chat_model(&self) -> Box<dyn ChatModel> {
        let Self {
            provider,
            address,
            model,
            transport,
            ..
        } = self;
        let (key, transport) = (self.key.clone(), transport.clone());
        let openai = || OpenAiConfig {
            transport: transport.clone(),
            ..OpenAiConfig::compatible(provider, address)
                .with_api_key(key.clone())
                .with_profile(self.profile.clone())
        };
        match self.wire {
            Wire::Anthropic => {
                let config = AnthropicConfig {
                    transport,
                    ..AnthropicConfig::compatible(provider, address).with_api_key(key)
                };
                Box::new(AnthropicModel::new(config, model).unwrap())
            }
            Wire::OpenAiChat => Box::new(OpenAiChatModel::new(openai(), model).unwrap()),
            Wire::OpenAiResponses => Box::new(OpenAiResponsesModel::new(openai(), model).unwrap()),
            Wire::Gemini => {
                let config = GeminiConfig {
                    transport,
                    streaming: self.form == Form::Streamed,
                    ..GeminiConfig::compatible(provider, address).with_api_key(key)
                };
                Box::new(GeminiModel::new(config, model).unwrap())
            }
            Wire::Ollama => {
                let config = OllamaConfig {
                    provider: provider.clone(),
                    transport,
                    ..OllamaConfig::at(address).unwrap().with_api_key(key)
                };
                Box::new(OllamaModel::new(config, model).unwrap())
            }
        }
    }
}

/// Two more attempts, at once unless the server says otherwise.
pub(crate) fn soon() -> RetryPolicy {
    RetryPolicy {
        min_delay: Duration::from_millis(5),
        max_delay: Duration::from_millis(20),
        ..RetryPolicy::default()
    }
}

/// Two more attempts, and so late that a test only ends in time if it is the server's wish that
/// counts.
pub(crate) fn late() -> RetryPolicy {
    RetryPolicy {
        min_delay: Duration::from_mins(5),
        max_delay: Duration::from_mins(5),
        ..RetryPolicy::default()
    }
}

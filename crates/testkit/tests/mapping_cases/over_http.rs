//! Whole adapters that ask a server on loopback.

use std::time::Duration;

use switchboard_domain::ChatModel;
use switchboard_providers_anthropic::{AnthropicConfig, AnthropicModel};
use switchboard_providers_common::{RetryPolicy, TransportConfig};
use switchboard_providers_gemini::{GeminiConfig, GeminiModel};
use switchboard_providers_ollama::{OllamaConfig, OllamaModel};
use switchboard_providers_openai::{OpenAiClient, OpenAiConfig, Profile, Responses};
use switchboard_testkit::fake::{Answer, FakeModel};

use crate::wires::Wire;

/// Tries again at once where it tries again.
fn transport() -> TransportConfig {
    TransportConfig {
        system_proxy: false,
        retry: RetryPolicy {
            min_delay: Duration::from_millis(1),
            ..RetryPolicy::default()
        },
        ..TransportConfig::default()
    }
}

impl Wire {
    /// [Its model](Wire::model), asked at that server.
    pub(crate) fn adapter(self, fake: &FakeModel) -> Box<dyn ChatModel> {
        let (base, transport, provider) = (fake.base_url(), transport(), self.provider());
        let name = self.model().name.to_string();
        match self {
            Self::Anthropic => {
                let config = AnthropicConfig {
                    transport,
                    ..AnthropicConfig::compatible(provider, base)
                };
                Box::new(AnthropicModel::new(config, name).unwrap())
            }
            Self::Chat | Self::Responses => {
                let config = OpenAiConfig {
                    transport,
                    ..OpenAiConfig::compatible(provider, format!("{base}/v1"))
                        .with_profile(Profile::openai())
                };
                let client = OpenAiClient::new(config).unwrap();
                if self == Self::Chat {
                    Box::new(client.model(name))
                } else {
                    Box::new(client.model_on::<Responses>(name))
                }
            }
            Self::Gemini => {
                let config = GeminiConfig {
                    transport,
                    ..GeminiConfig::compatible(provider, base)
                };
                Box::new(GeminiModel::new(config, name).unwrap())
            }
            Self::Ollama => {
                let config = OllamaConfig {
                    transport,
                    ..OllamaConfig::at(&base).unwrap()
                };
                Box::new(OllamaModel::new(config, name).unwrap())
            }
        }
    }

    /// Status 200 and the beginning of a streamed body.
    pub(crate) fn begun(self, body: String) -> Answer {
        let media_type = match self {
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        };
        Answer::new(200)
            .header("content-type", media_type)
            .piece(body)
    }
}

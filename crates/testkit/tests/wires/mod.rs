//! The five wires behind one interface.
#![allow(dead_code, reason = "each test binary uses a part of this module")]
#![allow(
    clippy::unwrap_used,
    reason = "a plain function of a test file counts as production code for clippy"
)]

use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{
    ChatModel, ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent, ModelId,
    ModelStream, ToolChoiceOutcome, Warning,
};
use switchboard_providers_anthropic::{AnthropicConfig, AnthropicModel, MessagesOptions, messages};
use switchboard_providers_common::{
    ToolUseIds, TransportConfig, decode_ndjson, decode_sse, schema::ToolSchemas,
};
use switchboard_providers_gemini::{GeminiConfig, GeminiModel, GeminiOptions, generate};
use switchboard_providers_ollama::{OllamaConfig, OllamaModel, ThinkForm, chat as ollama};
use switchboard_providers_openai::{
    OpenAiChatModel, OpenAiConfig, OpenAiResponsesModel, Profile, chat,
    responses::{self, ResponsesOptions},
};
use switchboard_testkit::{fixtures, replay::Body};

/// The format of a provider's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
    Ollama,
}

/// All wires.
pub(crate) const WIRES: [Wire; 5] = [
    Wire::Anthropic,
    Wire::Chat,
    Wire::Responses,
    Wire::Gemini,
    Wire::Ollama,
];

impl Wire {
    /// Returns the name of the wire in paths of transcripts and in names of snapshots.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "openai-chat",
            other => other.provider(),
        }
    }

    /// Returns the provider whose own models use the wire.
    pub(crate) fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "openai",
            Self::Responses => "openai-responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Returns a model that supports every option of the wire.
    pub(crate) fn model(self) -> ModelId {
        let name = match self {
            Self::Anthropic => fixtures::anthropic_model().name,
            Self::Chat | Self::Responses => fixtures::openai_model().name,
            Self::Gemini => "gemini-2.5-flash".into(),
            Self::Ollama => "qwen3:8b".into(),
        };
        ModelId::new(self.provider(), name)
    }

    /// Returns [its model](Self::model) as a target.
    pub(crate) fn target(self) -> Target {
        Target::new(self, self.model())
    }

    /// Returns the known capabilities of [its model](Self::model).
    pub(crate) fn capabilities(self) -> ModelCapabilities {
        self.target().capabilities
    }

    /// Maps a request to [its model](Self::model).
    pub(crate) fn send(self, request: &ChatRequest) -> Result<Sent, ModelError> {
        self.target().send(request)
    }

    /// Maps a request to [its model](Self::model) with other capabilities.
    pub(crate) fn send_to(
        self,
        request: &ChatRequest,
        capabilities: &ModelCapabilities,
    ) -> Result<Sent, ModelError> {
        let capabilities = capabilities.clone();
        let target = self.target();
        Target {
            capabilities,
            ..target
        }
        .send(request)
    }

    /// Decodes a streamed answer of [its model](Self::model) to a request.
    pub(crate) fn decode(self, request: &ChatRequest, body: Body) -> ModelStream {
        self.target().decode(request, body)
    }
}

/// A request that was mapped to a wire.
pub(crate) struct Sent {
    /// The bytes of the body.
    pub(crate) bytes: String,
    /// The parsed body.
    pub(crate) body: Value,
    pub(crate) outcome: ToolChoiceOutcome,
    pub(crate) warnings: Vec<Warning>,
}

/// A model on a wire, with the options of its requests.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) wire: Wire,
    pub(crate) model: ModelId,
    pub(crate) capabilities: ModelCapabilities,
    pub(crate) profile: Profile,
    pub(crate) anthropic: MessagesOptions,
    pub(crate) gemini: GeminiOptions,
}

enum Decoder {
    Anthropic(messages::MessagesDecoder),
    Chat(chat::ChatDecoder),
    Responses(responses::ResponsesDecoder),
    Gemini(generate::GenerateDecoder),
    Ollama(ollama::ChatDecoder),
}

impl Target {
    /// Creates a target with the known capabilities of the model, on the provider's own server.
    pub(crate) fn new(wire: Wire, model: ModelId) -> Self {
        let profile = Profile::openai();
        let capabilities = match wire {
            Wire::Anthropic => switchboard_providers_anthropic::capabilities(&model.name),
            Wire::Gemini => switchboard_providers_gemini::capabilities(&model.name),
            Wire::Ollama => switchboard_providers_ollama::capabilities(&model.name, false),
            _ => switchboard_providers_openai::capabilities(&model.name, &profile),
        };
        Self {
            wire,
            model,
            capabilities,
            profile,
            anthropic: MessagesOptions::default(),
            gemini: GeminiOptions::default(),
        }
    }

    /// Creates the target of a model on a compatible server of Chat Completions.
    pub(crate) fn compatible(model: ModelId, profile: Profile) -> Self {
        Self {
            capabilities: switchboard_providers_openai::capabilities(&model.name, &profile),
            profile,
            ..Self::new(Wire::Chat, model)
        }
    }

    /// Returns the target with the version of Anthropic's API that the official SDK uses.
    pub(crate) fn with_newest_version(mut self) -> Self {
        "2026-10-21".clone_into(&mut self.anthropic.api_version);
        self
    }

    pub(crate) fn send(&self, request: &ChatRequest) -> Result<Sent, ModelError> {
        Ok(self.map(request)?.0)
    }

    pub(crate) fn decode(&self, request: &ChatRequest, body: Body) -> ModelStream {
        self.stream(self.map(request).unwrap().1, body)
    }

    /// Decodes a streamed answer to a plain question.
    pub(crate) fn decode_plain(&self, body: Body) -> ModelStream {
        self.stream(self.plain_decoder(), body)
    }

    fn stream(&self, decoder: Decoder, body: Body) -> ModelStream {
        let provider = &self.model.provider;
        match decoder {
            Decoder::Anthropic(decoder) => decode_sse(provider, body, decoder),
            Decoder::Chat(decoder) => decode_sse(provider, body, decoder),
            Decoder::Responses(decoder) => decode_sse(provider, body, decoder),
            Decoder::Gemini(decoder) => decode_sse(provider, body, decoder),
            Decoder::Ollama(decoder) => decode_ndjson(provider, body, decoder),
        }
    }

    /// Decodes a whole answer to a plain question.
    pub(crate) fn decode_whole(&self, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        match self.plain_decoder() {
            Decoder::Anthropic(decoder) => messages::events_from_body(decoder, body),
            Decoder::Chat(decoder) => chat::events_from_body(decoder, body),
            Decoder::Responses(decoder) => responses::events_from_body(decoder, body),
            Decoder::Gemini(decoder) => generate::events_from_body(decoder, body),
            Decoder::Ollama(decoder) => ollama::events_from_body(decoder, body),
        }
    }

    fn plain_decoder(&self) -> Decoder {
        let (model, native) = (self.model.clone(), ToolChoiceOutcome::Native);
        let (warnings, ids) = (Vec::new(), ToolUseIds::default());
        match self.wire {
            Wire::Anthropic => {
                Decoder::Anthropic(messages::MessagesDecoder::new(model, native, warnings, ids))
            }
            Wire::Chat => Decoder::Chat(chat::ChatDecoder::new(model, native, warnings, ids)),
            Wire::Responses => Decoder::Responses(responses::ResponsesDecoder::new(
                model, native, warnings, ids,
            )),
            Wire::Gemini => {
                Decoder::Gemini(generate::GenerateDecoder::new(model, native, warnings, ids))
            }
            Wire::Ollama => Decoder::Ollama(ollama::ChatDecoder::new(model, native, warnings, ids)),
        }
    }

    fn map(&self, request: &ChatRequest) -> Result<(Sent, Decoder), ModelError> {
        let Self {
            model,
            capabilities,
            profile,
            ..
        } = self;
        let schemas = &ToolSchemas::default();
        Ok(match self.wire {
            Wire::Anthropic => {
                let options = &self.anthropic;
                let wire =
                    messages::to_wire_request(request, model, capabilities, options, schemas)?;
                let sent = self.sent(&wire.body, wire.tool_choice, wire.warnings)?;
                let (outcome, warnings) = (sent.outcome.clone(), sent.warnings.clone());
                let (model, ids) = (model.clone(), wire.local_ids);
                let decoder = messages::MessagesDecoder::new(model, outcome, warnings, ids);
                let decoder = decoder.with_tool_mapping(wire.tool_mapping);
                (sent, Decoder::Anthropic(decoder))
            }
            Wire::Chat => {
                let wire = chat::to_wire_request(request, model, capabilities, profile, schemas)?;
                let sent = self.sent(&wire.body, wire.tool_choice, wire.warnings)?;
                let (outcome, warnings) = (sent.outcome.clone(), sent.warnings.clone());
                let (model, ids) = (model.clone(), wire.local_ids);
                let decoder = chat::ChatDecoder::new(model, outcome, warnings, ids);
                let decoder = decoder.with_tool_mapping(wire.tool_mapping);
                (sent, Decoder::Chat(decoder))
            }
            Wire::Responses => {
                let options = &ResponsesOptions::default();
                let wire = responses::to_wire_request(
                    request,
                    model,
                    capabilities,
                    profile,
                    options,
                    schemas,
                )?;
                let sent = self.sent(&wire.body, wire.tool_choice, wire.warnings)?;
                let (outcome, warnings) = (sent.outcome.clone(), sent.warnings.clone());
                let (model, ids) = (model.clone(), wire.local_ids);
                let decoder = responses::ResponsesDecoder::new(model, outcome, warnings, ids)
                    .with_unreported_token_limit(wire.unreported_limit)
                    .with_tool_mapping(wire.tool_mapping);
                (sent, Decoder::Responses(decoder))
            }
            Wire::Gemini => {
                let options = &self.gemini;
                let wire =
                    generate::to_wire_request(request, model, capabilities, options, schemas)?;
                let sent = self.sent(&wire.body, wire.tool_choice, wire.warnings)?;
                let (outcome, warnings) = (sent.outcome.clone(), sent.warnings.clone());
                let (model, ids) = (model.clone(), wire.local_ids);
                let decoder = generate::GenerateDecoder::new(model, outcome, warnings, ids);
                let decoder = decoder.with_tool_mapping(wire.tool_mapping);
                (sent, Decoder::Gemini(decoder))
            }
            Wire::Ollama => {
                let think = ThinkForm::default();
                let wire = ollama::to_wire_request(request, model, capabilities, think, schemas)?;
                let sent = self.sent(&wire.body, wire.tool_choice, wire.warnings)?;
                let (outcome, warnings) = (sent.outcome.clone(), sent.warnings.clone());
                let (model, ids) = (model.clone(), ToolUseIds::from_request(request));
                let decoder = ollama::ChatDecoder::new(model, outcome, warnings, ids);
                (sent, Decoder::Ollama(decoder.with_answer_form(wire.form)))
            }
        })
    }

    fn sent(
        &self,
        body: &impl Serialize,
        outcome: ToolChoiceOutcome,
        warnings: Vec<Warning>,
    ) -> Result<Sent, ModelError> {
        let unwritable = |error: serde_json::Error| {
            let kind = ModelErrorKind::Protocol;
            ModelError::new(&*self.model.provider, kind, error.to_string())
        };
        let bytes = serde_json::to_string(body).map_err(unwritable)?;
        let body = serde_json::from_str(&bytes).map_err(unwritable)?;
        Ok(Sent {
            bytes,
            body,
            outcome,
            warnings,
        })
    }
}

/// A model as a user configures it.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) wire: Wire,
    pub(crate) provider: String,
    /// The base URL in the form that the wire's adapter expects.
    pub(crate) address: String,
    pub(crate) model: String,
    pub(crate) key: String,
    /// The profile of the server, for OpenAI's two wires.
    pub(crate) profile: Profile,
    /// Whether the adapter uses Gemini's endpoint for streams.
    pub(crate) streaming: bool,
    pub(crate) transport: TransportConfig,
}

impl Connection {
    /// Connects to [the model](Wire::model) of a wire on a server with all wires at its root.
    pub(crate) fn new(wire: Wire, root: &str, transport: TransportConfig) -> Self {
        let path = match wire {
            Wire::Chat | Wire::Responses => "/v1",
            Wire::Anthropic | Wire::Gemini | Wire::Ollama => "",
        };
        Self {
            wire,
            provider: wire.provider().to_owned(),
            address: format!("{root}{path}"),
            model: wire.model().name.to_string(),
            key: "sk-test".to_owned(),
            profile: Profile::openai(),
            streaming: true,
            transport: TransportConfig {
                system_proxy: false,
                ..transport
            },
        }
    }

    pub(crate) fn with_model(mut self, model: &str) -> Self {
        model.clone_into(&mut self.model);
        self
    }

    /// Creates the adapter as the application does.
    pub(crate) fn chat_model(&self) -> Box<dyn ChatModel> {
        let Self {
            provider,
            address,
            model,
            ..
        } = self;
        let (key, transport) = (self.key.clone(), self.transport.clone());
        let openai = || OpenAiConfig {
            transport: transport.clone(),
            profile: self.profile.clone(),
            ..OpenAiConfig::for_compatible_server(provider, address).with_api_key(key.clone())
        };
        match self.wire {
            Wire::Anthropic => {
                let config = AnthropicConfig {
                    transport,
                    ..AnthropicConfig::for_compatible_server(provider, address).with_api_key(key)
                };
                Box::new(AnthropicModel::new(config, model).unwrap())
            }
            Wire::Chat => Box::new(OpenAiChatModel::new(openai(), model).unwrap()),
            Wire::Responses => Box::new(OpenAiResponsesModel::new(openai(), model).unwrap()),
            Wire::Gemini => {
                let config = GeminiConfig {
                    transport,
                    streaming: self.streaming,
                    ..GeminiConfig::for_compatible_server(provider, address).with_api_key(key)
                };
                Box::new(GeminiModel::new(config, model).unwrap())
            }
            Wire::Ollama => {
                let config = OllamaConfig {
                    provider: provider.clone(),
                    transport,
                    ..OllamaConfig::for_host(address).unwrap().with_api_key(key)
                };
                Box::new(OllamaModel::new(config, model).unwrap())
            }
        }
    }
}

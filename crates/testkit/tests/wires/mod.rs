//! The five wires, asked alike.

use serde::Serialize;
use serde_json::Value;
use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ToolChoiceOutcome, Warning,
};
use switchboard_providers_anthropic::{MessagesOptions, messages};
use switchboard_providers_common::schema::ToolSchemas;
use switchboard_providers_gemini::{GeminiOptions, generate};
use switchboard_providers_ollama::ThinkForm;
use switchboard_providers_openai::{
    Profile, chat,
    responses::{self, ResponsesOptions},
};
use switchboard_testkit::fixtures;

/// A wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
    Ollama,
}

/// Every wire.
pub(crate) const WIRES: [Wire; 5] = [
    Wire::Anthropic,
    Wire::Chat,
    Wire::Responses,
    Wire::Gemini,
    Wire::Ollama,
];

/// What a wire makes of a request.
pub(crate) struct Sent {
    /// The bytes that are sent.
    pub(crate) bytes: String,
    /// The same, read.
    pub(crate) body: Value,
    pub(crate) outcome: ToolChoiceOutcome,
    pub(crate) warnings: Vec<Warning>,
}

impl Wire {
    /// The provider whose own models speak it.
    pub(crate) fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Chat => "openai",
            Self::Responses => "openai-responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// A model that takes all that the wire can say.
    pub(crate) fn model(self) -> ModelId {
        let name = match self {
            Self::Anthropic => fixtures::anthropic_model().name,
            Self::Chat | Self::Responses => fixtures::openai_model().name,
            Self::Gemini => "gemini-2.5-flash".into(),
            Self::Ollama => "qwen3:8b".into(),
        };
        ModelId::new(self.provider(), name)
    }

    /// What is known of that model.
    pub(crate) fn capabilities(self) -> ModelCapabilities {
        let ModelId { name, .. } = self.model();
        match self {
            Self::Anthropic => switchboard_providers_anthropic::capabilities(&name),
            Self::Chat | Self::Responses => {
                switchboard_providers_openai::capabilities(&name, &Profile::openai())
            }
            Self::Gemini => switchboard_providers_gemini::capabilities(&name),
            Self::Ollama => switchboard_providers_ollama::capabilities(&name, false),
        }
    }

    /// What it makes of a request to [its model](Self::model).
    pub(crate) fn send(self, request: &ChatRequest) -> Result<Sent, ModelError> {
        self.send_to(request, &self.capabilities())
    }

    /// The same, if the model could do only so much.
    pub(crate) fn send_to(
        self,
        request: &ChatRequest,
        capabilities: &ModelCapabilities,
    ) -> Result<Sent, ModelError> {
        let model = &self.model();
        match self {
            Self::Anthropic => {
                let options = MessagesOptions::default();
                let wire = messages::to_wire(
                    request,
                    model,
                    capabilities,
                    &options,
                    &ToolSchemas::default(),
                )?;
                sent(model, &wire.body, wire.tool_choice, wire.warnings)
            }
            Self::Chat => {
                let profile = Profile::openai();
                let wire = chat::to_wire(
                    request,
                    model,
                    capabilities,
                    &profile,
                    &ToolSchemas::default(),
                )?;
                sent(model, &wire.body, wire.tool_choice, wire.warnings)
            }
            Self::Responses => {
                let (profile, options) = (Profile::openai(), ResponsesOptions::default());
                let wire = responses::to_wire(
                    request,
                    model,
                    capabilities,
                    &profile,
                    &options,
                    &ToolSchemas::default(),
                )?;
                sent(model, &wire.body, wire.tool_choice, wire.warnings)
            }
            Self::Gemini => {
                let options = GeminiOptions::default();
                let wire = generate::to_wire(
                    request,
                    model,
                    capabilities,
                    &options,
                    &ToolSchemas::default(),
                )?;
                sent(model, &wire.body, wire.tool_choice, wire.warnings)
            }
            Self::Ollama => {
                use switchboard_providers_ollama::chat::to_wire;
                let wire = to_wire(
                    request,
                    model,
                    capabilities,
                    ThinkForm::default(),
                    &ToolSchemas::default(),
                )?;
                sent(model, &wire.body, wire.tool_choice, wire.warnings)
            }
        }
    }
}

pub(crate) fn sent(
    model: &ModelId,
    body: &impl Serialize,
    outcome: ToolChoiceOutcome,
    warnings: Vec<Warning>,
) -> Result<Sent, ModelError> {
    let unwritable = |error: serde_json::Error| {
        ModelError::new(
            &*model.provider,
            ModelErrorKind::Protocol,
            error.to_string(),
        )
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

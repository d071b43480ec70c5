//! Their answers, read as an adapter reads them.

use switchboard_domain::{ChatRequest, ModelStream};
use switchboard_providers_anthropic::{MessagesOptions, messages};
use switchboard_providers_common::schema::ToolSchemas;
use switchboard_providers_common::{decode_ndjson, decode_sse};
use switchboard_providers_gemini::{GeminiOptions, generate};
use switchboard_providers_ollama::ThinkForm;
use switchboard_providers_openai::{
    Profile, chat,
    responses::{self, ResponsesOptions},
};
use switchboard_testkit::replay::Body;

use crate::wires::Wire;

impl Wire {
    /// Reads an answer as an adapter does: with what it kept when it wrote the request.
    pub(crate) fn decode(self, request: &ChatRequest, body: Body) -> ModelStream {
        let (model, capabilities) = (self.model(), self.capabilities());
        match self {
            Self::Anthropic => {
                let options = MessagesOptions::default();
                let wire = messages::to_wire(
                    request,
                    &model,
                    &capabilities,
                    &options,
                    &ToolSchemas::default(),
                )
                .unwrap();
                let (outcome, warnings, ids) = (wire.tool_choice, wire.warnings, wire.local_ids);
                let decoder = messages::MessagesDecoder::new(model.clone(), outcome, warnings, ids);
                decode_sse(
                    self.provider(),
                    body,
                    decoder.with_tool_mapping(wire.tool_mapping),
                )
            }
            Self::Chat => {
                let profile = Profile::openai();
                let wire = chat::to_wire(
                    request,
                    &model,
                    &capabilities,
                    &profile,
                    &ToolSchemas::default(),
                )
                .unwrap();
                let (outcome, warnings, ids) = (wire.tool_choice, wire.warnings, wire.local_ids);
                let decoder = chat::ChatDecoder::new(model.clone(), outcome, warnings, ids);
                decode_sse(
                    self.provider(),
                    body,
                    decoder.with_tool_mapping(wire.tool_mapping),
                )
            }
            Self::Responses => {
                let (profile, options) = (Profile::openai(), ResponsesOptions::default());
                let wire = responses::to_wire(
                    request,
                    &model,
                    &capabilities,
                    &profile,
                    &options,
                    &ToolSchemas::default(),
                );
                let wire = wire.unwrap();
                let (outcome, warnings, ids) = (wire.tool_choice, wire.warnings, wire.local_ids);
                let decoder =
                    responses::ResponsesDecoder::new(model.clone(), outcome, warnings, ids);
                let decoder = decoder.with_unreported_limit(wire.unreported_limit);
                decode_sse(
                    self.provider(),
                    body,
                    decoder.with_tool_mapping(wire.tool_mapping),
                )
            }
            Self::Gemini => {
                let options = GeminiOptions::default();
                let wire = generate::to_wire(
                    request,
                    &model,
                    &capabilities,
                    &options,
                    &ToolSchemas::default(),
                )
                .unwrap();
                let (outcome, warnings, ids) = (wire.tool_choice, wire.warnings, wire.local_ids);
                let decoder = generate::GenerateDecoder::new(model.clone(), outcome, warnings, ids);
                decode_sse(
                    self.provider(),
                    body,
                    decoder.with_tool_mapping(wire.tool_mapping),
                )
            }
            Self::Ollama => {
                use switchboard_providers_ollama::chat::{ChatDecoder, LocalIds, to_wire};
                let think = ThinkForm::default();
                let wire = to_wire(
                    request,
                    &model,
                    &capabilities,
                    think,
                    &ToolSchemas::default(),
                )
                .unwrap();
                let (outcome, warnings) = (wire.tool_choice, wire.warnings);
                let ids = LocalIds::after(request);
                let decoder = ChatDecoder::new(model.clone(), outcome, warnings, ids);
                decode_ndjson(self.provider(), body, decoder.with_form(wire.form))
            }
        }
    }
}

//! The Gemini model: the request mapping, joined with the HTTP transport.

use std::borrow::Cow;

use switchboard_domain::{
    ChatModel as _, ChatRequest, Delivery, ModelCapabilities, ModelError, ModelErrorKind,
    ModelEvent, ModelStream,
};
use switchboard_providers_common::{
    HttpAnswer, decode_sse_with_context, merge_warnings,
    provider::{HttpModel, PreparedRequest, SentRequest, WireProtocol},
};

use crate::{
    GeminiConfig, GeminiOptions, ServerTool, capabilities,
    continuation::{ContinuationSource, continue_answer},
    generate::{Continuation, GenerateDecoder, events_from_body, to_wire_request},
};

/// A model that is served by the Gemini API.
///
/// The API may refuse a thought signature, for example if it was created with another API key. The
/// request is then sent once more without signatures, and the answer has a warning.
///
/// ```no_run
/// use switchboard_domain::{ChatModel, ChatRequest, Message};
/// use switchboard_providers_gemini::GeminiModel;
///
/// # async fn ask() -> Result<(), switchboard_domain::ModelError> {
/// let model = GeminiModel::from_env("gemini-3.8-flash")?;
/// let answer = model.complete(&ChatRequest::new([Message::user("Hello?")])).await?;
/// println!("{}", answer.message.text());
/// # Ok(())
/// # }
/// ```
pub type GeminiModel = HttpModel<GenerateContentApi>;

/// Marker type that selects `generateContent` and `streamGenerateContent` for [`GeminiModel`].
#[derive(Debug)]
pub struct GenerateContentApi;

/// Whether the next attempt omits thought signatures, because the API refused one in an earlier
/// attempt.
#[derive(Debug, Default)]
pub struct OmitThoughtSignatures(bool);

impl WireProtocol for GenerateContentApi {
    type Config = GeminiConfig;
    type Options = GeminiOptions;
    type Adaptation = OmitThoughtSignatures;
    type Decoder = GenerateDecoder;

    fn options(config: &GeminiConfig) -> GeminiOptions {
        config.options.clone()
    }

    fn capabilities(_config: &GeminiConfig, name: &str) -> ModelCapabilities {
        capabilities(name)
    }

    fn server_tool_names(options: &GeminiOptions) -> Vec<Cow<'_, str>> {
        options.server_tools.iter().map(ServerTool::name).collect()
    }

    fn prepare_request(
        model: &GeminiModel,
        request: &ChatRequest,
        without_signatures: &mut OmitThoughtSignatures,
    ) -> Result<PreparedRequest<GenerateDecoder>, ModelError> {
        let (config, id) = (model.config(), model.id());
        let (capabilities, schemas) = (model.capabilities(), model.tool_schemas());
        let mut options = model.options().clone();
        options.replay_thoughts &= !without_signatures.0;
        let wire = to_wire_request(request, id, capabilities, &options, schemas)?;
        let streams = config.streaming && request.delivery != Delivery::Whole;
        let method = if streams {
            "streamGenerateContent?alt=sse"
        } else {
            "generateContent"
        };
        let path = format!("{}:{method}", config.model_path(&id.name)?);
        let warnings = merge_warnings(wire.warnings);
        let decoder = GenerateDecoder::new(id.clone(), wire.tool_choice, warnings, wire.local_ids);
        Ok(PreparedRequest {
            request: SentRequest::new(&id.provider, path, streams, &wire.body)?,
            decoder: decoder.with_tool_mapping(wire.tool_mapping),
            recovery: None,
        })
    }

    fn adapt_retry_to_error(
        model: &GeminiModel,
        _request: &ChatRequest,
        without_signatures: &mut OmitThoughtSignatures,
        error: &ModelError,
    ) -> bool {
        let may_change = model.options().replay_thoughts && !without_signatures.0;
        without_signatures.0 = may_change && is_thought_signature_refusal(error);
        without_signatures.0
    }

    fn decode_json(decoder: GenerateDecoder, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        events_from_body(decoder, body)
    }

    async fn read_answer_stream(
        model: &GeminiModel,
        sent: SentRequest,
        decoder: GenerateDecoder,
        answer: HttpAnswer,
    ) -> Result<ModelStream, ModelError> {
        let continuation = Continuation::default();
        let decoder = decoder.with_continuation(continuation.clone());
        let decoder = if answer.is_json_document() {
            decoder.allow_missing_finish_reason()
        } else {
            decoder
        };
        let context = answer.error_context();
        let source = ContinuationSource {
            model: model.clone(),
            sent,
            continuation,
        };
        let events = continue_answer(source, answer);
        let provider = model.provider();
        Ok(decode_sse_with_context(context, provider, events, decoder))
    }
}

/// Returns whether `error` means that the API refused a missing or invalid thought signature. The
/// API's messages for this case are "Function call is missing a `thought_signature`…" and
/// "Corrupted thought signature."
fn is_thought_signature_refusal(error: &ModelError) -> bool {
    let message = error.message().to_ascii_lowercase();
    matches!(error.kind, ModelErrorKind::InvalidRequest { .. })
        && (message.contains("thought_signature") || message.contains("thought signature"))
}

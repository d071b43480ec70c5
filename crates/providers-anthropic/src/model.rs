//! The Anthropic model: the request mapping, joined with the HTTP transport.

use std::borrow::Cow;

use switchboard_domain::{ChatModel as _, ChatRequest, ModelCapabilities, ModelError, ModelEvent};
use switchboard_providers_common::{
    Headers, merge_warnings,
    provider::{HttpModel, PreparedRequest, SentRequest, WireProtocol},
    request::forces_tool_call,
};

use crate::{
    AnthropicConfig, MessagesOptions, capabilities,
    config::BETAS,
    error::{is_thinking_block_refusal, is_tool_choice_refusal},
    messages::{MessagesDecoder, events_from_body, to_wire_request},
};

/// A model that is served by the Messages API of Anthropic or of a compatible server.
///
/// The API may refuse a forced tool choice or earlier thinking blocks, for example after the start
/// of the conversation was removed. The request is then sent once more without the refused part,
/// and the answer has a warning.
///
/// ```no_run
/// use switchboard_domain::{ChatModel, ChatRequest, Message};
/// use switchboard_providers_anthropic::AnthropicModel;
///
/// # async fn ask() -> Result<(), switchboard_domain::ModelError> {
/// let model = AnthropicModel::from_env("claude-haiku-5-5")?;
/// let answer = model.complete(&ChatRequest::new([Message::user("Hello?")])).await?;
/// assert!(!answer.message.text().is_empty());
/// # Ok(())
/// # }
/// ```
pub type AnthropicModel = HttpModel<MessagesApi>;

/// Marker type that selects the Messages API for [`AnthropicModel`].
#[derive(Debug)]
pub struct MessagesApi;

/// State of the retries of a request: which parts the next attempt omits, because the API refused
/// them in an earlier attempt.
#[derive(Debug, Default)]
pub struct MessagesRetryState {
    without_thinking_blocks: bool,
    without_forced_tool_choice: bool,
}

impl WireProtocol for MessagesApi {
    type Config = AnthropicConfig;
    type Options = MessagesOptions;
    type Adaptation = MessagesRetryState;
    type Decoder = MessagesDecoder;

    fn options(config: &AnthropicConfig) -> MessagesOptions {
        config.options.clone()
    }

    fn capabilities(_config: &AnthropicConfig, name: &str) -> ModelCapabilities {
        capabilities(name)
    }

    fn server_tool_names(options: &MessagesOptions) -> Vec<Cow<'_, str>> {
        let names = options.server_tools.iter().map(|tool| tool.name().into());
        names.collect()
    }

    fn prepare_request(
        model: &AnthropicModel,
        request: &ChatRequest,
        adaptation: &mut MessagesRetryState,
    ) -> Result<PreparedRequest<MessagesDecoder>, ModelError> {
        let (config, id) = (model.config(), model.id());
        let mut options = model.options().clone();
        options.replay_reasoning &= !adaptation.without_thinking_blocks;
        let mut capabilities = model.capabilities().clone();
        if adaptation.without_forced_tool_choice {
            capabilities.forced_tool_choice = Some(false);
        }
        let schemas = model.tool_schemas();
        let wire = to_wire_request(request, id, &capabilities, &options, schemas)?;
        let mut sent = SentRequest::new(&id.provider, "messages", wire.body.stream, &wire.body)?;
        if !wire.betas.is_empty() && !config.headers.contains(BETAS) {
            sent.headers = Headers::new().with_header(BETAS, &config.merge_betas(&wire.betas));
        }
        let warnings = merge_warnings(wire.warnings);
        let decoder = MessagesDecoder::new(id.clone(), wire.tool_choice, warnings, wire.local_ids);
        Ok(PreparedRequest {
            request: sent,
            decoder: decoder.with_tool_mapping(wire.tool_mapping),
            recovery: None,
        })
    }

    fn adapt_retry_to_error(
        model: &AnthropicModel,
        request: &ChatRequest,
        adaptation: &mut MessagesRetryState,
        error: &ModelError,
    ) -> bool {
        let has_thinking_blocks =
            model.options().replay_reasoning && !adaptation.without_thinking_blocks;
        let is_forced = forces_tool_call(request)
            && model.capabilities().forced_tool_choice != Some(false)
            && !adaptation.without_forced_tool_choice;
        if has_thinking_blocks && is_thinking_block_refusal(error) {
            adaptation.without_thinking_blocks = true;
        } else if is_forced && is_tool_choice_refusal(error) {
            adaptation.without_forced_tool_choice = true;
        } else {
            return false;
        }
        true
    }

    fn decode_json(decoder: MessagesDecoder, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        events_from_body(decoder, body)
    }
}

//! Model types, which join the mappings of Chat Completions and Responses with the HTTP transport.

use std::borrow::Cow;

use switchboard_domain::{ChatModel as _, ChatRequest, ModelCapabilities, ModelError, ModelEvent};
use switchboard_providers_common::{
    merge_warnings,
    provider::{HttpModel, PreparedRequest, SentRequest, WireProtocol},
    text_tool_calls::{
        CallRecoverySettings,
        prompted::{PromptedTools, has_tools_or_calls},
    },
    tool_names::ToolNames,
};

use crate::{
    OpenAiConfig, capabilities,
    chat::{self, ChatDecoder, ChatOptions},
    responses::{
        self, ResponsesDecoder, ResponsesOptions,
        reasoning_removal::{is_reasoning_refusal, remove_reasoning},
    },
    tools::{NAME_RULE, check_tool_choice},
};

/// A model on Chat Completions, of OpenAI or of a compatible server.
///
/// A tool call that the model wrote as text becomes a tool use, if the text has one of the formats
/// in [`Profile::recovery`](crate::Profile::recovery). If the model has no tool use, or the profile
/// sets [`tools_by_prompt`](crate::Profile::tools_by_prompt), the tools are described in the
/// instructions instead of the request field `tools`.
///
/// ```no_run
/// use switchboard_domain::{ChatModel, ChatRequest, Message};
/// use switchboard_providers_openai::OpenAiChatModel;
///
/// # async fn ask() -> Result<(), switchboard_domain::ModelError> {
/// let model = OpenAiChatModel::from_env("gpt-6-luna")?;
/// let answer = model.complete(&ChatRequest::new([Message::user("Hello?")])).await?;
/// println!("{}", answer.message.text());
/// # Ok(())
/// # }
/// ```
pub type OpenAiChatModel = HttpModel<ChatCompletionsApi>;

/// A model on the Responses API, which accepts the reasoning of earlier answers in later requests.
///
/// ```no_run
/// use switchboard_domain::{ChatModel, ChatRequest, Message};
/// use switchboard_providers_openai::{
///     OpenAiResponsesModel,
///     responses::{ReasoningSummary, ResponsesOptions},
/// };
///
/// # async fn ask() -> Result<(), switchboard_domain::ModelError> {
/// let options = ResponsesOptions {
///     reasoning_summary: Some(ReasoningSummary::Auto),
///     ..ResponsesOptions::default()
/// };
/// let model = OpenAiResponsesModel::from_env("gpt-6-luna")?.with_options(options);
/// let answer = model.complete(&ChatRequest::new([Message::user("Hello?")])).await?;
/// println!("{}", answer.message.text());
/// # Ok(())
/// # }
/// ```
pub type OpenAiResponsesModel = HttpModel<ResponsesApi>;

/// Marker type that selects the Chat Completions API for [`OpenAiChatModel`].
#[derive(Debug)]
pub struct ChatCompletionsApi;

impl WireProtocol for ChatCompletionsApi {
    type Config = OpenAiConfig;
    type Options = ChatOptions;
    type Adaptation = ();
    type Decoder = ChatDecoder;

    fn options(config: &OpenAiConfig) -> ChatOptions {
        config.chat
    }

    fn capabilities(config: &OpenAiConfig, name: &str) -> ModelCapabilities {
        capabilities(name, &config.profile)
    }

    fn prepare_request(
        model: &OpenAiChatModel,
        request: &ChatRequest,
        _adaptation: &mut (),
    ) -> Result<PreparedRequest<ChatDecoder>, ModelError> {
        let profile = &model.config().profile;
        if needs_tools_in_prompt(model, request) {
            check_tool_choice(request, model.provider())?;
            // With `constrained`, a forced tool call is requested as an answer that must match a
            // JSON Schema. The root of this schema may be `anyOf`, so the server must support
            // combinators at the root.
            let constrained =
                model.capabilities().structured_output == Some(true) && profile.root_combinators;
            let prompted = PromptedTools { constrained }.prepare_request(request);
            return prepare_chat(model, &prompted.request, Some(prompted.recovery));
        }
        let recovery = (!profile.recovery.is_empty()).then(|| {
            let names = ToolNames::from_request(request, NAME_RULE);
            CallRecoverySettings::for_request(request, profile.recovery).with_wire_names(&names)
        });
        prepare_chat(model, request, recovery)
    }

    fn decode_json(decoder: ChatDecoder, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        chat::events_from_body(decoder, body)
    }
}

/// Returns whether the tools of the request, and the tool calls and results in its messages, must
/// be sent as text in the prompt.
fn needs_tools_in_prompt(model: &OpenAiChatModel, request: &ChatRequest) -> bool {
    let profile = &model.config().profile;
    let as_text = profile.tools_by_prompt || model.capabilities().tools == Some(false);
    as_text && has_tools_or_calls(request)
}

fn prepare_chat(
    model: &OpenAiChatModel,
    request: &ChatRequest,
    recovery: Option<CallRecoverySettings>,
) -> Result<PreparedRequest<ChatDecoder>, ModelError> {
    let (id, schemas) = (model.id(), model.tool_schemas());
    let profile = model.options().apply_to_profile(&model.config().profile);
    let wire = chat::to_wire_request(request, id, model.capabilities(), &profile, schemas)?;
    let path = "chat/completions";
    let sent = SentRequest::new(&id.provider, path, wire.body.stream, &wire.body)?;
    let warnings = merge_warnings(wire.warnings);
    let decoder = ChatDecoder::new(id.clone(), wire.tool_choice, warnings, wire.local_ids);
    Ok(PreparedRequest {
        request: sent,
        decoder: decoder.with_tool_mapping(wire.tool_mapping),
        recovery,
    })
}

/// Marker type that selects the Responses API for [`OpenAiResponsesModel`].
#[derive(Debug)]
pub struct ResponsesApi;

/// State of the retries of a request. `true` if the next attempt omits the reasoning of earlier
/// answers, because the API refused this reasoning.
#[derive(Debug, Default)]
pub struct OmitEarlierReasoning(bool);

impl WireProtocol for ResponsesApi {
    type Config = OpenAiConfig;
    type Options = ResponsesOptions;
    type Adaptation = OmitEarlierReasoning;
    type Decoder = ResponsesDecoder;

    fn options(config: &OpenAiConfig) -> ResponsesOptions {
        config.responses.clone()
    }

    fn capabilities(config: &OpenAiConfig, name: &str) -> ModelCapabilities {
        capabilities(name, &config.profile)
    }

    fn server_tool_names(options: &ResponsesOptions) -> Vec<Cow<'_, str>> {
        let names = options.server_tools.iter().map(|tool| tool.name().into());
        names.collect()
    }

    fn prepare_request(
        model: &OpenAiResponsesModel,
        request: &ChatRequest,
        adaptation: &mut OmitEarlierReasoning,
    ) -> Result<PreparedRequest<ResponsesDecoder>, ModelError> {
        let (id, capabilities) = (model.id(), model.capabilities());
        let changed = remove_reasoning(request).filter(|_| adaptation.0);
        let (request, warning) = match &changed {
            Some((changed, warning)) => (changed, Some(warning.clone())),
            None => (request, None),
        };
        let (profile, options) = (&model.config().profile, model.options());
        let schemas = model.tool_schemas();
        let wire =
            responses::to_wire_request(request, id, capabilities, profile, options, schemas)?;
        let path = "responses";
        let sent = SentRequest::new(&id.provider, path, wire.body.stream, &wire.body)?;
        let warnings = merge_warnings(wire.warnings.into_iter().chain(warning).collect());
        let decoder = ResponsesDecoder::new(id.clone(), wire.tool_choice, warnings, wire.local_ids)
            .with_unreported_token_limit(wire.unreported_limit)
            .with_tool_mapping(wire.tool_mapping);
        Ok(PreparedRequest {
            request: sent,
            decoder,
            recovery: None,
        })
    }

    fn adapt_retry_to_error(
        _model: &OpenAiResponsesModel,
        request: &ChatRequest,
        adaptation: &mut OmitEarlierReasoning,
        error: &ModelError,
    ) -> bool {
        let may_change = !adaptation.0 && is_reasoning_refusal(error);
        adaptation.0 |= may_change && remove_reasoning(request).is_some();
        may_change && adaptation.0
    }

    fn decode_json(decoder: ResponsesDecoder, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        responses::events_from_body(decoder, body)
    }
}

//! The Ollama model: the request mapping, joined with the HTTP transport.

use std::borrow::Cow;

use switchboard_domain::{
    ChatModel as _, ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent,
};
use switchboard_providers_common::{
    merge_warnings,
    provider::{HttpModel, PreparedRequest, SentRequest, StreamFormat, WireProtocol},
    text_tool_calls::{
        CallRecoverySettings, TextCallFormats,
        prompted::{PromptedTools, convert_tool_history_to_text, has_tools_or_calls},
    },
};

use crate::{
    OllamaConfig, ToolsByPrompt, capabilities,
    chat::{
        ChatDecoder, ThinkForm, ToolUseIds, events_from_body, find_required_tools,
        sends_tools_in_format_field, to_wire_request,
    },
    error::{THINKING, THINKING_LEVELS, TOOLS},
};

/// A model that an Ollama server runs.
///
/// The reasoning setting is first sent as a level, such as `high`. If the server answers that the
/// model has no levels or does not think, the request is repeated with a switch (`true`) or without
/// the setting, and a [`Warning`](switchboard_domain::Warning) reports this.
///
/// A tool call that the model wrote as text, in a format of [`OllamaConfig::text_calls`], becomes a
/// tool use. A model without tool support gets tools in the prompt if
/// [`OllamaConfig::tools_by_prompt`] allows it. Otherwise a request with tools fails with
/// [`ModelErrorKind::Unsupported`].
///
/// ```no_run
/// use switchboard_domain::{ChatModel, ChatRequest, Message};
/// use switchboard_providers_ollama::OllamaModel;
///
/// # async fn ask() -> Result<(), switchboard_domain::ModelError> {
/// let model = OllamaModel::from_env("qwen3:8b")?;
/// let answer = model.complete(&ChatRequest::new([Message::user("Hello?")])).await?;
/// println!("{}", answer.message.text());
/// # Ok(())
/// # }
/// ```
pub type OllamaModel = HttpModel<ChatApi>;

/// Marker type that selects the chat API (`/api/chat`) for [`OllamaModel`].
#[derive(Debug)]
pub struct ChatApi;

/// Options of one Ollama model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OllamaOptions {
    /// The model's default stop sequences, if the server reported them. A request's `stop` replaces
    /// these defaults (ollama#3629), and without them the model may never stop.
    pub own_stop: Option<Vec<String>>,
}

/// Changes to the next attempt of a request, because the server refused an earlier attempt.
#[derive(Debug, Default)]
pub struct RequestSimplification {
    think: ThinkForm,
    /// Whether the last request contained the reasoning setting, so that a retry can omit it.
    has_think: bool,
    tools_in_prompt: bool,
}

impl WireProtocol for ChatApi {
    type Config = OllamaConfig;
    type Options = OllamaOptions;
    type Adaptation = RequestSimplification;
    type Decoder = ChatDecoder;

    const FORMAT: StreamFormat = StreamFormat::JsonLines;

    fn options(_config: &OllamaConfig) -> OllamaOptions {
        OllamaOptions::default()
    }

    fn capabilities(config: &OllamaConfig, name: &str) -> ModelCapabilities {
        capabilities(name, config.is_cloud())
    }

    fn prepare_request(
        model: &OllamaModel,
        request: &ChatRequest,
        simplified: &mut RequestSimplification,
    ) -> Result<PreparedRequest<ChatDecoder>, ModelError> {
        let (id, schemas) = (model.id(), model.tool_schemas());
        simplified.tools_in_prompt |= needs_tools_in_prompt(model);
        let (mapped, recovery) = if simplified.tools_in_prompt && has_tools_or_calls(request) {
            describe_tools_in_prompt(model, request)?
        } else {
            let forms = model.config().text_calls;
            (
                Cow::Borrowed(request),
                CallRecoverySettings::for_request(request, forms),
            )
        };
        let (capabilities, think) = (model.capabilities(), simplified.think);
        let wire = to_wire_request(&mapped, id, capabilities, think, schemas)?;
        simplified.has_think = wire.body.think.is_some();
        // The tool-use ids are taken from `request`, because calls may have become text in
        // `mapped`.
        let ids = ToolUseIds::from_request(request);
        // If the answer may be `{"response": …}`, its text is not searched for tool calls, because
        // this JSON may look like a call.
        let may_answer = wire.form.as_ref().is_some_and(|form| form.may_answer);
        let warnings = merge_warnings(wire.warnings);
        let decoder = ChatDecoder::new(id.clone(), wire.tool_choice, warnings, ids);
        Ok(PreparedRequest {
            request: SentRequest::new(&id.provider, "api/chat", wire.body.stream, &wire.body)?,
            decoder: decoder.with_answer_form(wire.form),
            recovery: (!may_answer).then_some(recovery),
        })
    }

    fn adapt_retry_to_error(
        model: &OllamaModel,
        request: &ChatRequest,
        simplified: &mut RequestSimplification,
        error: &ModelError,
    ) -> bool {
        let ModelErrorKind::Unsupported { feature } = &error.kind else {
            return false;
        };
        match (feature.as_str(), simplified.think) {
            (THINKING_LEVELS, ThinkForm::Levels) if simplified.has_think => {
                simplified.think = ThinkForm::Switch;
                true
            }
            (THINKING, ThinkForm::Levels | ThinkForm::Switch) if simplified.has_think => {
                simplified.think = ThinkForm::Never;
                true
            }
            (TOOLS, _) => {
                let may_change = model.config().tools_by_prompt == ToolsByPrompt::Auto
                    && !simplified.tools_in_prompt
                    && has_tools_or_calls(request);
                simplified.tools_in_prompt |= may_change;
                may_change
            }
            _ => false,
        }
    }

    fn decode_json(decoder: ChatDecoder, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        events_from_body(decoder, body)
    }
}

/// Returns whether every request for the model describes its tools in the prompt.
fn needs_tools_in_prompt(model: &OllamaModel) -> bool {
    match model.config().tools_by_prompt {
        ToolsByPrompt::Never => false,
        ToolsByPrompt::Auto => model.capabilities().tools == Some(false),
        ToolsByPrompt::Always => true,
    }
}

/// Describes the tools in the prompt and converts the calls of the history to text. If the request
/// field `format` must constrain the answer to a call, only converts the history:
/// [`to_wire_request`] then describes the tools and creates the schema.
///
/// Fails as [`to_wire_request`] does if the tools or the tool choice are invalid.
fn describe_tools_in_prompt<'a>(
    model: &OllamaModel,
    request: &'a ChatRequest,
) -> Result<(Cow<'a, ChatRequest>, CallRecoverySettings), ModelError> {
    find_required_tools(request, model.provider())?;
    if sends_tools_in_format_field(request, model.capabilities()) {
        let recovery = CallRecoverySettings::for_request(request, TextCallFormats::ALL);
        return Ok((Cow::Owned(convert_tool_history_to_text(request)), recovery));
    }
    let prepared = PromptedTools { constrained: false }.prepare_request(request);
    let mut mapped = prepared.request;
    let stop = &mut mapped.sampling.stop;
    if request.sampling.stop.is_empty() && !stop.is_empty() {
        // Stop sequences in a request replace the default ones of the model. If the defaults are
        // known, they are sent too. If not, no stop sequences are sent, so that the defaults stay
        // in effect.
        match &model.options().own_stop {
            Some(own) => stop.extend(own.iter().cloned()),
            None => stop.clear(),
        }
    }
    Ok((Cow::Owned(mapped), prepared.recovery))
}

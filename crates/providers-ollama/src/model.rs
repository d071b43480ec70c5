//! The mapping joined with the transport.

use std::borrow::Cow;

use switchboard_domain::{
    ChatModel as _, ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelEvent,
};
use switchboard_providers_common::{
    provider::{HttpModel, PreparedRequest, SentRequest, StreamFormat, Wire},
    tallied,
    text_tool_calls::{
        Recovery, RecoveryForms,
        prompted::{PromptedTools, concerns_tools, with_history_as_text},
    },
};

use crate::{
    OllamaConfig, ToolsByPrompt, capabilities,
    chat::{
        ChatDecoder, LocalIds, ThinkForm, WireRequest, checked, events_from_body,
        is_sent_in_format, to_wire,
    },
    error::{THINKING, THINKING_LEVELS, TOOLS},
};

/// A model that an Ollama server runs.
///
/// The reasoning setting is sent in the best form that the model supports. If the server answers
/// that the model does not think, or has no levels, the request is repeated without it, and a
/// [`Warning`](switchboard_domain::Warning) reports this.
///
/// A tool call that the model wrote as text, in one of the forms of [`OllamaConfig::text_calls`],
/// is a tool use. A model without tools gets them in the prompt if
/// [`OllamaConfig::tools_by_prompt`] allows it. Otherwise such a request fails with
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
pub type OllamaModel = HttpModel<Chat>;

/// Wire protocol of `/api/chat`.
#[derive(Debug)]
pub struct Chat;

/// Options of one Ollama model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OllamaOptions {
    /// Stop sequences of the model itself, if the server reported them. A request's `stop` replaces
    /// them (ollama#3629), and a model without them may never stop.
    pub own_stop: Option<Vec<String>>,
}

/// Simplifications of a request after the server refused the original one.
#[derive(Debug, Default)]
pub struct Simplified {
    think: ThinkForm,
    /// Whether the last request contained the reasoning setting.
    has_think: bool,
    tools_in_prompt: bool,
}

impl Wire for Chat {
    type Config = OllamaConfig;
    type Options = OllamaOptions;
    type Adaptation = Simplified;
    type Decoder = ChatDecoder;

    const FORMAT: StreamFormat = StreamFormat::JsonLines;

    fn options(_config: &OllamaConfig) -> OllamaOptions {
        OllamaOptions::default()
    }

    fn capabilities(config: &OllamaConfig, name: &str) -> ModelCapabilities {
        capabilities(name, config.is_cloud())
    }

    fn prepare(
        model: &OllamaModel,
        request: &ChatRequest,
        simplified: &mut Simplified,
    ) -> Result<PreparedRequest<ChatDecoder>, ModelError> {
        let id = model.id();
        simplified.tools_in_prompt |= needs_prompted_tools(model);
        let (mapped, recovery) = if simplified.tools_in_prompt && concerns_tools(request) {
            prompted(model, request)?
        } else {
            let forms = model.config().text_calls;
            (Cow::Borrowed(request), Recovery::of(request, forms))
        };
        let WireRequest {
            body,
            tool_choice,
            warnings,
            form,
        } = to_wire(
            &mapped,
            id,
            model.capabilities(),
            simplified.think,
            model.tool_schemas(),
        )?;
        simplified.has_think = body.think.is_some();
        // The history in the mapped request may be text, without tool-use ids.
        let ids = LocalIds::after(request);
        // An answer of any JSON form may look like a tool call.
        let may_answer = form.as_ref().is_some_and(|form| form.may_answer);
        let decoder = ChatDecoder::new(id.clone(), tool_choice, tallied(warnings), ids);
        Ok(PreparedRequest {
            request: SentRequest::new(&id.provider, "api/chat", body.stream, &body)?,
            decoder: decoder.with_form(form),
            recovery: (!may_answer).then_some(recovery),
        })
    }

    fn adapt(
        model: &OllamaModel,
        request: &ChatRequest,
        simplified: &mut Simplified,
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
                    && concerns_tools(request);
                simplified.tools_in_prompt |= may_change;
                may_change
            }
            _ => false,
        }
    }

    fn read_document(decoder: ChatDecoder, body: &str) -> Result<Vec<ModelEvent>, ModelError> {
        events_from_body(decoder, body)
    }
}

/// Returns whether tools are always described in the prompt for the model.
fn needs_prompted_tools(model: &OllamaModel) -> bool {
    match model.config().tools_by_prompt {
        ToolsByPrompt::Never => false,
        ToolsByPrompt::Auto => model.capabilities().tools == Some(false),
        ToolsByPrompt::Always => true,
    }
}

/// Describes the tools in the prompt and converts the calls of the history to text. If `format` has
/// to constrain the answer to a call, only the history is converted: the mapping then describes the
/// tools and creates the schema. Fails like the mapping if the tools or the tool choice are
/// invalid.
///
/// Fails like the mapping if the tools or the tool choice are invalid.
fn prompted<'a>(
    model: &OllamaModel,
    request: &'a ChatRequest,
) -> Result<(Cow<'a, ChatRequest>, Recovery), ModelError> {
    checked(request, model.provider())?;
    if is_sent_in_format(request, model.capabilities()) {
        let recovery = Recovery::of(request, RecoveryForms::ALL);
        return Ok((Cow::Owned(with_history_as_text(request)), recovery));
    }
    let prepared = PromptedTools { constrained: false }.prepare(request);
    let mut mapped = prepared.request;
    let stop = &mut mapped.sampling.stop;
    if request.sampling.stop.is_empty() && !stop.is_empty() {
        // Stop sequences are sent only if the model's own are known, because they replace these.
        match &model.options().own_stop {
            Some(own) => stop.extend(own.iter().cloned()),
            None => stop.clear(),
        }
    }
    Ok((Cow::Owned(mapped), prepared.recovery))
}

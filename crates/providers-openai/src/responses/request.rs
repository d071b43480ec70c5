//! Domain → wire.

use serde::Deserialize;
use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelId, ToolChoiceOutcome, Warning,
};
use switchboard_providers_common::{LocalIds, tool_names::ToolNames};

use super::{
    input::input,
    wire::{self, Body},
};
use crate::{
    ServerTool,
    built_in::{BuiltIn, Declared},
    chat::wire::ResponseFormat,
    options::{Options, answer_schema},
    profile::Profile,
    reshaped::Reshaped,
    tools::{NAME_RULE, Tools, switches_reasoning_off, tools},
};

/// The API refuses a lower limit: "integer below minimum value. Expected a value >= 16".
const LEAST_OUTPUT_TOKENS: u32 = 16;

/// What this wire has beyond what every model is asked.
///
/// A configuration file may hold any of its fields:
///
/// ```
/// use switchboard_providers_openai::{ServerTool, responses::ResponsesOptions};
///
/// let options: ResponsesOptions = serde_json::from_str(
///     r#"{"server_tools": [{"type": "web_search"}], "reasoning_summary": "auto"}"#,
/// )?;
/// assert_eq!(options.server_tools, [ServerTool::web_search()]);
/// assert!(!options.store);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponsesOptions {
    /// Whether the provider keeps the answer (OpenAI: for 30 days). It is off, though the API's own default
    /// is on: the conversation is sent as a whole each time and needs nothing that is kept.
    pub store: bool,
    /// What is shown of the reasoning; `None` leaves it to the provider, and OpenAI then shows nothing.
    /// OpenAI refuses it to organizations that are not verified.
    pub reasoning_summary: Option<ReasoningSummary>,
    /// Tools that the provider runs on its own side, declared after the request's functions and before
    /// those of a list `tools` in [`ChatRequest::extra`]. One that this list declares too, by type, label
    /// or name, is left to it; one whose name a function of the request has is left out, with a warning.
    pub server_tools: Vec<ServerTool>,
    /// [`Profile::strict_tools`] for this wire; `None` leaves it to the profile.
    pub strict_tools: Option<bool>,
}

/// What is shown of the reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningSummary {
    /// The most detailed that the model has.
    Auto,
    /// A short one.
    Concise,
    /// A long one.
    Detailed,
}

impl ReasoningSummary {
    fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Concise => "concise",
            Self::Detailed => "detailed",
        }
    }
}

/// A request as it is sent, and what is not the same in it as in the domain's.
#[derive(Debug)]
pub struct WireRequest<'a> {
    /// The body. It borrows every text from the domain request.
    pub body: Body<'a>,
    /// What became of the tool choice.
    pub tool_choice: ToolChoiceOutcome,
    /// What could not be said on this wire.
    pub warnings: Vec<Warning>,
    /// The ids that the conversation has used up.
    pub local_ids: LocalIds,
    /// The output limit, where the server does not say that it was reached.
    pub silent_limit: Option<u32>,
    /// What the answer holds under other names or in another shape than was asked for; for
    /// [`ResponsesDecoder::reshaping`](super::ResponsesDecoder::reshaping).
    pub reshaped: Reshaped,
}

/// Maps a request for `model`, as a stream unless it is wanted whole or the server does not stream such
/// an answer.
///
/// `capabilities` decides what is left out with a warning because the model is *known* not to take
/// it; `profile` says how the server differs from others.
///
/// Fails with [`ModelErrorKind::InvalidRequest`](switchboard_domain::ModelErrorKind::InvalidRequest),
/// naming the field, when the tool choice speaks of a tool that is not declared, the API would refuse
/// one of the options' server tools, or the name of a schema cannot be said on this wire, and with
/// [`ModelErrorKind::Unsupported`](switchboard_domain::ModelErrorKind::Unsupported) when functions are
/// declared to a model that is known to have none.
pub fn to_wire<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    options: &ResponsesOptions,
) -> Result<WireRequest<'a>, ModelError> {
    let mut warnings = Vec::new();
    let profile = &*profile.with_strict_tools(options.strict_tools);
    let provider = &model.provider;
    let built_in = BuiltIn::with_options(request, &options.server_tools, provider, &mut warnings)?;
    let names = ToolNames::of(request, NAME_RULE);
    let Tools {
        declared,
        built_in,
        choice,
        outcome,
        mut reshaped,
    } = tools(
        request,
        provider,
        built_in,
        &names,
        capabilities,
        profile,
        &mut warnings,
    )?;
    let input = input(request, model, &names, capabilities, profile, &mut warnings);
    reshaped.named(names);
    let declared = Declared::new(declared, built_in);
    let schema = answer_schema(
        request,
        model,
        capabilities,
        profile,
        "text.format.name",
        &mut reshaped,
        &mut warnings,
    )?;
    let streams = profile.streams(request.delivery, schema.is_some());
    let (text, response_format) = match schema {
        None => (None, None),
        Some((name, sent)) if profile.text_format => {
            (Some(wire::TextOptions::of(name, sent)), None)
        }
        Some((name, sent)) => (None, Some(ResponseFormat::of(name, sent))),
    };
    let mut mapped = Options::new(request, model, capabilities, profile, &mut warnings);
    // Unlike Chat Completions, this API has no model that must not reason when it has tools.
    let effort = match mapped.reasoning_effort(profile, false) {
        None if switches_reasoning_off(request, profile) => Some("none"),
        effort => effort,
    };
    let may_reason = capabilities.reasoning != Some(false);
    let summary = options.reasoning_summary.map(ReasoningSummary::as_str);
    let summary = summary.filter(|_| may_reason && effort != Some("none"));
    let (temperature, top_p) = mapped.sampling(effort);
    if !request.sampling.stop.is_empty() {
        mapped.dropped("the Responses API takes no stop sequences");
    }
    if request.sampling.seed.is_some() {
        mapped.dropped("the Responses API takes no seed");
    }
    let max_output_tokens = request.max_output_tokens.map(|wanted| {
        if wanted < LEAST_OUTPUT_TOKENS {
            mapped.dropped(&format!(
                "max_output_tokens is {LEAST_OUTPUT_TOKENS}, the least that the API takes, not {wanted}"
            ));
        }
        wanted.max(LEAST_OUTPUT_TOKENS)
    });
    let parallel_tool_calls = mapped.parallel(profile, !declared.is_empty());
    mapped.extra();
    // Refused by models that do not reason: "Encrypted content is not supported with this model".
    let encrypted = may_reason.then_some("reasoning.encrypted_content");
    let include = encrypted.into_iter().chain(declared.found()).collect();
    let body = Body {
        model: &model.name,
        input,
        tools: declared,
        tool_choice: choice.map(Into::into),
        parallel_tool_calls,
        stream: streams,
        text,
        response_format,
        reasoning: (effort.is_some() || summary.is_some())
            .then_some(wire::Reasoning { effort, summary }),
        max_output_tokens,
        temperature,
        top_p,
        include,
        store: options.store,
        extra: &request.extra,
    };
    Ok(WireRequest {
        body,
        tool_choice: outcome,
        warnings,
        local_ids: LocalIds::after(request),
        reshaped,
        silent_limit: max_output_tokens.filter(|_| !profile.tells_incomplete),
    })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

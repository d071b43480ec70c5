//! Domain → wire.

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelId, ToolChoiceOutcome, Warning,
};
use switchboard_providers_common::{LocalIds, tool_names::ToolNames};

use super::{
    messages::messages,
    wire::{self, Body},
};
use crate::{
    built_in::{BuiltIn, Declared, Form},
    options::{Options, answer_schema},
    profile::{MaxTokensField, Profile, ReasoningControl, SeedField},
    reshaped::Reshaped,
    tools::{NAME_RULE, Tools, switches_reasoning_off, tools},
};

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
    /// What the answer holds under other names or in another shape than was asked for; for
    /// [`ChatDecoder::reshaping`](super::ChatDecoder::reshaping).
    pub reshaped: Reshaped,
}

/// Maps a request for `model`, as a stream unless it is wanted whole or the server does not stream such
/// an answer.
///
/// `capabilities` decides what is left out with a warning because the model is *known* not to take
/// it; `profile` says how the server differs from others.
///
/// Fails with [`ModelErrorKind::InvalidRequest`](switchboard_domain::ModelErrorKind::InvalidRequest),
/// naming the field, when the tool choice speaks of a tool that is not declared or the name of a schema
/// cannot be said on this wire, and with
/// [`ModelErrorKind::Unsupported`](switchboard_domain::ModelErrorKind::Unsupported) when tools are
/// declared to a model that is known to have none
/// ([`OpenAiChatModel`](crate::OpenAiChatModel) offers them by prompt before it comes to that).
pub fn to_wire<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    capabilities: &ModelCapabilities,
    profile: &Profile,
) -> Result<WireRequest<'a>, ModelError> {
    let mut warnings = Vec::new();
    let names = ToolNames::of(request, NAME_RULE);
    let Tools {
        declared,
        built_in,
        choice,
        outcome,
        mut reshaped,
    } = tools(
        request,
        &model.provider,
        BuiltIn::all(&request.extra, Form::Nested),
        &names,
        capabilities,
        profile,
        &mut warnings,
    )?;
    let messages = messages(request, model, &names, capabilities, profile, &mut warnings);
    reshaped.named(names);
    let schema = answer_schema(
        request,
        model,
        capabilities,
        profile,
        "response_format.json_schema.name",
        &mut reshaped,
        &mut warnings,
    )?;
    let response_format = schema.map(|(name, sent)| wire::ResponseFormat::of(name, sent));
    let mut options = Options::new(request, model, capabilities, profile, &mut warnings);
    let declared = Declared::new(declared, built_in);
    let effort = match options.reasoning_effort(profile, declared.has_functions()) {
        None if switches_reasoning_off(request, profile) => Some("none"),
        effort => effort,
    };
    let (reasoning_effort, thinking) = match (profile.reasoning_control, effort) {
        (ReasoningControl::EffortAndThinking, Some("none")) => (None, Some(wire::Thinking::OFF)),
        (_, effort) => (effort, None),
    };
    let (temperature, top_p) = options.sampling(effort);
    let stop = options.stop();
    let parallel_tool_calls = options.parallel(profile, !declared.is_empty());
    options.extra();
    let (max_completion_tokens, max_tokens) = match profile.max_tokens_field {
        MaxTokensField::MaxCompletionTokens => (request.max_output_tokens, None),
        MaxTokensField::MaxTokens => (None, request.max_output_tokens),
    };
    let (seed, random_seed) = match profile.seed_field {
        SeedField::Seed => (request.sampling.seed, None),
        SeedField::RandomSeed => (None, request.sampling.seed),
    };
    let stream = profile.streams(request.delivery, response_format.is_some());
    let body = Body {
        model: &model.name,
        messages,
        tools: declared,
        tool_choice: choice.map(Into::into),
        parallel_tool_calls,
        response_format,
        max_completion_tokens,
        max_tokens,
        temperature,
        top_p,
        stop,
        seed,
        random_seed,
        reasoning_effort,
        thinking,
        stream,
        stream_options: (stream && profile.stream_options).then_some(wire::StreamOptions {
            include_usage: true,
        }),
        extra: &request.extra,
    };
    Ok(WireRequest {
        body,
        tool_choice: outcome,
        warnings,
        local_ids: LocalIds::after(request),
        reshaped,
    })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

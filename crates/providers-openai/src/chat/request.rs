//! Domain → wire.

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelId, ToolChoiceOutcome, Warning,
};

use super::{
    messages::messages,
    wire::{self, Body},
};
use crate::{
    ids::LocalIds,
    options::{Options, answer_schema},
    profile::{MaxTokensField, Profile, ReasoningControl, SeedField},
    tools::{Tools, switches_reasoning_off, tools},
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
}

/// Maps a request for `model`, as a stream where the server streams such an answer.
///
/// `capabilities` decides what is left out with a warning because the model is *known* not to take
/// it; `profile` says how the server differs from others.
///
/// Fails with [`ModelErrorKind::InvalidRequest`](switchboard_domain::ModelErrorKind::InvalidRequest),
/// naming the field, when a tool's name cannot be said on this wire or the tool choice speaks of a
/// tool that is not declared, and with
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
    let Tools {
        declared,
        choice,
        outcome,
    } = tools(
        request,
        &model.provider,
        "function.name",
        capabilities,
        profile,
        &mut warnings,
    )?;
    let messages = messages(request, model, capabilities, profile, &mut warnings);
    let schema_field = "response_format.json_schema.name";
    let response_format = answer_schema(request, model, capabilities, schema_field, &mut warnings)?
        .map(|schema| wire::ResponseFormat::JsonSchema {
            json_schema: wire::JsonSchema {
                name: schema.name,
                schema: schema.schema,
                strict: schema.strict,
            },
        });
    let mut options = Options::new(request, model, capabilities, profile, &mut warnings);
    let declared: Vec<_> = declared.into_iter().map(wire::Tool::from).collect();
    let effort = match options.reasoning_effort(profile, !declared.is_empty()) {
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
    let stream = profile.streams_schemas || response_format.is_none();
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
    })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

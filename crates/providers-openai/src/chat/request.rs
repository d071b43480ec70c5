//! Converts a domain request to a request of Chat Completions.

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelId, ToolChoiceOutcome, Warning,
};
use switchboard_providers_common::{
    ToolMapping, ToolUseIds, schema::ToolSchemas, tool_names::ToolNames,
};

use super::{
    content::map_messages,
    wire::{self, Body},
};
use crate::{
    options::{OptionMapper, answer_schema},
    server_profile::{MaxTokensField, Profile, ReasoningControl, SeedField},
    tools::{
        NAME_RULE, ToolContext, choice_disables_reasoning, map_tools,
        provider_tools::{ProviderTool, ToolForm},
    },
};

/// A Chat Completions request built from a domain request, with the resulting warnings.
#[derive(Debug)]
pub struct WireRequest<'a> {
    /// Request body. It borrows its texts from the domain request.
    pub body: Body<'a>,
    /// Treatment of the tool choice: sent unchanged, emulated by the adapter, or not enforced.
    pub tool_choice: ToolChoiceOutcome,
    /// Warnings about parts and options that were changed or dropped.
    pub warnings: Vec<Warning>,
    /// Tool-use ids of the conversation, which the answer must not reuse.
    pub local_ids: ToolUseIds,
    /// Changes of tool names and schemas in the request, which the decoder reverses in the answer.
    pub tool_mapping: ToolMapping,
}

/// Converts a domain request to a Chat Completions request for `model`. The answer is streamed
/// unless the request asks for a whole one or the server cannot stream it.
///
/// Options and parts that `capabilities` does not allow are dropped with a warning. `profile`
/// describes the fields and features that the server supports.
///
/// Fails with [`InvalidRequest`], which names the field, when the tool choice names an undeclared
/// tool or the name of a schema is not valid. Fails with [`Unsupported`] when the model does not
/// support tools ([`OpenAiChatModel`](crate::OpenAiChatModel) sends them as text instead).
///
/// [`InvalidRequest`]: switchboard_domain::ModelErrorKind::InvalidRequest
/// [`Unsupported`]: switchboard_domain::ModelErrorKind::Unsupported
pub fn to_wire_request<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    schemas: &ToolSchemas,
) -> Result<WireRequest<'a>, ModelError> {
    let mut warnings = Vec::new();
    let names = ToolNames::from_request(request, NAME_RULE);
    let context = ToolContext {
        request,
        form: ToolForm::Nested,
        provider: &model.provider,
        names: &names,
        capabilities,
        profile,
        schemas,
    };
    let provider_tools = ProviderTool::from_extra_fields(&request.extra, ToolForm::Nested);
    let mut tools = map_tools(context, provider_tools, &mut warnings)?;
    let messages = map_messages(request, model, &names, capabilities, profile, &mut warnings);
    tools.tool_mapping.set_tool_names(names);
    let schema = answer_schema(
        request,
        model,
        capabilities,
        profile,
        "response_format.json_schema.name",
        &mut tools.tool_mapping,
        &mut warnings,
    )?;
    let response_format = schema.map(|(name, sent)| wire::ResponseFormat::new(name, sent));
    let mut options = OptionMapper::new(request, model, capabilities, profile, &mut warnings);
    let effort = match options.reasoning_effort(tools.declared.has_functions()) {
        None if choice_disables_reasoning(request, profile) => Some("none"),
        effort => effort,
    };
    let (reasoning_effort, thinking) = match (profile.reasoning_control, effort) {
        (ReasoningControl::EffortAndThinking, Some("none")) => {
            (None, Some(wire::Thinking::DISABLED))
        }
        (_, effort) => (effort, None),
    };
    let (temperature, top_p) = options.temperature_and_top_p(effort);
    let stop = options.stop_sequences();
    let parallel_tool_calls = options.parallel_tool_calls(!tools.declared.is_empty());
    options.warn_ignored_stream_field();
    let (max_completion_tokens, max_tokens) = match profile.max_tokens_field {
        MaxTokensField::MaxCompletionTokens => (request.max_output_tokens, None),
        MaxTokensField::MaxTokens => (None, request.max_output_tokens),
    };
    let (seed, random_seed) = match profile.seed_field {
        SeedField::Seed => (request.sampling.seed, None),
        SeedField::RandomSeed => (None, request.sampling.seed),
    };
    let stream = profile.should_stream_answer(request.delivery, response_format.is_some());
    let body = Body {
        model: &model.name,
        messages,
        tools: tools.declared,
        tool_choice: tools.choice,
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
        tool_choice: tools.outcome,
        warnings,
        local_ids: ToolUseIds::from_request(request),
        tool_mapping: tools.tool_mapping,
    })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

//! Converts a domain request to a request of the Responses API.

use serde::Deserialize;
use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelId, ToolChoiceOutcome, Warning,
};
use switchboard_providers_common::{
    ToolMapping, ToolUseIds, schema::ToolSchemas, tool_names::ToolNames,
};

use super::{
    content::map_input_items,
    wire::{self, Body},
};
use crate::{
    ServerTool,
    chat::wire::ResponseFormat,
    options::{OptionMapper, answer_schema},
    server_profile::Profile,
    tools::{
        NAME_RULE, ToolContext, choice_disables_reasoning, map_tools,
        provider_tools::{ProviderTool, ToolForm},
    },
};

/// Minimum value of `max_output_tokens`. For less, the API reports: "integer below minimum value.
/// Expected a value >= 16".
const MIN_OUTPUT_TOKENS: u32 = 16;

/// Options of a model on the Responses API.
///
/// Every field is optional in a configuration file:
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
    /// Whether the provider stores the answer (OpenAI: for 30 days). Off by default, unlike the
    /// API's own default, because each request contains the whole conversation.
    pub store: bool,
    /// Summary of the reasoning. `None` keeps the provider's default. OpenAI's default is no
    /// summary, and OpenAI refuses summaries for organizations that are not verified.
    pub reasoning_summary: Option<ReasoningSummary>,
    /// Tools that the provider runs on its own servers. They are declared after the request's
    /// functions and before a list `tools` in [`ChatRequest::extra`]. A tool in that list replaces
    /// a tool here with the same type, label or name. A tool with the name of a function is dropped
    /// with a warning.
    pub server_tools: Vec<ServerTool>,
    /// Overrides [`Profile::strict_tools`] for models on the Responses API. `None` keeps the value
    /// of the profile.
    pub strict_tools: Option<bool>,
}

/// Length of the reasoning summary that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningSummary {
    /// The most detailed summary that the model supports.
    Auto,
    /// A short reasoning summary.
    Concise,
    /// A long reasoning summary.
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

/// A Responses request built from a domain request, with the resulting warnings.
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
    /// Maximum number of output tokens, for a server that reports a truncated answer as
    /// `completed`. An answer that reaches this number counts as truncated. `None` for other
    /// servers.
    pub unreported_limit: Option<u32>,
    /// Changes of tool names and schemas in the request, which the decoder reverses in the answer.
    pub tool_mapping: ToolMapping,
}

/// Converts a domain request to a Responses request for `model`. The answer is streamed unless the
/// request asks for a whole one or the server cannot stream it.
///
/// Options and parts that `capabilities` does not allow are dropped with a warning. `profile`
/// describes the fields and features that the server supports.
///
/// Fails with
/// [`ModelErrorKind::InvalidRequest`](switchboard_domain::ModelErrorKind::InvalidRequest), which
/// names the field, when the tool choice names an undeclared tool, a server tool is invalid or the
/// name of a schema is not valid. Fails with
/// [`ModelErrorKind::Unsupported`](switchboard_domain::ModelErrorKind::Unsupported) when the model
/// does not support functions.
pub fn to_wire_request<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    options: &ResponsesOptions,
    schemas: &ToolSchemas,
) -> Result<WireRequest<'a>, ModelError> {
    let mut warnings = Vec::new();
    let profile = &*profile.with_strict_tools(options.strict_tools);
    let provider = &model.provider;
    let server_tools = &options.server_tools;
    let provider_tools =
        ProviderTool::from_options_and_extra(request, server_tools, provider, &mut warnings)?;
    let names = ToolNames::from_request(request, NAME_RULE);
    let context = ToolContext {
        request,
        form: ToolForm::Flat,
        provider,
        names: &names,
        capabilities,
        profile,
        schemas,
    };
    let mut tools = map_tools(context, provider_tools, &mut warnings)?;
    let input = map_input_items(request, model, &names, capabilities, profile, &mut warnings);
    tools.tool_mapping.set_tool_names(names);
    let schema = answer_schema(
        request,
        model,
        capabilities,
        profile,
        "text.format.name",
        &mut tools.tool_mapping,
        &mut warnings,
    )?;
    let streams = profile.should_stream_answer(request.delivery, schema.is_some());
    let (text, response_format) = match schema {
        None => (None, None),
        Some((name, sent)) if profile.text_format => {
            (Some(wire::TextOptions::new(name, sent)), None)
        }
        Some((name, sent)) => (None, Some(ResponseFormat::new(name, sent))),
    };
    let mut mapper = OptionMapper::new(request, model, capabilities, profile, &mut warnings);
    // `with_tools` is `false`, because the Responses API always allows reasoning with tools, unlike
    // Chat Completions.
    let effort = match mapper.reasoning_effort(false) {
        None if choice_disables_reasoning(request, profile) => Some("none"),
        effort => effort,
    };
    let may_reason = capabilities.reasoning != Some(false);
    let summary = options.reasoning_summary.map(ReasoningSummary::as_str);
    let summary = summary.filter(|_| may_reason && effort != Some("none"));
    let (temperature, top_p) = mapper.temperature_and_top_p(effort);
    if !request.sampling.stop.is_empty() {
        mapper.warn_dropped_option("the Responses API does not support stop sequences");
    }
    if request.sampling.seed.is_some() {
        mapper.warn_dropped_option("the Responses API does not support a seed");
    }
    let max_output_tokens = request.max_output_tokens.map(|requested| {
        if requested < MIN_OUTPUT_TOKENS {
            mapper.warn_dropped_option(&format!(
                "max_output_tokens {requested} was sent as {MIN_OUTPUT_TOKENS}, the minimum"
            ));
        }
        requested.max(MIN_OUTPUT_TOKENS)
    });
    let parallel_tool_calls = mapper.parallel_tool_calls(!tools.declared.is_empty());
    mapper.warn_ignored_stream_field();
    // Only models with reasoning accept this value of `include`. For other models the API answers
    // "Encrypted content is not supported with this model".
    let encrypted = may_reason.then_some("reasoning.encrypted_content");
    let include = encrypted
        .into_iter()
        .chain(tools.declared.include_field_values())
        .collect();
    let body = Body {
        model: &model.name,
        input,
        tools: tools.declared,
        tool_choice: tools.choice,
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
        tool_choice: tools.outcome,
        warnings,
        local_ids: ToolUseIds::from_request(request),
        tool_mapping: tools.tool_mapping,
        unreported_limit: max_output_tokens.filter(|_| !profile.reports_incomplete),
    })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

//! Converts a domain request to a request of the Gemini API.

mod thinking;

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelId, ResponseFormat, ToolChoiceOutcome,
    Warning, WarningKind,
};
use switchboard_providers_common::{
    ContentWarnings, ToolMapping, ToolUseIds,
    request::requested_schema,
    schema::ToolSchemas,
    tool_names::{NameRule, ToolNames},
};

use self::thinking::map_thinking;
use super::{
    content::{map_conversation, parts::PartMapper},
    tools::{ToolContext, map_tools, schema},
    wire::{Body, Content, GenerationConfig},
};
use crate::{
    capabilities::ModelSeries,
    options::{GeminiOptions, SchemaLanguage},
};

/// Maximum number of stop sequences that the API accepts. The others are dropped with a warning.
const MAX_STOPS: usize = 5;

/// A Gemini request built from a domain request, with the resulting warnings.
#[derive(Debug)]
pub struct WireRequest<'a> {
    /// The request body. It borrows texts from the domain request.
    pub body: Body<'a>,
    /// How the API applies the tool choice of the request.
    pub tool_choice: ToolChoiceOutcome,
    /// Warnings about parts and options that the API does not support.
    pub warnings: Vec<Warning>,
    /// Tool-use ids of the conversation, which the answer must not reuse.
    pub local_ids: ToolUseIds,
    /// The changes of tool names and schemas, which the decoder reverses in the answer.
    pub tool_mapping: ToolMapping,
}

/// Converts a domain request to a Gemini request for `model`.
///
/// Options that the model is *known* not to support, by its `capabilities`, are omitted with a
/// warning. A tool name that the API does not accept is replaced by an alias.
///
/// Fails with [`ModelErrorKind::InvalidRequest`] and the field if the tool choice names an
/// undeclared tool or there is no message, and with [`ModelErrorKind::Unsupported`] if the model is
/// known not to support tools, structured answers, or both together.
///
/// [`ModelErrorKind::InvalidRequest`]: switchboard_domain::ModelErrorKind::InvalidRequest
/// [`ModelErrorKind::Unsupported`]: switchboard_domain::ModelErrorKind::Unsupported
pub fn to_wire_request<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    capabilities: &ModelCapabilities,
    options: &GeminiOptions,
    schemas: &ToolSchemas,
) -> Result<WireRequest<'a>, ModelError> {
    let mut warnings = Vec::new();
    let series = ModelSeries::from_model_name(&model.name);
    let names = ToolNames::from_request(request, NameRule::GEMINI);
    let has_schema = request.response_format != ResponseFormat::Text;
    let both = series.is_none_or(ModelSeries::supports_schema_with_tools);
    let context = ToolContext {
        request,
        provider: &model.provider,
        capabilities,
        names: &names,
        form: options.schemas,
        schemas,
        schema_instead: has_schema && !both,
        server: &options.server_tools,
        takes_both: series.is_none_or(ModelSeries::supports_server_tools_with_functions),
    };
    let mut tools = map_tools(&context, &mut warnings)?;
    let mapper = PartMapper {
        model,
        series,
        capabilities,
        names: &names,
        replay_thoughts: options.replay_thoughts,
        warnings: ContentWarnings::new(&mut warnings),
        reasoning_dropped: 0,
    };
    let conversation = map_conversation(request, mapper)?;
    tools.tool_mapping.set_tool_names(names);
    let mut contents = conversation.contents.iter();
    if contents.any(Content::has_server_side_tool_invocations) {
        // The API requires this setting if any message has calls or results of server tools.
        let config = tools.config.get_or_insert_default();
        config.include_server_side_tool_invocations = true;
    }
    let mut generation_config = GenerationConfig {
        thinking_config: map_thinking(
            request,
            &model.name,
            capabilities,
            options.include_thoughts,
            &mut warnings,
        ),
        max_output_tokens: request.max_output_tokens,
        ..GenerationConfig::default()
    };
    map_answer_format(
        request,
        model,
        capabilities,
        options.schemas,
        &mut generation_config,
        &mut warnings,
    )?;
    map_sampling(
        request,
        model,
        capabilities,
        &mut generation_config,
        &mut warnings,
    );
    let body = Body {
        system_instruction: conversation.system_instruction,
        contents: conversation.contents,
        tools: tools.declared,
        tool_config: tools.config,
        generation_config,
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

fn map_answer_format<'a>(
    request: &'a ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    form: SchemaLanguage,
    config: &mut GenerationConfig<'a>,
    warnings: &mut Vec<Warning>,
) -> Result<(), ModelError> {
    let Some((name, wanted)) = requested_schema(request, &model.provider, capabilities)? else {
        return Ok(());
    };
    let schema = Some(schema::compile_answer_schema(wanted, form, name, warnings));
    config.response_mime_type = Some("application/json");
    match form {
        SchemaLanguage::JsonSchema => config.response_json_schema = schema,
        SchemaLanguage::OpenApi => config.response_schema = schema,
    }
    Ok(())
}

fn map_sampling<'a>(
    request: &'a ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    config: &mut GenerationConfig<'a>,
    warnings: &mut Vec<Warning>,
) {
    let sampling = &request.sampling;
    let mut dropped = |message: String| {
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    };
    let ignored = capabilities.sampling == Some(false);
    let mut keep = |name: &str, value: Option<f64>| {
        // A sampling parameter with the value 1 is dropped without a warning, because 1 is the
        // default.
        if ignored && value.is_some_and(|value| (value - 1.0).abs() > f64::EPSILON) {
            dropped(format!("{} does not support {name}", model.name));
        }
        value.filter(|_| !ignored)
    };
    config.temperature = keep("temperature", sampling.temperature);
    config.top_p = keep("topP", sampling.top_p);
    config.stop_sequences = &sampling.stop[..sampling.stop.len().min(MAX_STOPS)];
    if sampling.stop.len() > MAX_STOPS {
        dropped(format!(
            "{} stop sequence(s) were dropped: the API supports at most {MAX_STOPS}",
            sampling.stop.len() - MAX_STOPS
        ));
    }
    config.seed = sampling.seed.and_then(|seed| i32::try_from(seed).ok());
    if let Some(seed) = sampling.seed.filter(|_| config.seed.is_none()) {
        dropped(format!(
            "seed {seed} was dropped: the API supports at most {}",
            i32::MAX
        ));
    }
}

#[cfg(test)]
#[path = "request_laws_tests.rs"]
mod laws;
#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

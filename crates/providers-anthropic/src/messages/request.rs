//! Converts a domain request to a request of the Messages API.

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Delivery, ModelCapabilities, ModelError, ModelId, ToolChoiceOutcome, Warning,
    WarningKind,
};
use switchboard_providers_common::{
    ToolMapping, ToolUseIds,
    body_fields::STREAM,
    request::requested_schema,
    schema::{Dialect, ToolSchemas, compile, list_changes, measure_schema, warn_schema_changes},
    tool_names::{NameRule, ToolNames},
};

use super::{
    betas::required_betas,
    cache,
    content::{ContentMapper, container_id, conversation::map_conversation},
    thinking::map_reasoning_to_thinking,
    tools::{ToolMappingContext, map_tools},
    wire::{self, Block, Body},
};
use crate::{
    model_rules::{ModelRules, SamplingSupport, find_rules},
    options::MessagesOptions,
    schema,
};

/// The default output limit, in tokens, of a model whose maximum is known. A lower maximum takes
/// precedence.
const DEFAULT_MAX_TOKENS: u32 = 32_000;
/// The default output limit, in tokens, of a model whose maximum is unknown.
const DEFAULT_MAX_TOKENS_UNKNOWN: u32 = 8_192;
/// Maximum number of optional properties in a response schema that the API can enforce.
const MAX_OPTIONAL: usize = 24;

/// A Messages request built from a domain request, with the resulting warnings.
#[derive(Debug)]
pub struct WireRequest<'a> {
    /// The request body. It borrows texts from the domain request.
    pub body: Body<'a>,
    /// Values of the `anthropic-beta` header that the request requires.
    pub betas: Vec<String>,
    /// Treatment of the tool choice: sent unchanged, emulated by the adapter, or not enforced.
    pub tool_choice: ToolChoiceOutcome,
    /// The changes of tool names and schemas, which the decoder reverses in the answer.
    pub tool_mapping: ToolMapping,
    /// Warnings about parts and options that were changed or dropped.
    pub warnings: Vec<Warning>,
    /// Tool-use ids of the conversation, which the answer must not reuse.
    pub local_ids: ToolUseIds,
}

/// Converts a domain request to a Messages request for `model`. The answer is streamed unless the
/// request asks for a whole answer.
///
/// Options and parts that the model does not support, according to `capabilities` or to the rules
/// for its name, are dropped with a warning. A tool name that the API does not allow is replaced by
/// an alias.
///
/// Fails with `ModelErrorKind::InvalidRequest`, which names the field, when there is no message
/// to answer or the tool choice names an undeclared tool. Fails with
/// `ModelErrorKind::Unsupported` when the model supports no tools or no answer with a schema.
pub fn to_wire_request<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    capabilities: &ModelCapabilities,
    options: &'a MessagesOptions,
    schemas: &ToolSchemas,
) -> Result<WireRequest<'a>, ModelError> {
    let mut warnings = Vec::new();
    let rules = find_rules(&model.name);
    let names = ToolNames::from_request(request, NameRule::ANTHROPIC);
    let mapper = ContentMapper::new(request, model, &names, capabilities, options, &mut warnings);
    let conversation = map_conversation(request, rules, mapper)?;
    let max_tokens = map_max_tokens(request, model, capabilities, options, &mut warnings);
    let thinking = map_reasoning_to_thinking(
        request,
        &model.name,
        capabilities,
        max_tokens,
        conversation.continues_without_thinking(),
        &mut warnings,
    )
    .with_effort(options.effort, &model.name, &mut warnings);
    let thinks_with_budget = thinking.has_budget() || extra_fields_enable_thinking(request);
    let context = ToolMappingContext {
        request,
        model,
        names: &names,
        capabilities,
        options,
        schemas,
        thinks_with_budget,
    };
    let mut tools = map_tools(context, &mut warnings)?;
    tools.tool_mapping.set_tool_names(names);
    let mut system = conversation.system;
    let format = map_response_format(request, model, capabilities, &mut system, &mut warnings)?;
    let mut sampling = SamplingMapper {
        request,
        model,
        warnings: &mut warnings,
    };
    let refusing = if capabilities.sampling == Some(false) {
        Some(model.name.to_string())
    } else {
        let version = &options.api_version;
        options
            .rejects_sampling_params()
            .then(|| format!("version {version} of the API"))
    };
    let (temperature, top_p) =
        sampling.map_temperature_and_top_p(rules, refusing.as_deref(), thinking.enables_thinking());
    let stop_sequences = sampling.map_stop_sequences();
    sampling.warn_unsupported_options();
    let output_config =
        (thinking.effort.is_some() || format.is_some()).then_some(wire::OutputConfig {
            effort: thinking.effort,
            format,
        });
    let thinks_between_tools = rules.is_some_and(|rules| rules.interleaves_by_beta)
        && thinks_with_budget
        && !(tools.declared.is_empty() && tools.server.is_empty());
    let betas = required_betas(options, &tools.server, &request.extra, thinks_between_tools);
    let mut body = Body {
        model: &model.name,
        max_tokens,
        system,
        system_breakpoint: None,
        messages: conversation.messages,
        server_tools: tools.server,
        tools: tools.declared,
        tool_choice: tools.choice,
        thinking: thinking.thinking,
        output_config,
        temperature,
        top_p,
        stop_sequences,
        container: container_id(request, model),
        metadata: options
            .user_id
            .as_deref()
            .map(|user_id| wire::Metadata { user_id }),
        stream: request.delivery != Delivery::Whole,
        extra: &request.extra,
    };
    cache::set_breakpoints(options.cache, conversation.leading, &mut body);
    Ok(WireRequest {
        body,
        betas,
        tool_mapping: tools.tool_mapping,
        tool_choice: tools.outcome,
        warnings,
        local_ids: ToolUseIds::from_request(request),
    })
}

/// Returns the value of `max_tokens`, which the API requires. A value above the model's maximum is
/// reduced to the maximum, with a warning.
fn map_max_tokens(
    request: &ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    options: &MessagesOptions,
    warnings: &mut Vec<Warning>,
) -> u32 {
    let maximum = capabilities
        .max_output_tokens
        .map(|maximum| u32::try_from(maximum).unwrap_or(u32::MAX));
    let Some(requested) = request.max_output_tokens.or(options.default_max_tokens) else {
        return maximum.map_or(DEFAULT_MAX_TOKENS_UNKNOWN, |maximum| {
            maximum.min(DEFAULT_MAX_TOKENS)
        });
    };
    match maximum {
        Some(maximum) if requested > maximum => {
            let message = format!("max_tokens is {maximum}, the maximum of {}", model.name);
            warnings.push(Warning::new(WarningKind::OptionDropped, message));
            maximum
        }
        _ => requested,
    }
}

/// Returns whether the caller's `extra` fields enable thinking with a budget.
fn extra_fields_enable_thinking(request: &ChatRequest) -> bool {
    let thinking = request.extra.get("thinking");
    thinking.and_then(|it| it.get("type")?.as_str()) == Some("enabled")
}

/// A mapper for sampling options, such as `temperature`, which not every model supports.
struct SamplingMapper<'a, 'm> {
    request: &'a ChatRequest,
    model: &'m ModelId,
    warnings: &'m mut Vec<Warning>,
}

impl<'a> SamplingMapper<'a, '_> {
    /// Returns the values of `temperature` and `top_p` to send. `refusing` is the name of the model
    /// or API version that refuses both fields, or `None`. `thinks` is whether thinking is on. A
    /// dropped or changed value emits a warning, except the default 1.
    fn map_temperature_and_top_p(
        &mut self,
        rules: Option<&ModelRules>,
        refusing: Option<&str>,
        thinks: bool,
    ) -> (Option<f64>, Option<f64>) {
        let sampling = &self.request.sampling;
        // A value of 1 is not sent, because it is the default of `temperature` and `top_p`.
        let differs = |value: f64| (value - 1.0).abs() > f64::EPSILON;
        let mut temperature = sampling.temperature.filter(|it| differs(*it));
        let mut top_p = sampling.top_p.filter(|it| differs(*it));
        if refusing.is_some() || thinks {
            let why = match refusing {
                Some(refusing) => format!("{refusing} does not support"),
                None => "thinking does not allow".to_owned(),
            };
            // With thinking, the API accepts no `temperature`, and only values of `top_p` of at
            // least 0.95.
            let accepted = top_p.filter(|it| refusing.is_none() && *it >= 0.95);
            if temperature.take().is_some() {
                self.add_warning(&format!("{why} temperature"));
            }
            if top_p.is_some() && accepted.is_none() {
                self.add_warning(&format!("{why} top_p"));
            }
            top_p = accepted;
        }
        if let Some(high) = temperature.filter(|it| *it > 1.0) {
            self.add_warning(&format!("temperature {high} was sent as 1, the maximum"));
            temperature = Some(1.0);
        }
        if temperature.is_some()
            && top_p.is_some()
            && rules.is_some_and(|rules| rules.sampling == SamplingSupport::One)
        {
            let name = &self.model.name;
            self.add_warning(&format!("{name} does not support top_p with temperature"));
            top_p = None;
        }
        (temperature, top_p)
    }

    /// Returns the stop sequences without blank ones, which the API refuses.
    fn map_stop_sequences(&mut self) -> Vec<&'a str> {
        let stop = &self.request.sampling.stop;
        let visible: Vec<&str> = stop
            .iter()
            .map(String::as_str)
            .filter(|text| !text.trim().is_empty())
            .collect();
        if visible.len() < stop.len() {
            self.add_warning("a stop sequence of white space was dropped: the API refuses it");
        }
        visible
    }

    /// Warns about a `seed`, which the API does not support, and about a field `stream` in `extra`,
    /// which has no effect.
    fn warn_unsupported_options(&mut self) {
        if self.request.sampling.seed.is_some() {
            self.add_warning("this API does not support a seed");
        }
        if self.request.extra.contains_key(STREAM) {
            self.add_warning(
                "`stream` in the extra fields was ignored: the setting for streaming decides",
            );
        }
    }

    fn add_warning(&mut self, message: &str) {
        let warning = Warning::new(WarningKind::OptionDropped, message);
        self.warnings.push(warning);
    }
}

/// Returns the output format for the response schema of the request. If the API cannot enforce the
/// schema, adds the schema to the instructions in `system` instead, with a warning, and returns
/// `None`.
fn map_response_format<'a>(
    request: &'a ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    system: &mut Vec<Block<'a>>,
    warnings: &mut Vec<Warning>,
) -> Result<Option<wire::OutputFormat<'a>>, ModelError> {
    let Some((name, schema)) = requested_schema(request, &model.provider, capabilities)? else {
        return Ok(None);
    };
    let strict = compile(schema, Dialect::AnthropicStrict);
    let optional = measure_schema(&strict.schema).optional;
    // The text of the answer is returned to the caller as it is. The API must therefore not enforce
    // a schema that gives the answer another shape than the requested schema.
    if strict.needs_restore()
        || schema::is_strict_schema_narrower(schema, &strict)
        || optional > MAX_OPTIONAL
    {
        let message = format!(
            "the API cannot enforce schema `{name}` (it needs an object of known properties, at \
             most {MAX_OPTIONAL} of them optional): the schema was added to the instructions, and \
             the answer may differ from it"
        );
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
        system.push(Block::from_text(schema_instruction(schema)));
        return Ok(None);
    }
    let changes = list_changes(strict.lossy_changes_after_restore());
    let what = format!("the API does not enforce all of schema `{name}`");
    warn_schema_changes(&what, changes, warnings);
    Ok(Some(wire::OutputFormat::JsonSchema {
        schema: strict.schema,
    }))
}

fn schema_instruction(schema: &Value) -> String {
    format!(
        "Answer with a single JSON value, without other text and without a code fence. The value \
         must match this JSON Schema:\n{schema}"
    )
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

//! Maps tools, and emulates the tool choice, which the API does not have.

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ResponseFormat, ToolChoice, ToolChoiceOutcome,
    ToolDefinition, Warning, WarningKind,
};
use switchboard_providers_common::{
    request::{
        emulated_tool_choice, invalid_request, relaxed_tool_choice, required_tools,
        unsupported_feature,
    },
    schema::ToolSchemas,
};

use super::{schema, tool_choice_emulation::EmulatedToolChoice, wire};
use crate::error;

/// Result of mapping the tools and the tool choice of a request. The tools are either declared in
/// `tools` or part of the schema in `format`.
pub(crate) struct MappedTools<'a> {
    pub(crate) declared: Vec<wire::Tool<'a>>,
    /// Tools and tool choice that are sent as a schema in `format` instead of in `tools`.
    pub(crate) emulated: Option<EmulatedToolChoice<'a>>,
    pub(crate) outcome: ToolChoiceOutcome,
}

/// Maps the tools and the tool choice of a request to the field `tools` or `format`. Fails if they
/// are invalid, or if tools must be declared to a model that is known not to support tools.
pub(crate) fn map_tools<'a>(
    request: &'a ChatRequest,
    provider: &str,
    capabilities: &ModelCapabilities,
    schemas: &ToolSchemas,
    warnings: &mut Vec<Warning>,
) -> Result<MappedTools<'a>, ModelError> {
    let forced = find_required_tools(request, provider)?;
    if request.tools.is_empty() || request.tool_choice == ToolChoice::None {
        return Ok(MappedTools {
            declared: Vec::new(),
            emulated: None,
            outcome: if request.tools.is_empty() {
                ToolChoiceOutcome::Native
            } else {
                emulated_tool_choice("no tools were sent: the API has no tool choice")
            },
        });
    }
    let tools = match forced {
        Some(allowed) => map_forced_tool_choice(request, &allowed, capabilities, schemas, warnings),
        None => map_free_tool_choice(request, schemas, warnings),
    };
    if capabilities.tools == Some(false) && !tools.declared.is_empty() {
        let message = format!("the model has no tool support; {}", error::TOOLS_REMEDY);
        return Err(unsupported_feature(provider, error::TOOLS).with_message(message));
    }
    warn_about_parallel_calls(request, tools.emulated.is_some(), warnings);
    Ok(tools)
}

/// Validates the tools and the tool choice. Returns the tools of which the model must call one, or
/// `None` if no call is required.
pub(crate) fn find_required_tools<'a>(
    request: &'a ChatRequest,
    provider: &str,
) -> Result<Option<Vec<&'a Arc<ToolDefinition>>>, ModelError> {
    if let Some(index) = request.tools.iter().position(|tool| tool.name.is_empty()) {
        let field = format!("tools[{index}].function.name");
        return Err(invalid_request(provider, &field, "the tool has no name"));
    }
    let names = required_tools(request, provider, "tool_choice", |_| false)?;
    Ok(names.map(|names| {
        let is_allowed = |name: &str| names.is_empty() || names.contains(&name);
        let tools = request.tools.iter();
        tools.filter(|tool| is_allowed(&tool.name)).collect()
    }))
}

/// Returns whether the tools of a request are sent in `format`: either a call is required, or the
/// model must choose between a call and a structured answer.
pub(crate) fn sends_tools_in_format_field(
    request: &ChatRequest,
    capabilities: &ModelCapabilities,
) -> bool {
    let held = match &request.tool_choice {
        ToolChoice::None => false,
        ToolChoice::Auto => find_answer_schema(request).is_some(),
        ToolChoice::Required | ToolChoice::Only(_) => {
            find_forced_call_obstacle(request, capabilities).is_none()
        }
    };
    held && !request.tools.is_empty()
}

/// Returns the reason why the field `format` cannot force a tool call. Returns `None` if it can.
fn find_forced_call_obstacle(
    request: &ChatRequest,
    capabilities: &ModelCapabilities,
) -> Option<&'static str> {
    if caller_sets_format(request) {
        Some("the `format` of the request replaces the one that would force a tool call")
    } else if capabilities.structured_output == Some(false)
        || capabilities.forced_tool_choice == Some(false)
    {
        Some("this model does not support `format`, and the API has no tool choice")
    } else {
        None
    }
}

/// Returns the schema of the requested structured answer. Returns `None` if the answer is free
/// text, or if the caller sets `format` in `extra`.
fn find_answer_schema(request: &ChatRequest) -> Option<&Value> {
    match &request.response_format {
        ResponseFormat::JsonSchema { schema, .. } if !caller_sets_format(request) => Some(schema),
        _ => None,
    }
}

/// Maps a tool choice that forces a call of one of `allowed` to the field `format`. If `format`
/// cannot force a call, declares the allowed tools in `tools` and adds a warning.
fn map_forced_tool_choice<'a>(
    request: &'a ChatRequest,
    allowed: &[&'a Arc<ToolDefinition>],
    capabilities: &ModelCapabilities,
    schemas: &ToolSchemas,
    warnings: &mut Vec<Warning>,
) -> MappedTools<'a> {
    if let Some(why) = find_forced_call_obstacle(request, capabilities) {
        let why = format!("{why}; the model may answer without a tool");
        return MappedTools {
            outcome: relaxed_tool_choice(&why, warnings),
            declared: declare_tools(allowed.iter().copied(), schemas, warnings),
            emulated: None,
        };
    }
    let how = "`format` constrained the answer to one tool call, and the tools were described in \
               the instructions";
    MappedTools {
        declared: Vec::new(),
        emulated: Some(EmulatedToolChoice {
            tools: allowed.iter().map(|tool| &***tool).collect(),
            answer: None,
        }),
        outcome: emulated_tool_choice(how),
    }
}

/// Maps a tool choice that lets the model decide whether it calls a tool. Declares the tools in
/// `tools`. If the request has a response schema, sends them in `format` instead.
fn map_free_tool_choice<'a>(
    request: &'a ChatRequest,
    schemas: &ToolSchemas,
    warnings: &mut Vec<Warning>,
) -> MappedTools<'a> {
    if let Some(schema) = find_answer_schema(request) {
        let how = "the API does not support `tools` with `format`: `format` constrained the \
                   answer to a tool call or the schema, and the tools were described in the \
                   instructions";
        return MappedTools {
            declared: Vec::new(),
            emulated: Some(EmulatedToolChoice {
                tools: request.tools.iter().map(AsRef::as_ref).collect(),
                answer: Some(schema),
            }),
            outcome: emulated_tool_choice(how),
        };
    }
    MappedTools {
        declared: declare_tools(request.tools.iter(), schemas, warnings),
        emulated: None,
        outcome: ToolChoiceOutcome::Native,
    }
}

/// Returns whether the caller sets the request field `format` in `extra`. This value then replaces
/// the schema that the adapter would send.
pub(crate) fn caller_sets_format(request: &ChatRequest) -> bool {
    request.extra.contains_key("format")
}

/// Warns if the setting for parallel tool use has no effect: the Ollama API has no field for it,
/// and an answer that `format` constrains to a call has exactly one call.
fn warn_about_parallel_calls(request: &ChatRequest, emulated: bool, warnings: &mut Vec<Warning>) {
    let message = match (request.parallel_tool_use, emulated) {
        (Some(false), false) => {
            "the API cannot disable parallel tool calls: the model may call several tools"
        }
        (Some(true), true) => {
            "the answer can contain only one tool call, because `format` constrains it"
        }
        _ => return,
    };
    warnings.push(Warning::new(WarningKind::OptionDropped, message));
}

fn declare_tools<'a>(
    tools: impl Iterator<Item = &'a Arc<ToolDefinition>>,
    schemas: &ToolSchemas,
    warnings: &mut Vec<Warning>,
) -> Vec<wire::Tool<'a>> {
    let declared = tools.map(|tool| wire::Tool::Function {
        function: schema::declare_function(tool, schemas, warnings),
    });
    declared.collect()
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;

//! Request checks for all provider APIs.

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ResponseFormat, ToolChoice,
    ToolChoiceOutcome, Warning, WarningKind,
};

/// Returns the error for an invalid `field` of the request.
pub fn invalid_request(provider: &str, field: &str, message: impl Into<String>) -> ModelError {
    let field = Some(field.to_owned());
    ModelError::new(provider, ModelErrorKind::InvalidRequest { field }, message)
}

/// Returns the error for a feature that the model does not support.
pub fn unsupported_feature(provider: &str, feature: &str) -> ModelError {
    let feature = feature.to_owned();
    ModelError::new(provider, ModelErrorKind::Unsupported { feature }, "")
}

/// Returns the outcome of a tool choice that the adapter emulates, because the API has no such
/// choice. `how` describes the emulation, such as "no tools were sent".
pub fn emulated_tool_choice(how: &str) -> ToolChoiceOutcome {
    let how = how.to_owned();
    ToolChoiceOutcome::Emulated { how }
}

/// Returns the outcome of a tool choice that is not enforced, and adds a warning with the reason
/// `why`.
pub fn relaxed_tool_choice(why: &str, warnings: &mut Vec<Warning>) -> ToolChoiceOutcome {
    warnings.push(Warning::new(WarningKind::ToolChoiceRelaxed, why));
    let why = why.to_owned();
    ToolChoiceOutcome::Relaxed { why }
}

/// Warns that a tool that the provider runs was not sent, with the reason `why`.
pub fn warn_omitted_server_tool(name: &str, why: &str, warnings: &mut Vec<Warning>) {
    let message = format!("the provider's tool `{name}` was not sent: {why}");
    warnings.push(Warning::new(WarningKind::ToolUnavailable, message));
}

/// Returns whether the tool choice of a request forces the model to call a tool.
pub fn forces_tool_call(request: &ChatRequest) -> bool {
    !matches!(request.tool_choice, ToolChoice::Auto | ToolChoice::None)
}

/// Returns the name and the schema of a requested structured answer. Returns `None` if the answer
/// is text.
///
/// Fails with [`ModelErrorKind::Unsupported`] for a response format other than text and JSON
/// Schema, and for a JSON Schema if the model is known not to support structured answers.
pub fn requested_schema<'a>(
    request: &'a ChatRequest,
    provider: &str,
    capabilities: &ModelCapabilities,
) -> Result<Option<(&'a str, &'a Value)>, ModelError> {
    match &request.response_format {
        ResponseFormat::Text => Ok(None),
        ResponseFormat::JsonSchema { .. } if capabilities.structured_output == Some(false) => Err(
            unsupported_feature(provider, "structured output with a JSON Schema"),
        ),
        ResponseFormat::JsonSchema { name, schema } => Ok(Some((name, schema))),
        _ => Err(unsupported_feature(provider, "this response format")),
    }
}

/// Returns whether a request declares a tool with this name.
pub fn is_declared(request: &ChatRequest, name: &str) -> bool {
    request.tools.iter().any(|tool| tool.name == name)
}

/// Returns the names of the tools of which the model must call one, without duplicates. An empty
/// list allows all tools. Returns `None` if no call is required.
///
/// `server_tools` is a function that returns whether the provider itself runs the tool with the
/// given name. For `None`, it returns whether the provider runs any tool.
///
/// Fails with [`ModelErrorKind::InvalidRequest`] for `field` if the choice allows no tool or names
/// an undeclared one.
pub fn required_tools<'a>(
    request: &'a ChatRequest,
    provider: &str,
    field: &str,
    server_tools: impl Fn(Option<&str>) -> bool,
) -> Result<Option<Vec<&'a str>>, ModelError> {
    let invalid = |message: &str| Err(invalid_request(provider, field, message));
    let names = match &request.tool_choice {
        ToolChoice::Auto | ToolChoice::None => return Ok(None),
        ToolChoice::Required if request.tools.is_empty() && !server_tools(None) => {
            return invalid("a tool is required but none is declared");
        }
        ToolChoice::Required => return Ok(Some(Vec::new())),
        ToolChoice::Only(names) => names,
    };
    if names.is_empty() {
        return invalid("the tool choice allows no tool: use `none` for an answer without tools");
    }
    let mut allowed: Vec<&str> = Vec::with_capacity(names.len());
    for name in names {
        if !is_declared(request, name) && !server_tools(Some(name)) {
            return invalid(&format!("no tool named `{name}` is declared"));
        }
        if !allowed.contains(&name.as_str()) {
            allowed.push(name);
        }
    }
    Ok(Some(allowed))
}

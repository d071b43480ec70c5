//! Request checks for all provider APIs.

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ResponseFormat, ToolChoice,
    ToolChoiceOutcome,
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
        let is_function = request.tools.iter().any(|tool| tool.name == *name);
        if !is_function && !server_tools(Some(name)) {
            return invalid(&format!("no tool named `{name}` is declared"));
        }
        if !allowed.contains(&name.as_str()) {
            allowed.push(name);
        }
    }
    Ok(Some(allowed))
}

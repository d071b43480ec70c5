//! Converts a domain request to a request of the Ollama API.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Delivery, ModelCapabilities, ModelError, ModelId, ResponseFormat,
    ToolChoiceOutcome, Warning, WarningKind,
};

use switchboard_providers_common::{
    request::{invalid_request, requested_schema},
    schema::ToolSchemas,
};

use super::{
    content::map_messages,
    options::{ThinkForm, map_options, map_thinking},
    schema::compile_answer_schema,
    tool_choice_emulation::{AnswerForm, EmulatedToolChoice},
    tools::{caller_sets_format, map_tools},
    wire::Body,
};

/// An Ollama request built from a domain request, with the resulting warnings.
#[derive(Debug)]
pub struct WireRequest<'a> {
    /// Request body. It borrows its texts from the domain request.
    pub body: Body<'a>,
    /// How the mapping applies the tool choice of the request.
    pub tool_choice: ToolChoiceOutcome,
    /// Warnings about parts and options that were changed or dropped.
    pub warnings: Vec<Warning>,
    /// JSON form of the answer, such as a tool call, if the tools are sent as a schema in `format`.
    pub form: Option<AnswerForm>,
}

/// Converts a domain request for `model`. The answer is streamed unless the request asks otherwise.
///
/// Options that the model is *known* not to support, by its `capabilities`, are omitted with a
/// warning. `think_form` selects how the reasoning setting is sent.
///
/// Fails with [`ModelErrorKind::InvalidRequest`] and the field if the tool choice names an
/// undeclared tool or the response format is not a schema. Fails with
/// [`ModelErrorKind::Unsupported`] if the model is known not to support native tool calls or
/// structured answers.
///
/// [`ModelErrorKind::InvalidRequest`]: switchboard_domain::ModelErrorKind::InvalidRequest
/// [`ModelErrorKind::Unsupported`]: switchboard_domain::ModelErrorKind::Unsupported
pub fn to_wire_request<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    capabilities: &ModelCapabilities,
    think_form: ThinkForm,
    schemas: &ToolSchemas,
) -> Result<WireRequest<'a>, ModelError> {
    let mut warnings = Vec::new();
    let answer_format = requested_answer_schema(request, model, capabilities)?;
    let provider = &model.provider;
    let tools = map_tools(request, provider, capabilities, schemas, &mut warnings)?;
    let format = match &tools.emulated {
        Some(emulated) => Some(Cow::Owned(emulated.build_format_schema(&mut warnings))),
        None => {
            answer_format.map(|(name, schema)| compile_answer_schema(name, schema, &mut warnings))
        }
    };
    if format.is_some() && !tools.declared.is_empty() {
        // This happens only if the tool choice forces a call that `format` cannot enforce. For a
        // free tool choice with a response schema, `format` also contains the tools.
        let message = "`tools` and `format` were sent together: a self-hosted server applies \
                       `format` and does not call tools";
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    }
    let emulated = tools.emulated.as_ref();
    let instructions = emulated.map(EmulatedToolChoice::build_instructions);
    let form = emulated.map(EmulatedToolChoice::answer_form);
    let messages = map_messages(request, model, capabilities, instructions, &mut warnings);
    let is_constrained = format.is_some();
    let think = map_thinking(
        request,
        model,
        capabilities,
        think_form,
        is_constrained,
        &mut warnings,
    );
    let (options, extra) = map_options(request, &mut warnings);
    let body = Body {
        model: &model.name,
        messages,
        tools: tools.declared,
        format,
        think,
        options,
        stream: request.delivery != Delivery::Whole,
        extra,
    };
    Ok(WireRequest {
        body,
        tool_choice: tools.outcome,
        warnings,
        form,
    })
}

/// Returns the name and the schema of the requested structured answer. Returns `None` if the answer
/// is free text, or if the caller sets `format` in `extra`.
fn requested_answer_schema<'a>(
    request: &'a ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
) -> Result<Option<(&'a str, &'a Value)>, ModelError> {
    if caller_sets_format(request)
        && matches!(request.response_format, ResponseFormat::JsonSchema { .. })
    {
        return Ok(None);
    }
    let Some((name, schema)) = requested_schema(request, &model.provider, capabilities)? else {
        return Ok(None);
    };
    if !schema.is_object() {
        // The server refuses schemas such as `true`: "expected \"json\" or a valid JSON Schema
        // object".
        let message = format!("schema `{name}` is not a JSON object");
        return Err(invalid_request(&model.provider, "format", message));
    }
    Ok(Some((name, schema)))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

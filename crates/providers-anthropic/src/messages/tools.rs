//! Maps tools and the tool choice.

use std::{borrow::Cow, sync::Arc};

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelId, ToolChoice, ToolChoiceOutcome,
    ToolDefinition, Warning, WarningKind,
};
use switchboard_providers_common::{
    ToolMapping,
    request::{
        emulated_tool_choice, is_declared, relaxed_tool_choice, required_tools,
        unsupported_feature, warn_omitted_server_tool,
    },
    schema::{Dialect, ToolSchema, ToolSchemas, list_changes, measure_schema},
    tool_names::ToolNames,
};

use super::wire;
use crate::{ServerTool, model_rules::find_rules, options::MessagesOptions, schema};

/// Limits of one request: the number of strict tools, then the number of optional properties and
/// the number of unions, each counted over the schemas of all strict tools. With more tools the API
/// answers "Too many strict tools" (camel#4171).
const STRICT_LIMITS: (usize, usize, usize) = (20, 24, 16);

/// Tools and tool choice of a request as the API expects them, and the outcome of the tool choice.
#[derive(Debug, Default)]
pub(crate) struct MappedTools<'a> {
    /// The tools that the API runs itself.
    pub(crate) server: Vec<wire::ServerTool>,
    pub(crate) declared: Vec<wire::Tool<'a>>,
    pub(crate) tool_mapping: ToolMapping,
    pub(crate) choice: Option<wire::ToolChoice<'a>>,
    pub(crate) outcome: ToolChoiceOutcome,
}

impl MappedTools<'_> {
    fn without_tools(outcome: ToolChoiceOutcome) -> Self {
        Self {
            outcome,
            ..Self::default()
        }
    }
}

/// Arguments of [`map_tools`]: a request, its model and the options of the mapping.
#[derive(Clone, Copy)]
pub(crate) struct ToolMappingContext<'a, 'm> {
    pub(crate) request: &'a ChatRequest,
    pub(crate) model: &'m ModelId,
    pub(crate) names: &'m ToolNames,
    pub(crate) capabilities: &'m ModelCapabilities,
    pub(crate) options: &'a MessagesOptions,
    pub(crate) schemas: &'m ToolSchemas,
    /// Whether the request has thinking of type `enabled`. If so, the API refuses a forced tool
    /// choice.
    pub(crate) thinks_with_budget: bool,
}

/// Maps the tools and the tool choice of a request to the API's types.
///
/// Fails with `ModelErrorKind::InvalidRequest` if the tool choice names an undeclared tool or
/// allows no tool. Fails with `ModelErrorKind::Unsupported` if the model does not support tools.
pub(crate) fn map_tools<'a>(
    context: ToolMappingContext<'a, '_>,
    warnings: &mut Vec<Warning>,
) -> Result<MappedTools<'a>, ModelError> {
    let ToolMappingContext {
        request,
        model,
        capabilities,
        options,
        ..
    } = context;
    let server = select_server_tools(request, capabilities, options, warnings);
    let forced = required_tools(request, &model.provider, "tool_choice", |name| {
        let mut server = server.iter();
        server.any(|tool| name.is_none_or(|name| tool.name() == name))
    })?;
    if request.tools.is_empty() && server.is_empty() {
        // The API refuses `tool_choice` without `tools`.
        return Ok(MappedTools::without_tools(ToolChoiceOutcome::Native));
    }
    if capabilities.tools == Some(false) {
        if request.tool_choice == ToolChoice::None {
            let outcome = emulated_tool_choice("no tools were sent to a model without tool use");
            return Ok(MappedTools::without_tools(outcome));
        }
        let feature = "tool use for this model";
        return Err(unsupported_feature(&model.provider, feature));
    }
    let mut builder = ToolBuilder {
        context,
        server,
        strict: options.strict_tools && capabilities.structured_output != Some(false),
        left: STRICT_LIMITS,
        tool_mapping: ToolMapping::default(),
        warnings,
    };
    if options.strict_tools && !builder.strict {
        builder.warn_dropped_option("this model does not support strict tools");
    }
    let choose = |r#type: &'static str, name: Option<Cow<'a, str>>| wire::ToolChoice {
        r#type,
        name,
        disable_parallel_tool_use: request.parallel_tool_use == Some(false) && r#type != "none",
    };
    let native = ToolChoiceOutcome::Native;
    let Some(allowed) = forced else {
        let is_none = request.tool_choice == ToolChoice::None;
        let choice = choose(if is_none { "none" } else { "auto" }, None);
        return Ok(builder.build_tools(&[], choice, native));
    };
    let refusal = if capabilities.forced_tool_choice == Some(false) {
        Some("this model does not support a forced tool choice: it may answer without a tool")
    } else if context.thinks_with_budget {
        Some("a tool choice cannot be forced with thinking: the model may answer without a tool")
    } else {
        None
    };
    if let Some(why) = refusal {
        let outcome = relaxed_tool_choice(why, builder.warnings);
        return Ok(builder.build_tools(&allowed, choose("auto", None), outcome));
    }
    if let [name] = allowed.as_slice() {
        let choice = choose("tool", Some(context.names.wire_name(name)));
        return Ok(builder.build_tools(&[], choice, native));
    }
    let choice = choose("any", None);
    let declared = request.tools.iter().map(|tool| tool.name.as_str());
    let mut all = declared.chain(builder.server.iter().map(|tool| tool.name()));
    if allowed.is_empty() || all.all(|name| allowed.contains(&name)) {
        return Ok(builder.build_tools(&[], choice, native));
    }
    // The API can force one tool or any tool, but not one of several tools. Therefore only the
    // allowed tools are sent.
    let outcome =
        emulated_tool_choice("only the allowed tools were sent, and one of them was required");
    Ok(builder.build_tools(&allowed, choice, outcome))
}

/// Returns the server tools to send. A server tool is omitted, with a warning, if the model does
/// not use tools, if a declared tool has the same name, or if the tool is configured twice.
fn select_server_tools<'a>(
    request: &ChatRequest,
    capabilities: &ModelCapabilities,
    options: &'a MessagesOptions,
    warnings: &mut Vec<Warning>,
) -> Vec<&'a ServerTool> {
    let mut server: Vec<&ServerTool> = Vec::with_capacity(options.server_tools.len());
    for tool in &options.server_tools {
        let name = tool.name();
        let why = if capabilities.tools == Some(false) {
            "this model does not use tools"
        } else if is_declared(request, name) {
            "a tool of that name is declared"
        } else if !name.is_empty() && server.iter().any(|it| it.name() == name) {
            "it is configured twice"
        } else {
            server.push(tool);
            continue;
        };
        warn_omitted_server_tool(name, why, warnings);
    }
    server
}

struct ToolBuilder<'a, 'm> {
    context: ToolMappingContext<'a, 'm>,
    server: Vec<&'a ServerTool>,
    strict: bool,
    /// Remainder of [`STRICT_LIMITS`] that is left for the next tools of the request.
    left: (usize, usize, usize),
    tool_mapping: ToolMapping,
    warnings: &'m mut Vec<Warning>,
}

impl<'a> ToolBuilder<'a, '_> {
    /// Builds the tools whose names are in `only`, or all tools if `only` is empty.
    fn build_tools(
        mut self,
        only: &[&str],
        choice: wire::ToolChoice<'a>,
        outcome: ToolChoiceOutcome,
    ) -> MappedTools<'a> {
        let is_sent = |name: &str| only.is_empty() || only.contains(&name);
        let rules = find_rules(&self.context.model.name);
        let server = self.server.iter().filter(|tool| is_sent(tool.name()));
        let server = server.map(|tool| wire::ServerTool {
            declaration: tool.to_declaration(rules),
            cache_control: None,
        });
        let server = server.collect();
        let request = self.context.request;
        let mut unenforced = Vec::new();
        let mut declared = Vec::with_capacity(request.tools.len());
        for tool in request.tools.iter().filter(|tool| is_sent(&tool.name)) {
            let tool_on_wire = self.map_tool(tool);
            if self.strict && !tool_on_wire.strict {
                unenforced.push(tool.name.as_str());
            }
            declared.push(tool_on_wire);
        }
        if !unenforced.is_empty() {
            let message = format!(
                "the API does not enforce the input schemas of {}: they, or all strict schemas \
                 together, exceed its limits",
                unenforced.join(", ")
            );
            self.warn_dropped_option(&message);
        }
        MappedTools {
            server,
            declared,
            tool_mapping: self.tool_mapping,
            choice: Some(choice),
            outcome,
        }
    }

    fn map_tool(&mut self, tool: &'a Arc<ToolDefinition>) -> wire::Tool<'a> {
        let (input_schema, strict) = match self.strict_schema(tool) {
            Some(schema) => (schema, true),
            None => (self.non_strict_schema(tool), false),
        };
        wire::Tool {
            name: self.context.names.wire_name(&tool.name),
            description: Cow::Borrowed(&tool.description),
            input_schema,
            strict,
            cache_control: None,
        }
    }

    /// Returns the schema of a tool whose input the API does not enforce. The input of a call is
    /// validated before the call is executed, so constraints that are dropped or become description
    /// text need no warning. Other changes emit a warning.
    fn non_strict_schema(&mut self, tool: &Arc<ToolDefinition>) -> ToolSchema {
        let compiled = self
            .context
            .schemas
            .compiled_schema(tool, Dialect::Anthropic);
        if compiled.needs_restore() {
            self.tool_mapping.add_tool(tool, Dialect::Anthropic);
        }
        if let Some(changes) = list_changes(compiled.lossy_input_changes()) {
            let message = format!("the input schema of `{}` was changed: {changes}", tool.name);
            let warning = Warning::new(WarningKind::PartDowngraded, message);
            self.warnings.push(warning);
        }
        compiled
    }

    /// Returns the strict schema of a tool. Returns `None` if strict tools are off, if the API
    /// cannot enforce the schema, or if the schema exceeds the remainder of the API's limits per
    /// request.
    fn strict_schema(&mut self, tool: &Arc<ToolDefinition>) -> Option<ToolSchema> {
        if !self.strict {
            return None;
        }
        let compiled = self
            .context
            .schemas
            .compiled_schema(tool, Dialect::AnthropicStrict);
        let is_enforced = compiled.lossy_changes_after_restore().next().is_none();
        if !is_enforced || schema::is_strict_schema_narrower(&tool.input_schema, &compiled) {
            return None;
        }
        let measured = measure_schema(&compiled.schema);
        let (tools, optional, unions) = self.left;
        self.left = (
            tools.checked_sub(1)?,
            optional.checked_sub(measured.optional)?,
            unions.checked_sub(measured.unions)?,
        );
        if compiled.needs_restore() {
            self.tool_mapping.add_tool(tool, Dialect::AnthropicStrict);
        }
        Some(compiled)
    }

    fn warn_dropped_option(&mut self, message: &str) {
        let warning = Warning::new(WarningKind::OptionDropped, message);
        self.warnings.push(warning);
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;

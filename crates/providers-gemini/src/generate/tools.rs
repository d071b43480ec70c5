//! Maps tools and the tool choice.

pub(crate) mod schema;

use std::{borrow::Cow, sync::Arc};

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ToolChoice, ToolChoiceOutcome, ToolDefinition,
    Warning, WarningKind,
};
use switchboard_providers_common::{
    ToolMapping,
    request::{
        emulated_tool_choice, is_declared, relaxed_tool_choice, required_tools,
        unsupported_feature, warn_omitted_server_tool,
    },
    schema::ToolSchemas,
    tool_names::ToolNames,
};

use self::schema::{compile_parameters, schema_dialect};
use super::wire::{CallingMode, FunctionCallingConfig, FunctionDeclaration, Tool, ToolConfig};
use crate::{ServerTool, options::SchemaLanguage};

/// Tools and tool choice in the API's types, and how far the API applies the tool choice.
#[derive(Debug, Default)]
pub(crate) struct MappedTools<'a> {
    pub(crate) declared: Vec<Tool<'a>>,
    pub(crate) config: Option<ToolConfig<'a>>,
    pub(crate) outcome: ToolChoiceOutcome,
    /// The changes of input schemas, which the decoder reverses in the inputs of calls.
    pub(crate) tool_mapping: ToolMapping,
}

impl MappedTools<'_> {
    fn without_tools(outcome: ToolChoiceOutcome) -> Self {
        Self {
            outcome,
            ..Self::default()
        }
    }
}

/// Arguments of [`map_tools`]: a request, its model and the configured server tools.
pub(crate) struct ToolContext<'a, 'm> {
    pub(crate) request: &'a ChatRequest,
    pub(crate) provider: &'m str,
    pub(crate) capabilities: &'m ModelCapabilities,
    pub(crate) names: &'m ToolNames,
    pub(crate) form: SchemaLanguage,
    pub(crate) schemas: &'m ToolSchemas,
    /// Whether the request has a response schema and the model refuses tools together with it.
    pub(crate) schema_instead: bool,
    /// The server tools from the configuration.
    pub(crate) server: &'m [ServerTool],
    /// Whether the model accepts server tools together with functions.
    pub(crate) takes_both: bool,
}

/// The functions and server tools that one request declares.
struct SentTools<'a, 'm> {
    functions: Vec<&'a Arc<ToolDefinition>>,
    server: Vec<&'m ServerTool>,
    /// The tools of which the model must call one. `None` if the tool choice requires no call.
    forced: Option<RequiredTools<'a>>,
}

/// The tools of which the model must call one. If both lists are empty, any tool may be called.
struct RequiredTools<'a> {
    functions: Vec<&'a str>,
    server: Vec<&'a str>,
}

/// Maps the tools and the tool choice of a request to the fields `tools` and `toolConfig`. Fails if
/// the tool choice names an undeclared tool, or if the model does not support the required tools.
pub(crate) fn map_tools<'a>(
    context: &ToolContext<'a, '_>,
    warnings: &mut Vec<Warning>,
) -> Result<MappedTools<'a>, ModelError> {
    let request = context.request;
    let server = context.declarable_server_tools(warnings);
    let forced = context.required_tools(&server)?;
    if request.tools.is_empty() && server.is_empty() {
        return Ok(MappedTools::without_tools(ToolChoiceOutcome::Native));
    }
    if request.tool_choice == ToolChoice::None {
        return Ok(context.map_none_choice(!server.is_empty(), warnings));
    }
    let mut sent = SentTools {
        functions: request.tools.iter().collect(),
        server,
        forced,
    };
    sent.remove_disallowed_tools();
    context.omit_server_tools(&mut sent, warnings);
    if !sent.functions.is_empty() && context.model_refuses_functions() {
        return Err(context.unsupported_tools_error());
    }
    if sent.functions.is_empty() && sent.server.is_empty() {
        // No tool is left to send. A warning was already added for each omitted tool.
        return match sent.forced {
            Some(_) => Err(context.unsupported_tools_error()),
            None => Ok(MappedTools::without_tools(ToolChoiceOutcome::Native)),
        };
    }
    if request.parallel_tool_use == Some(false) && !sent.functions.is_empty() {
        let message =
            "the API cannot disable parallel tool calls: the model may call several tools";
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    }
    let (mode, allowed, outcome) = context.choose_calling_mode(&mut sent, warnings);
    Ok(context.declare_tools(&sent, mode, allowed, outcome, warnings))
}

/// Path of the request field that an error about the tool choice names.
const CHOICE: &str = "toolConfig.functionCallingConfig.allowedFunctionNames";

impl SentTools<'_, '_> {
    /// Removes the tools that the tool choice does not name if it names a server tool. If it names
    /// only functions, all functions stay declared: the request field `allowedFunctionNames`
    /// restricts the choice, and an unchanged list of tools preserves prompt caches.
    fn remove_disallowed_tools(&mut self) {
        let Some(forced) = &self.forced else {
            return;
        };
        if !forced.server.is_empty() {
            self.keep_named_tools();
        }
    }

    fn keep_named_tools(&mut self) {
        let Some(RequiredTools { functions, server }) = &self.forced else {
            return;
        };
        if functions.is_empty() && server.is_empty() {
            return;
        }
        self.functions
            .retain(|tool| functions.contains(&&*tool.name));
        self.server.retain(|tool| server.contains(&&*tool.name()));
    }
}

impl<'a, 'm> ToolContext<'a, 'm> {
    /// Returns the configured server tools. Omits, with a warning, a tool with the name of a
    /// function or of an earlier server tool.
    fn declarable_server_tools(&self, warnings: &mut Vec<Warning>) -> Vec<&'m ServerTool> {
        let mut server: Vec<&ServerTool> = Vec::with_capacity(self.server.len());
        for tool in self.server {
            let name = tool.name();
            if is_declared(self.request, &name) {
                warn_omitted_server_tool(&name, "a tool of that name is declared", warnings);
            } else if server.iter().any(|it| it.name() == name) {
                warn_omitted_server_tool(&name, "it is configured twice", warnings);
            } else {
                server.push(tool);
            }
        }
        server
    }

    /// Returns the tools of which the model must call one, or `None` if the tool choice requires no
    /// call. Fails if the choice allows no declared tool or names an undeclared one.
    fn required_tools(
        &self,
        server: &[&ServerTool],
    ) -> Result<Option<RequiredTools<'a>>, ModelError> {
        let names = required_tools(self.request, self.provider, CHOICE, |name| {
            let mut server = server.iter();
            server.any(|tool| name.is_none_or(|name| tool.name() == name))
        })?;
        Ok(names.map(|names| {
            let is_function = |name: &&str| is_declared(self.request, name);
            let (functions, server) = names.into_iter().partition(is_function);
            RequiredTools { functions, server }
        }))
    }

    /// Maps the tool choice that forbids all tools to the API's calling mode `NONE`. Functions are
    /// still declared if the model accepts them. Server tools are not sent. If any are configured
    /// (`had_server`), the outcome reports this.
    fn map_none_choice(&self, had_server: bool, warnings: &mut Vec<Warning>) -> MappedTools<'a> {
        if self.schema_instead {
            let how = "no tools were sent: this model does not support them with structured output";
            return MappedTools::without_tools(emulated_tool_choice(how));
        }
        if self.capabilities.tools == Some(false) {
            return MappedTools::without_tools(emulated_tool_choice(
                "no tools were sent to a model without tool use",
            ));
        }
        let outcome = if had_server {
            emulated_tool_choice("the provider's tools were not sent")
        } else {
            ToolChoiceOutcome::Native
        };
        let sent = SentTools {
            functions: self.request.tools.iter().collect(),
            server: Vec::new(),
            forced: None,
        };
        self.declare_tools(&sent, CallingMode::None, Vec::new(), outcome, warnings)
    }

    /// Removes all server tools, with a warning for each, if the model does not accept them
    /// together with the functions or the response schema of the request.
    fn omit_server_tools(&self, sent: &mut SentTools<'a, 'm>, warnings: &mut Vec<Warning>) {
        let why = if self.schema_instead {
            "this model does not support it with structured output"
        } else if !self.takes_both && !sent.functions.is_empty() {
            "this model does not support it with functions"
        } else {
            return;
        };
        for tool in sent.server.drain(..) {
            warn_omitted_server_tool(&tool.name(), why, warnings);
        }
    }

    fn model_refuses_functions(&self) -> bool {
        self.capabilities.tools == Some(false) || self.schema_instead
    }

    fn unsupported_tools_error(&self) -> ModelError {
        let feature = if self.schema_instead {
            "structured output together with tools for this model"
        } else {
            "tool use for this model"
        };
        unsupported_feature(self.provider, feature)
    }

    /// Returns the calling mode, the names of the allowed functions, and the outcome of the tool
    /// choice. If the choice cannot be enforced, adds a warning and keeps only the named tools in
    /// `sent`.
    fn choose_calling_mode(
        &self,
        sent: &mut SentTools<'a, 'm>,
        warnings: &mut Vec<Warning>,
    ) -> (CallingMode, Vec<Cow<'a, str>>, ToolChoiceOutcome) {
        let free = |sent: &SentTools<'_, '_>| {
            if sent.server.is_empty() {
                CallingMode::Auto
            } else {
                CallingMode::Validated
            }
        };
        let Some(forced) = &sent.forced else {
            return (free(sent), Vec::new(), ToolChoiceOutcome::Native);
        };
        let why = if self.capabilities.forced_tool_choice == Some(false) {
            "this model does not support a forced tool choice: it may answer without a tool"
        } else if sent.functions.is_empty() || !(forced.server.is_empty() || sent.server.is_empty())
        {
            "the API cannot force the provider's tools: the model may answer without a tool"
        } else {
            let names = forced.functions.iter();
            let names = names.map(|name| self.names.wire_name(name)).collect();
            return (CallingMode::Any, names, ToolChoiceOutcome::Native);
        };
        let outcome = relaxed_tool_choice(why, warnings);
        sent.keep_named_tools();
        (free(sent), Vec::new(), outcome)
    }

    fn declare_tools(
        &self,
        sent: &SentTools<'a, 'm>,
        mode: CallingMode,
        allowed_function_names: Vec<Cow<'a, str>>,
        outcome: ToolChoiceOutcome,
        warnings: &mut Vec<Warning>,
    ) -> MappedTools<'a> {
        let mut tool_mapping = ToolMapping::default();
        let functions = sent.functions.iter();
        let functions: Vec<_> = functions
            .map(|tool| self.declare_function(tool, &mut tool_mapping, warnings))
            .collect();
        let has_functions = !functions.is_empty();
        let mut declared = Vec::with_capacity(sent.server.len() + 1);
        if has_functions {
            declared.push(Tool::Functions {
                function_declarations: functions,
            });
        }
        declared.extend(
            sent.server
                .iter()
                .map(|tool| Tool::Own(tool.to_declaration())),
        );
        MappedTools {
            declared,
            config: has_functions.then_some(ToolConfig {
                function_calling_config: Some(FunctionCallingConfig {
                    mode,
                    allowed_function_names,
                }),
                include_server_side_tool_invocations: !sent.server.is_empty(),
            }),
            outcome,
            tool_mapping,
        }
    }

    fn declare_function(
        &self,
        tool: &'a Arc<ToolDefinition>,
        tool_mapping: &mut ToolMapping,
        warnings: &mut Vec<Warning>,
    ) -> FunctionDeclaration<'a> {
        let schema = compile_parameters(tool, self.form, self.schemas, warnings);
        if schema.as_ref().is_some_and(|schema| schema.needs_restore()) {
            tool_mapping.add_tool(tool, schema_dialect(self.form));
        }
        let (parameters_json_schema, parameters) = match self.form {
            SchemaLanguage::JsonSchema => (schema, None),
            SchemaLanguage::OpenApi => (None, schema),
        };
        FunctionDeclaration {
            name: self.names.wire_name(&tool.name),
            description: &tool.description,
            parameters_json_schema,
            parameters,
        }
    }
}

#[cfg(test)]
#[path = "tools/tools_tests.rs"]
mod tests;

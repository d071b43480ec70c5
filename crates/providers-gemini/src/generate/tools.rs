//! Mapping of tools and the tool choice.

pub(crate) mod mapping;
pub(crate) mod schema;

use std::{borrow::Cow, sync::Arc};

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ToolChoice, ToolChoiceOutcome, ToolDefinition,
    Warning, WarningKind,
};
use switchboard_providers_common::{
    request::{emulated, required_tools, unsupported},
    schema::ToolSchemas,
};

use self::{mapping::ToolMapping, schema::parameters};
use super::wire::{CallingMode, FunctionCallingConfig, FunctionDeclaration, Tool, ToolConfig};
use crate::{ServerTool, options::SchemaForm};

/// The tools and the tool choice in the form of the API.
#[derive(Debug)]
pub(crate) struct Tools<'a> {
    pub(crate) declared: Vec<Tool<'a>>,
    pub(crate) config: Option<ToolConfig<'a>>,
    pub(crate) outcome: ToolChoiceOutcome,
}

impl Tools<'_> {
    fn none(outcome: ToolChoiceOutcome) -> Self {
        Self {
            declared: Vec::new(),
            config: None,
            outcome,
        }
    }
}

/// The input for mapping the tools of a request.
pub(crate) struct Context<'a, 'm> {
    pub(crate) request: &'a ChatRequest,
    pub(crate) provider: &'m str,
    pub(crate) capabilities: &'m ModelCapabilities,
    pub(crate) names: &'m ToolMapping,
    pub(crate) form: SchemaForm,
    pub(crate) schemas: &'m ToolSchemas,
    /// Whether the request has a response schema and the model accepts no tools beside it.
    pub(crate) schema_instead: bool,
    /// The server tools from the configuration.
    pub(crate) server: &'m [ServerTool],
    /// Whether the model accepts server tools together with functions.
    pub(crate) takes_both: bool,
}

/// A plan of which tools are sent and which are required.
struct Plan<'a, 'm> {
    functions: Vec<&'a Arc<ToolDefinition>>,
    server: Vec<&'m ServerTool>,
    forced: Option<Forced<'a>>,
}

/// The tools of which the model must use one. If no function and no server tool is named, any tool
/// satisfies the choice.
struct Forced<'a> {
    functions: Vec<&'a str>,
    server: Vec<&'a str>,
}

/// Maps the tools and the tool choice of a request.
pub(crate) fn tools<'a>(
    context: &Context<'a, '_>,
    warnings: &mut Vec<Warning>,
) -> Result<Tools<'a>, ModelError> {
    let request = context.request;
    let server = context.server_tools(warnings);
    let forced = context.forced(&server)?;
    if request.tools.is_empty() && server.is_empty() {
        return Ok(Tools::none(ToolChoiceOutcome::Native));
    }
    if request.tool_choice == ToolChoice::None {
        return Ok(context.no_tool(!server.is_empty(), warnings));
    }
    let mut plan = Plan {
        functions: request.tools.iter().collect(),
        server,
        forced,
    };
    plan.narrow();
    context.leave_out_server_tools(&mut plan, warnings);
    if !plan.functions.is_empty() && context.takes_no_functions() {
        return Err(context.unsupported());
    }
    if plan.functions.is_empty() && plan.server.is_empty() {
        // The omitted tools already have a warning each.
        return match plan.forced {
            Some(_) => Err(context.unsupported()),
            None => Ok(Tools::none(ToolChoiceOutcome::Native)),
        };
    }
    if request.parallel_tool_use == Some(false) && !plan.functions.is_empty() {
        let message =
            "the model may call several tools in parallel: this wire has no switch for it";
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    }
    let (mode, allowed, outcome) = context.choose(&mut plan, warnings);
    Ok(context.declared(&plan, mode, allowed, outcome, warnings))
}

const CHOICE: &str = "toolConfig.functionCallingConfig.allowedFunctionNames";

impl Plan<'_, '_> {
    /// Removes the tools that the tool choice does not allow, unless the API can express the
    /// choice. The API can restrict the choice among functions, so all functions stay declared,
    /// which preserves prompt caches.
    fn narrow(&mut self) {
        let Some(forced) = &self.forced else {
            return;
        };
        if !forced.server.is_empty() {
            self.keep_the_named();
        }
    }

    fn keep_the_named(&mut self) {
        let Some(Forced { functions, server }) = &self.forced else {
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

impl<'a, 'm> Context<'a, 'm> {
    /// Returns the server tools that can be declared in this request.
    fn server_tools(&self, warnings: &mut Vec<Warning>) -> Vec<&'m ServerTool> {
        let mut server: Vec<&ServerTool> = Vec::with_capacity(self.server.len());
        for tool in self.server {
            let name = tool.name();
            if self.names.tool(&name).is_some() {
                left_out(tool, "a tool of that name is declared", warnings);
            } else if server.iter().any(|it| it.name() == name) {
                left_out(tool, "it is there already", warnings);
            } else {
                server.push(tool);
            }
        }
        server
    }

    /// Returns the required tools, or `None` if the tool choice requires no tool.
    fn forced(&self, server: &[&ServerTool]) -> Result<Option<Forced<'a>>, ModelError> {
        let names = required_tools(self.request, self.provider, CHOICE, |name| {
            let mut server = server.iter();
            server.any(|tool| name.is_none_or(|name| tool.name() == name))
        })?;
        Ok(names.map(|names| {
            let is_function = |name: &&str| self.names.tool(name).is_some();
            let (functions, server) = names.into_iter().partition(is_function);
            Forced { functions, server }
        }))
    }

    /// Maps the tool choice that forbids all tools. Functions stay declared, because the API can
    /// forbid them. Server tools are omitted.
    fn no_tool(&self, had_server: bool, warnings: &mut Vec<Warning>) -> Tools<'a> {
        if self.schema_instead {
            let how = "no tools were sent: this model takes none beside the schema of an answer";
            return Tools::none(emulated(how));
        }
        if self.capabilities.tools == Some(false) {
            return Tools::none(emulated("no tools were sent to a model that has none"));
        }
        let outcome = if had_server {
            emulated("the provider's own tools were not sent")
        } else {
            ToolChoiceOutcome::Native
        };
        let plan = Plan {
            functions: self.request.tools.iter().collect(),
            server: Vec::new(),
            forced: None,
        };
        self.declared(&plan, CallingMode::None, Vec::new(), outcome, warnings)
    }

    /// Removes server tools that the model does not accept beside functions.
    fn leave_out_server_tools(&self, plan: &mut Plan<'a, 'm>, warnings: &mut Vec<Warning>) {
        let why = if self.schema_instead {
            "this model takes none beside the schema of an answer"
        } else if !self.takes_both && !plan.functions.is_empty() {
            "this model takes none beside functions"
        } else {
            return;
        };
        for tool in plan.server.drain(..) {
            left_out(tool, why, warnings);
        }
    }

    fn takes_no_functions(&self) -> bool {
        self.capabilities.tools == Some(false) || self.schema_instead
    }

    fn unsupported(&self) -> ModelError {
        let feature = if self.schema_instead {
            "an answer in the form of a JSON Schema beside tools by this model"
        } else {
            "tool use by this model"
        };
        unsupported(self.provider, feature)
    }

    /// Returns the calling mode, the allowed functions and how the API applies the tool choice.
    fn choose(
        &self,
        plan: &mut Plan<'a, 'm>,
        warnings: &mut Vec<Warning>,
    ) -> (CallingMode, Vec<Cow<'a, str>>, ToolChoiceOutcome) {
        let free = |plan: &Plan<'_, '_>| {
            if plan.server.is_empty() {
                CallingMode::Auto
            } else {
                CallingMode::Validated
            }
        };
        let Some(forced) = &plan.forced else {
            return (free(plan), Vec::new(), ToolChoiceOutcome::Native);
        };
        let why = if self.capabilities.forced_tool_choice == Some(false) {
            "this model takes no forced tool choice; it was left free to answer without"
        } else if plan.functions.is_empty() || !(forced.server.is_empty() || plan.server.is_empty())
        {
            "this wire forces functions and not the provider's own tools; the model was left free to \
             answer without"
        } else {
            let names = forced.functions.iter();
            let names = names.map(|name| self.names.to_wire(name)).collect();
            return (CallingMode::Any, names, ToolChoiceOutcome::Native);
        };
        warnings.push(Warning::new(WarningKind::ToolChoiceRelaxed, why));
        plan.keep_the_named();
        let outcome = ToolChoiceOutcome::Relaxed { why: why.into() };
        (free(plan), Vec::new(), outcome)
    }

    fn declared(
        &self,
        plan: &Plan<'a, 'm>,
        mode: CallingMode,
        allowed_function_names: Vec<Cow<'a, str>>,
        outcome: ToolChoiceOutcome,
        warnings: &mut Vec<Warning>,
    ) -> Tools<'a> {
        let functions = plan.functions.iter();
        let functions: Vec<_> = functions
            .map(|tool| self.function(tool, warnings))
            .collect();
        let has_functions = !functions.is_empty();
        let mut declared = Vec::with_capacity(plan.server.len() + 1);
        if has_functions {
            declared.push(Tool::Functions {
                function_declarations: functions,
            });
        }
        declared.extend(plan.server.iter().map(|tool| Tool::Own(tool.declaration())));
        Tools {
            declared,
            config: has_functions.then_some(ToolConfig {
                function_calling_config: Some(FunctionCallingConfig {
                    mode,
                    allowed_function_names,
                }),
                include_server_side_tool_invocations: !plan.server.is_empty(),
            }),
            outcome,
        }
    }

    fn function(
        &self,
        tool: &'a Arc<ToolDefinition>,
        warnings: &mut Vec<Warning>,
    ) -> FunctionDeclaration<'a> {
        let schema = parameters(tool, self.form, self.schemas, warnings);
        let (parameters_json_schema, parameters) = match self.form {
            SchemaForm::JsonSchema => (schema, None),
            SchemaForm::OpenApi => (None, schema),
        };
        FunctionDeclaration {
            name: self.names.to_wire(&tool.name),
            description: &tool.description,
            parameters_json_schema,
            parameters,
        }
    }
}

fn left_out(tool: &ServerTool, why: &str, warnings: &mut Vec<Warning>) {
    let message = format!("the provider's own `{}` was omitted: {why}", tool.name());
    warnings.push(Warning::new(WarningKind::ToolUnavailable, message));
}

#[cfg(test)]
#[path = "tools/tools_tests.rs"]
mod tests;

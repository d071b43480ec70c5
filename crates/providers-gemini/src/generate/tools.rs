//! Tools and which of them may or must be used.

use std::borrow::Cow;

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ToolChoice, ToolChoiceOutcome,
    ToolDefinition, Warning, WarningKind,
};

use super::{
    names::{Declared, is_name},
    schema::parameters,
    wire::{CallingMode, FunctionCallingConfig, FunctionDeclaration, Tool, ToolConfig},
};
use crate::options::SchemaForm;

/// The tools as they are declared, and the choice as it is sent.
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

/// What the mapping of tools depends on.
pub(crate) struct Context<'a, 'm> {
    pub(crate) request: &'a ChatRequest,
    pub(crate) provider: &'m str,
    pub(crate) capabilities: &'m ModelCapabilities,
    pub(crate) names: &'m Declared,
    pub(crate) form: SchemaForm,
    /// The answer has a schema, and the model takes either that or functions.
    pub(crate) schema_instead: bool,
}

/// Maps the tools and the choice among them.
pub(crate) fn tools<'a>(
    context: &Context<'a, '_>,
    warnings: &mut Vec<Warning>,
) -> Result<Tools<'a>, ModelError> {
    let request = context.request;
    for (index, tool) in request.tools.iter().enumerate() {
        if !is_name(&context.names.to_wire(&tool.name)) {
            let field = format!("tools[0].functionDeclarations[{index}].name");
            let message = format!(
                "tool name `{}` is not 1 to 128 of A-Z, a-z, 0-9, `_`, `.`, `:` and `-`",
                tool.name
            );
            return Err(context.invalid(&field, message));
        }
    }
    let forced = context.forced()?;
    if request.tools.is_empty() {
        return match forced {
            Some(_) => Err(context.invalid(CHOICE, "a tool is required but none is declared")),
            None => Ok(Tools::none(ToolChoiceOutcome::Native)),
        };
    }
    let none_wanted = request.tool_choice == ToolChoice::None;
    if context.capabilities.tools == Some(false) || context.schema_instead {
        if none_wanted {
            let how = if context.schema_instead {
                "no tools were sent: this model takes none beside the schema of an answer"
            } else {
                "no tools were sent to a model that has none"
            };
            return Ok(Tools::none(ToolChoiceOutcome::Emulated { how: how.into() }));
        }
        let feature = if context.schema_instead {
            "an answer in the form of a JSON Schema beside tools by this model"
        } else {
            "tool use by this model"
        };
        let feature = feature.to_owned();
        let kind = ModelErrorKind::Unsupported { feature };
        return Err(ModelError::new(context.provider, kind, ""));
    }
    if request.parallel_tool_use == Some(false) && !none_wanted {
        let message = "the model may call several tools at once: this wire has no switch for it";
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    }
    let refused = context.capabilities.forced_tool_choice == Some(false);
    let (only, mode, allowed, outcome) = match forced {
        None if none_wanted => (
            None,
            CallingMode::None,
            Vec::new(),
            ToolChoiceOutcome::Native,
        ),
        None => (
            None,
            CallingMode::Auto,
            Vec::new(),
            ToolChoiceOutcome::Native,
        ),
        Some(allowed) if refused => {
            let why = "this model takes no forced tool choice; it was left free to answer without";
            warnings.push(Warning::new(WarningKind::ToolChoiceRelaxed, why));
            let outcome = ToolChoiceOutcome::Relaxed { why: why.into() };
            (Some(allowed), CallingMode::Auto, Vec::new(), outcome)
        }
        // The subset is a form of the wire: all tools stay declared, which keeps prompt caches.
        Some(allowed) => {
            let names = allowed.iter().map(|name| context.names.to_wire(name));
            let names: Vec<Cow<'a, str>> = names.collect();
            (None, CallingMode::Any, names, ToolChoiceOutcome::Native)
        }
    };
    let only = only.filter(|names| !names.is_empty());
    let sent = request
        .tools
        .iter()
        .filter(|tool| only.as_ref().is_none_or(|it| it.contains(&&*tool.name)));
    Ok(Tools {
        declared: vec![Tool {
            function_declarations: sent.map(|tool| context.function(tool, warnings)).collect(),
        }],
        config: Some(ToolConfig {
            function_calling_config: FunctionCallingConfig {
                mode,
                allowed_function_names: allowed,
            },
        }),
        outcome,
    })
}

const CHOICE: &str = "toolConfig.functionCallingConfig.allowedFunctionNames";

impl<'a> Context<'a, '_> {
    /// The tools of which one must be used: empty for any, `None` if the model need not.
    fn forced(&self) -> Result<Option<Vec<&'a str>>, ModelError> {
        let names = match &self.request.tool_choice {
            ToolChoice::Auto | ToolChoice::None => return Ok(None),
            ToolChoice::Required => return Ok(Some(Vec::new())),
            ToolChoice::Only(names) => names,
        };
        if let Some(name) = names.iter().find(|name| self.names.tool(name).is_none()) {
            return Err(self.invalid(CHOICE, format!("no tool named `{name}` is declared")));
        }
        if names.is_empty() {
            let message = "a choice among no tools; say `none` for no tool";
            return Err(self.invalid(CHOICE, message));
        }
        let mut allowed: Vec<&'a str> = Vec::with_capacity(names.len());
        for name in names {
            if !allowed.contains(&name.as_str()) {
                allowed.push(name);
            }
        }
        Ok(Some(allowed))
    }

    fn function(
        &self,
        tool: &'a ToolDefinition,
        warnings: &mut Vec<Warning>,
    ) -> FunctionDeclaration<'a> {
        let schema = parameters(&tool.input_schema, self.form, &tool.name, warnings);
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

    fn invalid(&self, field: &str, message: impl Into<String>) -> ModelError {
        let field = Some(field.to_owned());
        let kind = ModelErrorKind::InvalidRequest { field };
        ModelError::new(self.provider, kind, message)
    }
}

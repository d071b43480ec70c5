//! Maps tools and the tool choice, for Chat Completions and Responses.

pub(crate) mod provider_tools;
pub(crate) mod schema;
pub mod server_tool;

use std::{borrow::Cow, sync::Arc};

use serde::Serialize;
use serde_json::{Value, json};
use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ReasoningEffort, ToolChoice, ToolChoiceOutcome,
    ToolDefinition, Warning,
};
use switchboard_providers_common::{
    ToolMapping,
    request::{
        emulated_tool_choice, forces_tool_call, relaxed_tool_choice, required_tools,
        unsupported_feature,
    },
    schema::{Dialect, ToolSchema, ToolSchemas},
    tool_names::{NameRule, ToolNames},
};

use self::{
    provider_tools::{DeclaredTools, ProviderTool, ToolForm, ToolName},
    schema::{CompiledParameters, compile_parameters},
};
use crate::server_profile::{ForcedToolChoiceSupport, Profile};

/// Rule for valid names of functions and of answer schemas: `^[a-zA-Z0-9_-]{1,64}$`.
pub(crate) const NAME_RULE: NameRule = NameRule::OPENAI;
/// Name of the request field with the tool choice.
const TOOL_CHOICE: &str = "tool_choice";

/// Tools and tool choice of a request as the API expects them, and the outcome of the tool choice.
#[derive(Debug)]
pub(crate) struct MappedTools<'a> {
    pub(crate) declared: DeclaredTools<'a>,
    /// Value of the request field `tool_choice`. `None` if no tools are sent, because the API then
    /// refuses the field.
    pub(crate) choice: Option<Value>,
    pub(crate) outcome: ToolChoiceOutcome,
    pub(crate) tool_mapping: ToolMapping,
}

/// A function that the request declares to the model.
#[derive(Debug, Serialize)]
pub(crate) struct Function<'a> {
    /// Name of the function, which matches `[A-Za-z0-9_-]{1,64}`.
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    /// JSON Schema of the function's arguments.
    parameters: ToolSchema,
    /// Whether the API enforces the schema. On Responses this field is always sent: its default is
    /// `true`, and the API then refuses most schemas. On Chat Completions `false` is omitted,
    /// because not every server has the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// Arguments of [`map_tools`]: a request, its model and its server.
#[derive(Clone, Copy)]
pub(crate) struct ToolContext<'a, 'm> {
    pub(crate) request: &'a ChatRequest,
    pub(crate) form: ToolForm,
    pub(crate) provider: &'m str,
    pub(crate) names: &'m ToolNames,
    pub(crate) capabilities: &'m ModelCapabilities,
    pub(crate) profile: &'m Profile,
    pub(crate) schemas: &'m ToolSchemas,
}

/// Maps the request's tools, the tools that the provider runs, and the tool choice to the API's
/// types.
///
/// Fails with `ModelErrorKind::InvalidRequest` if the tool choice names an undeclared tool or
/// allows no tool. Fails with `ModelErrorKind::Unsupported` if the model does not support the tools
/// of the request.
pub(crate) fn map_tools<'a>(
    context: ToolContext<'a, '_>,
    provider_tools: Vec<ProviderTool<'a>>,
    warnings: &mut Vec<Warning>,
) -> Result<MappedTools<'a>, ModelError> {
    let ToolContext {
        request,
        provider,
        capabilities,
        ..
    } = context;
    let forced = forced_tool_names(request, &provider_tools, provider)?;
    let has_functions = capabilities.tools != Some(false);
    if !request.tools.is_empty() && !has_functions && request.tool_choice != ToolChoice::None {
        return Err(unsupported_feature(provider, "tool use for this model"));
    }
    let mut builder = ToolBuilder {
        functions: request.tools.iter().filter(|_| has_functions).collect(),
        provider_tools,
        context,
        warnings,
    };
    // A function in the caller's `extra` replaces a declared tool of the same name.
    let is_replaced = |name: &str| {
        let mut tools = builder.provider_tools.iter();
        tools.any(|it| matches!(&it.name, ToolName::Function(own) if own == name))
    };
    builder.functions.retain(|tool| !is_replaced(&tool.name));
    let (choice, outcome) = match forced {
        // The API refuses `tool_choice` without `tools`.
        _ if builder.functions.is_empty() && builder.provider_tools.is_empty() => {
            let outcome = if request.tools.is_empty() {
                ToolChoiceOutcome::Native
            } else {
                emulated_tool_choice("no tools were sent to a model without tool use")
            };
            (None, outcome)
        }
        None => {
            let is_none = request.tool_choice == ToolChoice::None;
            let mode = if is_none { "none" } else { "auto" };
            (Some(json!(mode)), ToolChoiceOutcome::Native)
        }
        Some(allowed) => {
            let (choice, outcome) = builder.map_forced_tool_choice(&allowed);
            (Some(choice), outcome)
        }
    };
    let outcome =
        if request.extra.contains_key(TOOL_CHOICE) && request.tool_choice != ToolChoice::Auto {
            let why = "`tool_choice` in the extra fields of the request replaced it";
            relaxed_tool_choice(why, builder.warnings)
        } else {
            outcome
        };
    Ok(builder.build_tools(choice, outcome))
}

/// Checks that the tool choice names only declared tools.
///
/// Fails with `ModelErrorKind::InvalidRequest` if the choice names an undeclared tool, allows no
/// tool, or requires a tool although none is declared.
pub(crate) fn check_tool_choice(request: &ChatRequest, provider: &str) -> Result<(), ModelError> {
    forced_tool_names(request, &[], provider).map(|_| ())
}

/// Returns the names of the tools of which the model must call one. An empty list allows all tools.
/// `None` means that no call is required.
fn forced_tool_names<'a>(
    request: &'a ChatRequest,
    provider_tools: &[ProviderTool<'_>],
    provider: &str,
) -> Result<Option<Vec<&'a str>>, ModelError> {
    required_tools(request, provider, TOOL_CHOICE, |name| {
        let mut tools = provider_tools.iter();
        tools.any(|tool| name.is_none_or(|name| tool.has_name(name)))
    })
}

struct ToolBuilder<'a, 'm> {
    functions: Vec<&'a Arc<ToolDefinition>>,
    provider_tools: Vec<ProviderTool<'a>>,
    context: ToolContext<'a, 'm>,
    warnings: &'m mut Vec<Warning>,
}

impl<'a> ToolBuilder<'a, '_> {
    /// Maps a tool choice that forces a call of one of `allowed`, or of any tool if the list is
    /// empty. If the API cannot express this choice, the tools that are not allowed are removed.
    fn map_forced_tool_choice(&mut self, allowed: &[&'a str]) -> (Value, ToolChoiceOutcome) {
        let (request, profile) = (self.context.request, self.context.profile);
        let reasons = !matches!(request.reasoning, None | Some(ReasoningEffort::None));
        let is_refused_now =
            reasons && profile.forced_tool_choice == ForcedToolChoiceSupport::RefusedWhileReasoning;
        if is_refused_now || self.context.capabilities.forced_tool_choice == Some(false) {
            self.keep_named_tools(allowed);
            let why =
                "this model does not support a forced tool choice: it may answer without a tool";
            return (json!("auto"), relaxed_tool_choice(why, self.warnings));
        }
        let names: Vec<ToolName<'a>> = allowed.iter().map(|name| self.name_on_wire(name)).collect();
        let is_allowed = |name: &str| allowed.contains(&name);
        let allows_all = allowed.is_empty()
            || (self.functions.iter().all(|it| is_allowed(&it.name))
                && self
                    .provider_tools
                    .iter()
                    .all(|it| self.names_select_tool(allowed, it)));
        let (choice, is_native) = match names.as_slice() {
            [one] if one.can_be_forced() => (one.to_tool_choice(self.context.form), true),
            _ if !allows_all && profile.allowed_tools => (self.allowed_tools_choice(&names), true),
            _ => (json!("required"), allows_all),
        };
        let outcome = if profile.forced_tool_choice == ForcedToolChoiceSupport::Unenforced {
            let why = format!("{} does not enforce the tool choice", profile.name);
            relaxed_tool_choice(&why, self.warnings)
        } else {
            let selection = "only the allowed tools were sent, and one of them was required";
            let reasoning = "reasoning was disabled: it does not allow a forced tool choice";
            match (is_native, choice_disables_reasoning(request, profile)) {
                (true, false) => ToolChoiceOutcome::Native,
                (true, true) => emulated_tool_choice(reasoning),
                (false, false) => emulated_tool_choice(selection),
                (false, true) => emulated_tool_choice(&format!("{selection}; {reasoning}")),
            }
        };
        if !is_native {
            self.keep_named_tools(allowed);
        }
        (choice, outcome)
    }

    /// Returns a `tool_choice` of the type `allowed_tools`, which requires a call of at least one
    /// of the tools `names`.
    fn allowed_tools_choice(&self, names: &[ToolName<'_>]) -> Value {
        let (kind, form) = ("allowed_tools", self.context.form);
        let tools: Vec<Value> = names.iter().map(|name| name.to_tool_choice(form)).collect();
        match form {
            ToolForm::Flat => json!({"type": kind, "mode": "required", "tools": tools}),
            ToolForm::Nested => json!({"type": kind, kind: {"mode": "required", "tools": tools}}),
        }
    }

    /// Returns the name or type with which `tool_choice` selects the tool `name`. For a function,
    /// it is the name under which the request declares the function.
    fn name_on_wire(&self, name: &'a str) -> ToolName<'a> {
        let mut provider_tools = self.provider_tools.iter();
        match provider_tools.find(|it| self.names_select_tool(&[name], it)) {
            Some(tool) => tool.name.clone(),
            None => ToolName::Function(self.context.names.wire_name(name)),
        }
    }

    /// Returns whether one of `names` selects the provider tool `tool`. If a function has the same
    /// name, the name selects the function and not the provider tool.
    fn names_select_tool(&self, names: &[&str], tool: &ProviderTool<'_>) -> bool {
        let is_function = |name: &str| self.functions.iter().any(|it| it.name == name);
        let mut matching = names.iter().filter(|name| tool.has_name(name));
        matching.any(|name| !is_function(name))
    }

    /// Removes the tools that are not in `names`. An empty list keeps all tools.
    fn keep_named_tools(&mut self, names: &[&str]) {
        if !names.is_empty() {
            let mut provider_tools = std::mem::take(&mut self.provider_tools);
            provider_tools.retain(|it| self.names_select_tool(names, it));
            self.provider_tools = provider_tools;
            self.functions.retain(|it| names.contains(&&*it.name));
        }
    }

    fn build_tools(self, choice: Option<Value>, outcome: ToolChoiceOutcome) -> MappedTools<'a> {
        let ToolContext {
            form,
            names,
            profile,
            schemas,
            ..
        } = self.context;
        let mut tool_mapping = ToolMapping::default();
        let functions = self.functions.into_iter().map(|tool| {
            let CompiledParameters { schema, strict } =
                compile_parameters(tool, profile, schemas, self.warnings);
            if strict && schema.needs_restore() {
                tool_mapping.add_tool(tool, Dialect::OpenAiStrict);
            }
            Function {
                name: names.wire_name(&tool.name),
                description: &tool.description,
                parameters: schema,
                strict: (strict || form == ToolForm::Flat).then_some(strict),
            }
        });
        MappedTools {
            declared: DeclaredTools {
                form,
                functions: functions.collect(),
                provider_tools: self.provider_tools,
            },
            choice,
            outcome,
            tool_mapping,
        }
    }
}

/// Returns whether the request must turn reasoning off, because it forces a tool call and the
/// server refuses a forced call while the model reasons. Returns `false` if the caller set a
/// reasoning effort. If that effort is not `none`, the tool choice is relaxed to `auto` instead.
pub(crate) fn choice_disables_reasoning(request: &ChatRequest, profile: &Profile) -> bool {
    let is_refused = profile.forced_tool_choice == ForcedToolChoiceSupport::RefusedWhileReasoning;
    forces_tool_call(request) && is_refused && request.reasoning.is_none()
}

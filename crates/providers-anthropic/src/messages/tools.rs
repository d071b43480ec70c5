//! Tools and which of them may or must be used.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ToolChoice,
    ToolChoiceOutcome, ToolDefinition, Warning, WarningKind,
};

use switchboard_providers_common::{
    schema::{ChangeKind, Dialect, PerTool, Written},
    tool_names::ToolNames,
};

use super::{restore::Reshaped, wire};
use crate::{ServerTool, options::MessagesOptions, rules::rules, schema};

/// Strict tools in one request at most, and properties that may be missing and values of several
/// types in all of them together: "Too many strict tools", camel#4171.
const STRICT_LIMITS: (usize, usize, usize) = (20, 24, 16);

/// The tools as they are declared, and the choice as it is sent.
#[derive(Debug)]
pub(crate) struct Tools<'a> {
    /// Those that the API runs itself.
    pub(crate) server: Vec<wire::ServerTool>,
    pub(crate) declared: Vec<wire::Tool<'a>>,
    /// Those whose inputs come in another shape.
    pub(crate) reshaped: Reshaped,
    pub(crate) choice: Option<wire::ToolChoice<'a>>,
    pub(crate) outcome: ToolChoiceOutcome,
}

/// Maps the tools and the choice among them. `thinks_with_budget`: the request asks for thinking of
/// type `enabled`, with which the API refuses a forced choice.
pub(crate) fn tools<'a>(
    request: &'a ChatRequest,
    model: &ModelId,
    names: &ToolNames,
    capabilities: &ModelCapabilities,
    options: &'a MessagesOptions,
    thinks_with_budget: bool,
    warnings: &mut Vec<Warning>,
) -> Result<Tools<'a>, ModelError> {
    let invalid = |field: &str, message: &str| {
        let field = Some(field.to_owned());
        let kind = ModelErrorKind::InvalidRequest { field };
        ModelError::new(&*model.provider, kind, message)
    };
    let server = server_tools(request, capabilities, options, warnings);
    let forced = forced(request, &server).map_err(|message| invalid("tool_choice", &message))?;
    if request.tools.is_empty() && server.is_empty() {
        // The API refuses `tool_choice` without `tools`.
        return match forced {
            Some(_) => Err(invalid(
                "tool_choice",
                "a tool is required but none is declared",
            )),
            None => Ok(Tools {
                server: Vec::new(),
                declared: Vec::new(),
                reshaped: Reshaped::default(),
                choice: None,
                outcome: ToolChoiceOutcome::Native,
            }),
        };
    }
    if capabilities.tools == Some(false) {
        if request.tool_choice == ToolChoice::None {
            return Ok(Tools {
                server: Vec::new(),
                declared: Vec::new(),
                reshaped: Reshaped::default(),
                choice: None,
                outcome: emulated("no tools were sent to a model that has none"),
            });
        }
        let feature = "tool use by this model".to_owned();
        let kind = ModelErrorKind::Unsupported { feature };
        return Err(ModelError::new(&*model.provider, kind, ""));
    }
    let mut declare = Declare {
        request,
        model,
        names,
        server,
        strict: options.strict_tools && capabilities.structured_output != Some(false),
        left: STRICT_LIMITS,
        reshaped: Reshaped::default(),
        warnings,
    };
    if options.strict_tools && !declare.strict {
        declare.unenforced("this model holds no tool input to its schema (`strict`)");
    }
    let disable_parallel_tool_use = request.parallel_tool_use == Some(false);
    Ok(match forced {
        None if request.tool_choice == ToolChoice::None => Tools {
            server: declare.server(None),
            declared: declare.all(None),
            reshaped: std::mem::take(&mut declare.reshaped),
            choice: Some(wire::ToolChoice::None),
            outcome: ToolChoiceOutcome::Native,
        },
        None => Tools {
            server: declare.server(None),
            declared: declare.all(None),
            reshaped: std::mem::take(&mut declare.reshaped),
            choice: Some(wire::ToolChoice::Auto {
                disable_parallel_tool_use,
            }),
            outcome: ToolChoiceOutcome::Native,
        },
        Some(allowed) => {
            let refused = if capabilities.forced_tool_choice == Some(false) {
                Some("this model takes no forced tool choice; it was left free to answer without")
            } else if thinks_with_budget {
                Some(
                    "no tool choice can be forced while the model thinks; it was left free to \
                     answer without",
                )
            } else {
                None
            };
            force(declare, &allowed, refused, disable_parallel_tool_use)
        }
    })
}

/// The tools of which one must be used, any if the list is empty; `None` if none must be.
fn forced<'a>(
    request: &'a ChatRequest,
    server: &[&ServerTool],
) -> Result<Option<Vec<&'a str>>, String> {
    let names = match &request.tool_choice {
        ToolChoice::Auto | ToolChoice::None => return Ok(None),
        ToolChoice::Required => return Ok(Some(Vec::new())),
        ToolChoice::Only(names) => names,
    };
    if names.is_empty() {
        return Err("a choice among no tools; say `none` for no tool".to_owned());
    }
    let mut allowed: Vec<&str> = Vec::with_capacity(names.len());
    for name in names {
        let known = declares(request, name) || server.iter().any(|it| it.name() == name);
        if !known {
            return Err(format!("no tool named `{name}` is declared"));
        }
        if !allowed.contains(&name.as_str()) {
            allowed.push(name);
        }
    }
    Ok(Some(allowed))
}

/// A choice that must be made: any of `allowed`, or of all tools if that is empty. The wire has no
/// choice among several of many, so that only these are declared then.
fn force<'a>(
    mut declare: Declare<'a, '_>,
    allowed: &[&'a str],
    refused: Option<&str>,
    disable_parallel_tool_use: bool,
) -> Tools<'a> {
    if let Some(why) = refused {
        let warning = Warning::new(WarningKind::ToolChoiceRelaxed, why);
        declare.warnings.push(warning);
        return Tools {
            server: declare.server(Some(allowed)),
            declared: declare.all(Some(allowed)),
            reshaped: std::mem::take(&mut declare.reshaped),
            choice: Some(wire::ToolChoice::Auto {
                disable_parallel_tool_use,
            }),
            outcome: ToolChoiceOutcome::Relaxed {
                why: why.to_owned(),
            },
        };
    }
    let mut names = declare.request.tools.iter().map(|tool| tool.name.as_str());
    let mut of_server = declare.server.iter().map(|tool| tool.name());
    let all = allowed.is_empty()
        || names.all(|name| allowed.contains(&name)) && of_server.all(|it| allowed.contains(&it));
    match allowed {
        [name] => Tools {
            server: declare.server(None),
            declared: declare.all(None),
            reshaped: std::mem::take(&mut declare.reshaped),
            choice: Some(wire::ToolChoice::Tool {
                name: wire_name(declare.names, name),
                disable_parallel_tool_use,
            }),
            outcome: ToolChoiceOutcome::Native,
        },
        _ => Tools {
            server: declare.server((!all).then_some(allowed)),
            declared: declare.all((!all).then_some(allowed)),
            reshaped: std::mem::take(&mut declare.reshaped),
            choice: Some(wire::ToolChoice::Any {
                disable_parallel_tool_use,
            }),
            outcome: if all {
                ToolChoiceOutcome::Native
            } else {
                emulated("only the allowed tools were sent, and one of them was required")
            },
        },
    }
}

fn emulated(how: &str) -> ToolChoiceOutcome {
    ToolChoiceOutcome::Emulated {
        how: how.to_owned(),
    }
}

fn declares(request: &ChatRequest, name: &str) -> bool {
    request.tools.iter().any(|tool| tool.name == *name)
}

/// The tools that the API is to run itself.
fn server_tools<'a>(
    request: &ChatRequest,
    capabilities: &ModelCapabilities,
    options: &'a MessagesOptions,
    warnings: &mut Vec<Warning>,
) -> Vec<&'a ServerTool> {
    let mut left_out = |name: &str, why: &str| {
        let message = format!("the provider's own `{name}` was left out: {why}");
        warnings.push(Warning::new(WarningKind::ToolUnavailable, message));
    };
    let mut server: Vec<&ServerTool> = Vec::with_capacity(options.server_tools.len());
    for tool in &options.server_tools {
        let name = tool.name();
        if capabilities.tools == Some(false) {
            left_out(name, "this model uses no tools");
        } else if declares(request, name) {
            left_out(name, "a tool of that name is declared");
        } else if !name.is_empty() && server.iter().any(|it| it.name() == name) {
            left_out(name, "it is there already");
        } else {
            server.push(tool);
        }
    }
    server
}

/// Every step of a run sends the same definitions: each is compiled once.
static LOOSE: LazyLock<PerTool<(), Loose>> = LazyLock::new(PerTool::default);
/// `None` for what the API cannot enforce.
static ENFORCED: LazyLock<PerTool<(), Option<Enforced>>> = LazyLock::new(PerTool::default);

/// The schema of a tool whose input is not held to it. It tells the model what to write, and inputs
/// are validated before they are used: only where it tells another thing that is worth a warning.
struct Loose {
    schema: Written,
    reshapes: bool,
    warning: Option<Warning>,
}

impl Loose {
    fn of(tool: &ToolDefinition) -> Self {
        let compiled = schema::input_schema(&tool.input_schema);
        let told = |kind| matches!(kind, ChangeKind::Described | ChangeKind::Dropped);
        let other = compiled.lost().filter(|change| !told(change.kind));
        let other: Vec<String> = other.map(ToString::to_string).collect();
        let warning = (!other.is_empty()).then(|| {
            let message = format!(
                "the input schema of `{}` is not sent as it is: {}",
                tool.name,
                other.join("; ")
            );
            Warning::new(WarningKind::PartDowngraded, message)
        });
        Self {
            reshapes: schema::reshapes(&compiled),
            schema: compiled.into_owned().into(),
            warning,
        }
    }
}

/// The schema of a tool whose input can be held to it, and what of the limits it needs.
struct Enforced {
    schema: Written,
    reshapes: bool,
    optional: usize,
    unions: usize,
}

impl Enforced {
    fn of(tool: &ToolDefinition) -> Option<Self> {
        let strict = schema::strict(&tool.input_schema);
        let whole = !strict.narrows && strict.unenforced.is_empty();
        whole.then(|| Self {
            schema: strict.schema.into_owned().into(),
            reshapes: strict.reshapes,
            optional: strict.optional,
            unions: strict.unions,
        })
    }
}

struct Declare<'a, 'm> {
    request: &'a ChatRequest,
    model: &'m ModelId,
    names: &'m ToolNames,
    server: Vec<&'a ServerTool>,
    strict: bool,
    /// What the API's limits leave: tools, optional properties, unions.
    left: (usize, usize, usize),
    reshaped: Reshaped,
    warnings: &'m mut Vec<Warning>,
}

impl<'a> Declare<'a, '_> {
    /// The tools that the API runs itself: those of `only` if that names any.
    fn server(&self, only: Option<&[&str]>) -> Vec<wire::ServerTool> {
        let only = only.filter(|names| !names.is_empty());
        let rules = rules(&self.model.name);
        let tools = self.server.iter();
        tools
            .filter(|tool| only.is_none_or(|names| names.contains(&tool.name())))
            .map(|tool| wire::ServerTool {
                declaration: tool.declaration(rules),
                cache_control: None,
            })
            .collect()
    }

    /// The tools on the wire: those of `only` if that names any.
    fn all(&mut self, only: Option<&[&str]>) -> Vec<wire::Tool<'a>> {
        let only = only.filter(|names| !names.is_empty());
        let tools: Vec<&'a Arc<ToolDefinition>> = self
            .request
            .tools
            .iter()
            .filter(|tool| only.is_none_or(|names| names.contains(&&*tool.name)))
            .collect();
        let mut loose = Vec::new();
        let declared = tools.into_iter().map(|tool| {
            let declared = self.one(tool);
            if self.strict && !declared.strict {
                loose.push(tool.name.as_str());
            }
            declared
        });
        let declared = declared.collect();
        if !loose.is_empty() {
            let message = format!(
                "inputs of {} are not held to their schemas: these, or all strict ones together, are \
                 more than the API can enforce",
                loose.join(", ")
            );
            self.unenforced(&message);
        }
        declared
    }

    fn one(&mut self, tool: &'a Arc<ToolDefinition>) -> wire::Tool<'a> {
        let (input_schema, strict) = match self.enforceable(tool) {
            Some(schema) => (schema, true),
            None => (self.loose(tool), false),
        };
        wire::Tool {
            name: wire_name(self.names, &tool.name),
            description: Cow::Borrowed(&tool.description),
            input_schema,
            strict,
            cache_control: None,
        }
    }

    /// The schema of a tool whose input is not held to it.
    fn loose(&mut self, tool: &Arc<ToolDefinition>) -> Written {
        let loose = LOOSE.of(tool, (), Loose::of);
        if loose.reshapes {
            self.reshaped.insert(tool, Dialect::Anthropic);
        }
        self.warnings.extend(loose.warning.clone());
        loose.schema.clone()
    }

    /// The schema of a tool whose input can be held to it within the limits.
    fn enforceable(&mut self, tool: &Arc<ToolDefinition>) -> Option<Written> {
        if !self.strict {
            return None;
        }
        let enforced = ENFORCED.of(tool, (), Enforced::of);
        let Some(enforced) = &*enforced else {
            return None;
        };
        let (tools, optional, unions) = self.left;
        self.left = (
            tools.checked_sub(1)?,
            optional.checked_sub(enforced.optional)?,
            unions.checked_sub(enforced.unions)?,
        );
        if enforced.reshapes {
            self.reshaped.insert(tool, Dialect::AnthropicStrict);
        }
        Some(enforced.schema.clone())
    }

    fn unenforced(&mut self, message: &str) {
        let warning = Warning::new(WarningKind::OptionDropped, message);
        self.warnings.push(warning);
    }
}

/// The name of a tool as it is sent.
pub(crate) fn wire_name<'a>(names: &ToolNames, name: &'a str) -> Cow<'a, str> {
    match names.wire(name) {
        same if same == name => Cow::Borrowed(name),
        other => Cow::Owned(other.into_owned()),
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;

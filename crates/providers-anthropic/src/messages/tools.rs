//! Tools and which of them may or must be used.

use std::borrow::Cow;

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ToolChoice, ToolChoiceOutcome,
    ToolDefinition, Warning, WarningKind,
};

use super::wire;
use crate::{options::MessagesOptions, schema};

/// Bytes of a tool's name at most.
const MAX_NAME: usize = 128;
/// Strict tools in one request at most, and properties that may be missing and values of several
/// types in all of them together: "Too many strict tools", camel#4171.
const STRICT_LIMITS: (usize, usize, usize) = (20, 24, 16);

/// The tools as they are declared, and the choice as it is sent.
#[derive(Debug)]
pub(crate) struct Tools<'a> {
    pub(crate) declared: Vec<wire::Tool<'a>>,
    pub(crate) choice: Option<wire::ToolChoice<'a>>,
    pub(crate) outcome: ToolChoiceOutcome,
}

/// Maps the tools and the choice among them. `thinks_with_budget`: the request asks for thinking of
/// type `enabled`, with which the API refuses a forced choice.
pub(crate) fn tools<'a>(
    request: &'a ChatRequest,
    provider: &str,
    capabilities: &ModelCapabilities,
    options: &MessagesOptions,
    thinks_with_budget: bool,
    warnings: &mut Vec<Warning>,
) -> Result<Tools<'a>, ModelError> {
    let invalid = |field: &str, message: &str| {
        let field = Some(field.to_owned());
        let kind = ModelErrorKind::InvalidRequest { field };
        ModelError::new(provider, kind, message)
    };
    if let Some(index) = request.tools.iter().position(|tool| !is_name(&tool.name)) {
        let message = format!(
            "tool name `{}` is not 1 to {MAX_NAME} of A-Z, a-z, 0-9, `_` and `-`",
            request.tools[index].name
        );
        return Err(invalid(&format!("tools[{index}].name"), &message));
    }
    let forced = forced(request).map_err(|message| invalid("tool_choice", &message))?;
    if request.tools.is_empty() {
        // The API refuses `tool_choice` without `tools`.
        return match forced {
            Some(_) => Err(invalid(
                "tool_choice",
                "a tool is required but none is declared",
            )),
            None => Ok(Tools {
                declared: Vec::new(),
                choice: None,
                outcome: ToolChoiceOutcome::Native,
            }),
        };
    }
    if capabilities.tools == Some(false) {
        if request.tool_choice == ToolChoice::None {
            return Ok(Tools {
                declared: Vec::new(),
                choice: None,
                outcome: emulated("no tools were sent to a model that has none"),
            });
        }
        let feature = "tool use by this model".to_owned();
        let kind = ModelErrorKind::Unsupported { feature };
        return Err(ModelError::new(provider, kind, ""));
    }
    let mut declare = Declare {
        request,
        strict: options.strict_tools && capabilities.structured_output != Some(false),
        left: STRICT_LIMITS,
        warnings,
    };
    if options.strict_tools && !declare.strict {
        declare.unenforced("this model holds no tool input to its schema (`strict`)");
    }
    let disable_parallel_tool_use = request.parallel_tool_use == Some(false);
    Ok(match forced {
        None if request.tool_choice == ToolChoice::None => Tools {
            declared: declare.all(None),
            choice: Some(wire::ToolChoice::None),
            outcome: ToolChoiceOutcome::Native,
        },
        None => Tools {
            declared: declare.all(None),
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
fn forced(request: &ChatRequest) -> Result<Option<Vec<&str>>, String> {
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
        if !declares(request, name) {
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
            declared: declare.all(Some(allowed)),
            choice: Some(wire::ToolChoice::Auto {
                disable_parallel_tool_use,
            }),
            outcome: ToolChoiceOutcome::Relaxed {
                why: why.to_owned(),
            },
        };
    }
    let tools = &declare.request.tools;
    let all = allowed.is_empty() || tools.iter().all(|it| allowed.contains(&&*it.name));
    match allowed {
        [name] => Tools {
            declared: declare.all(None),
            choice: Some(wire::ToolChoice::Tool {
                name,
                disable_parallel_tool_use,
            }),
            outcome: ToolChoiceOutcome::Native,
        },
        _ => Tools {
            declared: declare.all((!all).then_some(allowed)),
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

struct Declare<'a, 'm> {
    request: &'a ChatRequest,
    strict: bool,
    /// What the API's limits leave: tools, optional properties, unions.
    left: (usize, usize, usize),
    warnings: &'m mut Vec<Warning>,
}

impl<'a> Declare<'a, '_> {
    /// The tools on the wire: those of `only` if that names any.
    fn all(&mut self, only: Option<&[&str]>) -> Vec<wire::Tool<'a>> {
        let only = only.filter(|names| !names.is_empty());
        let tools: Vec<&'a ToolDefinition> = self
            .request
            .tools
            .iter()
            .map(AsRef::as_ref)
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

    fn one(&mut self, tool: &'a ToolDefinition) -> wire::Tool<'a> {
        let (input_schema, taken_out) = schema::input_schema(&tool.input_schema);
        let mut declared = wire::Tool {
            name: &tool.name,
            description: Cow::Borrowed(&tool.description),
            input_schema,
            strict: false,
        };
        if let Some(taken_out) = taken_out {
            let paragraph = if tool.description.is_empty() {
                ""
            } else {
                "\n\n"
            };
            declared.description = Cow::Owned(format!(
                "{}{paragraph}The input must also be valid against this JSON Schema: {taken_out}",
                tool.description
            ));
            let message = format!(
                "the root of the input schema of `{}` combines schemas, which this wire does not \
                 take: that part was sent in the description",
                tool.name
            );
            let warning = Warning::new(WarningKind::PartDowngraded, message);
            self.warnings.push(warning);
        } else if self.strict
            && let Some(schema) = self.enforceable(tool)
        {
            declared.input_schema = Cow::Owned(schema);
            declared.strict = true;
        }
        declared
    }

    /// The schema of a tool whose input can be held to it within the limits.
    fn enforceable(&mut self, tool: &ToolDefinition) -> Option<serde_json::Value> {
        let strict = schema::strict(&tool.input_schema).filter(|it| it.unenforced.is_empty())?;
        let (tools, optional, unions) = self.left;
        self.left = (
            tools.checked_sub(1)?,
            optional.checked_sub(strict.optional)?,
            unions.checked_sub(strict.unions)?,
        );
        Some(strict.schema)
    }

    fn unenforced(&mut self, message: &str) {
        let warning = Warning::new(WarningKind::OptionDropped, message);
        self.warnings.push(warning);
    }
}

/// Whether the API takes it as the name of a tool: `[a-zA-Z0-9_-]{1,128}`.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_name_byte)
}

/// A name out of history as the API takes it. A model may have called a tool that does not exist
/// under a name that cannot; the call must still be told.
pub(crate) fn as_name(name: &str) -> Cow<'_, str> {
    if is_name(name) {
        return Cow::Borrowed(name);
    }
    let legal = |c: char| {
        if c.is_ascii() && is_name_byte(c as u8) {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().take(MAX_NAME).map(legal).collect();
    Cow::Owned(if name.is_empty() {
        "unnamed".to_owned()
    } else {
        name
    })
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;

//! Tools and which of them may or must be used, the same for both wires but for the form in which they
//! write it.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ReasoningEffort, ToolChoice,
    ToolChoiceOutcome, ToolDefinition, Warning, WarningKind,
};

use crate::{
    parameters::parameters,
    profile::{ForcedToolChoice, Profile},
};

/// Bytes of a function's or a schema's name at most.
const MAX_NAME: usize = 64;

/// The tools as they are declared, and the choice as it is sent.
#[derive(Debug)]
pub(crate) struct Tools<'a> {
    pub(crate) declared: Vec<Function<'a>>,
    pub(crate) choice: Option<Choice<'a>>,
    pub(crate) outcome: ToolChoiceOutcome,
}

/// A tool as it is declared.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    pub(crate) parameters: Cow<'a, Value>,
}

/// A choice as it is sent.
#[derive(Debug)]
pub(crate) enum Choice<'a> {
    /// `none`, `auto` or `required`.
    Mode(&'static str),
    /// This one must be called.
    Function(&'a str),
    /// One or more of these must be called.
    Allowed(Vec<&'a str>),
}

/// Maps the tools and the choice among them. `name_field` is where a tool's name stands on the wire.
pub(crate) fn tools<'a>(
    request: &'a ChatRequest,
    provider: &str,
    name_field: &str,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> Result<Tools<'a>, ModelError> {
    for (index, tool) in request.tools.iter().enumerate() {
        if !is_name(&tool.name) {
            return Err(invalid(
                provider,
                &format!("tools[{index}].{name_field}"),
                format!(
                    "tool name `{}` is not 1 to {MAX_NAME} of A-Z, a-z, 0-9, `_` and `-`",
                    tool.name
                ),
            ));
        }
    }
    let forced = forced(request, provider)?;
    if request.tools.is_empty() {
        // The API refuses `tool_choice` without `tools`.
        return Ok(Tools {
            declared: Vec::new(),
            choice: None,
            outcome: ToolChoiceOutcome::Native,
        });
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
    Ok(match forced {
        None => Tools {
            declared: declared(request, None, profile, warnings),
            choice: Some(Choice::Mode(if request.tool_choice == ToolChoice::None {
                "none"
            } else {
                "auto"
            })),
            outcome: ToolChoiceOutcome::Native,
        },
        Some(allowed) => force(request, &allowed, capabilities, profile, warnings),
    })
}

/// The choice that must be made, if one must: among these, or among all tools if there are none.
///
/// Fails with [`ModelErrorKind::InvalidRequest`] if it speaks of a tool that is not declared.
pub(crate) fn forced<'a>(
    request: &'a ChatRequest,
    provider: &str,
) -> Result<Option<Vec<&'a str>>, ModelError> {
    let fault = |message: String| Err(invalid(provider, "tool_choice", message));
    let allowed = match &request.tool_choice {
        ToolChoice::Auto | ToolChoice::None => return Ok(None),
        ToolChoice::Required => Vec::new(),
        ToolChoice::Only(names) => {
            if let Some(name) = names.iter().find(|name| !declares(request, name)) {
                return fault(format!("no tool named `{name}` is declared"));
            }
            if names.is_empty() {
                return fault("a choice among no tools; say `none` for no tool".to_owned());
            }
            let mut allowed: Vec<&'a str> = Vec::with_capacity(names.len());
            for name in names {
                if !allowed.contains(&name.as_str()) {
                    allowed.push(name);
                }
            }
            allowed
        }
    };
    if request.tools.is_empty() {
        return fault("a tool is required but none is declared".to_owned());
    }
    Ok(Some(allowed))
}

fn invalid(provider: &str, field: &str, message: String) -> ModelError {
    let field = Some(field.to_owned());
    ModelError::new(provider, ModelErrorKind::InvalidRequest { field }, message)
}

/// A choice that must be made: any of `allowed`, or of all tools if that is empty.
fn force<'a>(
    request: &'a ChatRequest,
    allowed: &[&'a str],
    capabilities: &ModelCapabilities,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> Tools<'a> {
    let refused = match profile.forced_tool_choice {
        ForcedToolChoice::Refused => true,
        ForcedToolChoice::RefusedWhileReasoning => {
            !matches!(request.reasoning, None | Some(ReasoningEffort::None))
        }
        ForcedToolChoice::Enforced | ForcedToolChoice::Unenforced => false,
    } || capabilities.forced_tool_choice == Some(false);
    if refused {
        let why = "this model takes no forced tool choice; it was left free to answer without";
        return Tools {
            declared: declared(request, Some(allowed), profile, warnings),
            choice: Some(Choice::Mode("auto")),
            outcome: relaxed(why, warnings),
        };
    }
    let all = allowed.is_empty() || request.tools.iter().all(|it| allowed.contains(&&*it.name));
    let (choice, native) = match allowed {
        [name] if profile.named_tool_choice => (Choice::Function(name), true),
        names if !all && names.len() > 1 && profile.allowed_tools => {
            (Choice::Allowed(names.to_vec()), true)
        }
        _ => (Choice::Mode("required"), all),
    };
    let outcome = if profile.forced_tool_choice == ForcedToolChoice::Unenforced {
        let why = format!(
            "{} may answer without the tool it was told to use",
            profile.name
        );
        relaxed(&why, warnings)
    } else {
        let narrowed = "only the allowed tools were sent, and one of them was required";
        let quiet = "reasoning was switched off: a forced tool choice is refused while it lasts";
        match (native, switches_reasoning_off(request, profile)) {
            (true, false) => ToolChoiceOutcome::Native,
            (true, true) => emulated(quiet),
            (false, false) => emulated(narrowed),
            (false, true) => emulated(&format!("{narrowed}; {quiet}")),
        }
    };
    Tools {
        declared: declared(request, (!native).then_some(allowed), profile, warnings),
        choice: Some(choice),
        outcome,
    }
}

/// Whether a forced tool choice is what switches reasoning off in an answer. A wish for reasoning
/// beats the choice, which is then relaxed.
pub(crate) fn switches_reasoning_off(request: &ChatRequest, profile: &Profile) -> bool {
    let forced = matches!(
        request.tool_choice,
        ToolChoice::Required | ToolChoice::Only(_)
    );
    let refused = profile.forced_tool_choice == ForcedToolChoice::RefusedWhileReasoning;
    forced && refused && request.reasoning.is_none()
}

fn emulated(how: &str) -> ToolChoiceOutcome {
    ToolChoiceOutcome::Emulated {
        how: how.to_owned(),
    }
}

fn relaxed(why: &str, warnings: &mut Vec<Warning>) -> ToolChoiceOutcome {
    warnings.push(Warning::new(WarningKind::ToolChoiceRelaxed, why));
    ToolChoiceOutcome::Relaxed {
        why: why.to_owned(),
    }
}

fn declares(request: &ChatRequest, name: &str) -> bool {
    request.tools.iter().any(|tool| tool.name == *name)
}

/// The tools on the wire: those of `only` if that names any.
fn declared<'a>(
    request: &'a ChatRequest,
    only: Option<&[&str]>,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> Vec<Function<'a>> {
    let only = only.filter(|names| !names.is_empty());
    request
        .tools
        .iter()
        .filter(|tool| only.is_none_or(|names| names.contains(&&*tool.name)))
        .map(|tool| function(tool, profile, warnings))
        .collect()
}

fn function<'a>(
    tool: &'a ToolDefinition,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> Function<'a> {
    let (parameters, refused) = parameters(&tool.input_schema, profile.root_combinators);
    if let Some(keyword) = refused {
        let message = format!(
            "the schema of tool `{}` has `{keyword}` at its root, which is refused: what it allows \
             was sent as one object",
            tool.name
        );
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    }
    Function {
        name: &tool.name,
        description: &tool.description,
        parameters,
    }
}

/// Whether the API takes it as the name of a function or a schema: `[A-Za-z0-9_-]{1,64}`.
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

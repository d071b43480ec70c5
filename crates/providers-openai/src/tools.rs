//! Tools and which of them may or must be used, the same for both wires but for the form in which they
//! write it.

use std::{borrow::Cow, sync::Arc};

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ReasoningEffort, ToolChoice,
    ToolChoiceOutcome, ToolDefinition, Warning, WarningKind,
};
use switchboard_providers_common::{
    schema::Written,
    tool_names::{NameRule, ToolNames},
};

use crate::{
    built_in::{BuiltIn, Named},
    profile::{ForcedToolChoice, Profile},
    reshaped::Reshaped,
    schema::kept_parameters,
};

/// The names that the API takes, of functions and of schemas.
pub(crate) const NAME_RULE: NameRule = NameRule::OPENAI;
/// The field of a choice.
const CHOICE: &str = "tool_choice";

/// The tools as they are declared, and the choice as it is sent.
#[derive(Debug)]
pub(crate) struct Tools<'a> {
    pub(crate) declared: Vec<Function<'a>>,
    /// The wire's own.
    pub(crate) built_in: Vec<BuiltIn<'a>>,
    pub(crate) choice: Option<Choice<'a>>,
    pub(crate) outcome: ToolChoiceOutcome,
    /// The tools among them whose input comes in another shape.
    pub(crate) reshaped: Reshaped,
}

/// A tool as it is declared.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) description: &'a str,
    pub(crate) parameters: Written,
    /// Calls are held to the parameters.
    pub(crate) strict: bool,
}

/// A choice as it is sent.
#[derive(Debug)]
pub(crate) enum Choice<'a> {
    /// `none`, `auto` or `required`.
    Mode(&'static str),
    /// This one must be called.
    One(Named<'a>),
    /// One or more of these must be called.
    Allowed(Vec<Named<'a>>),
}

/// Maps the tools and the choice among them, the wire's own included.
pub(crate) fn tools<'a>(
    request: &'a ChatRequest,
    provider: &str,
    built_in: Vec<BuiltIn<'a>>,
    names: &ToolNames,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    warnings: &mut Vec<Warning>,
) -> Result<Tools<'a>, ModelError> {
    let forced = among(request, &built_in, provider)?;
    let has_functions = capabilities.tools != Some(false);
    if !request.tools.is_empty() && !has_functions && request.tool_choice != ToolChoice::None {
        let feature = "tool use by this model".to_owned();
        let kind = ModelErrorKind::Unsupported { feature };
        return Err(ModelError::new(provider, kind, ""));
    }
    let mut offer = Offer {
        functions: request.tools.iter().filter(|_| has_functions).collect(),
        built_in,
        request,
        names,
        capabilities,
        profile,
        warnings,
    };
    // What the caller's own fields say under the same name takes the place of ours.
    let is_theirs = |name: &str| {
        let mut own = offer.built_in.iter();
        own.any(|it| matches!(&it.named, Named::Function(own) if own == name))
    };
    offer.functions.retain(|tool| !is_theirs(&tool.name));
    let (choice, outcome) = match forced {
        // The API refuses `tool_choice` without `tools`.
        _ if offer.functions.is_empty() && offer.built_in.is_empty() => {
            let outcome = if request.tools.is_empty() {
                ToolChoiceOutcome::Native
            } else {
                emulated("no tools were sent to a model that has none")
            };
            (None, outcome)
        }
        None => {
            let is_none = request.tool_choice == ToolChoice::None;
            let mode = if is_none { "none" } else { "auto" };
            (Some(Choice::Mode(mode)), ToolChoiceOutcome::Native)
        }
        Some(allowed) => {
            let (choice, outcome) = offer.force(&allowed);
            (Some(choice), outcome)
        }
    };
    let outcome = if request.extra.contains_key(CHOICE) && request.tool_choice != ToolChoice::Auto {
        let why = "`tool_choice` of the caller's own fields was sent in its place";
        relaxed(why, offer.warnings)
    } else {
        outcome
    };
    Ok(offer.declared(choice, outcome))
}

/// The choice that must be made among the declared tools, if one must: among these, or among all
/// tools if there are none.
///
/// Fails with [`ModelErrorKind::InvalidRequest`] if it speaks of a tool that is not declared.
pub(crate) fn forced<'a>(
    request: &'a ChatRequest,
    provider: &str,
) -> Result<Option<Vec<&'a str>>, ModelError> {
    among(request, &[], provider)
}

/// As [`forced`], with the caller's own tools among which may be chosen too.
fn among<'a>(
    request: &'a ChatRequest,
    built_in: &[BuiltIn<'_>],
    provider: &str,
) -> Result<Option<Vec<&'a str>>, ModelError> {
    let fault = |message: String| Err(invalid(provider, CHOICE, message));
    let is_declared = |name: &str| {
        let function = request.tools.iter().any(|tool| tool.name == name);
        function || built_in.iter().any(|it| it.is_called(name))
    };
    let allowed = match &request.tool_choice {
        ToolChoice::Auto | ToolChoice::None => return Ok(None),
        ToolChoice::Required => Vec::new(),
        ToolChoice::Only(names) => {
            if let Some(name) = names.iter().find(|name| !is_declared(name)) {
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
    if request.tools.is_empty() && built_in.is_empty() {
        return fault("a tool is required but none is declared".to_owned());
    }
    Ok(Some(allowed))
}

pub(crate) fn invalid(provider: &str, field: &str, message: String) -> ModelError {
    let field = Some(field.to_owned());
    ModelError::new(provider, ModelErrorKind::InvalidRequest { field }, message)
}

/// What the model is offered.
struct Offer<'a, 'm> {
    functions: Vec<&'a Arc<ToolDefinition>>,
    built_in: Vec<BuiltIn<'a>>,
    request: &'a ChatRequest,
    names: &'m ToolNames,
    capabilities: &'m ModelCapabilities,
    profile: &'m Profile,
    warnings: &'m mut Vec<Warning>,
}

impl<'a> Offer<'a, '_> {
    /// A choice that must be made: any of `allowed`, or of all tools if that is empty. Where the wire
    /// cannot say it, only the allowed tools stay.
    fn force(&mut self, allowed: &[&'a str]) -> (Choice<'a>, ToolChoiceOutcome) {
        let (request, profile) = (self.request, self.profile);
        let refused = match profile.forced_tool_choice {
            ForcedToolChoice::Refused => true,
            ForcedToolChoice::RefusedWhileReasoning => {
                !matches!(request.reasoning, None | Some(ReasoningEffort::None))
            }
            ForcedToolChoice::Enforced | ForcedToolChoice::Unenforced => false,
        } || self.capabilities.forced_tool_choice == Some(false);
        if refused {
            self.narrow(allowed);
            let why = "this model takes no forced tool choice; it was left free to answer without";
            return (Choice::Mode("auto"), relaxed(why, self.warnings));
        }
        let named: Vec<Named<'a>> = allowed.iter().map(|name| self.named(name)).collect();
        let is_allowed = |name: &str| allowed.contains(&name);
        let all = allowed.is_empty()
            || (self.functions.iter().all(|it| is_allowed(&it.name))
                && self.built_in.iter().all(|it| self.means(allowed, it)));
        let (choice, native) = match named.as_slice() {
            [one] if profile.named_tool_choice && one.is_choice() => {
                (Choice::One(one.clone()), true)
            }
            _ if !all && profile.allowed_tools => (Choice::Allowed(named), true),
            _ => (Choice::Mode("required"), all),
        };
        let outcome = if profile.forced_tool_choice == ForcedToolChoice::Unenforced {
            let why = format!(
                "{} may answer without the tool it was told to use",
                profile.name
            );
            relaxed(&why, self.warnings)
        } else {
            let narrowed = "only the allowed tools were sent, and one of them was required";
            let quiet =
                "reasoning was switched off: a forced tool choice is refused while it lasts";
            match (native, switches_reasoning_off(request, profile)) {
                (true, false) => ToolChoiceOutcome::Native,
                (true, true) => emulated(quiet),
                (false, false) => emulated(narrowed),
                (false, true) => emulated(&format!("{narrowed}; {quiet}")),
            }
        };
        if !native {
            self.narrow(allowed);
        }
        (choice, outcome)
    }

    /// What a name means.
    fn named(&self, name: &'a str) -> Named<'a> {
        let own = self.built_in.iter().find(|it| self.means(&[name], it));
        match own {
            Some(own) => own.named.clone(),
            None => Named::Function(wire_name(self.names, name)),
        }
    }

    /// Whether one of the names means that tool of the wire's own; a function of its name comes first.
    fn means(&self, names: &[&str], tool: &BuiltIn<'_>) -> bool {
        let is_function = |name: &str| self.functions.iter().any(|it| it.name == name);
        let mut called = names.iter().filter(|name| tool.is_called(name));
        called.any(|name| !is_function(name))
    }

    /// Leaves the tools of these names, or all if there are none.
    fn narrow(&mut self, names: &[&str]) {
        if !names.is_empty() {
            let mut built_in = std::mem::take(&mut self.built_in);
            built_in.retain(|it| self.means(names, it));
            self.built_in = built_in;
            self.functions.retain(|it| names.contains(&&*it.name));
        }
    }

    fn declared(self, choice: Option<Choice<'a>>, outcome: ToolChoiceOutcome) -> Tools<'a> {
        let mut reshaped = Reshaped::default();
        let declared = self.functions.into_iter().map(|tool| {
            let sent = kept_parameters(tool, self.profile);
            self.warnings.extend_from_slice(&sent.warnings);
            if sent.reshapes {
                reshaped.insert(tool);
            }
            Function {
                name: wire_name(self.names, &tool.name),
                description: &tool.description,
                parameters: sent.schema.clone(),
                strict: sent.strict,
            }
        });
        Tools {
            declared: declared.collect(),
            built_in: self.built_in,
            choice,
            outcome,
            reshaped,
        }
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

/// The name of a tool on the wire, and its own where that is one the API takes.
pub(crate) fn wire_name<'a>(names: &ToolNames, name: &'a str) -> Cow<'a, str> {
    if !names.any_changed() {
        // Those of the request are all there are.
        return Cow::Borrowed(name);
    }
    match names.wire(name) {
        Cow::Borrowed(same) if same == name => Cow::Borrowed(name),
        alias => Cow::Owned(alias.into_owned()),
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;

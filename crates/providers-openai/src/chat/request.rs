//! Domain → wire.

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ReasoningEffort,
    ResponseFormat, ToolChoiceOutcome, Warning, WarningKind,
};

use super::{
    calls::LocalIds,
    messages::messages,
    tools::{Tools, is_name, switches_reasoning_off, tools},
    wire::{self, Body},
};
use crate::{
    capabilities::Series,
    profile::{MaxTokensField, Profile, ReasoningControl, SeedField},
    strict::is_strict,
};

/// A request as it is sent, and what is not the same in it as in the domain's.
#[derive(Debug)]
pub struct WireRequest<'a> {
    /// The body. It borrows every text from the domain request.
    pub body: Body<'a>,
    /// What became of the tool choice.
    pub tool_choice: ToolChoiceOutcome,
    /// What could not be said on this wire.
    pub warnings: Vec<Warning>,
    /// The ids that the conversation has used up.
    pub local_ids: LocalIds,
}

/// Maps a request for `model`, as a stream where the server streams such an answer.
///
/// `capabilities` decides what is left out with a warning because the model is *known* not to take
/// it; `profile` says how the server differs from others.
///
/// Fails with [`ModelErrorKind::InvalidRequest`], naming the field, when a tool's name cannot be
/// said on this wire or the tool choice speaks of a tool that is not declared, and with
/// [`ModelErrorKind::Unsupported`] when tools are declared to a model that is known to have none.
pub fn to_wire<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    capabilities: &ModelCapabilities,
    profile: &Profile,
) -> Result<WireRequest<'a>, ModelError> {
    let mut warnings = Vec::new();
    let Tools {
        declared,
        choice,
        outcome,
    } = tools(
        request,
        &model.provider,
        capabilities,
        profile,
        &mut warnings,
    )?;
    let messages = messages(request, model, capabilities, profile, &mut warnings);
    let response_format = response_format(request, model, capabilities, &mut warnings)?;
    let mut options = Options {
        series: Series::of(&model.name).filter(|_| profile.openai_models),
        request,
        model,
        capabilities,
        warnings: &mut warnings,
    };
    let effort = match options.reasoning_effort(profile, !declared.is_empty()) {
        None if switches_reasoning_off(request, profile) => Some("none"),
        effort => effort,
    };
    let (reasoning_effort, thinking) = match (profile.reasoning_control, effort) {
        (ReasoningControl::EffortAndThinking, Some("none")) => (None, Some(wire::Thinking::OFF)),
        (_, effort) => (effort, None),
    };
    let (temperature, top_p) = options.sampling(effort);
    let stop = options.stop();
    let parallel_tool_calls = options.parallel(profile, !declared.is_empty());
    options.extra();
    let (max_completion_tokens, max_tokens) = match profile.max_tokens_field {
        MaxTokensField::MaxCompletionTokens => (request.max_output_tokens, None),
        MaxTokensField::MaxTokens => (None, request.max_output_tokens),
    };
    let (seed, random_seed) = match profile.seed_field {
        SeedField::Seed => (request.sampling.seed, None),
        SeedField::RandomSeed => (None, request.sampling.seed),
    };
    let stream = profile.streams_schemas || response_format.is_none();
    let body = Body {
        model: &model.name,
        messages,
        tools: declared,
        tool_choice: choice,
        parallel_tool_calls,
        response_format,
        max_completion_tokens,
        max_tokens,
        temperature,
        top_p,
        stop,
        seed,
        random_seed,
        reasoning_effort,
        thinking,
        stream,
        stream_options: (stream && profile.stream_options).then_some(wire::StreamOptions {
            include_usage: true,
        }),
        extra: &request.extra,
    };
    Ok(WireRequest {
        body,
        tool_choice: outcome,
        warnings,
        local_ids: LocalIds::after(request),
    })
}

/// The options that not every model takes.
struct Options<'a, 'm> {
    /// The model's series, where OpenAI's own models are served.
    series: Option<Series>,
    request: &'a ChatRequest,
    model: &'m ModelId,
    capabilities: &'m ModelCapabilities,
    warnings: &'m mut Vec<Warning>,
}

impl<'a> Options<'a, '_> {
    fn reasoning_effort(&mut self, profile: &Profile, with_tools: bool) -> Option<&'static str> {
        let wanted = self.request.reasoning.map(effort);
        let name = &self.model.name;
        if let Some(reasoning) = self.series.and_then(Series::reasoning)
            && reasoning.excludes_tools
            && reasoning.can_be_off
            && with_tools
        {
            // Without the field the default applies, and where that reasons it is refused as well.
            let said = wanted.is_some() || !reasoning.off_by_default;
            if said && wanted != Some("none") {
                self.dropped(&format!(
                    "{name} does not reason in this answer: Chat Completions refuses function \
                     tools to it while it does, the Responses API does not"
                ));
            }
            return said.then_some("none");
        }
        if wanted.is_some() && profile.reasoning_control == ReasoningControl::None {
            self.dropped(&format!("{} takes no reasoning_effort", profile.name));
            return None;
        }
        if wanted.is_some() && self.capabilities.reasoning == Some(false) {
            self.dropped(&format!("{name} does not reason: no reasoning_effort"));
            return None;
        }
        if wanted == Some("none")
            && let Some(reasoning) = self.series.and_then(Series::reasoning)
            && !reasoning.can_be_off
        {
            self.dropped(&format!("reasoning cannot be switched off in {name}"));
            return None;
        }
        wanted
    }

    /// Temperature and `top_p`: refused by reasoning models unless their effort is `none`.
    fn sampling(&mut self, effort: Option<&str>) -> (Option<f64>, Option<f64>) {
        let sampling = &self.request.sampling;
        let reasons = self
            .series
            .and_then(Series::reasoning)
            .is_some_and(|it| match effort {
                Some(effort) => effort != "none",
                None => !it.off_by_default,
            });
        let refused = reasons || self.capabilities.sampling == Some(false);
        let mut keep = |name: &str, value: Option<f64>| {
            // 1 is what holds anyway.
            let lost = refused && value.is_some_and(|value| (value - 1.0).abs() > f64::EPSILON);
            if lost {
                self.dropped(&format!("{} takes no {name}", self.model.name));
            }
            value.filter(|_| !refused)
        };
        (
            keep("temperature", sampling.temperature),
            keep("top_p", sampling.top_p),
        )
    }

    fn stop(&mut self) -> &'a [String] {
        let stop = &self.request.sampling.stop;
        if !stop.is_empty() && self.series.is_some_and(Series::refuses_stop) {
            self.dropped(&format!("{} takes no stop sequences", self.model.name));
            return &[];
        }
        stop
    }

    fn parallel(&mut self, profile: &Profile, with_tools: bool) -> Option<bool> {
        let wanted = self.request.parallel_tool_use.filter(|_| with_tools)?;
        if !profile.parallel_tool_calls {
            self.dropped(&format!("{} takes no parallel_tool_calls", profile.name));
            return None;
        }
        if self.capabilities.parallel_tools == Some(false) {
            // It calls one tool at a time, and refuses to be asked about it.
            if wanted {
                self.dropped(&format!("{} calls one tool at a time", self.model.name));
            }
            return None;
        }
        Some(wanted)
    }

    fn extra(&mut self) {
        if self.request.extra.contains_key(wire::STREAM) {
            self.dropped("`stream` cannot be set: the answer is read as it is asked for");
        }
    }

    fn dropped(&mut self, message: &str) {
        let warning = Warning::new(WarningKind::OptionDropped, message);
        self.warnings.push(warning);
    }
}

fn effort(effort: ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::None => "none",
        ReasoningEffort::Low => "low",
        ReasoningEffort::High => "high",
        // `Medium`, and a level that this adapter does not know yet.
        _ => "medium",
    }
}

fn response_format<'a>(
    request: &'a ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    warnings: &mut Vec<Warning>,
) -> Result<Option<wire::ResponseFormat<'a>>, ModelError> {
    let unsupported = |feature: &str| {
        let feature = feature.to_owned();
        let kind = ModelErrorKind::Unsupported { feature };
        ModelError::new(&model.provider, kind, "")
    };
    let (name, schema) = match &request.response_format {
        ResponseFormat::Text => return Ok(None),
        ResponseFormat::JsonSchema { name, schema } => (name, schema),
        _ => return Err(unsupported("this response format")),
    };
    if capabilities.structured_output == Some(false) {
        return Err(unsupported("an answer in the form of a JSON Schema"));
    }
    if !is_name(name) {
        let field = Some("response_format.json_schema.name".to_owned());
        return Err(ModelError::new(
            &model.provider,
            ModelErrorKind::InvalidRequest { field },
            format!("schema name `{name}` is not 1 to 64 of A-Z, a-z, 0-9, `_` and `-`"),
        ));
    }
    let strict = is_strict(schema);
    if !strict {
        let message = format!(
            "schema `{name}` is outside the strict subset (every object closed, every property \
             required): the answer may differ from it"
        );
        warnings.push(Warning::new(WarningKind::OptionDropped, message));
    }
    Ok(Some(wire::ResponseFormat::JsonSchema {
        json_schema: wire::JsonSchema {
            name,
            schema,
            strict,
        },
    }))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

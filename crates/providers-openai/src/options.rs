//! Options that not every model or server takes, the same for both wires.

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ReasoningEffort,
    ResponseFormat, Warning, WarningKind,
};

use crate::{
    capabilities::Series,
    fields::STREAM,
    profile::{Profile, ReasoningControl},
    reshaped::Reshaped,
    schema::{self, Sent},
    tools::NAME_RULE,
};

/// The options that not every model takes.
pub(crate) struct Options<'a, 'm> {
    /// The model's series, where OpenAI's own models are served.
    series: Option<Series>,
    request: &'a ChatRequest,
    model: &'m ModelId,
    capabilities: &'m ModelCapabilities,
    warnings: &'m mut Vec<Warning>,
}

impl<'a, 'm> Options<'a, 'm> {
    pub(crate) fn new(
        request: &'a ChatRequest,
        model: &'m ModelId,
        capabilities: &'m ModelCapabilities,
        profile: &Profile,
        warnings: &'m mut Vec<Warning>,
    ) -> Self {
        Self {
            series: Series::of(&model.name).filter(|_| profile.openai_models),
            request,
            model,
            capabilities,
            warnings,
        }
    }

    pub(crate) fn reasoning_effort(
        &mut self,
        profile: &Profile,
        with_tools: bool,
    ) -> Option<&'static str> {
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
    pub(crate) fn sampling(&mut self, effort: Option<&str>) -> (Option<f64>, Option<f64>) {
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

    pub(crate) fn stop(&mut self) -> &'a [String] {
        let stop = &self.request.sampling.stop;
        if !stop.is_empty() && self.series.is_some_and(Series::refuses_stop) {
            self.dropped(&format!("{} takes no stop sequences", self.model.name));
            return &[];
        }
        stop
    }

    pub(crate) fn parallel(&mut self, profile: &Profile, with_tools: bool) -> Option<bool> {
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

    pub(crate) fn extra(&mut self) {
        if self.request.extra.contains_key(STREAM) {
            self.dropped("`stream` cannot be set: the answer is read as it is asked for");
        }
    }

    pub(crate) fn dropped(&mut self, message: &str) {
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

/// The name and the schema of the answer, if a form is asked for. `field` is where the name stands on
/// the wire. An answer that comes in another shape is noted in `reshaped`.
pub(crate) fn answer_schema<'a>(
    request: &'a ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    field: &str,
    reshaped: &mut Reshaped,
    warnings: &mut Vec<Warning>,
) -> Result<Option<(&'a str, Sent<'a>)>, ModelError> {
    let unsupported = |feature: &str| {
        let feature = feature.to_owned();
        let kind = ModelErrorKind::Unsupported { feature };
        ModelError::new(&*model.provider, kind, "")
    };
    let (name, schema) = match &request.response_format {
        ResponseFormat::Text => return Ok(None),
        ResponseFormat::JsonSchema { name, schema } => (name, schema),
        _ => return Err(unsupported("this response format")),
    };
    if capabilities.structured_output == Some(false) {
        return Err(unsupported("an answer in the form of a JSON Schema"));
    }
    if !NAME_RULE.allows(name) {
        let field = Some(field.to_owned());
        return Err(ModelError::new(
            &*model.provider,
            ModelErrorKind::InvalidRequest { field },
            format!("schema name `{name}` is not 1 to 64 of A-Z, a-z, 0-9, `_` and `-`"),
        ));
    }
    let sent = schema::answer(name, schema, profile, warnings);
    if sent.reshapes {
        reshaped.answer(schema);
    }
    Ok(Some((name, sent)))
}

//! Maps request options that some models do not support, for Chat Completions and Responses.

use switchboard_domain::{
    ChatRequest, ModelCapabilities, ModelError, ModelId, ReasoningEffort, Warning, WarningKind,
};
use switchboard_providers_common::{
    ToolMapping,
    body_fields::STREAM,
    request::{invalid_request, requested_schema},
    schema::Dialect,
};

use crate::{
    capabilities::ModelSeries,
    server_profile::Profile,
    tools::{
        NAME_RULE,
        schema::{self, SentSchema},
    },
};

/// Mapper of request options that not every model supports, such as `temperature`. An unsupported
/// option is dropped with a warning.
pub(crate) struct OptionMapper<'a, 'm> {
    /// Series of the model, such as GPT 5.4, if it is one of OpenAI's own models.
    series: Option<ModelSeries>,
    request: &'a ChatRequest,
    model: &'m ModelId,
    capabilities: &'m ModelCapabilities,
    warnings: &'m mut Vec<Warning>,
}

impl<'a, 'm> OptionMapper<'a, 'm> {
    pub(crate) fn new(
        request: &'a ChatRequest,
        model: &'m ModelId,
        capabilities: &'m ModelCapabilities,
        profile: &Profile,
        warnings: &'m mut Vec<Warning>,
    ) -> Self {
        Self {
            series: ModelSeries::from_model_name(&model.name).filter(|_| profile.openai_models),
            request,
            model,
            capabilities,
            warnings,
        }
    }

    /// Returns the reasoning effort to send, or `None` to omit the field. `with_tools` is whether
    /// the request declares functions: on Chat Completions, some models do not allow reasoning
    /// together with functions.
    pub(crate) fn reasoning_effort(&mut self, with_tools: bool) -> Option<&'static str> {
        let requested = self.request.reasoning.map(effort_name);
        let name = &self.model.name;
        if let Some(reasoning) = self.series.and_then(ModelSeries::reasoning_rules)
            && reasoning.excludes_tools
            && reasoning.can_be_off
            && with_tools
        {
            // The API refuses a request that has both functions and reasoning. A model that reasons
            // by default therefore needs an explicit `none`.
            let is_sent = requested.is_some() || !reasoning.off_by_default;
            if is_sent && requested != Some("none") {
                self.warn_dropped_option(&format!(
                    "{name} does not reason in this answer: Chat Completions does not allow \
                     reasoning with function tools; the Responses API does"
                ));
            }
            return is_sent.then_some("none");
        }
        if requested.is_some() && self.capabilities.reasoning == Some(false) {
            self.warn_dropped_option(&format!("{name} does not support reasoning"));
            return None;
        }
        if requested == Some("none")
            && let Some(reasoning) = self.series.and_then(ModelSeries::reasoning_rules)
            && !reasoning.can_be_off
        {
            self.warn_dropped_option(&format!("reasoning cannot be disabled in {name}"));
            return None;
        }
        requested
    }

    /// Returns the values of `temperature` and `top_p` to send. `effort` is the reasoning effort to
    /// send. While a model reasons, the API refuses both fields: the values are then `None`, with a
    /// warning.
    pub(crate) fn temperature_and_top_p(
        &mut self,
        effort: Option<&str>,
    ) -> (Option<f64>, Option<f64>) {
        let sampling = &self.request.sampling;
        let reasons = self
            .series
            .and_then(ModelSeries::reasoning_rules)
            .is_some_and(|it| match effort {
                Some(effort) => effort != "none",
                None => !it.off_by_default,
            });
        let refused = reasons || self.capabilities.sampling == Some(false);
        let mut accepted = |name: &str, value: Option<f64>| {
            // A dropped value of 1 emits no warning: it is the API's default, so the answer does
            // not change.
            let is_lost = refused && value.is_some_and(|value| (value - 1.0).abs() > f64::EPSILON);
            if is_lost {
                self.warn_dropped_option(&format!("{} does not support {name}", self.model.name));
            }
            value.filter(|_| !refused)
        };
        (
            accepted("temperature", sampling.temperature),
            accepted("top_p", sampling.top_p),
        )
    }

    /// Returns the stop sequences. Drops them with a warning if the model refuses the field `stop`.
    pub(crate) fn stop_sequences(&mut self) -> &'a [String] {
        let stop = &self.request.sampling.stop;
        if !stop.is_empty() && self.series.is_some_and(ModelSeries::refuses_stop_sequences) {
            self.warn_dropped_option(&format!(
                "{} does not support stop sequences",
                self.model.name
            ));
            return &[];
        }
        stop
    }

    /// Returns the value of the field `parallel_tool_calls`, or `None` if the field must not be
    /// sent. `with_tools` is whether the request declares tools.
    pub(crate) fn parallel_tool_calls(&mut self, with_tools: bool) -> Option<bool> {
        let requested = self.request.parallel_tool_use.filter(|_| with_tools)?;
        if self.capabilities.parallel_tools == Some(false) {
            // A model that calls one tool at a time refuses the field, so it is omitted. A warning
            // is necessary only if the caller asked for parallel calls.
            if requested {
                self.warn_dropped_option(&format!("{} calls one tool at a time", self.model.name));
            }
            return None;
        }
        Some(requested)
    }

    /// Warns about a field `stream` in the caller's `extra`, which has no effect.
    pub(crate) fn warn_ignored_stream_field(&mut self) {
        if self.request.extra.contains_key(STREAM) {
            self.warn_dropped_option(
                "`stream` in the extra fields was ignored: the setting for streaming decides",
            );
        }
    }

    pub(crate) fn warn_dropped_option(&mut self, message: &str) {
        let warning = Warning::new(WarningKind::OptionDropped, message);
        self.warnings.push(warning);
    }
}

fn effort_name(effort: ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::None => "none",
        ReasoningEffort::Low => "low",
        ReasoningEffort::High => "high",
        // This arm maps `Medium`, and levels that are added to `ReasoningEffort` later.
        _ => "medium",
    }
}

/// Returns the name and the schema of the structured answer that the request asks for, or `None`
/// for an answer without a schema. If the sent schema gives the answer another shape than the
/// requested schema, configures `tool_mapping` so that it restores the requested shape.
///
/// Fails with `ModelErrorKind::InvalidRequest` if the name is not valid; the error names `field`,
/// the path of the schema name in the request body. Fails with `ModelErrorKind::Unsupported` if the
/// model does not support answers with a schema.
pub(crate) fn answer_schema<'a>(
    request: &'a ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    profile: &Profile,
    field: &str,
    tool_mapping: &mut ToolMapping,
    warnings: &mut Vec<Warning>,
) -> Result<Option<(&'a str, SentSchema<'a>)>, ModelError> {
    let Some((name, schema)) = requested_schema(request, &model.provider, capabilities)? else {
        return Ok(None);
    };
    if !NAME_RULE.allows_name(name) {
        let message = format!(
            "schema name `{name}` must have 1 to 64 characters of A-Z, a-z, 0-9, `_` and `-`"
        );
        return Err(invalid_request(&model.provider, field, message));
    }
    let sent = schema::compile_answer_schema(name, schema, profile, warnings);
    if sent.needs_restore {
        tool_mapping.set_answer_schema(schema, Dialect::OpenAiStrict);
    }
    Ok(Some((name, sent)))
}

//! Domain → wire.

use std::borrow::Cow;

use serde_json::Value;
use switchboard_domain::{
    ChatRequest, Delivery, ModelCapabilities, ModelError, ModelErrorKind, ModelId, ResponseFormat,
    ToolChoiceOutcome, Warning, WarningKind,
};
use switchboard_providers_common::{
    LocalIds,
    tool_names::{NameRule, ToolNames},
};

use super::{
    cache,
    content::{Mapper, container},
    conversation::{Conversation, conversation},
    restore::Reshaped,
    thinking::thinking,
    tools::{Tools, tools},
    wire::{self, Block, Body},
};
use crate::{
    betas,
    options::MessagesOptions,
    rules::{Rules, Sampling, rules},
    schema,
};

/// Output limit where neither the request nor the options say one.
const DEFAULT_MAX_TOKENS: u32 = 32_000;
/// The same for a model of which nothing is known.
const DEFAULT_MAX_TOKENS_UNKNOWN: u32 = 8_192;
/// Properties that may be missing in an enforced answer at most.
const MAX_OPTIONAL: usize = 24;

/// A request as it is sent, and what is not the same in it as in the domain's.
#[derive(Debug)]
pub struct WireRequest<'a> {
    /// The body. It borrows every text from the domain request.
    pub body: Body<'a>,
    /// What has to be in `anthropic-beta`.
    pub betas: Vec<String>,
    /// What became of the tool choice.
    pub tool_choice: ToolChoiceOutcome,
    /// The tools whose names or inputs come in another shape; see [`MessagesDecoder::reshaping`].
    ///
    /// [`MessagesDecoder::reshaping`]: super::MessagesDecoder::reshaping
    pub reshaped: Reshaped,
    /// What could not be said on this wire.
    pub warnings: Vec<Warning>,
    /// The ids that the conversation has used up.
    pub local_ids: LocalIds,
}

/// Maps a request for `model`, as a stream unless it is wanted whole.
///
/// `capabilities` decides what is left out with a warning because the model is *known* not to take
/// it; what the model's name tells beyond that is used too.
///
/// A tool's name that cannot be said on this wire is sent as another one, which leads back.
///
/// Fails with [`ModelErrorKind::InvalidRequest`], naming the field, when there is nothing to answer
/// or the tool choice speaks of a tool that is not declared, and with [`ModelErrorKind::Unsupported`] when tools are declared to a model that is
/// known to have none or an answer in the form of a schema is asked of one that gives none.
pub fn to_wire<'a>(
    request: &'a ChatRequest,
    model: &'a ModelId,
    capabilities: &ModelCapabilities,
    options: &'a MessagesOptions,
) -> Result<WireRequest<'a>, ModelError> {
    let mut warnings = Vec::new();
    let rules = rules(&model.name);
    let replay = options.replay_reasoning;
    let names = ToolNames::of(request, NameRule::ANTHROPIC);
    let mapper = Mapper::new(request, model, &names, capabilities, replay, &mut warnings);
    let conversation = conversation(request, rules, mapper)?;
    let max_tokens = max_tokens(request, model, capabilities, options, &mut warnings);
    let thought = thinking(
        request,
        &model.name,
        capabilities,
        max_tokens,
        conversation.is_in_a_turn_without_thinking(),
        &mut warnings,
    )
    .with_effort(options.effort, &model.name, &mut warnings);
    let thinks_with_budget = thought.has_budget() || extra_thinks_with_budget(request);
    let Tools {
        server,
        declared,
        reshaped,
        choice,
        outcome,
    } = tools(
        request,
        model,
        &names,
        capabilities,
        options,
        thinks_with_budget,
        &mut warnings,
    )?;
    let Conversation {
        mut system,
        leading,
        messages,
    } = conversation;
    let format = response_format(request, model, capabilities, &mut system, &mut warnings)?;
    let mut rest = Rest {
        request,
        model,
        warnings: &mut warnings,
    };
    let refuser = if capabilities.sampling == Some(false) {
        Some(model.name.to_string())
    } else {
        let version = &options.api_version;
        options
            .refuses_sampling()
            .then(|| format!("version {version} of the API"))
    };
    let (temperature, top_p) = rest.sampling(rules, refuser.as_deref(), thought.is_on());
    let stop_sequences = rest.stop();
    rest.unsaid();
    let output_config =
        (thought.effort.is_some() || format.is_some()).then_some(wire::OutputConfig {
            effort: thought.effort,
            format,
        });
    let interleaves = rules.is_some_and(|rules| rules.interleaves_by_beta)
        && thinks_with_budget
        && !(declared.is_empty() && server.is_empty());
    let betas = betas::needed(
        options,
        server.iter().map(|tool| &tool.declaration),
        &request.extra,
        interleaves,
    );
    let betas = betas.into_iter().map(Cow::into_owned).collect();
    let mut body = Body {
        model: &model.name,
        max_tokens,
        system,
        system_mark: None,
        messages,
        server_tools: server,
        tools: declared,
        tool_choice: choice,
        thinking: thought.thinking,
        output_config,
        temperature,
        top_p,
        stop_sequences,
        container: container(request, model),
        metadata: options
            .user_id
            .as_deref()
            .map(|user_id| wire::Metadata { user_id }),
        stream: request.delivery != Delivery::Whole,
        extra: &request.extra,
    };
    cache::place(options.cache, leading, &mut body);
    Ok(WireRequest {
        body,
        betas,
        reshaped: reshaped.naming(names),
        tool_choice: outcome,
        warnings,
        local_ids: LocalIds::after(request),
    })
}

/// `max_tokens`, which the API requires and refuses above what the model can write.
fn max_tokens(
    request: &ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    options: &MessagesOptions,
    warnings: &mut Vec<Warning>,
) -> u32 {
    let most = capabilities
        .max_output_tokens
        .map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    let Some(wanted) = request.max_output_tokens.or(options.default_max_tokens) else {
        return most.map_or(DEFAULT_MAX_TOKENS_UNKNOWN, |most| {
            most.min(DEFAULT_MAX_TOKENS)
        });
    };
    match most {
        Some(most) if wanted > most => {
            let message = format!("max_tokens is {most}: {} writes no more", model.name);
            warnings.push(Warning::new(WarningKind::OptionDropped, message));
            most
        }
        _ => wanted,
    }
}

/// Whether the caller asks for thinking with a budget in the wire's own words.
fn extra_thinks_with_budget(request: &ChatRequest) -> bool {
    let thinking = request.extra.get("thinking");
    thinking.and_then(|it| it.get("type")?.as_str()) == Some("enabled")
}

/// The options that not every model takes.
struct Rest<'a, 'm> {
    request: &'a ChatRequest,
    model: &'m ModelId,
    warnings: &'m mut Vec<Warning>,
}

impl<'a> Rest<'a, '_> {
    /// Temperature and `top_p`. `refuser` takes neither.
    fn sampling(
        &mut self,
        rules: Option<&Rules>,
        refuser: Option<&str>,
        thinks: bool,
    ) -> (Option<f64>, Option<f64>) {
        let sampling = &self.request.sampling;
        // 1 is what holds anyway.
        let says_something = |value: f64| (value - 1.0).abs() > f64::EPSILON;
        let mut temperature = sampling.temperature.filter(|it| says_something(*it));
        let mut top_p = sampling.top_p.filter(|it| says_something(*it));
        if refuser.is_some() || thinks {
            let why = match refuser {
                Some(refuser) => format!("{refuser} takes no"),
                None => "thinking goes with no".to_owned(),
            };
            // While it thinks the API takes a top_p from 0.95 on.
            let kept = top_p.filter(|it| refuser.is_none() && *it >= 0.95);
            if temperature.take().is_some() {
                self.dropped(&format!("{why} temperature"));
            }
            if top_p.is_some() && kept.is_none() {
                self.dropped(&format!("{why} top_p"));
            }
            top_p = kept;
        }
        if let Some(high) = temperature.filter(|it| *it > 1.0) {
            self.dropped(&format!(
                "temperature {high} was sent as 1, the highest there is"
            ));
            temperature = Some(1.0);
        }
        if temperature.is_some()
            && top_p.is_some()
            && rules.is_some_and(|rules| rules.sampling == Sampling::One)
        {
            let name = &self.model.name;
            self.dropped(&format!("{name} takes no top_p beside temperature"));
            top_p = None;
        }
        (temperature, top_p)
    }

    /// The texts at which the answer ends; the API refuses blank ones.
    fn stop(&mut self) -> Vec<&'a str> {
        let stop = &self.request.sampling.stop;
        let said: Vec<&str> = stop
            .iter()
            .map(String::as_str)
            .filter(|text| !text.trim().is_empty())
            .collect();
        if said.len() < stop.len() {
            self.dropped("a stop sequence of white space: the API takes none");
        }
        said
    }

    /// What this wire has no word for.
    fn unsaid(&mut self) {
        if self.request.sampling.seed.is_some() {
            self.dropped("this wire takes no seed");
        }
        if self.request.extra.contains_key(wire::STREAM) {
            self.dropped("`stream` cannot be set: the answer is read as it is asked for");
        }
    }

    fn dropped(&mut self, message: &str) {
        let warning = Warning::new(WarningKind::OptionDropped, message);
        self.warnings.push(warning);
    }
}

/// The form of the answer. A schema that the API cannot enforce is told to the model in `system`.
fn response_format<'a>(
    request: &'a ChatRequest,
    model: &ModelId,
    capabilities: &ModelCapabilities,
    system: &mut Vec<Block<'a>>,
    warnings: &mut Vec<Warning>,
) -> Result<Option<wire::OutputFormat<'a>>, ModelError> {
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
    let mut unenforced = |what: String| {
        warnings.push(Warning::new(WarningKind::OptionDropped, what));
    };
    let strict = schema::strict(schema);
    // The caller reads the answer as it comes, so that it cannot have another shape.
    if strict.reshapes || strict.narrows || strict.optional > MAX_OPTIONAL {
        unenforced(format!(
            "schema `{name}` is outside what the API can enforce (an object of known properties, at \
             most {MAX_OPTIONAL} of them optional): the model is told of it, and the answer may \
             differ from it"
        ));
        system.push(Block::text(told(schema)));
        return Ok(None);
    }
    if !strict.unenforced.is_empty() {
        unenforced(format!(
            "the answer is not held to the whole of schema `{name}`: {}",
            strict.unenforced.join("; ")
        ));
    }
    Ok(Some(wire::OutputFormat::JsonSchema {
        schema: strict.schema,
    }))
}

fn told(schema: &Value) -> String {
    format!(
        "Answer with one JSON value that is valid against this JSON Schema, and with nothing else, \
         no code fence either:\n{schema}"
    )
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;

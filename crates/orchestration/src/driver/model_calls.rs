//! Model calls: the driver streams a response and publishes its events.

use std::{collections::HashMap, pin::pin};

use futures_util::StreamExt;
use switchboard_domain::{
    AnswerSizeMeter, ChatModel, ChatRequest, ChatResponse, GrammarViolation, ModelError,
    ModelErrorKind, ModelEvent, Part, PartStart, ResponseAccumulator, ToolCatalog,
};
use tracing::Instrument as _;

use super::{
    event_publisher::yield_to_reader,
    run_driver::{RunDriver, RunStopReason, StepOutcome},
};
use crate::{
    ModelCall, ModelCallPurpose, Outcome, Run, RunEventKind, RunPhase, UnexpectedInput,
    observe::trace::ChatTrace,
    run::ToolUseIdGenerator,
    strategy::formatter::{FormatterMode, PartialAnswerReader},
};

/// Maximum number of events of a streamed model response that are published together. Without the
/// limit, a model that streams without pauses would delay the reader of the events.
pub(super) const MAX_EVENTS_TOGETHER: usize = 16;

/// The end of a model call: a response, an error, a stop of the run, or an oversized response.
enum ModelCallEnd {
    Whole(Box<ChatResponse>),
    Failed(ModelError),
    Stopped(RunStopReason),
    /// The streamed response has more than this number of bytes.
    TooLarge(u64),
}

/// Converter of a streamed model response to run events. It also assembles the response from the
/// received events.
#[derive(Default)]
struct ModelEventConverter {
    answer: ResponseAccumulator,
    meter: AnswerSizeMeter,
    /// Tool uses whose input may be incomplete. Maps the part index in the response to the tool use
    /// id in the run.
    open_tools: HashMap<u32, String>,
    /// Generator of tool use ids. Created at the first tool use, because its creation reads the
    /// whole conversation.
    ids: Option<ToolUseIdGenerator>,
    /// Whether text, reasoning or a provider block of this response was published.
    has_output: bool,
    /// Whether the run is in the gathering phase, in which the model only collects data. The text
    /// of a response is then not the answer, so it is published as reasoning.
    gathers: bool,
    /// Method that makes the model write the required JSON format, and the parser of the streamed
    /// JSON. `None` unless the run is in the formatting phase, in which the model writes the final
    /// answer. Boxed, because the parser is large and rarely used.
    formatter: Option<Box<(FormatterMode, PartialAnswerReader)>>,
}

impl RunDriver {
    pub(super) async fn call_model(
        &mut self,
        run: &mut Run,
    ) -> Result<StepOutcome, UnexpectedInput> {
        let call = match self.prepare_model_call(run).await {
            Ok(call) => call,
            Err(reason) => return Ok(StepOutcome::Stopped(reason)),
        };
        self.publish_events(call.events).await;
        let Some(model) = self.find_model(run.model_id()) else {
            let error = ModelError::new(
                &*run.model_id().provider,
                ModelErrorKind::Configuration,
                "no model is configured",
            );
            let events = match call.purpose {
                ModelCallPurpose::Answer => run.apply_model_failure(&error, None, None)?,
                ModelCallPurpose::Summary => run.apply_history_summary(Err(&error))?,
            };
            self.publish_events(events).await;
            return Ok(StepOutcome::Continue);
        };
        match call.purpose {
            ModelCallPurpose::Answer => self.request_answer(run, &*model, call.request).await,
            // Boxed, so that the rarely needed summary call does not enlarge the future of every
            // model call.
            ModelCallPurpose::Summary => {
                Box::pin(self.request_summary(run, &*model, &call.request)).await
            }
        }
    }

    /// Lists the current tools and prepares the next model request with them.
    async fn prepare_model_call(&mut self, run: &mut Run) -> Result<ModelCall, RunStopReason> {
        let mut catalog = match self.agent.tools.clone() {
            None => ToolCatalog::default(),
            Some(host) => self.wait_unless_stopped(host.list_tools()).await?,
        };
        for problem in &mut catalog.problems {
            problem.message = self.context.redact_text(&problem.message).into_owned();
        }
        self.publish_events(run.report_unavailable_tools(&catalog.problems))
            .await;
        if let Some(reason) = self.stop_reason() {
            return Err(reason);
        }
        let (tools, mut problems) = self.prepare_tools_for_model(run, catalog.tools);
        if run.step_count() == 0
            && let Some(recipe) = &self.recipe
        {
            let (examples, omitted) = recipe.example_messages(&tools, &self.agent.validators);
            run.add_examples(examples);
            problems.extend(omitted);
        }
        self.publish_events(run.report_recipe_problems(problems))
            .await;
        Ok(run.begin_model_call(tools))
    }

    async fn request_answer(
        &self,
        run: &mut Run,
        model: &dyn ChatModel,
        request: Box<ChatRequest>,
    ) -> Result<StepOutcome, UnexpectedInput> {
        self.publish_events([RunEventKind::ModelCallStarted {
            step: run.step_count(),
            model: model.id().clone(),
            tools: request.tools.len(),
            tool_choice: request.tool_choice.clone(),
        }])
        .await;
        let mut mapper = ModelEventConverter::new(run);
        let trace = ChatTrace::open_span(run.step_count(), model.id(), &request, run.session_id());
        // Boxed, so that the driver's future does not contain this large future.
        let streamed = Box::pin(self.stream_answer(run, model, &request, &mut mapper, &trace));
        let (answer, partial) = streamed.instrument(trace.clone_span()).await;
        run.set_current_time(self.agent.current_time());
        let events = self.apply_model_call_end(run, &mapper, trace, answer, partial)?;
        self.store_and_publish_events(run, events).await;
        Ok(StepOutcome::Continue)
    }

    /// Passes the end of a model call to the run. Returns the events to publish.
    fn apply_model_call_end(
        &self,
        run: &mut Run,
        mapper: &ModelEventConverter,
        trace: ChatTrace,
        answer: ModelCallEnd,
        partial: Option<ChatResponse>,
    ) -> Result<Vec<RunEventKind>, UnexpectedInput> {
        Ok(match answer {
            ModelCallEnd::Whole(answer) => {
                trace.close_with_answer(&answer);
                let mut events = run.apply_model_response(*answer)?;
                if run.outcome() == Some(Outcome::Failed)
                    && let Some(switched) =
                        run.switch_after_refusal(self.find_fallback_model(run.model_id()))
                {
                    run.set_pricing(self.find_model_price(run.model_id()));
                    events.extend(switched);
                }
                // Emits the part of the formatted answer that was not emitted during the stream,
                // even if the response was cut off. The text events and the report then contain the
                // same answer.
                if let Some((_, formatter)) = mapper.formatter.as_deref()
                    && let Some(report) = run.build_report()
                    && let Some(rest) = formatter.unemitted_text(&report.answer)
                    && !rest.is_empty()
                {
                    events.push(RunEventKind::TextDelta {
                        text: rest.to_owned(),
                    });
                }
                events
            }
            ModelCallEnd::Failed(error) => {
                trace.close_with_error(&error);
                let events = run.apply_model_failure(
                    &error,
                    partial,
                    self.find_fallback_model(run.model_id()),
                )?;
                run.set_pricing(self.find_model_price(run.model_id()));
                events
            }
            ModelCallEnd::TooLarge(max) => {
                run.end_at_answer_size_limit(max, partial);
                Vec::new()
            }
            ModelCallEnd::Stopped(reason) => self.stop_run(run, reason, partial, &HashMap::new()),
        })
    }

    async fn request_summary(
        &self,
        run: &mut Run,
        model: &dyn ChatModel,
        request: &ChatRequest,
    ) -> Result<StepOutcome, UnexpectedInput> {
        if let Some(reason) = self.stop_reason() {
            return Ok(StepOutcome::Stopped(reason));
        }
        let step = run.step_count() + 1;
        let trace =
            ChatTrace::open_span(step, model.id(), request, run.session_id()).mark_as_summary();
        let pending = self
            .wait_unless_stopped(model.complete(request))
            .instrument(trace.clone_span())
            .await;
        run.set_current_time(self.agent.current_time());
        let events = match pending {
            Ok(Ok(answer)) => {
                trace.close_with_answer(&answer);
                run.apply_history_summary(Ok(answer))?
            }
            Ok(Err(error)) => {
                trace.close_with_error(&error);
                run.apply_history_summary(Err(&error))?
            }
            Err(reason) => return Ok(StepOutcome::Stopped(reason)),
        };
        self.store_and_publish_events(run, events).await;
        Ok(StepOutcome::Continue)
    }

    /// Streams a response of the model. Returns how the call ended. If the response is incomplete
    /// and contains output, also returns the received part of the response.
    async fn stream_answer(
        &self,
        run: &Run,
        model: &dyn ChatModel,
        request: &ChatRequest,
        mapper: &mut ModelEventConverter,
        trace: &ChatTrace,
    ) -> (ModelCallEnd, Option<ChatResponse>) {
        // The run may have been stopped while the reader processed the start event of this call.
        if let Some(reason) = self.stop_reason() {
            return (ModelCallEnd::Stopped(reason), None);
        }
        let stream = match self.wait_unless_stopped(model.stream(request)).await {
            Err(reason) => return (ModelCallEnd::Stopped(reason), None),
            Ok(Err(error)) => return (ModelCallEnd::Failed(error), None),
            Ok(Ok(stream)) => stream,
        };
        let mut stream = stream.ready_chunks(MAX_EVENTS_TOGETHER);
        let provider = &*model.id().provider;
        let mut stopped = pin!(self.wait_until_stopped());
        let end: Option<ModelCallEnd> = loop {
            let next = tokio::select! {
                biased;
                next = stream.next() => next,
                reason = &mut stopped => break Some(ModelCallEnd::Stopped(reason)),
            };
            let Some(events) = next else { break None };
            let mut kinds = Vec::with_capacity(events.len());
            let taken = events
                .into_iter()
                .try_for_each(|event| mapper.handle_model_event(event, run, trace, &mut kinds));
            if self.publisher.publish_events(kinds) {
                yield_to_reader().await;
            }
            // If the run was stopped and `events` also contain an error, the stop is the end of the
            // call. `select!` does not poll `stopped` while `stream` always has events, so the stop
            // is checked here.
            let stop = self.stop_reason().map(ModelCallEnd::Stopped);
            if let Some(end) = stop.or(taken.err()) {
                break Some(end);
            }
        };
        let failed = |fault| ModelCallEnd::Failed(ModelError::from_violation(provider, fault));
        let end = match end {
            Some(end) => end,
            None if !mapper.answer.is_finished() => failed(GrammarViolation::NoFinish),
            None => {
                let answer = std::mem::take(&mut mapper.answer).finish();
                let whole = answer.map(|answer| ModelCallEnd::Whole(Box::new(answer)));
                return (whole.unwrap_or_else(failed), None);
            }
        };
        let has_output = match end {
            // After a failure, the received part is returned only if output was published.
            // Otherwise, the run may call a fallback model.
            ModelCallEnd::Failed(_) => mapper.has_output,
            _ => mapper.answer.has_output(),
        };
        let partial =
            has_output.then(|| std::mem::take(&mut mapper.answer).into_interrupted_response());
        (end, partial)
    }
}

impl ModelEventConverter {
    fn new(run: &Run) -> Self {
        Self {
            gathers: run.strategy_phase() == Some(RunPhase::Gathering),
            formatter: run.create_partial_formatter().map(Box::new),
            ..Self::default()
        }
    }

    /// Processes one event of the streamed response: extends the assembled response, and appends
    /// the run event to publish, if any, to `kinds`. Returns an error if the event ends the call
    /// early.
    fn handle_model_event(
        &mut self,
        event: Result<ModelEvent, ModelError>,
        run: &Run,
        trace: &ChatTrace,
        kinds: &mut Vec<RunEventKind>,
    ) -> Result<(), ModelCallEnd> {
        let event = event.map_err(ModelCallEnd::Failed)?;
        let provider = &*run.model_id().provider;
        match &event {
            // The run already published output of the failed attempt and cannot withdraw it. The
            // model call therefore fails instead of continuing with the next attempt.
            ModelEvent::Retrying { retry } if self.has_output => {
                let kind = ModelErrorKind::Interrupted;
                let error = ModelError::new(provider, kind, retry.reason.clone());
                return Err(ModelCallEnd::Failed(error));
            }
            ModelEvent::Retrying { .. } => {}
            _ => trace.record_first_chunk(),
        }
        let limits = &run.run_options().limits;
        let max = limits.max_answer_bytes.unwrap_or(u64::MAX);
        if self.meter.count_event(&event) > max {
            return Err(ModelCallEnd::TooLarge(max));
        }
        let pushed = self.answer.push(&event);
        pushed
            .map_err(|fault| ModelCallEnd::Failed(ModelError::from_violation(provider, fault)))?;
        let kind = self.convert_model_event(event, run);
        self.has_output |= kind.as_ref().is_some_and(is_output_event);
        kinds.extend(kind);
        Ok(())
    }

    /// Converts a model event to a run event. Returns `None` if no run event is needed, for example
    /// for a token count.
    fn convert_model_event(&mut self, event: ModelEvent, run: &Run) -> Option<RunEventKind> {
        let kind = match event {
            ModelEvent::Retrying { retry } => {
                // The next attempt starts with a new id generator, so that its tool uses have the
                // same ids in the events and in the complete response.
                *self = Self {
                    answer: std::mem::take(&mut self.answer),
                    meter: std::mem::take(&mut self.meter),
                    ..Self::new(run)
                };
                RunEventKind::ModelCallRetried {
                    step: run.step_count(),
                    attempt: retry.attempt,
                    delay_ms: retry.delay_ms,
                    reason: retry.reason,
                }
            }
            ModelEvent::TextDelta { text, .. } => match self.formatter.as_deref_mut() {
                Some((FormatterMode::Native, formatter)) => {
                    return parse_formatted_text(formatter, &text);
                }
                // The model must write the formatted answer as the input of a tool call. Other text
                // is not part of the answer, so it is published as reasoning.
                Some(_) => RunEventKind::ReasoningDelta { text },
                None if self.gathers => RunEventKind::ReasoningDelta { text },
                None => RunEventKind::TextDelta { text },
            },
            ModelEvent::ReasoningDelta { text, .. } => RunEventKind::ReasoningDelta { text },
            ModelEvent::PartStarted {
                index,
                part: PartStart::ToolUse { id, name },
            } => {
                let id = self
                    .ids
                    .get_or_insert_with(|| run.create_tool_id_generator())
                    .make_unique_id(&id);
                self.open_tools.insert(index, id.clone());
                if self.formatter.is_some() {
                    return None;
                }
                RunEventKind::ToolInputStarted { id, name }
            }
            ModelEvent::ToolInputDelta { index, json } => {
                if let Some((_, formatter)) = self.formatter.as_deref_mut() {
                    return parse_formatted_text(formatter, &json);
                }
                let id = self.open_tools.get(&index).cloned()?;
                RunEventKind::ToolInputDelta { id, json }
            }
            ModelEvent::PartStarted {
                part: PartStart::Whole { part },
                ..
            } => match *part {
                Part::Opaque(block) => RunEventKind::ProviderBlock {
                    kind: block.kind,
                    text: block.text,
                },
                _ => return None,
            },
            _ => return None,
        };
        Some(kind)
    }
}

/// Returns whether an event contains model output that cannot be withdrawn. Tool input does not
/// count, because clients discard it if the call is retried or fails.
fn is_output_event(kind: &RunEventKind) -> bool {
    match kind {
        RunEventKind::TextDelta { text } | RunEventKind::ReasoningDelta { text } => {
            !text.is_empty()
        }
        kind => matches!(kind, RunEventKind::ProviderBlock { .. }),
    }
}

fn parse_formatted_text(formatter: &mut PartialAnswerReader, json: &str) -> Option<RunEventKind> {
    let text = formatter.push_json(json);
    (!text.is_empty()).then_some(RunEventKind::TextDelta { text })
}

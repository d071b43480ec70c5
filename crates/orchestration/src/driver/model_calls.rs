//! Model calls of the driver.

use std::{collections::HashMap, pin::pin};

use futures_util::StreamExt;
use switchboard_domain::{
    AnswerMeter, ChatModel, ChatRequest, ChatResponse, GrammarViolation, ModelError,
    ModelErrorKind, ModelEvent, Part, PartStart, ResponseAccumulator, ServerProblem, ToolCatalog,
};
use tracing::Instrument as _;

use super::{
    drive::{Driver, Flow, StopReason},
    publish::handover,
};
use crate::{
    CallPurpose, ModelCall, Outcome, Run, RunEventKind, RunPhase, UnexpectedInput,
    observe::trace::ChatTrace,
    policy::limits::LimitHit,
    run::UniqueIds,
    strategy::formatter::{FormatterMode, PartialFormatter},
};

/// Maximum number of response events that are published together, so that a constant stream does
/// not delay the reader.
pub(super) const MAX_EVENTS_TOGETHER: usize = 16;

/// The end of a model call.
enum Answer {
    Whole(Box<ChatResponse>),
    Failed(ModelError),
    Stopped(StopReason),
    /// The response is larger than the limit while it streams.
    TooLarge(LimitHit),
}

/// Events since the driver last yielded to the reader.
#[derive(Default)]
struct Unyielded {
    /// Number of events of the model.
    received: usize,
    /// Number of published events.
    published: usize,
}

/// The conversion of model events to run events.
struct OutputMapper {
    /// Tool uses that may still receive input, by part index, with their ids in the run.
    open_tools: HashMap<u32, String>,
    /// Created at the first tool use, because it reads the whole conversation.
    ids: Option<UniqueIds>,
    /// Whether text, reasoning or a provider block of this response was published.
    has_output: bool,
    /// Whether the text of this response is not the answer.
    gathers: bool,
    /// Reads the text of a formatted answer. Boxed, because it is large and rare.
    formatter: Option<Box<(FormatterMode, PartialFormatter)>>,
}

impl Driver {
    pub(super) async fn call_model(&mut self, run: &mut Run) -> Result<Flow, UnexpectedInput> {
        let call = match self.next_call(run).await {
            Ok(call) => call,
            Err(reason) => return Ok(Flow::Stopped(reason)),
        };
        self.emit(call.events).await;
        let Some(model) = self.model(run.model()) else {
            let error = ModelError::new(
                &*run.model().provider,
                ModelErrorKind::Configuration,
                "no model is configured",
            );
            let events = match call.purpose {
                CallPurpose::Answer => run.model_failed(&error, None, None)?,
                CallPurpose::Summary => run.summary_finished(Err(&error))?,
            };
            self.emit(events).await;
            return Ok(Flow::Continue);
        };
        match call.purpose {
            CallPurpose::Answer => self.answer(run, &*model, call.request).await,
            // Boxed, because it is rare.
            CallPurpose::Summary => Box::pin(self.summary(run, &*model, &call.request)).await,
        }
    }

    /// Prepares the request with the current tools.
    async fn next_call(&mut self, run: &mut Run) -> Result<ModelCall, StopReason> {
        let catalog = match self.agent.tools.clone() {
            None => ToolCatalog::default(),
            Some(host) => self.unless_stopped(host.tools()).await?,
        };
        let ToolCatalog { tools, problems } = catalog;
        self.emit(self.unavailable(problems, run)).await;
        if let Some(reason) = self.stop_reason() {
            return Err(reason);
        }
        let (tools, problems) = self.visible(tools);
        if !self.context.is_empty() {
            run.set_declared_tools(self.declared_tools.clone());
        }
        self.emit(run.tools_missing(problems)).await;
        if run.steps() == 0
            && let Some(recipe) = &self.recipe
        {
            let examples = recipe.examples(&tools);
            run.add_examples(examples.messages);
        }
        Ok(run.begin_model_call(tools))
    }

    /// Publishes unavailable servers, without injected values.
    fn unavailable(&self, mut problems: Vec<ServerProblem>, run: &mut Run) -> Vec<RunEventKind> {
        for problem in &mut problems {
            problem.message = self.context.redact_text(&problem.message).into_owned();
        }
        run.tools_unavailable(&problems)
    }

    async fn answer(
        &self,
        run: &mut Run,
        model: &dyn ChatModel,
        request: Box<ChatRequest>,
    ) -> Result<Flow, UnexpectedInput> {
        self.emit([RunEventKind::ModelCallStarted {
            step: run.steps(),
            model: model.id().clone(),
            tools: request.tools.len(),
            tool_choice: request.tool_choice.clone(),
        }])
        .await;
        let mut mapper = OutputMapper::new(run);
        let trace = ChatTrace::begin(run.steps(), model.id(), &request, run.session());
        // Boxed, because it lives while the driver waits.
        let streamed = Box::pin(self.stream_answer(run, model, &request, &mut mapper, &trace));
        let (answer, partial) = streamed.instrument(trace.span()).await;
        run.tick(self.agent.now());
        let events = self.answered(run, &mapper, trace, answer, partial)?;
        self.emit_stored(run, events).await;
        Ok(Flow::Continue)
    }

    /// Applies the result of a model call to the run.
    fn answered(
        &self,
        run: &mut Run,
        mapper: &OutputMapper,
        trace: ChatTrace,
        answer: Answer,
        partial: Option<ChatResponse>,
    ) -> Result<Vec<RunEventKind>, UnexpectedInput> {
        Ok(match answer {
            Answer::Whole(answer) => {
                trace.answered(&answer);
                let mut events = run.model_answered(*answer)?;
                if run.outcome() == Some(Outcome::Failed)
                    && let Some(switched) = run.model_declined(self.next_model(run.model()))
                {
                    run.set_pricing(self.price_of(run.model()));
                    events.extend(switched);
                }
                // Also for a response that was cut off: the events and the report must agree.
                if let Some((_, formatter)) = mapper.formatter.as_deref()
                    && let Some(report) = run.report()
                    && let Some(rest) = formatter.rest(&report.answer)
                    && !rest.is_empty()
                {
                    events.push(RunEventKind::TextDelta {
                        text: rest.to_owned(),
                    });
                }
                events
            }
            Answer::Failed(error) => {
                trace.failed(&error);
                let events = run.model_failed(&error, partial, self.next_model(run.model()))?;
                run.set_pricing(self.price_of(run.model()));
                events
            }
            Answer::TooLarge(hit) => {
                run.answer_limited(&hit, partial);
                Vec::new()
            }
            Answer::Stopped(reason) => self.stop(run, reason, partial, &HashMap::new()),
        })
    }

    async fn summary(
        &self,
        run: &mut Run,
        model: &dyn ChatModel,
        request: &ChatRequest,
    ) -> Result<Flow, UnexpectedInput> {
        if let Some(reason) = self.stop_reason() {
            return Ok(Flow::Stopped(reason));
        }
        let step = run.steps() + 1;
        let trace = ChatTrace::begin(step, model.id(), request, run.session()).for_summary();
        let pending = self
            .unless_stopped(model.complete(request))
            .instrument(trace.span())
            .await;
        run.tick(self.agent.now());
        let events = match pending {
            Ok(Ok(answer)) => {
                trace.answered(&answer);
                run.summary_finished(Ok(answer))?
            }
            Ok(Err(error)) => {
                trace.failed(&error);
                run.summary_finished(Err(&error))?
            }
            Err(reason) => return Ok(Flow::Stopped(reason)),
        };
        self.emit_stored(run, events).await;
        Ok(Flow::Continue)
    }

    /// Yields to the reader. The reader may cancel the run, and the wall time must be checked for
    /// streams that are always ready.
    async fn yield_to_reader(&self, published: usize) -> Option<StopReason> {
        if published > 0 {
            handover().await;
        }
        self.stop_reason()
    }

    /// Streams a response. Returns its end, and the received part of an incomplete response.
    async fn stream_answer(
        &self,
        run: &Run,
        model: &dyn ChatModel,
        request: &ChatRequest,
        mapper: &mut OutputMapper,
        trace: &ChatTrace,
    ) -> (Answer, Option<ChatResponse>) {
        // The reader may have taken long for the start event.
        if let Some(reason) = self.stop_reason() {
            return (Answer::Stopped(reason), None);
        }
        let mut stream = match self.unless_stopped(model.stream(request)).await {
            Err(reason) => return (Answer::Stopped(reason), None),
            Ok(Err(error)) => return (Answer::Failed(error), None),
            Ok(Ok(stream)) => stream,
        };
        let provider = &*model.id().provider;
        let max_bytes = run.options().limits.max_answer_bytes.unwrap_or(u64::MAX);
        let mut answer = ResponseAccumulator::default();
        let mut meter = AnswerMeter::default();
        let mut stopped = pin!(self.stopped());
        // Events that the reader could not take yet.
        let mut events = Unyielded::default();
        let mut end: Option<Answer> = loop {
            let has_unread = events.published > 0;
            let next = tokio::select! {
                biased;
                next = stream.next() => Some(next),
                // Available events are taken together before the driver waits.
                () = std::future::ready(()), if has_unread => None,
                reason = &mut stopped, if !has_unread => break Some(Answer::Stopped(reason)),
            };
            match next {
                None => {}
                Some(None) => break None,
                Some(Some(Err(error))) => break Some(Answer::Failed(error)),
                // A provider may retry after output that only the run counts, such as a formatted
                // answer.
                Some(Some(Ok(ModelEvent::Retrying { retry }))) if mapper.has_output => {
                    let kind = ModelErrorKind::Interrupted;
                    break Some(Answer::Failed(ModelError::new(
                        provider,
                        kind,
                        retry.reason,
                    )));
                }
                Some(Some(Ok(event))) => {
                    if !matches!(event, ModelEvent::Retrying { .. }) {
                        trace.first_chunk();
                    }
                    if meter.count(&event) > max_bytes {
                        break Some(Answer::TooLarge(LimitHit::AnswerBytes { max: max_bytes }));
                    }
                    if let Err(fault) = answer.push(&event) {
                        break Some(Answer::Failed(ModelError::from_grammar(provider, fault)));
                    }
                    events.received += 1;
                    let kinds = mapper.map(event, run);
                    mapper.has_output |= kinds.iter().any(is_output);
                    events.published += kinds.len();
                    self.publisher.publish_all(kinds);
                    // Events without output also need a check of the clock.
                    if events.received < MAX_EVENTS_TOGETHER {
                        continue;
                    }
                }
            }
            let published = std::mem::take(&mut events).published;
            if let Some(reason) = self.yield_to_reader(published).await {
                break Some(Answer::Stopped(reason));
            }
        };
        // A cancellation at the last events has priority.
        if events.published > 0
            && let Some(reason) = self.yield_to_reader(events.published).await
        {
            end = Some(Answer::Stopped(reason));
        }
        if end.is_none() && !answer.is_finished() {
            let fault = GrammarViolation::NoFinish;
            end = Some(Answer::Failed(ModelError::from_grammar(provider, fault)));
        }
        let Some(end) = end else {
            let answer = answer
                .finish()
                .map(|answer| Answer::Whole(Box::new(answer)));
            let failed = |fault| Answer::Failed(ModelError::from_grammar(provider, fault));
            return (answer.unwrap_or_else(failed), None);
        };
        let has_output = match end {
            // A fallback model may answer if no output was published.
            Answer::Failed(_) => mapper.has_output,
            _ => answer.has_output(),
        };
        (end, has_output.then(|| answer.interrupted()))
    }
}

impl OutputMapper {
    /// Returns the state before the first event of a response.
    fn new(run: &Run) -> Self {
        Self {
            open_tools: HashMap::new(),
            ids: None,
            has_output: false,
            gathers: run.stage() == Some(RunPhase::Gathering),
            formatter: run.partial_formatter().map(Box::new),
        }
    }

    /// Returns the visible part of a model event.
    fn map(&mut self, event: ModelEvent, run: &Run) -> Vec<RunEventKind> {
        let kind = match event {
            ModelEvent::Retrying { retry } => {
                // The calls of the next attempt get the same ids.
                *self = Self::new(run);
                RunEventKind::ModelCallRetried {
                    step: run.steps(),
                    attempt: retry.attempt,
                    delay_ms: retry.delay_ms,
                    reason: retry.reason,
                }
            }
            ModelEvent::TextDelta { text, .. } => match self.formatter.as_deref_mut() {
                Some((FormatterMode::Native, formatter)) => return read(formatter, &text),
                // Text beside the formatted answer is not part of the answer.
                Some(_) => RunEventKind::ReasoningDelta { text },
                None if self.gathers => RunEventKind::ReasoningDelta { text },
                None => RunEventKind::TextDelta { text },
            },
            ModelEvent::ReasoningDelta { text, .. } => RunEventKind::ReasoningDelta { text },
            ModelEvent::PartStarted {
                index,
                part: PartStart::ToolUse { id, name },
            } => {
                let id = self.ids.get_or_insert_with(|| run.unique_ids()).unique(&id);
                self.open_tools.insert(index, id.clone());
                if self.formatter.is_some() {
                    return Vec::new();
                }
                RunEventKind::ToolInputStarted { id, name }
            }
            ModelEvent::ToolInputDelta { index, json } => {
                if let Some((_, formatter)) = self.formatter.as_deref_mut() {
                    return read(formatter, &json);
                }
                let Some(id) = self.open_tools.get(&index).cloned() else {
                    return Vec::new();
                };
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
                _ => return Vec::new(),
            },
            _ => return Vec::new(),
        };
        vec![kind]
    }
}

/// Returns whether the event has visible output. Input of a call does not count, because it can be
/// withdrawn.
fn is_output(kind: &RunEventKind) -> bool {
    match kind {
        RunEventKind::TextDelta { text } | RunEventKind::ReasoningDelta { text } => {
            !text.is_empty()
        }
        kind => matches!(kind, RunEventKind::ProviderBlock { .. }),
    }
}

fn read(formatter: &mut PartialFormatter, json: &str) -> Vec<RunEventKind> {
    let text = formatter.push(json);
    if text.is_empty() {
        return Vec::new();
    }
    vec![RunEventKind::TextDelta { text }]
}

//! Model calls of the driver.

use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    task::Poll,
};

use futures_util::StreamExt;
use jiff::Timestamp;
use switchboard_domain::{
    AnswerMeter, ChatModel, ChatRequest, ChatResponse, ModelError, ModelErrorKind, ModelEvent,
    Part, PartStart, ResponseAccumulator, ServerProblem, ToolCatalog,
};
use tracing::Instrument as _;

use super::{
    drive::{Driver, Flow, Stopped},
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
pub(super) const TOLD_TOGETHER: usize = 16;

/// The result of a model call.
enum Answer {
    Whole(ChatResponse),
    Failed(ModelError, Option<ChatResponse>),
    Stopped(Stopped, Option<ChatResponse>),
    /// A response that reached a limit while it streamed.
    Limited(LimitHit, Option<ChatResponse>),
}

/// Output since the reader could last take events.
#[derive(Default)]
struct Told {
    /// Number of events of the model.
    heard: usize,
    /// Number of published events.
    count: usize,
    /// Time of the first event.
    since: Option<Timestamp>,
}

/// The conversion of model events to run events.
struct Shown {
    /// Tool uses that may still receive input, by part index, with their ids in the run.
    open_tools: Vec<(u32, String)>,
    /// Created at the first tool use, because it reads the whole conversation.
    ids: Option<UniqueIds>,
    /// Whether text, reasoning or a provider block of this response was published.
    has_output: bool,
    /// Whether the text of this response is not the answer.
    gathers: bool,
    /// Reads the text of a formatted answer. Boxed, because it is large and rare.
    formatter: Option<Box<(FormatterMode, PartialFormatter)>>,
}

/// A model call in progress. Boxed, because it lives while the driver waits.
struct Asked {
    request: Box<ChatRequest>,
    shown: Shown,
    traced: ChatTrace,
}

impl Driver {
    pub(super) async fn call_model(&mut self, run: &mut Run) -> Result<Flow, UnexpectedInput> {
        let call = match self.next_call(run).await {
            Ok(call) => call,
            Err(why) => return Ok(Flow::Stopped(why)),
        };
        self.tell(call.events).await;
        let Some(model) = self.model(run.model()) else {
            let error = ModelError::new(
                &*run.model().provider,
                ModelErrorKind::Configuration,
                "there is no model to ask",
            );
            let events = match call.purpose {
                CallPurpose::Answer => run.model_failed(&error, None, None)?,
                CallPurpose::Summary => run.summary_finished(Err(&error))?,
            };
            self.tell(events).await;
            return Ok(Flow::Go);
        };
        match call.purpose {
            CallPurpose::Answer => self.answer(run, &*model, call.request).await,
            // Boxed, because it is rare.
            CallPurpose::Summary => Box::pin(self.summary(run, &*model, &call.request)).await,
        }
    }

    /// Prepares the request with the current tools.
    async fn next_call(&mut self, run: &mut Run) -> Result<ModelCall, Stopped> {
        let catalog = match self.agent.tools.clone() {
            None => ToolCatalog::default(),
            Some(host) => self.unless_stopped(host.tools()).await?,
        };
        let ToolCatalog { tools, problems } = catalog;
        self.tell(self.unavailable(problems, run)).await;
        if let Some(why) = self.is_stopped() {
            return Err(why);
        }
        let (tools, problems) = self.visible(tools);
        if !self.context.is_empty() {
            run.set_declared_tools(self.originals.clone());
        }
        self.tell(run.tools_missing(problems)).await;
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
        self.tell([RunEventKind::ModelCallStarted {
            step: run.steps(),
            model: model.id().clone(),
            tools: request.tools.len(),
            tool_choice: request.tool_choice.clone(),
        }])
        .await;
        let mut asked = Box::new(Asked {
            shown: Shown::new(run),
            traced: ChatTrace::begin(run.steps(), model.id(), &request, run.session()),
            request,
        });
        let span = asked.traced.span();
        let answer = self
            .stream_answer(run, model, &mut asked)
            .instrument(span)
            .await;
        run.tick((self.agent.clock)());
        let events = self.answered(run, asked, answer)?;
        self.tell_stored(run, events).await;
        Ok(Flow::Go)
    }

    /// Applies the result of a model call to the run.
    fn answered(
        &self,
        run: &mut Run,
        asked: Box<Asked>,
        answer: Answer,
    ) -> Result<Vec<RunEventKind>, UnexpectedInput> {
        let Asked { shown, traced, .. } = *asked;
        Ok(match answer {
            Answer::Whole(answer) => {
                traced.answered(&answer);
                let mut events = run.model_answered(answer)?;
                if run.outcome() == Some(Outcome::Failed)
                    && let Some(switched) = run.model_declined(self.next_model(run.model()))
                {
                    run.set_pricing(self.price_of(run.model()));
                    events.extend(switched);
                }
                // Also for a response that was cut off: the events and the report must agree.
                if let Some((_, formatter)) = shown.formatter.as_deref()
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
            Answer::Failed(error, partial) => {
                traced.failed(&error);
                let events = run.model_failed(&error, partial, self.next_model(run.model()))?;
                run.set_pricing(self.price_of(run.model()));
                events
            }
            Answer::Limited(hit, partial) => {
                run.answer_limited(&hit, partial);
                Vec::new()
            }
            Answer::Stopped(why, partial) => {
                self.stop(run, why, partial, &std::collections::HashMap::new())
            }
        })
    }

    async fn summary(
        &self,
        run: &mut Run,
        model: &dyn ChatModel,
        request: &ChatRequest,
    ) -> Result<Flow, UnexpectedInput> {
        if let Some(why) = self.is_stopped() {
            return Ok(Flow::Stopped(why));
        }
        let step = run.steps() + 1;
        let traced = ChatTrace::begin(step, model.id(), request, run.session()).for_summary();
        let asked = self
            .unless_stopped(model.complete(request))
            .instrument(traced.span())
            .await;
        run.tick((self.agent.clock)());
        let events = match asked {
            Ok(Ok(answer)) => {
                traced.answered(&answer);
                run.summary_finished(Ok(answer))?
            }
            Ok(Err(error)) => {
                traced.failed(&error);
                run.summary_finished(Err(&error))?
            }
            Err(why) => return Ok(Flow::Stopped(why)),
        };
        self.tell_stored(run, events).await;
        Ok(Flow::Go)
    }

    /// Yields to the reader. The reader may cancel the run, and the wall time must be checked for
    /// streams that are always ready.
    async fn heard(&self, told: usize) -> Option<Stopped> {
        if told > 0 {
            handover().await;
        }
        self.is_stopped()
    }

    async fn stream_answer(&self, run: &Run, model: &dyn ChatModel, asked: &mut Asked) -> Answer {
        let Asked {
            request,
            shown,
            traced,
        } = asked;
        // The reader may have taken long for the start event.
        if let Some(why) = self.is_stopped() {
            return Answer::Stopped(why, None);
        }
        let provider = &model.id().provider;
        let mut stream = match self.unless_stopped(model.stream(request)).await {
            Err(why) => return Answer::Stopped(why, None),
            Ok(Err(error)) => return Answer::Failed(error, None),
            Ok(Ok(stream)) => stream,
        };
        let mut answer = ResponseAccumulator::default();
        let mut meter = AnswerMeter::default();
        let max_bytes = run.options().limits.max_answer_bytes.unwrap_or(u64::MAX);
        let partial =
            |answer: ResponseAccumulator| answer.has_output().then(|| answer.interrupted());
        // A response without published output has no partial answer; a fallback model may answer.
        let failed = |error, shown: &Shown, answer: ResponseAccumulator| {
            Answer::Failed(error, shown.has_output.then(|| answer.interrupted()))
        };
        let mut stopped = pin!(self.stopped());
        // Events that the reader could not take yet.
        let mut told = Told::default();
        loop {
            let next = poll_fn(|context| match stream.poll_next_unpin(context) {
                Poll::Ready(next) => Poll::Ready(Some(Ok(next))),
                // Available events are taken together before the driver waits.
                Poll::Pending if told.count > 0 => Poll::Ready(None),
                Poll::Pending => stopped.as_mut().poll(context).map(|why| Some(Err(why))),
            });
            match next.await {
                None => {}
                Some(Err(why)) => return Answer::Stopped(why, partial(answer)),
                Some(Ok(None)) => break,
                Some(Ok(Some(Err(error)))) => {
                    if let Some(why) = self.heard(told.count).await {
                        return Answer::Stopped(why, partial(answer));
                    }
                    return failed(error, shown, answer);
                }
                // The model does not report what the run publishes, such as a formatted answer.
                Some(Ok(Some(Ok(ModelEvent::Retrying { retry })))) if shown.has_output => {
                    if let Some(why) = self.heard(told.count).await {
                        return Answer::Stopped(why, partial(answer));
                    }
                    let kind = ModelErrorKind::Interrupted;
                    let error = ModelError::new(&**provider, kind, retry.reason);
                    return failed(error, shown, answer);
                }
                Some(Ok(Some(Ok(event)))) => {
                    if !matches!(event, ModelEvent::Retrying { .. }) {
                        traced.first_chunk();
                    }
                    if meter.count(&event) > max_bytes {
                        if let Some(why) = self.heard(told.count).await {
                            return Answer::Stopped(why, partial(answer));
                        }
                        let hit = LimitHit::AnswerBytes { max: max_bytes };
                        return Answer::Limited(hit, partial(answer));
                    }
                    if let Err(fault) = answer.push(&event) {
                        if let Some(why) = self.heard(told.count).await {
                            return Answer::Stopped(why, partial(answer));
                        }
                        let error = ModelError::from_grammar(&**provider, fault);
                        return failed(error, shown, answer);
                    }
                    told.heard += 1;
                    shown.of(event, run, &mut |kind| {
                        let time = *told.since.get_or_insert_with(|| (self.agent.clock)());
                        self.publisher.publish_at(kind, time);
                        told.count += 1;
                    });
                    // Events without output also need a check of the clock.
                    if told.heard < TOLD_TOGETHER {
                        continue;
                    }
                }
            }
            let count = std::mem::take(&mut told).count;
            if let Some(why) = self.heard(count).await {
                return Answer::Stopped(why, partial(answer));
            }
        }
        if told.count > 0
            && let Some(why) = self.heard(told.count).await
        {
            return Answer::Stopped(why, partial(answer));
        }
        if !answer.is_finished() {
            let error = ModelError::from_grammar(
                &**provider,
                switchboard_domain::GrammarViolation::NoFinish,
            );
            return failed(error, shown, answer);
        }
        match answer.finish() {
            Ok(answer) => Answer::Whole(answer),
            Err(fault) => Answer::Failed(ModelError::from_grammar(&**provider, fault), None),
        }
    }
}

impl Shown {
    /// Returns the state before the first event of a response.
    fn new(run: &Run) -> Self {
        Self {
            open_tools: Vec::new(),
            ids: None,
            has_output: false,
            gathers: run.stage() == Some(RunPhase::Gathering),
            formatter: run.partial_formatter().map(Box::new),
        }
    }

    /// Publishes the visible part of a model event.
    fn of(&mut self, event: ModelEvent, run: &Run, say: &mut impl FnMut(RunEventKind)) {
        let mut has_output = self.has_output;
        self.emit(event, run, &mut |kind| {
            has_output |= is_output(&kind);
            say(kind);
        });
        self.has_output = has_output;
    }

    fn emit(&mut self, event: ModelEvent, run: &Run, say: &mut impl FnMut(RunEventKind)) {
        match event {
            ModelEvent::Retrying { retry } => {
                // The calls of the next attempt get the same ids.
                *self = Self::new(run);
                say(RunEventKind::ModelCallRetried {
                    step: run.steps(),
                    attempt: retry.attempt,
                    delay_ms: retry.delay_ms,
                    reason: retry.reason,
                });
            }
            ModelEvent::TextDelta { text, .. } => match self.formatter.as_deref_mut() {
                Some((FormatterMode::Native, formatter)) => read(formatter, &text, say),
                // Text beside the formatted answer is not part of the answer.
                Some(_) => say(RunEventKind::ReasoningDelta { text }),
                None if self.gathers => say(RunEventKind::ReasoningDelta { text }),
                None => say(RunEventKind::TextDelta { text }),
            },
            ModelEvent::ReasoningDelta { text, .. } => say(RunEventKind::ReasoningDelta { text }),
            ModelEvent::PartStarted {
                index,
                part: PartStart::ToolUse { id, name },
            } => {
                let id = self.ids.get_or_insert_with(|| run.unique_ids()).unique(&id);
                self.open_tools.push((index, id.clone()));
                if self.formatter.is_none() {
                    say(RunEventKind::ToolInputStarted { id, name });
                }
            }
            ModelEvent::ToolInputDelta { index, json } => {
                if let Some((_, formatter)) = self.formatter.as_deref_mut() {
                    return read(formatter, &json, say);
                }
                let mut open = self.open_tools.iter().rev();
                if let Some((_, id)) = open.find(|(open, _)| *open == index) {
                    let id = id.clone();
                    say(RunEventKind::ToolInputDelta { id, json });
                }
            }
            ModelEvent::PartStarted {
                part: PartStart::Whole { part },
                ..
            } => {
                if let Part::Opaque(block) = *part {
                    say(RunEventKind::ProviderBlock {
                        kind: block.kind,
                        text: block.text,
                    });
                }
            }
            _ => {}
        }
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

fn read(formatter: &mut PartialFormatter, json: &str, say: &mut impl FnMut(RunEventKind)) {
    for delta in formatter.push(json) {
        say(RunEventKind::TextDelta { text: delta.text });
    }
}

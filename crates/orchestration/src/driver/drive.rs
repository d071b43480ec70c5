//! Executes the steps of a run.

use std::{collections::HashMap, time::Duration};

use futures_util::{StreamExt, stream};
use switchboard_domain::{
    ApprovalDecision, ApprovalRequest, ChatRequest, ChatResponse, ModelError, ModelEvent, Part,
    PartStart, ProgressSink, ResponseAccumulator, ToolCall, ToolCallError, ToolCatalog,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Agent,
    publish::{Publisher, handover},
};
use crate::{PlannedCall, Run, RunEventKind, RunReport, Step, ToolAnswer, UnexpectedInput};

/// A tool host keeps deadlines itself and knows more about a time-out than we do; this much later
/// the call is dropped even if the host does not.
const TOOL_TIMEOUT_GRACE: Duration = Duration::from_secs(2);

pub(super) struct Driver {
    agent: Agent,
    publisher: Publisher,
    cancel: CancellationToken,
}

/// Whether the loop goes on.
enum Flow {
    Go,
    Cancelled,
}

enum ModelAnswer {
    Whole(ChatResponse),
    Failed(ModelError, Option<ChatResponse>),
    Cancelled(Option<ChatResponse>),
}

impl Driver {
    pub(super) fn new(agent: Agent, publisher: Publisher, cancel: CancellationToken) -> Self {
        Self {
            agent,
            publisher,
            cancel,
        }
    }

    pub(super) async fn drive(self, mut run: Run, resumed: bool) -> Run {
        let model = self.agent.model.id().clone();
        self.tell([RunEventKind::RunStarted { model, resumed }])
            .await;
        if resumed {
            self.tell(run.recover()).await;
        }
        loop {
            let done = match run.next_step() {
                Step::Done => break,
                _ if self.cancel.is_cancelled() => Ok(Flow::Cancelled),
                Step::CallModel => self.call_model(&mut run).await,
                Step::AskApproval(requests) => self.ask(&mut run, &requests).await,
                Step::CallTools(calls) => self.call_tools(&mut run, calls).await,
            };
            match done {
                Ok(Flow::Go) => {}
                Ok(Flow::Cancelled) => self.tell(run.cancel(None, &HashMap::new())).await,
                Err(fault) => self.tell(run.abort(&fault)).await,
            }
        }
        if let Some(report) = run.report() {
            let report: Box<RunReport> = Box::new(report);
            self.publisher.publish(RunEventKind::RunFinished { report });
        }
        run.next_event = self.publisher.next_number();
        run
    }

    /// Says what happened, and goes on when the reader has heard it. Whatever the reader then
    /// decides, such as to cancel, holds for the very next thing that the driver does.
    async fn tell(&self, kinds: impl IntoIterator<Item = RunEventKind>) {
        if self.publisher.publish_all(kinds) {
            handover().await;
        }
    }

    async fn call_model(&self, run: &mut Run) -> Result<Flow, UnexpectedInput> {
        let catalog = match &self.agent.tools {
            None => ToolCatalog::default(),
            Some(host) => match self.cancel.run_until_cancelled(host.tools()).await {
                Some(catalog) => catalog,
                None => return Ok(Flow::Cancelled),
            },
        };
        self.tell(run.tools_unavailable(&catalog.problems)).await;
        if self.cancel.is_cancelled() {
            return Ok(Flow::Cancelled);
        }
        let request = run.begin_model_call(catalog.tools);
        self.tell([RunEventKind::ModelCallStarted {
            step: run.steps(),
            model: self.agent.model.id().clone(),
            tools: request.tools.len(),
        }])
        .await;
        let events = match self.stream_answer(&request).await {
            ModelAnswer::Whole(answer) => run.model_answered(answer)?,
            ModelAnswer::Failed(error, partial) => run.model_failed(&error, partial)?,
            ModelAnswer::Cancelled(partial) => run.cancel(partial, &HashMap::new()),
        };
        self.tell(events).await;
        Ok(Flow::Go)
    }

    async fn stream_answer(&self, request: &ChatRequest) -> ModelAnswer {
        let provider = &self.agent.model.id().provider;
        let mut stream = match self
            .cancel
            .run_until_cancelled(self.agent.model.stream(request))
            .await
        {
            None => return ModelAnswer::Cancelled(None),
            Some(Err(error)) => return ModelAnswer::Failed(error, None),
            Some(Ok(stream)) => stream,
        };
        let mut answer = ResponseAccumulator::default();
        let mut open_tools: Vec<(u32, String)> = Vec::new();
        let partial =
            |answer: ResponseAccumulator| answer.has_output().then(|| answer.interrupted());
        loop {
            match self.cancel.run_until_cancelled(stream.next()).await {
                None => return ModelAnswer::Cancelled(partial(answer)),
                Some(None) => break,
                Some(Some(Err(error))) => return ModelAnswer::Failed(error, partial(answer)),
                Some(Some(Ok(event))) => {
                    if let Err(fault) = answer.push(&event) {
                        let error = ModelError::from_grammar(provider, fault);
                        return ModelAnswer::Failed(error, partial(answer));
                    }
                    self.tell(shown(event, &mut open_tools)).await;
                }
            }
        }
        if !answer.is_finished() {
            let error =
                ModelError::from_grammar(provider, switchboard_domain::GrammarViolation::NoFinish);
            return ModelAnswer::Failed(error, partial(answer));
        }
        match answer.finish() {
            Ok(answer) => ModelAnswer::Whole(answer),
            Err(fault) => ModelAnswer::Failed(ModelError::from_grammar(provider, fault), None),
        }
    }

    async fn ask(
        &self,
        run: &mut Run,
        requests: &[ApprovalRequest],
    ) -> Result<Flow, UnexpectedInput> {
        // One question at a time: a person answers them one at a time.
        for request in requests {
            let decision = match &self.agent.approver {
                None => ApprovalDecision::NobodyThere,
                Some(approver) => {
                    match self
                        .cancel
                        .run_until_cancelled(approver.decide(request))
                        .await
                    {
                        Some(decision) => decision,
                        None => return Ok(Flow::Cancelled),
                    }
                }
            };
            self.tell(run.decided(&request.tool_use.id, decision)?)
                .await;
        }
        Ok(Flow::Go)
    }

    async fn call_tools(
        &self,
        run: &mut Run,
        calls: Vec<PlannedCall>,
    ) -> Result<Flow, UnexpectedInput> {
        let at_once = run.options().max_concurrent_tools.max(1);
        let timeout = run.options().tool_timeout;
        let mut waiting = calls.into_iter();
        let mut running = stream::FuturesUnordered::new();
        let mut started: HashMap<String, Instant> = HashMap::new();
        loop {
            while running.len() < at_once && !self.cancel.is_cancelled() {
                let Some(call) = waiting.next() else { break };
                let events = run.tool_started(&call.id)?;
                started.insert(call.id.clone(), Instant::now());
                self.tell(events).await;
                running.push(self.call_tool(call, timeout));
            }
            match self.cancel.run_until_cancelled(running.next()).await {
                None => break,
                Some(None) => return Ok(Flow::Go),
                Some(Some((id, answer))) => self.tell(run.tool_finished(&id, answer)?).await,
            }
        }
        // Dropping what is running cancels it at its servers, which need not wait until the reader
        // has heard of it.
        drop(running);
        let elapsed = started
            .into_iter()
            .map(|(id, since)| (id, milliseconds(since.elapsed())))
            .collect();
        self.tell(run.cancel(None, &elapsed)).await;
        Ok(Flow::Go)
    }

    async fn call_tool(
        &self,
        planned: PlannedCall,
        timeout: Option<Duration>,
    ) -> (String, ToolAnswer) {
        let started = Instant::now();
        let PlannedCall {
            id,
            name,
            input,
            idempotency_key,
            ..
        } = planned;
        let progress = {
            let (publisher, id) = (self.publisher.clone(), id.clone());
            ProgressSink::new(move |progress| publisher.progress(&id, progress))
        };
        let call = ToolCall {
            name: name.clone(),
            input,
            deadline: timeout,
            idempotency_key: Some(idempotency_key),
            progress,
        };
        let result = match (&self.agent.tools, timeout) {
            (None, _) => Err(ToolCallError::UnknownTool {
                name,
                available: Vec::new(),
            }),
            (Some(host), None) => host.call(call).await,
            (Some(host), Some(timeout)) => {
                match tokio::time::timeout(timeout + TOOL_TIMEOUT_GRACE, host.call(call)).await {
                    Ok(result) => result,
                    Err(_) => Err(ToolCallError::Timeout {
                        server: "the tool host".to_owned(),
                        tool: name,
                        after: timeout + TOOL_TIMEOUT_GRACE,
                    }),
                }
            }
        };
        (
            id,
            ToolAnswer {
                result,
                attempts: 1,
                duration_ms: milliseconds(started.elapsed()),
            },
        )
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What of a model's event whoever watches the run gets to see.
fn shown(event: ModelEvent, open_tools: &mut Vec<(u32, String)>) -> Option<RunEventKind> {
    match event {
        ModelEvent::TextDelta { text, .. } => Some(RunEventKind::TextDelta { text }),
        ModelEvent::ReasoningDelta { text, .. } => Some(RunEventKind::ReasoningDelta { text }),
        ModelEvent::PartStarted {
            index,
            part: PartStart::ToolUse { id, name },
        } => {
            open_tools.push((index, id.clone()));
            Some(RunEventKind::ToolInputStarted { id, name })
        }
        ModelEvent::ToolInputDelta { index, json } => {
            let (_, id) = open_tools.iter().rev().find(|(open, _)| *open == index)?;
            Some(RunEventKind::ToolInputDelta {
                id: id.clone(),
                json,
            })
        }
        ModelEvent::PartStarted {
            part: PartStart::Whole {
                part: Part::Opaque(block),
            },
            ..
        } => Some(RunEventKind::ProviderBlock {
            kind: block.kind,
            text: block.text,
        }),
        ModelEvent::Warning { warning } => Some(RunEventKind::Warning { warning }),
        _ => None,
    }
}

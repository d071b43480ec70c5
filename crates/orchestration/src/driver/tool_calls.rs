//! Tool calls of the driver.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream};
use switchboard_domain::{
    Principal, ProgressSink, SharedObject, ToolAnnotations, ToolCall, ToolCallError,
    ToolDefinition, ToolOutput,
};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{
    checkpoint::Checkpoint,
    drive::{Driver, FirstOf, Flow, first_of, milliseconds},
};
use crate::{
    PlannedCall, Run, Step, ToolCallOutcome, UnexpectedInput,
    observe::trace::ToolTrace,
    tools::arguments::MissingContext,
    tools::only_reads,
    tools::results::{CacheKey, ResultCache},
};

/// Delay after the deadline of a call. The tool host keeps the deadline and knows more about a
/// time-out; the driver drops the call after this delay.
const TOOL_TIMEOUT_GRACE: Duration = Duration::from_secs(2);

/// A call to its host. Boxed, because it is large.
struct Outgoing {
    planned: PlannedCall,
    /// The tool as declared by its host, if needed.
    declared: Option<Arc<ToolDefinition>>,
    /// The input with injected values, or an error if a required value is missing.
    injected: Result<Option<SharedObject>, MissingContext>,
    key: Option<CacheKey>,
    /// The principal, if servers may ask questions.
    principal: Option<Principal>,
}

/// Returns whether a call is not safe to repeat, so that its intent is stored first.
fn needs_stored_intent(call: &PlannedCall) -> bool {
    !only_reads(call.annotations) && call.annotations.idempotent != Some(true)
}

/// Returns whether the next step stores the run first.
fn stores_next(run: &mut Run) -> bool {
    match run.next_step() {
        Step::AskApproval(_) => true,
        Step::CallTools(calls) => calls.first().is_some_and(needs_stored_intent),
        _ => false,
    }
}

/// Marks a running call that may change data of its server. Results read meanwhile are not cached.
struct Change<'a> {
    cache: &'a ResultCache,
    server: &'a str,
}

impl<'a> Change<'a> {
    fn begin(cache: &'a ResultCache, server: &'a str) -> Self {
        cache.invalidate(server);
        Self { cache, server }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.cache.invalidate(self.server);
    }
}

impl Driver {
    pub(super) async fn call_tools(
        &self,
        run: &mut Run,
        calls: Vec<PlannedCall>,
    ) -> Result<Flow, UnexpectedInput> {
        if calls.is_empty() {
            // The run was stored and not recovered: its calls were sent, and no task waits for
            // them.
            return Err(UnexpectedInput {
                method: "next_step",
                reason: "calls are under way that this driver did not start".to_owned(),
            });
        }
        let max_concurrent = run.options().max_concurrent_tools.max(1);
        let timeout = run.options().tool_timeout;
        let mut waiting = calls.into_iter();
        let mut running = stream::FuturesUnordered::new();
        let mut started: Vec<(String, Instant)> = Vec::new();
        let run_id = run.id().to_owned();
        // Decisions about later calls may arrive while these run.
        let unrequested = self.unrequested_approvals(run, |_| false);
        let stopped = 'calls: loop {
            let mut starting = Vec::new();
            while running.len() + starting.len() < max_concurrent && self.stop_reason().is_none() {
                let Some(planned) = waiting.next() else { break };
                let call = self.outgoing(run, planned);
                if let Some(output) = self.cached(&call) {
                    let outcome = ToolCallOutcome {
                        attempts: 0,
                        cached: true,
                        ..ToolCallOutcome::new(Ok(output), 0)
                    };
                    let events = run.tool_finished(&call.planned.id, outcome)?;
                    self.emit_stored(run, events).await;
                    continue;
                }
                let events = run.tool_started(&call.planned.id)?;
                starting.push((call, events));
            }
            let is_stored = if starting
                .iter()
                .any(|(call, _)| needs_stored_intent(&call.planned))
            {
                self.checkpoint(run, Checkpoint::Leaving).await
            } else {
                true
            };
            for (call, events) in starting {
                let id = &call.planned.id;
                if self.stop_reason().is_some() {
                    run.cancel_start(id)?;
                } else if !is_stored && needs_stored_intent(&call.planned) {
                    let events = run.reject_unstored_call(id)?;
                    self.emit_stored(run, events).await;
                } else {
                    started.push((id.clone(), Instant::now()));
                    self.emit(events).await;
                    running.push(self.call_tool(call, timeout));
                }
            }
            if running.is_empty()
                && let Some(reason) = self.stop_reason()
            {
                break 'calls reason;
            }
            let mut next = loop {
                let finished = first_of(running.next(), self.early_decision(&run_id, &unrequested));
                match self.unless_stopped(finished).await {
                    Err(reason) => break 'calls reason,
                    Ok(FirstOf::Awaited(next)) => break next,
                    Ok(FirstOf::EarlyDecision(index, decision)) => {
                        let call = &unrequested[index];
                        self.apply_early_decision(run, call, decision).await?;
                    }
                }
            };
            if next.is_none() {
                if !stores_next(run) {
                    self.checkpoint(run, Checkpoint::Settled).await;
                }
                return Ok(Flow::Continue);
            }
            // Calls that ended together are stored and published together.
            let mut ended = Vec::new();
            while let Some((id, outcome)) = next {
                run.tick((self.agent.clock)());
                ended.extend(run.tool_finished(&id, outcome)?);
                next = running.next().now_or_never().flatten();
            }
            self.emit_stored(run, ended).await;
            if let Some(reason) = self.stop_reason() {
                break 'calls reason;
            }
        };
        // Dropping the calls cancels them at their servers without waiting for the reader.
        drop(running);
        let elapsed = started
            .into_iter()
            .map(|(id, since)| (id, milliseconds(since.elapsed())))
            .collect();
        let events = self.stop(run, stopped, None, &elapsed);
        self.emit_stored(run, events).await;
        Ok(Flow::Continue)
    }

    fn outgoing(&self, run: &Run, planned: PlannedCall) -> Box<Outgoing> {
        let declared = self.declared_tool(&planned.name).cloned();
        let injected = match &declared {
            // Events have the input without injected values.
            Some(declared) if self.context.concerns(declared) => {
                let input = planned.input.clone().into_object();
                let injected = self.context.inject(declared, input);
                injected.map(|input| Some(input.into()))
            }
            _ => Ok(None),
        };
        let key = match (&self.agent.cache, &declared, &injected) {
            (Some(cache), Some(declared), Ok(injected)) => {
                let input = injected.as_ref().unwrap_or(&planned.input);
                cache.key(run.principal(), declared, input)
            }
            _ => None,
        };
        let questions = self.agent.questions.as_ref();
        Box::new(Outgoing {
            planned,
            declared,
            injected,
            key,
            principal: questions.map(|_| run.principal().clone()),
        })
    }

    fn cached(&self, call: &Outgoing) -> Option<ToolOutput> {
        let cache = self.agent.cache.as_ref()?;
        cache.get(call.key.as_ref()?, (self.agent.clock)())
    }

    async fn call_tool(
        &self,
        call: Box<Outgoing>,
        timeout: Option<Duration>,
    ) -> (String, ToolCallOutcome) {
        let started = Instant::now();
        let Outgoing {
            planned,
            declared,
            injected,
            key,
            principal,
        } = *call;
        let PlannedCall {
            id,
            name,
            server,
            input: shown,
            annotations,
            idempotency_key,
            ..
        } = planned;
        if declared.is_none() && self.agent.tools.is_some() {
            // The tool disappeared after planning, so its injected values and rights are unknown.
            let available = self.declared_tools.iter().map(|tool| tool.name.clone());
            let gone = ToolCallError::UnknownTool {
                name,
                available: available.collect(),
            };
            return (id, ToolCallOutcome::new(Err(gone), 0));
        }
        let injected = match injected {
            Ok(injected) => injected,
            Err(missing) => {
                let unavailable = ToolCallError::Unavailable {
                    server: server.unwrap_or_default(),
                    reason: missing.to_string(),
                };
                return (id, ToolCallOutcome::new(Err(unavailable), 0));
            }
        };
        let trace = ToolTrace::begin(&id, server.as_deref(), &name, &shown);
        // Registered until the end of the call, for questions of its server.
        let questions = self.agent.questions.as_ref().zip(principal);
        let _registered = questions.map(|(questions, principal)| {
            let (publisher, context) = (&self.publisher, &self.context);
            questions.register_call(&idempotency_key, &id, principal, publisher, context)
        });
        // Dropped at the end of the call, also if the call is cancelled.
        let change = self.begin_change(server.as_deref(), annotations);
        let attempts = Arc::new(AtomicU32::new(1));
        let call = ToolCall {
            name,
            input: injected.unwrap_or(shown),
            deadline: timeout,
            idempotency_key: Some(idempotency_key),
            progress: self.progress_sink(&id, &attempts),
        };
        let called = self.call_host(call, timeout).instrument(trace.span());
        let mut result = called.await;
        let attempts = attempts.load(Ordering::Relaxed);
        let context = &self.context;
        let mut violates_output_schema = false;
        result = match result {
            Ok(mut output) => {
                context.redact_output(&mut output);
                if let Some(declared) = &declared {
                    let (checked, faults) = self.agent.outputs.apply(declared, output);
                    violates_output_schema = !faults.is_empty();
                    output = checked;
                }
                if let (Some(cache), Some(key), false) =
                    (&self.agent.cache, key, violates_output_schema)
                {
                    cache.put(key, &output, (self.agent.clock)());
                }
                Ok(output)
            }
            Err(error) => Err(self.redacted(error)),
        };
        // After the removal of injected values, which a server may echo.
        trace.ended(&result, attempts);
        drop(change);
        let outcome = ToolCallOutcome {
            attempts,
            violates_output_schema,
            ..ToolCallOutcome::new(result, milliseconds(started.elapsed()))
        };
        (id, outcome)
    }

    /// Marks a call that may change data, so that cached results of its server become invalid.
    fn begin_change<'a>(
        &'a self,
        server: Option<&'a str>,
        annotations: ToolAnnotations,
    ) -> Option<Change<'a>> {
        let cache = self.agent.cache.as_deref();
        match (cache, server, only_reads(annotations)) {
            (Some(cache), Some(server), false) => Some(Change::begin(cache, server)),
            _ => None,
        }
    }

    /// Returns the sink for progress and repeated attempts of a call.
    fn progress_sink(&self, id: &str, attempts: &Arc<AtomicU32>) -> ProgressSink {
        let (publisher, call) = (self.publisher.clone(), id.to_owned());
        let context = self.context.clone();
        let sink = ProgressSink::new(move |mut progress| {
            progress.message = progress
                .message
                .map(|message| context.redact_text(&message).into_owned());
            publisher.progress(&call, progress);
        });
        let (publisher, call) = (self.publisher.clone(), id.to_owned());
        let (context, attempts) = (self.context.clone(), Arc::clone(attempts));
        sink.with_retries(move |mut retry| {
            attempts.store(retry.attempt, Ordering::Relaxed);
            retry.reason = context.redact_text(&retry.reason).into_owned();
            publisher.retry(&call, retry);
        })
    }

    async fn call_host(
        &self,
        call: ToolCall,
        timeout: Option<Duration>,
    ) -> Result<ToolOutput, ToolCallError> {
        let Some(host) = &self.agent.tools else {
            return Err(ToolCallError::UnknownTool {
                name: call.name,
                available: Vec::new(),
            });
        };
        let Some(timeout) = timeout else {
            return host.call(call).await;
        };
        let name = call.name.clone();
        let max_duration = timeout.saturating_add(TOOL_TIMEOUT_GRACE);
        match tokio::time::timeout(max_duration, host.call(call)).await {
            Ok(result) => result,
            Err(_) => Err(ToolCallError::Timeout {
                server: "the tool host".to_owned(),
                tool: name,
                after: max_duration,
            }),
        }
    }

    /// Removes injected values from an error of the tool host.
    fn redacted(&self, error: ToolCallError) -> ToolCallError {
        if self.context.is_empty() {
            return error;
        }
        let redact = |text: String| self.context.redact_text(&text).into_owned();
        match error {
            ToolCallError::Unavailable { server, reason } => ToolCallError::Unavailable {
                server,
                reason: redact(reason),
            },
            ToolCallError::Refused {
                server,
                tool,
                code,
                message,
            } => ToolCallError::Refused {
                server,
                tool,
                code,
                message: redact(message),
            },
            ToolCallError::Broken {
                server,
                tool,
                reason,
            } => ToolCallError::Broken {
                server,
                tool,
                reason: redact(reason),
            },
            ToolCallError::InvalidAnswer {
                server,
                tool,
                reason,
            } => ToolCallError::InvalidAnswer {
                server,
                tool,
                reason: redact(reason),
            },
            other => other,
        }
    }
}

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

use super::drive::{Driver, Flow, Heard, either, milliseconds};
use crate::{
    PlannedCall, Run, Step, ToolCallOutcome, UnexpectedInput,
    observe::trace::ToolTrace,
    persistence::checkpoint::Checkpoint,
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
    original: Option<Arc<ToolDefinition>>,
    /// The input with injected values, or an error if a required value is missing.
    injected: Result<Option<SharedObject>, MissingContext>,
    key: Option<CacheKey>,
    /// The principal, if servers may ask questions.
    principal: Option<Principal>,
}

/// Calls that are safe to repeat need no stored intent.
fn may_harm(call: &PlannedCall) -> bool {
    !only_reads(call.annotations) && call.annotations.idempotent != Some(true)
}

/// Returns whether the next step stores the run first.
fn stores_next(run: &mut Run) -> bool {
    match run.next_step() {
        Step::AskApproval(_) => true,
        Step::CallTools(calls) => calls.first().is_some_and(may_harm),
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
        let at_once = run.options().max_concurrent_tools.max(1);
        let timeout = run.options().tool_timeout;
        let mut waiting = calls.into_iter();
        let mut running = stream::FuturesUnordered::new();
        let mut started: Vec<(String, Instant)> = Vec::new();
        let run_id = run.id().to_owned();
        // Decisions about later calls may arrive while these run.
        let ahead = self.not_asked(run, |_| false);
        let stopped = 'calls: loop {
            let mut leaving = Vec::new();
            while running.len() + leaving.len() < at_once && self.is_stopped().is_none() {
                let Some(planned) = waiting.next() else { break };
                let call = self.outgoing(run, planned);
                if let Some(output) = self.cached(&call) {
                    let answer = ToolCallOutcome {
                        attempts: 0,
                        cached: true,
                        ..ToolCallOutcome::new(Ok(output), 0)
                    };
                    let events = run.tool_finished(&call.planned.id, answer)?;
                    self.tell_stored(run, events).await;
                    continue;
                }
                let events = run.tool_started(&call.planned.id)?;
                leaving.push((call, events));
            }
            let is_stored = if leaving.iter().any(|(call, _)| may_harm(&call.planned)) {
                self.reached(run, Checkpoint::Leaving).await
            } else {
                true
            };
            for (call, events) in leaving {
                let id = &call.planned.id;
                if self.is_stopped().is_some() {
                    run.cancel_start(id)?;
                } else if !is_stored && may_harm(&call.planned) {
                    let events = run.reject_unstored_call(id)?;
                    self.tell_stored(run, events).await;
                } else {
                    started.push((id.clone(), Instant::now()));
                    self.tell(events).await;
                    running.push(self.call_tool(call, timeout));
                }
            }
            if running.is_empty()
                && let Some(why) = self.is_stopped()
            {
                break 'calls why;
            }
            let mut next = loop {
                let heard = either(running.next(), self.early_decision(&run_id, &ahead));
                match self.unless_stopped(heard).await {
                    Err(why) => break 'calls why,
                    Ok(Heard::First(next)) => break next,
                    Ok(Heard::Ahead(place, word)) => {
                        self.heard_ahead(run, &ahead[place], word).await?;
                    }
                }
            };
            if next.is_none() {
                if !stores_next(run) {
                    self.reached(run, Checkpoint::Settled).await;
                }
                return Ok(Flow::Go);
            }
            // Calls that ended together are stored and published together.
            let mut ended = Vec::new();
            while let Some((id, answer)) = next {
                run.tick((self.agent.clock)());
                ended.extend(run.tool_finished(&id, answer)?);
                next = running.next().now_or_never().flatten();
            }
            self.tell_stored(run, ended).await;
            if let Some(why) = self.is_stopped() {
                break 'calls why;
            }
        };
        // Dropping the calls cancels them at their servers without waiting for the reader.
        drop(running);
        let elapsed = started
            .into_iter()
            .map(|(id, since)| (id, milliseconds(since.elapsed())))
            .collect();
        let events = self.stop(run, stopped, None, &elapsed);
        self.tell_stored(run, events).await;
        Ok(Flow::Go)
    }

    fn outgoing(&self, run: &Run, planned: PlannedCall) -> Box<Outgoing> {
        let original = self.original(&planned.name).cloned();
        let injected = match &original {
            // Events have the input without injected values.
            Some(original) if self.context.concerns(original) => {
                let input = planned.input.clone().into_object();
                let injected = self.context.inject(original, input);
                injected.map(|input| Some(input.into()))
            }
            _ => Ok(None),
        };
        let key = match (&self.agent.cache, &original, &injected) {
            (Some(cache), Some(original), Ok(injected)) => {
                let input = injected.as_ref().unwrap_or(&planned.input);
                cache.key(run.principal(), original, input)
            }
            _ => None,
        };
        let questions = self.agent.questions.as_ref();
        Box::new(Outgoing {
            planned,
            original,
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
            original,
            injected,
            key,
            principal,
        } = *call;
        let PlannedCall {
            id,
            name,
            server,
            input: told,
            annotations,
            idempotency_key,
            ..
        } = planned;
        if original.is_none() && self.agent.tools.is_some() {
            // The tool disappeared after planning, so its injected values and rights are unknown.
            let available = self.originals.iter().map(|tool| tool.name.clone());
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
        let traced = ToolTrace::begin(&id, server.as_deref(), &name, &told);
        // Registered until the end of the call, for questions of its server.
        let questions = self.agent.questions.as_ref().zip(principal);
        let _registered = questions.map(|(questions, principal)| {
            let (publisher, context) = (&self.publisher, &self.context);
            questions.register_call(&idempotency_key, &id, principal, publisher, context)
        });
        // Also if the call is dropped.
        let forgets = self.forgets_what_was_read(server.as_deref(), annotations);
        let attempts = Arc::new(AtomicU32::new(1));
        let call = ToolCall {
            name,
            input: injected.unwrap_or(told),
            deadline: timeout,
            idempotency_key: Some(idempotency_key),
            progress: self.listener(&id, &attempts),
        };
        let called = self.call_host(call, timeout).instrument(traced.span());
        let mut result = called.await;
        let attempts = attempts.load(Ordering::Relaxed);
        let context = &self.context;
        let mut violates_output_schema = false;
        result = match result {
            Ok(mut output) => {
                context.redact_output(&mut output);
                if let Some(original) = &original {
                    let (held, faults) = self.agent.outputs.apply(original, output);
                    violates_output_schema = !faults.is_empty();
                    output = held;
                }
                if let (Some(cache), Some(key), false) =
                    (&self.agent.cache, key, violates_output_schema)
                {
                    cache.put(key, &output, (self.agent.clock)());
                }
                Ok(output)
            }
            Err(error) => Err(self.scrubbed(error)),
        };
        // After the removal of injected values, which a server may echo.
        traced.ended(&result, attempts);
        drop(forgets);
        let answer = ToolCallOutcome {
            attempts,
            violates_output_schema,
            ..ToolCallOutcome::new(result, milliseconds(started.elapsed()))
        };
        (id, answer)
    }

    /// A changing call invalidates cached results, also if it failed.
    fn forgets_what_was_read<'a>(
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

    fn listener(&self, id: &str, attempts: &Arc<AtomicU32>) -> ProgressSink {
        let (publisher, to) = (self.publisher.clone(), id.to_owned());
        let context = self.context.clone();
        let sink = ProgressSink::new(move |mut progress| {
            progress.message = progress
                .message
                .map(|message| context.redact_text(&message).into_owned());
            publisher.progress(&to, progress);
        });
        let (publisher, to) = (self.publisher.clone(), id.to_owned());
        let (context, attempts) = (self.context.clone(), Arc::clone(attempts));
        sink.with_retries(move |mut retry| {
            attempts.store(retry.attempt, Ordering::Relaxed);
            retry.reason = context.redact_text(&retry.reason).into_owned();
            publisher.retry(&to, retry);
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
        let longest = timeout.saturating_add(TOOL_TIMEOUT_GRACE);
        match tokio::time::timeout(longest, host.call(call)).await {
            Ok(result) => result,
            Err(_) => Err(ToolCallError::Timeout {
                server: "the tool host".to_owned(),
                tool: name,
                after: longest,
            }),
        }
    }

    /// An error may echo injected values too.
    fn scrubbed(&self, error: ToolCallError) -> ToolCallError {
        if self.context.is_empty() {
            return error;
        }
        let scrub = |text: String| self.context.redact_text(&text).into_owned();
        match error {
            ToolCallError::Unavailable { server, reason } => ToolCallError::Unavailable {
                server,
                reason: scrub(reason),
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
                message: scrub(message),
            },
            ToolCallError::Broken {
                server,
                tool,
                reason,
            } => ToolCallError::Broken {
                server,
                tool,
                reason: scrub(reason),
            },
            ToolCallError::InvalidAnswer {
                server,
                tool,
                reason,
            } => ToolCallError::InvalidAnswer {
                server,
                tool,
                reason: scrub(reason),
            },
            other => other,
        }
    }
}

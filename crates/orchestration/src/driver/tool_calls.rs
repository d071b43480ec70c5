//! Tool calls: the driver executes the calls of a response concurrently.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream};
use switchboard_domain::{
    Principal, ProgressSink, ReachedCallRate, SharedObject, ToolCall, ToolCallError, ToolOutput,
};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{
    checkpoint::Checkpoint,
    run_driver::{RunDriver, StepOutcome},
};
use crate::{
    PlannedCall, Run, RunStep, ToolCallOutcome, UnexpectedInput,
    observe::trace::ToolTrace,
    policy::{duration_serde::to_milliseconds, limits::tool_call_limit_error},
    tools::is_read_only,
    tools::results::{CacheKey, ResultCache},
};

/// Time that the driver waits after the deadline of a tool call before it drops the call. Normally,
/// the tool host enforces the deadline, because its error describes the time-out better.
const TOOL_TIMEOUT_GRACE: Duration = Duration::from_secs(2);

/// Returns whether the run must be stored before this call, because the call is not safe to repeat.
fn needs_checkpoint_before_call(call: &PlannedCall) -> bool {
    !is_read_only(call.annotations) && call.annotations.idempotent != Some(true)
}

/// Returns whether the next step of the run starts with a checkpoint: an approval request, or a
/// tool call that is not safe to repeat. [`Checkpoint::Settled`] is then omitted.
fn next_step_has_checkpoint(run: &mut Run) -> bool {
    match run.next_step() {
        RunStep::AskApproval(_) => true,
        RunStep::CallTools(calls) => calls.first().is_some_and(needs_checkpoint_before_call),
        _ => false,
    }
}

/// A guard for a running call that may change data of its server. Dropping it invalidates all
/// cached results of the server, because calls that ran at the same time may have read outdated
/// data.
struct CacheInvalidationGuard<'a> {
    cache: &'a ResultCache,
    server: &'a str,
}

impl Drop for CacheInvalidationGuard<'_> {
    fn drop(&mut self) {
        self.cache.invalidate_server(self.server);
    }
}

impl RunDriver {
    pub(super) async fn call_tools(
        &self,
        run: &mut Run,
        calls: Vec<PlannedCall>,
    ) -> Result<StepOutcome, UnexpectedInput> {
        if calls.is_empty() {
            // All open calls of this run were started by an earlier process, and the caller loaded
            // the run without `Run::recover_run`. The results of these calls are unknown, so the
            // run ends with an error.
            let reason = "calls are running that this driver did not start";
            return Err(UnexpectedInput(reason.to_owned()));
        }
        let max_concurrent = run.run_options().max_concurrent_tools.max(1);
        let timeout = run.run_options().tool_timeout;
        let mut waiting = calls.into_iter();
        let mut running = stream::FuturesUnordered::new();
        let mut started: Vec<(String, Instant)> = Vec::new();
        let run_id = run.id().to_owned();
        // Approval decisions about later calls may arrive while these calls run.
        let unrequested = self.calls_without_approval_request(run, |_| false);
        let stopped = 'calls: loop {
            let mut starting = Vec::new();
            while running.len() + starting.len() < max_concurrent && self.stop_reason().is_none() {
                let Some(planned) = waiting.next() else { break };
                let input = self.add_hidden_arguments(run, &planned);
                let key = self.create_cache_key(run, &planned, &input);
                let cache = self.agent.cache.as_ref().zip(key.as_ref());
                let cached =
                    cache.and_then(|(cache, key)| cache.get_result(key, self.agent.current_time()));
                if let Some(output) = cached {
                    let outcome = ToolCallOutcome {
                        attempts: 0,
                        cached: true,
                        ..ToolCallOutcome::new(Ok(output), 0)
                    };
                    let events = run.apply_tool_outcome(&planned.id, outcome)?;
                    self.store_and_publish_events(run, events).await;
                    continue;
                }
                if let Some(reason) = self.count_call_rate(run, &planned.name).await {
                    let events = run.fail_call_on_rate_limit(&planned.id, &reason)?;
                    self.store_and_publish_events(run, events).await;
                    continue;
                }
                let events = run.record_tool_start(&planned.id)?;
                starting.push((planned, input, key, events));
            }
            let mut planned = starting.iter().map(|(planned, ..)| planned);
            let is_stored = !planned.any(needs_checkpoint_before_call)
                || self.store_checkpoint(run, Checkpoint::Leaving).await;
            for (planned, input, key, events) in starting {
                let id = &planned.id;
                if self.stop_reason().is_some() {
                    run.revert_tool_start(id)?;
                } else if !is_stored && needs_checkpoint_before_call(&planned) {
                    let events = run.fail_call_on_store_error(id)?;
                    self.store_and_publish_events(run, events).await;
                } else {
                    started.push((id.clone(), Instant::now()));
                    self.publish_events(events).await;
                    let principal = run.principal().clone();
                    running.push(self.call_tool(planned, input, key, principal, timeout));
                }
            }
            if running.is_empty()
                && let Some(reason) = self.stop_reason()
            {
                break 'calls reason;
            }
            let mut next = loop {
                if let Some(reason) = self.stop_reason() {
                    break 'calls reason;
                }
                tokio::select! {
                    biased;
                    next = running.next() => break next,
                    (call, decision) = self.wait_for_early_decision(&run_id, &unrequested) => {
                        self.apply_early_decision(run, &call, decision).await?;
                    }
                    reason = self.wait_until_stopped() => break 'calls reason,
                }
            };
            if next.is_none() {
                if !next_step_has_checkpoint(run) {
                    self.store_checkpoint(run, Checkpoint::Settled).await;
                }
                return Ok(StepOutcome::Continue);
            }
            // Calls that end at the same time are stored and published together.
            let mut ended = Vec::new();
            while let Some((id, outcome)) = next {
                run.set_current_time(self.agent.current_time());
                ended.extend(run.apply_tool_outcome(&id, outcome)?);
                next = running.next().now_or_never().flatten();
            }
            self.store_and_publish_events(run, ended).await;
            if let Some(reason) = self.stop_reason() {
                break 'calls reason;
            }
        };
        // Dropping the futures of the running calls cancels the calls at their servers. This
        // happens before the reader has taken the remaining events.
        drop(running);
        let elapsed = started
            .into_iter()
            .map(|(id, since)| (id, to_milliseconds(since.elapsed())))
            .collect();
        let events = self.stop_run(run, stopped, None, &elapsed);
        self.store_and_publish_events(run, events).await;
        Ok(StepOutcome::Continue)
    }

    /// Counts a call for the limits per minute. Returns the reason if the call must not start.
    async fn count_call_rate(&self, run: &Run, tool: &str) -> Option<String> {
        let limits = run.run_options().limits.call_rates_of_tool(tool)?;
        let rates = &self.agent.call_rates.0;
        let now = self.agent.current_time().as_microsecond();
        let error = match rates.count_call(run.principal(), tool, limits, now).await {
            Ok(None) => return None,
            Ok(Some(ReachedCallRate::AllTools(max))) => {
                tool_call_limit_error(max, " in a minute", "max_calls_per_minute")
            }
            Ok(Some(ReachedCallRate::ThisTool(max))) => {
                tool_call_limit_error(max, &format!(" of `{tool}` in a minute"), "tools")
            }
            Err(error) => {
                return Some(format!("the calls of the last minute are unknown: {error}"));
            }
        };
        Some(error.message)
    }

    /// Returns the cache key of a call, or `None` if the result must not come from the cache.
    /// `input` includes the values that are hidden from the model, because the result can depend on
    /// them.
    fn create_cache_key(
        &self,
        run: &Run,
        planned: &PlannedCall,
        input: &Result<SharedObject, ToolCallError>,
    ) -> Option<CacheKey> {
        let declared = run.declared_tool(&planned.name)?;
        let cache = self.agent.cache.as_ref()?;
        cache.create_key(run.principal(), declared, input.as_ref().ok()?)
    }

    /// Returns the input of a call together with the values that are hidden from the model. Returns
    /// an error if the tool is unknown or a required hidden value is missing.
    fn add_hidden_arguments(
        &self,
        run: &Run,
        planned: &PlannedCall,
    ) -> Result<SharedObject, ToolCallError> {
        let Some(declared) = run.declared_tool(&planned.name) else {
            // The call fails, because the hidden values and permissions of a tool without a
            // definition are unknown.
            let available = run.declared_tools().iter().map(|tool| tool.name.clone());
            return Err(ToolCallError::UnknownTool {
                name: planned.name.clone(),
                available: available.collect(),
            });
        };
        if !self.context.has_hidden_arguments(declared) {
            return Ok(planned.input.clone());
        }
        let input = planned.input.clone().into_object();
        let injected = self.context.inject_values(declared, input);
        let injected = injected.map_err(|missing| ToolCallError::Unavailable {
            server: planned.server.clone().unwrap_or_default(),
            reason: missing.to_string(),
        });
        injected.map(SharedObject::from)
    }

    async fn call_tool(
        &self,
        planned: PlannedCall,
        input: Result<SharedObject, ToolCallError>,
        key: Option<CacheKey>,
        principal: Principal,
        timeout: Option<Duration>,
    ) -> (String, ToolCallOutcome) {
        let started = Instant::now();
        let id = planned.id;
        let input = match input {
            Ok(input) => input,
            Err(error) => {
                let outcome = ToolCallOutcome {
                    attempts: 0,
                    ..ToolCallOutcome::new(Err(error), 0)
                };
                return (id, outcome);
            }
        };
        let (name, server, call_key) = (planned.name, planned.server, planned.idempotency_key);
        let trace = ToolTrace::open_span(&id, server.as_deref(), &name, &planned.input);
        // The call is registered while it runs, so that its server can ask the user questions.
        let _registered = self.agent.questions.as_ref().map(|questions| {
            let (publisher, context) = (&self.publisher, &self.context);
            questions.register_call(&call_key, &id, principal, publisher, context)
        });
        // A call that may change data invalidates the cached results of its server twice: before it
        // starts, and when it ends or is cancelled, which drops `change`.
        let cache = self.agent.cache.as_deref();
        let changing = cache.filter(|_| !is_read_only(planned.annotations));
        let change = changing.zip(server.as_deref()).map(|(cache, server)| {
            cache.invalidate_server(server);
            CacheInvalidationGuard { cache, server }
        });
        let attempts = Arc::new(AtomicU32::new(1));
        let call = ToolCall {
            name,
            input,
            deadline: timeout,
            idempotency_key: Some(call_key),
            progress: self.create_progress_sink(&id, &attempts),
        };
        let mut result = self
            .call_tool_host(call, timeout)
            .instrument(trace.clone_span())
            .await;
        let attempts = attempts.load(Ordering::Relaxed);
        match &mut result {
            Ok(output) => {
                self.context.redact_output(output);
                if let (Some(cache), Some(key)) = (cache, key) {
                    cache.store_result(key, output, self.agent.current_time());
                }
            }
            Err(error) => self.redact_error(error),
        }
        // The trace ends after hidden values were redacted, because a server may repeat them in its
        // result.
        trace.close_with_result(&result, attempts);
        drop(change);
        let outcome = ToolCallOutcome {
            attempts,
            ..ToolCallOutcome::new(result, to_milliseconds(started.elapsed()))
        };
        (id, outcome)
    }

    /// Creates the callbacks through which the tool host reports progress and repeated attempts of
    /// a call. The callbacks publish them as events.
    fn create_progress_sink(&self, id: &str, attempts: &Arc<AtomicU32>) -> ProgressSink {
        let (publisher, call) = (self.publisher.clone(), id.to_owned());
        let context = self.context.clone();
        let sink = ProgressSink::new(move |mut progress| {
            let redact = |text: String| context.redact_text(&text).into_owned();
            progress.message = progress.message.map(redact);
            publisher.publish_progress(&call, progress);
        });
        let (publisher, call) = (self.publisher.clone(), id.to_owned());
        let (context, attempts) = (self.context.clone(), Arc::clone(attempts));
        sink.on_retry(move |mut retry| {
            attempts.store(retry.attempt, Ordering::Relaxed);
            retry.reason = context.redact_text(&retry.reason).into_owned();
            publisher.publish_retry(&call, retry);
        })
    }

    async fn call_tool_host(
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
            return host.call_tool(call).await;
        };
        let name = call.name.clone();
        let max_duration = timeout.saturating_add(TOOL_TIMEOUT_GRACE);
        let result = tokio::time::timeout(max_duration, host.call_tool(call)).await;
        result.unwrap_or_else(|_| {
            Err(ToolCallError::Timeout {
                server: "the tool host".to_owned(),
                tool: name,
                after: max_duration,
            })
        })
    }

    /// Redacts hidden input values from an error of the tool host.
    fn redact_error(&self, error: &mut ToolCallError) {
        if let ToolCallError::Unavailable { reason, .. }
        | ToolCallError::Broken { reason, .. }
        | ToolCallError::InvalidAnswer { reason, .. }
        | ToolCallError::Refused {
            message: reason, ..
        } = error
        {
            *reason = self.context.redact_text(reason).into_owned();
        }
    }
}

//! Runs the tools.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use switchboard_domain::{
    JsonObject, ProgressSink, ToolCall, ToolCallError, ToolDefinition, ToolOutput,
};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::drive::{Driver, Flow, milliseconds};
use crate::{
    PlannedCall, Run, ToolAnswer, UnexpectedInput, checkpoint::Checkpoint, results::CacheKey,
    trace::ToolTrace,
};

/// A tool host keeps deadlines itself and knows more about a time-out than we do; this much later
/// the call is dropped even if the host does not.
const TOOL_TIMEOUT_GRACE: Duration = Duration::from_secs(2);

/// A call on its way to its host.
struct Outgoing {
    planned: PlannedCall,
    /// The tool as its host declares it, where anything depends on that.
    original: Option<Arc<ToolDefinition>>,
    /// What the host gets: the input with what is injected.
    input: JsonObject,
    key: Option<CacheKey>,
}

impl Driver {
    pub(super) async fn call_tools(
        &self,
        run: &mut Run,
        calls: Vec<PlannedCall>,
    ) -> Result<Flow, UnexpectedInput> {
        let at_once = run.options().max_concurrent_tools.max(1);
        let timeout = run.options().tool_timeout;
        let mut waiting = calls.into_iter();
        let mut running = stream::FuturesUnordered::new();
        let mut started: HashMap<String, Instant> = HashMap::new();
        let stopped = loop {
            let mut leaving = Vec::new();
            while running.len() + leaving.len() < at_once && !self.cancel.is_cancelled() {
                let Some(planned) = waiting.next() else { break };
                let call = self.outgoing(run, planned);
                if let Some(output) = self.cached(&call) {
                    let answer = ToolAnswer {
                        attempts: 0,
                        cached: true,
                        ..ToolAnswer::new(Ok(output), 0)
                    };
                    self.tell(run.tool_finished(&call.planned.id, answer)?)
                        .await;
                    continue;
                }
                let events = run.tool_started(&call.planned.id)?;
                started.insert(call.planned.id.clone(), Instant::now());
                self.tell(events).await;
                leaving.push(call);
            }
            if !leaving.is_empty() {
                self.reached(run, Checkpoint::Leaving).await;
                running.extend(
                    leaving
                        .into_iter()
                        .map(|call| self.call_tool(call, timeout)),
                );
            }
            match self.unless_stopped(running.next()).await {
                Err(why) => break why,
                Ok(None) => {
                    self.reached(run, Checkpoint::Settled).await;
                    return Ok(Flow::Go);
                }
                Ok(Some((id, answer))) => {
                    run.tick((self.agent.clock)());
                    self.tell(run.tool_finished(&id, answer)?).await;
                }
            }
        };
        // Dropping what is running cancels it at its servers, which need not wait until the reader
        // has heard of it.
        drop(running);
        let elapsed = started
            .into_iter()
            .map(|(id, since)| (id, milliseconds(since.elapsed())))
            .collect();
        let events = self.stop(run, stopped, None, &elapsed);
        self.tell(events).await;
        Ok(Flow::Go)
    }

    fn outgoing(&self, run: &Run, mut planned: PlannedCall) -> Outgoing {
        let mut input = std::mem::take(&mut planned.input);
        let original = self.original(&planned.name).cloned();
        if let Some(original) = &original {
            input = self.agent.context.inject(original, input);
        }
        let key = match (&self.agent.cache, &original) {
            (Some(cache), Some(original)) => cache.key(run.principal(), original, &input),
            _ => None,
        };
        Outgoing {
            planned,
            original,
            input,
            key,
        }
    }

    fn cached(&self, call: &Outgoing) -> Option<ToolOutput> {
        let cache = self.agent.cache.as_ref()?;
        cache.get(call.key.as_ref()?, (self.agent.clock)())
    }

    async fn call_tool(&self, call: Outgoing, timeout: Option<Duration>) -> (String, ToolAnswer) {
        let started = Instant::now();
        let Outgoing {
            planned,
            original,
            input,
            key,
        } = call;
        let PlannedCall {
            id,
            name,
            server,
            idempotency_key,
            ..
        } = planned;
        let traced = ToolTrace::begin(&id, server.as_deref(), &name, &input);
        let attempts = Arc::new(AtomicU32::new(1));
        let call = ToolCall {
            name: name.clone(),
            input,
            deadline: timeout,
            idempotency_key: Some(idempotency_key),
            progress: self.listener(&id, &attempts),
        };
        let called = self.call_host(call, timeout).instrument(traced.span());
        let mut result = called.await;
        let attempts = attempts.load(Ordering::Relaxed);
        traced.ended(&result, attempts);
        let context = &self.agent.context;
        let mut broke_promise = false;
        result = match result {
            Ok(mut output) => {
                context.scrub(&mut output);
                if let Some(original) = &original {
                    let (held, faults) = self.agent.outputs.hold(original, output);
                    broke_promise = !faults.is_empty();
                    output = held;
                }
                if let (Some(cache), Some(key), false) = (&self.agent.cache, key, broke_promise) {
                    cache.put(key, &output, (self.agent.clock)());
                }
                Ok(output)
            }
            Err(error) => Err(self.scrubbed(error)),
        };
        let answer = ToolAnswer {
            attempts,
            broke_promise,
            ..ToolAnswer::new(result, milliseconds(started.elapsed()))
        };
        (id, answer)
    }

    fn listener(&self, id: &str, attempts: &Arc<AtomicU32>) -> ProgressSink {
        let (publisher, to) = (self.publisher.clone(), id.to_owned());
        let context = self.agent.context.clone();
        let sink = ProgressSink::new(move |mut progress| {
            progress.message = progress
                .message
                .map(|message| context.scrub_text(&message).into_owned());
            publisher.progress(&to, progress);
        });
        let (publisher, to) = (self.publisher.clone(), id.to_owned());
        let (context, attempts) = (self.agent.context.clone(), Arc::clone(attempts));
        sink.with_retries(move |mut retry| {
            attempts.store(retry.attempt, Ordering::Relaxed);
            retry.reason = context.scrub_text(&retry.reason).into_owned();
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
        match tokio::time::timeout(timeout + TOOL_TIMEOUT_GRACE, host.call(call)).await {
            Ok(result) => result,
            Err(_) => Err(ToolCallError::Timeout {
                server: "the tool host".to_owned(),
                tool: name,
                after: timeout + TOOL_TIMEOUT_GRACE,
            }),
        }
    }

    /// A server may say what it was given in its error, too.
    fn scrubbed(&self, error: ToolCallError) -> ToolCallError {
        if self.agent.context.is_empty() {
            return error;
        }
        let scrub = |text: String| self.agent.context.scrub_text(&text).into_owned();
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
            other => other,
        }
    }
}

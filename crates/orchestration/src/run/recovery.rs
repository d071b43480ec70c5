//! Cancellation and other early ends of a run, and the resumption of a stored run.

use std::{collections::HashMap, sync::Arc};

use switchboard_domain::{ChatResponse, FinishReason, ToolDefinition};

use super::{
    AgentLoopState, Events, Run, UnexpectedInput,
    model_response::is_phase_start_event,
    server_and_tool_name,
    state::{ToolCallEnd, ToolCallState},
};
use crate::{
    Outcome, RunError, RunErrorKind, RunEventKind, ToolFailure,
    policy::{
        approval::{self, ApprovalVerdict},
        duration_serde::to_milliseconds,
        limits::{answer_size_limit_error, time_limit_error},
    },
    tools::is_read_only,
};

impl Run {
    /// Cancels the run. Each unfinished tool call gets a result that states the cancellation, so
    /// that the conversation stays valid. A finished run keeps its outcome.
    ///
    /// `partial` is the received part of a model response. `elapsed_ms` maps the ids of started
    /// calls to their running times in milliseconds; missing calls are reported with 0.
    pub fn cancel_run(
        &mut self,
        partial: Option<ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
    ) -> Events {
        if self.outcome().is_some() {
            return Vec::new();
        }
        let events = self.end_unfinished_calls(partial, elapsed_ms, "the run was cancelled");
        self.state.phase = AgentLoopState::Done(Outcome::Cancelled);
        events
    }

    /// Ends the run because its wall-time limit is reached. The parameters have the same meaning as
    /// those of [`Run::cancel_run`].
    pub fn end_at_time_limit(
        &mut self,
        partial: Option<ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
    ) -> Events {
        if self.outcome().is_some() {
            return Vec::new();
        }
        let max = self.state.options.limits.max_wall_time.unwrap_or_default();
        let used_ms = self.state.ledger.elapsed_ms(self.state.now);
        let events =
            self.end_unfinished_calls(partial, elapsed_ms, "the time limit of the run was reached");
        self.end_with_error(time_limit_error(used_ms, to_milliseconds(max)));
        events
    }

    /// Ends the run because a streamed response has more than `max_bytes` bytes. Stores the
    /// received part for the report.
    pub fn end_at_answer_size_limit(&mut self, max_bytes: u64, partial: Option<ChatResponse>) {
        if self.outcome().is_some() {
            return;
        }
        self.store_partial_response(partial);
        self.state.finish = Some(FinishReason::Length);
        self.end_with_error(answer_size_limit_error(max_bytes));
    }

    fn end_unfinished_calls(
        &mut self,
        partial: Option<ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
        why: &str,
    ) -> Events {
        self.store_partial_response(partial);
        let mut events = Vec::new();
        for position in 0..self.state.batch_calls().len() {
            let call = &self.state.batch_calls()[position];
            let end = match call.state {
                ToolCallState::Settled { .. } => continue,
                ToolCallState::Started => ToolCallEnd {
                    attempts: 1,
                    duration_ms: elapsed_ms.get(&call.tool_use.id).copied().unwrap_or(0),
                    ..ToolCallEnd::from_failure(
                        ToolFailure::Cancelled,
                        "Cancelled while running. It is unknown whether the tool completed its \
                         work.",
                    )
                },
                ToolCallState::Waiting { .. }
                | ToolCallState::Ready
                | ToolCallState::Repeats { .. } => {
                    ToolCallEnd::not_executed(ToolFailure::Cancelled, why)
                }
            };
            events.push(self.store_call_result(position, end));
        }
        // When all calls of a batch have results, `finish_batch_if_complete` may start the
        // formatting phase. The run ends here, so the phase is never executed and its start event
        // is omitted.
        let closed = self.finish_batch_if_complete().into_iter();
        events.extend(closed.filter(|event| !is_phase_start_event(event)));
        events
    }

    /// Ends the run with an internal error, because the driver called a method in the wrong state.
    /// `fault` is the error that the called method returned.
    pub fn abort_run(&mut self, fault: &UnexpectedInput) -> Events {
        let events = self.cancel_run(None, &HashMap::new());
        self.end_with_error(RunError::new(RunErrorKind::Internal, fault.to_string()));
        events
    }

    /// Prepares a stored run for resumption after its process ended unexpectedly.
    ///
    /// A call that started and has no result was interrupted, and its effect is unknown. The call
    /// runs again only if its tool is read-only or idempotent. Otherwise its result states the
    /// interruption.
    pub fn recover_run(&mut self) -> Events {
        match self.state.phase {
            AgentLoopState::CallingModel => {
                // The response was lost, so the model is called again. The repeated call must not
                // count as a second step.
                self.state.phase = AgentLoopState::Model;
                self.state.ledger.uncount_model_call();
            }
            AgentLoopState::Summarising => self.state.phase = AgentLoopState::Model,
            AgentLoopState::Model | AgentLoopState::Batch(_) | AgentLoopState::Done(_) => {}
        }
        let mut events = Vec::new();
        for position in 0..self.state.batch_calls().len() {
            let call = &mut self.state.batch_calls_mut()[position];
            if !matches!(call.state, ToolCallState::Started) {
                continue;
            }
            if is_read_only(call.annotations) || call.annotations.idempotent == Some(true) {
                call.state = ToolCallState::Ready;
            } else {
                let end = ToolCallEnd {
                    attempts: 1,
                    ..ToolCallEnd::from_failure(
                        ToolFailure::Interrupted,
                        "Interrupted: the program ended while the tool was running. It is unknown \
                         whether the tool completed its work. Check before you try again.",
                    )
                };
                events.extend(self.end_call(position, end));
            }
        }
        events.extend(self.finish_batch_if_complete());
        events
    }

    /// Checks again whether the calls that have not started are valid and need approval, with the
    /// current tool definitions.
    ///
    /// An approval covers one tool definition of one server. If the definition or the server
    /// changed, the approval is requested again. The approval rules are applied again to a call
    /// that had no approval. A call of a missing tool does not change.
    pub fn recheck_planned_calls(&mut self, tools: &[Arc<ToolDefinition>]) -> Events {
        let mut events = Vec::new();
        for position in 0..self.state.batch_calls().len() {
            let name = &self.state.batch_calls()[position].tool_use.name;
            if let Some(current) = tools.iter().find(|tool| tool.name == *name) {
                events.extend(self.recheck_planned_call(position, current));
            }
        }
        events.extend(self.finish_batch_if_complete());
        events
    }

    fn recheck_planned_call(&mut self, position: usize, current: &Arc<ToolDefinition>) -> Events {
        let call = &self.state.batch_calls()[position];
        if !call.is_waiting_or_ready() {
            return Vec::new();
        }
        let was_ready = matches!(call.state, ToolCallState::Ready);
        let declared = self.declared_tool(&current.name);
        let fingerprint = approval::tool_fingerprint(declared.unwrap_or(current));
        // A tool that another server offers under the same name needs a new approval, even if its
        // definition is equal.
        let is_moved = call.origin != current.origin;
        let was_asked = call.fingerprint.is_some();
        if was_asked && !is_moved && call.fingerprint.as_ref() == Some(&fingerprint) {
            return Vec::new();
        }
        let (id, input) = (call.tool_use.id.clone(), call.effective_input());
        let verdict = self.check_new_call_approval(current).0;
        if let Err(faults) = self.caches.validators.validate_input(current, &input) {
            let text = format!(
                "Not executed: the definition of `{}` changed, and the input no longer matches \
                 it: {faults}",
                current.name
            );
            let end = ToolCallEnd::from_failure(ToolFailure::InvalidInput, text);
            return self.end_call(position, end);
        }
        if let ApprovalVerdict::Refuse { reason, remembered } = verdict {
            return self.deny_call(position, ToolFailure::Denied, reason, remembered);
        }
        self.replace_tool_definition(position, current, is_moved);
        let call = &mut self.state.batch_calls_mut()[position];
        if verdict == ApprovalVerdict::Run && !was_asked {
            call.state = ToolCallState::Ready;
            return Vec::new();
        }
        call.fingerprint = Some(fingerprint);
        call.state = ToolCallState::Waiting {
            expires_at: None,
            redefined: true,
        };
        let awaiting = was_ready.then_some(RunEventKind::ToolAwaitingApproval { id });
        awaiting.into_iter().collect()
    }

    /// Replaces the tool definition of a planned call by the current definition.
    fn replace_tool_definition(
        &mut self,
        position: usize,
        current: &Arc<ToolDefinition>,
        is_moved: bool,
    ) {
        let call = &mut self.state.batch_calls_mut()[position];
        call.annotations = current.annotations;
        call.barrier |= current.sequential;
        if is_moved {
            call.origin.clone_from(&current.origin);
            let record = call.record;
            if let Some(record) = self.state.records.get_mut(record) {
                (record.server, record.tool) =
                    server_and_tool_name(current.origin.as_ref(), &current.name);
            }
        }
        let tools = &mut self.state.turn.tools;
        match tools.iter_mut().find(|tool| tool.name == current.name) {
            Some(known) => *known = Arc::clone(current),
            None => tools.push(Arc::clone(current)),
        }
    }

    /// Changes calls that are ready to start to calls that wait for approval, if their tool is
    /// missing. They wait until the tool is available again or a person denies them.
    pub(crate) fn suspend_calls_without_tool(&mut self) -> Events {
        let mut events = Vec::new();
        for position in 0..self.state.batch_calls().len() {
            let call = &self.state.batch_calls()[position];
            let is_ready = matches!(call.state, ToolCallState::Ready);
            if !is_ready || self.declared_tool(&call.tool_use.name).is_some() {
                continue;
            }
            events.push(RunEventKind::ToolAwaitingApproval {
                id: call.tool_use.id.clone(),
            });
            self.state.batch_calls_mut()[position].state = ToolCallState::Waiting {
                expires_at: None,
                redefined: false,
            };
        }
        events
    }

    /// Returns the plan event and the approval event of each unfinished call again. A client of a
    /// resumed run may have missed the original events.
    pub(crate) fn replay_call_events(&self) -> Events {
        let mut events = Vec::new();
        let calls = self.state.batch_calls().iter();
        for call in calls.filter(|call| !call.has_result()) {
            let Some(record) = self.state.records.get(call.record) else {
                continue;
            };
            events.push(RunEventKind::ToolPlanned {
                id: record.id.clone(),
                server: record.server.clone(),
                tool: record.tool.clone(),
                input: call.effective_input().to_value(),
            });
            if matches!(call.state, ToolCallState::Waiting { .. }) {
                events.push(RunEventKind::ToolAwaitingApproval {
                    id: record.id.clone(),
                });
            }
        }
        events
    }
}

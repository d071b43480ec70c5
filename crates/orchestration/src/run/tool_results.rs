//! The start, the end and the result of tool calls.

use std::sync::Arc;

use switchboard_domain::{Message, Part, Role, ToolOutput};

use super::{
    AgentLoopState, Events, Run, ToolCallOutcome, UnexpectedInput,
    state::{RequestedToolCall, ToolCallEnd, ToolCallState},
};
use crate::{RunEventKind, ToolFailure, strategy::repeated_calls};

const STOPPED_BY_GUARD: &str = "the result of an earlier call in this answer prevents it";

impl Run {
    /// Records that the driver starts a tool call. The effect of the call is unknown until it
    /// finishes.
    pub fn record_tool_start(&mut self, id: &str) -> Result<Events, UnexpectedInput> {
        let position = self.find_unfinished_call(id)?;
        let call = &mut self.state.batch_calls_mut()[position];
        if !matches!(call.state, ToolCallState::Ready) {
            let reason = format!("`{id}` is not ready to start");
            return Err(UnexpectedInput(reason));
        }
        call.state = ToolCallState::Started;
        Ok(vec![RunEventKind::ToolStarted { id: id.to_owned() }])
    }

    /// Reverts the recorded start of a tool call that the driver did not send and whose start event
    /// it did not emit.
    pub(crate) fn revert_tool_start(&mut self, id: &str) -> Result<(), UnexpectedInput> {
        let position = self.find_unfinished_call(id)?;
        let call = &mut self.state.batch_calls_mut()[position];
        if matches!(call.state, ToolCallState::Started) {
            call.state = ToolCallState::Ready;
        }
        Ok(())
    }

    /// Ends a tool call without sending it, because the run could not be stored before the call.
    /// Used for tools that are not safe to repeat: without the stored start, the call might run
    /// twice after a crash.
    pub(crate) fn fail_call_on_store_error(&mut self, id: &str) -> Result<Events, UnexpectedInput> {
        let position = self.find_unfinished_call(id)?;
        let end = ToolCallEnd::from_failure(
            ToolFailure::NotStored,
            "Not executed: the run could not be stored before this call, so after a crash the tool \
             might run twice. Do not call it again before the user has repaired the storage.",
        );
        let mut events = self.end_call(position, end);
        events.extend(self.finish_batch_if_complete());
        Ok(events)
    }

    /// Ends a tool call without sending it, because a limit of calls per minute is reached or could
    /// not be checked.
    pub(crate) fn fail_call_on_rate_limit(
        &mut self,
        id: &str,
        reason: &str,
    ) -> Result<Events, UnexpectedInput> {
        let position = self.find_unfinished_call(id)?;
        let end = ToolCallEnd::not_executed(ToolFailure::LimitReached, reason);
        let mut events = self.end_call(position, end);
        events.extend(self.finish_batch_if_complete());
        Ok(events)
    }

    /// Records the outcome of a tool call. Returns an error if the call was not started, unless the
    /// outcome comes from the result cache.
    pub fn apply_tool_outcome(
        &mut self,
        id: &str,
        outcome: ToolCallOutcome,
    ) -> Result<Events, UnexpectedInput> {
        let position = self.find_unfinished_call(id)?;
        let is_expected = match self.state.batch_calls()[position].state {
            ToolCallState::Started => true,
            ToolCallState::Ready => outcome.cached,
            _ => false,
        };
        if !is_expected {
            let reason = format!("`{id}` was not started");
            return Err(UnexpectedInput(reason));
        }
        let end = ToolCallEnd::from(outcome);
        // A configured guard prevents the later calls of the same response if this output meets its
        // condition. The guard checks the complete output, before it is truncated for the model.
        let is_stopped = self.is_stopped_by_guard(position, &end.output);
        let mut events = vec![self.store_call_result(position, end)];
        if is_stopped {
            events.extend(self.skip_later_calls(position, STOPPED_BY_GUARD));
        }
        events.extend(self.finish_batch_if_complete());
        Ok(events)
    }

    /// Ends a tool call that did not run. Also ends the later calls of the same model response if
    /// [`Run::skip_calls_after_denial_or_guard`] requires it.
    pub(super) fn end_call(&mut self, position: usize, end: ToolCallEnd) -> Events {
        let mut events = vec![self.store_call_result(position, end)];
        events.extend(self.skip_calls_after_denial_or_guard(position));
        events
    }

    /// Skips the later calls of the same model response in two cases: the call at index `position`
    /// was denied and the option `stop_after_denial` is set, or its result meets the condition of a
    /// configured guard.
    pub(super) fn skip_calls_after_denial_or_guard(&mut self, position: usize) -> Events {
        let call = &self.state.batch_calls()[position];
        let ToolCallState::Settled { result } = &call.state else {
            return Vec::new();
        };
        let record = self.state.records.get(call.record);
        let is_denied = record.is_some_and(|call| call.failure == Some(ToolFailure::Denied));
        if is_denied && self.state.options.stop_after_denial {
            return self.skip_later_calls(position, "an earlier call in this answer was declined");
        }
        if self.is_stopped_by_guard(position, &ToolOutput::from(result)) {
            return self.skip_later_calls(position, STOPPED_BY_GUARD);
        }
        Vec::new()
    }

    fn is_stopped_by_guard(&self, position: usize, output: &ToolOutput) -> bool {
        let name = &self.state.batch_calls()[position].tool_use.name;
        let mut guards = self.state.options.guards.iter();
        guards.any(|guard| guard.stops_later_calls(name, output))
    }

    /// Ends the calls of the last model response after index `position` that have not started. The
    /// model reads `why` as their result.
    fn skip_later_calls(&mut self, position: usize, why: &str) -> Events {
        let mut events = Vec::new();
        for later in position + 1..self.state.batch_calls().len() {
            let call = &self.state.batch_calls()[later];
            if call.is_waiting_or_ready() || matches!(call.state, ToolCallState::Repeats { .. }) {
                let end = ToolCallEnd::not_executed(ToolFailure::Skipped, why);
                events.push(self.store_call_result(later, end));
            }
        }
        events
    }

    /// Stores the result of a tool call and returns the event of its end. The event and the result
    /// contain the content that the model reads. If this content is truncated, the complete text is
    /// stored for [`READ_TOOL`](crate::tools::results::READ_TOOL).
    pub(super) fn store_call_result(&mut self, position: usize, end: ToolCallEnd) -> RunEventKind {
        let call = &self.state.batch_calls()[position];
        let (id, name) = (call.tool_use.id.clone(), call.tool_use.name.clone());
        let record = call.record;
        let mut output = end.output;
        if end.is_limited {
            let complete;
            (output, complete) = self.state.options.results.limit_result(&id, &name, output);
            if let Some(complete) = complete {
                let after = self.messages.len();
                self.state.complete_results.store_result(complete, after);
            }
        }
        if matches!(
            end.failure,
            Some(
                ToolFailure::LimitReached
                    | ToolFailure::Skipped
                    | ToolFailure::Unavailable
                    | ToolFailure::NotStored
            )
        ) {
            self.allow_repeated_call(&id);
        }
        let result = output.into_result(id.clone(), name);
        if let Some(entry) = self.state.records.get_mut(record) {
            entry.is_error = result.is_error;
            entry.failure = end.failure;
            entry.cached = end.cached;
            entry.attempts = end.attempts;
            entry.duration_ms = end.duration_ms;
        }
        let event = RunEventKind::ToolFinished {
            id,
            is_error: result.is_error,
            failure: end.failure,
            cached: end.cached,
            attempts: end.attempts,
            duration_ms: end.duration_ms,
            content: Arc::clone(&result.content),
            structured: result.structured.clone(),
        };
        self.state.batch_calls_mut()[position].state = ToolCallState::Settled { result };
        event
    }

    /// Adds one message with all tool results to the conversation, in the order of the calls. Has
    /// no effect until every call of the last model response has a result.
    pub(super) fn finish_batch_if_complete(&mut self) -> Events {
        let mut events = self.copy_results_to_repeated_calls();
        let AgentLoopState::Batch(calls) = &mut self.state.phase else {
            return events;
        };
        if !calls.iter().all(RequestedToolCall::has_result) {
            return events;
        }
        let calls = std::mem::take(calls).into_iter();
        let results = calls.filter_map(|call| match call.state {
            ToolCallState::Settled { result } => Some(Part::ToolResult(result)),
            _ => None,
        });
        let message = Message::new(Role::Tool, results);
        self.messages.push(Arc::new(message));
        self.state.phase = AgentLoopState::Model;
        if self.is_gathering() {
            events.extend(self.finish_gathering_step());
        }
        events
    }

    /// Copies the results of earlier calls to the calls that repeat them. The earlier call always
    /// precedes its repetitions, even in the same model response.
    fn copy_results_to_repeated_calls(&mut self) -> Events {
        let mut events = Vec::new();
        for position in 0..self.state.batch_calls().len() {
            let call = &self.state.batch_calls()[position];
            let ToolCallState::Repeats { of } = &call.state else {
                continue;
            };
            let mut earlier_calls = self.state.batch_calls()[..position].iter();
            let earlier_call = earlier_calls.find(|earlier| earlier.tool_use.id == *of);
            let result = match earlier_call.map(|earlier| &earlier.state) {
                Some(ToolCallState::Settled { result }) => Some(result),
                Some(_) => continue,
                None => {
                    // The search starts at the end, because the conversation before the run may
                    // contain the same tool use id.
                    let mut messages = self.messages.iter().rev();
                    messages.find_map(|message| {
                        message
                            .tool_results()
                            .find(|result| result.tool_use_id == *of)
                    })
                }
            };
            let end = match result {
                Some(result) => ToolCallEnd {
                    output: (&repeated_calls::copy_earlier_result(result, &call.tool_use.id))
                        .into(),
                    failure: Some(ToolFailure::Repeated),
                    ..ToolCallEnd::default()
                },
                None => ToolCallEnd::not_executed(
                    ToolFailure::Repeated,
                    "the same call was made before",
                ),
            };
            events.extend(self.end_call(position, end));
        }
        events
    }

    /// Returns the index of the unfinished call with this tool use id among the calls of the last
    /// model response. Returns an error for an unknown call.
    pub(super) fn find_unfinished_call(&self, id: &str) -> Result<usize, UnexpectedInput> {
        let mut calls = self.state.batch_calls().iter();
        let position = calls.position(|call| call.tool_use.id == id && !call.has_result());
        position.ok_or_else(|| UnexpectedInput(format!("no open tool call has the id `{id}`")))
    }
}

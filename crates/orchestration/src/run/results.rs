//! Starts, ends and results of calls.

use std::sync::Arc;

use switchboard_domain::{Message, Part, Role, ToolOutput, ToolResult};

use super::{
    Events, Phase, Run, ToolCallOutcome, UnexpectedInput,
    state::{CallEnd, CallState, PendingCall},
};
use crate::{RunEventKind, ToolFailure, strategy::repeats};

const STOPPED_BY_GUARD: &str = "the result of an earlier call of this answer rules it out";

impl Run {
    /// Records that the driver starts a tool call. The effect of the call is unknown until it
    /// finishes.
    pub fn tool_started(&mut self, id: &str) -> Result<Events, UnexpectedInput> {
        let position = self.open_position("tool_started", id)?;
        let call = &mut self.state.calls_mut()[position];
        if !matches!(call.state, CallState::Ready) {
            let reason = format!("`{id}` is not ready to start");
            return Err(UnexpectedInput::new("tool_started", reason));
        }
        call.state = CallState::Started;
        Ok(vec![RunEventKind::ToolStarted { id: id.to_owned() }])
    }

    /// Reverts the start of a tool call that was not sent. No start event was emitted for the call.
    pub(crate) fn cancel_start(&mut self, id: &str) -> Result<(), UnexpectedInput> {
        let position = self.open_position("cancel_start", id)?;
        let call = &mut self.state.calls_mut()[position];
        if matches!(call.state, CallState::Started) {
            call.state = CallState::Ready;
        }
        Ok(())
    }

    /// Ends a tool call without executing it, because the run could not be stored before the call.
    /// After a crash, the call might run twice.
    pub(crate) fn reject_unstored_call(&mut self, id: &str) -> Result<Events, UnexpectedInput> {
        let position = self.open_position("reject_unstored_call", id)?;
        let end = CallEnd::failed(
            ToolFailure::NotStored,
            "Not executed: the run could not be stored before this call, so after a crash the tool \
             might run twice. Do not call it again before the person has repaired the storage.",
        );
        let mut events = self.end_call(position, end);
        events.extend(self.close_batch_if_settled());
        Ok(events)
    }

    /// Records the outcome of a started tool call. An outcome from the cache needs no start.
    pub fn tool_finished(
        &mut self,
        id: &str,
        outcome: ToolCallOutcome,
    ) -> Result<Events, UnexpectedInput> {
        let position = self.open_position("tool_finished", id)?;
        let is_expected = match self.state.calls()[position].state {
            CallState::Started => true,
            CallState::Ready => outcome.cached,
            _ => false,
        };
        if !is_expected {
            let reason = format!("`{id}` was not started");
            return Err(UnexpectedInput::new("tool_finished", reason));
        }
        let end = CallEnd::from(outcome);
        // The guard checks the complete output, before the output is truncated for the model.
        let is_stopped = self.guard_stops(position, &end.output);
        let mut events = vec![self.settle(position, end)];
        if is_stopped {
            events.extend(self.skip_later_calls(position, STOPPED_BY_GUARD));
        }
        events.extend(self.close_batch_if_settled());
        Ok(events)
    }

    /// Ends a tool call that did not run, and skips later calls of the batch if necessary.
    pub(super) fn end_call(&mut self, position: usize, end: CallEnd) -> Events {
        let mut events = vec![self.settle(position, end)];
        events.extend(self.stop_later_calls(position));
        events
    }

    /// Skips later calls of the batch if this call was denied, or if a guard stops them because of
    /// its result.
    pub(super) fn stop_later_calls(&mut self, position: usize) -> Events {
        let call = &self.state.calls()[position];
        let CallState::Settled { result } = &call.state else {
            return Vec::new();
        };
        let record = self.state.records.get(call.record);
        let is_denied = record.is_some_and(|call| call.failure == Some(ToolFailure::Denied));
        if is_denied && self.state.options.stop_after_denial {
            return self.skip_later_calls(position, "an earlier call of this answer was declined");
        }
        if self.guard_stops(position, &ToolOutput::from(result)) {
            return self.skip_later_calls(position, STOPPED_BY_GUARD);
        }
        Vec::new()
    }

    fn guard_stops(&self, position: usize, output: &ToolOutput) -> bool {
        let name = &self.state.calls()[position].tool_use.name;
        let mut guards = self.state.options.guards.iter();
        guards.any(|guard| guard.stops_later_calls(name, output))
    }

    /// Ends later calls of the batch that have not started, with `why` as the reason for the model.
    fn skip_later_calls(&mut self, position: usize, why: &str) -> Events {
        let mut events = Vec::new();
        for later in position + 1..self.state.calls().len() {
            let call = &self.state.calls()[later];
            if call.is_unstarted() || matches!(call.state, CallState::Repeats { .. }) {
                let end = CallEnd::failed(ToolFailure::Skipped, format!("Not executed: {why}."));
                events.push(self.settle(later, end));
            }
        }
        events
    }

    /// Stores the result of a tool call and returns the event of its end.
    pub(super) fn settle(&mut self, position: usize, end: CallEnd) -> RunEventKind {
        let call = &self.state.calls()[position];
        let (id, name) = (call.tool_use.id.clone(), call.tool_use.name.clone());
        let (event, result) = self.record_end(call.record, id, name, end);
        self.state.calls_mut()[position].state = CallState::Settled { result };
        event
    }

    /// Records the end of a tool call. The event, the record and the result contain the content
    /// that the model reads. A truncated result is stored completely for
    /// [`READ_TOOL`](crate::tools::results::READ_TOOL).
    pub(super) fn record_end(
        &mut self,
        record: usize,
        id: String,
        name: String,
        end: CallEnd,
    ) -> (RunEventKind, ToolResult) {
        let mut output = end.output;
        if end.is_limited {
            let complete;
            (output, complete) = self.state.options.results.apply(&id, &name, output);
            if let Some(complete) = complete {
                let position = self.messages.len();
                self.state.complete_results.store(complete, position);
            }
        }
        let ToolOutput {
            content,
            structured,
            is_error,
        } = output;
        let (content, structured) = (Arc::from(content), structured.map(Arc::new));
        if matches!(
            end.failure,
            Some(
                ToolFailure::LimitReached
                    | ToolFailure::Skipped
                    | ToolFailure::Unavailable
                    | ToolFailure::NotStored
            )
        ) {
            self.allow_repeat(&id);
        }
        if let Some(entry) = self.state.records.get_mut(record) {
            entry.is_error = is_error;
            entry.failure = end.failure;
            entry.cached = end.cached;
            entry.attempts = end.attempts;
            entry.duration_ms = end.duration_ms;
        }
        let event = RunEventKind::ToolFinished {
            id: id.clone(),
            is_error,
            failure: end.failure,
            cached: end.cached,
            attempts: end.attempts,
            duration_ms: end.duration_ms,
            content: Arc::clone(&content),
            structured: structured.clone(),
        };
        let result = ToolResult {
            tool_use_id: id,
            name,
            content,
            structured,
            is_error,
        };
        (event, result)
    }

    /// Adds all tool results as one message, in the order of the calls, once every call of the
    /// batch has a result.
    pub(super) fn close_batch_if_settled(&mut self) -> Events {
        let mut events = self.settle_repeats();
        let Phase::Batch(calls) = &mut self.state.phase else {
            return events;
        };
        if !calls.iter().all(PendingCall::is_settled) {
            return events;
        }
        let calls = std::mem::take(calls).into_iter();
        let results = calls.filter_map(|call| match call.state {
            CallState::Settled { result } => Some(Part::ToolResult(result)),
            _ => None,
        });
        let message = Message::new(Role::Tool, results);
        self.messages.push(Arc::new(message));
        self.state.phase = Phase::Model;
        if self.is_gathering() {
            events.extend(self.finish_gather_step());
        }
        events
    }

    /// Copies the results of earlier calls to the calls that repeat them. An earlier call always
    /// precedes its repetitions.
    fn settle_repeats(&mut self) -> Events {
        let mut events = Vec::new();
        for position in 0..self.state.calls().len() {
            let call = &self.state.calls()[position];
            let CallState::Repeats { of } = &call.state else {
                continue;
            };
            let mut earlier_calls = self.state.calls()[..position].iter();
            let earlier_call = earlier_calls.find(|earlier| earlier.tool_use.id == *of);
            let result = match earlier_call.map(|earlier| &earlier.state) {
                Some(CallState::Settled { result }) => Some(result),
                Some(_) => continue,
                None => {
                    // An id can occur again in the conversation before the run, so the search
                    // starts at the end.
                    let mut messages = self.messages.iter().rev();
                    messages.find_map(|message| {
                        message.results().find(|result| result.tool_use_id == *of)
                    })
                }
            };
            let end = match result {
                Some(result) => {
                    CallEnd::repeated(&repeats::repeated_result(result, &call.tool_use.id))
                }
                None => CallEnd::failed(
                    ToolFailure::Repeated,
                    "Not executed: the same call was made before.",
                ),
            };
            events.extend(self.end_call(position, end));
        }
        events
    }

    /// Returns the index in the batch of the unfinished call with this id.
    pub(super) fn open_position(
        &self,
        method: &'static str,
        id: &str,
    ) -> Result<usize, UnexpectedInput> {
        let mut calls = self.state.calls().iter();
        let position = calls.position(|call| call.tool_use.id == id && !call.is_settled());
        position.ok_or_else(|| {
            UnexpectedInput::new(method, format!("no open tool call has the id `{id}`"))
        })
    }
}

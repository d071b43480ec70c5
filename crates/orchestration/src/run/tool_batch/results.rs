//! How a run takes in decisions and what tools gave, and brings every call to its one result.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::Arc,
    time::Duration,
};

use switchboard_domain::{
    ApprovalDecision, ApprovalScope, Message, Part, Role, SharedObject, ToolDefinition, ToolOutput,
    ToolResult, check_depth,
};

use crate::run::{
    Events, Phase, Run, ToolAnswer, UnexpectedInput,
    tool_batch::batch::{CallEnd, CallState, PendingCall},
    unexpected,
};
use crate::{
    RecordedResult, RunEventKind, ToolFailure,
    policy::approval::{Asker, Verdict},
    strategy::repeats,
};

const RULED_OUT: &str = "the result of an earlier call of this answer rules it out";

impl Run {
    /// Somebody decided about a call that waits for approval.
    ///
    /// [`ApprovalDecision::Later`] leaves the question open. A decision that comes after the request
    /// expired counts as [`ApprovalDecision::Expired`]; [`Run::tick`] says what time it is.
    pub fn decided(
        &mut self,
        id: &str,
        decision: ApprovalDecision,
    ) -> Result<Events, UnexpectedInput> {
        let position = self.position("decided", id)?;
        let left = self.answer_time_left(id);
        let Phase::Batch(calls) = &mut self.phase else {
            return Err(unexpected("decided", "no tool calls are under way"));
        };
        let CallState::Waiting { input, .. } = &mut calls[position].state else {
            return Err(unexpected(
                "decided",
                format!("`{id}` does not wait for approval"),
            ));
        };
        if decision == ApprovalDecision::Later {
            return Ok(Vec::new());
        }
        let input = input.clone();
        let name = calls[position].tool_use.name.clone();
        let record = calls[position].record;
        let decision = match left {
            Some(Duration::ZERO) => ApprovalDecision::Expired,
            _ => decision,
        };
        let definition = self.definition(&name).cloned();
        let declared = self.declaration(&name).cloned();
        let is_remembered = declared.as_ref().is_some_and(|definition| {
            if self.options.approval.is_always_asked(definition) {
                return false;
            }
            let session = self.session.as_deref().unwrap_or(&self.id);
            let asker = Asker {
                principal: &self.principal,
                session,
            };
            let until = self.options.approval.remembered_until(self.now);
            let mut decisions = self.decisions.lock();
            decisions.remember(&asker, definition, &decision, until)
        });
        let (failure, refusal) = match self.allowed(decision, input, definition.as_ref()) {
            Err(refused) => refused,
            Ok((input, scope, edited)) => {
                let mut events = Vec::new();
                if edited {
                    if let Some(entry) = self.records.get_mut(record) {
                        entry.input = input.to_value();
                    }
                    events.push(RunEventKind::ToolInputRepaired {
                        id: id.to_owned(),
                        repairs: vec!["the person changed the input".to_owned()],
                        input: input.to_value(),
                    });
                }
                events.push(RunEventKind::ToolApproved {
                    id: id.to_owned(),
                    scope,
                    edited,
                    remembered: false,
                });
                self.set_state(position, CallState::Ready { input });
                if let Some(definition) = definition.filter(|_| is_remembered) {
                    events.extend(self.answer_alike(&definition, scope));
                }
                return Ok(events);
            }
        };
        let mut events = vec![RunEventKind::ToolDenied {
            id: id.to_owned(),
            reason: refusal.clone(),
        }];
        events.extend(self.settle(
            position,
            CallEnd::failed(failure, format!("Not executed: {refusal}.")),
        ));
        events.extend(self.stop_behind(position));
        if let Some(definition) = definition.filter(|_| is_remembered) {
            events.extend(self.answer_alike(&definition, ApprovalScope::Session));
        }
        events.extend(self.close_batch_if_settled());
        Ok(events)
    }

    /// An answer for more than one call answers the questions about the same tool that are open now.
    fn answer_alike(&mut self, definition: &ToolDefinition, scope: ApprovalScope) -> Events {
        let mut events = Vec::new();
        for position in 0..self.batch_len() {
            let Phase::Batch(calls) = &self.phase else {
                break;
            };
            let call = &calls[position];
            let CallState::Waiting { input, .. } = &call.state else {
                continue;
            };
            if call.tool_use.name != definition.name {
                continue;
            }
            let (id, input) = (call.tool_use.id.clone(), input.clone());
            match self.verdict(definition).0 {
                Verdict::Run => {
                    self.set_state(position, CallState::Ready { input });
                    events.push(RunEventKind::ToolApproved {
                        id,
                        scope,
                        edited: false,
                        remembered: true,
                    });
                }
                Verdict::Refuse { reason } => {
                    let end =
                        CallEnd::failed(ToolFailure::Denied, format!("Not executed: {reason}."));
                    events.push(RunEventKind::ToolDenied { id, reason });
                    events.extend(self.settle(position, end));
                    events.extend(self.stop_behind(position));
                }
                Verdict::Ask { .. } => {}
            }
        }
        events
    }

    /// The input with which a call may run, for how long the answer holds and whether the person changed
    /// the input; or why it may not.
    fn allowed(
        &self,
        decision: ApprovalDecision,
        input: SharedObject,
        definition: Option<&Arc<ToolDefinition>>,
    ) -> Result<(SharedObject, ApprovalScope, bool), (ToolFailure, String)> {
        let (failure, why) = match decision {
            ApprovalDecision::Allow { input: None, scope } => return Ok((input, scope, false)),
            ApprovalDecision::Allow {
                input: Some(edited),
                scope,
            } => {
                let edited = SharedObject::from(edited);
                let checked = match (check_depth(edited.as_value()), definition) {
                    (Err(too_deep), _) => Err(format!("it is {too_deep}")),
                    (Ok(()), Some(definition)) => self.validators.check(definition, &edited),
                    // Nothing runs unchecked.
                    (Ok(()), None) => Err("the tool is no longer there".to_owned()),
                };
                match checked {
                    Ok(()) => return Ok((edited, scope, true)),
                    Err(faults) => (
                        ToolFailure::InvalidInput,
                        format!("the edited input does not fit the tool: {faults}"),
                    ),
                }
            }
            ApprovalDecision::Deny {
                reason: Some(reason),
                ..
            } => (
                ToolFailure::Denied,
                format!("the person declined it: {reason}"),
            ),
            ApprovalDecision::Deny { reason: None, .. } => {
                (ToolFailure::Denied, "the person declined it".to_owned())
            }
            ApprovalDecision::Expired => (
                ToolFailure::NotApproved,
                "it needs a person's approval and nobody answered in time".to_owned(),
            ),
            ApprovalDecision::NobodyThere | ApprovalDecision::Later => (
                ToolFailure::NotApproved,
                "it needs a person's approval and nobody is there to ask".to_owned(),
            ),
        };
        Err((failure, why))
    }

    /// The driver starts a call: from here on its effect is not known until it finishes.
    pub fn tool_started(&mut self, id: &str) -> Result<Events, UnexpectedInput> {
        let position = self.position("tool_started", id)?;
        let Phase::Batch(calls) = &mut self.phase else {
            return Err(unexpected("tool_started", "no tool calls are under way"));
        };
        let CallState::Ready { input } = &mut calls[position].state else {
            return Err(unexpected(
                "tool_started",
                format!("`{id}` is not ready to start"),
            ));
        };
        let input = input.clone();
        calls[position].state = CallState::Started { input };
        Ok(vec![RunEventKind::ToolStarted { id: id.to_owned() }])
    }

    /// A call was to start and did not leave after all: nothing was told of it.
    pub(crate) fn not_left(&mut self, id: &str) -> Result<(), UnexpectedInput> {
        let position = self.position("not_left", id)?;
        if let Phase::Batch(calls) = &mut self.phase
            && let CallState::Started { input } = &mut calls[position].state
        {
            let input = input.clone();
            calls[position].state = CallState::Ready { input };
        }
        Ok(())
    }

    /// A call was to start and its intent could not be stored. What a crash makes run twice does harm, so it
    /// does not leave.
    pub(crate) fn held_back(&mut self, id: &str) -> Result<Events, UnexpectedInput> {
        let position = self.position("held_back", id)?;
        let end = CallEnd::failed(
            ToolFailure::NotStored,
            "Not executed: the run could not be stored before this call, and after a crash the tool might \
             have run twice. The person has to mend that; do not call it again before.",
        );
        let mut events = self.ends_now(position, end);
        events.extend(self.close_batch_if_settled());
        Ok(events)
    }

    /// A started call is over. A cached answer needs no start.
    pub fn tool_finished(
        &mut self,
        id: &str,
        answer: ToolAnswer,
    ) -> Result<Events, UnexpectedInput> {
        let position = self.position("tool_finished", id)?;
        let expected = matches!(&self.phase, Phase::Batch(calls) if match calls[position].state {
            CallState::Started { .. } => true,
            CallState::Ready { .. } => answer.cached,
            _ => false,
        });
        if !expected {
            return Err(unexpected(
                "tool_finished",
                format!("`{id}` was not started"),
            ));
        }
        let end = CallEnd::from(answer);
        let stops = self.guard_stops(position, &end.output);
        let mut events: Events = self.settle(position, end).into_iter().collect();
        if stops {
            events.extend(self.skip_behind(position, RULED_OUT));
        }
        events.extend(self.close_batch_if_settled());
        Ok(events)
    }

    /// What calls that have their results though they never ran mean for those behind them.
    pub(in crate::run) fn stop_behind_settled(&mut self) -> Events {
        (0..self.batch_len())
            .flat_map(|position| self.stop_behind(position))
            .collect()
    }

    /// A call that a person or a rule declined stops what is behind it; so does a check that did not take
    /// place, or whose earlier result stands in for it.
    pub(in crate::run) fn stop_behind(&mut self, position: usize) -> Events {
        let Phase::Batch(calls) = &self.phase else {
            return Vec::new();
        };
        let CallState::Settled { result } = &calls[position].state else {
            return Vec::new();
        };
        let record = self.records.get(calls[position].record);
        let is_denied = record.is_some_and(|call| call.failure == Some(ToolFailure::Denied));
        if is_denied && self.options.stop_after_denial {
            return self.skip_behind(position, "an earlier call of this answer was declined");
        }
        let name = &calls[position].tool_use.name;
        if !self.options.guards.iter().any(|guard| guard.watches(name)) {
            return Vec::new();
        }
        let output = ToolOutput::from(result);
        if self.guard_stops(position, &output) {
            self.skip_behind(position, RULED_OUT)
        } else {
            Vec::new()
        }
    }

    fn guard_stops(&self, position: usize, output: &ToolOutput) -> bool {
        let Phase::Batch(calls) = &self.phase else {
            return false;
        };
        let name = &calls[position].tool_use.name;
        self.options
            .guards
            .iter()
            .any(|guard| guard.stops(name, output))
    }

    /// Calls behind this one that have not begun get a result that says why they never will.
    fn skip_behind(&mut self, position: usize, why: &str) -> Events {
        let mut events = Vec::new();
        for behind in position + 1..self.batch_len() {
            let open = matches!(&self.phase, Phase::Batch(calls) if matches!(
                calls[behind].state,
                CallState::Waiting { .. } | CallState::Ready { .. } | CallState::Repeats { .. }
            ));
            if open {
                let end = CallEnd::failed(ToolFailure::Skipped, format!("Not executed: {why}."));
                events.extend(self.settle(behind, end));
            }
        }
        events
    }

    pub(in crate::run) fn settle(&mut self, position: usize, end: CallEnd) -> Option<RunEventKind> {
        let Phase::Batch(calls) = &self.phase else {
            return None;
        };
        let call = calls.get(position)?;
        let of = (call.tool_use.id.clone(), call.tool_use.name.clone());
        let (event, result) = self.record(call.record, of, end);
        if let Phase::Batch(calls) = &mut self.phase {
            calls[position].state = CallState::Settled { result };
            self.due.extend(&calls[position].repeated_at);
        }
        Some(event)
    }

    /// Writes down how a call ended. The model reads what the limit leaves of the result; the event
    /// and the record have what the model reads, and the whole is kept for reading on.
    pub(in crate::run) fn record(
        &mut self,
        record: usize,
        (id, name): (String, String),
        end: CallEnd,
    ) -> (RunEventKind, ToolResult) {
        let CallEnd {
            output,
            failure,
            attempts,
            duration_ms,
            cached,
            limited,
        } = end;
        let output = if limited {
            let (output, kept) = self.options.results.apply(&id, &name, output);
            if let Some(kept) = kept {
                self.kept.keep(kept);
            }
            output
        } else {
            output
        };
        let ToolOutput {
            content,
            structured,
            is_error,
        } = output;
        let (content, structured) = (Arc::from(content), structured.map(Arc::new));
        if matches!(
            failure,
            Some(
                ToolFailure::LimitReached
                    | ToolFailure::Skipped
                    | ToolFailure::Unavailable
                    | ToolFailure::NotStored
            )
        ) {
            self.may_be_made_again(&id);
        }
        if let Some(entry) = self.records.get_mut(record) {
            entry.is_error = is_error;
            entry.failure = failure;
            entry.cached = cached;
            entry.attempts = attempts;
            entry.duration_ms = duration_ms;
            entry.result = RecordedResult {
                content: Arc::clone(&content),
                structured: structured.clone(),
            };
        }
        let event = RunEventKind::ToolFinished {
            id: id.clone(),
            is_error,
            failure,
            cached,
            attempts,
            duration_ms,
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

    /// The calls of an answer are planned; each of them is on its way to its result.
    pub(in crate::run) fn begin_batch(&mut self, mut calls: Vec<PendingCall>) {
        self.places.begin();
        self.due.clear();
        for place in 0..calls.len() {
            calls[place].repeats_at = None;
            calls[place].repeated_at.clear();
            let CallState::Repeats { of } = &calls[place].state else {
                continue;
            };
            let of = of.clone();
            match self.places.of(&calls, &of) {
                Some(first) => {
                    calls[place].repeats_at = Some(first);
                    calls[first].repeated_at.push(place);
                    if matches!(calls[first].state, CallState::Settled { .. }) {
                        self.due.insert(place);
                    }
                }
                None => {
                    self.due.insert(place);
                }
            }
        }
        self.phase = Phase::Batch(calls);
    }

    /// When every call has its result, all of them go back together, in call order.
    pub(in crate::run) fn close_batch_if_settled(&mut self) -> Events {
        let mut events = self.settle_repeats();
        let Phase::Batch(calls) = &mut self.phase else {
            return events;
        };
        if !self.places.are_all_settled(calls) {
            return events;
        }
        let results = mem::take(calls)
            .into_iter()
            .filter_map(|call| match call.state {
                CallState::Settled { result } => Some(Part::ToolResult(result)),
                _ => None,
            });
        let message = Message::new(Role::Tool, results);
        self.messages.push(Arc::new(message));
        self.phase = Phase::Model;
        if self.is_gathering() {
            events.extend(self.gathered());
        }
        events
    }

    /// Calls that were made before get the earlier result, as soon as there is one. What is looked at are
    /// those alone whose earlier call has just got its result.
    fn settle_repeats(&mut self) -> Events {
        let mut events = Vec::new();
        let mut of_before = None;
        while let Some(position) = self.due.pop_first() {
            let Phase::Batch(calls) = &self.phase else {
                break;
            };
            let Some(call) = calls.get(position) else {
                break;
            };
            // It may have been skipped meanwhile.
            let CallState::Repeats { of } = &call.state else {
                continue;
            };
            let id = &call.tool_use.id;
            let result = match call.repeats_at.map(|first| &calls[first].state) {
                Some(CallState::Settled { result }) => Some(repeats::repeated_result(result, id)),
                Some(_) => None,
                None => of_before
                    .get_or_insert_with(|| self.results_of_before())
                    .get(of)
                    .map(|result| repeats::repeated_result(result, id)),
            };
            let end = match result {
                Some(result) => CallEnd::repeated(&result),
                None => CallEnd::failed(
                    ToolFailure::Repeated,
                    "Not executed: the same call was made before.",
                ),
            };
            events.extend(self.settle(position, end));
            events.extend(self.stop_behind(position));
        }
        events
    }

    /// The results in the history of those calls that calls of this answer repeat.
    fn results_of_before(&self) -> HashMap<String, ToolResult> {
        let Phase::Batch(calls) = &self.phase else {
            return HashMap::new();
        };
        let wanted: HashSet<&str> = calls
            .iter()
            .filter_map(|call| match &call.state {
                CallState::Repeats { of } if call.repeats_at.is_none() => Some(of.as_str()),
                _ => None,
            })
            .collect();
        // The newest of an id is the run's own.
        self.messages
            .iter()
            .flat_map(|message| message.results())
            .filter(|result| wanted.contains(result.tool_use_id.as_str()))
            .map(|result| (result.tool_use_id.clone(), result.clone()))
            .collect()
    }

    pub(in crate::run) fn batch_len(&self) -> usize {
        match &self.phase {
            Phase::Batch(calls) => calls.len(),
            _ => 0,
        }
    }

    pub(in crate::run) fn set_state(&mut self, position: usize, state: CallState) {
        if let Phase::Batch(calls) = &mut self.phase {
            calls[position].state = state;
        }
    }

    /// The unsettled call with this id.
    fn position(&mut self, method: &'static str, id: &str) -> Result<usize, UnexpectedInput> {
        let Phase::Batch(calls) = &self.phase else {
            return Err(unexpected(method, "no tool calls are under way"));
        };
        let is_open = |place: &usize| !matches!(calls[*place].state, CallState::Settled { .. });
        self.places
            .of(calls, id)
            .filter(is_open)
            .ok_or_else(|| unexpected(method, format!("no open tool call has the id `{id}`")))
    }
}

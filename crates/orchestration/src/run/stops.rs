//! How a run is taken up after a crash, cancelled, timed out and aborted.

use std::{collections::HashMap, mem, sync::Arc};

use switchboard_domain::{ApprovalRequest, ChatResponse, FinishReason, ToolDefinition};

use super::{
    Events, Phase, Run, UnexpectedInput,
    model_turn::response::begins_a_phase,
    place,
    tool_batch::batch::{CallEnd, CallState},
};
use crate::{
    Outcome, RunError, RunErrorKind, RunEventKind, ToolFailure,
    policy::approval::{self, Verdict, only_reads},
    policy::limits::LimitHit,
};

impl Run {
    /// Takes up a run that was stored while its driver was at work. A call with intent and no result
    /// was interrupted and its effect is unknown: it runs again only if its tool says that this does
    /// no harm, else the model and the person are told.
    pub fn recover(&mut self) -> Events {
        let mut events = Vec::new();
        if matches!(self.phase, Phase::Asked) {
            // The answer never came: ask again, and do not count the lost call twice.
            self.phase = Phase::Model;
            self.ledger.undo_step();
        }
        if matches!(self.phase, Phase::Summarising) {
            self.phase = Phase::Model;
        }
        if let Phase::Batch(calls) = &mut self.phase {
            // Also of a run that was stored by a version that did not write down what repeats what.
            let calls = mem::take(calls);
            self.begin_batch(calls);
        }
        for position in 0..self.batch_len() {
            let Phase::Batch(calls) = &mut self.phase else {
                break;
            };
            let call = &mut calls[position];
            let CallState::Started { input } = &mut call.state else {
                continue;
            };
            let annotations = call.annotations;
            if only_reads(annotations) || annotations.idempotent == Some(true) {
                call.state = CallState::Ready {
                    input: mem::take(input),
                };
            } else {
                let end = CallEnd::failed(
                    ToolFailure::Interrupted,
                    "Interrupted: the program ended while the tool was running. Whether it did its \
                     work is not known; check before you try again.",
                );
                events.extend(self.settle(position, end.after(1, 0)));
                events.extend(self.stop_behind(position));
            }
        }
        events.extend(self.close_batch_if_settled());
        events
    }

    /// The tools as they are when a stored run goes on. What somebody was asked about or agreed to is one
    /// definition of one server: where it is another one now, the question is asked anew. What needed nobody's
    /// word is held against the rules once more. A call of a tool that is gone is left as it is.
    pub fn tools_now(&mut self, tools: &[Arc<ToolDefinition>]) -> Events {
        let tools: HashMap<&str, &Arc<ToolDefinition>> = tools
            .iter()
            .map(|tool| (tool.name.as_str(), tool))
            .collect();
        let mut events = Vec::new();
        for position in 0..self.batch_len() {
            let Phase::Batch(calls) = &self.phase else {
                break;
            };
            if let Some(now) = tools.get(calls[position].tool_use.name.as_str()) {
                events.extend(self.tool_now(position, now));
            }
        }
        events.extend(self.close_batch_if_settled());
        events
    }

    fn tool_now(&mut self, position: usize, now: &Arc<ToolDefinition>) -> Events {
        let Phase::Batch(calls) = &self.phase else {
            return Vec::new();
        };
        let call = &calls[position];
        let (input, was_ready) = match &call.state {
            CallState::Waiting { input, .. } => (input, false),
            CallState::Ready { input } => (input, true),
            _ => return Vec::new(),
        };
        let declared = self.declared.iter().find(|tool| tool.name == now.name);
        let declared = declared.unwrap_or(now);
        // The same words of another server are another tool.
        let is_elsewhere = call.origin != now.origin;
        let was_asked = call.fingerprint.is_some();
        let fingerprint = approval::fingerprint(declared);
        if was_asked && !is_elsewhere && call.fingerprint.as_ref() == Some(&fingerprint) {
            return Vec::new();
        }
        let (id, input) = (call.tool_use.id.clone(), input.clone());
        let verdict = self.judge(now).0;
        if let Err(faults) = self.validators.check(now, &input) {
            let text = format!(
                "Not executed: `{}` is not what it was, and the input does not fit it any more: {faults}",
                now.name
            );
            return self.ends_now(position, CallEnd::failed(ToolFailure::InvalidInput, text));
        }
        if let Verdict::Refuse { reason } = verdict {
            let end = CallEnd::failed(ToolFailure::Denied, format!("Not executed: {reason}."));
            let mut events = vec![RunEventKind::ToolDenied { id, reason }];
            events.extend(self.ends_now(position, end));
            return events;
        }
        let runs_unasked = verdict == Verdict::Run && !was_asked;
        self.becomes(position, now, is_elsewhere);
        let Phase::Batch(calls) = &mut self.phase else {
            return Vec::new();
        };
        let call = &mut calls[position];
        if runs_unasked {
            call.state = CallState::Ready { input };
            return Vec::new();
        }
        let mut request = ApprovalRequest::new(&self.id, call.tool_use.clone());
        request.origin.clone_from(&now.origin);
        request.annotations = now.annotations;
        request.description = Some(now.description.clone());
        request.input = Some(input.clone());
        request.fingerprint = Some(fingerprint.clone());
        request.redefined = true;
        call.fingerprint = Some(fingerprint);
        call.state = CallState::Waiting {
            input,
            request: Box::new(request),
        };
        let asks = was_ready.then_some(RunEventKind::ToolAwaitingApproval { id });
        asks.into_iter().collect()
    }

    pub(super) fn ends_now(&mut self, position: usize, end: CallEnd) -> Events {
        let mut events: Events = self.settle(position, end).into_iter().collect();
        events.extend(self.stop_behind(position));
        events
    }

    /// A call goes to the tool that has the name now, and an edit of it is checked against that.
    fn becomes(&mut self, position: usize, now: &Arc<ToolDefinition>, is_elsewhere: bool) {
        let Phase::Batch(calls) = &mut self.phase else {
            return;
        };
        let call = &mut calls[position];
        call.annotations = now.annotations;
        call.barrier |= now.sequential;
        if is_elsewhere {
            call.origin.clone_from(&now.origin);
            if let Some(record) = self.records.get_mut(call.record) {
                (record.server, record.tool) = place(now.origin.as_ref(), &now.name);
            }
        }
        match self.tools.iter_mut().find(|tool| tool.name == now.name) {
            Some(known) => *known = Arc::clone(now),
            None => self.tools.push(Arc::clone(now)),
        }
    }

    /// Calls that may start and whose tools are not there wait until they are, or until somebody says no:
    /// what was allowed is not lost because a server is away.
    pub(crate) fn tools_missing_now(&mut self, is_there: impl Fn(&str) -> bool) -> Events {
        let mut events = Vec::new();
        for position in 0..self.batch_len() {
            let Phase::Batch(calls) = &self.phase else {
                break;
            };
            let call = &calls[position];
            let CallState::Ready { input } = &call.state else {
                continue;
            };
            if is_there(&call.tool_use.name) {
                continue;
            }
            let mut request = ApprovalRequest::new(&self.id, call.tool_use.clone());
            request.origin.clone_from(&call.origin);
            request.annotations = call.annotations;
            let definition = self.definition(&call.tool_use.name);
            request.description = definition.map(|tool| tool.description.clone());
            request.input = Some(input.clone());
            request.fingerprint.clone_from(&call.fingerprint);
            events.push(RunEventKind::ToolAwaitingApproval {
                id: call.tool_use.id.clone(),
            });
            let state = CallState::Waiting {
                input: input.clone(),
                request: Box::new(request),
            };
            self.set_state(position, state);
        }
        events
    }

    /// What was told of the calls that have no result yet, for whoever watches only from here on: the numbers
    /// go on, and what is about to run is known to every projection.
    pub(crate) fn told_again(&self) -> Events {
        let Phase::Batch(calls) = &self.phase else {
            return Vec::new();
        };
        let mut events = Vec::new();
        for call in calls {
            let Some(record) = self.records.get(call.record) else {
                continue;
            };
            if matches!(call.state, CallState::Settled { .. }) {
                continue;
            }
            events.push(RunEventKind::ToolPlanned {
                id: record.id.clone(),
                server: record.server.clone(),
                tool: record.tool.clone(),
                input: Arc::clone(&record.input),
            });
            if matches!(call.state, CallState::Waiting { .. }) {
                events.push(RunEventKind::ToolAwaitingApproval {
                    id: record.id.clone(),
                });
            }
        }
        events
    }

    /// Stops the run. Calls that did not finish get a result that says so, so that the history
    /// stays whole.
    ///
    /// `partial` is what a model call that was under way had answered, `elapsed_ms` for how many
    /// milliseconds the calls that had started were running, by their ids. A call that is not in it
    /// is reported with 0. A run that is over stays as it ended.
    pub fn cancel(
        &mut self,
        partial: Option<ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
    ) -> Events {
        if self.outcome().is_some() {
            return Vec::new();
        }
        let events = self.stop(partial, elapsed_ms, "the run was cancelled");
        self.phase = Phase::Done(Outcome::Cancelled);
        events
    }

    /// Ends the run at its wall-time limit, in the same way as [`Run::cancel`].
    pub fn time_is_up(
        &mut self,
        partial: Option<ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
    ) -> Events {
        if self.outcome().is_some() {
            return Vec::new();
        }
        let hit = LimitHit::WallTime {
            used_ms: self.ledger.elapsed_ms(self.now),
            max_ms: self
                .options
                .limits
                .max_wall_time
                .map_or(0, |max| u64::try_from(max.as_millis()).unwrap_or(u64::MAX)),
        };
        let events = self.stop(partial, elapsed_ms, "the run's time is up");
        self.end_with(RunError::from(&hit));
        events
    }

    /// Ends the run because an answer of the model reached a limit while it streamed. Keeps what
    /// arrived of the answer.
    pub fn answer_limited(&mut self, hit: &LimitHit, partial: Option<ChatResponse>) {
        if self.outcome().is_some() {
            return;
        }
        self.keep_partial(partial);
        self.finish = Some(FinishReason::Length);
        self.end_with(RunError::from(hit));
    }

    fn stop(
        &mut self,
        partial: Option<ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
        why: &str,
    ) -> Events {
        let mut events = Vec::new();
        self.keep_partial(partial);
        for position in 0..self.batch_len() {
            let Phase::Batch(calls) = &self.phase else {
                break;
            };
            let call = &calls[position];
            let (text, attempts, duration_ms) = match &call.state {
                CallState::Settled { .. } => continue,
                CallState::Started { .. } => (
                    "Cancelled while running; whether the tool did its work is not known."
                        .to_owned(),
                    1,
                    elapsed_ms.get(&call.tool_use.id).copied().unwrap_or(0),
                ),
                CallState::Waiting { .. } | CallState::Ready { .. } | CallState::Repeats { .. } => {
                    (format!("Not executed: {why}."), 0, 0)
                }
            };
            let end = CallEnd::failed(ToolFailure::Cancelled, text);
            events.extend(self.settle(position, end.after(attempts, duration_ms)));
        }
        events.extend(
            self.close_batch_if_settled()
                .into_iter()
                // The phase that would come next never will.
                .filter(|event| !begins_a_phase(event)),
        );
        events
    }

    /// Ends the run because its driver did what the run had not asked for.
    pub fn abort(&mut self, fault: &UnexpectedInput) -> Events {
        let events = self.cancel(None, &HashMap::new());
        self.end_with(RunError::new(RunErrorKind::Internal, fault.to_string()));
        events
    }
}

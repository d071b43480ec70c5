//! How a run is taken up after a crash, cancelled, timed out and aborted.

use std::{collections::HashMap, mem};

use switchboard_domain::ChatResponse;

use super::{
    Events, Phase, Run, UnexpectedInput,
    batch::{CallEnd, CallState},
};
use crate::{
    Outcome, RunError, RunErrorKind, RunEventKind, ToolFailure, approval::only_reads,
    limits::LimitHit,
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
            }
        }
        events.extend(self.close_batch_if_settled());
        events
    }

    /// Stops the run. Calls that did not finish get a result that says so, so that the history
    /// stays whole.
    ///
    /// `partial` is what a model call that was under way had answered, `elapsed_ms` for how many
    /// milliseconds the calls that had started were running, by their ids. A call that is not in it
    /// is reported with 0.
    pub fn cancel(
        &mut self,
        partial: Option<ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
    ) -> Events {
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
                .filter(|event| !matches!(event, RunEventKind::PhaseStarted { .. })),
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

//! Early ends of a run: cancellation, limits and defects of the driver.

use std::collections::HashMap;

use switchboard_domain::{ChatResponse, FinishReason};

use super::{
    Events, Phase, Run, UnexpectedInput,
    model_turn::response::starts_phase,
    tool_batch::batch::{CallEnd, CallState},
};
use crate::{Outcome, RunError, RunErrorKind, ToolFailure, policy::limits::LimitHit};

impl Run {
    /// Cancels the run. Unfinished calls get a result that states the cancellation, so that the
    /// conversation stays valid. A finished run keeps its outcome.
    ///
    /// `partial` is the received part of a model response. `elapsed_ms` has the running time of the
    /// started calls in milliseconds, by id; 0 is reported for other calls.
    pub fn cancel(
        &mut self,
        partial: Option<ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
    ) -> Events {
        if self.outcome().is_some() {
            return Vec::new();
        }
        let events = self.stop(partial, elapsed_ms, "the run was cancelled");
        self.state.phase = Phase::Done(Outcome::Cancelled);
        events
    }

    /// Ends the run at its wall-time limit. Arguments and effect equal [`Run::cancel`].
    pub fn wall_time_reached(
        &mut self,
        partial: Option<ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
    ) -> Events {
        if self.outcome().is_some() {
            return Vec::new();
        }
        let max = self.state.options.limits.max_wall_time.unwrap_or_default();
        let hit = LimitHit::WallTime {
            used_ms: self.state.ledger.elapsed_ms(self.state.now),
            max_ms: u64::try_from(max.as_millis()).unwrap_or(u64::MAX),
        };
        let events = self.stop(partial, elapsed_ms, "the run's time is up");
        self.end_with(RunError::from(&hit));
        events
    }

    /// Ends the run because a response reached a limit while it streamed. Keeps the received part.
    pub fn answer_limited(&mut self, hit: &LimitHit, partial: Option<ChatResponse>) {
        if self.outcome().is_some() {
            return;
        }
        self.keep_partial(partial);
        self.state.finish = Some(FinishReason::Length);
        self.end_with(RunError::from(hit));
    }

    fn stop(
        &mut self,
        partial: Option<ChatResponse>,
        elapsed_ms: &HashMap<String, u64>,
        why: &str,
    ) -> Events {
        self.keep_partial(partial);
        let mut events = Vec::new();
        for position in 0..self.state.calls().len() {
            let call = &self.state.calls()[position];
            let (text, attempts, duration_ms) = match call.state {
                CallState::Settled { .. } => continue,
                CallState::Started => (
                    "Cancelled while running; whether the tool did its work is not known."
                        .to_owned(),
                    1,
                    elapsed_ms.get(&call.tool_use.id).copied().unwrap_or(0),
                ),
                CallState::Waiting { .. } | CallState::Ready | CallState::Repeats { .. } => {
                    (format!("Not executed: {why}."), 0, 0)
                }
            };
            let end = CallEnd::failed(ToolFailure::Cancelled, text);
            events.push(self.settle(position, end.after(attempts, duration_ms)));
        }
        // The next phase of the strategy does not start.
        let closed = self.close_batch_if_settled().into_iter();
        events.extend(closed.filter(|event| !starts_phase(event)));
        events
    }

    /// Ends the run because of a defect of its driver.
    pub fn abort(&mut self, fault: &UnexpectedInput) -> Events {
        let events = self.cancel(None, &HashMap::new());
        self.end_with(RunError::new(RunErrorKind::Internal, fault.to_string()));
        events
    }
}

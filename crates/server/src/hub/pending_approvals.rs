//! Holds approval decisions until the run requests them.

use std::{
    collections::{HashMap, HashSet},
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use switchboard_domain::{ApprovalDecision, ApprovalRequest, Approver};
use switchboard_orchestration::RunEventKind;
use tokio::sync::Notify;

use super::CLIENT_SERVER;

/// The approver of one run. Clients send decisions in any order, also before the run requests them.
pub(super) struct PendingApprovals {
    state: Mutex<State>,
    changed: Notify,
    time_limit: Duration,
    /// The decision for calls without one: [`ApprovalDecision::Later`] stores a durable run, and
    /// [`ApprovalDecision::Expired`] ends the request of an ephemeral run.
    default: ApprovalDecision,
}

#[derive(Default)]
struct State {
    decisions: HashMap<String, ApprovalDecision>,
    /// The last requests of the run.
    requests: Vec<ApprovalRequest>,
    /// Whether the run waits for decisions about `requests` now.
    is_waiting: bool,
    /// Ids of calls without an applied decision.
    undecided: HashSet<String>,
    /// Ids of calls that the client executes. Its result is the decision.
    client_calls: HashSet<String>,
    is_closed: bool,
}

impl PendingApprovals {
    /// Returns an approver for a run that already waits for decisions about `requests`.
    pub(super) fn new(
        default: ApprovalDecision,
        time_limit: Duration,
        requests: Vec<ApprovalRequest>,
    ) -> Self {
        let state = State {
            undecided: requests.iter().map(|it| it.tool_use.id.clone()).collect(),
            requests,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
            time_limit,
            default,
        }
    }

    /// Stores a decision. Returns `false` if the call does not wait for one or already has one.
    pub(super) fn submit(&self, call: &str, decision: ApprovalDecision) -> bool {
        let mut state = self.state();
        if !state.undecided.contains(call) || state.decisions.contains_key(call) {
            return false;
        }
        state.decisions.insert(call.to_owned(), decision);
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Returns whether the client executes the call, so that only its result decides.
    pub(super) fn is_client_call(&self, call: &str) -> bool {
        self.state().client_calls.contains(call)
    }

    /// Returns the last requests that have no decision.
    pub(super) fn undecided(&self) -> Vec<ApprovalRequest> {
        let state = self.state();
        let is_undecided = |request: &&ApprovalRequest| {
            let id = &request.tool_use.id;
            state.undecided.contains(id) && !state.decisions.contains_key(id)
        };
        let requests = state.requests.iter();
        requests.filter(is_undecided).cloned().collect()
    }

    /// Returns the requests that the run waits for now.
    pub(super) fn current_requests(&self) -> Vec<ApprovalRequest> {
        let state = self.state();
        if state.is_waiting {
            state.requests.clone()
        } else {
            Vec::new()
        }
    }

    /// Ends all waits: calls without a decision get the default one.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_waiters();
    }

    /// Updates the waiting calls from an event of the run.
    pub(super) fn observe(&self, event: &RunEventKind) {
        match event {
            RunEventKind::ToolPlanned { id, server, .. }
                if server.as_deref() == Some(CLIENT_SERVER) =>
            {
                self.state().client_calls.insert(id.clone());
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                self.state().undecided.insert(id.clone());
            }
            RunEventKind::ToolApproved { id, .. }
            | RunEventKind::ToolDenied { id, .. }
            | RunEventKind::ToolFinished { id, .. } => {
                let mut state = self.state();
                state.undecided.remove(id);
                state.decisions.remove(id);
                if matches!(event, RunEventKind::ToolFinished { .. }) {
                    state.client_calls.remove(id);
                }
            }
            _ => {}
        }
    }

    /// Removes the first decision about one of the calls. Returns it with the position of the call.
    fn take_decision<'c>(
        &self,
        calls: impl Iterator<Item = &'c str>,
    ) -> Option<(usize, ApprovalDecision)> {
        let decisions = &mut self.state().decisions;
        let mut calls = calls.enumerate();
        calls.find_map(|(position, call)| Some((position, decisions.remove(call)?)))
    }

    /// Waits until `check` returns a value.
    async fn wait_for<T>(&self, check: impl Fn() -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Enabled before the check, so that no change is missed.
            changed.as_mut().enable();
            if let Some(found) = check() {
                return found;
            }
            changed.await;
        }
    }

    fn default_decision(&self) -> (usize, ApprovalDecision) {
        (0, self.default.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resets `is_waiting` when the run stops waiting.
struct WaitGuard<'a>(&'a PendingApprovals);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.state().is_waiting = false;
    }
}

#[async_trait]
impl Approver for PendingApprovals {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        self.decide_any(std::slice::from_ref(request)).await.1
    }

    async fn decide_any(&self, requests: &[ApprovalRequest]) -> (usize, ApprovalDecision) {
        let decision = || {
            let calls = requests.iter().map(|it| it.tool_use.id.as_str());
            let found = self.take_decision(calls);
            found.or_else(|| self.state().is_closed.then(|| self.default_decision()))
        };
        if let Some(decision) = decision() {
            return decision;
        }
        {
            let mut state = self.state();
            let ids = requests.iter().map(|request| request.tool_use.id.clone());
            state.undecided.extend(ids);
            state.requests = requests.to_vec();
            state.is_waiting = true;
        }
        let _guard = WaitGuard(self);
        tokio::time::timeout(self.time_limit, self.wait_for(decision))
            .await
            .unwrap_or_else(|_| self.default_decision())
    }

    /// Returns a decision about a later call immediately, because it is stored with the run.
    async fn early_decision(&self, _: &str, calls: &[String]) -> (usize, ApprovalDecision) {
        self.wait_for(|| self.take_decision(calls.iter().map(String::as_str)))
            .await
    }
}

#[cfg(test)]
#[path = "pending_approvals_tests.rs"]
mod tests;

//! Stores approval decisions of clients until the run requests them.

use std::{
    collections::{HashMap, HashSet},
    pin::pin,
    sync::Mutex,
    time::Duration,
};

use async_trait::async_trait;
use switchboard_domain::{ApprovalDecision, ApprovalRequest, Approver};
use switchboard_orchestration::RunEventKind;
use tokio::sync::Notify;

use super::{CLIENT_SERVER, lock_mutex};

/// A store for approval decisions of clients. Clients may send decisions in any order, even before
/// the run requests them.
pub(super) struct PendingApprovals {
    state: Mutex<ApprovalState>,
    changed: Notify,
    time_limit: Duration,
    /// The decision for calls about which no client decides in time. [`ApprovalDecision::Later`]
    /// suspends a durable run. [`ApprovalDecision::Expired`] denies the calls of an ephemeral run.
    default: ApprovalDecision,
}

#[derive(Default)]
struct ApprovalState {
    decisions: HashMap<String, ApprovalDecision>,
    /// The approval requests that the run waits for, or waited for last.
    requests: Vec<ApprovalRequest>,
    /// Whether the run is waiting for decisions about `requests`.
    is_waiting: bool,
    /// Ids of tool calls that need a decision, until the run has applied the decision.
    undecided: HashSet<String>,
    /// Ids of tool calls that the client executes. The client's result is also the approval.
    client_calls: HashSet<String>,
    is_closed: bool,
}

impl PendingApprovals {
    /// Creates a store without decisions. `requests` are the approval requests that a resumed run
    /// waits for.
    pub(super) fn new(
        default: ApprovalDecision,
        time_limit: Duration,
        requests: Vec<ApprovalRequest>,
    ) -> Self {
        let state = ApprovalState {
            undecided: requests.iter().map(|it| it.tool_use.id.clone()).collect(),
            requests,
            ..ApprovalState::default()
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
            time_limit,
            default,
        }
    }

    /// Stores a client's decision about a tool call. Returns `false` if the call does not need a
    /// decision or already has one.
    pub(super) fn submit_decision(&self, call: &str, decision: ApprovalDecision) -> bool {
        let mut state = lock_mutex(&self.state);
        if !state.undecided.contains(call) || state.decisions.contains_key(call) {
            return false;
        }
        state.decisions.insert(call.to_owned(), decision);
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Returns whether the client executes the tool call. Only the client's result decides about
    /// such a call.
    pub(super) fn is_client_tool_call(&self, call: &str) -> bool {
        lock_mutex(&self.state).client_calls.contains(call)
    }

    /// Returns the approval requests that wait for a decision of a client.
    pub(super) fn undecided_requests(&self) -> Vec<ApprovalRequest> {
        let state = lock_mutex(&self.state);
        let is_undecided = |request: &&ApprovalRequest| {
            let id = &request.tool_use.id;
            state.undecided.contains(id) && !state.decisions.contains_key(id)
        };
        let requests = state.requests.iter();
        requests.filter(is_undecided).cloned().collect()
    }

    /// Returns the approval requests that the run is waiting for, or none if it does not wait.
    pub(super) fn awaited_approval_requests(&self) -> Vec<ApprovalRequest> {
        let state = lock_mutex(&self.state);
        if state.is_waiting {
            state.requests.clone()
        } else {
            Vec::new()
        }
    }

    /// Ends the current and all future waiting: calls without a decision get the default decision.
    pub(super) fn end_approval_wait(&self) {
        lock_mutex(&self.state).is_closed = true;
        self.changed.notify_waiters();
    }

    /// Updates the undecided tool calls and the client tool calls from a run event.
    pub(super) fn observe_event(&self, event: &RunEventKind) {
        match event {
            RunEventKind::ToolPlanned { id, server, .. }
                if server.as_deref() == Some(CLIENT_SERVER) =>
            {
                lock_mutex(&self.state).client_calls.insert(id.clone());
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                lock_mutex(&self.state).undecided.insert(id.clone());
            }
            RunEventKind::ToolApproved { id, .. }
            | RunEventKind::ToolDenied { id, .. }
            | RunEventKind::ToolFinished { id, .. } => {
                let mut state = lock_mutex(&self.state);
                state.undecided.remove(id);
                state.decisions.remove(id);
                if matches!(event, RunEventKind::ToolFinished { .. }) {
                    state.client_calls.remove(id);
                }
            }
            _ => {}
        }
    }

    /// Removes and returns the first stored decision about one of `calls`, with the index of the
    /// tool call in `calls`.
    fn take_decision<'c>(
        &self,
        calls: impl Iterator<Item = &'c str>,
    ) -> Option<(usize, ApprovalDecision)> {
        let decisions = &mut lock_mutex(&self.state).decisions;
        let mut calls = calls.enumerate();
        calls.find_map(|(position, call)| Some((position, decisions.remove(call)?)))
    }

    /// Waits until `check` returns a value. Repeats the check after every change of the decisions.
    async fn wait_for_value<T>(&self, check: impl Fn() -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            // The notification is enabled before the check, so that no new decision is missed.
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
}

/// A guard that resets `is_waiting` when the run stops waiting.
struct ApprovalWaitGuard<'a>(&'a PendingApprovals);

impl Drop for ApprovalWaitGuard<'_> {
    fn drop(&mut self) {
        lock_mutex(&self.0.state).is_waiting = false;
    }
}

#[async_trait]
impl Approver for PendingApprovals {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        self.await_decision(std::slice::from_ref(request)).await.1
    }

    async fn await_decision(&self, requests: &[ApprovalRequest]) -> (usize, ApprovalDecision) {
        let decision = || {
            let calls = requests.iter().map(|it| it.tool_use.id.as_str());
            let found = self.take_decision(calls);
            let is_closed = || lock_mutex(&self.state).is_closed;
            found.or_else(|| is_closed().then(|| self.default_decision()))
        };
        if let Some(decision) = decision() {
            return decision;
        }
        {
            let mut state = lock_mutex(&self.state);
            let ids = requests.iter().map(|request| request.tool_use.id.clone());
            state.undecided.extend(ids);
            state.requests = requests.to_vec();
            state.is_waiting = true;
        }
        let _guard = ApprovalWaitGuard(self);
        tokio::time::timeout(self.time_limit, self.wait_for_value(decision))
            .await
            .unwrap_or_else(|_| self.default_decision())
    }

    /// Waits for a client's decision about one of `calls` before the run requests a decision about
    /// it. Returns the index of the call in `calls` and the decision.
    async fn await_early_decision(&self, _: &str, calls: &[String]) -> (usize, ApprovalDecision) {
        self.wait_for_value(|| self.take_decision(calls.iter().map(String::as_str)))
            .await
    }
}

#[cfg(test)]
#[path = "pending_approvals_tests.rs"]
mod tests;

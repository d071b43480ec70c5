//! Where words about tool calls are left and picked up.

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

use crate::project::CLIENT;

/// The approver of one run: words come from requests, in whichever order, and wait here until the run asks.
pub(super) struct Desk {
    state: Mutex<State>,
    news: Notify,
    patience: Duration,
    who: Who,
}

/// What becomes of a question that nobody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// It stays open: the run is stored and goes on with the next word.
    IsKept,
    /// The run is in memory only: the question expires.
    Expires,
}

#[derive(Default)]
struct State {
    words: HashMap<String, ApprovalDecision>,
    /// What the run asks about now.
    asked: Vec<ApprovalRequest>,
    /// What it asked about last, or would ask about first.
    known: Vec<ApprovalRequest>,
    /// Calls that wait for a word, as far as events told.
    open: HashSet<String>,
    /// Calls of tools that the client runs itself: their word is its result.
    of_client: HashSet<String>,
    closing: bool,
}

impl Desk {
    /// A desk at which calls wait already.
    pub(super) fn new(who: Who, patience: Duration, open: Vec<ApprovalRequest>) -> Self {
        let state = State {
            open: open.iter().map(|it| it.tool_use.id.clone()).collect(),
            known: open,
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            news: Notify::new(),
            patience,
            who,
        }
    }

    /// Leaves a word. `false` if no call of this id waits for one, or it has one already.
    pub(super) fn leave(&self, call: &str, word: ApprovalDecision) -> bool {
        let mut state = self.state();
        if !state.open.contains(call) || state.words.contains_key(call) {
            return false;
        }
        state.words.insert(call.to_owned(), word);
        drop(state);
        self.news.notify_waiters();
        true
    }

    /// Whether a call is made by the client, so that nobody else has a word about it.
    pub(super) fn is_of_client(&self, call: &str) -> bool {
        self.state().of_client.contains(call)
    }

    /// What it asked about last and still has no word about.
    pub(super) fn waiting(&self) -> Vec<ApprovalRequest> {
        let state = self.state();
        let waits = |request: &&ApprovalRequest| {
            let id = &request.tool_use.id;
            state.open.contains(id) && !state.words.contains_key(id)
        };
        state.known.iter().filter(waits).cloned().collect()
    }

    /// What the run asks about now; empty if it does not.
    pub(super) fn asked(&self) -> Vec<ApprovalRequest> {
        self.state().asked.clone()
    }

    /// Nobody waits here any longer: what is asked is to be asked later.
    pub(super) fn close(&self) {
        self.state().closing = true;
        self.news.notify_waiters();
    }

    /// Follows which calls wait.
    pub(super) fn observe(&self, event: &RunEventKind) {
        match event {
            RunEventKind::ToolPlanned { id, server, .. } if server.as_deref() == Some(CLIENT) => {
                self.state().of_client.insert(id.clone());
            }
            RunEventKind::ToolAwaitingApproval { id } => {
                self.state().open.insert(id.clone());
            }
            RunEventKind::ToolApproved { id, .. }
            | RunEventKind::ToolDenied { id, .. }
            | RunEventKind::ToolFinished { id, .. } => {
                let mut state = self.state();
                state.open.remove(id);
                state.words.remove(id);
                if matches!(event, RunEventKind::ToolFinished { .. }) {
                    state.of_client.remove(id);
                }
            }
            _ => {}
        }
    }

    /// A word about one of these; without one, what it means that nobody waits.
    fn word(&self, requests: &[ApprovalRequest]) -> Option<(usize, ApprovalDecision)> {
        let found = self.left(requests.iter().map(|it| it.tool_use.id.as_str()));
        found.or_else(|| self.state().closing.then(|| (0, self.unanswered())))
    }

    /// A word that was left about one of these calls: the place of the call, and the word.
    fn left<'c>(&self, calls: impl Iterator<Item = &'c str>) -> Option<(usize, ApprovalDecision)> {
        let words = &mut self.state().words;
        let mut calls = calls.enumerate();
        calls.find_map(|(place, call)| Some((place, words.remove(call)?)))
    }

    /// Waits until there is something at the desk.
    async fn told<T>(&self, look: impl Fn() -> Option<T>) -> T {
        loop {
            let mut news = pin!(self.news.notified());
            // What is left from here on is heard of.
            news.as_mut().enable();
            if let Some(found) = look() {
                return found;
            }
            news.await;
        }
    }

    fn unanswered(&self) -> ApprovalDecision {
        match self.who {
            Who::IsKept => ApprovalDecision::Later,
            Who::Expires => ApprovalDecision::Expired,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The question of a run, withdrawn with its future.
struct Asking<'d>(&'d Desk);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.state().asked.clear();
    }
}

#[async_trait]
impl Approver for Desk {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalDecision {
        self.decide_any(std::slice::from_ref(request)).await.1
    }

    async fn decide_any(&self, requests: &[ApprovalRequest]) -> (usize, ApprovalDecision) {
        if let Some(word) = self.word(requests) {
            return word;
        }
        {
            let mut state = self.state();
            let ids = requests.iter().map(|request| request.tool_use.id.clone());
            state.open.extend(ids);
            state.asked = requests.to_vec();
            state.known = requests.to_vec();
        }
        let _asking = Asking(self);
        let word = self.told(|| self.word(requests));
        tokio::time::timeout(self.patience, word)
            .await
            .unwrap_or_else(|_| (0, self.unanswered()))
    }

    /// A word that was left counts at once, whichever calls are before it: it is stored with the run.
    async fn early_decision(&self, _: &str, calls: &[String]) -> (usize, ApprovalDecision) {
        self.told(|| self.left(calls.iter().map(String::as_str)))
            .await
    }
}

#[cfg(test)]
#[path = "desk_tests.rs"]
mod tests;

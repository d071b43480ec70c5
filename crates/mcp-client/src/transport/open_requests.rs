//! The requests of the client that a server has not answered yet, on one connection, and the calls
//! that a request of the server may belong to.
//!
//! Over stdio a request of a server does not name the call that it belongs to. It can belong to any
//! open call, and to any call that was cancelled or timed out and that the server has not answered,
//! because a server need not stop when a call is cancelled.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use rmcp::model::RequestId;
use switchboard_domain::Candidates;
use tokio::{sync::watch, time::Instant};

use crate::calls::context::CallContext;

/// How long a server may send requests for a call that it did not answer after its cancellation.
const ABANDONED_TIME: Duration = Duration::from_mins(10);
/// Maximum number of abandoned calls that are recorded.
const MAX_ABANDONED: usize = 64;

/// Shared by the transport, which sees requests and answers in order, and the handlers of server
/// requests. A server may send requests only during a call (2026-07-28, "Request association").
#[derive(Clone, Default)]
pub(crate) struct OpenRequests(Arc<watch::Sender<State>>);

#[derive(Default)]
struct State {
    open: Vec<OpenRequest>,
    /// Unanswered calls that were cancelled or timed out, oldest first, and when they are removed.
    abandoned: VecDeque<(Candidate, Instant)>,
    /// Until when there may be abandoned calls that are not recorded.
    overflow_until: Option<Instant>,
}

struct OpenRequest {
    id: RequestId,
    /// The call, if the server may send requests during it.
    call: Option<Arc<CallContext>>,
}

#[derive(Clone)]
struct Candidate {
    id: RequestId,
    call: Arc<CallContext>,
}

/// The calls that a request of a server may belong to.
pub(crate) struct CandidateCalls {
    candidates: Vec<Candidate>,
    /// Whether it may also belong to a call that is not recorded.
    others: bool,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    /// The server answered.
    Answered,
    /// The call was cancelled or timed out.
    Abandoned,
}

impl OpenRequests {
    /// Records a request. `call` is the call, if the server may send requests during it.
    pub(crate) fn begin(&self, id: RequestId, call: Option<Arc<CallContext>>) {
        self.0.send_if_modified(|state| {
            state.open.push(OpenRequest { id, call });
            // Waiters are only interested in ends.
            false
        });
    }

    pub(crate) fn end(&self, id: &RequestId, end: RequestEnd) {
        self.0.send_if_modified(|state| {
            let index = state.open.iter().position(|open| is_same(&open.id, id));
            let ended = index.map(|index| state.open.remove(index));
            let was_open = ended.is_some();
            match (end, ended) {
                (RequestEnd::Abandoned, Some(OpenRequest { id, call })) => {
                    state.abandon(id, call);
                }
                (RequestEnd::Abandoned, None) => {}
                (RequestEnd::Answered, _) => {
                    let abandoned = &mut state.abandoned;
                    abandoned.retain(|(candidate, _)| !is_same(&candidate.id, id));
                }
            }
            was_open
        });
    }

    /// Records the end of the connection.
    pub(crate) fn end_all(&self) {
        self.0.send_replace(State::default());
    }

    /// Returns the id of the only open request.
    pub(crate) fn only_open(&self) -> Option<RequestId> {
        match self.0.borrow().open.as_slice() {
            [only] => Some(only.id.clone()),
            _ => None,
        }
    }

    /// Returns the open call with this id.
    pub(crate) fn call(&self, id: &RequestId) -> Option<Arc<CallContext>> {
        let state = self.0.borrow();
        let found = state.open.iter().find(|open| open.id == *id)?;
        found.call.clone()
    }

    /// Returns the open call with this idempotency key.
    pub(crate) fn call_by_key(&self, key: &str) -> Option<(RequestId, Arc<CallContext>)> {
        let state = self.0.borrow();
        state.open.iter().find_map(|open| {
            let call = open.call.as_ref()?;
            let matches = call.idempotency_key.as_deref() == Some(key);
            matches.then(|| (open.id.clone(), Arc::clone(call)))
        })
    }

    /// Returns the calls that a request of the server may belong to. `others`: it may also belong
    /// to an unknown call.
    pub(crate) fn candidates(&self, others: bool) -> CandidateCalls {
        let mut candidates = CandidateCalls {
            candidates: Vec::new(),
            others,
        };
        self.0.send_if_modified(|state| {
            state.remove_expired(Instant::now());
            candidates.candidates = state.candidates();
            candidates.others |= state.overflow_until.is_some();
            false
        });
        candidates
    }

    /// Waits until this request is not open.
    pub(crate) async fn closed(&self, id: &RequestId) {
        let mut state = self.0.subscribe();
        let is_closed = |state: &State| !state.open.iter().any(|open| open.id == *id);
        // Fails only without a sender, which is borrowed.
        let _ = state.wait_for(is_closed).await;
    }

    /// Waits until none of these calls is open.
    pub(crate) async fn all_closed(&self, calls: &CandidateCalls) {
        for candidate in &calls.candidates {
            self.closed(&candidate.id).await;
        }
    }
}

impl State {
    fn abandon(&mut self, id: RequestId, call: Option<Arc<CallContext>>) {
        let Some(call) = call else { return };
        if self.abandoned.len() == MAX_ABANDONED
            && let Some((_, until)) = self.abandoned.pop_front()
        {
            self.overflow_until = Some(until);
        }
        let until = Instant::now() + ABANDONED_TIME;
        self.abandoned.push_back((Candidate { id, call }, until));
    }

    fn remove_expired(&mut self, now: Instant) {
        self.abandoned.retain(|(_, until)| *until > now);
        self.overflow_until = self.overflow_until.filter(|until| *until > now);
    }

    fn candidates(&self) -> Vec<Candidate> {
        let open = self.open.iter().filter_map(|open| {
            Some(Candidate {
                id: open.id.clone(),
                call: Arc::clone(open.call.as_ref()?),
            })
        });
        let abandoned = self.abandoned.iter();
        open.chain(abandoned.map(|(candidate, _)| candidate.clone()))
            .collect()
    }
}

impl CandidateCalls {
    /// Returns the call, if there is exactly one candidate.
    pub(crate) fn only(&self) -> Option<Arc<CallContext>> {
        match self.candidates.as_slice() {
            [only] if !self.others => Some(Arc::clone(&only.call)),
            _ => None,
        }
    }

    pub(crate) fn calls(&self) -> Vec<Arc<CallContext>> {
        let candidates = self.candidates.iter();
        candidates.map(|it| Arc::clone(&it.call)).collect()
    }

    /// Returns the candidates by their idempotency keys.
    pub(crate) fn keys(&self) -> Candidates {
        let mut keys = Candidates {
            calls: Vec::new(),
            others: self.others,
        };
        for candidate in &self.candidates {
            match &candidate.call.idempotency_key {
                Some(key) if keys.calls.contains(key) => {}
                Some(key) => keys.calls.push(key.clone()),
                None => keys.others = true,
            }
        }
        keys
    }
}

/// Compares the id of a request with a received id. Some servers send the number 1 as the text "1".
pub(crate) fn is_same(sent: &RequestId, received: &RequestId) -> bool {
    match (sent, received) {
        (RequestId::Number(number), RequestId::String(text)) => text.parse() == Ok(*number),
        _ => sent == received,
    }
}

#[cfg(test)]
#[path = "open_requests_tests.rs"]
mod tests;

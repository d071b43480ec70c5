//! Which of our requests a server has not answered yet, on one connection, and within which of them it asks.
//!
//! Over pipes a question does not say to which request it belongs. What is certain is kept apart here from what
//! is likely: it is within one of those that were open when it came, or that were given up and never answered,
//! for a server need not stop when it is told so. Those that are answered while it waits are not it, since a
//! server waits for the answer itself; only an answer that is an error may say that it waited in vain.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use rmcp::model::RequestId;
use switchboard_domain::Candidates;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use crate::calls::context::Caller;

/// How long a server may still ask within a request that was given up, and that it does not answer: as long as
/// a call may take.
const GIVEN_UP: Duration = Duration::from_mins(10);
/// So many of them are told apart.
const MOST_GIVEN_UP: usize = 64;
/// So many questions at once are told where they may belong.
const MOST_UNPLACED: usize = 64;

/// Shared between the wire, which sees requests and answers in order, and those who must know whether
/// a call goes on: a server may ask something only within one (2026-07-28, "Request association").
#[derive(Clone, Default)]
pub(crate) struct OpenRequests(Arc<watch::Sender<State>>);

#[derive(Default)]
struct State {
    open: Vec<Open>,
    /// Requests that nobody waits for any more and that were not answered, oldest first, and until when the
    /// server may still ask within them.
    given_up: VecDeque<(Candidate, Instant)>,
    /// Until when there may be more of them than are kept.
    more_given_up: Option<Instant>,
    unplaced: Vec<Question>,
    questions: u64,
}

struct Open {
    id: RequestId,
    /// Whose it is, if the server may ask something before it answers.
    caller: Option<Arc<Caller>>,
}

#[derive(Clone)]
struct Candidate {
    id: RequestId,
    caller: Arc<Caller>,
}

/// What a server asks without saying within which request.
struct Question {
    number: u64,
    candidates: Vec<Candidate>,
    others: bool,
}

/// How a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Answered,
    /// With an error.
    Refused,
    /// Nobody waits for its answer any more.
    GivenUp,
}

impl OpenRequests {
    /// `caller`: whose it is, if the server may ask something before it answers.
    pub(crate) fn begin(&self, id: RequestId, caller: Option<Arc<Caller>>) {
        self.0.send_if_modified(|state| {
            state.open.push(Open { id, caller });
            // Nobody waits for a beginning, so nobody is woken.
            false
        });
    }

    pub(crate) fn end(&self, is_it: impl Fn(&RequestId) -> bool, ending: Ending) {
        self.0.send_if_modified(|state| {
            let at = state.open.iter().position(|open| is_it(&open.id));
            let ended = at.map(|at| state.open.remove(at));
            let mut any = ended.is_some();
            match ending {
                Ending::GivenUp => {
                    if let Some(Open { id, caller }) = ended
                        && let Some(caller) = caller
                    {
                        state.give_up(Candidate { id, caller });
                    }
                }
                Ending::Answered | Ending::Refused => {
                    state.given_up.retain(|(request, _)| !is_it(&request.id));
                }
            }
            if ending == Ending::Answered {
                for question in &mut state.unplaced {
                    let before = question.candidates.len();
                    question.candidates.retain(|it| !is_it(&it.id));
                    any |= question.candidates.len() < before;
                }
            }
            // Mostly nobody waits; and whoever comes later reads what is open then.
            any && self.0.receiver_count() > 0
        });
    }

    /// The connection is no more, so nothing will be answered, and nothing asked.
    pub(crate) fn end_all(&self) {
        self.0.send_if_modified(|state| {
            let any = !state.open.is_empty();
            state.open.clear();
            state.given_up.clear();
            any
        });
    }

    /// The only one there is.
    pub(crate) fn sole(&self) -> Option<RequestId> {
        match self.0.borrow().open.as_slice() {
            [sole] => Some(sole.id.clone()),
            _ => None,
        }
    }

    /// Those within which the server may ask something.
    #[cfg(test)]
    pub(crate) fn calls(&self) -> Vec<RequestId> {
        let state = self.0.borrow();
        let calls = state.open.iter().filter(|open| open.caller.is_some());
        calls.map(|open| open.id.clone()).collect()
    }

    /// Whose this request is, if it is open and the server may ask something within it.
    pub(crate) fn caller(&self, id: &RequestId) -> Option<Arc<Caller>> {
        let state = self.0.borrow();
        let found = state.open.iter().find(|open| open.id == *id)?;
        found.caller.clone()
    }

    /// The same by the key of a call.
    pub(crate) fn keyed(&self, key: &str) -> Option<(RequestId, Arc<Caller>)> {
        let state = self.0.borrow();
        state.open.iter().find_map(|open| {
            let caller = open.caller.as_ref()?;
            let is_it = caller.key.as_deref() == Some(key);
            is_it.then(|| (open.id.clone(), Arc::clone(caller)))
        })
    }

    /// A question came that does not say within which request it is asked. `others`: it may also be within one
    /// that is not known here.
    pub(crate) fn question(&self, others: bool) -> Unplaced {
        let mut number = 0;
        self.0.send_if_modified(|state| {
            state.forget(Instant::now());
            number = state.questions;
            state.questions += 1;
            let is_flood = state.unplaced.len() >= MOST_UNPLACED;
            let candidates = if is_flood {
                Vec::new()
            } else {
                state.may_ask()
            };
            state.unplaced.push(Question {
                number,
                candidates,
                others: others || is_flood || state.more_given_up.is_some(),
            });
            false
        });
        Unplaced(Arc::new(Place {
            requests: self.clone(),
            number,
        }))
    }

    /// Waits until this request is not open any more; at once if it is not.
    pub(crate) async fn ended(&self, request: &RequestId) {
        let mut state = self.0.subscribe();
        // Fails only without a sender, which is borrowed.
        let _ = state
            .wait_for(|state| !state.open.iter().any(|open| open.id == *request))
            .await;
    }
}

impl State {
    fn give_up(&mut self, request: Candidate) {
        let until = Instant::now() + GIVEN_UP;
        if self.given_up.len() == MOST_GIVEN_UP
            && let Some((_, until)) = self.given_up.pop_front()
        {
            self.more_given_up = Some(until);
        }
        self.given_up.push_back((request, until));
    }

    fn forget(&mut self, now: Instant) {
        self.given_up.retain(|(_, until)| *until > now);
        self.more_given_up = self.more_given_up.filter(|until| *until > now);
    }

    /// Within which a server may ask.
    fn may_ask(&self) -> Vec<Candidate> {
        let open = self.open.iter().filter_map(|open| {
            Some(Candidate {
                id: open.id.clone(),
                caller: Arc::clone(open.caller.as_ref()?),
            })
        });
        let given_up = self.given_up.iter().map(|(request, _)| request.clone());
        open.chain(given_up).collect()
    }

    fn is_open(&self, request: &Candidate) -> bool {
        self.open.iter().any(|open| open.id == request.id)
    }
}

/// A question of which it is not known, or was not when it came, within which request it is asked. Cheap to
/// clone.
#[derive(Clone)]
pub(crate) struct Unplaced(Arc<Place>);

struct Place {
    requests: OpenRequests,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.requests.0.send_if_modified(|state| {
            state.unplaced.retain(|it| it.number != self.number);
            false
        });
    }
}

impl Unplaced {
    /// Within what it is asked, once that is certain.
    pub(crate) fn sole(&self) -> Option<Arc<Caller>> {
        self.with(|_, question| match question.candidates.as_slice() {
            [sole] if !question.others => Some(Arc::clone(&sole.caller)),
            _ => None,
        })
        .flatten()
    }

    /// Within what it may be asked.
    pub(crate) fn callers(&self) -> Vec<Arc<Caller>> {
        let callers = |_: &State, question: &Question| {
            let candidates = question.candidates.iter();
            candidates.map(|it| Arc::clone(&it.caller)).collect()
        };
        self.with(callers).unwrap_or_default()
    }

    /// The same as it is told to others.
    pub(crate) fn candidates(&self) -> Candidates {
        self.with(|_, question| {
            let keys = question.candidates.iter().map(|it| it.caller.key.clone());
            let mut candidates = Candidates {
                calls: Vec::new(),
                others: question.others,
            };
            for key in keys {
                match key {
                    Some(key) if candidates.calls.contains(&key) => {}
                    Some(key) => candidates.calls.push(key),
                    None => candidates.others = true,
                }
            }
            candidates
        })
        .unwrap_or_default()
    }

    /// Whether all that it may be is known and belongs to one tool.
    pub(crate) fn is_of_one_tool(&self) -> bool {
        self.with(|_, question| {
            let mut tools = question.candidates.iter().map(|it| it.caller.tool());
            match tools.next() {
                Some(Some(first)) => !question.others && tools.all(|tool| tool == Some(first)),
                _ => false,
            }
        })
        .unwrap_or_default()
    }

    /// Waits until that is `enough`, and not longer than this.
    pub(crate) async fn settled(&self, patience: Duration, enough: impl Fn(&Self) -> bool) {
        let mut state = self.0.requests.0.subscribe();
        let settled = async {
            while !enough(self) {
                // Fails only without a sender, which is held here.
                if state.changed().await.is_err() {
                    return;
                }
            }
        };
        // Mostly it is at once, and needs no timer.
        if !enough(self) {
            let _ = timeout(patience, settled).await;
        }
    }

    /// Waits until everything that it may be is over for us, so that nobody has a use for an answer.
    pub(crate) async fn over(&self) {
        let mut state = self.0.requests.0.subscribe();
        let number = self.0.number;
        let _ = state
            .wait_for(|state| {
                let question = state.unplaced.iter().find(|it| it.number == number);
                !question.is_some_and(|it| it.candidates.iter().any(|it| state.is_open(it)))
            })
            .await;
    }

    fn with<T>(&self, look: impl FnOnce(&State, &Question) -> T) -> Option<T> {
        let state = self.0.requests.0.borrow();
        let question = state.unplaced.iter().find(|it| it.number == self.0.number);
        question.map(|question| look(&state, question))
    }
}

#[cfg(test)]
#[path = "open_requests_tests.rs"]
mod tests;

//! Numbers the events and hands them to whoever listens.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    future::{Future, poll_fn},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use jiff::Timestamp;
use switchboard_domain::{ToolProgress, ToolRetry};

use crate::{Clock, Run, RunEvent, RunEventKind, trace::RunLog};

/// The one source of a run's events. Shared with progress listeners, which may speak from another
/// thread and too late: number, order and what may still be said are decided under one lock.
#[derive(Clone)]
pub(crate) struct Publisher {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    run_id: Arc<str>,
    next: u64,
    clock: Clock,
    /// Tool calls that may still tell progress.
    running: HashSet<String>,
    /// What the reader has not taken. Without a bound of its own: the driver is polled only when nothing is
    /// left, and gives way after what it says. Only progress, told from other threads, can pile up.
    told: VecDeque<RunEvent>,
    /// Who waits for more. A channel would do the same, but counts every event against the time slice of its
    /// task: tokio then takes a reader of many words for one that never gives way.
    waiting: Option<Waker>,
    /// Whether nobody reads any more: the driver is about to be dropped with its stream.
    unread: bool,
    log: RunLog,
}

/// The one reader of a run's events.
pub(super) struct Listener {
    inner: Arc<Mutex<Inner>>,
    /// What was taken and not yet handed out.
    taken: VecDeque<RunEvent>,
}

impl Publisher {
    pub(super) fn new(run: &Run, clock: Clock) -> (Self, Listener) {
        let inner = Inner {
            run_id: run.id().into(),
            next: run.next_event,
            clock,
            running: HashSet::new(),
            told: VecDeque::new(),
            waiting: None,
            unread: false,
            log: RunLog::default(),
        };
        let inner = Arc::new(Mutex::new(inner));
        let listener = Listener {
            inner: Arc::clone(&inner),
            taken: VecDeque::new(),
        };
        (Self { inner }, listener)
    }

    pub(super) fn publish(&self, kind: RunEventKind) {
        self.with(|inner| {
            let time = (inner.clock)();
            inner.say(kind, time);
        });
    }

    /// Says what happened at a time that is known.
    pub(super) fn publish_at(&self, kind: RunEventKind, time: Timestamp) {
        self.with(|inner| inner.say(kind, time));
    }

    /// Says things that happened together. Whether there was anything to say.
    pub(super) fn publish_all(&self, kinds: impl IntoIterator<Item = RunEventKind>) -> bool {
        let mut kinds = kinds.into_iter();
        let Some(first) = kinds.next() else {
            return false;
        };
        self.with(|inner| {
            let time = (inner.clock)();
            inner.say(first, time);
            for kind in kinds {
                inner.say(kind, time);
            }
        });
        true
    }

    /// Tells progress of a call, unless the call is over.
    pub(super) fn progress(&self, id: &str, progress: ToolProgress) {
        self.with(|inner| {
            if inner.running.contains(id) {
                let id = id.to_owned();
                let time = (inner.clock)();
                inner.send(RunEventKind::ToolProgressed { id, progress }, time);
            }
        });
    }

    /// Tells that a call is made again, unless it is over.
    pub(super) fn retry(&self, id: &str, retry: ToolRetry) {
        self.with(|inner| {
            if inner.running.contains(id) {
                let id = id.to_owned();
                let time = (inner.clock)();
                inner.send(RunEventKind::ToolRetried { id, retry }, time);
            }
        });
    }

    /// Tells of a question within a call, unless the call is over; whether it was told.
    pub(crate) fn question(&self, call: &str, kind: RunEventKind) -> bool {
        self.with(|inner| {
            let is_under_way = inner.running.contains(call) && !inner.unread;
            if is_under_way {
                let time = (inner.clock)();
                inner.send(kind, time);
            }
            is_under_way
        })
    }

    /// The run whose events it numbers.
    pub(crate) fn run_id(&self) -> Arc<str> {
        self.with(|inner| Arc::clone(&inner.run_id))
    }

    pub(super) fn next_number(&self) -> u64 {
        self.with(|inner| inner.next)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(&mut inner);
        let waiting = if inner.told.is_empty() {
            None
        } else {
            inner.waiting.take()
        };
        drop(inner);
        // Not under the lock: whoever is woken may come for the events at once.
        if let Some(waiting) = waiting {
            waiting.wake();
        }
        done
    }
}

impl Listener {
    /// The next event, if one was told.
    pub(super) fn next(&mut self) -> Option<RunEvent> {
        self.taken.pop_front().or_else(|| self.take(None))
    }

    /// The same; if there is none, the task is woken by the next one.
    pub(super) fn next_or_wake(&mut self, context: &Context<'_>) -> Option<RunEvent> {
        let next = self.taken.pop_front();
        next.or_else(|| self.take(Some(context.waker())))
    }

    /// Takes everything that was told, and gives the first of it.
    fn take(&mut self, waker: Option<&Waker>) -> Option<RunEvent> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut self.taken, &mut inner.told);
        // Who asks need not be woken, unless there is nothing.
        let waiting = waker.filter(|_| self.taken.is_empty()).cloned();
        let before = std::mem::replace(&mut inner.waiting, waiting);
        drop(inner);
        drop(before);
        self.taken.pop_front()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.unread = true;
        let told = std::mem::take(&mut inner.told);
        drop(inner);
        // Outside of the lock: there may be much of it.
        drop(told);
    }
}

impl Inner {
    fn say(&mut self, kind: RunEventKind, time: Timestamp) {
        match &kind {
            RunEventKind::ToolStarted { id } => {
                self.running.insert(id.clone());
            }
            RunEventKind::ToolFinished { id, .. } => {
                self.running.remove(id);
            }
            _ => {}
        }
        self.send(kind, time);
    }

    fn send(&mut self, kind: RunEventKind, time: Timestamp) {
        let event = RunEvent {
            run_id: Arc::clone(&self.run_id),
            seq: self.next,
            time,
            kind,
        };
        self.next += 1;
        self.log.observe(&event);
        if !self.unread {
            self.told.push_back(event);
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|inner| {
            f.debug_struct("Publisher")
                .field("run_id", &inner.run_id)
                .field("next", &inner.next)
                .finish_non_exhaustive()
        })
    }
}

/// Gives way to the reader of the events, once. Only to be awaited by the driver itself, after it
/// published something.
///
/// No waker is kept: the stream of events polls the driver only when there is no event left to
/// hand out, so the next poll is the reader asking for more, and there is nothing to wait for before.
pub(super) fn handover() -> impl Future<Output = ()> {
    let mut gave_way = false;
    poll_fn(move |_| {
        if gave_way {
            Poll::Ready(())
        } else {
            gave_way = true;
            Poll::Pending
        }
    })
}

/// The time of day.
pub(super) fn system_clock() -> Clock {
    Arc::new(Timestamp::now)
}

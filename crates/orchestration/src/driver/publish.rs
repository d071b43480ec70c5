//! Numbers the events and hands them to whoever listens.

use std::{
    collections::HashSet,
    fmt,
    future::{Future, poll_fn},
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
};

use jiff::Timestamp;
use switchboard_domain::{ToolProgress, ToolRetry};
use tokio::sync::mpsc;

use crate::{Clock, Run, RunEvent, RunEventKind, trace::RunLog};

/// The one source of a run's events. Shared with progress listeners, which may speak from another
/// thread and too late: number, order and what may still be said are decided under one lock.
#[derive(Clone)]
pub(super) struct Publisher {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    run_id: Arc<str>,
    next: u64,
    clock: Clock,
    /// Tool calls that may still tell progress.
    running: HashSet<String>,
    sender: mpsc::UnboundedSender<RunEvent>,
    log: RunLog,
}

impl Publisher {
    /// The channel has no bound of its own: the driver is polled only when the channel is empty, and
    /// gives way after each thing that it says. Only progress, told from other threads, can pile up.
    pub(super) fn new(run: &Run, clock: Clock) -> (Self, mpsc::UnboundedReceiver<RunEvent>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let inner = Inner {
            run_id: run.id().into(),
            next: run.next_event,
            clock,
            running: HashSet::new(),
            sender,
            log: RunLog::default(),
        };
        (
            Self {
                inner: Arc::new(Mutex::new(inner)),
            },
            receiver,
        )
    }

    pub(super) fn publish(&self, kind: RunEventKind) {
        self.with(|inner| {
            match &kind {
                RunEventKind::ToolStarted { id } => {
                    inner.running.insert(id.clone());
                }
                RunEventKind::ToolFinished { id, .. } => {
                    inner.running.remove(id);
                }
                _ => {}
            }
            inner.send(kind);
        });
    }

    /// Whether there was anything to say.
    pub(super) fn publish_all(&self, kinds: impl IntoIterator<Item = RunEventKind>) -> bool {
        let mut any = false;
        for kind in kinds {
            self.publish(kind);
            any = true;
        }
        any
    }

    /// Tells progress of a call, unless the call is over.
    pub(super) fn progress(&self, id: &str, progress: ToolProgress) {
        self.with(|inner| {
            if inner.running.contains(id) {
                inner.send(RunEventKind::ToolProgressed {
                    id: id.to_owned(),
                    progress,
                });
            }
        });
    }

    /// Tells that a call is made again, unless it is over.
    pub(super) fn retry(&self, id: &str, retry: ToolRetry) {
        self.with(|inner| {
            if inner.running.contains(id) {
                inner.send(RunEventKind::ToolRetried {
                    id: id.to_owned(),
                    retry,
                });
            }
        });
    }

    pub(super) fn next_number(&self) -> u64 {
        self.with(|inner| inner.next)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inner {
    fn send(&mut self, kind: RunEventKind) {
        let event = RunEvent {
            run_id: Arc::clone(&self.run_id),
            seq: self.next,
            time: (self.clock)(),
            kind,
        };
        self.next += 1;
        self.log.observe(&event);
        // Nobody listens any more: the driver is about to be dropped with its stream.
        let _ = self.sender.send(event);
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

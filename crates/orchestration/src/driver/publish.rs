//! Numbering of events and their delivery to the reader.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::task::AtomicWaker;
use jiff::Timestamp;
use switchboard_domain::{ToolProgress, ToolRetry};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

use crate::{Run, RunEvent, RunEventKind, observe::trace::RunLog};

/// A source of time for the events of a run.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The source of the events of a run. Progress callbacks use it from other threads and possibly too
/// late, so number, order and admission of events are decided under one lock.
#[derive(Clone)]
pub(crate) struct Publisher {
    shared: Arc<Shared>,
}

struct Shared {
    cancellation: CancellationToken,
    /// The task of the reader. A channel of tokio would count every event against the budget of the
    /// task, so that a reader of many small events is treated as one that never yields. Outside the
    /// event lock, because foreign code (clock, log) runs under that lock and may cancel.
    reader: AtomicWaker,
    inner: Mutex<Inner>,
}

struct Inner {
    run_id: Arc<str>,
    next: u64,
    clock: Clock,
    /// Tool calls that may still emit progress.
    running: RunningCalls,
    /// Number of calls with delayed progress.
    delayed: usize,
    /// Events that the reader has not taken. The driver yields after its events, and the driver is
    /// polled only when the reader has them all. Events of tools and servers have their own limits.
    queue: VecDeque<RunEvent>,
    /// Whether the stream was dropped.
    is_closed: bool,
    log: RunLog,
}

/// Maximum number of progress events of a call, and of questions of its server, within [`PERIOD`].
/// Each event is stored permanently.
const MAX_PER_PERIOD: u32 = 10;
const PERIOD: Duration = Duration::from_secs(1);

/// Number of unread events, for example during slow writes, above which progress is delayed and
/// questions are refused.
const MAX_UNREAD: usize = 256;

/// Progress and questions of a running call.
#[derive(Default)]
struct CallEvents {
    progress: RateLimit,
    questions: RateLimit,
    /// The latest delayed progress.
    delayed: Option<ToolProgress>,
}

/// The running calls by id. Usually there is one.
#[derive(Default)]
struct RunningCalls(Vec<(String, CallEvents)>);

impl RunningCalls {
    fn begin(&mut self, id: &str) {
        if self.get_mut(id).is_none() {
            self.0.reserve_exact(1);
            self.0.push((id.to_owned(), CallEvents::default()));
        }
    }

    fn get_mut(&mut self, id: &str) -> Option<&mut CallEvents> {
        let mut all = self.0.iter_mut();
        all.find_map(|(of, call)| (of.as_str() == id).then_some(call))
    }

    fn remove(&mut self, id: &str) -> Option<CallEvents> {
        let index = self.0.iter().position(|(of, _)| of.as_str() == id)?;
        Some(self.0.swap_remove(index).1)
    }
}

/// A rate limit.
#[derive(Default)]
struct RateLimit {
    since: Option<Instant>,
    count: u32,
}

impl RateLimit {
    /// Counts an event. Returns whether it is within the limit.
    fn admits(&mut self, now: Instant) -> bool {
        if self.is_open(now) {
            self.since = Some(now);
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.count <= MAX_PER_PERIOD
    }

    fn is_open(&self, now: Instant) -> bool {
        let opens_at = self.opens_at();
        opens_at.is_none_or(|at| at <= now)
    }

    /// Returns the time at which the limit is reset; `None` before the first event.
    fn opens_at(&self) -> Option<Instant> {
        self.since.and_then(|since| since.checked_add(PERIOD))
    }
}

/// The reader of the events of a run.
pub(super) struct EventReader {
    shared: Arc<Shared>,
    /// Number of events that may be taken before the driver continues. They stay in the shared
    /// queue, because a second queue costs more than the uncontended lock.
    available: usize,
    /// Timer for delayed progress.
    delay_timer: Option<Pin<Box<Sleep>>>,
}

impl Publisher {
    pub(super) fn new(run: &Run, clock: Clock) -> (Self, EventReader) {
        let inner = Inner {
            run_id: run.id().into(),
            next: run.next_event(),
            clock,
            running: RunningCalls::default(),
            delayed: 0,
            queue: VecDeque::new(),
            is_closed: false,
            log: RunLog::default(),
        };
        let shared = Arc::new(Shared {
            cancellation: CancellationToken::new(),
            reader: AtomicWaker::new(),
            inner: Mutex::new(inner),
        });
        let reader = EventReader {
            shared: Arc::clone(&shared),
            available: 0,
            delay_timer: None,
        };
        (Self { shared }, reader)
    }

    /// Cancels the run. Has no effect after the first call or after the end of the run.
    pub(super) fn cancel(&self) {
        self.shared.cancellation.cancel();
    }

    /// Returns whether the run is cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.shared.cancellation.is_cancelled()
    }

    /// Waits for the cancellation of the run.
    pub(super) fn cancelled(&self) -> impl Future<Output = ()> {
        self.shared.cancellation.cancelled()
    }

    /// Publishes an event of the driver. The reader takes events after each poll of the driver, so
    /// no wake-up is needed.
    pub(super) fn publish(&self, kind: RunEventKind) {
        let inner = &mut *self.shared.lock();
        let time = (inner.clock)();
        inner.emit(kind, time);
    }

    /// Publishes an event with a known time.
    pub(super) fn publish_at(&self, kind: RunEventKind, time: Timestamp) {
        self.shared.lock().emit(kind, time);
    }

    /// Publishes events with one time. Returns whether there were any.
    pub(super) fn publish_all(&self, kinds: impl IntoIterator<Item = RunEventKind>) -> bool {
        let mut kinds = kinds.into_iter();
        let Some(first) = kinds.next() else {
            return false;
        };
        let inner = &mut *self.shared.lock();
        let time = (inner.clock)();
        inner.emit(first, time);
        for kind in kinds {
            inner.emit(kind, time);
        }
        true
    }

    /// Publishes progress of a running call. Above the rate limit, the latest progress is delayed
    /// until the limit allows it or the call ends.
    pub(super) fn progress(&self, id: &str, progress: ToolProgress) {
        self.with(|inner| {
            let is_below_limit = inner.queue.len() < MAX_UNREAD;
            let Some(call) = inner.running.get_mut(id) else {
                return;
            };
            if is_below_limit && call.progress.admits(Instant::now()) {
                inner.delayed -= usize::from(call.delayed.take().is_some());
                let time = (inner.clock)();
                inner.emit_progress(id.to_owned(), progress, time);
            } else {
                inner.delayed += usize::from(call.delayed.replace(progress).is_none());
            }
        });
    }

    /// Publishes a repeated attempt of a running call.
    pub(super) fn retry(&self, id: &str, retry: ToolRetry) {
        self.with(|inner| {
            if inner.running.get_mut(id).is_some() {
                let id = id.to_owned();
                let time = (inner.clock)();
                inner.send(RunEventKind::ToolRetried { id, retry }, time);
            }
        });
    }

    /// Publishes a question within a running call, unless its server exceeds the rate limit.
    /// Returns whether it was published. The end of a published question is always published.
    pub(crate) fn question(&self, call: &str, kind: RunEventKind) -> bool {
        self.with(|inner| {
            if inner.is_closed {
                return false;
            }
            let is_below_limit = inner.queue.len() < MAX_UNREAD;
            let Some(call) = inner.running.get_mut(call) else {
                return false;
            };
            let is_question = matches!(kind, RunEventKind::QuestionAsked { .. });
            if is_question && !(is_below_limit && call.questions.admits(Instant::now())) {
                return false;
            }
            let time = (inner.clock)();
            inner.send(kind, time);
            true
        })
    }

    /// Returns the id of the run.
    pub(crate) fn run_id(&self) -> Arc<str> {
        Arc::clone(&self.shared.lock().run_id)
    }

    pub(super) fn next_number(&self) -> u64 {
        self.shared.lock().next
    }

    /// Applies an event from outside the driver and wakes the reader.
    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.shared.lock();
        let delayed_before = inner.delayed;
        let result = act(&mut inner);
        // Delayed progress needs a wake-up too, for its timer.
        let needs_wakeup = !inner.queue.is_empty() || inner.delayed > delayed_before;
        drop(inner);
        // Outside the lock, because the woken task may take the events immediately.
        if needs_wakeup {
            self.shared.reader.wake();
        }
        result
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventReader {
    /// Returns the publisher.
    pub(super) fn publisher(&self) -> Publisher {
        Publisher {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Returns the next event of the current group.
    pub(super) fn next_available(&mut self) -> Option<RunEvent> {
        self.available = self.available.checked_sub(1)?;
        self.shared.lock().take()
    }

    /// Returns the next event, if there is one.
    pub(super) fn next(&mut self) -> Option<RunEvent> {
        self.next_available().or_else(|| self.begin_group(None))
    }

    /// Returns the next event, or registers the task for it.
    pub(super) fn next_or_wake(&mut self, context: &mut Context<'_>) -> Option<RunEvent> {
        let next = self.next_available();
        next.or_else(|| self.begin_group(Some(context)))
    }

    /// Starts a group of all published events and returns its first.
    fn begin_group(&mut self, context: Option<&mut Context<'_>>) -> Option<RunEvent> {
        let mut inner = self.shared.lock();
        let opens_at = inner.emit_delayed();
        let first = inner.take();
        self.available = inner.queue.len();
        // The task is registered only without an event.
        let context = context.filter(|_| first.is_none());
        let before = context.as_ref().and_then(|context| {
            let before = self.shared.reader.take();
            // Registered under the lock, so that later events find the task.
            self.shared.reader.register(context.waker());
            before
        });
        drop(inner);
        // Dropped outside the lock with the data of the previous task.
        drop(before);
        if let Some(context) = context {
            self.set_timer(opens_at, context);
        }
        first
    }

    /// Sets the timer for delayed progress.
    fn set_timer(&mut self, opens_at: Option<Instant>, context: &mut Context<'_>) {
        // Timers need a runtime. Without one, delayed progress follows with the next event.
        let Some(opens_at) = opens_at.filter(|_| tokio::runtime::Handle::try_current().is_ok())
        else {
            self.delay_timer = None;
            return;
        };
        let room = match &mut self.delay_timer {
            Some(room) => {
                room.as_mut().reset(opens_at);
                room
            }
            none => none.insert(Box::pin(tokio::time::sleep_until(opens_at))),
        };
        if room.as_mut().poll(context).is_ready() {
            context.waker().wake_by_ref();
        }
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        let mut inner = self.shared.lock();
        inner.is_closed = true;
        let queue = mem::take(&mut inner.queue);
        let log = mem::take(&mut inner.log);
        drop(inner);
        // Outside the lock, because it may be large. Cancel handles keep the rest alive.
        drop((queue, log, self.shared.reader.take()));
    }
}

impl Inner {
    fn take(&mut self) -> Option<RunEvent> {
        let next = self.queue.pop_front();
        if self.queue.is_empty() {
            // Restarts the queue at its first slot, which is still in the cache.
            self.queue.clear();
        }
        next
    }

    fn emit(&mut self, kind: RunEventKind, time: Timestamp) {
        match &kind {
            RunEventKind::ToolStarted { id } => {
                self.running.begin(id);
            }
            RunEventKind::ToolFinished { id, .. } => {
                let call = self.running.remove(id);
                // The last progress is always published.
                if let Some(progress) = call.and_then(|call| call.delayed) {
                    self.delayed -= 1;
                    self.emit_progress(id.clone(), progress, time);
                }
            }
            _ => {}
        }
        self.send(kind, time);
    }

    fn emit_progress(&mut self, id: String, progress: ToolProgress, time: Timestamp) {
        self.send(RunEventKind::ToolProgressed { id, progress }, time);
    }

    /// Publishes delayed progress that the limit allows now. Returns the time for the rest.
    fn emit_delayed(&mut self) -> Option<Instant> {
        if self.delayed == 0 || self.queue.len() >= MAX_UNREAD {
            return None;
        }
        let now = Instant::now();
        let mut opens_at = None;
        let mut due = Vec::new();
        for (id, call) in &mut self.running.0 {
            if call.delayed.is_none() {
                continue;
            }
            if call.progress.admits(now) {
                due.extend(call.delayed.take().map(|progress| (id.clone(), progress)));
            } else {
                let opens = call.progress.opens_at();
                opens_at = [opens_at, opens].into_iter().flatten().min();
            }
        }
        self.delayed -= due.len();
        for (id, progress) in due {
            let time = (self.clock)();
            self.emit_progress(id, progress, time);
        }
        opens_at
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
        if !self.is_closed {
            self.queue.push_back(event);
        }
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.shared.lock();
        f.debug_struct("Publisher")
            .field("run_id", &inner.run_id)
            .field("next", &inner.next)
            .finish_non_exhaustive()
    }
}

/// Yields to the reader once. Awaited by the driver after it published events.
///
/// No waker is stored: the next poll of the driver is the reader asking for more.
pub(super) fn handover() -> Handover {
    Handover { must_yield: true }
}

/// The future of [`handover`].
#[must_use]
pub(super) struct Handover {
    must_yield: bool,
}

impl Handover {
    /// Yields if events were published.
    pub(super) fn of(has_events: bool) -> Self {
        Self {
            must_yield: has_events,
        }
    }
}

impl Future for Handover {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if mem::take(&mut self.must_yield) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

/// Returns the system clock.
pub(super) fn system_clock() -> Clock {
    Arc::new(Timestamp::now)
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;

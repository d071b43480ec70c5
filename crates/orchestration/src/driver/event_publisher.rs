//! Numbering of events and their delivery to the reader.

use std::{
    collections::{HashMap, VecDeque},
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use jiff::Timestamp;
use switchboard_domain::{ToolProgress, ToolRetry};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Run, RunEvent, RunEventKind, observe::trace::RunLog};

/// A function that returns the current time, for the events of a run.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Maximum number of progress events of one tool call in a [`PERIOD`]. The same maximum applies to
/// questions that a tool server asks during the call. The events are limited because each of them
/// is stored permanently.
const MAX_PER_PERIOD: u32 = 10;
const PERIOD: Duration = Duration::from_secs(1);

/// Number of unread events at which the publisher delays further progress events and refuses
/// further questions of tool servers. Many events are unread, for example, if the reader of the
/// events writes them to a slow client.
const MAX_UNREAD: usize = 256;

/// The publisher of a run's events. One lock protects the sequence numbers, the order and the rate
/// limits of the events. Progress callbacks publish from other threads, and may be called after the
/// end of their tool call.
#[derive(Clone)]
pub(crate) struct EventPublisher {
    cancellation: CancellationToken,
    inner: Arc<Mutex<PublisherState>>,
}

struct PublisherState {
    run_id: Arc<str>,
    /// Sequence number that the next event gets.
    next: u64,
    clock: Clock,
    /// Running tool calls, by id of the tool use. Only these calls may publish progress.
    running: HashMap<String, ToolCallRateLimits>,
    /// Events that the reader has not taken. The queue needs no maximum length: the driver waits
    /// for the reader after it publishes events, and progress and questions have rate limits.
    unread: VecDeque<RunEvent>,
    /// Waker of the reader's task. `None` unless the reader waits for the next event.
    waiting: Option<Waker>,
    has_reader: bool,
    log: RunLog,
}

/// Rate limits of one running tool call for its progress and questions.
#[derive(Default)]
struct ToolCallRateLimits {
    progress: RateLimit,
    questions: RateLimit,
    /// The latest progress, if [`MAX_PER_PERIOD`] or [`MAX_UNREAD`] delays its publication.
    delayed: Option<ToolProgress>,
}

/// A counter that limits the number of events in each [`PERIOD`].
#[derive(Default)]
struct RateLimit {
    since: Option<Instant>,
    count: u32,
}

impl RateLimit {
    /// Counts an event. Returns whether the number of events in the current period is within the
    /// limit.
    fn count_within_limit(&mut self) -> bool {
        if self.since.is_none_or(|since| since.elapsed() >= PERIOD) {
            self.since = Some(Instant::now());
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.count <= MAX_PER_PERIOD
    }
}

/// The receiver of a run's events.
pub(super) struct EventReader(Arc<Mutex<PublisherState>>);

impl EventReader {
    /// Returns the next unread event, if there is one. Also removes the waker that
    /// [`poll_next`](Self::poll_next) stored, because the reader's task is awake and needs no
    /// wake-up.
    pub(super) fn next(&mut self) -> Option<RunEvent> {
        let mut inner = lock_state(&self.0);
        inner.waiting = None;
        inner.unread.pop_front()
    }

    /// Returns the next unread event. If all events are read, returns `Pending` and wakes the
    /// reader's task when an event arrives.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<RunEvent> {
        let mut inner = lock_state(&self.0);
        if let Some(event) = inner.unread.pop_front() {
            return Poll::Ready(event);
        }
        inner.waiting = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        let mut inner = lock_state(&self.0);
        inner.has_reader = false;
        // A tool host may keep a publisher longer than the reader exists. The waker and the unread
        // events are dropped now, so that the publisher does not keep the reader's task in memory.
        let unused = (inner.waiting.take(), std::mem::take(&mut inner.unread));
        drop(inner);
        drop(unused);
    }
}

impl EventPublisher {
    pub(super) fn new(run: &Run, clock: Clock) -> (Self, EventReader) {
        let inner = PublisherState {
            run_id: run.id().into(),
            next: run.next_event_number(),
            clock,
            running: HashMap::new(),
            unread: VecDeque::new(),
            waiting: None,
            has_reader: true,
            log: RunLog::default(),
        };
        let inner = Arc::new(Mutex::new(inner));
        let reader = EventReader(Arc::clone(&inner));
        let cancellation = CancellationToken::new();
        (
            Self {
                cancellation,
                inner,
            },
            reader,
        )
    }

    /// Returns the token that cancels the run.
    pub(super) fn cancellation_token(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Publishes several events with the same time. Returns `false` if `kinds` is empty.
    pub(super) fn publish_events(&self, kinds: impl IntoIterator<Item = RunEventKind>) -> bool {
        let mut kinds = kinds.into_iter().peekable();
        if kinds.peek().is_none() {
            return false;
        }
        let mut inner = self.lock_state();
        let time = (inner.clock)();
        kinds.for_each(|kind| inner.emit_event(kind, time));
        true
    }

    /// Publishes progress of a running tool call. If [`MAX_PER_PERIOD`] or [`MAX_UNREAD`] is
    /// reached, stores the progress instead. The latest stored progress is published at the end of
    /// the call, unless newer progress was published before.
    pub(super) fn publish_progress(&self, id: &str, progress: ToolProgress) {
        let inner = &mut *self.lock_state();
        let is_below_limit = inner.is_below_unread_limit();
        let Some(call) = inner.running.get_mut(id) else {
            return;
        };
        if is_below_limit && call.progress.count_within_limit() {
            call.delayed = None;
            let (id, time) = (id.to_owned(), (inner.clock)());
            inner.send_event(RunEventKind::ToolProgressed { id, progress }, time);
        } else {
            call.delayed = Some(progress);
        }
    }

    /// Publishes that a running tool call is attempted again.
    pub(super) fn publish_retry(&self, id: &str, retry: ToolRetry) {
        let mut inner = self.lock_state();
        if inner.running.contains_key(id) {
            let id = id.to_owned();
            let time = (inner.clock)();
            inner.send_event(RunEventKind::ToolRetried { id, retry }, time);
        }
    }

    /// Publishes an event about a question of a tool server: the question, its end, or a warning.
    /// `call` is the id of the tool use. Returns `false` if the call has ended, if a question
    /// exceeds a limit, or if the reader no longer exists.
    pub(crate) fn publish_question(&self, call: &str, kind: RunEventKind) -> bool {
        let inner = &mut *self.lock_state();
        let is_below_limit = inner.is_below_unread_limit();
        let Some(call) = inner.running.get_mut(call) else {
            return false;
        };
        let is_question = matches!(kind, RunEventKind::QuestionAsked { .. });
        if is_question && !(is_below_limit && call.questions.count_within_limit()) {
            return false;
        }
        let time = (inner.clock)();
        inner.send_event(kind, time)
    }

    pub(crate) fn run_id(&self) -> Arc<str> {
        Arc::clone(&self.lock_state().run_id)
    }

    pub(super) fn next_event_number(&self) -> u64 {
        self.lock_state().next
    }

    fn lock_state(&self) -> MutexGuard<'_, PublisherState> {
        lock_state(&self.inner)
    }
}

fn lock_state(inner: &Mutex<PublisherState>) -> MutexGuard<'_, PublisherState> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PublisherState {
    fn is_below_unread_limit(&self) -> bool {
        self.unread.len() < MAX_UNREAD
    }

    fn emit_event(&mut self, kind: RunEventKind, time: Timestamp) {
        match &kind {
            RunEventKind::ToolStarted { id } => {
                self.running.entry(id.clone()).or_default();
            }
            RunEventKind::ToolFinished { id, .. } => {
                let call = self.running.remove(id);
                // The delayed progress of an ended call must precede the event of its end.
                if let Some(progress) = call.and_then(|call| call.delayed) {
                    let id = id.clone();
                    self.send_event(RunEventKind::ToolProgressed { id, progress }, time);
                }
            }
            _ => {}
        }
        self.send_event(kind, time);
    }

    /// Sends an event to the reader. Returns `false` if the reader no longer exists.
    fn send_event(&mut self, kind: RunEventKind, time: Timestamp) -> bool {
        let event = RunEvent {
            run_id: Arc::clone(&self.run_id),
            seq: self.next,
            time,
            kind,
        };
        self.next += 1;
        self.log.log_run_event(&event);
        if self.has_reader {
            self.unread.push_back(event);
        }
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
        self.has_reader
    }
}

/// Pauses the driver until the reader has read the published events.
///
/// Stores no waker, because the reader polls the driver again after it has read the events.
pub(super) async fn yield_to_reader() {
    let mut first_poll = Some(Poll::Pending);
    poll_fn(|_| first_poll.take().unwrap_or(Poll::Ready(()))).await;
}

#[cfg(test)]
#[path = "event_publisher_tests.rs"]
mod tests;

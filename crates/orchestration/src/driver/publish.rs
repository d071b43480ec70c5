//! Numbers the events and hands them to whoever listens.

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::task::AtomicWaker;
use jiff::Timestamp;
use switchboard_domain::{ToolProgress, ToolRetry};
use tokio::time::{Instant, Sleep};

use crate::{Clock, Run, RunEvent, RunEventKind, observe::trace::RunLog};

/// The one source of a run's events. Shared with progress listeners, which may speak from another
/// thread and too late: number, order and what may still be said are decided under one lock.
#[derive(Clone)]
pub(crate) struct Publisher {
    shared: Arc<Shared>,
}

struct Shared {
    /// Whether somebody wants the run to stop. Looked at after everything that is waited for, so it is no lock.
    cancelled: AtomicBool,
    /// Somebody cancelled, and the driver was not polled for it yet.
    is_poked: AtomicBool,
    /// Who waits for more. A channel would do the same, but counts every event against the time slice of its
    /// task: tokio then takes a reader of many words for one that never gives way. Under no lock: under that of the events other people's
    /// code runs (the clock, what observes the log), and that may cancel.
    reader: AtomicWaker,
    inner: Mutex<Inner>,
}

struct Inner {
    run_id: Arc<str>,
    next: u64,
    clock: Clock,
    /// Tool calls that may still tell progress.
    running: Speakers,
    /// How many of them have progress that was not told yet.
    holding: usize,
    /// What the reader has not taken. The driver is polled only when the reader has all that the driver said, and gives way
    /// after what it says; what tools and servers say from other threads has bounds of its own.
    told: VecDeque<RunEvent>,
    /// Whether nobody reads any more: the driver is about to be dropped with its stream.
    unread: bool,
    log: RunLog,
}

/// How often a call may tell its progress within [`SPELL`], and how often its server may ask something. Each is stored
/// for good, and no person reads more.
const OFTEN: u32 = 10;
const SPELL: Duration = Duration::from_secs(1);

/// Beyond so many events that nobody has taken, such as while the store is slow, progress is held back and nothing is
/// asked.
const UNREAD: usize = 256;

/// A call under way, as far as it and its server say something.
#[derive(Default)]
struct Speaker {
    progress: Pace,
    questions: Pace,
    /// The newest progress, while there is no room for it.
    held: Option<ToolProgress>,
}

/// Those that speak, by the id of their call. There are as many as run at once, mostly one.
#[derive(Default)]
struct Speakers(Vec<(String, Speaker)>);

impl Speakers {
    fn begin(&mut self, id: &str) {
        if self.get_mut(id).is_none() {
            self.0.reserve_exact(1);
            self.0.push((id.to_owned(), Speaker::default()));
        }
    }

    fn get_mut(&mut self, id: &str) -> Option<&mut Speaker> {
        let mut all = self.0.iter_mut();
        all.find_map(|(of, speaker)| (of.as_str() == id).then_some(speaker))
    }

    fn remove(&mut self, id: &str) -> Option<Speaker> {
        let place = self.0.iter().position(|(of, _)| of.as_str() == id)?;
        Some(self.0.swap_remove(place).1)
    }
}

/// How often something was told lately.
#[derive(Default)]
struct Pace {
    since: Option<Instant>,
    count: u32,
}

impl Pace {
    /// Whether it may be told once more, and then it counts as told.
    fn admits(&mut self, now: Instant) -> bool {
        if self.is_open(now) {
            self.since = Some(now);
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.count <= OFTEN
    }

    fn is_open(&self, now: Instant) -> bool {
        let opens_at = self.opens_at();
        opens_at.is_none_or(|at| at <= now)
    }

    /// From when on there is room again in any case; `None` if nothing was told yet.
    fn opens_at(&self) -> Option<Instant> {
        self.since.and_then(|since| since.checked_add(SPELL))
    }
}

/// The one reader of a run's events.
pub(super) struct Listener {
    shared: Arc<Shared>,
    /// How many of the events that were told may be handed out before the driver goes on. They stay where they are:
    /// a second queue is ten lines of memory more that are in no cache when the run goes on, and taking one of a lock that nobody
    /// else wants costs less.
    seen: usize,
    /// Until there is room for progress that is held back.
    room: Option<Pin<Box<Sleep>>>,
}

impl Publisher {
    pub(super) fn new(run: &Run, clock: Clock) -> (Self, Listener) {
        let inner = Inner {
            run_id: run.id().into(),
            next: run.next_event(),
            clock,
            running: Speakers::default(),
            holding: 0,
            told: VecDeque::new(),
            unread: false,
            log: RunLog::default(),
        };
        let shared = Arc::new(Shared {
            cancelled: AtomicBool::new(false),
            is_poked: AtomicBool::new(false),
            reader: AtomicWaker::new(),
            inner: Mutex::new(inner),
        });
        let listener = Listener {
            shared: Arc::clone(&shared),
            seen: 0,
            room: None,
        };
        (Self { shared }, listener)
    }

    /// Has the run stopped. Doing so twice, or after its end, changes nothing.
    pub(super) fn cancel(&self) {
        // `Release` for whoever sees it: what was done before is seen too, as with a lock.
        if self.shared.cancelled.swap(true, Ordering::AcqRel) {
            return;
        }
        // The driver may just have looked, and its reader be about to wait, in a task that is not yet known here.
        self.shared.is_poked.store(true, Ordering::Release);
        self.shared.reader.wake();
    }

    /// Whether somebody wants the run to stop.
    pub(super) fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Acquire)
    }

    /// Waits until somebody wants the run to stop. Only to be awaited by the driver itself, and by nothing that
    /// is polled only if it was woken, such as one of several: no waker is kept, for whoever cancels wakes the reader of the
    /// events, and that polls the driver.
    pub(super) fn cancelled(&self) -> impl Future<Output = ()> {
        poll_fn(|_| {
            if self.is_cancelled() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
    }

    /// Says something. Only the driver does, and what is polled within it: its reader looks for events behind each poll of it, so
    /// nobody is woken.
    pub(super) fn publish(&self, kind: RunEventKind) {
        let inner = &mut *self.shared.lock();
        let time = (inner.clock)();
        inner.say(kind, time);
    }

    /// The same of what happened at a time that is known.
    pub(super) fn publish_at(&self, kind: RunEventKind, time: Timestamp) {
        self.shared.lock().say(kind, time);
    }

    /// The same of things that happened together. Whether there was anything to say.
    pub(super) fn publish_all(&self, kinds: impl IntoIterator<Item = RunEventKind>) -> bool {
        let mut kinds = kinds.into_iter();
        let Some(first) = kinds.next() else {
            return false;
        };
        let inner = &mut *self.shared.lock();
        let time = (inner.clock)();
        inner.say(first, time);
        for kind in kinds {
            inner.say(kind, time);
        }
        true
    }

    /// Tells progress of a call, unless the call is over. Of more than there is room for, the newest is told when there
    /// is room, and at the end of the call at the latest.
    pub(super) fn progress(&self, id: &str, progress: ToolProgress) {
        self.with(|inner| {
            let has_room = inner.told.len() < UNREAD;
            let Some(speaker) = inner.running.get_mut(id) else {
                return;
            };
            if has_room && speaker.progress.admits(Instant::now()) {
                inner.holding -= usize::from(speaker.held.take().is_some());
                let time = (inner.clock)();
                inner.tell_progress(id.to_owned(), progress, time);
            } else {
                inner.holding += usize::from(speaker.held.replace(progress).is_none());
            }
        });
    }

    /// Tells that a call is made again, unless it is over.
    pub(super) fn retry(&self, id: &str, retry: ToolRetry) {
        self.with(|inner| {
            if inner.running.get_mut(id).is_some() {
                let id = id.to_owned();
                let time = (inner.clock)();
                inner.send(RunEventKind::ToolRetried { id, retry }, time);
            }
        });
    }

    /// Tells of a question within a call, unless the call is over or its server asks too much; whether it was told. The
    /// end of one that was told always is.
    pub(crate) fn question(&self, call: &str, kind: RunEventKind) -> bool {
        self.with(|inner| {
            if inner.unread {
                return false;
            }
            let has_room = inner.told.len() < UNREAD;
            let Some(speaker) = inner.running.get_mut(call) else {
                return false;
            };
            let is_asked = matches!(kind, RunEventKind::QuestionAsked { .. });
            if is_asked && !(has_room && speaker.questions.admits(Instant::now())) {
                return false;
            }
            let time = (inner.clock)();
            inner.send(kind, time);
            true
        })
    }

    /// The run whose events it numbers.
    pub(crate) fn run_id(&self) -> Arc<str> {
        Arc::clone(&self.shared.lock().run_id)
    }

    pub(super) fn next_number(&self) -> u64 {
        self.shared.lock().next
    }

    /// Does what comes from outside the driver, and wakes the reader for it.
    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.shared.lock();
        let held = inner.holding;
        let done = act(&mut inner);
        // Whoever waits also waits for the time of what is held back.
        let is_news = !inner.told.is_empty() || inner.holding > held;
        drop(inner);
        // Not under the lock: whoever is woken may come for the events at once.
        if is_news {
            self.shared.reader.wake();
        }
        done
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Who speaks to it.
    pub(super) fn publisher(&self) -> Publisher {
        Publisher {
            shared: Arc::clone(&self.shared),
        }
    }

    /// The next of the events that were seen together.
    pub(super) fn seen(&mut self) -> Option<RunEvent> {
        self.seen = self.seen.checked_sub(1)?;
        self.shared.lock().take()
    }

    /// The next event, if one was told.
    pub(super) fn next(&mut self) -> Option<RunEvent> {
        self.seen().or_else(|| self.look(None))
    }

    /// The same; if there is none, the task is woken by the next one.
    pub(super) fn next_or_wake(&mut self, context: &mut Context<'_>) -> Option<RunEvent> {
        let next = self.seen();
        next.or_else(|| self.look(Some(context)))
    }

    /// Sees everything that was told, and gives the first of it.
    fn look(&mut self, context: Option<&mut Context<'_>>) -> Option<RunEvent> {
        let mut inner = self.shared.lock();
        let opens_at = inner.tell_held();
        let first = inner.take();
        self.seen = inner.told.len();
        // Who asks need not be woken, unless there is nothing.
        let context = context.filter(|_| first.is_none());
        let before = context.as_ref().and_then(|context| {
            let before = self.shared.reader.take();
            // Still under the lock, so that what is told behind it finds whom to wake.
            self.shared.reader.register(context.waker());
            before
        });
        drop(inner);
        // With the task of the poll before, if that has gone, all that it holds.
        drop(before);
        if let Some(context) = context {
            // Whoever cancels after the driver has looked finds this task registered, or is found here.
            let poked = &self.shared.is_poked;
            if poked.load(Ordering::Acquire) && poked.swap(false, Ordering::AcqRel) {
                context.waker().wake_by_ref();
            }
            self.wait_for_room(opens_at, context);
        }
        first
    }

    /// Has the task woken when there is room for what is held back.
    fn wait_for_room(&mut self, opens_at: Option<Instant>, context: &mut Context<'_>) {
        // Without a runtime there is no time; what is held back is told behind what comes next.
        let Some(opens_at) = opens_at.filter(|_| tokio::runtime::Handle::try_current().is_ok())
        else {
            self.room = None;
            return;
        };
        let room = match &mut self.room {
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

impl Drop for Listener {
    fn drop(&mut self) {
        let mut inner = self.shared.lock();
        inner.unread = true;
        let told = mem::take(&mut inner.told);
        let log = mem::take(&mut inner.log);
        drop(inner);
        // Outside of the lock: there may be much of it. Whoever can cancel the run keeps the rest, but no task and no input of calls.
        drop((told, log, self.shared.reader.take()));
    }
}

impl Inner {
    fn take(&mut self) -> Option<RunEvent> {
        let next = self.told.pop_front();
        if self.told.is_empty() {
            // From its first place on again. Else every event is written to the place behind the one before it, which is in no
            // cache any more where many runs wait.
            self.told.clear();
        }
        next
    }

    fn say(&mut self, kind: RunEventKind, time: Timestamp) {
        match &kind {
            RunEventKind::ToolStarted { id } => {
                self.running.begin(id);
            }
            RunEventKind::ToolFinished { id, .. } => {
                let speaker = self.running.remove(id);
                // How far it was last is told in any case.
                if let Some(progress) = speaker.and_then(|speaker| speaker.held) {
                    self.holding -= 1;
                    self.tell_progress(id.clone(), progress, time);
                }
            }
            _ => {}
        }
        self.send(kind, time);
    }

    fn tell_progress(&mut self, id: String, progress: ToolProgress, time: Timestamp) {
        self.send(RunEventKind::ToolProgressed { id, progress }, time);
    }

    /// Tells the progress that was held back and for which there is room now. From when on there is room for the rest.
    fn tell_held(&mut self) -> Option<Instant> {
        if self.holding == 0 || self.told.len() >= UNREAD {
            return None;
        }
        let now = Instant::now();
        let mut opens_at = None;
        let mut told = Vec::new();
        for (id, speaker) in &mut self.running.0 {
            if speaker.held.is_none() {
                continue;
            }
            if speaker.progress.admits(now) {
                told.extend(speaker.held.take().map(|progress| (id.clone(), progress)));
            } else {
                let opens = speaker.progress.opens_at();
                opens_at = [opens_at, opens].into_iter().flatten().min();
            }
        }
        self.holding -= told.len();
        for (id, progress) in told {
            let time = (self.clock)();
            self.tell_progress(id, progress, time);
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
        if !self.unread {
            self.told.push_back(event);
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

/// Gives way to the reader of the events, once. Only to be awaited by the driver itself, after it
/// published something.
///
/// No waker is kept: the stream of events polls the driver only when the reader has all that was told when the
/// driver gave way, so the next poll is the reader asking for more, and there is nothing to wait for before.
pub(super) fn handover() -> Handover {
    Handover { gives_way: true }
}

/// What [`handover`] gives.
#[must_use]
pub(super) struct Handover {
    gives_way: bool,
}

impl Handover {
    /// If this said anything.
    pub(super) fn of(said: bool) -> Self {
        Self { gives_way: said }
    }
}

impl Future for Handover {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if mem::take(&mut self.gives_way) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}

/// The time of day.
pub(super) fn system_clock() -> Clock {
    Arc::new(Timestamp::now)
}

#[cfg(test)]
#[path = "publish_tests.rs"]
mod tests;

//! Runs under way: begun, read by whoever wants to, decided about, stopped, and gone on with.

mod desk;
mod drive;
mod log;
mod place;
mod reader;
mod runs;
mod session;
mod start;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use switchboard_domain::{
    Message, Principal, RunRecord, RunState, RunStore, SessionId, SessionStore,
};
use switchboard_orchestration::{
    Agent, CancelHandle, RunReport,
    observe::metrics::{Metrics, MetricsCollector},
    persistence::DurableRuns,
};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Engine, Problem, ServerOptions, Wish};
use desk::Desk;
pub(crate) use log::{Logged, RunLog, Standing, type_of};
use place::Places;
pub(crate) use reader::Reader;
pub(crate) use session::SessionReader;

/// All runs of this server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Hub {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Arc<dyn Engine>,
    durable_runs: DurableRuns,
    sessions: Arc<dyn SessionStore>,
    runs: Arc<dyn RunStore>,
    options: ServerOptions,
    active: Mutex<HashMap<Arc<str>, Arc<Active>>>,
    /// Whoever reads a session is told here that a run of it began or ended.
    doors: Mutex<HashMap<SessionId, watch::Sender<()>>>,
    /// Runs that somebody is about to take up: one at a time.
    taking: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    places: Arc<Places>,
    metrics: Arc<Mutex<Metrics>>,
    tasks: TaskTracker,
    /// Nothing new begins, and what waits is put away.
    stopping: CancellationToken,
    /// What still runs is let go.
    cut: CancellationToken,
}

/// A run that this process is at work on.
struct Active {
    record: RunRecord,
    owner: Principal,
    /// It is in a session; one that is not is in memory only.
    is_kept: bool,
    log: Arc<RunLog>,
    desk: Arc<Desk>,
    cancel: CancelHandle,
}

/// What a run is about.
pub(crate) enum Talk {
    /// It is in a session that is kept: what was said there comes first, these messages are new.
    Session {
        /// Which; a new one without.
        id: Option<SessionId>,
        /// One of this id is made if there is none.
        create: bool,
        /// What was said before this position stays, and what stands behind it is set aside; without, all of it stays.
        keep: Option<u64>,
        /// What is said now.
        messages: Vec<Arc<Message>>,
    },
    /// The client brings the whole conversation, and nothing of it is kept.
    Loose {
        /// The conversation.
        messages: Vec<Arc<Message>>,
    },
}

/// A last change to the agent of a run.
pub(crate) type Shape = Box<dyn FnOnce(Agent) -> Agent + Send>;

/// A run to be started.
pub(crate) struct Start {
    /// On whose behalf.
    pub(crate) principal: Principal,
    /// What it is to be like.
    pub(crate) wish: Wish,
    /// What it is about.
    pub(crate) talk: Talk,
    /// A last change to the agent.
    pub(crate) shape: Option<Shape>,
}

/// A run that was started or taken up.
pub(crate) struct Started {
    hub: Hub,
    active: Arc<Active>,
    /// Its id.
    pub(crate) run: Arc<str>,
    /// Its session, if it is in one.
    pub(crate) session: Option<SessionId>,
    /// The number of the last event that it had before.
    pub(crate) last_event: u64,
}

/// What a run came to, as far as a request waits for it.
pub(crate) enum Ended {
    /// It is over.
    Finished(Box<RunReport>),
    /// It waits for a person: for words about calls, or for an answer to a question.
    Waiting,
    /// The server stops, or the run met a fault of the server or its store; it can be continued.
    Stopped,
}

/// Cancels a run when it is dropped before the run's end.
pub(crate) struct Guard(CancelHandle);

impl Drop for Guard {
    fn drop(&mut self) {
        // After its end this changes nothing.
        self.0.cancel();
    }
}

impl Started {
    /// Its events from here on: all of them, for a run that has just begun.
    pub(crate) fn reader(&self) -> Reader {
        self.active.reader(&self.hub, self.last_event)
    }

    /// Cancels the run when the guard is dropped.
    pub(crate) fn cancel_when_dropped(&self) -> Guard {
        Guard(self.active.cancel.clone())
    }

    /// Waits for its end, or for it to wait for a person.
    pub(crate) async fn wait(&self) -> Ended {
        let mut news = self.active.log.news();
        loop {
            news.borrow_and_update();
            match self.active.log.standing() {
                Standing::Over(report) => return Ended::Finished(report),
                Standing::Asking(_) | Standing::Parked(_) => return Ended::Waiting,
                Standing::Left => return Ended::Stopped,
                Standing::Running => {}
            }
            // The log is ours, so its sender is there.
            let _ = news.changed().await;
        }
    }
}

impl Active {
    fn reader(&self, hub: &Hub, after: u64) -> Reader {
        Reader::new(
            hub.clone(),
            self.owner.clone(),
            self.id(),
            self.is_kept.then(|| self.record.session.clone()),
            Some(&self.log),
            after,
        )
    }

    fn id(&self) -> Arc<str> {
        self.record.id.as_str().into()
    }

    /// The run as it stands.
    fn record(&self) -> RunRecord {
        let mut record = self.record.clone();
        record.last_event = self.log.last();
        record.state = match self.log.standing() {
            Standing::Over(_) => RunState::Finished,
            Standing::Parked(_) => RunState::Waiting,
            Standing::Left => RunState::Interrupted,
            Standing::Running | Standing::Asking(_) => RunState::Running,
        };
        record
    }
}

impl Hub {
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        sessions: Arc<dyn SessionStore>,
        runs: Arc<dyn RunStore>,
        options: ServerOptions,
    ) -> Self {
        let places = Places::new(options.max_runs, options.max_runs_each);
        let knows = Arc::clone(&engine);
        let metrics =
            Metrics::default().with_known_models(Arc::new(move |model| knows.knows_model(model)));
        let durable_runs = DurableRuns::new(
            Arc::clone(&sessions),
            Arc::clone(&runs),
            Principal::default(),
        );
        let shared = Shared {
            engine,
            durable_runs,
            sessions,
            runs,
            options,
            active: Mutex::default(),
            doors: Mutex::default(),
            taking: Mutex::default(),
            places,
            metrics: Arc::new(Mutex::new(metrics)),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            cut: CancellationToken::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<dyn Engine> {
        &self.shared.engine
    }

    pub(crate) fn sessions(&self) -> &Arc<dyn SessionStore> {
        &self.shared.sessions
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.shared.options
    }

    pub(crate) fn durable_runs(&self, owner: &Principal) -> DurableRuns {
        self.shared.durable_runs.for_principal(owner.clone())
    }

    /// Returns the metrics of the runs, for a registry.
    pub(crate) fn metrics(&self) -> MetricsCollector {
        MetricsCollector(Arc::clone(&self.shared.metrics))
    }

    /// How many runs are under way, and how many of them wait for a person.
    pub(crate) fn under_way(&self) -> (usize, usize) {
        let active = self.active();
        let asking = active
            .values()
            .filter(|run| matches!(run.log.standing(), Standing::Asking(_)));
        (active.len(), asking.count())
    }

    /// The server is about to stop.
    pub(crate) fn is_stopping(&self) -> CancellationToken {
        self.shared.stopping.clone()
    }

    /// What still runs is let go.
    fn is_cut(&self) -> CancellationToken {
        self.shared.cut.clone()
    }

    /// Stops the hub: nothing new begins, and runs that wait for a person are stored. Runs that are
    /// under way have [`ServerOptions::run_drain_time`] to end. After that, and at `at_once`, they are
    /// left to be continued. Returns at `limit`, whatever the store does.
    pub(crate) async fn stop(&self, at_once: impl Future<Output = ()>, limit: Instant) {
        self.shared.stopping.cancel();
        for run in self.active().values() {
            run.desk.close();
        }
        self.shared.tasks.close();
        tokio::select! {
            () = self.shared.tasks.wait() => return,
            () = tokio::time::sleep(self.options().run_drain_time()) => {}
            () = at_once => {}
        }
        let left = self.active().len();
        tracing::warn!(runs = left, "runs are left to be continued");
        self.shared.cut.cancel();
        if timeout_at(limit, self.shared.tasks.wait()).await.is_err() {
            let runs = self.active().len();
            tracing::error!(
                runs,
                "runs could not be released in time: the store does not answer"
            );
        }
    }

    fn active(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Active>>> {
        lock(&self.shared.active)
    }

    /// The run, if this process is at work on it and it is this principal's.
    fn active_run(&self, owner: &Principal, run: &str) -> Option<Arc<Active>> {
        let active = self.active();
        active.get(run).filter(|it| it.owner == *owner).cloned()
    }

    fn log_of(&self, owner: &Principal, run: &str) -> Option<Arc<RunLog>> {
        let run = self.active_run(owner, run)?;
        Some(Arc::clone(&run.log))
    }

    /// Whoever reads a session waits here.
    fn door(&self, session: &SessionId) -> watch::Receiver<()> {
        let mut doors = lock(&self.shared.doors);
        if let Some(door) = doors.get(session) {
            return door.subscribe();
        }
        // Doors at which nobody waits any more go with every so many new ones.
        if doors.len() % 64 == 63 {
            doors.retain(|_, door| door.receiver_count() > 0);
        }
        let (door, news) = watch::channel(());
        doors.insert(session.clone(), door);
        news
    }

    fn tell(&self, session: &SessionId) {
        let mut doors = lock(&self.shared.doors);
        if let Some(door) = doors.get(session)
            && door.send(()).is_err()
        {
            doors.remove(session);
        }
    }

    /// A run as the store knows it.
    async fn record(&self, owner: &Principal, run: &str) -> Result<Option<RunRecord>, Problem> {
        Ok(self.shared.runs.run(owner, run).await?)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("active", &self.active().len())
            .finish_non_exhaustive()
    }
}

/// Does something to its end, whether or not whoever asked for it waits: a run that is taken up half-way belongs to
/// nobody.
pub(super) async fn unhindered<T: Send + 'static>(
    work: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(work).await.map_err(|_| Problem::internal())?
}

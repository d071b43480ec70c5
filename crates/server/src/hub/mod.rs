//! The active runs: start, readers, decisions, cancellation, resumption.

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

/// All runs of this server. Clones are cheap.
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
    /// Notifies readers of a session when one of its runs starts or ends.
    doors: Mutex<HashMap<SessionId, watch::Sender<()>>>,
    /// Locks of runs that are being resumed.
    taking: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    places: Arc<Places>,
    metrics: Arc<Mutex<Metrics>>,
    tasks: TaskTracker,
    /// Whether new runs are refused and waiting runs are stored.
    stopping: CancellationToken,
    /// Whether active runs are abandoned.
    cut: CancellationToken,
}

/// A run that this process executes.
struct Active {
    record: RunRecord,
    owner: Principal,
    /// Whether the run is durable. An ephemeral run is only in memory.
    is_kept: bool,
    log: Arc<RunLog>,
    desk: Arc<Desk>,
    cancel: CancelHandle,
}

/// The conversation of a run.
pub(crate) enum Talk {
    /// A stored session: its messages come first, these messages are new.
    Session {
        /// The session, or `None` for a new one.
        id: Option<SessionId>,
        /// Whether a session with this id is created if it does not exist.
        create: bool,
        /// The number of messages to keep. Later ones are removed. `None` keeps all.
        keep: Option<u64>,
        /// The new messages.
        messages: Vec<Arc<Message>>,
    },
    /// The client sends the whole conversation, and nothing is stored.
    Loose {
        /// The conversation.
        messages: Vec<Arc<Message>>,
    },
}

/// A last change to the agent of a run.
pub(crate) type Shape = Box<dyn FnOnce(Agent) -> Agent + Send>;

/// A request to start a run.
pub(crate) struct Start {
    /// The principal.
    pub(crate) principal: Principal,
    /// The parameters.
    pub(crate) wish: Wish,
    /// The conversation.
    pub(crate) talk: Talk,
    /// A last change to the agent.
    pub(crate) shape: Option<Shape>,
}

/// A started or resumed run.
pub(crate) struct Started {
    hub: Hub,
    active: Arc<Active>,
    /// The id.
    pub(crate) run: Arc<str>,
    /// The session of a durable run.
    pub(crate) session: Option<SessionId>,
    /// The number of its last event before.
    pub(crate) last_event: u64,
}

/// The state in which a request stops waiting for a run.
pub(crate) enum Ended {
    /// Finished.
    Finished(Box<RunReport>),
    /// Waiting for decisions or for an answer to a question.
    Waiting,
    /// Interrupted by the shutdown or by a fault. It can be resumed.
    Stopped,
}

/// Cancels a run if it is dropped before the end of the run.
pub(crate) struct Guard(CancelHandle);

impl Drop for Guard {
    fn drop(&mut self) {
        // No effect after the end.
        self.0.cancel();
    }
}

impl Started {
    /// Returns a reader of the following events; of a new run, of all events.
    pub(crate) fn reader(&self) -> Reader {
        self.active.reader(&self.hub, self.last_event)
    }

    /// Returns a guard that cancels the run when it is dropped.
    pub(crate) fn cancel_when_dropped(&self) -> Guard {
        Guard(self.active.cancel.clone())
    }

    /// Waits until the run ends or waits for a person.
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
            // This value owns the log, so its sender exists.
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

    /// Returns the current state of the run.
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

    /// Returns the number of active runs, and how many of them wait for a person.
    pub(crate) fn under_way(&self) -> (usize, usize) {
        let active = self.active();
        let asking = active
            .values()
            .filter(|run| matches!(run.log.standing(), Standing::Asking(_)));
        (active.len(), asking.count())
    }

    /// Completes at the start of the shutdown.
    pub(crate) fn is_stopping(&self) -> CancellationToken {
        self.shared.stopping.clone()
    }

    /// Completes when active runs are abandoned.
    fn is_cut(&self) -> CancellationToken {
        self.shared.cut.clone()
    }

    /// Stops the hub: nothing new begins, and runs that wait for a person are stored. Runs that are
    /// under way have [`ServerOptions::run_drain_time`] to end. After that, and at `at_once`, they
    /// are left to be continued. Returns at `limit`, whatever the store does.
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

    /// Returns the active run of this principal.
    fn active_run(&self, owner: &Principal, run: &str) -> Option<Arc<Active>> {
        let active = self.active();
        active.get(run).filter(|it| it.owner == *owner).cloned()
    }

    fn log_of(&self, owner: &Principal, run: &str) -> Option<Arc<RunLog>> {
        let run = self.active_run(owner, run)?;
        Some(Arc::clone(&run.log))
    }

    /// Returns the notifications for readers of a session.
    fn door(&self, session: &SessionId) -> watch::Receiver<()> {
        let mut doors = lock(&self.shared.doors);
        if let Some(door) = doors.get(session) {
            return door.subscribe();
        }
        // Unused entries are removed from time to time.
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

    /// Returns the stored record of a run.
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

/// Completes an operation even if its request is dropped, because a partly resumed run would have
/// no owner.
pub(super) async fn unhindered<T: Send + 'static>(
    work: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(work).await.map_err(|_| Problem::internal())?
}

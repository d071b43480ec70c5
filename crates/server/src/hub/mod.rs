//! Manages the active runs: start, readers, decisions, cancellation, resumption.

mod event_reader;
mod pending_approvals;
mod resume_run;
mod run_execution;
pub(crate) mod run_limits;
mod run_log;
mod runs;
mod session_reader;
mod start_run;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use switchboard_domain::{
    Message, Principal, RunRecord, RunState, RunStore, SessionId, SessionStore, ToolHost,
};
use switchboard_orchestration::{
    CancelHandle,
    observe::metrics::{Metrics, MetricsCollector},
    persistence::DurableRuns,
    strategy::formatter::AnswerSchema,
};
use tokio::{
    sync::broadcast,
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Engine, Problem, RunSettings, ServerOptions};
pub(crate) use event_reader::EventReader;
use pending_approvals::PendingApprovals;
use run_limits::RunLimits;
use run_log::RunLog;
pub(crate) use run_log::{LoggedEvent, RunStatus, event_type};
pub(crate) use runs::RunView;
pub(crate) use session_reader::SessionReader;

/// The server name in run events for tools that the client executes. No configured MCP server has
/// this name.
pub(crate) const CLIENT_SERVER: &str = "the client";

/// The manager of all runs of this server process. Clones are cheap.
#[derive(Clone)]
pub(crate) struct RunHub {
    shared: Arc<SharedHubState>,
}

struct SharedHubState {
    engine: Arc<dyn Engine>,
    durable_runs: DurableRuns,
    sessions: Arc<dyn SessionStore>,
    runs: Arc<dyn RunStore>,
    options: ServerOptions,
    active: Mutex<HashMap<Arc<str>, Arc<ActiveRun>>>,
    /// A channel that receives the id of a session when one of its runs starts or ends, or when the
    /// session is deleted.
    session_changes: broadcast::Sender<SessionId>,
    /// Locks that prevent concurrent resumption and cancellation of a run, by run id.
    run_locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    limits: RunLimits,
    metrics: Arc<Mutex<Metrics>>,
    tasks: TaskTracker,
    /// A token that is cancelled when the shutdown starts. New runs are then refused, and waiting
    /// runs are stored.
    stopping: CancellationToken,
    /// A token that is cancelled when the shutdown interrupts the runs that are still active.
    abort: CancellationToken,
}

/// A run that this process executes.
struct ActiveRun {
    record: RunRecord,
    owner: Principal,
    /// Whether the run is durable. An ephemeral run exists only in memory.
    is_durable: bool,
    log: Arc<RunLog>,
    approvals: Arc<PendingApprovals>,
    cancel: CancelHandle,
}

/// The source of the conversation of a new run.
pub(crate) enum ConversationInput {
    /// A stored session. The new messages follow its stored messages.
    Session {
        /// The id of the session, or `None` to create a session with a new id.
        id: Option<SessionId>,
        /// Whether to create a session with the client's `id` if none exists. If `false`, a missing
        /// session is an error.
        create: bool,
        /// The number of stored messages to keep. Later messages are removed. `None` keeps all
        /// messages.
        keep: Option<u64>,
        /// The new messages that start the run.
        messages: Vec<Arc<Message>>,
    },
    /// The client sends the whole conversation, and the server stores nothing.
    Ephemeral {
        /// All messages of the conversation.
        messages: Vec<Arc<Message>>,
    },
}

/// The input for starting a run.
pub(crate) struct RunStartRequest {
    /// The principal that will own the run.
    pub(crate) principal: Principal,
    /// The settings of the run, such as its model and parameters.
    pub(crate) settings: RunSettings,
    /// The conversation that the run continues.
    pub(crate) conversation: ConversationInput,
    /// Tools that the client executes, or `None` if the client has no tools.
    pub(crate) client_tools: Option<Arc<dyn ToolHost>>,
    /// The JSON Schema that the answer must match. It replaces the schema of the recipe.
    pub(crate) answer_form: Option<Arc<AnswerSchema>>,
}

/// A run that was started or resumed by a request.
pub(crate) struct StartedRun {
    hub: RunHub,
    active: Arc<ActiveRun>,
    pub(crate) run: Arc<str>,
    /// The id of the session of a durable run. `None` for an ephemeral run.
    pub(crate) session: Option<SessionId>,
}

/// A guard that cancels its run when it is dropped. Cancelling a finished run has no effect.
pub(crate) struct CancelRunOnDrop(CancelHandle);

impl Drop for CancelRunOnDrop {
    fn drop(&mut self) {
        self.0.cancel_run();
    }
}

impl StartedRun {
    /// Returns a reader of all events after the run was started or resumed.
    pub(crate) fn event_reader(&self) -> EventReader {
        let last_event = self.active.record.last_event;
        self.active.event_reader(&self.hub, last_event)
    }

    pub(crate) fn cancel_guard(&self) -> CancelRunOnDrop {
        CancelRunOnDrop(self.active.cancel.clone())
    }

    /// Waits until the run ends or waits for a decision or an answer of a person. Returns its
    /// status.
    pub(crate) async fn wait_for_end_or_pause(&self) -> RunStatus {
        let mut changes = self.active.log.subscribe_changes();
        loop {
            changes.borrow_and_update();
            let status = self.active.log.run_status();
            if !matches!(status, RunStatus::Running) {
                return status;
            }
            // `self` owns the log and thus the sender of this channel, so `changed` cannot fail.
            let _ = changes.changed().await;
        }
    }
}

impl ActiveRun {
    fn event_reader(&self, hub: &RunHub, after: u64) -> EventReader {
        let mut reader = hub.new_event_reader(&self.owner, &self.record, after);
        reader.log = Some((Arc::clone(&self.log), self.log.subscribe_changes()));
        reader.session = self.is_durable.then(|| self.record.session.clone());
        reader.is_over = false;
        reader
    }

    fn id(&self) -> Arc<str> {
        self.record.id.as_str().into()
    }

    /// Returns the record of the run with its current state and last event.
    fn current_run_record(&self) -> RunRecord {
        let mut record = self.record.clone();
        record.last_event = self.log.last_seq();
        record.state = match self.log.run_status() {
            RunStatus::Finished(_) => RunState::Finished,
            RunStatus::Suspended(_) => RunState::Waiting,
            RunStatus::Interrupted => RunState::Interrupted,
            RunStatus::Running | RunStatus::AwaitingInput(_) => RunState::Running,
        };
        record
    }
}

impl RunHub {
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        sessions: Arc<dyn SessionStore>,
        runs: Arc<dyn RunStore>,
        options: ServerOptions,
    ) -> Self {
        let catalogue = Arc::clone(&engine);
        let is_known = Arc::new(move |model: &_| catalogue.is_model_available(model));
        let metrics = Metrics::default().with_known_models(is_known);
        let (session_store, run_store) = (Arc::clone(&sessions), Arc::clone(&runs));
        let durable_runs = DurableRuns::new(session_store, run_store, Principal::default());
        let shared = SharedHubState {
            engine,
            durable_runs,
            sessions,
            runs,
            limits: RunLimits::new(&options),
            options,
            active: Mutex::default(),
            session_changes: broadcast::Sender::new(SESSION_CHANGES),
            run_locks: Mutex::default(),
            metrics: Arc::new(Mutex::new(metrics)),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            abort: CancellationToken::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<dyn Engine> {
        &self.shared.engine
    }

    pub(crate) fn session_store(&self) -> &Arc<dyn SessionStore> {
        &self.shared.sessions
    }

    pub(crate) fn options(&self) -> &ServerOptions {
        &self.shared.options
    }

    pub(crate) fn durable_runs(&self, owner: &Principal) -> DurableRuns {
        self.shared.durable_runs.with_owner(owner.clone())
    }

    /// Returns a collector of the metrics of all runs, for a metrics registry.
    pub(crate) fn metrics_collector(&self) -> MetricsCollector {
        MetricsCollector(Arc::clone(&self.shared.metrics))
    }

    /// Returns the number of active runs, and the number of those that wait for a decision or an
    /// answer of a person.
    pub(crate) fn count_active_runs(&self) -> (usize, usize) {
        let active = lock_mutex(&self.shared.active);
        let waiting = active
            .values()
            .filter(|run| matches!(run.log.run_status(), RunStatus::AwaitingInput(_)));
        (active.len(), waiting.count())
    }

    pub(crate) fn shutdown_token(&self) -> CancellationToken {
        self.shared.stopping.clone()
    }

    /// Stops all runs. New runs are refused, and runs that wait for approval decisions are stored.
    /// The other runs have [`ServerOptions::run_drain_time`] to end. After that, or when `abort`
    /// completes, they are interrupted. Returns at `limit`, even if the store does not respond.
    pub(crate) async fn stop_all_runs(&self, abort: impl Future<Output = ()>, limit: Instant) {
        self.shared.stopping.cancel();
        self.end_all_approval_waits();
        self.shared.tasks.close();
        tokio::select! {
            () = self.shared.tasks.wait() => return,
            () = tokio::time::sleep(self.options().run_drain_time()) => {}
            () = abort => {}
        }
        let runs = lock_mutex(&self.shared.active).len();
        tracing::warn!(runs, "active runs are interrupted; they can be resumed");
        self.shared.abort.cancel();
        if timeout_at(limit, self.shared.tasks.wait()).await.is_err() {
            let runs = lock_mutex(&self.shared.active).len();
            tracing::error!(
                runs,
                "runs were not released in time, because the store did not respond"
            );
        }
    }

    /// Ends the waiting for approval decisions in all active runs, so that waiting runs are stored.
    fn end_all_approval_waits(&self) {
        for run in lock_mutex(&self.shared.active).values() {
            run.approvals.end_approval_wait();
        }
    }

    /// Returns the run with the id `run` if this process executes it and it belongs to `owner`.
    /// Otherwise returns `None`.
    fn find_active_run(&self, owner: &Principal, run: &str) -> Option<Arc<ActiveRun>> {
        let active = lock_mutex(&self.shared.active);
        active.get(run).filter(|it| it.owner == *owner).cloned()
    }

    /// Returns a receiver that gets the id of a session when one of its runs starts or ends, or
    /// when the session is deleted.
    fn subscribe_session_changes(&self) -> broadcast::Receiver<SessionId> {
        self.shared.session_changes.subscribe()
    }

    fn notify_session_change(&self, session: &SessionId) {
        // The error of `send` only means that no receiver exists.
        let _ = self.shared.session_changes.send(session.clone());
    }

    /// Reads the stored record of a run. Returns `None` if the run does not exist.
    async fn find_run_record(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunRecord>, Problem> {
        if !is_valid_id(run) {
            return Ok(None);
        }
        Ok(self.shared.runs.find_run(owner, run).await?)
    }
}

/// Maximum number of changes that the channel `session_changes` holds for a slow reader. A reader
/// that misses changes reads the store again.
const SESSION_CHANGES: usize = 1_024;

/// Waits until a run of the session starts or ends, or the session is deleted. Returns early if the
/// receiver missed changes.
async fn await_session_change(changes: &mut broadcast::Receiver<SessionId>, session: &SessionId) {
    while changes
        .recv()
        .await
        .is_ok_and(|changed| changed != *session)
    {}
}

/// Maximum length in bytes of a session id or run id.
const MAX_ID_LENGTH: usize = 512;

/// Returns whether a text can be a session id or run id. Other texts need no search in the store,
/// and some stores reject them.
pub(crate) fn is_valid_id(text: &str) -> bool {
    (1..=MAX_ID_LENGTH).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Locks a mutex, even if another thread panicked while it held the lock.
pub(crate) fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs an operation in its own task, so that the operation completes even if the client
/// disconnects. Otherwise, a partly resumed run could remain without a task that executes it.
pub(crate) async fn spawn_and_await<T: Send + 'static>(
    operation: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(operation)
        .await
        .map_err(|_| Problem::internal_error())?
}

//! Durable runs: every event is stored before it is published, and another process can resume a run
//! after a crash.
//!
//! [`DurableRuns`] connects an [`Agent`] with the session store and the run store.
//! [`DurableRuns::begin_run`] answers a message in a session and returns a [`PersistedRun`], a
//! stream of stored events. [`DurableRuns::acquire_run`] and [`DurableRuns::resume_run`] resume a
//! run that waits for a person or whose process ended. [`DurableRuns::abandon_run`] ends such a
//! run.
//!
//! Guarantees, whenever the process ends:
//! - Every published event is stored, and event numbers have no gaps.
//! - A tool call whose end was published does not run again. A model response whose end was
//!   published is not requested again.
//! - After `run_finished` the messages of the run are in its session.
//! - In a session, every tool use has exactly one result. A run adds its messages at its end,
//!   together; until then they are part of its state.
//! - Only events whose write was in progress are lost. None of them was published.

mod checkpoint_channel;
mod lease;
mod persisted_run;
mod resume;
mod run_parameters;

use std::sync::Arc;

use serde_json::Value;
use switchboard_domain::{
    Message, Principal, RunRecord, RunState, RunStore, Session, SessionId, SessionStore,
    SessionStoreError, StoredEvent,
};
use uuid::Uuid;

use self::lease::{LocalRunLocks, RunLease};
pub use self::{
    lease::retry_until_available,
    persisted_run::{PersistedEvent, PersistedRun, PersistedRunEnd},
    resume::LeasedRun,
    run_parameters::RunParameters,
};
pub use crate::driver::checkpoint;
use crate::{Agent, RestoreError, Run, SnapshotPosition};

/// The sessions and durable runs of one principal. Clones share the stores.
#[derive(Clone, derive_more::Debug)]
#[debug("DurableRuns {{ owner: {owner:?}, .. }}")]
pub struct DurableRuns {
    sessions: Arc<dyn SessionStore>,
    runs: Arc<dyn RunStore>,
    local_runs: LocalRunLocks,
    owner: Principal,
}

/// Error that prevents the start or the continuation of a durable run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DurableRunError {
    /// The store rejected the operation, or the operation failed in the store.
    #[error(transparent)]
    Store(#[from] SessionStoreError),
    /// The stored data of the run cannot be read. [`DurableRuns::abandon_run`] can end the run.
    #[error("run `{run}` cannot be resumed by this version; abandon it or use another version")]
    Unreadable {
        /// Id of the run.
        run: String,
        /// Reason why the stored data cannot be read.
        #[source]
        source: RestoreError,
    },
    /// The run cannot be serialized, which is a defect of this program.
    #[error("run `{run}` cannot be serialized")]
    Unwritable {
        /// Id of the run.
        run: String,
        /// Reason why the run cannot be serialized.
        #[source]
        source: serde_json::Error,
    },
}

impl DurableRuns {
    /// Connects the session store and the run store for the principal `owner`.
    ///
    /// Call this function once per process and store, because the value and its clones share the
    /// registry of leased runs. For other principals, use [`DurableRuns::with_owner`].
    pub fn new(sessions: Arc<dyn SessionStore>, runs: Arc<dyn RunStore>, owner: Principal) -> Self {
        Self {
            sessions,
            runs,
            local_runs: LocalRunLocks::default(),
            owner,
        }
    }

    /// Returns the sessions and durable runs of another principal, from the same two stores.
    #[must_use]
    pub fn with_owner(&self, owner: Principal) -> Self {
        Self {
            owner,
            ..self.clone()
        }
    }

    /// Starts a run in a session. The run answers `messages`, usually one message of the user,
    /// which follow the earlier messages of the session. The session contains `messages` when this
    /// function returns.
    ///
    /// The agent provides models, tools, options and instructions. Its checkpoints, principal and
    /// session are ignored. Instructions and examples do not become part of the session.
    ///
    /// A process that resumes the run can create its agent from the `parameters`
    /// ([`RunRecord::parameters`]).
    ///
    /// Returns [`SessionStoreError::Busy`] while the session has an unfinished run, and
    /// [`SessionStoreError::TooLarge`] for parameters with more than [`MAX_RUN_PARAMETERS_BYTES`]
    /// of JSON.
    ///
    /// [`MAX_RUN_PARAMETERS_BYTES`]: switchboard_domain::MAX_RUN_PARAMETERS_BYTES
    pub async fn begin_run(
        &self,
        agent: &Agent,
        session: &SessionId,
        messages: Vec<Arc<Message>>,
        parameters: Option<Value>,
    ) -> Result<PersistedRun, DurableRunError> {
        self.begin_run_in_session(agent, session, None, messages, parameters)
            .await
    }

    /// Creates a session and starts a run in it, in one transaction.
    ///
    /// Returns [`SessionStoreError::Exists`] if the session id is in use.
    pub async fn begin_run_in_new_session(
        &self,
        agent: &Agent,
        session: &Session,
        messages: Vec<Arc<Message>>,
        parameters: Option<Value>,
    ) -> Result<PersistedRun, DurableRunError> {
        let new = messages.clone();
        let (run, record) = self.prepare_run(agent, &session.id, messages, parameters);
        let lease = self.new_lease(&record.id, count_messages(new.len()));
        let begun = self
            .runs
            .begin_run_in_new_session(&self.owner, session, &record, &new)
            .await;
        execute_recorded_run(agent, run, begun, lease).await
    }

    /// Starts a run after the first `keep` messages of a session and removes the later messages
    /// from the session.
    ///
    /// The runs that wrote the removed messages stay in the store, with their events. Returns
    /// [`SessionStoreError::Conflict`] if the session has fewer messages.
    pub async fn begin_run_after_truncation(
        &self,
        agent: &Agent,
        session: &SessionId,
        keep: u64,
        messages: Vec<Arc<Message>>,
        parameters: Option<Value>,
    ) -> Result<PersistedRun, DurableRunError> {
        self.begin_run_in_session(agent, session, Some(keep), messages, parameters)
            .await
    }

    async fn begin_run_in_session(
        &self,
        agent: &Agent,
        session: &SessionId,
        keep: Option<u64>,
        messages: Vec<Arc<Message>>,
        parameters: Option<Value>,
    ) -> Result<PersistedRun, DurableRunError> {
        let before = self.sessions.load_messages(&self.owner, session, 0).await?;
        let (before_count, new) = (count_messages(before.len()), messages.clone());
        let keep = keep.unwrap_or(before_count);
        let kept_count = usize::try_from(keep).unwrap_or(usize::MAX);
        let earlier = before.into_iter().take(kept_count);
        let conversation = earlier.chain(messages).collect();
        let (run, record) = self.prepare_run(agent, session, conversation, parameters);
        // The lease is created before the write. If this future is dropped during the write, the
        // run may exist and must be released.
        let lease = self.new_lease(&record.id, keep.saturating_add(count_messages(new.len())));
        let (runs, owner) = (&self.runs, &self.owner);
        let begun = if keep == before_count {
            runs.begin_run(owner, &record, before_count, &new).await
        } else {
            runs.begin_run_after_truncation(owner, &record, keep, before_count, &new)
                .await
        };
        execute_recorded_run(agent, run, begun, lease).await
    }

    /// Creates a run with a new id, and the record under which the store stores the run.
    fn prepare_run(
        &self,
        agent: &Agent,
        session: &SessionId,
        conversation: Vec<Arc<Message>>,
        parameters: Option<Value>,
    ) -> (Box<Run>, RunRecord) {
        let id = Uuid::now_v7().to_string();
        let (owner, session_id) = (self.owner.clone(), Some(session.0.clone()));
        let run = Box::new(agent.create_run(id.clone(), conversation, owner, session_id));
        let now = agent.current_time().to_string();
        let record = RunRecord {
            id,
            session: session.clone(),
            state: RunState::Running,
            model: run.model_id().to_string(),
            created_at: now.clone(),
            updated_at: now,
            events_before: 0,
            last_event: 0,
            outcome: None,
            parameters,
        };
        (run, record)
    }

    /// Returns at most `limit` stored events of a run, in order, with sequence numbers above
    /// `after`.
    pub async fn read_event_page(
        &self,
        run: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, DurableRunError> {
        let page = self.runs.load_events(&self.owner, run, after, limit);
        Ok(page.await?)
    }

    fn new_lease(&self, run: &str, after: u64) -> RunLease {
        RunLease::new(
            Arc::clone(&self.runs),
            &self.local_runs,
            run.to_owned(),
            after,
        )
    }
}

/// Executes a new run if the store has recorded its start. Otherwise, releases or drops the lease
/// and returns the store's error.
async fn execute_recorded_run(
    agent: &Agent,
    run: Box<Run>,
    begun: Result<RunRecord, SessionStoreError>,
    lease: RunLease,
) -> Result<PersistedRun, DurableRunError> {
    let record = match begun {
        Ok(record) => record,
        Err(error @ SessionStoreError::Storage { .. }) => {
            // The run may be recorded despite the error. It is released, because no task drives it.
            lease.release_run().await;
            return Err(error.into());
        }
        Err(error) => {
            lease.drop_without_release();
            return Err(error.into());
        }
    };
    let mark = SnapshotPosition::default();
    Ok(PersistedRun::drive_leased_run(
        agent, record, *run, mark, false, lease,
    ))
}

fn no_such_run_error(run: &str) -> SessionStoreError {
    SessionStoreError::NoSuchRun {
        run: run.to_owned(),
    }
}

fn count_messages(messages: usize) -> u64 {
    u64::try_from(messages).unwrap_or(u64::MAX)
}

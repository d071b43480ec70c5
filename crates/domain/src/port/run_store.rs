#![cfg_attr(
    feature = "mock",
    allow(
        clippy::ref_option_ref,
        reason = "mockall generates references to optional references"
    )
)]

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Principal, Session, SessionId, SessionStoreError};
use crate::Message;

/// The state of a stored run, which decides whether a process may continue it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A process executes the run.
    Running,
    /// The run waits for an approval decision. Any process may continue it.
    Waiting,
    /// The process ended before the run did. Any process may continue the run.
    Interrupted,
    /// The run is finished. Its last event contains its report.
    Finished,
}

/// The stored metadata of a run, without its events and messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The id of the run, unique within a store. Ids sort by creation time.
    pub id: String,
    /// The session that the run belongs to.
    pub session: SessionId,
    /// The state of the run.
    pub state: RunState,
    /// The model that the run began with, as `PROVIDER/MODEL`.
    pub model: String,
    /// Time at which the run began (RFC 3339, UTC).
    pub created_at: String,
    /// Time at which the run was last written (RFC 3339, UTC).
    pub updated_at: String,
    /// The number of events of all earlier runs of the session. The event with the number `seq` in
    /// this run has the number `events_before + seq` in the session. [`RunStore::begin_run`] sets
    /// this field.
    #[serde(default)]
    pub events_before: u64,
    /// Number of the run's last event. It is 0 before the first event.
    pub last_event: u64,
    /// The outcome of a finished run: `completed`, `limited` (a limit ended it), `failed` or
    /// `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The parameters of the run, for the process that continues it. [`RunStore::begin_run`] stores
    /// them, and later operations do not change them. The store does not interpret them.
    ///
    /// Maximum size: [`MAX_RUN_PARAMETERS_BYTES`], and a nesting of
    /// [`MAX_JSON_DEPTH`](crate::MAX_JSON_DEPTH) levels. `null` is stored as `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
}

/// Maximum size of [`RunRecord::parameters`] as JSON, in bytes. The size is limited, because lists
/// of runs contain the parameters of every run.
pub const MAX_RUN_PARAMETERS_BYTES: usize = 64 << 10;

/// One event of a run. The store does not interpret it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Number of the event within the run: 1, 2, 3, … without gaps.
    pub seq: u64,
    /// The event as one JSON object.
    pub json: Arc<str>,
}

/// A checkpoint of a run: its state and its conversation. The conversation is separate from the
/// state, so that a checkpoint stores only the messages that have changed.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSnapshot {
    /// The state of the run without its conversation, as one JSON object.
    pub state: Arc<str>,
    /// The position of the first of `messages` in the run's conversation, counted from 0. Stored
    /// messages at this and later positions are replaced by `messages`.
    pub from: u64,
    /// The messages of the run's conversation from the position `from` on.
    pub messages: Vec<Arc<Message>>,
}

/// Stores runs and their events, so that a run survives the end of its process and its events can
/// be replayed. Only the principal that owns a run can read or acquire it.
///
/// Every write is durable when its method returns.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait RunStore: Send + Sync {
    /// Stores a new run in [`RunState::Running`] and returns its record. This process then has the
    /// exclusive right to execute the run.
    ///
    /// The same transaction appends `messages` to the run's session. The store sets the record's
    /// state, update time, event numbers and outcome.
    ///
    /// Fails with [`SessionStoreError::Conflict`] if the session does not have exactly `after`
    /// messages, with [`SessionStoreError::Busy`] if another run of the session is unfinished, with
    /// [`SessionStoreError::RunConflict`] if the run's id exists, and with
    /// [`SessionStoreError::TooLarge`] if the run's parameters are too large.
    async fn begin_run(
        &self,
        owner: &Principal,
        run: &RunRecord,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<RunRecord, SessionStoreError> {
        // All `after` messages of the session are kept, so no message is removed.
        self.begin_run_after_truncation(owner, run, after, after, messages)
            .await
    }

    /// Creates a session and begins its first run in one transaction: see
    /// [`SessionStore::create_session`](super::SessionStore::create_session) and
    /// [`RunStore::begin_run`].
    ///
    /// Fails with [`SessionStoreError::Exists`] if any principal has a session with this id.
    async fn begin_run_in_new_session(
        &self,
        owner: &Principal,
        session: &Session,
        run: &RunRecord,
        messages: &[Arc<Message>],
    ) -> Result<RunRecord, SessionStoreError>;

    /// Begins a run that answers an earlier user message again. Works like [`RunStore::begin_run`],
    /// but first removes all messages of the session except the first `keep`, in the same
    /// transaction.
    ///
    /// The runs that wrote the removed messages stay, with their events. Also fails with
    /// [`SessionStoreError::Conflict`] if `keep` is more than the number of messages.
    async fn begin_run_after_truncation(
        &self,
        owner: &Principal,
        run: &RunRecord,
        keep: u64,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<RunRecord, SessionStoreError>;

    /// Acquires the exclusive right to execute a waiting or interrupted run, sets it to
    /// [`RunState::Running`] and returns its record.
    ///
    /// Two processes never execute the same run. Fails with [`SessionStoreError::Busy`] if a
    /// running process, including this one, has acquired the run, and with
    /// [`SessionStoreError::RunConflict`] if the run is finished.
    async fn acquire_run(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<RunRecord, SessionStoreError>;

    /// Appends events to a run that this process executes. If their numbers do not directly follow
    /// those of the stored events, writes nothing and fails with
    /// [`SessionStoreError::RunConflict`].
    async fn append_events(
        &self,
        run: &str,
        events: &[StoredEvent],
    ) -> Result<(), SessionStoreError>;

    /// Returns the events of a run with numbers above `after`, in order, at most `limit`.
    async fn load_events(
        &self,
        owner: &Principal,
        run: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, SessionStoreError>;

    /// Appends `events` to a run that this process executes, and stores a checkpoint of the run in
    /// the same transaction. `events` may be empty.
    async fn save_snapshot_with_events(
        &self,
        run: &str,
        events: &[StoredEvent],
        snapshot: &RunSnapshot,
    ) -> Result<(), SessionStoreError>;

    /// Stores a checkpoint of a run that this process executes, without new events.
    async fn save_snapshot(
        &self,
        run: &str,
        snapshot: &RunSnapshot,
    ) -> Result<(), SessionStoreError> {
        self.save_snapshot_with_events(run, &[], snapshot).await
    }

    /// Returns the last checkpoint with the whole conversation (`from` is 0), if there is one.
    ///
    /// Fails with [`SessionStoreError::Unreadable`] if this version of the program cannot read one
    /// of the messages.
    async fn load_snapshot(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunSnapshot>, SessionStoreError>;

    /// Releases a run that this process executes, and stores its new state: [`RunState::Waiting`]
    /// if the run waits for a decision, [`RunState::Interrupted`] if the process ends before the
    /// run, or [`RunState::Finished`] together with an `outcome`.
    ///
    /// A finished run keeps its events, and its checkpoint is deleted. The same transaction appends
    /// `events` to the run and `messages` to its session. Both may be empty. Fails with
    /// [`SessionStoreError::Conflict`] if the session does not have exactly `after` messages.
    async fn release_run_with_events(
        &self,
        run: &str,
        events: &[StoredEvent],
        state: RunState,
        outcome: Option<String>,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<(), SessionStoreError>;

    /// Releases a run without new events; see [`RunStore::release_run_with_events`].
    async fn release_run(
        &self,
        run: &str,
        state: RunState,
        outcome: Option<String>,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<(), SessionStoreError> {
        self.release_run_with_events(run, &[], state, outcome, after, messages)
            .await
    }

    /// Returns a run, or `None` if this principal has no run with this id. If the process that
    /// executed the run ended without releasing it, the state is [`RunState::Interrupted`].
    async fn find_run(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunRecord>, SessionStoreError>;

    /// Returns the runs of a session, or of all sessions, newest first, at most `limit`.
    #[allow(
        clippy::needless_lifetimes,
        reason = "mockall requires a named lifetime"
    )]
    async fn list_runs<'s>(
        &self,
        owner: &Principal,
        session: Option<&'s SessionId>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, SessionStoreError>;
}

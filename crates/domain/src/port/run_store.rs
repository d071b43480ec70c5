#![cfg_attr(
    feature = "mock",
    allow(
        clippy::ref_option_ref,
        reason = "mockall makes one of an optional reference"
    )
)]

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Principal, Session, SessionId, SessionStoreError};
use crate::Message;

/// How a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A process is at work on it.
    Running,
    /// It waits for somebody's word; any process may go on with it.
    Waiting,
    /// Its process ended before it did. Any process may go on with it.
    Interrupted,
    /// It is over, and its report is its last event.
    Finished,
}

/// A run, as a store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its id, unique within a store. Ids sort by time.
    pub id: String,
    /// The session it belongs to.
    pub session: SessionId,
    /// How it stands.
    pub state: RunState,
    /// The model it began with, as `PROVIDER/MODEL`.
    pub model: String,
    /// When it began, RFC 3339 in UTC.
    pub created_at: String,
    /// When the store last heard of it, RFC 3339 in UTC.
    pub updated_at: String,
    /// How many events the earlier runs of its session have. Runs of a session come one after the other, so
    /// an event has the number `events_before + seq` in its session. Set by [`RunStore::begin`].
    #[serde(default)]
    pub events_before: u64,
    /// The number of its last event; 0 before the first.
    pub last_event: u64,
    /// How it ended, in the words of its report: `completed`, `limited`, `failed` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// What it was begun with, for whoever goes on with it in another process: the writer's matter, and nothing
    /// to the store. At most [`MOST_WISH_BYTES`], and
    /// [`MAX_JSON_DEPTH`](crate::MAX_JSON_DEPTH) levels; `null` counts as none. Kept by
    /// [`RunStore::begin`], and never changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wish: Option<Value>,
}

/// The most that a [wish](RunRecord::wish) may be, in bytes of JSON: it comes with every record in a list.
pub const MOST_WISH_BYTES: usize = 64 << 10;

/// One event of a run. What is in it is the writer's matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its number within the run: 1, 2, 3, … without gaps.
    pub seq: u64,
    /// The event, one JSON object.
    pub json: Arc<str>,
}

/// What a run needs to go on in another process: its state, and its conversation apart from it, so that a
/// step does not write the conversation again.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSnapshot {
    /// The state without the conversation, one JSON object.
    pub state: Arc<str>,
    /// The first of `messages` has this position in the run's conversation; what the store has from there on
    /// is replaced.
    pub from: u64,
    /// The conversation from that position on.
    pub messages: Vec<Arc<Message>>,
}

/// One entry of the audit: what was done on somebody's behalf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// When, RFC 3339 in UTC.
    pub time: String,
    /// The run, if it was in one.
    pub run: Option<String>,
    /// The entry, one JSON object.
    pub json: Arc<str>,
}

/// Keeps runs, so that a run survives the end of its process, and everything that was shown of it can be shown
/// again. Everything is seen by its own principal only; to anyone else it does not exist.
///
/// What a method was given is durable when it returns.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait RunStore: Send + Sync {
    /// Begins a run, which belongs to this process from now on, in [`RunState::Running`], and gives it as it is
    /// stored. In the same transaction, `messages` go to the end of its session, which must hold `after` of them.
    /// Fails with [`SessionStoreError::Busy`] if another run of its session is not finished, and with
    /// [`SessionStoreError::RunConflict`] if its id is taken, and with [`SessionStoreError::TooLarge`] if its wish
    /// is. Of `run`, what identifies it and its wish count: state, times of change, numbers of events and outcome
    /// are set by the store.
    async fn begin(
        &self,
        owner: &Principal,
        run: &RunRecord,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<RunRecord, SessionStoreError>;

    /// Makes a session and begins its first run, both or neither: as [`SessionStore::create`](super::SessionStore::create)
    /// and then [`RunStore::begin`] in one transaction. Fails with [`SessionStoreError::Exists`] if there is such a
    /// session, whosever it is, and with what the two fail with otherwise. The run's session is this one.
    async fn begin_session(
        &self,
        owner: &Principal,
        session: &Session,
        run: &RunRecord,
        messages: &[Arc<Message>],
    ) -> Result<RunRecord, SessionStoreError>;

    /// Begins a run that answers anew: as [`RunStore::begin`], but of the `after` messages that its session must hold
    /// only the first `keep` stay. Those behind them are removed in the same transaction, before `messages` go to its
    /// end; the runs that wrote them stay, with their events. Fails with [`SessionStoreError::Conflict`] also if `keep`
    /// is more than there is.
    async fn begin_again(
        &self,
        owner: &Principal,
        run: &RunRecord,
        keep: u64,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<RunRecord, SessionStoreError>;

    /// Takes up a run that waits or was interrupted: it belongs to this process from now on, in
    /// [`RunState::Running`]. Fails with [`SessionStoreError::Busy`] if a process that is alive is at work on
    /// it, this one included, and with [`SessionStoreError::RunConflict`] if the run is over. Two processes never
    /// have the same run.
    async fn take(&self, owner: &Principal, run: &str) -> Result<RunRecord, SessionStoreError>;

    /// Appends events; they follow those that are there without a gap, or nothing is written.
    async fn append_events(
        &self,
        run: &str,
        events: &[StoredEvent],
    ) -> Result<(), SessionStoreError>;

    /// The events of a run with numbers above `after`, in order, at most `limit` of them.
    async fn events(
        &self,
        owner: &Principal,
        run: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, SessionStoreError>;

    /// Stores the state of a run that this process has. In the same transaction, `events` are appended before it, as by
    /// [`RunStore::append_events`]; there may be none.
    async fn save_with(
        &self,
        run: &str,
        events: &[StoredEvent],
        snapshot: &RunSnapshot,
    ) -> Result<(), SessionStoreError>;

    /// The same without events.
    async fn save(&self, run: &str, snapshot: &RunSnapshot) -> Result<(), SessionStoreError> {
        self.save_with(run, &[], snapshot).await
    }

    /// What was saved last, with the whole conversation (`from` is 0); `None` if nothing was. Fails with
    /// [`SessionStoreError::Unreadable`] if one of its messages is none to this version.
    async fn snapshot(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunSnapshot>, SessionStoreError>;

    /// Lets go of a run that waits for somebody ([`RunState::Waiting`]), gives it up without ending it
    /// ([`RunState::Interrupted`], such as at the end of the process), or marks it as over
    /// ([`RunState::Finished`]), with how it ended. A run that is over keeps its events and loses its state.
    /// In the same transaction, `events` are appended before it, as by [`RunStore::append_events`], and `messages` go to
    /// the end of its session, which must hold `after` messages; there may be none of either.
    async fn release_with(
        &self,
        run: &str,
        events: &[StoredEvent],
        state: RunState,
        outcome: Option<String>,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<(), SessionStoreError>;

    /// The same without events.
    async fn release(
        &self,
        run: &str,
        state: RunState,
        outcome: Option<String>,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<(), SessionStoreError> {
        self.release_with(run, &[], state, outcome, after, messages)
            .await
    }

    /// Looks a run up. One whose process is gone is [`RunState::Interrupted`].
    async fn run(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunRecord>, SessionStoreError>;

    /// The runs of a session, or of all, newest first, at most `limit` of them.
    #[allow(clippy::needless_lifetimes, reason = "mockall wants it named")]
    async fn runs<'s>(
        &self,
        owner: &Principal,
        session: Option<&'s SessionId>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, SessionStoreError>;

    /// Appends to the audit, which nothing changes or removes but retention.
    async fn audit(
        &self,
        owner: &Principal,
        entries: &[AuditEntry],
    ) -> Result<(), SessionStoreError>;
}

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::Message;

/// The tenant and user that an action belongs to. Sessions, approvals, caches and budgets are
/// separate for each principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Principal {
    /// The organisation of the user; empty if there is only one.
    #[serde(default)]
    pub tenant: String,
    /// The user within the organisation; empty if there is only one.
    #[serde(default)]
    pub user: String,
}

/// The id of a session, unique within a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub String);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A secret key for deriving session ids from names that clients choose. Without the key, nobody
/// can compute the id from the name. `Debug` does not print the key.
#[derive(Clone, PartialEq, Eq)]
pub struct IdKey(String);

impl IdKey {
    /// Returns a key with this text, which must be random.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// Returns the bytes of the secret key.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for IdKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdKey([secret])")
    }
}

/// The stored metadata of a conversation, without its messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The id of the session.
    pub id: SessionId,
    /// The title that lists of sessions show.
    #[serde(default)]
    pub title: String,
    /// Time at which the session began (RFC 3339, UTC).
    pub created_at: String,
    /// The number of messages in the session.
    pub messages: u64,
}

/// Stores conversations (sessions). Only the owner of a session, which is a principal (tenant and
/// user), can access it. For other principals, the session does not exist.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Creates a session. Fails with [`SessionStoreError::Exists`] if any principal has a session
    /// with this id.
    async fn create_session(
        &self,
        owner: &Principal,
        session: &Session,
    ) -> Result<(), SessionStoreError>;

    /// Returns a session, or `None` if this principal has no such session.
    async fn find_session(
        &self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<Option<Session>, SessionStoreError>;

    /// Returns the newest sessions of a principal, newest first, at most `limit`.
    async fn list_sessions(
        &self,
        owner: &Principal,
        limit: u32,
    ) -> Result<Vec<Session>, SessionStoreError>;

    /// Returns the messages of a session from position `from` on, counted from 0, oldest first.
    async fn load_messages(
        &self,
        owner: &Principal,
        id: &SessionId,
        from: u64,
    ) -> Result<Vec<Arc<Message>>, SessionStoreError>;

    /// Appends messages to a session that has exactly `after` messages, and returns the new number
    /// of messages.
    ///
    /// The messages are durable when this method returns. Fails with
    /// [`SessionStoreError::Conflict`] and writes nothing if the session has another number of
    /// messages, for example because another writer was faster. Fails with
    /// [`SessionStoreError::Busy`] while a run of the session is unfinished, because only that run
    /// may add messages.
    async fn append_messages(
        &self,
        owner: &Principal,
        id: &SessionId,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<u64, SessionStoreError>;

    /// Changes the title of a session. Fails with [`SessionStoreError::NotFound`] if the session
    /// does not exist.
    async fn rename_session(
        &self,
        owner: &Principal,
        id: &SessionId,
        title: &str,
    ) -> Result<(), SessionStoreError>;

    /// Deletes a session with its messages, runs and events. A missing session is not an error.
    /// Fails with [`SessionStoreError::Busy`] while a process executes a run of the session.
    async fn delete_session(
        &self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<(), SessionStoreError>;

    /// Returns the secret key from which session ids are derived. The key is random. The store
    /// creates it at the first call and returns it to all processes that share the store.
    async fn load_session_id_key(&self) -> Result<IdKey, SessionStoreError>;

    /// Checks that the store can be read and written. The default implementation only reads.
    async fn check_store_access(&self) -> Result<(), SessionStoreError> {
        self.list_sessions(&Principal::default(), 1).await.map(drop)
    }
}

/// A reason why an operation of a store failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message explains the fields")]
#[non_exhaustive]
pub enum SessionStoreError {
    /// The principal has no session with this id.
    #[error("session `{id}` does not exist")]
    NotFound { id: SessionId },
    /// The session cannot be created, because its id exists already.
    #[error("session `{id}` already exists")]
    Exists { id: SessionId },
    /// The session has another number of messages than the writer expected.
    #[error(
        "session `{id}` was changed concurrently: it has {actual} messages instead of {expected}"
    )]
    Conflict {
        id: SessionId,
        /// The number of messages that the writer expected.
        expected: u64,
        actual: u64,
    },
    /// The operation is refused, because the run `run` of the session is not finished. A session is
    /// not deleted while a process executes one of its runs.
    #[error("run `{run}` of session `{session}` has not finished")]
    Busy { session: SessionId, run: String },
    /// The principal has no run with this id.
    #[error("run `{run}` does not exist")]
    NoSuchRun { run: String },
    /// The operation does not match the stored run. For example, the id of a new run already
    /// exists, the run is finished, the numbers of new events do not follow the stored ones, or
    /// this process does not execute the run.
    #[error("run `{run}` was changed concurrently: {reason}")]
    RunConflict { run: String, reason: String },
    /// A stored item is too large, for example a message. `what` names the item. `actual` is its
    /// size and `most` is the maximum, both in `unit`.
    #[error("{what} has {actual} {unit}; the maximum is {most}")]
    TooLarge {
        what: &'static str,
        actual: u64,
        most: u64,
        unit: &'static str,
    },
    /// This version of the program cannot read the stored data. A retry does not help.
    #[error("the session store failed to {operation}: this version cannot read the stored data")]
    Unreadable {
        operation: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The storage is locked by another writer, or cannot be reached. Nothing was changed, and the
    /// same operation may succeed a few seconds later.
    #[error("the session store is busy or unreachable and failed to {operation}: try again")]
    Unavailable {
        operation: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The storage failed for another reason.
    #[error("the session store failed to {operation}")]
    Storage {
        operation: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

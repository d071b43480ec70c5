use std::{fmt, sync::Arc};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::Message;

/// On whose behalf something happens. Sessions, approvals, caches and budgets are kept apart by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Principal {
    /// The organisation; empty where there is only one.
    #[serde(default)]
    pub tenant: String,
    /// The person; empty where there is only one.
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

/// The secret key with which a store derives session ids from names that clients choose. Its `Debug`
/// shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct IdKey(String);

impl IdKey {
    /// A key of this text, which must be random.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// Returns the secret bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for IdKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdKey([secret])")
    }
}

/// A conversation that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// What it is about, for a list.
    #[serde(default)]
    pub title: String,
    /// When it began, RFC 3339 in UTC.
    pub created_at: String,
    /// How many messages it holds.
    pub messages: u64,
}

/// Keeps conversations. Everything is seen by its own principal only; to anyone else it does not
/// exist.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Begins a session. Fails with [`SessionStoreError::Exists`] if the id is taken.
    async fn create(&self, owner: &Principal, session: &Session) -> Result<(), SessionStoreError>;

    /// Looks a session up.
    async fn get(
        &self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<Option<Session>, SessionStoreError>;

    /// The sessions of a principal, newest first, at most `limit` of them.
    async fn list(&self, owner: &Principal, limit: u32) -> Result<Vec<Session>, SessionStoreError>;

    /// The messages of a session from position `from` on, oldest first.
    async fn messages(
        &self,
        owner: &Principal,
        id: &SessionId,
        from: u64,
    ) -> Result<Vec<Arc<Message>>, SessionStoreError>;

    /// Appends messages behind the first `after` ones and returns how many there are now. Durable
    /// when it returns. Two writers cannot interleave: if the session no longer holds `after`
    /// messages, nothing is written and the error is [`SessionStoreError::Conflict`]. A run that is
    /// not over is the writer of its session: meanwhile the error is [`SessionStoreError::Busy`].
    async fn append(
        &self,
        owner: &Principal,
        id: &SessionId,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<u64, SessionStoreError>;

    /// Gives a session another title. Fails with [`SessionStoreError::NotFound`] if there is none.
    async fn rename(
        &self,
        owner: &Principal,
        id: &SessionId,
        title: &str,
    ) -> Result<(), SessionStoreError>;

    /// Forgets a session with its messages, runs and events. Forgetting one that does not exist is
    /// not an error. Fails with [`SessionStoreError::Busy`] while a process is at work on a run of
    /// it; a run that waits or was interrupted is forgotten with it.
    async fn delete(&self, owner: &Principal, id: &SessionId) -> Result<(), SessionStoreError>;

    /// Returns the key of this store for ids. It is random, made once, and the same for each process
    /// that shares the store.
    async fn id_key(&self) -> Result<IdKey, SessionStoreError>;

    /// Checks that the store can be read and written. A store that can be written does a small
    /// write here. The default only reads.
    async fn ping(&self) -> Result<(), SessionStoreError> {
        self.list(&Principal::default(), 1).await.map(drop)
    }
}

/// Why a store did not do as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionStoreError {
    /// No such session for this principal.
    #[error("session `{id}` does not exist")]
    NotFound {
        /// The id.
        id: SessionId,
    },
    /// The id is taken.
    #[error("session `{id}` exists already")]
    Exists {
        /// The id.
        id: SessionId,
    },
    /// Somebody else appended in the meantime.
    #[error("session `{id}` holds {actual} messages, not {expected}: it was changed meanwhile")]
    Conflict {
        /// The id.
        id: SessionId,
        /// What the writer thought.
        expected: u64,
        /// What there is.
        actual: u64,
    },
    /// The session has a run that is not over.
    #[error("run `{run}` of session `{session}` is not over")]
    Busy {
        /// The session.
        session: SessionId,
        /// The run.
        run: String,
    },
    /// No such run for this principal.
    #[error("run `{run}` does not exist")]
    NoSuchRun {
        /// Its id.
        run: String,
    },
    /// What was given does not follow what is there: somebody else wrote, or the run is not this process's.
    #[error("run `{run}` was changed meanwhile: {reason}")]
    RunConflict {
        /// Its id.
        run: String,
        /// What does not fit.
        reason: String,
    },
    /// Something is more than a store keeps.
    #[error("{what} has {actual} {unit}, and {most} are kept at most")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How large it is.
        actual: u64,
        /// How large it may be.
        most: u64,
        /// Of what.
        unit: &'static str,
    },
    /// What is stored is not what this version can read; it is no use to try again.
    #[error("the session store failed to {operation}: this version cannot read what is stored")]
    Unreadable {
        /// What was being done.
        operation: &'static str,
        /// Why it cannot.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The storage is locked by another writer, or cannot be reached. Nothing was changed, and the
    /// same operation may succeed a few seconds later.
    #[error("the session store is busy or cannot be reached, and did not {operation}: try again")]
    Unavailable {
        /// The operation.
        operation: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The storage itself failed.
    #[error("the session store failed to {operation}")]
    Storage {
        /// What was being done.
        operation: &'static str,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

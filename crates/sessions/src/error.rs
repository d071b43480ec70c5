//! What can go wrong beside what the ports say.

use std::{io, path::PathBuf, sync::Arc};

use switchboard_domain::{SessionId, SessionStoreError};

use crate::database::{connection_lost, is_locked, may_pass};

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file or folder cannot be made or opened.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The address of the server is none. It is not shown, since it may hold a password.
    #[error(
        "the address of the PostgreSQL server is not one: it should be like postgres://user@host/database"
    )]
    Address,
    /// A newer program wrote this database.
    #[error(
        "the session store has the form {found}, and this program knows up to {known}: a newer version of \
         Switchboard wrote it. Use that version, or another place for the sessions"
    )]
    Newer {
        /// The version found.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// There is something else in the place of a store, or it cannot be reached.
    #[error("the session store cannot be opened: {source}")]
    Database {
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Why something cannot be imported. Nothing of it is imported then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It is no export.
    #[error("this is no export of sessions: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
    /// A newer program wrote it.
    #[error("this export has the version {found}, and this program knows up to {known}")]
    Newer {
        /// Its version.
        found: u32,
        /// The newest version that this program knows.
        known: u32,
    },
    /// A session is there already.
    #[error("session `{id}` exists already; it can be imported under a new id")]
    Exists {
        /// Its id.
        id: SessionId,
    },
    /// A run is there already.
    #[error("run `{run}` exists already; its session can be imported under new ids")]
    RunExists {
        /// Its id.
        run: String,
    },
    /// What is to be imported cannot be read.
    #[error("the export cannot be read: {source}")]
    Read {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] SessionStoreError),
}

impl ImportError {
    pub(crate) fn malformed(reason: impl Into<String>) -> Self {
        Self::Malformed {
            reason: reason.into(),
        }
    }
}

/// Why an operation was not done.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It must not be.
    Refused(SessionStoreError),
    /// The database did not do it.
    Failed(sqlx::Error),
}

impl From<sqlx::Error> for Refusal {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<SessionStoreError> for Refusal {
    fn from(error: SessionStoreError) -> Self {
        Self::Refused(error)
    }
}

/// One failure of the storage that many wait for.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}")]
pub(crate) struct Shared {
    pub(crate) error: Arc<sqlx::Error>,
    /// Nothing was done, and the same operation may succeed later.
    pub(crate) may_pass: bool,
}

impl Shared {
    /// A failure of the operation `operation`.
    pub(crate) fn of(self, operation: &'static str) -> SessionStoreError {
        if self.may_pass {
            let source = self.into();
            return SessionStoreError::Unavailable { operation, source };
        }
        storage(operation, self)
    }
}

/// What is stored is not what was written.
#[derive(Debug, thiserror::Error)]
#[error("what is stored cannot be read: {0}")]
pub(crate) struct Corrupt(pub(crate) String);

/// Nobody writes any more.
#[derive(Debug, thiserror::Error)]
#[error("the store is closed")]
pub(crate) struct Closed;

/// A failure of reading: what cannot be understood is told apart from what cannot be had.
pub(crate) fn unread(operation: &'static str, error: sqlx::Error) -> SessionStoreError {
    match error {
        sqlx::Error::Decode(source) => SessionStoreError::Unreadable { operation, source },
        error @ sqlx::Error::ColumnDecode { .. } => SessionStoreError::Unreadable {
            operation,
            source: error.into(),
        },
        error if read_may_pass(&error) => SessionStoreError::Unavailable {
            operation,
            source: error.into(),
        },
        error => storage(operation, error),
    }
}

/// Returns whether the same read may succeed later. A closed store stays closed.
fn read_may_pass(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::PoolTimedOut => true,
        sqlx::Error::PoolClosed => false,
        error => is_locked(error) || connection_lost(error) || may_pass(error),
    }
}

pub(crate) fn storage(
    operation: &'static str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> SessionStoreError {
    SessionStoreError::Storage {
        operation,
        source: source.into(),
    }
}

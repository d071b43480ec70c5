use std::error::Error;

use switchboard_domain::SessionStoreError;

/// An error of the database driver or of the stored data.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub(crate) struct DatabaseError {
    pub(crate) kind: FailureKind,
    cause: Box<dyn Error + Send + Sync>,
}

/// The kind of a database failure, which decides whether a write is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The connection is lost or timed out, or the lock file of a SQLite store cannot be used. A
    /// retry with a new connection may succeed.
    ConnectionLost,
    /// No connection is free, the server is out of memory or another resource, or the server
    /// refuses writes at present. The statement was not executed.
    Overloaded,
    /// Another writer held a lock for longer than this write may wait.
    Locked,
    /// Two transactions conflicted. The same transaction may succeed when it is repeated.
    Conflict,
    /// The stored data is invalid or not in the format that this program writes.
    Unreadable,
    /// The failure has another cause, such as a full disk or a closed store.
    Other,
}

impl DatabaseError {
    pub(crate) fn new(kind: FailureKind, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let cause = cause.into();
        Self { kind, cause }
    }

    pub(crate) fn unreadable_data(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(FailureKind::Unreadable, cause)
    }

    pub(crate) fn other_failure(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(FailureKind::Other, cause)
    }

    pub(crate) fn timed_out() -> Self {
        let cause = "the database did not answer in time";
        Self::new(FailureKind::ConnectionLost, cause)
    }

    /// Converts the failure of a read to the error that callers of the store receive: `Unavailable`
    /// if a later attempt may succeed, otherwise `Unreadable` or `Storage`. `operation` completes
    /// "failed to …" in its message.
    pub(crate) fn into_store_error(self, operation: &'static str) -> SessionStoreError {
        let kind = self.kind;
        let source = self.into();
        match kind {
            FailureKind::Unreadable => SessionStoreError::Unreadable { operation, source },
            FailureKind::ConnectionLost | FailureKind::Overloaded | FailureKind::Locked => {
                SessionStoreError::Unavailable { operation, source }
            }
            FailureKind::Conflict | FailureKind::Other => {
                SessionStoreError::Storage { operation, source }
            }
        }
    }
}

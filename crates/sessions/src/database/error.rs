use std::error::Error;

use switchboard_domain::SessionStoreError;

/// A failure of the database.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub(crate) struct DatabaseError {
    pub(crate) kind: FailureKind,
    cause: Box<dyn Error + Send + Sync>,
}

/// The consequence of a failure for retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The connection is lost. A new one may work.
    ConnectionLost,
    /// The server has no connection or memory left, or does not accept writes now. It did not begin
    /// the work.
    Overloaded,
    /// Another writer kept a lock for too long.
    Locked,
    /// Two transactions conflicted. The same transaction may succeed now.
    Conflict,
    /// The stored data is not what this program writes.
    Unreadable,
    /// Any other failure, such as a full disk or a closed store.
    Other,
}

impl DatabaseError {
    pub(crate) fn new(kind: FailureKind, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let cause = cause.into();
        Self { kind, cause }
    }

    pub(crate) fn unreadable(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(FailureKind::Unreadable, cause)
    }

    pub(crate) fn other(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(FailureKind::Other, cause)
    }

    pub(crate) fn timed_out() -> Self {
        Self::new(
            FailureKind::ConnectionLost,
            "the database did not answer in time",
        )
    }

    pub(crate) fn is(&self, kind: FailureKind) -> bool {
        self.kind == kind
    }

    /// Returns the error of a read for the caller of the store.
    pub(crate) fn of_read(self, operation: &'static str) -> SessionStoreError {
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

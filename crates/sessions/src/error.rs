//! Errors of opening a session store and of importing sessions.

use std::{io, path::PathBuf};

use switchboard_domain::{SessionId, SessionStoreError};

/// A reason why a store cannot be opened. Its database stays unchanged.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message explains the fields")]
#[non_exhaustive]
pub enum StoreOpenError {
    /// A file or folder cannot be created or opened.
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The URL of the PostgreSQL server is invalid. The error message omits the URL, because it may
    /// contain a password.
    #[error(
        "the URL of the PostgreSQL server is invalid. Write it as postgres://user@host/database"
    )]
    InvalidUrl,
    /// The options name a PostgreSQL database, but the crate was built without its feature
    /// `postgres`, which includes the driver.
    #[error(
        "this program was built without PostgreSQL. Build it with the feature `postgres`, or use a \
         SQLite file for the sessions"
    )]
    PostgresNotIncluded,
    /// The database contains the tables of an earlier version of Switchboard, which stored no
    /// version number.
    #[error(
        "the session store was written by an earlier version of Switchboard, which this version \
         cannot read. Export it with the program built from commit f008d49 (`switchboard sessions \
         export`), or use another file or database for the sessions"
    )]
    EarlierForm,
    /// The tables of the database have a version that this program cannot read.
    #[error(
        "the session store has version {found}, but this program reads version {known}. Use a \
         newer version of Switchboard, or another file or database for the sessions"
    )]
    UnknownVersion {
        found: i64,
        /// The only version of the tables that this program reads.
        known: i64,
    },
    /// The database failed: for example, the file or server cannot be reached, or the file is not a
    /// SQLite database.
    #[error("the session store cannot be opened: {source}")]
    Database {
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A reason why an import failed. The store is unchanged.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message explains the fields")]
#[non_exhaustive]
pub enum ImportError {
    /// The input is not a complete export: it ends early, or a line is invalid.
    #[error("the input is not a complete export of sessions: line {line}: {reason}")]
    Malformed {
        /// Line number of the problem in the input, counted from 1.
        line: u64,
        reason: String,
    },
    /// The export was written by an earlier version of Switchboard, whose format has no version
    /// number.
    #[error(
        "the export was written by an earlier version of Switchboard, which this version cannot \
         read. Commit f008d49 is the last version that can import it"
    )]
    EarlierForm,
    /// The export has a format version that this program cannot read.
    #[error("the export has version {found}, but this program reads version {known}")]
    UnknownVersion {
        found: u64,
        /// The only format version that this program reads.
        known: u64,
    },
    /// The store already has a session with an id of the export, so nothing is imported.
    #[error("session `{id}` already exists. Import it with new ids")]
    Exists { id: SessionId },
    /// The store already has a run with an id of the export, so nothing is imported.
    #[error("run `{run}` already exists. Import its session with new ids")]
    RunExists { run: String },
    /// Reading the input failed with an I/O error.
    #[error("the export cannot be read: {source}")]
    Read {
        #[source]
        source: io::Error,
    },
    /// The session store failed to store the imported sessions.
    #[error(transparent)]
    Store(#[from] SessionStoreError),
}

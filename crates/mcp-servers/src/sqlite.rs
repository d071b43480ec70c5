//! SQLite databases of bundled servers, in memory or in a file.
//!
//! A new file gets its tables and initial rows once. Files of other programs are refused.

use std::{path::Path, sync::Arc, time::Duration};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, ffi};
use tokio::sync::Mutex;

use crate::{
    error::{DataFileError, ServerError},
    tool::ToolError,
};

/// Maximum time that a statement waits for a lock on the database file that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The format of a database file: its identification and its tables.
pub(crate) struct Layout {
    /// `PRAGMA application_id` that identifies files of this format. The statements in `schema` set
    /// it.
    pub(crate) application_id: i64,
    /// `PRAGMA user_version` of this format version. The statements in `schema` set it.
    pub(crate) version: i64,
    /// SQL statements that create the tables.
    pub(crate) schema: &'static str,
    /// SQL statements that insert the initial rows.
    pub(crate) seed: &'static str,
}

/// A database with one connection, which all clones share.
///
/// An in-memory database exists only as long as its connection. For a file, more connections would
/// not write faster, because SQLite executes one write transaction at a time.
#[derive(Clone)]
pub(crate) struct Database {
    connection: Arc<Mutex<Connection>>,
}

impl Database {
    /// Opens the database in `file`, or a new database in memory if `file` is `None`. Creates the
    /// tables and initial rows in a new database. Fails if another program or a newer version wrote
    /// the file.
    pub(crate) async fn open(
        layout: &'static Layout,
        file: Option<&Path>,
    ) -> Result<Self, ServerError> {
        let path = file.map(Path::to_owned);
        let opened = tokio::task::spawn_blocking(move || match path {
            None => init_database(layout, Connection::open_in_memory()?),
            Some(path) => open_file(layout, &path),
        });
        let opened = opened
            .await
            .unwrap_or_else(|error| Err(DataFileError(error.to_string())));
        let connection = opened.map_err(|problem| match file {
            None => ServerError::Memory {
                reason: problem.to_string(),
            },
            Some(path) => ServerError::Data {
                path: path.to_owned(),
                problem,
            },
        })?;
        let connection = Arc::new(Mutex::new(connection));
        Ok(Self { connection })
    }

    /// Runs `work` in a read transaction on a blocking thread, and returns its result.
    pub(crate) async fn read_in_transaction<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        self.run_transaction(TransactionBehavior::Deferred, work)
            .await
    }

    /// Runs `work` in a write transaction on a blocking thread, and returns its result. Commits the
    /// transaction if `work` succeeds, and rolls it back if `work` fails.
    pub(crate) async fn write_in_transaction<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        // An immediate transaction acquires the write lock before `work` runs. A deferred
        // transaction would acquire the lock at the first write, and could fail in the middle of
        // `work` because another process holds the lock.
        self.run_transaction(TransactionBehavior::Immediate, work)
            .await
    }

    async fn run_transaction<T: Send + 'static>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let mut connection = Arc::clone(&self.connection).lock_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let transaction = connection.transaction_with_behavior(behavior)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        });
        done.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a database transaction panicked");
            Err("The tool failed.".into())
        })
    }
}

fn refuse_file(problem: impl Into<String>) -> Result<Connection, DataFileError> {
    Err(DataFileError(problem.into()))
}

fn open_file(layout: &Layout, path: &Path) -> Result<Connection, DataFileError> {
    // SQLite reports "unable to open database file" both for a missing folder and for a folder in
    // place of the file. The checks below return a separate message for each case.
    if path.is_dir() {
        return refuse_file("it is a folder; specify a file in it");
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    if let Some(folder) = folder
        && !folder.is_dir()
    {
        return refuse_file(format!(
            "the folder `{}` does not exist; create it first",
            folder.display()
        ));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    init_database(layout, connection)
}

/// Checks that a database has the format `layout`, or creates the tables and initial rows in a new
/// database. Fails if the database belongs to another program or a newer version.
fn init_database(layout: &Layout, mut connection: Connection) -> Result<Connection, DataFileError> {
    connection.pragma_update(None, "foreign_keys", true)?;
    // The lock is acquired before reading, so that only one of two starting servers creates the
    // tables of a new file.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (application_id, version): (i64, i64) = transaction.query_row(
        "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if application_id == layout.application_id {
        if version > layout.version {
            return refuse_file(format!(
                "it was written by a newer version (layout {version}; this version supports {}); \
                 update this program",
                layout.version
            ));
        }
        // SQLite opens a write-protected file without an error. This statement writes the unchanged
        // version, so it fails for such a file when the server starts, not at a later tool call.
        transaction.pragma_update(None, "user_version", version)?;
    } else {
        let tables: i64 =
            transaction.query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if application_id != 0 || version != 0 || tables != 0 {
            return refuse_file(
                "it is the database of another program; use another path (a missing file is \
                 created)",
            );
        }
        transaction.execute_batch(layout.schema)?;
        transaction.execute_batch(layout.seed)?;
    }
    transaction.commit()?;
    Ok(connection)
}

/// Returns the primary SQLite result code: the lowest byte of the extended code
/// (<https://sqlite.org/rescode.html>). Returns `None` for an error that SQLite did not report.
pub(crate) fn primary_result_code(error: &rusqlite::Error) -> Option<i32> {
    match error {
        rusqlite::Error::SqliteFailure(error, _) | rusqlite::Error::SqlInputError { error, .. } => {
            Some(error.extended_code & 0xff)
        }
        _ => None,
    }
}

/// Returns whether the error means that another process holds the lock of the file.
fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        primary_result_code(error),
        Some(ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED)
    )
}

impl From<rusqlite::Error> for ToolError {
    fn from(error: rusqlite::Error) -> Self {
        if is_busy(&error) {
            Self::Busy
        } else {
            Self::Database(error)
        }
    }
}

impl From<rusqlite::Error> for DataFileError {
    fn from(error: rusqlite::Error) -> Self {
        let problem = match primary_result_code(&error) {
            Some(ffi::SQLITE_NOTADB) => {
                "it is not an SQLite database; use another path (a missing file is created)"
            }
            Some(
                ffi::SQLITE_PERM | ffi::SQLITE_READONLY | ffi::SQLITE_CANTOPEN | ffi::SQLITE_AUTH,
            ) => {
                "it cannot be created or written; check the path and the permissions of the file \
                 and its folder"
            }
            _ if is_busy(&error) => "another process has locked it; try again later",
            _ => return Self(error.to_string()),
        };
        Self(problem.to_owned())
    }
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;

//! Stores in a SQLite file.

mod connection;
mod file_locks;
mod files;

use std::{path::PathBuf, sync::Mutex, time::Duration};

use async_trait::async_trait;
use tokio::{
    sync::Semaphore,
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};

use self::{connection::SqliteConnection, file_locks::FileLocks};
use super::{
    Connection, Database, DatabaseError, FailureKind, InstanceLocks, Row, Value, lock_mutex,
};
use crate::options::{DEFAULT_TIMEOUT, Durability};

pub(crate) use files::create_private_file;

/// Maximum time that a statement waits for the lock of another writing process.
///
/// Transactions take milliseconds. The limit is short, because HTTP clients wait during this time.
/// After a time-out, the Switchboard server repeats the writes of running runs.
const BUSY_TIMEOUT: Duration = Duration::from_secs(3);

/// Interval between attempts to open a file while another process creates it.
const OPEN_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum number of connections that read at the same time. Further reads wait for one.
const MAX_READERS: usize = 4;

/// Maximum time that a read waits for a free connection. After it, the read fails.
const READER_TIMEOUT: Duration = Duration::from_secs(10);

/// A database in a SQLite file.
#[derive(derive_more::Debug)]
#[debug("Sqlite({path:?})")]
pub(crate) struct Sqlite {
    path: PathBuf,
    pragmas: Vec<(&'static str, &'static str)>,
    locks: FileLocks,
    /// Permits that limit the number of connections for reading to `MAX_READERS`.
    reader_permits: Semaphore,
    idle_readers: Mutex<Vec<SqliteConnection>>,
}

impl Sqlite {
    pub(crate) fn new(path: PathBuf, durability: Durability) -> Self {
        let synchronous = match durability {
            Durability::PowerLoss => "FULL",
            Durability::ProcessCrash => "NORMAL",
        };
        let pragmas = vec![
            // `shrink_file` needs this setting, which works only in a new file and before WAL mode.
            ("auto_vacuum", "INCREMENTAL"),
            ("journal_mode", "WAL"),
            ("foreign_keys", "ON"),
            ("synchronous", synchronous),
            // The limit is 64 MiB. Without it, the file of the write-ahead log keeps its size after
            // a large transaction.
            ("journal_size_limit", "67108864"),
        ];
        Self {
            locks: FileLocks::new(files::lock_folder_path(&path)),
            path,
            pragmas,
            reader_permits: Semaphore::new(MAX_READERS),
            idle_readers: Mutex::new(Vec::new()),
        }
    }

    #[cfg(test)]
    pub(crate) fn with_pragma(mut self, name: &'static str, value: &'static str) -> Self {
        self.pragmas.push((name, value));
        self
    }

    /// Opens a read-only connection.
    async fn open_reader(&self) -> Result<SqliteConnection, DatabaseError> {
        let path = self.path.clone();
        run_blocking(move || SqliteConnection::open(&path, &[], BUSY_TIMEOUT)).await
    }
}

#[async_trait]
impl Database for Sqlite {
    /// Opens a connection with blocking calls. Tries again if the file is locked, because SQLite
    /// does not wait if two processes set WAL mode on a new file at the same time.
    async fn connect(&self) -> Result<Box<dyn Connection>, DatabaseError> {
        let deadline = Instant::now() + BUSY_TIMEOUT;
        loop {
            let opened = SqliteConnection::open(&self.path, &self.pragmas, BUSY_TIMEOUT);
            match opened {
                Err(error) if error.kind == FailureKind::Locked && Instant::now() < deadline => {
                    sleep(OPEN_INTERVAL).await;
                }
                opened => return Ok(Box::new(opened?)),
            }
        }
    }

    async fn read_rows(
        &self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError> {
        if values.iter().any(Value::contains_nul) {
            return Ok(Vec::new());
        }
        let permit = timeout(READER_TIMEOUT, self.reader_permits.acquire()).await;
        let Ok(permit) = permit else {
            let cause = "all read connections are in use";
            return Err(DatabaseError::new(FailureKind::Overloaded, cause));
        };
        let _permit = permit.map_err(|_| DatabaseError::other_failure("the store is closed"))?;
        let idle = lock_mutex(&self.idle_readers).pop();
        let mut reader = match idle {
            Some(reader) => reader,
            None => self.open_reader().await?,
        };
        let read = move || Ok((reader.query(sql, &values), reader));
        let (rows, reader) = run_blocking(read).await?;
        lock_mutex(&self.idle_readers).push(reader);
        rows
    }

    async fn open_snapshot(&self) -> Result<Box<dyn Connection>, DatabaseError> {
        let mut reader = self.open_reader().await?;
        let begun = move || {
            // The first read begins the snapshot, so this statement reads a table.
            reader.run_batch("BEGIN; SELECT version FROM store_version")?;
            Ok(reader)
        };
        Ok(Box::new(run_blocking(begun).await?))
    }

    async fn close(&self) {
        self.reader_permits.close();
        // Closes the idle connections. A connection in use closes later, with the store.
        lock_mutex(&self.idle_readers).clear();
    }

    fn transaction_timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }

    fn instance_locks(&self) -> &dyn InstanceLocks {
        &self.locks
    }
}

/// Runs a blocking function on tokio's pool of blocking threads.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DatabaseError> + Send + 'static,
) -> Result<T, DatabaseError> {
    spawn_blocking(work)
        .await
        .map_err(DatabaseError::other_failure)?
}

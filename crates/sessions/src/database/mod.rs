//! The databases that a session store supports: SQLite and PostgreSQL.
//!
//! The rest of the crate writes SQL that both databases understand, with `$1` for parameters and
//! only text and integers as values. The trait [`Database`] is the interface to both drivers.

mod error;
#[cfg(feature = "postgres")]
mod postgres;
pub(crate) mod schema;
pub(crate) mod sqlite;
mod value;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;

pub(crate) use self::{
    error::{DatabaseError, FailureKind},
    value::{Cell, Row, Value, has_nul, values},
};
use crate::{
    error::StoreOpenError,
    options::{Location, StoreOptions},
};

/// Access to one database: connections, queries and instance locks.
#[async_trait]
pub(crate) trait Database: fmt::Debug + Send + Sync {
    /// Opens a connection for writing.
    async fn connect(&self) -> Result<Box<dyn Connection>, DatabaseError>;

    /// Executes a query on a connection for reading. Returns no rows if a parameter contains the
    /// character NUL, because no stored text contains NUL.
    async fn read_rows(
        &self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError>;

    /// Opens a connection whose reads all see the same snapshot of the store.
    async fn open_snapshot(&self) -> Result<Box<dyn Connection>, DatabaseError>;

    /// Closes the connections for reading. Later reads fail.
    async fn close(&self);

    /// Returns the maximum time of a write transaction. If a transaction takes longer, its
    /// connection is dropped.
    fn transaction_timeout(&self) -> Duration;

    /// Returns the locks that show which instances (open stores) are alive.
    fn instance_locks(&self) -> &dyn InstanceLocks;
}

/// The database product. Some SQL statements differ between SQLite and PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseKind {
    /// The database is SQLite, whose calls block the thread.
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
}

/// A connection to a database, which executes SQL statements.
#[async_trait]
pub(crate) trait Connection: Send {
    fn database_kind(&self) -> DatabaseKind;

    /// Executes a statement and returns the number of changed rows.
    async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<u64, DatabaseError>;

    /// Executes a statement and returns all rows of its result.
    async fn query_rows(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError>;

    /// Executes SQL statements that have no parameters and return no rows.
    async fn execute_batch(&mut self, sql: &'static str) -> Result<(), DatabaseError>;

    /// Begins a write transaction.
    async fn begin(&mut self) -> Result<(), DatabaseError>;

    /// Rolls the transaction back. If this fails, the caller must drop the connection, which also
    /// rolls the transaction back.
    async fn roll_back(&mut self) -> Result<(), DatabaseError>;

    /// Returns free pages of a SQLite file to the operating system. Does nothing on PostgreSQL.
    async fn shrink_file(&mut self) -> Result<(), DatabaseError> {
        Ok(())
    }

    /// Closes the connection. The default implementation only drops it.
    async fn close(self: Box<Self>) {}
}

impl dyn Connection + '_ {
    /// Executes a statement and returns the first row of its result.
    pub(crate) async fn query_row(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Option<Row>, DatabaseError> {
        Ok(self.query_rows(sql, values).await?.into_iter().next())
    }
}

/// Locks of instances. An *instance* is one open store of one process.
///
/// An instance has a row in the database and a lock that exists exactly as long as the instance. An
/// instance without its lock is dead. The next writer that finds it removes its row and interrupts
/// its runs. The row identifies the runs of the instance, and the lock protects them from other
/// instances.
#[async_trait]
pub(crate) trait InstanceLocks: Send + Sync {
    /// Creates a new instance id and acquires its lock. Releases the lock of the previous id of
    /// this instance, if there is one. The caller must insert the row of the new id.
    async fn acquire_new_lock(&self) -> Result<InstanceClaim, DatabaseError>;

    /// Returns the id of this instance (open store). Returns `None` before it has acquired a lock
    /// and after [`release_lock`](Self::release_lock).
    fn own_id(&self) -> Option<String>;

    /// Returns whether an instance is dead, which means that no process holds its lock.
    async fn is_dead(&self, database: &dyn Database, id: &str) -> Result<bool, DatabaseError>;

    /// Removes the row of an instance if it is dead, and returns whether the row was removed.
    ///
    /// On PostgreSQL, waits for a running transaction of that instance, because that transaction
    /// locks the row.
    async fn remove_dead_instance(
        &self,
        connection: &mut dyn Connection,
        id: &str,
    ) -> Result<bool, DatabaseError>;

    /// Removes the lock file of an instance whose row was removed. PostgreSQL has no lock files.
    fn remove_stale_lock(&self, _id: &str) {}

    /// Removes the lock files of all dead instances.
    fn remove_stale_locks(&self) {}

    /// Requests an immediate check that this instance still holds its lock. The default
    /// implementation does nothing. PostgreSQL locks need the check, because a lost connection
    /// loses the lock.
    fn request_lock_check(&self) {}

    /// Releases the lock of this instance, which then counts as dead.
    fn release_lock(&self);
}

/// The id and lock number of an instance that holds its lock.
#[derive(Debug, Clone)]
pub(crate) struct InstanceClaim {
    pub(crate) id: String,
    /// Number of the PostgreSQL advisory lock. It is 0 for SQLite.
    pub(crate) lock_key: i64,
}

/// Locks a mutex, even if another thread panicked while it held the lock.
fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates the database object for the location in `options`. Does not connect.
pub(crate) fn build_database(options: &StoreOptions) -> Result<Arc<dyn Database>, StoreOpenError> {
    match &options.location {
        Location::Sqlite(path) => {
            let database = sqlite::Sqlite::new(path.clone(), options.durability);
            Ok(Arc::new(database))
        }
        #[cfg(feature = "postgres")]
        Location::Postgres(url) => {
            let database = postgres::Postgres::new(url, options.timeout)?;
            Ok(Arc::new(database))
        }
        #[cfg(not(feature = "postgres"))]
        Location::Postgres(_) => Err(StoreOpenError::PostgresNotIncluded),
    }
}

//! Databases that can hold a store.
//!
//! The rest of the crate writes SQL that both databases understand, with `$1` for parameters and
//! only text and integers as values. [`Database`] hides the drivers.

mod error;
#[cfg(feature = "postgres")]
mod postgres;
pub(crate) mod schema;
pub(crate) mod sqlite;
mod value;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

pub(crate) use self::{
    error::{DatabaseError, FailureKind},
    value::{Cell, Row, Value, has_nul, values},
};
use crate::{
    error::OpenError,
    options::{Location, StoreOptions},
};

/// How to reach a database.
#[async_trait]
pub(crate) trait Database: fmt::Debug + Send + Sync {
    /// Opens a connection that writes.
    async fn connect(&self) -> Result<Box<dyn Connection>, DatabaseError>;

    /// Reads rows. `values` are keys: a key that cannot be stored finds nothing.
    async fn read(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Row>, DatabaseError>;

    /// Opens a connection that reads a snapshot of the store.
    async fn snapshot(&self) -> Result<Box<dyn Connection>, DatabaseError>;

    /// Closes the connections that read.
    async fn close(&self);

    /// Returns the maximum time of a transaction. A connection that needs longer is given up.
    fn transaction_timeout(&self) -> Duration;

    /// Returns the locks that show which instances are alive.
    fn locks(&self) -> &dyn InstanceLocks;
}

/// The kind of a database, for the statements that differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseKind {
    /// Calls block the thread.
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
}

/// A connection to a database.
#[async_trait]
pub(crate) trait Connection: Send {
    fn kind(&self) -> DatabaseKind;

    /// Executes a statement and returns the number of changed rows.
    async fn execute(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<u64, DatabaseError>;

    /// Executes a statement and returns all rows of its result.
    async fn rows(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, DatabaseError>;

    /// Executes statements without parameters and results.
    async fn run(&mut self, sql: &'static str) -> Result<(), DatabaseError>;

    /// Begins a transaction that writes.
    async fn begin(&mut self) -> Result<(), DatabaseError>;

    /// Rolls the transaction back. If that fails, dropping the connection does it.
    async fn roll_back(&mut self) -> Result<(), DatabaseError>;

    /// Returns some free pages of the file to the operating system, if the database is a file.
    async fn shrink(&mut self) -> Result<(), DatabaseError> {
        Ok(())
    }

    /// Closes the connection.
    async fn close(self: Box<Self>) {}
}

impl dyn Connection + '_ {
    /// Executes a statement and returns the first row of its result.
    pub(crate) async fn row(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Option<Row>, DatabaseError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }
}

/// Locks of instances. An *instance* is one open store of one process.
///
/// An instance has a row in the database and a lock that exists exactly as long as the instance. An
/// instance without its lock is dead. The next writer that finds it removes its row and releases
/// its runs. The row identifies the runs of the instance, the lock protects them from other
/// instances.
#[async_trait]
pub(crate) trait InstanceLocks: Send + Sync {
    /// Acquires a lock under a new id and releases the old one. The caller writes the row.
    async fn claim(&self) -> Result<InstanceClaim, DatabaseError>;

    /// Returns the id of this instance.
    fn own_id(&self) -> Option<String>;

    /// Returns whether an instance is dead.
    async fn is_dead(&self, database: &dyn Database, id: &str) -> Result<bool, DatabaseError>;

    /// Removes the row of an instance if it is dead, and returns whether it did.
    ///
    /// On PostgreSQL, waits for a transaction of that instance.
    async fn remove_if_dead(
        &self,
        connection: &mut dyn Connection,
        id: &str,
    ) -> Result<bool, DatabaseError>;

    /// Removes the rest of a lock whose row is removed for good.
    fn sweep(&self, _id: &str) {}

    /// Removes the rests of the locks of all dead instances.
    fn sweep_all(&self) {}

    /// Requests an early check whether the lock is still held.
    fn check_soon(&self) {}

    /// Releases the lock. This instance is dead afterwards.
    fn release(&self);
}

/// The identity of an instance that holds its lock.
#[derive(Debug, Clone)]
pub(crate) struct InstanceClaim {
    pub(crate) id: String,
    /// Number of the advisory lock on a PostgreSQL server; 0 for SQLite.
    pub(crate) lock_key: i64,
}

/// Returns the database at a location. Does not connect.
pub(crate) fn open(options: &StoreOptions) -> Result<Arc<dyn Database>, OpenError> {
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
        Location::Postgres(_) => Err(OpenError::PostgresNotIncluded),
    }
}

//! The session store: opening, closing, and access to its database.

use std::sync::Arc;

use switchboard_domain::SessionStoreError;
use tokio::{runtime::Handle, task::spawn_blocking};

use crate::{
    StoreOpenError, StoreOptions,
    database::{
        self, Connection, Database, DatabaseError, DatabaseKind, Row, Value, schema, sqlite, values,
    },
    write::{
        queue::{WriteError, WriteQueue, WriterThread},
        transaction::Transaction,
    },
};

/// A store of sessions and runs in a database. Clones share one store.
///
/// If the last clone is dropped without [`close`](Self::close), the store ends as if its process
/// had crashed: acknowledged writes are kept, and the runs that this store executes count as
/// interrupted.
#[derive(Clone, derive_more::Debug)]
#[debug("Store({:?})", inner.database)]
pub struct Store {
    inner: Arc<StoreInner>,
}

struct StoreInner {
    database: Arc<dyn Database>,
    queue: WriteQueue,
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        self.database.instance_locks().release_lock();
    }
}

impl Store {
    /// Opens a store, or creates it if it is missing.
    ///
    /// Runs of processes that ended without [`close`](Self::close) count as interrupted. Must be
    /// called within a tokio runtime.
    ///
    /// # Errors
    /// See [`StoreOpenError`].
    pub async fn open(options: StoreOptions) -> Result<Self, StoreOpenError> {
        if let Some(path) = options.sqlite_path() {
            sqlite::create_private_file(path)?;
        }
        Self::open_database(database::build_database(&options)?).await
    }

    pub(crate) async fn open_database(database: Arc<dyn Database>) -> Result<Self, StoreOpenError> {
        let (opening, runtime) = (Arc::clone(&database), Handle::current());
        // The database is opened on a blocking thread, because SQLite calls block.
        let opened = spawn_blocking(move || runtime.block_on(connect(&*opening))).await;
        let connection = opened.map_err(to_open_error)??;
        let queue =
            WriterThread::start_thread(Arc::clone(&database), connection).map_err(to_open_error)?;
        let inner = Arc::new(StoreInner { database, queue });
        let store = Self { inner };
        let removed = store.perform_write("find interrupted runs", async |tx| {
            remove_dead_instances(tx).await
        });
        removed.await.map_err(to_open_error)?;
        store.database().instance_locks().remove_stale_locks();
        Ok(store)
    }

    /// Performs the queued writes and closes the database.
    ///
    /// Marks the runs that this store executes as interrupted. Later calls to this store and its
    /// clones fail.
    pub async fn close(&self) {
        const REMOVE: &str = "DELETE FROM instances WHERE id = $1";
        let removed = self.perform_write("close", async |tx| {
            let own_id = tx.own_id;
            tx.interrupt_runs(own_id).await?;
            tx.connection.execute(REMOVE, values![own_id]).await?;
            tx.removed_instances.push(own_id.to_owned());
            Ok(())
        });
        // A failure of the write is ignored, because other processes later detect that this
        // instance is dead, and interrupt its runs.
        let _ = removed.await;
        self.inner.queue.end_writer_thread().await;
        self.database().instance_locks().release_lock();
        self.database().close().await;
    }

    pub(crate) fn database(&self) -> &dyn Database {
        &*self.inner.database
    }

    /// Reads rows and converts each of them. `operation` completes "failed to …" in error messages.
    pub(crate) async fn read_rows<T: Send>(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Vec<Value>,
        convert: impl Fn(&Row) -> Result<T, DatabaseError> + Send,
    ) -> Result<Vec<T>, SessionStoreError> {
        let rows = self.database().read_rows(sql, values).await;
        let converted = rows.and_then(|rows| rows.iter().map(convert).collect());
        converted.map_err(|error| error.into_store_error(operation))
    }

    /// Performs a write on the writer thread, in one transaction with other queued writes. After a
    /// rollback, `write` may be called again. `operation` completes "failed to …" in error
    /// messages.
    pub(crate) async fn perform_write<T: Send + 'static>(
        &self,
        operation: &'static str,
        write: impl AsyncFn(&mut Transaction<'_>) -> Result<T, WriteError> + Send + 'static,
    ) -> Result<T, SessionStoreError> {
        let queue = &self.inner.queue;
        queue.perform_write(operation, false, write).await
    }

    /// Performs a write like [`perform_write`](Self::perform_write), but without a savepoint.
    /// `write` must change the database with at most one statement, so that a refused write has
    /// nothing to undo.
    pub(crate) async fn perform_single_statement<T: Send + 'static>(
        &self,
        operation: &'static str,
        write: impl AsyncFn(&mut Transaction<'_>) -> Result<T, WriteError> + Send + 'static,
    ) -> Result<T, SessionStoreError> {
        self.inner.queue.perform_write(operation, true, write).await
    }
}

/// Opens a connection for writing. Creates the tables in a new database, and checks their version
/// in an existing one.
async fn connect(database: &dyn Database) -> Result<Box<dyn Connection>, StoreOpenError> {
    let mut connection = database.connect().await?;
    schema::prepare_tables(&mut *connection).await?;
    Ok(connection)
}

fn to_open_error(source: impl std::error::Error + Send + Sync + 'static) -> StoreOpenError {
    StoreOpenError::Database {
        source: source.into(),
    }
}

/// Removes the rows of dead instances (open stores whose process ended) and interrupts their runs.
///
/// On PostgreSQL, this function removes only instances without runs. After a restart of the server,
/// all instances have lost their locks, and most of them acquire their locks again within seconds.
/// A dead instance with runs is removed when a process acquires one of its runs or deletes its
/// session. Until then, reads return its runs as interrupted.
async fn remove_dead_instances(tx: &mut Transaction<'_>) -> Result<(), WriteError> {
    // All processes remove instances in the order of their ids, which avoids deadlocks.
    const ALL: &str = "SELECT id FROM instances WHERE id <> $1 ORDER BY id";
    #[cfg(feature = "postgres")]
    const WITHOUT_RUNS: &str = "SELECT i.id FROM instances i WHERE i.id <> $1
        AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.instance = i.id) ORDER BY i.id";
    let others = match tx.connection.database_kind() {
        DatabaseKind::Sqlite => ALL,
        #[cfg(feature = "postgres")]
        DatabaseKind::Postgres => WITHOUT_RUNS,
    };
    for row in tx.connection.query_rows(others, values![tx.own_id]).await? {
        tx.is_alive(&row.read_text(0)?).await?;
    }
    Ok(())
}

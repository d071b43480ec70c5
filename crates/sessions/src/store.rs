//! The store: opening, closing, and access to its one database.

use std::{fmt, sync::Arc};

use switchboard_domain::SessionStoreError;
use tokio::{runtime::Handle, task::spawn_blocking};

use crate::{
    OpenError, StoreOptions,
    database::{
        self, Connection, Database, DatabaseError, DatabaseKind, Row, Value, schema, sqlite, values,
    },
    write::{
        queue::{Queue, Refusal, Writer},
        transaction::Transaction,
    },
};

/// Sessions and runs in a database. A clone is the same store.
///
/// Dropping the last clone without [`close`](Self::close) has the effect of killing the process:
/// acknowledged writes stay, and the runs of this store are interrupted.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    database: Arc<dyn Database>,
    queue: Queue,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.database.locks().release();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.database).finish()
    }
}

impl Store {
    /// Opens a store, and creates it where it is missing.
    ///
    /// Interrupts the runs of dead processes. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(options: StoreOptions) -> Result<Self, OpenError> {
        if let Some(path) = options.path() {
            sqlite::create_private_file(path)?;
        }
        Self::open_database(database::open(&options)?).await
    }

    pub(crate) async fn open_database(database: Arc<dyn Database>) -> Result<Self, OpenError> {
        let (opening, runtime) = (Arc::clone(&database), Handle::current());
        // SQLite blocks the thread.
        let opened = spawn_blocking(move || runtime.block_on(connect(&*opening))).await;
        let connection = opened.map_err(cannot_open)??;
        let queue = Writer::start(Arc::clone(&database), connection).map_err(cannot_open)?;
        let inner = Arc::new(Inner { database, queue });
        let store = Self { inner };
        let removed = store.write("find interrupted runs", async |tx| {
            remove_dead_instances(tx).await
        });
        removed.await.map_err(cannot_open)?;
        store.database().locks().sweep_all();
        Ok(store)
    }

    /// Performs the queued writes and closes the database.
    ///
    /// Interrupts the runs of this store. Later calls of this store and its clones fail.
    pub async fn close(&self) {
        const REMOVE: &str = "DELETE FROM instances WHERE id = $1";
        let removed = self.write("close", async |tx| {
            let own_id = tx.own_id;
            tx.interrupt_runs(own_id).await?;
            tx.connection.execute(REMOVE, values![own_id]).await?;
            tx.removed_instances.push(own_id.to_owned());
            Ok(())
        });
        // If this fails, another process finds this instance dead.
        let _ = removed.await;
        self.inner.queue.end_writer().await;
        self.database().locks().release();
        self.database().close().await;
    }

    pub(crate) fn database(&self) -> &dyn Database {
        &*self.inner.database
    }

    /// Reads rows and converts each of them. `operation` completes "failed to …" in errors.
    pub(crate) async fn read<T: Send>(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Vec<Value>,
        convert: impl Fn(&Row) -> Result<T, DatabaseError> + Send,
    ) -> Result<Vec<T>, SessionStoreError> {
        let rows = self.database().read(sql, values).await;
        let converted = rows.and_then(|rows| rows.iter().map(convert).collect());
        converted.map_err(|error| error.of_read(operation))
    }

    /// Performs a write, together with all other queued writes in one transaction. It may be
    /// performed again after its first attempt was rolled back.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        operation: &'static str,
        write: impl AsyncFn(&mut Transaction<'_>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, SessionStoreError> {
        self.inner.queue.perform(operation, false, write).await
    }

    /// Performs a write that changes the database with one statement.
    pub(crate) async fn write_statement<T: Send + 'static>(
        &self,
        operation: &'static str,
        write: impl AsyncFn(&mut Transaction<'_>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, SessionStoreError> {
        self.inner.queue.perform(operation, true, write).await
    }
}

/// Opens a connection that writes to a store with current tables.
async fn connect(database: &dyn Database) -> Result<Box<dyn Connection>, OpenError> {
    let mut connection = database.connect().await.map_err(cannot_open)?;
    schema::prepare(&mut *connection).await?;
    Ok(connection)
}

fn cannot_open(source: impl std::error::Error + Send + Sync + 'static) -> OpenError {
    OpenError::Database {
        source: source.into(),
    }
}

/// Removes dead instances.
///
/// On PostgreSQL, instances with runs stay until another instance takes one of these runs. A server
/// that was restarted has lost the locks of all instances, and most of them acquire theirs again in
/// a moment. Readers see the runs as interrupted in any case.
async fn remove_dead_instances(tx: &mut Transaction<'_>) -> Result<(), Refusal> {
    // All processes use the same order, which avoids deadlocks.
    const ALL: &str = "SELECT id FROM instances WHERE id <> $1 ORDER BY id";
    #[cfg(feature = "postgres")]
    const WITHOUT_RUNS: &str = "SELECT i.id FROM instances i WHERE i.id <> $1
        AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.instance = i.id) ORDER BY i.id";
    let others = match tx.connection.kind() {
        DatabaseKind::Sqlite => ALL,
        #[cfg(feature = "postgres")]
        DatabaseKind::Postgres => WITHOUT_RUNS,
    };
    for row in tx.connection.rows(others, values![tx.own_id]).await? {
        tx.is_alive(&row.text(0)?).await?;
    }
    Ok(())
}

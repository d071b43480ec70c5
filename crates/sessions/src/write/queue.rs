//! The writer thread. It performs all queued writes in one transaction.

use std::{io, sync::Arc, thread, time::Duration};

use async_trait::async_trait;
use switchboard_domain::SessionStoreError;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout},
};

use super::transaction::{Transaction, TransactionTime};
use crate::database::{
    Connection, Database, DatabaseError, DatabaseKind, FailureKind, InstanceLocks, values,
};

/// Maximum number of writes in one transaction. Each of their callers waits for its commit.
const MAX_BATCH: usize = 1024;

/// Pauses before the retries of a failed transaction, in milliseconds.
///
/// The pauses add up to 13.5 seconds, so that writes continue after a restart of the database
/// server, which takes seconds. A run whose writes fail for longer must end.
const RETRY_PAUSES: [u64; 7] = [0, 100, 400, 1000, 2000, 4000, 6000];

/// Time since the first attempt after which a failed transaction is not retried again.
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// The reason why a write to the database was not performed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// A rule of the store forbids the write, such as a message count that does not match.
    #[error(transparent)]
    Refused(#[from] SessionStoreError),
    /// The database failed to perform the write.
    #[error(transparent)]
    Failed(#[from] DatabaseError),
}

/// The failure of a transaction. The caller of each write in the transaction receives it.
#[derive(Debug, Clone)]
struct BatchFailure {
    error: Arc<DatabaseError>,
    /// Whether the failure is temporary and nothing was written. Then the caller receives
    /// `Unavailable` and may repeat the write. Otherwise, the caller receives `Storage`.
    may_pass: bool,
}

impl BatchFailure {
    fn into_store_error(self, operation: &'static str) -> SessionStoreError {
        let source = self.error.into();
        if self.may_pass {
            SessionStoreError::Unavailable { operation, source }
        } else {
            SessionStoreError::Storage { operation, source }
        }
    }
}

fn store_closed_error(operation: &'static str) -> SessionStoreError {
    SessionStoreError::Storage {
        operation,
        source: "the store is closed".into(),
    }
}

/// A write that waits for the writer thread. It may be performed again after a rollback.
struct QueuedWrite<T, F> {
    /// The operation in error messages: `create a session` in "failed to create a session".
    operation: &'static str,
    write: F,
    /// Whether only one statement of the write changes the database. Then nothing must be undone if
    /// the store refuses the write.
    is_one_statement: bool,
    outcome: Option<Result<T, SessionStoreError>>,
    reply: oneshot::Sender<Result<T, SessionStoreError>>,
}

/// A [`QueuedWrite`] of any result type, so that one queue can hold all writes.
#[async_trait(?Send)]
trait WriteJob: Send {
    /// Returns whether the caller no longer waits for the outcome, so that the write can be
    /// skipped.
    fn is_abandoned(&self) -> bool;

    /// Performs the write, stores its outcome, and returns whether the write succeeded. An error
    /// means that the whole transaction failed.
    ///
    /// A write that is alone in its transaction (`is_alone`) has no savepoint: on failure, the
    /// whole transaction is rolled back.
    async fn apply_write(
        &mut self,
        tx: &mut Transaction<'_>,
        is_alone: bool,
    ) -> Result<bool, Arc<DatabaseError>>;

    fn send_outcome(self: Box<Self>, failure: Option<BatchFailure>);
}

#[async_trait(?Send)]
impl<T, F> WriteJob for QueuedWrite<T, F>
where
    T: Send,
    F: AsyncFn(&mut Transaction<'_>) -> Result<T, WriteError> + Send,
{
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    async fn apply_write(
        &mut self,
        tx: &mut Transaction<'_>,
        is_alone: bool,
    ) -> Result<bool, Arc<DatabaseError>> {
        let has_savepoint = !is_alone && !self.is_one_statement;
        if has_savepoint {
            tx.connection.execute_batch("SAVEPOINT op").await?;
        }
        let refused = match (self.write)(tx).await {
            Ok(output) => {
                if has_savepoint {
                    tx.connection.execute_batch("RELEASE SAVEPOINT op").await?;
                }
                self.outcome = Some(Ok(output));
                return Ok(true);
            }
            Err(WriteError::Failed(error)) if !has_savepoint || is_transaction_failure(&error) => {
                return Err(error.into());
            }
            Err(WriteError::Failed(error)) => {
                let error = Arc::new(error);
                match undo_write(tx.connection).await {
                    Err(lost) if lost.kind == FailureKind::ConnectionLost => {
                        return Err(lost.into());
                    }
                    // The savepoint does not exist any more: on a full disk, for example, SQLite
                    // rolls back the whole transaction.
                    Err(_) => return Err(error),
                    Ok(()) => {}
                }
                let may_pass = error.kind == FailureKind::Locked;
                BatchFailure { error, may_pass }.into_store_error(self.operation)
            }
            Err(WriteError::Refused(refused)) => {
                if has_savepoint {
                    undo_write(tx.connection).await?;
                }
                refused
            }
        };
        self.outcome = Some(Err(refused));
        Ok(false)
    }

    fn send_outcome(self: Box<Self>, failure: Option<BatchFailure>) {
        let outcome = match failure {
            Some(failure) => Err(failure.into_store_error(self.operation)),
            None => self
                .outcome
                .unwrap_or_else(|| Err(store_closed_error(self.operation))),
        };
        // Sending fails if the caller has stopped waiting, which is not an error.
        let _ = self.reply.send(outcome);
    }
}

/// Returns whether an error fails the whole transaction, so that all of its writes must be
/// performed again.
fn is_transaction_failure(error: &DatabaseError) -> bool {
    error.kind == FailureKind::ConnectionLost || error.kind == FailureKind::Conflict
}

async fn undo_write(connection: &mut dyn Connection) -> Result<(), DatabaseError> {
    connection.execute_batch("ROLLBACK TO SAVEPOINT op").await?;
    connection.execute_batch("RELEASE SAVEPOINT op").await
}

/// The queue of writes for the writer thread. The entry `None` ends the thread.
pub(crate) struct WriteQueue(mpsc::UnboundedSender<Option<Box<dyn WriteJob>>>);

impl WriteQueue {
    /// Queues a write and waits until it is committed or has failed. The length of the queue is not
    /// limited, but it has at most one entry per caller, because each caller waits for its write.
    pub(crate) async fn perform_write<T: Send + 'static>(
        &self,
        operation: &'static str,
        is_one_statement: bool,
        write: impl AsyncFn(&mut Transaction<'_>) -> Result<T, WriteError> + Send + 'static,
    ) -> Result<T, SessionStoreError> {
        let (reply, answer) = oneshot::channel();
        let queued = QueuedWrite {
            operation,
            write,
            is_one_statement,
            outcome: None,
            reply,
        };
        let sent = self.0.send(Some(Box::new(queued)));
        sent.map_err(|_| store_closed_error(operation))?;
        answer.await.map_err(|_| store_closed_error(operation))?
    }

    /// Ends the writer thread after it has performed the queued writes.
    pub(crate) async fn end_writer_thread(&self) {
        if self.0.send(None).is_ok() {
            self.0.closed().await;
        }
    }
}

pub(crate) struct WriterThread {
    database: Arc<dyn Database>,
    connection: Option<Box<dyn Connection>>,
    phase: TransactionPhase,
}

/// The progress of the current transaction, which decides whether it is retried after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransactionPhase {
    /// The transaction has not performed any write, so that a retry is safe.
    Begin,
    /// Writes may have been performed, but none is committed.
    Write,
    /// The commit was requested. Only the database knows whether the writes are committed.
    Commit,
}

impl WriterThread {
    /// Starts the writer thread, which ends with [`WriteQueue::end_writer_thread`] or when the
    /// queue is dropped. Writes have their own thread, because SQLite calls block.
    pub(crate) fn start_thread(
        database: Arc<dyn Database>,
        connection: Box<dyn Connection>,
    ) -> io::Result<WriteQueue> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let writer = Self {
            database,
            connection: Some(connection),
            phase: TransactionPhase::Begin,
        };
        let runtime = Handle::current();
        let thread = thread::Builder::new().name("sessions".to_owned());
        thread.spawn(move || runtime.block_on(writer.run_batches(receiver)))?;
        Ok(WriteQueue(sender))
    }

    async fn run_batches(mut self, mut queue: mpsc::UnboundedReceiver<Option<Box<dyn WriteJob>>>) {
        let mut taken = Vec::new();
        while queue.recv_many(&mut taken, MAX_BATCH).await > 0 {
            let is_end = taken.iter().any(Option::is_none);
            // Writes after the entry `None`, which ends the thread, are dropped. Their callers get
            // an error.
            let jobs = taken.drain(..).map_while(|job| job);
            let batch: Vec<_> = jobs.filter(|job| !job.is_abandoned()).collect();
            if !batch.is_empty() {
                self.perform_batch(batch).await;
            }
            if is_end {
                if let Some(connection) = self.connection.take() {
                    connection.close().await;
                }
                return;
            }
        }
    }

    async fn perform_batch(&mut self, mut batch: Vec<Box<dyn WriteJob>>) {
        let mut pauses = RETRY_PAUSES.into_iter();
        let started = Instant::now();
        let max_time = self.database.transaction_timeout();
        let failure = loop {
            self.phase = TransactionPhase::Begin;
            let attempt = timeout(max_time, self.attempt_batch(&mut batch)).await;
            let attempt = attempt.unwrap_or_else(|_| Err(DatabaseError::timed_out().into()));
            let Err(error) = attempt else {
                break None;
            };
            let lost = error.kind == FailureKind::ConnectionLost;
            let rolled_back = match &mut self.connection {
                Some(connection) if !lost => connection.roll_back().await.is_ok(),
                _ => false,
            };
            if !rolled_back {
                // The connection is lost or its rollback failed. Dropping the connection rolls the
                // transaction back.
                self.connection = None;
                self.database.instance_locks().request_lock_check();
            }
            if self.phase == TransactionPhase::Write && !lost && batch.len() > 1 {
                // One failed write made the whole transaction fail. Each write is repeated in a
                // separate transaction, so that only the failed write returns an error.
                for job in batch {
                    Box::pin(self.perform_batch(vec![job])).await;
                }
                return;
            }
            let conflict = error.kind == FailureKind::Conflict;
            let may_retry = match self.phase {
                TransactionPhase::Begin => lost || error.kind == FailureKind::Overloaded,
                TransactionPhase::Write => lost || conflict,
                // After a lost connection, it is unknown whether the commit succeeded, so the
                // writes are not repeated.
                TransactionPhase::Commit => conflict,
            };
            let pause = pauses.next();
            let Some(pause) = pause.filter(|_| may_retry && started.elapsed() < RETRY_TIMEOUT)
            else {
                // If another writer held a lock for too long, this transaction was rolled back, so
                // the caller may repeat the writes.
                let may_pass = error.kind == FailureKind::Locked
                    || (may_retry && self.phase == TransactionPhase::Begin);
                break Some(BatchFailure { error, may_pass });
            };
            sleep(Duration::from_millis(pause)).await;
        };
        for job in batch {
            job.send_outcome(failure.clone());
        }
    }

    async fn attempt_batch(
        &mut self,
        batch: &mut [Box<dyn WriteJob>],
    ) -> Result<(), Arc<DatabaseError>> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            missing => missing.insert(self.database.connect().await?),
        };
        let connection = &mut **connection;
        let locks = self.database.instance_locks();
        connection.begin().await?;
        let now = TransactionTime::read_clock();
        let own_id = ensure_instance_row(connection, locks, &now).await?;
        self.phase = TransactionPhase::Write;
        let mut removed_instances = Vec::new();
        let mut tx = Transaction {
            connection,
            locks,
            own_id: &own_id,
            now: &now,
            removed_instances: &mut removed_instances,
        };
        let is_alone = batch.len() == 1;
        for job in batch {
            let is_done = job.apply_write(&mut tx, is_alone).await?;
            if is_alone && !is_done {
                connection.execute_batch("ROLLBACK").await?;
                return Ok(());
            }
        }
        self.phase = TransactionPhase::Commit;
        connection.execute_batch("COMMIT").await?;
        for id in removed_instances {
            locks.remove_stale_lock(&id);
        }
        Ok(())
    }
}

/// Returns the id of this instance (open store). Other processes cannot remove its row from
/// `instances` before the end of the transaction.
///
/// Creates the row at the first call, and again after another instance has removed it.
async fn ensure_instance_row(
    connection: &mut dyn Connection,
    locks: &dyn InstanceLocks,
    now: &TransactionTime,
) -> Result<String, DatabaseError> {
    let find = match connection.database_kind() {
        // SQLite needs no row lock, because no other process writes at the same time.
        DatabaseKind::Sqlite => "SELECT id FROM instances WHERE id = $1",
        #[cfg(feature = "postgres")]
        DatabaseKind::Postgres => "SELECT id FROM instances WHERE id = $1 FOR SHARE",
    };
    if let Some(own_id) = locks.own_id()
        && connection
            .query_row(find, values![&own_id])
            .await?
            .is_some()
    {
        return Ok(own_id);
    }
    let claim = locks.acquire_new_lock().await?;
    let add = "INSERT INTO instances (id, lock_key, started_at) VALUES ($1, $2, $3)";
    let values = values![&claim.id, claim.lock_key, &now.text];
    connection.execute(add, values).await?;
    Ok(claim.id)
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;

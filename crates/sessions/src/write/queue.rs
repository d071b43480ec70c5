//! The task that writes. It performs everything that is queued in one transaction.

use std::{collections::HashSet, io, sync::Arc, thread, time::Duration};

use async_trait::async_trait;
use switchboard_domain::SessionStoreError;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout},
};

use super::{
    events::{self, AppendEvents},
    transaction::{Now, Transaction},
};
use crate::database::{
    Connection, Database, DatabaseError, DatabaseKind, FailureKind, InstanceLocks, values,
};

/// Maximum number of writes in one transaction. The last one waits for the first.
const MAX_BATCH: usize = 1024;

/// Pauses before retries, in milliseconds, if nothing was written.
///
/// A server that restarts is back after seconds. A run that cannot be stored must end.
const RETRY_PAUSES: [u64; 7] = [0, 100, 400, 1000, 2000, 4000, 6000];

/// Maximum time from the first attempt to the last retry.
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// Why a write was not performed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A rule of the store forbids it.
    Refused(SessionStoreError),
    /// The database failed.
    Failed(DatabaseError),
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Self {
        Self::Failed(error)
    }
}

impl From<SessionStoreError> for Refusal {
    fn from(error: SessionStoreError) -> Self {
        Self::Refused(error)
    }
}

/// A failure of a transaction, for every write in it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}")]
struct BatchFailure {
    error: Arc<DatabaseError>,
    /// Nothing was written, and the same write may succeed later.
    may_pass: bool,
}

impl BatchFailure {
    fn of(self, operation: &'static str) -> SessionStoreError {
        let may_pass = self.may_pass;
        let source = self.into();
        if may_pass {
            SessionStoreError::Unavailable { operation, source }
        } else {
            SessionStoreError::Storage { operation, source }
        }
    }
}

fn store_closed(operation: &'static str) -> SessionStoreError {
    SessionStoreError::Storage {
        operation,
        source: "the store is closed".into(),
    }
}

/// A write. It may be performed again after its first attempt was rolled back.
#[async_trait]
pub(crate) trait Write: Send + Sync + 'static {
    /// The result for the caller.
    type Output: Send + 'static;
    /// The operation in error messages: "failed to …".
    const OPERATION: &'static str;
    /// Whether to perform it if the caller does not wait any more.
    const ALWAYS: bool = false;

    /// Returns which events that are queued before this write must be written before it.
    fn event_order(&self) -> EventOrder<'_> {
        EventOrder::Any
    }

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<Self::Output, Refusal>;
}

/// The queued events that must be written before another write.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EventOrder<'a> {
    Any,
    /// After the events of this run.
    AfterRun(&'a str),
    AfterAll,
}

enum Work {
    Events(Queued<AppendEvents>),
    Other(Box<dyn Job>),
    /// Ends the task.
    End(oneshot::Sender<()>),
}

impl Work {
    fn is_done(&self) -> bool {
        match self {
            Self::Events(job) => job.is_done(),
            Self::Other(job) => job.is_done(),
            Self::End(_) => true,
        }
    }
}

struct Queued<W: Write> {
    write: W,
    outcome: Option<Result<W::Output, SessionStoreError>>,
    reply: oneshot::Sender<Result<W::Output, SessionStoreError>>,
}

#[async_trait]
trait Job: Send {
    fn is_abandoned(&self) -> bool;
    fn event_order(&self) -> EventOrder<'_>;
    fn is_done(&self) -> bool;
    /// Performs the write and stores its outcome. An error is a failure of the whole transaction.
    ///
    /// A write that is alone has no savepoint: the caller rolls the transaction back.
    async fn apply(
        &mut self,
        tx: &mut Transaction<'_>,
        is_alone: bool,
    ) -> Result<(), Arc<DatabaseError>>;
    fn answer(self: Box<Self>, failure: Option<BatchFailure>);
}

impl<W: Write> Queued<W> {
    fn settle(self, failure: Option<BatchFailure>) {
        let outcome = match (failure, self.outcome) {
            (Some(failure), _) => Err(failure.of(W::OPERATION)),
            (None, Some(outcome)) => outcome,
            (None, None) => Err(store_closed(W::OPERATION)),
        };
        // The caller may have stopped waiting.
        let _ = self.reply.send(outcome);
    }
}

#[async_trait]
impl<W: Write> Job for Queued<W> {
    fn is_abandoned(&self) -> bool {
        !W::ALWAYS && self.reply.is_closed()
    }

    fn event_order(&self) -> EventOrder<'_> {
        self.write.event_order()
    }

    fn is_done(&self) -> bool {
        matches!(self.outcome, Some(Ok(_)))
    }

    async fn apply(
        &mut self,
        tx: &mut Transaction<'_>,
        is_alone: bool,
    ) -> Result<(), Arc<DatabaseError>> {
        if !is_alone {
            tx.connection.run("SAVEPOINT op").await?;
        }
        let refusal = match self.write.apply(tx).await {
            Ok(answer) => {
                if !is_alone {
                    tx.connection.run("RELEASE SAVEPOINT op").await?;
                }
                self.outcome = Some(Ok(answer));
                return Ok(());
            }
            Err(Refusal::Failed(error)) if is_alone || ends_transaction(&error) => {
                return Err(error.into());
            }
            Err(Refusal::Refused(refused)) => refused,
            Err(Refusal::Failed(error)) => {
                let error = Arc::new(error);
                undo_after(tx.connection, &error).await?;
                let may_pass = error.is(FailureKind::Locked);
                let failure = BatchFailure { error, may_pass };
                self.outcome = Some(Err(failure.of(W::OPERATION)));
                return Ok(());
            }
        };
        if !is_alone {
            undo_transaction(tx.connection).await?;
        }
        self.outcome = Some(Err(refusal));
        Ok(())
    }

    fn answer(self: Box<Self>, failure: Option<BatchFailure>) {
        self.settle(failure);
    }
}

/// Returns whether the whole transaction must be performed again.
fn ends_transaction(error: &DatabaseError) -> bool {
    error.is(FailureKind::ConnectionLost) || error.is(FailureKind::Conflict)
}

async fn undo_transaction(connection: &mut dyn Connection) -> Result<(), DatabaseError> {
    connection.run("ROLLBACK TO SAVEPOINT op").await?;
    connection.run("RELEASE SAVEPOINT op").await
}

/// Undoes a write that failed.
///
/// SQLite rolls back the whole transaction on a full disk. Then `failure` is the cause, not the
/// error of this function.
async fn undo_after(
    connection: &mut dyn Connection,
    failure: &Arc<DatabaseError>,
) -> Result<(), Arc<DatabaseError>> {
    undo_transaction(connection).await.map_err(|error| {
        if error.is(FailureKind::ConnectionLost) {
            error.into()
        } else {
            Arc::clone(failure)
        }
    })
}

/// Sends writes to the task.
#[derive(Clone)]
pub(crate) struct Queue(mpsc::UnboundedSender<Work>);

impl Queue {
    /// Waits until a write is committed. The waiting callers bound the queue.
    pub(crate) async fn perform<W: Write>(&self, write: W) -> Result<W::Output, SessionStoreError> {
        self.wait_for_answer::<W>(queue_write(write, |queued| Work::Other(Box::new(queued))))
            .await
    }

    pub(crate) async fn append_events(&self, write: AppendEvents) -> Result<(), SessionStoreError> {
        self.wait_for_answer::<AppendEvents>(queue_write(write, Work::Events))
            .await
    }

    /// Ends the task after the queued writes.
    pub(crate) async fn end_writer(&self) {
        let (reply, ended) = oneshot::channel();
        if self.0.send(Work::End(reply)).is_ok() {
            let _ = ended.await;
        }
    }

    async fn wait_for_answer<W: Write>(
        &self,
        (work, answer): (
            Work,
            oneshot::Receiver<Result<W::Output, SessionStoreError>>,
        ),
    ) -> Result<W::Output, SessionStoreError> {
        self.0.send(work).map_err(|_| store_closed(W::OPERATION))?;
        answer.await.map_err(|_| store_closed(W::OPERATION))?
    }
}

type Answered<W> = oneshot::Receiver<Result<<W as Write>::Output, SessionStoreError>>;

fn queue_write<W: Write>(write: W, work: impl FnOnce(Queued<W>) -> Work) -> (Work, Answered<W>) {
    let (reply, answer) = oneshot::channel();
    let queued = Queued {
        write,
        outcome: None,
        reply,
    };
    (work(queued), answer)
}

pub(crate) struct Writer {
    database: Arc<dyn Database>,
    connection: Option<Box<dyn Connection>>,
    phase: Phase,
}

/// The progress of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing is written.
    Begin,
    /// Some writes are performed and not committed.
    Write,
    /// Only the database knows whether the writes are committed.
    Commit,
}

impl Writer {
    /// Starts the task. It ends with [`Queue::end`] or with the last clone of the queue.
    ///
    /// The task for SQLite has a separate thread, because SQLite blocks.
    pub(crate) fn start(
        database: Arc<dyn Database>,
        connection: Box<dyn Connection>,
    ) -> io::Result<Queue> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let blocks = connection.kind() == DatabaseKind::Sqlite;
        let writer = Self {
            database,
            connection: Some(connection),
            phase: Phase::Begin,
        };
        let work = writer.run_batches(receiver);
        if blocks {
            let runtime = Handle::current();
            let thread = thread::Builder::new().name("sessions".to_owned());
            thread.spawn(move || runtime.block_on(work))?;
        } else {
            tokio::spawn(work);
        }
        Ok(Queue(sender))
    }

    async fn run_batches(mut self, mut queue: mpsc::UnboundedReceiver<Work>) {
        let mut taken = Vec::new();
        let mut end = None;
        while end.is_none() && queue.recv_many(&mut taken, MAX_BATCH).await > 0 {
            let mut batch = Vec::with_capacity(taken.len());
            for work in taken.drain(..) {
                match work {
                    Work::End(reply) => {
                        // Dropping the other senders answers later writes.
                        end = Some(reply);
                        break;
                    }
                    Work::Events(job) if job.is_abandoned() => {}
                    Work::Other(job) if job.is_abandoned() => {}
                    work => batch.push(work),
                }
            }
            if !batch.is_empty() {
                self.perform(batch).await;
            }
        }
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
        if let Some(reply) = end {
            let _ = reply.send(());
        }
    }

    async fn perform(&mut self, mut batch: Vec<Work>) {
        let mut pauses = RETRY_PAUSES.into_iter();
        let started = Instant::now();
        let max_time = self.database.transaction_timeout();
        let failure = loop {
            self.phase = Phase::Begin;
            let attempt = timeout(max_time, self.attempt_batch(&mut batch)).await;
            let attempt = attempt.unwrap_or_else(|_| Err(DatabaseError::timed_out().into()));
            let Err(error) = attempt else {
                break None;
            };
            let lost = error.is(FailureKind::ConnectionLost);
            let rolled_back = match &mut self.connection {
                Some(connection) if !lost => connection.roll_back().await.is_ok(),
                _ => false,
            };
            if !rolled_back {
                // Closing the connection rolls the transaction back.
                self.connection = None;
                self.database.locks().check_soon();
            }
            if self.phase == Phase::Write && !lost && batch.len() > 1 {
                // Performs each write alone: two of them may conflict, or one may fail them all.
                for work in batch {
                    Box::pin(self.perform(vec![work])).await;
                }
                return;
            }
            let conflict = error.is(FailureKind::Conflict);
            let may_retry = match self.phase {
                Phase::Begin => lost || error.is(FailureKind::Overloaded),
                Phase::Write => lost || conflict,
                // After a lost connection, it is unknown whether the writes are committed.
                Phase::Commit => conflict,
            };
            let pause = pauses.next();
            let Some(pause) = pause.filter(|_| may_retry && started.elapsed() < RETRY_TIMEOUT)
            else {
                // A lock is refused before the first write, or the transaction is rolled back.
                let may_pass =
                    error.is(FailureKind::Locked) || (may_retry && self.phase == Phase::Begin);
                break Some(BatchFailure { error, may_pass });
            };
            sleep(Duration::from_millis(pause)).await;
        };
        for work in batch {
            match work {
                Work::Events(job) => job.settle(failure.clone()),
                Work::Other(job) => job.answer(failure.clone()),
                Work::End(_) => {}
            }
        }
    }

    async fn attempt_batch(&mut self, batch: &mut [Work]) -> Result<(), Arc<DatabaseError>> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            missing => missing.insert(self.database.connect().await?),
        };
        let connection = &mut **connection;
        let locks = self.database.locks();
        connection.begin().await?;
        let now = Now::read();
        let own_id = claim_instance(connection, locks, &now).await?;
        self.phase = Phase::Write;
        let mut removed_instances = Vec::new();
        let mut tx = Transaction {
            connection,
            locks,
            own_id: &own_id,
            now: &now,
            removed_instances: &mut removed_instances,
        };
        let is_alone = batch.len() == 1;
        apply(&mut tx, batch, is_alone).await?;
        if is_alone && !batch.iter().all(Work::is_done) {
            connection.run("ROLLBACK").await?;
            return Ok(());
        }
        self.phase = Phase::Commit;
        connection.run("COMMIT").await?;
        for id in removed_instances {
            locks.sweep(&id);
        }
        Ok(())
    }
}

/// Returns the id of this instance, whose row stays until the end of the transaction.
///
/// Creates the row at the first call and after another instance has removed it.
async fn claim_instance(
    connection: &mut dyn Connection,
    locks: &dyn InstanceLocks,
    now: &Now,
) -> Result<String, DatabaseError> {
    let find = match connection.kind() {
        // No other process writes at the same time.
        DatabaseKind::Sqlite => "SELECT id FROM instances WHERE id = $1",
        #[cfg(feature = "postgres")]
        DatabaseKind::Postgres => "SELECT id FROM instances WHERE id = $1 FOR SHARE",
    };
    if let Some(own_id) = locks.own_id()
        && connection.row(find, values![&own_id]).await?.is_some()
    {
        return Ok(own_id);
    }
    let claim = locks.claim().await?;
    let add = "INSERT INTO instances (id, lock_key, started_at) VALUES ($1, $2, $3)";
    let values = values![&claim.id, claim.lock_key, &now.text];
    connection.execute(add, values).await?;
    Ok(claim.id)
}

async fn apply(
    tx: &mut Transaction<'_>,
    batch: &mut [Work],
    is_alone: bool,
) -> Result<(), Arc<DatabaseError>> {
    // Events of different runs are independent, so they are written together.
    let mut pending: Vec<&mut Queued<AppendEvents>> = Vec::new();
    let mut runs: HashSet<Arc<str>> = HashSet::new();
    for work in batch {
        match work {
            Work::Events(job) => {
                // The second append of a run needs the first one.
                if !runs.insert(Arc::clone(&job.write.run)) {
                    flush_events(tx, &mut pending, is_alone).await?;
                    runs.clear();
                    runs.insert(Arc::clone(&job.write.run));
                }
                pending.push(job);
            }
            Work::Other(job) => {
                let events_first = match job.event_order() {
                    EventOrder::Any => false,
                    EventOrder::AfterRun(run) => runs.contains(run),
                    EventOrder::AfterAll => true,
                };
                if events_first {
                    flush_events(tx, &mut pending, is_alone).await?;
                    runs.clear();
                }
                job.apply(tx, is_alone).await?;
            }
            Work::End(_) => {}
        }
    }
    flush_events(tx, &mut pending, is_alone).await
}

async fn flush_events(
    tx: &mut Transaction<'_>,
    pending: &mut Vec<&mut Queued<AppendEvents>>,
    is_alone: bool,
) -> Result<(), Arc<DatabaseError>> {
    let mut left = std::mem::take(pending);
    for jobs in left.chunks_mut(events::MAX_APPENDS) {
        if jobs.len() > 1 && apply_together(tx, jobs).await? {
            for job in jobs {
                job.outcome = Some(Ok(()));
            }
        } else {
            // One of them is refused, or there is only one.
            for job in jobs {
                job.apply(tx, is_alone).await?;
            }
        }
    }
    Ok(())
}

/// Writes all appends with one statement and returns whether that succeeded.
async fn apply_together(
    tx: &mut Transaction<'_>,
    jobs: &[&mut Queued<AppendEvents>],
) -> Result<bool, Arc<DatabaseError>> {
    tx.connection.run("SAVEPOINT op").await?;
    let appends = jobs.iter().map(|job| &job.write);
    let written = events::append(tx, appends).await;
    match written {
        Ok(rows) if rows == jobs.len() as u64 => {
            tx.connection.run("RELEASE SAVEPOINT op").await?;
            Ok(true)
        }
        Err(error) if ends_transaction(&error) => Err(error.into()),
        Err(error) => {
            undo_after(tx.connection, &Arc::new(error)).await?;
            Ok(false)
        }
        Ok(_) => {
            undo_transaction(tx.connection).await?;
            Ok(false)
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;

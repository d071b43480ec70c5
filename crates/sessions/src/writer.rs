//! The one task of a store that writes: it takes everything that is queued and does it in one transaction.

use std::{collections::HashSet, io, sync::Arc, thread, time::Duration};

use async_trait::async_trait;
use switchboard_domain::SessionStoreError;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    time::{Instant, sleep},
};

use crate::{
    database::{Connection, collided, connection_lost, is_locked, may_pass, values, within},
    error::{Closed, Refusal, Shared, storage},
    instance::Liveness,
    place::Place,
    transaction::{Now, Transaction},
    write::events::{self, AppendEvents},
};

/// The most operations of one transaction: the last of them waits for the first.
const MOST: usize = 1024;

/// How long it is waited before the same is tried again, in milliseconds, where it is known that nothing was done:
/// a server that is started again is back after seconds, and a run that cannot be stored must end.
const PAUSES: [u64; 7] = [0, 100, 400, 1000, 2000, 4000, 6000];

/// How long after the first time it is tried again, if it took its time to fail.
const AGAIN_WITHIN: Duration = Duration::from_secs(15);

/// Something to write. It may be done more than once: what was done before is undone then.
#[async_trait]
pub(crate) trait Write: Send + Sync + 'static {
    /// What the caller gets.
    type Answer: Send + 'static;
    /// For errors: "failed to …".
    const WHAT: &'static str;
    /// Whether it is done also when nobody waits for it any more.
    const ALWAYS: bool = false;

    /// Which events that were queued before must be written before.
    fn follows_events(&self) -> Follows<'_> {
        Follows::None
    }

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<Self::Answer, Refusal>;
}

/// The events that something else must not overtake.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Follows<'a> {
    None,
    /// Those of this run.
    Run(&'a str),
    All,
}

/// What a transaction begins with once the caller is known.
pub(crate) enum Work {
    Events(Queued<AppendEvents>),
    Other(Box<dyn Job>),
    /// The last one.
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

pub(crate) struct Queued<W: Write> {
    pub(crate) write: W,
    outcome: Option<Result<W::Answer, SessionStoreError>>,
    reply: oneshot::Sender<Result<W::Answer, SessionStoreError>>,
}

#[async_trait]
pub(crate) trait Job: Send {
    fn is_abandoned(&self) -> bool;
    fn follows_events(&self) -> Follows<'_>;
    /// Whether it was done; if not, it knows why.
    fn is_done(&self) -> bool;
    /// Does it, and remembers how that went. An error is one of the whole transaction. Whoever is alone in one is not
    /// undone if it fails: all of the transaction is to be.
    async fn apply(
        &mut self,
        tx: &mut Transaction<'_>,
        is_alone: bool,
    ) -> Result<(), Arc<sqlx::Error>>;
    fn answer(self: Box<Self>, failure: Option<Shared>);
}

impl<W: Write> Queued<W> {
    fn settle(self, failure: Option<Shared>) {
        let outcome = match (failure, self.outcome) {
            (Some(failure), _) => Err(failure.of(W::WHAT)),
            (None, Some(outcome)) => outcome,
            (None, None) => Err(storage(W::WHAT, Closed)),
        };
        // Whoever does not wait any more does not want to know.
        let _ = self.reply.send(outcome);
    }
}

#[async_trait]
impl<W: Write> Job for Queued<W> {
    fn is_abandoned(&self) -> bool {
        !W::ALWAYS && self.reply.is_closed()
    }

    fn follows_events(&self) -> Follows<'_> {
        self.write.follows_events()
    }

    fn is_done(&self) -> bool {
        matches!(self.outcome, Some(Ok(_)))
    }

    async fn apply(
        &mut self,
        tx: &mut Transaction<'_>,
        is_alone: bool,
    ) -> Result<(), Arc<sqlx::Error>> {
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
            Err(Refusal::Failed(error))
                if is_alone || connection_lost(&error) || collided(&error) =>
            {
                return Err(error.into());
            }
            Err(Refusal::Refused(refused)) => refused,
            Err(Refusal::Failed(error)) => {
                let error = Arc::new(error);
                undo_after(tx.connection, &error).await?;
                let may_pass = is_locked(&error);
                self.outcome = Some(Err(Shared { error, may_pass }.of(W::WHAT)));
                return Ok(());
            }
        };
        if !is_alone {
            undo(tx.connection).await?;
        }
        self.outcome = Some(Err(refusal));
        Ok(())
    }

    fn answer(self: Box<Self>, failure: Option<Shared>) {
        self.settle(failure);
    }
}

async fn undo(connection: &mut Connection) -> Result<(), sqlx::Error> {
    connection.run("ROLLBACK TO SAVEPOINT op").await?;
    connection.run("RELEASE SAVEPOINT op").await
}

/// Undoes an operation that failed. A database that has undone the whole transaction by itself (SQLite on a full
/// disk) said why in that failure, and not in this one.
async fn undo_after(
    connection: &mut Connection,
    failure: &Arc<sqlx::Error>,
) -> Result<(), Arc<sqlx::Error>> {
    undo(connection).await.map_err(|error| {
        if connection_lost(&error) {
            error.into()
        } else {
            Arc::clone(failure)
        }
    })
}

/// The way to the writer.
#[derive(Clone)]
pub(crate) struct Queue(mpsc::UnboundedSender<Work>);

impl Queue {
    /// Waits until it is committed. Who waits is who bounds the queue.
    pub(crate) async fn perform<W: Write>(&self, write: W) -> Result<W::Answer, SessionStoreError> {
        self.wait::<W>(queued(write, |queued| Work::Other(Box::new(queued))))
            .await
    }

    pub(crate) async fn append_events(&self, write: AppendEvents) -> Result<(), SessionStoreError> {
        self.wait::<AppendEvents>(queued(write, Work::Events)).await
    }

    /// Does not wait.
    pub(crate) fn send<W: Write>(&self, write: W) {
        let (work, _) = queued(write, |queued| Work::Other(Box::new(queued)));
        // A closed store has let go of everything.
        let _ = self.0.send(work);
    }

    /// Ends the writer after what is queued.
    pub(crate) async fn end(&self) {
        let (reply, ended) = oneshot::channel();
        if self.0.send(Work::End(reply)).is_ok() {
            let _ = ended.await;
        }
    }

    async fn wait<W: Write>(
        &self,
        (work, answer): (
            Work,
            oneshot::Receiver<Result<W::Answer, SessionStoreError>>,
        ),
    ) -> Result<W::Answer, SessionStoreError> {
        self.0.send(work).map_err(|_| storage(W::WHAT, Closed))?;
        answer.await.map_err(|_| storage(W::WHAT, Closed))?
    }
}

type Answered<W> = oneshot::Receiver<Result<<W as Write>::Answer, SessionStoreError>>;

fn queued<W: Write>(write: W, work: impl FnOnce(Queued<W>) -> Work) -> (Work, Answered<W>) {
    let (reply, answer) = oneshot::channel();
    let queued = Queued {
        write,
        outcome: None,
        reply,
    };
    (work(queued), answer)
}

pub(crate) struct Writer {
    place: Place,
    liveness: Arc<Liveness>,
    connection: Option<Connection>,
    phase: Phase,
}

/// How far a transaction has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It has no connection, or nothing but itself.
    Beginning,
    /// Something of it is done.
    AtWork,
    /// Whether it is done is the database's to know.
    Committing,
}

impl Writer {
    /// Starts the task, which ends with [`Queue::end`] or the last clone of the queue. A file blocks whoever works with
    /// it, so that its writer has a thread of its own.
    pub(crate) fn start(
        place: Place,
        liveness: Arc<Liveness>,
        connection: Connection,
    ) -> io::Result<Queue> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let blocks = matches!(connection, Connection::Sqlite(_));
        let writer = Self {
            place,
            liveness,
            connection: Some(connection),
            phase: Phase::Beginning,
        };
        let work = writer.work(receiver);
        if blocks {
            let runtime = Handle::current();
            let thread = thread::Builder::new().name("sessions".to_owned());
            thread.spawn(move || runtime.block_on(work))?;
        } else {
            tokio::spawn(work);
        }
        Ok(Queue(sender))
    }

    async fn work(mut self, mut queue: mpsc::UnboundedReceiver<Work>) {
        let mut taken = Vec::new();
        let mut end = None;
        while end.is_none() && queue.recv_many(&mut taken, MOST).await > 0 {
            let mut batch = Vec::with_capacity(taken.len());
            for work in taken.drain(..) {
                match work {
                    Work::End(reply) => {
                        // What came after it is told so by its reply's end.
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
        let mut pauses = PAUSES.into_iter();
        let begun = Instant::now();
        let patience = self.place.patience();
        let failure = loop {
            self.phase = Phase::Beginning;
            let Err(error) = within_shared(patience, self.attempt(&mut batch)).await else {
                break None;
            };
            let lost = connection_lost(&error);
            let rolled_back = match &mut self.connection {
                Some(connection) if !lost => connection.roll_back().await.is_ok(),
                _ => false,
            };
            if !rolled_back {
                // Whatever state it is in, closing it undoes what was not committed.
                self.connection = None;
                self.liveness.doubt();
            }
            if self.phase == Phase::AtWork && !lost && batch.len() > 1 {
                // Two that stood in each other's way, or one that took all with it. Each for itself holds few
                // locks, and those not for long.
                for work in batch {
                    Box::pin(self.perform(vec![work])).await;
                }
                return;
            }
            let may_do = match self.phase {
                Phase::Beginning => lost || may_pass(&error),
                Phase::AtWork => lost || collided(&error),
                // A connection that is lost just then does not tell whether it was done.
                Phase::Committing => collided(&error),
            };
            let pause = pauses.next();
            let Some(pause) = pause.filter(|_| may_do && begun.elapsed() < AGAIN_WITHIN) else {
                // A lock is refused before anything is done, or undone with its transaction.
                let may_pass = is_locked(&error) || (may_do && self.phase == Phase::Beginning);
                break Some(Shared { error, may_pass });
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

    async fn attempt(&mut self, batch: &mut [Work]) -> Result<(), Arc<sqlx::Error>> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            missing => missing.insert(self.place.connect().await?),
        };
        connection.run(self.place.begin()).await?;
        let now = Now::read();
        let me = identify(connection, &self.liveness, &now).await?;
        self.phase = Phase::AtWork;
        let mut removed = Vec::new();
        let mut tx = Transaction {
            connection,
            liveness: &self.liveness,
            me: &me,
            now: &now,
            removed: &mut removed,
        };
        let is_alone = batch.len() == 1;
        apply(&mut tx, batch, is_alone).await?;
        if is_alone && !batch.iter().all(Work::is_done) {
            connection.run("ROLLBACK").await?;
            return Ok(());
        }
        self.phase = Phase::Committing;
        connection.run("COMMIT").await?;
        for id in removed {
            self.liveness.sweep(&id);
        }
        Ok(())
    }
}

async fn within_shared(
    patience: Duration,
    work: impl Future<Output = Result<(), Arc<sqlx::Error>>>,
) -> Result<(), Arc<sqlx::Error>> {
    // An outcome of its own within the time, or none.
    within(patience, async { Ok(work.await) }).await?
}

/// The row of this instance, which others can only remove before or after this transaction. It is made where
/// there is none: at first, and after others took this instance for dead.
async fn identify(
    connection: &mut Connection,
    liveness: &Liveness,
    now: &Now,
) -> Result<String, sqlx::Error> {
    let find = match connection {
        // Nobody else writes at the same time.
        Connection::Sqlite(_) => "SELECT id FROM instances WHERE id = $1",
        Connection::Postgres(..) => "SELECT id FROM instances WHERE id = $1 FOR SHARE",
    };
    if let Some(me) = liveness.me()
        && connection.row(find, values![&me]).await?.is_some()
    {
        return Ok(me);
    }
    let claim = liveness.claim().await?;
    let add = "INSERT INTO instances (id, lock_key, began_at) VALUES ($1, $2, $3)";
    let values = values![&claim.id, claim.lock_key, &now.text];
    connection.execute(add, values).await?;
    Ok(claim.id)
}

async fn apply(
    tx: &mut Transaction<'_>,
    batch: &mut [Work],
    is_alone: bool,
) -> Result<(), Arc<sqlx::Error>> {
    // Events of different runs have nothing to do with each other: they are written together.
    let mut pending: Vec<&mut Queued<AppendEvents>> = Vec::new();
    let mut runs: HashSet<Arc<str>> = HashSet::new();
    for work in batch {
        match work {
            Work::Events(job) => {
                // The second append of a run follows upon the first.
                if !runs.insert(Arc::clone(&job.write.run)) {
                    flush(tx, &mut pending, is_alone).await?;
                    runs.clear();
                    runs.insert(Arc::clone(&job.write.run));
                }
                pending.push(job);
            }
            Work::Other(job) => {
                let follows = match job.follows_events() {
                    Follows::None => false,
                    Follows::Run(run) => runs.contains(run),
                    Follows::All => true,
                };
                if follows {
                    flush(tx, &mut pending, is_alone).await?;
                    runs.clear();
                }
                job.apply(tx, is_alone).await?;
            }
            Work::End(_) => {}
        }
    }
    flush(tx, &mut pending, is_alone).await
}

async fn flush(
    tx: &mut Transaction<'_>,
    pending: &mut Vec<&mut Queued<AppendEvents>>,
    is_alone: bool,
) -> Result<(), Arc<sqlx::Error>> {
    let mut left = std::mem::take(pending);
    for jobs in left.chunks_mut(events::MOST) {
        if jobs.len() > 1 && together(tx, jobs).await? {
            for job in jobs {
                job.outcome = Some(Ok(()));
            }
        } else {
            // One of them does not fit, or there is only one.
            for job in jobs {
                job.apply(tx, is_alone).await?;
            }
        }
    }
    Ok(())
}

/// Whether all of them could be written.
async fn together(
    tx: &mut Transaction<'_>,
    jobs: &[&mut Queued<AppendEvents>],
) -> Result<bool, Arc<sqlx::Error>> {
    tx.connection.run("SAVEPOINT op").await?;
    let appends = jobs.iter().map(|job| &job.write);
    let written = events::append(tx, appends).await;
    match written {
        Ok(rows) if rows == jobs.len() as u64 => {
            tx.connection.run("RELEASE SAVEPOINT op").await?;
            Ok(true)
        }
        Err(error) if connection_lost(&error) || collided(&error) => Err(error.into()),
        Err(error) => {
            undo_after(tx.connection, &Arc::new(error)).await?;
            Ok(false)
        }
        Ok(_) => {
            undo(tx.connection).await?;
            Ok(false)
        }
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;

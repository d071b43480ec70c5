//! The store: both ports on one database.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use switchboard_domain::{
    AuditEntry, IdKey, Message, Principal, RunRecord, RunSnapshot, RunState, RunStore, Session,
    SessionId, SessionStore, SessionStoreError, StoredEvent,
};
use tokio::{runtime::Handle, task::spawn_blocking};

use crate::{
    OpenError, StoreOptions,
    database::{Connection, has_nul},
    depth,
    instance::Liveness,
    long_read::LongRead,
    place::{BUSY, BUSY_WITH_TABLES, Place, make_private},
    read::Reader,
    schema,
    transaction::texts,
    wish,
    write::{
        events::AppendEvents,
        instance::{Bury, Leave, Ping},
        ledger::{Audit, Before, KeepDecisions},
        run::{Begin, BeginSession, Release, Save, Take},
        secret::MakeIdKey,
        session::{Append, Create, Delete, Rename},
    },
    writer::{Queue, Writer},
};

/// Sessions and runs in a database. A clone is the same store.
///
/// When the last clone is dropped without [`close`](Self::close), it is as if the process had been killed: what was
/// acknowledged is there, and the runs that it had are interrupted.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    place: Place,
    reader: Reader,
    liveness: Arc<Liveness>,
    queue: Queue,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.liveness.release();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Store");
        match &self.inner.place {
            Place::Sqlite { path, .. } => debug.field("sqlite", path),
            Place::Postgres { .. } => debug.field("postgres", &"[secret]"),
        };
        debug.finish_non_exhaustive()
    }
}

impl Store {
    /// Opens a store, which is made or brought up to date where that is needed. Runs of processes that are gone
    /// are interrupted from now on.
    ///
    /// # Errors
    /// See [`OpenError`]. Must be called within a tokio runtime.
    pub async fn open(options: StoreOptions) -> Result<Self, OpenError> {
        Self::open_at(Place::new(&options)?).await
    }

    pub(crate) async fn open_at(place: Place) -> Result<Self, OpenError> {
        if let Place::Sqlite { path, .. } = &place {
            make_private(path)?;
        }
        let connection = match &place {
            Place::Sqlite { .. } => {
                let (place, runtime) = (place.clone(), Handle::current());
                let prepared = spawn_blocking(move || runtime.block_on(prepare(&place)));
                prepared.await.map_err(cannot_open)??
            }
            Place::Postgres { .. } => prepare(&place).await?,
        };
        let liveness = Arc::new(Liveness::new(&place));
        let readers = place.readers();
        let queue = Writer::start(place.clone(), Arc::clone(&liveness), connection);
        let queue = queue.map_err(cannot_open)?;
        let reader = Reader {
            readers,
            liveness: Arc::clone(&liveness),
        };
        let inner = Inner {
            place,
            reader,
            liveness,
            queue,
        };
        inner.queue.perform(Bury).await.map_err(cannot_open)?;
        inner.liveness.sweep_all();
        let inner = Arc::new(inner);
        Ok(Self { inner })
    }

    /// Writes what is queued and lets go of the database. Runs that this store still has are interrupted. Whatever
    /// is asked of it or its clones afterwards fails.
    pub async fn close(&self) {
        // If that fails, this instance will be found dead.
        let _ = self.inner.queue.perform(Leave).await;
        self.inner.queue.end().await;
        self.inner.liveness.release();
        self.inner.reader.readers.close().await;
    }

    /// What was decided about tools for good: whatever was kept.
    pub async fn decisions(&self, owner: &Principal) -> Result<Option<String>, SessionStoreError> {
        self.inner.reader.decisions(owner).await
    }

    /// Keeps what was decided, in place of what there is.
    pub async fn keep_decisions(
        &self,
        owner: &Principal,
        json: &str,
    ) -> Result<(), SessionStoreError> {
        self.decide(owner, Before::Anything, json).await.map(|_| ())
    }

    /// Keeps what was decided if what there is still is `before`, and says whether it did.
    pub async fn replace_decisions(
        &self,
        owner: &Principal,
        before: Option<&str>,
        json: &str,
    ) -> Result<bool, SessionStoreError> {
        let before = before.map_or(Before::Nothing, |before| Before::Exactly(before.to_owned()));
        self.decide(owner, before, json).await
    }

    async fn decide(
        &self,
        owner: &Principal,
        before: Before,
        json: &str,
    ) -> Result<bool, SessionStoreError> {
        let write = KeepDecisions {
            owner: owner.clone(),
            json: json.to_owned(),
            before,
        };
        self.inner.queue.perform(write).await
    }

    /// The newest entries of a principal's audit, newest first.
    pub async fn audit_of(
        &self,
        owner: &Principal,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, SessionStoreError> {
        self.inner.reader.audit(owner, limit).await
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.inner.queue
    }

    /// Sees the store as it is now.
    pub(crate) async fn long_read(&self) -> Result<LongRead, sqlx::Error> {
        self.inner.place.long_read().await
    }
}

/// No run has an id that cannot be stored.
fn can_be_there(run: &str) -> Result<(), SessionStoreError> {
    if has_nul(run) {
        return Err(SessionStoreError::NoSuchRun { run: run.into() });
    }
    Ok(())
}

/// A connection that writes, to a store that is up to date.
async fn prepare(place: &Place) -> Result<Connection, OpenError> {
    let mut connection = place.connect().await.map_err(cannot_open)?;
    if let Connection::Sqlite(file) = &connection {
        file.wait_for_lock(BUSY_WITH_TABLES).map_err(cannot_open)?;
    }
    schema::update(&mut connection).await?;
    if let Connection::Sqlite(file) = &connection {
        file.wait_for_lock(BUSY).map_err(cannot_open)?;
    }
    Ok(connection)
}

fn cannot_open(source: impl std::error::Error + Send + Sync + 'static) -> OpenError {
    OpenError::Database {
        source: source.into(),
    }
}

#[async_trait]
impl SessionStore for Store {
    async fn create(&self, owner: &Principal, session: &Session) -> Result<(), SessionStoreError> {
        let write = Create {
            owner: owner.clone(),
            session: session.clone(),
        };
        self.inner.queue.perform(write).await
    }

    async fn get(
        &self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<Option<Session>, SessionStoreError> {
        self.inner.reader.session(owner, id).await
    }

    async fn list(&self, owner: &Principal, limit: u32) -> Result<Vec<Session>, SessionStoreError> {
        self.inner.reader.sessions(owner, limit).await
    }

    async fn messages(
        &self,
        owner: &Principal,
        id: &SessionId,
        from: u64,
    ) -> Result<Vec<Arc<Message>>, SessionStoreError> {
        self.inner.reader.messages(owner, id, from).await
    }

    async fn append(
        &self,
        owner: &Principal,
        id: &SessionId,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<u64, SessionStoreError> {
        let write = Append {
            owner: owner.clone(),
            id: id.clone(),
            after,
            messages: texts("append messages", messages)?,
        };
        self.inner.queue.perform(write).await
    }

    async fn rename(
        &self,
        owner: &Principal,
        id: &SessionId,
        title: &str,
    ) -> Result<(), SessionStoreError> {
        let write = Rename {
            owner: owner.clone(),
            id: id.clone(),
            title: title.to_owned(),
        };
        self.inner.queue.perform(write).await
    }

    async fn delete(&self, owner: &Principal, id: &SessionId) -> Result<(), SessionStoreError> {
        let write = Delete {
            owner: owner.clone(),
            id: id.clone(),
        };
        self.inner.queue.perform(write).await
    }

    async fn id_key(&self) -> Result<IdKey, SessionStoreError> {
        if let Some(key) = self.inner.reader.id_key().await? {
            return Ok(key);
        }
        self.inner.queue.perform(MakeIdKey).await
    }

    async fn ping(&self) -> Result<(), SessionStoreError> {
        self.inner.reader.ping().await?;
        self.inner.queue.perform(Ping).await
    }
}

#[async_trait]
impl RunStore for Store {
    async fn begin(
        &self,
        owner: &Principal,
        run: &RunRecord,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<RunRecord, SessionStoreError> {
        // Behind everything that was said, nothing is set aside.
        self.begin_again(owner, run, after, after, messages).await
    }

    async fn begin_session(
        &self,
        owner: &Principal,
        session: &Session,
        run: &RunRecord,
        messages: &[Arc<Message>],
    ) -> Result<RunRecord, SessionStoreError> {
        let write = BeginSession {
            owner: owner.clone(),
            session: session.clone(),
            run: run.clone(),
            wish: wish::text(run.wish.as_ref())?,
            messages: texts("begin a run", messages)?,
        };
        self.inner.queue.perform(write).await
    }

    async fn begin_again(
        &self,
        owner: &Principal,
        run: &RunRecord,
        keep: u64,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<RunRecord, SessionStoreError> {
        let write = Begin {
            owner: owner.clone(),
            run: run.clone(),
            wish: wish::text(run.wish.as_ref())?,
            keep,
            after,
            messages: texts("begin a run", messages)?,
        };
        self.inner.queue.perform(write).await
    }

    async fn take(&self, owner: &Principal, run: &str) -> Result<RunRecord, SessionStoreError> {
        can_be_there(run)?;
        let write = Take {
            owner: owner.clone(),
            run: run.to_owned(),
        };
        self.inner.queue.perform(write).await
    }

    async fn append_events(
        &self,
        run: &str,
        events: &[StoredEvent],
    ) -> Result<(), SessionStoreError> {
        can_be_there(run)?;
        match AppendEvents::new(run, events)? {
            Some(write) => self.inner.queue.append_events(write).await,
            None => Ok(()),
        }
    }

    async fn events(
        &self,
        owner: &Principal,
        run: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, SessionStoreError> {
        self.inner.reader.events(owner, run, after, limit).await
    }

    async fn save_with(
        &self,
        run: &str,
        events: &[StoredEvent],
        snapshot: &RunSnapshot,
    ) -> Result<(), SessionStoreError> {
        can_be_there(run)?;
        depth::check("the state of a run", &snapshot.state)?;
        let write = Save {
            run: run.to_owned(),
            events: AppendEvents::new(run, events)?,
            state: Arc::clone(&snapshot.state),
            from: snapshot.from,
            messages: texts("store the state of a run", &snapshot.messages)?,
        };
        self.inner.queue.perform(write).await
    }

    async fn snapshot(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunSnapshot>, SessionStoreError> {
        self.inner.reader.snapshot(owner, run).await
    }

    async fn release_with(
        &self,
        run: &str,
        events: &[StoredEvent],
        state: RunState,
        outcome: Option<String>,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<(), SessionStoreError> {
        can_be_there(run)?;
        let write = Release {
            run: run.to_owned(),
            events: AppendEvents::new(run, events)?,
            state,
            outcome,
            after,
            messages: texts("let go of a run", messages)?,
        };
        self.inner.queue.perform(write).await
    }

    async fn run(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunRecord>, SessionStoreError> {
        self.inner.reader.run(owner, run).await
    }

    async fn runs<'s>(
        &self,
        owner: &Principal,
        session: Option<&'s SessionId>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, SessionStoreError> {
        self.inner.reader.runs(owner, session, limit).await
    }

    async fn audit(
        &self,
        owner: &Principal,
        entries: &[AuditEntry],
    ) -> Result<(), SessionStoreError> {
        let write = Audit {
            owner: owner.clone(),
            entries: entries.to_vec(),
        };
        self.inner.queue.perform(write).await
    }
}

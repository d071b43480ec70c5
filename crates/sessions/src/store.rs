//! The store: the ports of sessions and runs on one database.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use switchboard_domain::{
    AuditEntry, IdKey, Message, Principal, RunRecord, RunSnapshot, RunState, RunStore, Session,
    SessionId, SessionStore, SessionStoreError, StoredEvent,
};
use tokio::{runtime::Handle, task::spawn_blocking};

use crate::{
    OpenError, StoreOptions,
    database::{self, Connection, Database, DatabaseError, has_nul, schema, sqlite},
    limits::{check_nesting, message_texts, parameters_text},
    read::Reader,
    write::{
        events::AppendEvents,
        instance::{Ping, RemoveDeadInstances, RemoveOwnInstance},
        ledger::{AppendAudit, ExpectedDecisions, StoreDecisions},
        queue::{Queue, Writer},
        run::{Begin, BeginSession, Release, Save, Take},
        secret::CreateIdKey,
        session::{Append, Create, Delete, Rename},
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
    reader: Reader,
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
        let reader = Reader {
            database: Arc::clone(&database),
        };
        let inner = Arc::new(Inner {
            database,
            reader,
            queue,
        });
        let removed = inner.queue.perform(RemoveDeadInstances).await;
        removed.map_err(cannot_open)?;
        inner.database.locks().sweep_all();
        Ok(Self { inner })
    }

    /// Performs the queued writes and closes the database.
    ///
    /// Interrupts the runs of this store. Later calls of this store and its clones fail.
    pub async fn close(&self) {
        // If this fails, another process finds this instance dead.
        let _ = self.inner.queue.perform(RemoveOwnInstance).await;
        self.inner.queue.end_writer().await;
        self.inner.database.locks().release();
        self.inner.database.close().await;
    }

    /// Returns the permanent decisions about tools of a principal, as they were stored.
    pub async fn decisions(&self, owner: &Principal) -> Result<Option<String>, SessionStoreError> {
        self.inner.reader.load_decisions(owner).await
    }

    /// Stores decisions in place of the existing ones.
    pub async fn keep_decisions(
        &self,
        owner: &Principal,
        json: &str,
    ) -> Result<(), SessionStoreError> {
        let any = ExpectedDecisions::Any;
        self.store_decisions(owner, any, json).await.map(|_| ())
    }

    /// Stores decisions if the existing ones are `before`, and returns whether it did.
    pub async fn replace_decisions(
        &self,
        owner: &Principal,
        before: Option<&str>,
        json: &str,
    ) -> Result<bool, SessionStoreError> {
        let expected = match before {
            Some(before) => ExpectedDecisions::Equal(before.to_owned()),
            None => ExpectedDecisions::Missing,
        };
        self.store_decisions(owner, expected, json).await
    }

    async fn store_decisions(
        &self,
        owner: &Principal,
        expected: ExpectedDecisions,
        json: &str,
    ) -> Result<bool, SessionStoreError> {
        let write = StoreDecisions {
            owner: owner.clone(),
            json: json.to_owned(),
            expected,
        };
        self.inner.queue.perform(write).await
    }

    /// Returns the newest audit entries of a principal, newest first.
    pub async fn audit_of(
        &self,
        owner: &Principal,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, SessionStoreError> {
        self.inner.reader.load_audit(owner, limit).await
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.inner.queue
    }

    /// Opens a connection that reads a snapshot of the store.
    pub(crate) async fn snapshot(&self) -> Result<Box<dyn Connection>, DatabaseError> {
        self.inner.database.snapshot().await
    }
}

/// Refuses an id that no run can have.
fn check_run_id(run: &str) -> Result<(), SessionStoreError> {
    if has_nul(run) {
        return Err(SessionStoreError::NoSuchRun { run: run.into() });
    }
    Ok(())
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
        self.inner.reader.find_session(owner, id).await
    }

    async fn list(&self, owner: &Principal, limit: u32) -> Result<Vec<Session>, SessionStoreError> {
        self.inner.reader.list_sessions(owner, limit).await
    }

    async fn messages(
        &self,
        owner: &Principal,
        id: &SessionId,
        from: u64,
    ) -> Result<Vec<Arc<Message>>, SessionStoreError> {
        self.inner.reader.load_messages(owner, id, from).await
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
            messages: message_texts("append messages", messages)?,
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
        if let Some(key) = self.inner.reader.load_id_key().await? {
            return Ok(key);
        }
        self.inner.queue.perform(CreateIdKey).await
    }

    async fn ping(&self) -> Result<(), SessionStoreError> {
        self.inner.reader.check_reading().await?;
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
        // All existing messages stay.
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
            parameters: parameters_text(run.parameters.as_ref())?,
            messages: message_texts("begin a run", messages)?,
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
            parameters: parameters_text(run.parameters.as_ref())?,
            keep,
            after,
            messages: message_texts("begin a run", messages)?,
        };
        self.inner.queue.perform(write).await
    }

    async fn take(&self, owner: &Principal, run: &str) -> Result<RunRecord, SessionStoreError> {
        check_run_id(run)?;
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
        check_run_id(run)?;
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
        self.inner
            .reader
            .load_events(owner, run, after, limit)
            .await
    }

    async fn save_with(
        &self,
        run: &str,
        events: &[StoredEvent],
        snapshot: &RunSnapshot,
    ) -> Result<(), SessionStoreError> {
        check_run_id(run)?;
        check_nesting("the state of a run", &snapshot.state)?;
        let write = Save {
            run: run.to_owned(),
            events: AppendEvents::new(run, events)?,
            state: Arc::clone(&snapshot.state),
            from: snapshot.from,
            messages: message_texts("store the state of a run", &snapshot.messages)?,
        };
        self.inner.queue.perform(write).await
    }

    async fn snapshot(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunSnapshot>, SessionStoreError> {
        self.inner.reader.load_snapshot(owner, run).await
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
        check_run_id(run)?;
        let write = Release {
            run: run.to_owned(),
            events: AppendEvents::new(run, events)?,
            state,
            outcome,
            after,
            messages: message_texts("release a run", messages)?,
        };
        self.inner.queue.perform(write).await
    }

    async fn run(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunRecord>, SessionStoreError> {
        self.inner.reader.find_run(owner, run).await
    }

    async fn runs<'s>(
        &self,
        owner: &Principal,
        session: Option<&'s SessionId>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, SessionStoreError> {
        self.inner.reader.list_runs(owner, session, limit).await
    }

    async fn audit(
        &self,
        owner: &Principal,
        entries: &[AuditEntry],
    ) -> Result<(), SessionStoreError> {
        let write = AppendAudit {
            owner: owner.clone(),
            entries: entries.to_vec(),
        };
        self.inner.queue.perform(write).await
    }
}

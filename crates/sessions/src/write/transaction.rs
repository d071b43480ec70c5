//! The transaction of a write, and the statements that several writes share.

use std::sync::LazyLock;

use jiff::Timestamp;
use switchboard_domain::{
    Principal, RunRecord, Session, SessionId, SessionStoreError, StoredEvent,
};

use super::queue::WriteError;
use crate::{
    database::{Connection, DatabaseError, InstanceLocks, has_nul, values},
    json_limits::{check_json_nesting, serialize_parameters},
    rows::run_state_name,
};

/// The time at which a transaction began.
#[derive(Debug, Clone)]
pub(crate) struct TransactionTime {
    /// Time in RFC 3339 format, UTC, with six decimal places, so that the texts sort by time.
    pub(crate) text: String,
    pub(crate) microseconds: i64,
}

impl TransactionTime {
    pub(crate) fn read_clock() -> Self {
        let now = Timestamp::now();
        Self {
            text: format!("{now:.6}"),
            microseconds: now.as_microsecond(),
        }
    }

    /// Converts an RFC 3339 time to Unix microseconds. An invalid time becomes the current one.
    fn parse_microseconds(&self, time: &str) -> i64 {
        time.parse::<Timestamp>()
            .map_or(self.microseconds, Timestamp::as_microsecond)
    }
}

/// A session whose row is locked until the end of the transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockedSession {
    pub(crate) key: i64,
    pub(crate) messages: u64,
}

/// Pairs of a number of rows and an INSERT statement for as many rows of (key, position, message).
/// The largest number is first, so that many messages need few statements.
type MessageInserts = LazyLock<[(usize, String); 4]>;

/// Statements that insert messages into a session.
pub(crate) static SESSION_MESSAGES: MessageInserts =
    LazyLock::new(|| message_insert_sql("messages (session"));
/// Statements that insert messages into the conversation of a run.
pub(crate) static RUN_MESSAGES: MessageInserts =
    LazyLock::new(|| message_insert_sql("run_messages (run"));

fn message_insert_sql(table_and_key: &str) -> [(usize, String); 4] {
    [256, 64, 8, 1].map(|count| {
        let row = |at: usize| format!("(${}, ${}, ${})", 3 * at + 1, 3 * at + 2, 3 * at + 3);
        let rows: Vec<String> = (0..count).map(row).collect();
        let rows = rows.join(", ");
        let insert = format!("INSERT INTO {table_and_key}, position, message) VALUES {rows}");
        (count, insert)
    })
}

/// The events of one append call, which are stored as one row.
pub(crate) struct EventRow {
    run: String,
    first: u64,
    last: u64,
    /// One JSON event per line. Line ends within an event are replaced by spaces.
    lines: String,
}

impl EventRow {
    /// Creates the row. Returns `None` if `events` is empty. Fails if the event numbers have gaps
    /// or an event is nested too deeply.
    pub(crate) fn new(
        run: &str,
        events: &[StoredEvent],
    ) -> Result<Option<Self>, SessionStoreError> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return Ok(None);
        };
        let mut numbered = events.iter().zip(first.seq..);
        if !numbered.all(|(event, seq)| event.seq == seq) {
            return Err(run_conflict(run, "the numbers of the events have gaps"));
        }
        for event in events {
            check_json_nesting("an event", &event.json)?;
        }
        let lines = events.iter().map(|it| it.json.replace(['\n', '\r'], " "));
        Ok(Some(Self {
            run: run.to_owned(),
            first: first.seq,
            last: last.seq,
            lines: lines.collect::<Vec<_>>().join("\n"),
        }))
    }
}

/// The current transaction of the writer thread. Queued writes use it one after another.
pub(crate) struct Transaction<'a> {
    pub(crate) connection: &'a mut dyn Connection,
    pub(crate) locks: &'a dyn InstanceLocks,
    /// The id of the instance (open store) that performs the transaction.
    pub(crate) own_id: &'a str,
    pub(crate) now: &'a TransactionTime,
    /// Ids of the instances that this transaction has removed. Their lock files are removed after
    /// the commit.
    pub(crate) removed_instances: &'a mut Vec<String>,
}

impl Transaction<'_> {
    /// Inserts a session with the message count `messages`, and returns its row key.
    pub(crate) async fn create_session(
        &mut self,
        owner: &Principal,
        session: &Session,
        messages: usize,
    ) -> Result<i64, WriteError> {
        const ADD: &str = "INSERT INTO sessions
            (id, tenant, person, title, created_at, created_us, used_us, messages)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING RETURNING key";
        let values = values![
            &session.id.0,
            &owner.tenant,
            &owner.user,
            &session.title,
            &session.created_at,
            self.now.parse_microseconds(&session.created_at),
            self.now.microseconds,
            messages as u64,
        ];
        let row = self.connection.query_row(ADD, values).await?;
        let id = || session.id.clone();
        let row = row.ok_or_else(|| SessionStoreError::Exists { id: id() })?;
        Ok(row.read_int(0)?)
    }

    /// Finds a session of `owner`, locks its row until the end of the transaction, and sets its
    /// time of last use. Returns `NotFound` if `owner` has no session with this id.
    pub(crate) async fn lock_session(
        &mut self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<LockedSession, WriteError> {
        const LOCK: &str = "UPDATE sessions SET used_us = $4
            WHERE id = $1 AND tenant = $2 AND person = $3 RETURNING key, messages";
        let not_found = || SessionStoreError::NotFound { id: id.clone() };
        let keys = [&id.0, &owner.tenant, &owner.user];
        if keys.into_iter().any(|key| has_nul(key)) {
            return Err(not_found().into());
        }
        let values = values![&id.0, &owner.tenant, &owner.user, self.now.microseconds];
        let row = self.connection.query_row(LOCK, values).await?;
        let row = row.ok_or_else(not_found)?;
        Ok(LockedSession {
            key: row.read_int(0)?,
            messages: row.read_count(1)?,
        })
    }

    /// Locks a session. Returns `Busy` if the session has an unfinished run, and `Conflict` if the
    /// session does not have exactly `after` messages.
    pub(crate) async fn lock_idle_session(
        &mut self,
        owner: &Principal,
        id: &SessionId,
        after: u64,
    ) -> Result<LockedSession, WriteError> {
        let session = self.lock_session(owner, id).await?;
        if let Some((run, _)) = self.find_unfinished_run(session.key).await? {
            return Err(session_busy_error(id, run).into());
        }
        if session.messages != after {
            return Err(session_conflict(id, after, session.messages).into());
        }
        Ok(session)
    }

    /// Returns the id of the unfinished run of a session, and the id of the instance that executes
    /// it (`None` if the run is not running). A session has at most one unfinished run. Returns
    /// `None` if it has none.
    pub(crate) async fn find_unfinished_run(
        &mut self,
        session: i64,
    ) -> Result<Option<(String, Option<String>)>, DatabaseError> {
        const FIND: &str =
            "SELECT id, instance FROM runs WHERE session = $1 AND state <> 'finished'";
        let row = self.connection.query_row(FIND, values![session]).await?;
        row.map(|row| Ok((row.read_text(0)?, row.optional_text(1)?)))
            .transpose()
    }

    /// Keeps the first `keep` messages of a session and replaces the others by `messages`. Returns
    /// the new number of messages in the session.
    pub(crate) async fn replace_messages_from(
        &mut self,
        session: LockedSession,
        keep: u64,
        messages: &[String],
    ) -> Result<u64, DatabaseError> {
        const CUT: &str = "DELETE FROM messages WHERE session = $1 AND position >= $2";
        const COUNT: &str = "UPDATE sessions SET messages = $2 WHERE key = $1";
        let key = session.key;
        if keep < session.messages {
            self.connection.execute(CUT, values![key, keep]).await?;
        }
        self.insert_messages(&SESSION_MESSAGES, key, keep, messages)
            .await?;
        let total = keep + messages.len() as u64;
        self.connection.execute(COUNT, values![key, total]).await?;
        Ok(total)
    }

    /// Inserts messages of the session or run with the row key `key`, at the positions from `from`
    /// on, counted from 0. Does not update the message count of the session.
    pub(crate) async fn insert_messages(
        &mut self,
        inserts: &'static MessageInserts,
        key: i64,
        from: u64,
        messages: &[String],
    ) -> Result<(), DatabaseError> {
        let (mut position, mut rest) = (from, messages);
        for (count, insert) in inserts.iter() {
            let batches = rest.chunks_exact(*count);
            rest = batches.remainder();
            for batch in batches {
                let mut parameters = Vec::with_capacity(3 * count);
                for message in batch {
                    parameters.extend(values![key, position, message]);
                    position += 1;
                }
                self.connection.execute(insert, parameters).await?;
            }
        }
        Ok(())
    }

    /// Inserts a run and returns its row key. `session` is the row key of its session. `instance`
    /// is the id of the instance that executes the run, or `None` for a run that is not running.
    pub(crate) async fn insert_run(
        &mut self,
        run: &RunRecord,
        session: i64,
        instance: Option<&str>,
    ) -> Result<i64, WriteError> {
        const ADD: &str = "INSERT INTO runs (id, session, state, instance, model, created_at,
                created_us, updated_at, events_before, outcome, parameters)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
            ON CONFLICT (id) DO NOTHING RETURNING key";
        let parameters = serialize_parameters(run.parameters.as_ref())?;
        let values = values![
            &run.id,
            session,
            run_state_name(run.state),
            instance,
            &run.model,
            &run.created_at,
            self.now.parse_microseconds(&run.created_at),
            &run.updated_at,
            run.events_before,
            run.outcome.as_deref(),
            parameters.as_deref(),
        ];
        let row = self.connection.query_row(ADD, values).await?;
        let row = row.ok_or_else(|| run_conflict(&run.id, "its id already exists"))?;
        Ok(row.read_int(0)?)
    }

    /// Appends events to a run. Fails if this instance does not execute the run, or if the first
    /// event does not follow the last stored event.
    pub(crate) async fn append_events(&mut self, events: &EventRow) -> Result<(), WriteError> {
        const APPEND: &str = "INSERT INTO run_events (run, last_seq, first_seq, at, events)
            SELECT r.key, $4, $3, $5, $6 FROM runs r WHERE r.id = $1 AND r.instance = $2
            AND $3 - 1 =
                COALESCE((SELECT MAX(e.last_seq) FROM run_events e WHERE e.run = r.key), 0)";
        const LAST: &str = "SELECT COALESCE(MAX(e.last_seq), 0) FROM run_events e
            JOIN runs r ON r.key = e.run WHERE r.id = $1";
        let EventRow {
            run,
            first,
            last,
            lines,
        } = events;
        let values = values![run, self.own_id, *first, *last, &self.now.text, lines];
        if self.connection.execute(APPEND, values).await? == 1 {
            return Ok(());
        }
        let last = self.connection.query_row(LAST, values![run]).await?;
        let last = last.map_or(Ok(0), |row| row.read_count(0))?;
        let gap = format!("its last event is {last}, so event {first} does not follow");
        Err(self.explain_refused_write(run, &gap).await?.into())
    }

    /// Returns the error for a refused write to a run: `NoSuchRun`, or `RunConflict` with a reason.
    /// If this instance executes the run, the reason is the argument `otherwise`.
    pub(crate) async fn explain_refused_write(
        &mut self,
        run: &str,
        otherwise: &str,
    ) -> Result<SessionStoreError, DatabaseError> {
        const FIND: &str = "SELECT state, instance FROM runs WHERE id = $1";
        let Some(row) = self.connection.query_row(FIND, values![run]).await? else {
            return Ok(no_such_run_error(run));
        };
        let (state, instance) = (row.read_text(0)?, row.optional_text(1)?);
        let reason = match instance {
            Some(instance) if instance == self.own_id => otherwise,
            Some(_) => "another process executes it",
            None if state == "finished" => "it is finished",
            None => "this process released it or lost its lock",
        };
        Ok(run_conflict(run, reason))
    }

    /// Returns whether an instance (open store) is alive. Removes the row of a dead instance and
    /// marks its runs as interrupted.
    pub(crate) async fn is_alive(&mut self, instance: &str) -> Result<bool, DatabaseError> {
        if instance == self.own_id {
            return Ok(true);
        }
        let removed = self
            .locks
            .remove_dead_instance(self.connection, instance)
            .await?;
        if removed {
            self.interrupt_runs(instance).await?;
            self.removed_instances.push(instance.to_owned());
        }
        Ok(!removed)
    }

    /// Marks the running runs of an instance (open store) as interrupted.
    pub(crate) async fn interrupt_runs(&mut self, instance: &str) -> Result<(), DatabaseError> {
        const INTERRUPT: &str = "UPDATE runs SET state = 'interrupted', instance = NULL
            WHERE instance = $1 AND state = 'running'";
        self.connection
            .execute(INTERRUPT, values![instance])
            .await?;
        Ok(())
    }
}

pub(crate) fn session_busy_error(session: &SessionId, run: String) -> SessionStoreError {
    let session = session.clone();
    SessionStoreError::Busy { session, run }
}

pub(crate) fn session_conflict(id: &SessionId, expected: u64, actual: u64) -> SessionStoreError {
    SessionStoreError::Conflict {
        id: id.clone(),
        expected,
        actual,
    }
}

pub(crate) fn no_such_run_error(run: &str) -> SessionStoreError {
    SessionStoreError::NoSuchRun { run: run.into() }
}

pub(crate) fn run_conflict(run: &str, reason: &str) -> SessionStoreError {
    SessionStoreError::RunConflict {
        run: run.into(),
        reason: reason.into(),
    }
}

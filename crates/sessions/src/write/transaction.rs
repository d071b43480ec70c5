//! The transaction of a write, and the statements that several writes share.

use std::sync::LazyLock;

use jiff::Timestamp;
use switchboard_domain::{
    Principal, RunRecord, Session, SessionId, SessionStoreError, StoredEvent,
};

use super::queue::Refusal;
use crate::{
    database::{Connection, DatabaseError, InstanceLocks, has_nul, values},
    limits::{check_nesting, parameters_text},
    rows::state_name,
};

/// The time of a transaction.
#[derive(Debug, Clone)]
pub(crate) struct Now {
    /// RFC 3339 in UTC, always with six digits of the second, so that such texts sort by time.
    pub(crate) text: String,
    pub(crate) microseconds: i64,
}

impl Now {
    pub(crate) fn read() -> Self {
        let now = Timestamp::now();
        Self {
            text: format!("{now:.6}"),
            microseconds: now.as_microsecond(),
        }
    }

    /// Returns the microseconds of an RFC 3339 time; of now if the text is not a time.
    fn microseconds_of(&self, time: &str) -> i64 {
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

/// Statements that insert rows of (key, position, message). They exist for a few numbers of rows,
/// the largest first, so that many messages need few statements.
type MessageInserts = LazyLock<[(usize, String); 4]>;

static INSERT_MESSAGES: MessageInserts = LazyLock::new(|| message_inserts("messages (session"));
static INSERT_RUN_MESSAGES: MessageInserts = LazyLock::new(|| message_inserts("run_messages (run"));

fn message_inserts(table_and_key: &str) -> [(usize, String); 4] {
    [256, 64, 8, 1].map(|count| {
        let row = |at: usize| format!("(${}, ${}, ${})", 3 * at + 1, 3 * at + 2, 3 * at + 3);
        let rows: Vec<String> = (0..count).map(row).collect();
        let rows = rows.join(", ");
        let insert = format!("INSERT INTO {table_and_key}, position, message) VALUES {rows}");
        (count, insert)
    })
}

/// The events of one append. They are one row.
pub(crate) struct EventRow {
    run: String,
    first: u64,
    last: u64,
    /// One event on each line. In JSON, line ends occur only where a space is allowed too.
    lines: String,
}

impl EventRow {
    /// Returns `None` without events. Fails if their numbers have gaps.
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
            check_nesting("an event", &event.json)?;
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

/// A transaction of the writer. Each write has it alone until it returns.
pub(crate) struct Transaction<'a> {
    pub(crate) connection: &'a mut dyn Connection,
    pub(crate) locks: &'a dyn InstanceLocks,
    /// The id of this instance.
    pub(crate) own_id: &'a str,
    pub(crate) now: &'a Now,
    /// Instances whose rows this transaction removes.
    pub(crate) removed_instances: &'a mut Vec<String>,
}

impl Transaction<'_> {
    /// Creates a session that counts `messages` messages, and returns its key.
    pub(crate) async fn create_session(
        &mut self,
        owner: &Principal,
        session: &Session,
        messages: usize,
    ) -> Result<i64, Refusal> {
        const ADD: &str = "INSERT INTO sessions
            (id, tenant, person, title, created_at, created_us, used_us, messages)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING RETURNING key";
        let values = values![
            &session.id.0,
            &owner.tenant,
            &owner.user,
            &session.title,
            &session.created_at,
            self.now.microseconds_of(&session.created_at),
            self.now.microseconds,
            messages as u64,
        ];
        let row = self.connection.row(ADD, values).await?;
        let id = || session.id.clone();
        let row = row.ok_or_else(|| SessionStoreError::Exists { id: id() })?;
        Ok(row.int(0)?)
    }

    /// Finds a session, locks its row until the end of the transaction, and marks it as used.
    pub(crate) async fn lock_session(
        &mut self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<LockedSession, Refusal> {
        const LOCK: &str = "UPDATE sessions SET used_us = $4
            WHERE id = $1 AND tenant = $2 AND person = $3 RETURNING key, messages";
        let not_found = || SessionStoreError::NotFound { id: id.clone() };
        let keys = [&id.0, &owner.tenant, &owner.user];
        if keys.into_iter().any(|key| has_nul(key)) {
            return Err(not_found().into());
        }
        let values = values![&id.0, &owner.tenant, &owner.user, self.now.microseconds];
        let row = self.connection.row(LOCK, values).await?;
        let row = row.ok_or_else(not_found)?;
        Ok(LockedSession {
            key: row.int(0)?,
            messages: row.count(1)?,
        })
    }

    /// Locks a session that has `after` messages and no unfinished run.
    pub(crate) async fn lock_idle_session(
        &mut self,
        owner: &Principal,
        id: &SessionId,
        after: u64,
    ) -> Result<LockedSession, Refusal> {
        let session = self.lock_session(owner, id).await?;
        if let Some((run, _)) = self.find_unfinished_run(session.key).await? {
            return Err(busy(id, run).into());
        }
        if session.messages != after {
            return Err(conflict(id, after, session.messages).into());
        }
        Ok(session)
    }

    /// Returns the id of the unfinished run of a session, and the instance that executes it. There
    /// is at most one.
    pub(crate) async fn find_unfinished_run(
        &mut self,
        session: i64,
    ) -> Result<Option<(String, Option<String>)>, DatabaseError> {
        const FIND: &str =
            "SELECT id, instance FROM runs WHERE session = $1 AND state <> 'finished'";
        let row = self.connection.row(FIND, values![session]).await?;
        row.map(|row| Ok((row.text(0)?, row.optional_text(1)?)))
            .transpose()
    }

    /// Appends messages to a session after the first `keep` ones and returns the new number of
    /// messages.
    pub(crate) async fn add_messages(
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
        self.insert_messages(key, keep, messages).await?;
        let total = keep + messages.len() as u64;
        self.connection.execute(COUNT, values![key, total]).await?;
        Ok(total)
    }

    /// Inserts messages of a session from position `from`. Does not change the session's count.
    pub(crate) async fn insert_messages(
        &mut self,
        session: i64,
        from: u64,
        messages: &[String],
    ) -> Result<(), DatabaseError> {
        self.insert(&INSERT_MESSAGES, session, from, messages).await
    }

    /// Inserts messages in the conversation of a run from position `from`.
    pub(crate) async fn insert_run_messages(
        &mut self,
        run: i64,
        from: u64,
        messages: &[String],
    ) -> Result<(), DatabaseError> {
        self.insert(&INSERT_RUN_MESSAGES, run, from, messages).await
    }

    async fn insert(
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

    /// Inserts a run and returns its key. `instance` executes it.
    pub(crate) async fn insert_run(
        &mut self,
        run: &RunRecord,
        session: i64,
        instance: Option<&str>,
    ) -> Result<i64, Refusal> {
        const ADD: &str = "INSERT INTO runs (id, session, state, instance, model, created_at,
                created_us, updated_at, events_before, outcome, parameters)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
            ON CONFLICT (id) DO NOTHING RETURNING key";
        let parameters = parameters_text(run.parameters.as_ref())?;
        let values = values![
            &run.id,
            session,
            state_name(run.state),
            instance,
            &run.model,
            &run.created_at,
            self.now.microseconds_of(&run.created_at),
            &run.updated_at,
            run.events_before,
            run.outcome.as_deref(),
            parameters.as_deref(),
        ];
        let row = self.connection.row(ADD, values).await?;
        let row = row.ok_or_else(|| run_conflict(&run.id, "its id exists already"))?;
        Ok(row.int(0)?)
    }

    /// Appends events if this instance has their run and they follow its last event.
    pub(crate) async fn append_events(&mut self, events: &EventRow) -> Result<(), Refusal> {
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
        let last = self.connection.row(LAST, values![run]).await?;
        let last = last.map_or(Ok(0), |row| row.count(0))?;
        let gap = format!("its last event is {last}, so event {first} does not follow");
        Err(self.refusal_of_run(run, &gap).await?.into())
    }

    /// Returns why a write to a run was refused. `otherwise` is the reason if this instance has it.
    pub(crate) async fn refusal_of_run(
        &mut self,
        run: &str,
        otherwise: &str,
    ) -> Result<SessionStoreError, DatabaseError> {
        const FIND: &str = "SELECT state, instance FROM runs WHERE id = $1";
        let Some(row) = self.connection.row(FIND, values![run]).await? else {
            return Ok(no_such_run(run));
        };
        let (state, instance) = (row.text(0)?, row.optional_text(1)?);
        let reason = match instance {
            Some(instance) if instance == self.own_id => otherwise,
            Some(_) => "another process executes it",
            None if state == "finished" => "it is finished",
            None => "this process released it or lost its lock",
        };
        Ok(run_conflict(run, reason))
    }

    /// Returns whether an instance is alive. If it is dead, interrupts its runs.
    pub(crate) async fn is_alive(&mut self, instance: &str) -> Result<bool, DatabaseError> {
        if instance == self.own_id {
            return Ok(true);
        }
        let removed = self.locks.remove_if_dead(self.connection, instance).await?;
        if removed {
            self.interrupt_runs(instance).await?;
            self.removed_instances.push(instance.to_owned());
        }
        Ok(!removed)
    }

    /// Interrupts the runs of an instance.
    pub(crate) async fn interrupt_runs(&mut self, instance: &str) -> Result<(), DatabaseError> {
        const INTERRUPT: &str = "UPDATE runs SET state = 'interrupted', instance = NULL
            WHERE instance = $1 AND state = 'running'";
        self.connection
            .execute(INTERRUPT, values![instance])
            .await?;
        Ok(())
    }
}

pub(crate) fn busy(session: &SessionId, run: String) -> SessionStoreError {
    let session = session.clone();
    SessionStoreError::Busy { session, run }
}

pub(crate) fn conflict(id: &SessionId, expected: u64, actual: u64) -> SessionStoreError {
    SessionStoreError::Conflict {
        id: id.clone(),
        expected,
        actual,
    }
}

pub(crate) fn no_such_run(run: &str) -> SessionStoreError {
    SessionStoreError::NoSuchRun { run: run.into() }
}

pub(crate) fn run_conflict(run: &str, reason: &str) -> SessionStoreError {
    SessionStoreError::RunConflict {
        run: run.into(),
        reason: reason.into(),
    }
}

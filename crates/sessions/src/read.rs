//! What is read, and how rows become values.

use std::{collections::HashSet, sync::Arc};

use serde_json::Value as Json;
use switchboard_domain::{
    AuditEntry, IdKey, Message, Principal, RunRecord, RunSnapshot, RunState, Session, SessionId,
    SessionStoreError, StoredEvent,
};

use crate::{
    database::{Readers, Row, Value, values},
    error::{Corrupt, unread},
    instance::Liveness,
    write::secret::{READ_ID_KEY, id_key},
};

/// The columns of a [`FoundRun`] of a principal. The last row of events says when the store last heard of it.
macro_rules! runs {
    ($more:literal) => {
        concat!(
            "SELECT r.id, s.id, r.state, r.instance, r.model, r.created_at, r.updated_at,
                r.events_before, r.outcome, COALESCE(e.last_seq, 0), e.at, r.key, r.wish
            FROM runs r JOIN sessions s ON s.key = r.session
            LEFT JOIN run_events e ON e.run = r.key AND e.last_seq =
                (SELECT MAX(l.last_seq) FROM run_events l WHERE l.run = r.key)
            WHERE s.tenant = $1 AND s.person = $2 AND ",
            $more
        )
    };
}

pub(crate) const RUN: &str = runs!("r.id = $3");
pub(crate) const RUNS_OF_SESSION: &str = runs!("s.id = $3 ORDER BY r.key");
const NEWEST_OF_SESSION: &str = runs!("s.id = $3 ORDER BY r.created_us DESC, r.key DESC LIMIT $4");
const NEWEST: &str = runs!("1 = 1 ORDER BY r.created_us DESC, r.key DESC LIMIT $3");

/// A run as it stands in the database.
#[derive(Debug)]
pub(crate) struct FoundRun {
    pub(crate) record: RunRecord,
    /// Who has it, if it is running.
    pub(crate) instance: Option<String>,
    pub(crate) key: i64,
}

impl FoundRun {
    pub(crate) fn new(row: &Row) -> Result<Self, sqlx::Error> {
        let mut updated_at = row.text(6)?;
        if let Some(event_at) = row.optional_text(10)?
            && event_at > updated_at
        {
            updated_at = event_at;
        }
        let state = row.text(2)?;
        let record = RunRecord {
            id: row.text(0)?,
            session: SessionId(row.text(1)?),
            state: state_named(&state)
                .ok_or_else(|| corrupt(format!("a run has the state `{state}`")))?,
            model: row.text(4)?,
            created_at: row.text(5)?,
            updated_at,
            events_before: row.count(7)?,
            last_event: row.count(9)?,
            outcome: row.optional_text(8)?,
            wish: wish(row.optional_text(12)?)?,
        };
        Ok(Self {
            record,
            instance: row.optional_text(3)?,
            key: row.int(11)?,
        })
    }
}

fn wish(stored: Option<String>) -> Result<Option<Json>, sqlx::Error> {
    let read = stored.map(|json| serde_json::from_str(&json)).transpose();
    read.map_err(|error| sqlx::Error::Decode(error.into()))
}

pub(crate) fn state_name(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Waiting => "waiting",
        RunState::Interrupted => "interrupted",
        RunState::Finished => "finished",
    }
}

fn state_named(name: &str) -> Option<RunState> {
    let all = [
        RunState::Running,
        RunState::Waiting,
        RunState::Interrupted,
        RunState::Finished,
    ];
    all.into_iter().find(|state| state_name(*state) == name)
}

pub(crate) fn corrupt(what: impl Into<String>) -> sqlx::Error {
    sqlx::Error::Decode(Corrupt(what.into()).into())
}

/// The reading half of a store.
pub(crate) struct Reader {
    pub(crate) readers: Readers,
    pub(crate) liveness: Arc<Liveness>,
}

impl Reader {
    async fn rows(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Vec<Row>, SessionStoreError> {
        let rows = self.readers.rows(sql, values).await;
        rows.map_err(|error| unread(operation, error))
    }

    pub(crate) async fn session(
        &self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<Option<Session>, SessionStoreError> {
        const WHAT: &str = "look a session up";
        let values = values![&id.0, &owner.tenant, &owner.user];
        let rows = self.rows(WHAT, SESSION, values).await?;
        let session = rows.first().map(session).transpose();
        session.map_err(|error| unread(WHAT, error))
    }

    pub(crate) async fn sessions(
        &self,
        owner: &Principal,
        limit: u32,
    ) -> Result<Vec<Session>, SessionStoreError> {
        const WHAT: &str = "list sessions";
        const LIST: &str = "SELECT id, title, created_at, messages FROM sessions
            WHERE tenant = $1 AND person = $2 ORDER BY created_us DESC, key DESC LIMIT $3";
        let values = values![&owner.tenant, &owner.user, i64::from(limit)];
        let rows = self.rows(WHAT, LIST, values).await?;
        let sessions = rows.iter().map(session).collect::<Result<_, _>>();
        sessions.map_err(|error| unread(WHAT, error))
    }

    pub(crate) async fn messages(
        &self,
        owner: &Principal,
        id: &SessionId,
        from: u64,
    ) -> Result<Vec<Arc<Message>>, SessionStoreError> {
        const WHAT: &str = "read messages";
        // The first row tells an empty session from none.
        const READ: &str = "SELECT -1, '' FROM sessions
                WHERE id = $1 AND tenant = $2 AND person = $3
            UNION ALL
            SELECT m.position, m.message FROM messages m JOIN sessions s ON s.key = m.session
                WHERE s.id = $1 AND s.tenant = $2 AND s.person = $3 AND m.position >= $4
            ORDER BY 1";
        let values = values![&id.0, &owner.tenant, &owner.user, from];
        let rows = self.rows(WHAT, READ, values).await?;
        let Some((_, messages)) = rows.split_first() else {
            return Err(SessionStoreError::NotFound { id: id.clone() });
        };
        let messages = messages.iter().map(message).collect::<Result<_, _>>();
        messages.map_err(|error| unread(WHAT, error))
    }

    pub(crate) async fn run(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunRecord>, SessionStoreError> {
        let values = || values![&owner.tenant, &owner.user, run];
        let runs = self.records("look a run up", RUN, values).await?;
        Ok(runs.into_iter().next())
    }

    pub(crate) async fn runs(
        &self,
        owner: &Principal,
        session: Option<&SessionId>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, SessionStoreError> {
        const WHAT: &str = "list runs";
        let limit = i64::from(limit);
        let Some(id) = session else {
            let values = || values![&owner.tenant, &owner.user, limit];
            return self.records(WHAT, NEWEST, values).await;
        };
        let values = || values![&owner.tenant, &owner.user, &id.0, limit];
        self.records(WHAT, NEWEST_OF_SESSION, values).await
    }

    /// Runs, those of dead instances as interrupted.
    async fn records<'v>(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: impl Fn() -> Vec<Value<'v>>,
    ) -> Result<Vec<RunRecord>, SessionStoreError> {
        let failed = |error| unread(operation, error);
        let found = |rows: Vec<Row>| {
            let runs: Result<Vec<FoundRun>, _> = rows.iter().map(FoundRun::new).collect();
            runs.map_err(failed)
        };
        let mut runs = found(self.rows(operation, sql, values()).await?)?;
        let me = self.liveness.me();
        let others: HashSet<String> = runs
            .iter()
            .filter_map(|run| run.instance.clone())
            .filter(|instance| Some(instance) != me.as_ref())
            .collect();
        if !others.is_empty() {
            let dead = self
                .liveness
                .dead(&self.readers, &others)
                .await
                .map_err(failed)?;
            if !dead.is_empty() {
                // One that ended in order has let go of its runs before: what is there now counts.
                runs = found(self.rows(operation, sql, values()).await?)?;
                for run in &mut runs {
                    if run
                        .instance
                        .as_ref()
                        .is_some_and(|instance| dead.contains(instance))
                    {
                        run.record.state = RunState::Interrupted;
                    }
                }
            }
        }
        Ok(runs.into_iter().map(|run| run.record).collect())
    }

    pub(crate) async fn events(
        &self,
        owner: &Principal,
        run: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, SessionStoreError> {
        const WHAT: &str = "read events";
        // The first row tells a run without events from none.
        const READ: &str = "SELECT -1, -1, '' FROM runs r JOIN sessions s ON s.key = r.session
                WHERE r.id = $1 AND s.tenant = $2 AND s.person = $3
            UNION ALL
            SELECT e.first_seq, e.last_seq, e.events FROM run_events e
                JOIN runs r ON r.key = e.run JOIN sessions s ON s.key = r.session
                WHERE r.id = $1 AND s.tenant = $2 AND s.person = $3
                AND e.last_seq > $4 AND e.first_seq <= $5
            ORDER BY 1";
        let last = after.saturating_add(u64::from(limit));
        let values = values![run, &owner.tenant, &owner.user, after, last];
        let rows = self.rows(WHAT, READ, values).await?;
        let Some((_, rows)) = rows.split_first() else {
            return Err(SessionStoreError::NoSuchRun { run: run.into() });
        };
        let mut events = Vec::new();
        for row in rows {
            each_event(row, |seq, json| {
                if seq > after && seq <= last {
                    let json = json.into();
                    events.push(StoredEvent { seq, json });
                }
            })
            .map_err(|error| unread(WHAT, error))?;
        }
        Ok(events)
    }

    pub(crate) async fn snapshot(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunSnapshot>, SessionStoreError> {
        const WHAT: &str = "read the state of a run";
        // In one statement, so that state and messages are of one moment.
        const READ: &str = "SELECT -2, '' FROM runs r JOIN sessions s ON s.key = r.session
                WHERE r.id = $1 AND s.tenant = $2 AND s.person = $3
            UNION ALL
            SELECT -1, t.state FROM run_states t
                JOIN runs r ON r.key = t.run JOIN sessions s ON s.key = r.session
                WHERE r.id = $1 AND s.tenant = $2 AND s.person = $3
            UNION ALL
            SELECT m.position, m.message FROM run_messages m
                JOIN runs r ON r.key = m.run JOIN sessions s ON s.key = r.session
                WHERE r.id = $1 AND s.tenant = $2 AND s.person = $3
            ORDER BY 1";
        let values = values![run, &owner.tenant, &owner.user];
        let rows = self.rows(WHAT, READ, values).await?;
        let Some((_, rows)) = rows.split_first() else {
            return Err(SessionStoreError::NoSuchRun { run: run.into() });
        };
        let Some((state, messages)) = rows.split_first() else {
            return Ok(None);
        };
        let snapshot = || {
            Ok::<_, sqlx::Error>(RunSnapshot {
                state: state.text(1)?.into(),
                from: 0,
                messages: messages.iter().map(message).collect::<Result<_, _>>()?,
            })
        };
        snapshot().map(Some).map_err(|error| unread(WHAT, error))
    }

    pub(crate) async fn audit(
        &self,
        owner: &Principal,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, SessionStoreError> {
        const WHAT: &str = "read the audit";
        const READ: &str = "SELECT at, run, entry FROM audit
            WHERE tenant = $1 AND person = $2 ORDER BY key DESC LIMIT $3";
        let values = values![&owner.tenant, &owner.user, i64::from(limit)];
        let rows = self.rows(WHAT, READ, values).await?;
        let entry = |row: &Row| {
            Ok::<_, sqlx::Error>(AuditEntry {
                time: row.text(0)?,
                run: row.optional_text(1)?,
                json: row.text(2)?.into(),
            })
        };
        let entries = rows.iter().map(entry).collect::<Result<_, _>>();
        entries.map_err(|error| unread(WHAT, error))
    }

    pub(crate) async fn decisions(
        &self,
        owner: &Principal,
    ) -> Result<Option<String>, SessionStoreError> {
        const WHAT: &str = "read decisions";
        const READ: &str = "SELECT decisions FROM decisions WHERE tenant = $1 AND person = $2";
        let values = values![&owner.tenant, &owner.user];
        let rows = self.rows(WHAT, READ, values).await?;
        let decisions = rows.first().map(|row| row.text(0)).transpose();
        decisions.map_err(|error| unread(WHAT, error))
    }

    /// Returns the key of ids, if it was made.
    pub(crate) async fn id_key(&self) -> Result<Option<IdKey>, SessionStoreError> {
        const WHAT: &str = "read the key of ids";
        let rows = self.rows(WHAT, READ_ID_KEY, values![]).await?;
        let key = rows.first().map(id_key).transpose();
        key.map_err(|error| unread(WHAT, error))
    }

    pub(crate) async fn ping(&self) -> Result<(), SessionStoreError> {
        let read = "SELECT COUNT(*) FROM switchboard_schema";
        self.rows("read", read, values![]).await.map(|_| ())
    }
}

pub(crate) const SESSION: &str = "SELECT id, title, created_at, messages, key FROM sessions
    WHERE id = $1 AND tenant = $2 AND person = $3";

pub(crate) fn session(row: &Row) -> Result<Session, sqlx::Error> {
    Ok(Session {
        id: SessionId(row.text(0)?),
        title: row.text(1)?,
        created_at: row.text(2)?,
        messages: row.count(3)?,
    })
}

fn message(row: &Row) -> Result<Arc<Message>, sqlx::Error> {
    let read = serde_json::from_str::<Message>(&row.text(1)?);
    read.map(Arc::new)
        .map_err(|error| sqlx::Error::Decode(error.into()))
}

/// The events of a row of (first number, last number, lines).
pub(crate) fn each_event(row: &Row, mut each: impl FnMut(u64, &str)) -> Result<(), sqlx::Error> {
    let (first, last) = (row.count(0)?, row.count(1)?);
    let mut next = first;
    for line in row.text(2)?.split('\n') {
        each(next, line);
        next += 1;
    }
    if next == last + 1 {
        Ok(())
    } else {
        Err(corrupt(format!("events {first} to {last} are not as many")))
    }
}

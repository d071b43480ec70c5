//! Reads of a store.

use std::{collections::HashSet, sync::Arc};

use switchboard_domain::{
    AuditEntry, IdKey, Message, Principal, RunRecord, RunSnapshot, RunState, Session, SessionId,
    SessionStoreError, StoredEvent,
};

use crate::{
    database::{Database, DatabaseError, Row, Value, values},
    rows::{self, READ_ID_KEY, RUN, SESSION, StoredRun, select_runs},
};

const RUNS_OF_SESSION: &str =
    select_runs!("s.id = $3 ORDER BY r.created_us DESC, r.key DESC LIMIT $4");
const RUNS_OF_PRINCIPAL: &str =
    select_runs!("1 = 1 ORDER BY r.created_us DESC, r.key DESC LIMIT $3");

/// Reads from a store.
pub(crate) struct Reader {
    pub(crate) database: Arc<dyn Database>,
}

impl Reader {
    async fn query_rows(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Vec<Value<'_>>,
    ) -> Result<Vec<Row>, SessionStoreError> {
        let found = self.database.read(sql, values).await;
        found.map_err(|error| error.of_read(operation))
    }

    pub(crate) async fn find_session(
        &self,
        owner: &Principal,
        id: &SessionId,
    ) -> Result<Option<Session>, SessionStoreError> {
        const OPERATION: &str = "find a session";
        let values = values![&id.0, &owner.tenant, &owner.user];
        let found = self.query_rows(OPERATION, SESSION, values).await?;
        let session = found.first().map(rows::read_session).transpose();
        session.map_err(|error| error.of_read(OPERATION))
    }

    pub(crate) async fn list_sessions(
        &self,
        owner: &Principal,
        limit: u32,
    ) -> Result<Vec<Session>, SessionStoreError> {
        const OPERATION: &str = "list sessions";
        const LIST: &str = "SELECT id, title, created_at, messages FROM sessions
            WHERE tenant = $1 AND person = $2 ORDER BY created_us DESC, key DESC LIMIT $3";
        let values = values![&owner.tenant, &owner.user, i64::from(limit)];
        let found = self.query_rows(OPERATION, LIST, values).await?;
        let sessions = found
            .iter()
            .map(rows::read_session)
            .collect::<Result<_, _>>();
        sessions.map_err(|error| error.of_read(OPERATION))
    }

    pub(crate) async fn load_messages(
        &self,
        owner: &Principal,
        id: &SessionId,
        from: u64,
    ) -> Result<Vec<Arc<Message>>, SessionStoreError> {
        const OPERATION: &str = "read messages";
        // The first row distinguishes an empty session from a missing one.
        const READ: &str = "SELECT -1, '' FROM sessions
                WHERE id = $1 AND tenant = $2 AND person = $3
            UNION ALL
            SELECT m.position, m.message FROM messages m JOIN sessions s ON s.key = m.session
                WHERE s.id = $1 AND s.tenant = $2 AND s.person = $3 AND m.position >= $4
            ORDER BY 1";
        let values = values![&id.0, &owner.tenant, &owner.user, from];
        let found = self.query_rows(OPERATION, READ, values).await?;
        let Some((_, messages)) = found.split_first() else {
            return Err(SessionStoreError::NotFound { id: id.clone() });
        };
        let messages = messages
            .iter()
            .map(rows::read_message)
            .collect::<Result<_, _>>();
        messages.map_err(|error| error.of_read(OPERATION))
    }

    pub(crate) async fn find_run(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunRecord>, SessionStoreError> {
        let values = || values![&owner.tenant, &owner.user, run];
        let runs = self.load_run_records("find a run", RUN, values).await?;
        Ok(runs.into_iter().next())
    }

    pub(crate) async fn list_runs(
        &self,
        owner: &Principal,
        session: Option<&SessionId>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, SessionStoreError> {
        const OPERATION: &str = "list runs";
        let limit = i64::from(limit);
        let Some(id) = session else {
            let values = || values![&owner.tenant, &owner.user, limit];
            return self
                .load_run_records(OPERATION, RUNS_OF_PRINCIPAL, values)
                .await;
        };
        let values = || values![&owner.tenant, &owner.user, &id.0, limit];
        self.load_run_records(OPERATION, RUNS_OF_SESSION, values)
            .await
    }

    /// Returns runs. The runs of dead instances are interrupted.
    async fn load_run_records<'v>(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: impl Fn() -> Vec<Value<'v>>,
    ) -> Result<Vec<RunRecord>, SessionStoreError> {
        let runs = async || {
            let found = self.query_rows(operation, sql, values()).await?;
            let runs: Result<Vec<_>, _> = found.iter().map(StoredRun::new).collect();
            runs.map_err(|error| error.of_read(operation))
        };
        let mut found = runs().await?;
        let dead = self.find_dead_instances(&found).await;
        let dead = dead.map_err(|error| error.of_read(operation))?;
        if !dead.is_empty() {
            // An instance that closed in order has released its runs before, so this reads again.
            found = runs().await?;
            for run in &mut found {
                if run.instance.as_ref().is_some_and(|it| dead.contains(it)) {
                    run.record.state = RunState::Interrupted;
                }
            }
        }
        Ok(found.into_iter().map(|run| run.record).collect())
    }

    /// Returns the dead ones among the instances that have these runs.
    async fn find_dead_instances(
        &self,
        runs: &[StoredRun],
    ) -> Result<HashSet<String>, DatabaseError> {
        let locks = self.database.locks();
        let instances = runs.iter().filter_map(|run| run.instance.clone());
        let mut instances: HashSet<String> = instances.collect();
        if let Some(own_id) = locks.own_id() {
            instances.remove(&own_id);
        }
        let mut dead = HashSet::new();
        for id in instances {
            if locks.is_dead(&*self.database, &id).await? {
                dead.insert(id);
            }
        }
        Ok(dead)
    }

    pub(crate) async fn load_events(
        &self,
        owner: &Principal,
        run: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, SessionStoreError> {
        const OPERATION: &str = "read events";
        // The first row distinguishes a run without events from a missing one.
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
        let found = self.query_rows(OPERATION, READ, values).await?;
        let Some((_, found)) = found.split_first() else {
            return Err(SessionStoreError::NoSuchRun { run: run.into() });
        };
        let mut events = Vec::new();
        for row in found {
            let row = rows::read_events(row).map_err(|error| error.of_read(OPERATION))?;
            let wanted = row
                .into_iter()
                .filter(|(seq, _)| *seq > after && *seq <= last);
            events.extend(wanted.map(|(seq, json)| StoredEvent {
                seq,
                json: json.into(),
            }));
        }
        Ok(events)
    }

    pub(crate) async fn load_snapshot(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunSnapshot>, SessionStoreError> {
        const OPERATION: &str = "read the state of a run";
        // One statement, so that state and messages belong together.
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
        let found = self.query_rows(OPERATION, READ, values).await?;
        let Some((_, found)) = found.split_first() else {
            return Err(SessionStoreError::NoSuchRun { run: run.into() });
        };
        let Some((state, messages)) = found.split_first() else {
            return Ok(None);
        };
        let snapshot = || {
            Ok::<_, DatabaseError>(RunSnapshot {
                state: state.text(1)?.into(),
                from: 0,
                messages: messages
                    .iter()
                    .map(rows::read_message)
                    .collect::<Result<_, _>>()?,
            })
        };
        snapshot()
            .map(Some)
            .map_err(|error| error.of_read(OPERATION))
    }

    pub(crate) async fn load_audit(
        &self,
        owner: &Principal,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, SessionStoreError> {
        const OPERATION: &str = "read the audit";
        const READ: &str = "SELECT at, run, entry FROM audit
            WHERE tenant = $1 AND person = $2 ORDER BY key DESC LIMIT $3";
        let values = values![&owner.tenant, &owner.user, i64::from(limit)];
        let found = self.query_rows(OPERATION, READ, values).await?;
        let entry = |row: &Row| {
            Ok::<_, DatabaseError>(AuditEntry {
                time: row.text(0)?,
                run: row.optional_text(1)?,
                json: row.text(2)?.into(),
            })
        };
        let entries = found.iter().map(entry).collect::<Result<_, _>>();
        entries.map_err(|error| error.of_read(OPERATION))
    }

    pub(crate) async fn load_decisions(
        &self,
        owner: &Principal,
    ) -> Result<Option<String>, SessionStoreError> {
        const OPERATION: &str = "read decisions";
        const READ: &str = "SELECT decisions FROM decisions WHERE tenant = $1 AND person = $2";
        let values = values![&owner.tenant, &owner.user];
        let found = self.query_rows(OPERATION, READ, values).await?;
        let decisions = found.first().map(|row| row.text(0)).transpose();
        decisions.map_err(|error| error.of_read(OPERATION))
    }

    /// Returns the key of session ids, if it exists.
    pub(crate) async fn load_id_key(&self) -> Result<Option<IdKey>, SessionStoreError> {
        const OPERATION: &str = "read the key of session ids";
        let found = self.query_rows(OPERATION, READ_ID_KEY, values![]).await?;
        let key = found.first().map(rows::read_id_key).transpose();
        key.map_err(|error| error.of_read(OPERATION))
    }

    pub(crate) async fn check_reading(&self) -> Result<(), SessionStoreError> {
        let read = "SELECT version FROM store_version";
        self.query_rows("read", read, values![]).await.map(|_| ())
    }
}

//! Implementation of `RunStore` for `Store`.

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use switchboard_domain::{
    Message, Principal, RunRecord, RunSnapshot, RunState, RunStore, Session, SessionId,
    SessionStoreError, StoredEvent,
};

use crate::{
    Store,
    database::{DatabaseError, Row, Value, has_nul, values},
    json_limits::{check_json_nesting, serialize_messages},
    rows::{RUN, StoredRun, read_events, read_message, run_state_name, select_runs},
    write::{
        queue::WriteError,
        transaction::{
            EventRow, RUN_MESSAGES, SESSION_MESSAGES, Transaction, no_such_run_error, run_conflict,
            session_busy_error, session_conflict,
        },
    },
};

const BEGIN: &str = "start a run";

#[async_trait]
impl RunStore for Store {
    async fn begin_run_in_new_session(
        &self,
        owner: &Principal,
        session: &Session,
        run: &RunRecord,
        messages: &[Arc<Message>],
    ) -> Result<RunRecord, SessionStoreError> {
        let (owner, session, run) = (owner.clone(), session.clone(), run.clone());
        let messages = serialize_messages(BEGIN, messages)?;
        self.perform_write("create a session", async move |tx| {
            if run.session != session.id {
                return Err(run_conflict(&run.id, "it belongs to another session").into());
            }
            let key = tx.create_session(&owner, &session, messages.len()).await?;
            tx.insert_messages(&SESSION_MESSAGES, key, 0, &messages)
                .await?;
            begin_run(tx, &run, key, 0).await
        })
        .await
    }

    async fn begin_run_after_truncation(
        &self,
        owner: &Principal,
        run: &RunRecord,
        keep: u64,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<RunRecord, SessionStoreError> {
        const EVENTS_BEFORE: &str = "SELECT r.events_before
            + COALESCE((SELECT MAX(e.last_seq) FROM run_events e WHERE e.run = r.key), 0)
            FROM runs r WHERE r.session = $1 ORDER BY r.key DESC LIMIT 1";
        let (owner, run) = (owner.clone(), run.clone());
        let messages = serialize_messages(BEGIN, messages)?;
        self.perform_write(BEGIN, async move |tx| {
            let session = tx.lock_idle_session(&owner, &run.session, after).await?;
            if keep > session.messages {
                return Err(session_conflict(&run.session, keep, session.messages).into());
            }
            let before = tx
                .connection
                .query_row(EVENTS_BEFORE, values![session.key])
                .await?;
            let before = before.map_or(Ok(0), |row| row.read_count(0))?;
            let begun = begin_run(tx, &run, session.key, before).await?;
            tx.replace_messages_from(session, keep, &messages).await?;
            Ok(begun)
        })
        .await
    }

    async fn acquire_run(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<RunRecord, SessionStoreError> {
        check_run_id(run)?;
        let (owner, run) = (owner.clone(), run.to_owned());
        self.perform_write("acquire a run", async move |tx| {
            acquire_stored_run(tx, &owner, &run).await
        })
        .await
    }

    async fn append_events(
        &self,
        run: &str,
        events: &[StoredEvent],
    ) -> Result<(), SessionStoreError> {
        check_run_id(run)?;
        let Some(events) = EventRow::new(run, events)? else {
            return Ok(());
        };
        self.perform_single_statement("append events", async move |tx| {
            tx.append_events(&events).await
        })
        .await
    }

    async fn load_events(
        &self,
        owner: &Principal,
        run: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, SessionStoreError> {
        // The first `SELECT` returns the row (-1, -1, '') for every existing run. Without this row,
        // a run without events would look like a missing run.
        const READ: &str = "SELECT -1, -1, '' FROM runs r JOIN sessions s ON s.key = r.session
                WHERE r.id = $1 AND s.tenant = $2 AND s.person = $3
            UNION ALL
            SELECT e.last_seq, e.first_seq, e.events FROM run_events e
                JOIN runs r ON r.key = e.run JOIN sessions s ON s.key = r.session
                WHERE r.id = $1 AND s.tenant = $2 AND s.person = $3
                AND e.last_seq > $4 AND e.first_seq <= $5
            ORDER BY 1";
        let last = after.saturating_add(u64::from(limit));
        let values = values![run, &owner.tenant, &owner.user, after, last];
        let convert = |row: &Row| match row.read_int(0)? {
            -1 => Ok(Vec::new()),
            _ => read_events(row),
        };
        let found = self.read_rows("read events", READ, values, convert).await?;
        if found.is_empty() {
            return Err(no_such_run_error(run));
        }
        let events = found.into_iter().flatten();
        let wanted = events.filter(|(seq, _)| *seq > after && *seq <= last);
        let wanted = wanted.map(|(seq, json)| StoredEvent {
            seq,
            json: json.into(),
        });
        Ok(wanted.collect())
    }

    async fn save_snapshot_with_events(
        &self,
        run: &str,
        events: &[StoredEvent],
        snapshot: &RunSnapshot,
    ) -> Result<(), SessionStoreError> {
        const OPERATION: &str = "store the state of a run";
        // The statement returns no row in two cases: this instance does not execute the run, or the
        // new messages would leave a gap after the stored messages.
        const STATE: &str = "INSERT INTO run_states (run, state, messages)
            SELECT r.key, $3, $5 FROM runs r WHERE r.id = $1 AND r.instance = $2
            AND $4 <= COALESCE((SELECT s.messages FROM run_states s WHERE s.run = r.key), 0)
            ON CONFLICT (run) DO UPDATE SET state = excluded.state, messages = excluded.messages
            RETURNING run";
        const TRUNCATE: &str = "DELETE FROM run_messages WHERE run = $1 AND position >= $2";
        const TOUCH: &str = "UPDATE runs SET updated_at = $2 WHERE key = $1";
        check_run_id(run)?;
        check_json_nesting("the state of a run", &snapshot.state)?;
        let events = EventRow::new(run, events)?;
        let messages = serialize_messages(OPERATION, &snapshot.messages)?;
        let (state, from) = (Arc::clone(&snapshot.state), snapshot.from);
        let run = run.to_owned();
        self.perform_write(OPERATION, async move |tx| {
            if let Some(events) = &events {
                tx.append_events(events).await?;
            }
            let total = from + messages.len() as u64;
            let values = values![&run, tx.own_id, &*state, from, total];
            let Some(row) = tx.connection.query_row(STATE, values).await? else {
                let gap = format!("it has no message before position {from}");
                return Err(tx.explain_refused_write(&run, &gap).await?.into());
            };
            let key = row.read_int(0)?;
            tx.connection.execute(TRUNCATE, values![key, from]).await?;
            tx.insert_messages(&RUN_MESSAGES, key, from, &messages)
                .await?;
            let values = values![key, &tx.now.text];
            tx.connection.execute(TOUCH, values).await?;
            Ok(())
        })
        .await
    }

    async fn load_snapshot(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunSnapshot>, SessionStoreError> {
        // One statement reads the state and the messages of the run, so that no write happens
        // between the two reads. The row (-2, '') shows that the run exists, and the row with -1
        // contains its state.
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
        let convert = |row: &Row| {
            Ok(match row.read_int(0)? {
                -2 => (None, None),
                -1 => (Some(row.read_text(1)?), None),
                _ => (None, Some(read_message(row)?)),
            })
        };
        let found = self.read_rows("read the state of a run", READ, values, convert);
        let found = found.await?;
        if found.is_empty() {
            return Err(no_such_run_error(run));
        }
        let (states, messages): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let state = states.into_iter().flatten().next();
        Ok(state.map(|state| RunSnapshot {
            state: state.into(),
            from: 0,
            messages: messages.into_iter().flatten().collect(),
        }))
    }

    async fn release_run_with_events(
        &self,
        run: &str,
        events: &[StoredEvent],
        state: RunState,
        outcome: Option<String>,
        after: u64,
        messages: &[Arc<Message>],
    ) -> Result<(), SessionStoreError> {
        const OPERATION: &str = "release a run";
        const RELEASE: &str = "UPDATE runs
            SET state = $3, instance = NULL, outcome = $4, updated_at = $5
            WHERE id = $1 AND instance = $2 RETURNING key, session";
        const SESSION: &str = "UPDATE sessions SET used_us = $2, messages = messages + $3
            WHERE key = $1 RETURNING messages, id";
        const DELETE: [&str; 2] = [
            "DELETE FROM run_states WHERE run = $1",
            "DELETE FROM run_messages WHERE run = $1",
        ];
        check_run_id(run)?;
        if state == RunState::Running {
            let reason = "a released run is waiting, interrupted or finished";
            return Err(run_conflict(run, reason));
        }
        let events = EventRow::new(run, events)?;
        let messages = serialize_messages(OPERATION, messages)?;
        let run = run.to_owned();
        self.perform_write(OPERATION, async move |tx| {
            if let Some(events) = &events {
                tx.append_events(events).await?;
            }
            let (own_id, now) = (tx.own_id, tx.now);
            let outcome = outcome.as_deref();
            let values = values![&run, own_id, run_state_name(state), outcome, &now.text];
            let Some(row) = tx.connection.query_row(RELEASE, values).await? else {
                let refused = tx.explain_refused_write(&run, "it was released").await?;
                return Err(refused.into());
            };
            let (key, session) = (row.read_int(0)?, row.read_int(1)?);
            let new = messages.len() as u64;
            let values = values![session, now.microseconds, new];
            let Some(row) = tx.connection.query_row(SESSION, values).await? else {
                return Err(run_conflict(&run, "its session was deleted").into());
            };
            let before = row.read_count(0)?.saturating_sub(new);
            if before != after {
                return Err(session_conflict(&SessionId(row.read_text(1)?), after, before).into());
            }
            tx.insert_messages(&SESSION_MESSAGES, session, before, &messages)
                .await?;
            if state == RunState::Finished {
                for delete in DELETE {
                    tx.connection.execute(delete, values![key]).await?;
                }
            }
            Ok(())
        })
        .await
    }

    async fn find_run(
        &self,
        owner: &Principal,
        run: &str,
    ) -> Result<Option<RunRecord>, SessionStoreError> {
        let values = values![&owner.tenant, &owner.user, run];
        Ok(self.read_runs("find a run", RUN, values).await?.pop())
    }

    async fn list_runs<'s>(
        &self,
        owner: &Principal,
        session: Option<&'s SessionId>,
        limit: u32,
    ) -> Result<Vec<RunRecord>, SessionStoreError> {
        const OF_SESSION: &str =
            select_runs!("s.id = $3 ORDER BY r.created_us DESC, r.key DESC LIMIT $4");
        const OF_PRINCIPAL: &str =
            select_runs!("1 = 1 ORDER BY r.created_us DESC, r.key DESC LIMIT $3");
        let sql = session.map_or(OF_PRINCIPAL, |_| OF_SESSION);
        let mut values = values![&owner.tenant, &owner.user];
        values.extend(session.map(|id| Value::from(&id.0)));
        values.push(i64::from(limit).into());
        self.read_runs("list runs", sql, values).await
    }
}

impl Store {
    /// Reads runs with the query `sql`. A running run is returned as interrupted if its instance
    /// (open store) is dead.
    async fn read_runs(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<RunRecord>, SessionStoreError> {
        let runs = || self.read_rows(operation, sql, values.clone(), StoredRun::new);
        let mut found = runs().await?;
        let dead = self.find_dead_instances(&found).await;
        let dead = dead.map_err(|error| error.into_store_error(operation))?;
        if !dead.is_empty() {
            // The runs are read again after the check for dead instances. An instance that closed
            // normally since the first read also counts as dead, but it released its runs, and
            // another instance may execute them now.
            found = runs().await?;
            for run in &mut found {
                if run.instance.as_ref().is_some_and(|it| dead.contains(it)) {
                    run.record.state = RunState::Interrupted;
                }
            }
        }
        Ok(found.into_iter().map(|run| run.record).collect())
    }

    /// Returns the ids of dead instances (no process holds their lock) that execute one of `runs`
    /// according to the database.
    async fn find_dead_instances(
        &self,
        runs: &[StoredRun],
    ) -> Result<HashSet<String>, DatabaseError> {
        let locks = self.database().instance_locks();
        let own_id = locks.own_id();
        let instances: HashSet<_> = runs.iter().filter_map(|run| run.instance.clone()).collect();
        let mut dead = HashSet::new();
        for id in instances {
            if Some(&id) != own_id.as_ref() && locks.is_dead(self.database(), &id).await? {
                dead.insert(id);
            }
        }
        Ok(dead)
    }
}

/// Fails with `NoSuchRun` for an id with the character NUL, which no stored run can have.
fn check_run_id(run: &str) -> Result<(), SessionStoreError> {
    if has_nul(run) {
        return Err(no_such_run_error(run));
    }
    Ok(())
}

/// Inserts a running run that this instance executes, and returns its record. `session` is the row
/// key of the session, and `events_before` is the number of events of all earlier runs of the
/// session.
async fn begin_run(
    tx: &mut Transaction<'_>,
    run: &RunRecord,
    session: i64,
    events_before: u64,
) -> Result<RunRecord, WriteError> {
    let begun = RunRecord {
        state: RunState::Running,
        updated_at: tx.now.text.clone(),
        events_before,
        last_event: 0,
        outcome: None,
        parameters: run.parameters.clone().filter(|it| !it.is_null()),
        ..run.clone()
    };
    tx.insert_run(&begun, session, Some(tx.own_id)).await?;
    Ok(begun)
}

async fn acquire_stored_run(
    tx: &mut Transaction<'_>,
    owner: &Principal,
    run: &str,
) -> Result<RunRecord, WriteError> {
    const TAKE: &str =
        "UPDATE runs SET state = 'running', instance = $2, updated_at = $3, outcome = NULL
        WHERE id = $1 AND state IN ('waiting', 'interrupted')";
    let session = find_run(tx, owner, run).await?.record.session;
    // The session is locked, so that no other process deletes the session and its runs meanwhile. A
    // missing session is not an error here: its runs are then missing too, and `find_run` below
    // returns `NoSuchRun`.
    if let Err(WriteError::Failed(error)) = tx.lock_session(owner, &session).await {
        return Err(error.into());
    }
    let StoredRun {
        record, instance, ..
    } = find_run(tx, owner, run).await?;
    match record.state {
        RunState::Finished => return Err(run_conflict(run, "it is finished").into()),
        RunState::Running => {
            // `is_alive` also removes the row of a dead instance and interrupts its runs.
            // This happens before the `UPDATE` below locks the row of the run, which avoids
            // deadlocks.
            let is_alive = match &instance {
                Some(instance) => tx.is_alive(instance).await?,
                None => true,
            };
            if is_alive {
                return Err(session_busy_error(&record.session, record.id).into());
            }
        }
        RunState::Waiting | RunState::Interrupted => {}
    }
    let values = values![run, tx.own_id, &tx.now.text];
    if tx.connection.execute(TAKE, values).await? == 0 {
        // Another process acquired the run after it was read.
        return Err(session_busy_error(&record.session, record.id).into());
    }
    Ok(find_run(tx, owner, run).await?.record)
}

async fn find_run(
    tx: &mut Transaction<'_>,
    owner: &Principal,
    run: &str,
) -> Result<StoredRun, WriteError> {
    let values = values![&owner.tenant, &owner.user, run];
    let row = tx.connection.query_row(RUN, values).await?;
    let row = row.ok_or_else(|| no_such_run_error(run))?;
    Ok(StoredRun::new(&row)?)
}

//! Starts, checkpoints and releases runs.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use switchboard_domain::{Principal, RunRecord, RunState, Session, SessionId, SessionStoreError};

use super::{
    events::AppendEvents,
    queue::{EventOrder, Refusal, Write},
    session::{busy, conflict, create, not_found},
    transaction::Transaction,
};
use crate::{
    database::{BatchStatement, DatabaseError, values},
    rows::{RUN, StoredRun, state_name},
};

pub(crate) struct Begin {
    pub(crate) owner: Principal,
    pub(crate) run: RunRecord,
    /// The parameters of the run in their stored form.
    pub(crate) parameters: Option<String>,
    /// Number of existing messages that stay.
    pub(crate) keep: u64,
    pub(crate) after: u64,
    pub(crate) messages: Vec<String>,
}

#[async_trait]
impl Write for Begin {
    type Output = RunRecord;
    const OPERATION: &'static str = "begin a run";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<RunRecord, Refusal> {
        const EVENTS_BEFORE: &str = "SELECT r.events_before
            + COALESCE((SELECT MAX(e.last_seq) FROM run_events e WHERE e.run = r.key), 0)
            FROM runs r WHERE r.session = $1 ORDER BY r.key DESC LIMIT 1";
        let run = &self.run;
        let Some(mut session) = tx.session(&self.owner, &run.session).await? else {
            return Err(not_found(&run.session));
        };
        if let Some(other) = tx.unfinished(session.key).await? {
            return Err(busy(&run.session, other.id));
        }
        if session.messages != self.after {
            return Err(conflict(&run.session, self.after, session.messages));
        }
        if self.keep > session.messages {
            return Err(conflict(&run.session, self.keep, session.messages));
        }
        let before = tx.row(EVENTS_BEFORE, values![session.key]).await?;
        let events_before = before.map_or(Ok(0), |row| row.count(0))?;
        let begun = add(
            tx,
            run,
            session.key,
            events_before,
            self.parameters.as_deref(),
        )
        .await?;
        if self.keep < session.messages {
            session = tx.truncate_messages(session, self.keep).await?;
        }
        tx.add_messages(session, &self.messages).await?;
        Ok(begun)
    }
}

/// Creates a session and begins its first run.
pub(crate) struct BeginSession {
    pub(crate) owner: Principal,
    pub(crate) session: Session,
    pub(crate) run: RunRecord,
    /// The parameters of the run in their stored form.
    pub(crate) parameters: Option<String>,
    pub(crate) messages: Vec<String>,
}

#[async_trait]
impl Write for BeginSession {
    type Output = RunRecord;
    const OPERATION: &'static str = "create a session";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<RunRecord, Refusal> {
        if self.run.session != self.session.id {
            return Err(run_conflict(&self.run.id, "it belongs to another session").into());
        }
        let key = create(tx, &self.owner, &self.session, self.messages.len()).await?;
        let begun = add(tx, &self.run, key, 0, self.parameters.as_deref()).await?;
        tx.insert_messages(key, 0, &self.messages).await?;
        Ok(begun)
    }
}

/// Inserts a run of this instance.
async fn add(
    tx: &mut Transaction<'_>,
    run: &RunRecord,
    session: i64,
    events_before: u64,
    parameters: Option<&str>,
) -> Result<RunRecord, Refusal> {
    const ADD: &str = "INSERT INTO runs (id, session, state, instance, model,
        created_at, created_us, updated_at, events_before, parameters)
        VALUES ($1, $2, 'running', $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING";
    let values = values![
        &run.id,
        session,
        tx.own_id,
        &run.model,
        &run.created_at,
        tx.now.microseconds_of(&run.created_at),
        &tx.now.text,
        events_before,
        parameters,
    ];
    if tx.execute(ADD, values).await? == 0 {
        return Err(run_conflict(&run.id, "its id exists already").into());
    }
    Ok(RunRecord {
        state: RunState::Running,
        updated_at: tx.now.text.clone(),
        events_before,
        last_event: 0,
        outcome: None,
        parameters: run.parameters.clone().filter(|it| !it.is_null()),
        ..run.clone()
    })
}

pub(crate) struct Take {
    pub(crate) owner: Principal,
    pub(crate) run: String,
}

#[async_trait]
impl Write for Take {
    type Output = RunRecord;
    const OPERATION: &'static str = "take a run";

    fn event_order(&self) -> EventOrder<'_> {
        EventOrder::AfterRun(&self.run)
    }

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<RunRecord, Refusal> {
        const TAKE: &str =
            "UPDATE runs SET state = 'running', instance = $2, updated_at = $3, outcome = NULL
            WHERE id = $1 AND state IN ('waiting', 'interrupted')";
        let Some(found) = self.find(tx).await? else {
            let run = self.run.clone();
            return Err(SessionStoreError::NoSuchRun { run }.into());
        };
        // Locks the session, so that no other process deletes it and the run.
        let session = tx.session(&self.owner, &found.record.session).await?;
        let found = match session {
            Some(_) => self.find(tx).await?,
            None => None,
        };
        let Some(found) = found else {
            let run = self.run.clone();
            return Err(SessionStoreError::NoSuchRun { run }.into());
        };
        let record = found.record;
        match record.state {
            RunState::Finished => return Err(run_conflict(&self.run, "it is finished").into()),
            RunState::Running => {
                // Removes a dead instance before it locks the run. All processes use this order.
                let alive = match &found.instance {
                    Some(instance) => tx.is_alive(instance).await?,
                    None => true,
                };
                if alive {
                    return Err(busy(&record.session, record.id));
                }
            }
            RunState::Waiting | RunState::Interrupted => {}
        }
        let values = values![&self.run, tx.own_id, &tx.now.text];
        if tx.execute(TAKE, values).await? == 0 {
            // Another process took it first.
            return Err(busy(&record.session, record.id));
        }
        let taken = self.find(tx).await?;
        let deleted = || run_conflict(&self.run, "its session was deleted").into();
        taken.map(|found| found.record).ok_or_else(deleted)
    }
}

impl Take {
    async fn find(&self, tx: &mut Transaction<'_>) -> Result<Option<StoredRun>, DatabaseError> {
        let values = values![&self.owner.tenant, &self.owner.user, &self.run];
        let row = tx.row(RUN, values).await?;
        row.map(|row| StoredRun::new(&row)).transpose()
    }
}

pub(crate) struct Save {
    pub(crate) run: String,
    /// Events to append first.
    pub(crate) events: Option<AppendEvents>,
    pub(crate) state: Arc<str>,
    pub(crate) from: u64,
    pub(crate) messages: Vec<String>,
}

#[async_trait]
impl Write for Save {
    type Output = ();
    const OPERATION: &'static str = "store the state of a run";

    fn event_order(&self) -> EventOrder<'_> {
        EventOrder::AfterRun(&self.run)
    }

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        // The new messages replace stored ones from any stored position, or follow the last one.
        const STATE: &str = "INSERT INTO run_states (run, state, messages)
            SELECT r.key, $3, $5 FROM runs r WHERE r.id = $1 AND r.instance = $2
            AND $4 <= COALESCE((SELECT s.messages FROM run_states s WHERE s.run = r.key), 0)
            ON CONFLICT (run) DO UPDATE SET state = excluded.state, messages = excluded.messages
            RETURNING run";
        const TRUNCATE: &str = "DELETE FROM run_messages WHERE run = $1 AND position >= $2";
        const TOUCH: &str = "UPDATE runs SET updated_at = $2 WHERE key = $1";
        static ADD: LazyLock<BatchStatement> = LazyLock::new(|| {
            let add = "INSERT INTO run_messages (run, position, message) VALUES ";
            BatchStatement::new(add, 1, 3, "")
        });
        if let Some(events) = &self.events {
            events.apply(tx).await?;
        }
        let total = self.from + self.messages.len() as u64;
        let values = values![&self.run, tx.own_id, &*self.state, self.from, total];
        let Some(row) = tx.row(STATE, values).await? else {
            let gap = format!("it has no message before position {}", self.from);
            return Err(refusal_of_run(tx, &self.run, &gap).await?.into());
        };
        let key = row.int(0)?;
        tx.execute(TRUNCATE, values![key, self.from]).await?;
        tx.insert(&ADD, key, self.from, &self.messages).await?;
        tx.execute(TOUCH, values![key, &tx.now.text]).await?;
        Ok(())
    }
}

pub(crate) struct Release {
    pub(crate) run: String,
    /// Events to append first.
    pub(crate) events: Option<AppendEvents>,
    pub(crate) state: RunState,
    pub(crate) outcome: Option<String>,
    pub(crate) after: u64,
    pub(crate) messages: Vec<String>,
}

#[async_trait]
impl Write for Release {
    type Output = ();
    const OPERATION: &'static str = "release a run";

    fn event_order(&self) -> EventOrder<'_> {
        EventOrder::AfterRun(&self.run)
    }

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const RELEASE: &str = "UPDATE runs
            SET state = $3, instance = NULL, outcome = $4, updated_at = $5
            WHERE id = $1 AND instance = $2 RETURNING key, session";
        const SESSION: &str = "UPDATE sessions SET used_us = $2, messages = messages + $3
            WHERE key = $1 RETURNING messages, id";
        const DELETE: [&str; 2] = [
            "DELETE FROM run_states WHERE run = $1",
            "DELETE FROM run_messages WHERE run = $1",
        ];
        if self.state == RunState::Running {
            let reason = "a released run is waiting, interrupted or finished";
            return Err(run_conflict(&self.run, reason).into());
        }
        if let Some(events) = &self.events {
            events.apply(tx).await?;
        }
        let values = values![
            &self.run,
            tx.own_id,
            state_name(self.state),
            self.outcome.as_deref(),
            &tx.now.text,
        ];
        let Some(row) = tx.row(RELEASE, values).await? else {
            return Err(refusal_of_run(tx, &self.run, "it was released")
                .await?
                .into());
        };
        let (key, session) = (row.int(0)?, row.int(1)?);
        let new = self.messages.len() as u64;
        let values = values![session, tx.now.microseconds, new];
        let Some(row) = tx.row(SESSION, values).await? else {
            return Err(run_conflict(&self.run, "its session was deleted").into());
        };
        let before = row.count(0)?.saturating_sub(new);
        if before != self.after {
            let id = SessionId(row.text(1)?);
            return Err(conflict(&id, self.after, before));
        }
        tx.insert_messages(session, before, &self.messages).await?;
        if self.state == RunState::Finished {
            for delete in DELETE {
                tx.execute(delete, values![key]).await?;
            }
        }
        Ok(())
    }
}

/// Returns why a write to a run was refused. `otherwise` is the reason if this instance has it.
pub(crate) async fn refusal_of_run(
    tx: &mut Transaction<'_>,
    run: &str,
    otherwise: &str,
) -> Result<SessionStoreError, DatabaseError> {
    const FIND: &str = "SELECT state, instance FROM runs WHERE id = $1";
    let Some(row) = tx.row(FIND, values![run]).await? else {
        return Ok(SessionStoreError::NoSuchRun { run: run.into() });
    };
    let (state, instance) = (row.text(0)?, row.optional_text(1)?);
    let reason = match instance {
        Some(instance) if instance == tx.own_id => otherwise,
        Some(_) => "another process executes it",
        None if state == "finished" => "it is finished",
        None => "this process released it or lost its lock",
    };
    Ok(run_conflict(run, reason))
}

pub(crate) fn run_conflict(run: &str, reason: &str) -> SessionStoreError {
    SessionStoreError::RunConflict {
        run: run.into(),
        reason: reason.into(),
    }
}

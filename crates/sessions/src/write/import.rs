//! Sessions that are nobody's until all of an import is there.

use async_trait::async_trait;
use switchboard_domain::{Principal, RunRecord, Session, SessionId, SessionStoreError};

use crate::{
    database::values,
    error::{Refusal, storage},
    read::state_name,
    transaction::Transaction,
    writer::Write,
};

/// A row of an import.
#[derive(Debug)]
pub(crate) enum Staging {
    Session(Session),
    Message {
        session: SessionId,
        position: u64,
        text: String,
    },
    /// With its wish as it is stored.
    Run(RunRecord, Option<String>),
    Events {
        run: String,
        first: u64,
        last: u64,
        lines: String,
    },
}

pub(crate) struct AddStaged {
    pub(crate) import: String,
    pub(crate) rows: Vec<Staging>,
}

#[async_trait]
impl Write for AddStaged {
    type Answer = ();
    const WHAT: &'static str = "import sessions";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        for row in &self.rows {
            self.add(tx, row).await?;
        }
        Ok(())
    }
}

impl AddStaged {
    async fn add(&self, tx: &mut Transaction<'_>, row: &Staging) -> Result<(), Refusal> {
        const SESSION: &str = "INSERT INTO sessions
            (id, tenant, person, instance, title, created_at, created_us, used_us, messages)
            VALUES ($1, NULL, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO NOTHING";
        const MESSAGE: &str = "INSERT INTO messages (session, position, message)
            SELECT key, $2, $3 FROM sessions WHERE id = $1";
        const RUN: &str = "INSERT INTO runs (id, session, state, model, created_at, created_us,
                updated_at, events_before, outcome, wish)
            SELECT $1, key, $3, $4, $5, $6, $7, $8, $9, $10 FROM sessions WHERE id = $2
            ON CONFLICT (id) DO NOTHING";
        // Without a time of their own: what the run says of when it changed stays so.
        const EVENTS: &str = "INSERT INTO run_events (run, first_seq, last_seq, at, events)
            SELECT key, $2, $3, '', $4 FROM runs WHERE id = $1";
        match row {
            Staging::Session(session) => {
                let values = values![
                    &session.id.0,
                    &self.import,
                    tx.me,
                    &session.title,
                    &session.created_at,
                    tx.now.microseconds_of(&session.created_at),
                    tx.now.microseconds,
                    session.messages,
                ];
                if tx.execute(SESSION, values).await? == 0 {
                    let id = session.id.clone();
                    return Err(SessionStoreError::Exists { id }.into());
                }
            }
            Staging::Message {
                session,
                position,
                text,
            } => {
                tx.execute(MESSAGE, values![&session.0, *position, text])
                    .await?;
            }
            Staging::Run(run, wish) => {
                let values = values![
                    &run.id,
                    &run.session.0,
                    state_name(run.state),
                    &run.model,
                    &run.created_at,
                    tx.now.microseconds_of(&run.created_at),
                    &run.updated_at,
                    run.events_before,
                    run.outcome.as_deref(),
                    wish.as_deref(),
                ];
                if tx.execute(RUN, values).await? == 0 {
                    return Err(SessionStoreError::RunConflict {
                        run: run.id.clone(),
                        reason: "another run has its id".to_owned(),
                    }
                    .into());
                }
            }
            Staging::Events {
                run,
                first,
                last,
                lines,
            } => {
                tx.execute(EVENTS, values![run, *first, *last, lines])
                    .await?;
            }
        }
        Ok(())
    }
}

/// Gives an import to its principal.
pub(crate) struct Hand {
    pub(crate) import: String,
    pub(crate) owner: Principal,
    pub(crate) sessions: u64,
}

#[async_trait]
impl Write for Hand {
    type Answer = ();
    const WHAT: &'static str = "import sessions";
    // Whoever gives up after this is queued does not know whether it is done; either is whole.
    const ALWAYS: bool = true;

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const HAND: &str = "UPDATE sessions SET tenant = $2, person = $3, instance = NULL
            WHERE tenant IS NULL AND person = $1";
        let values = values![&self.import, &self.owner.tenant, &self.owner.user];
        let handed = tx.execute(HAND, values).await?;
        if handed == self.sessions {
            return Ok(());
        }
        // This process was taken for dead in the meantime.
        Err(Refusal::Refused(storage(
            Self::WHAT,
            "what was imported was removed meanwhile: import it again",
        )))
    }
}

/// Removes what an import wrote.
pub(crate) struct GiveUp {
    pub(crate) import: String,
}

#[async_trait]
impl Write for GiveUp {
    type Answer = ();
    const WHAT: &'static str = "give up an import";
    const ALWAYS: bool = true;

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const REMOVE: &str = "DELETE FROM sessions WHERE tenant IS NULL AND person = $1";
        tx.execute(REMOVE, values![&self.import]).await?;
        Ok(())
    }
}

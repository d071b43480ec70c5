//! Stores imported sessions.

use async_trait::async_trait;
use switchboard_domain::{Principal, RunRecord, Session};

use super::{
    queue::{Refusal, Write},
    run::run_conflict,
    session::create,
    transaction::Transaction,
};
use crate::{database::values, rows::state_name};

/// Number of events in one row.
const EVENTS_PER_ROW: usize = 64;

pub(crate) struct ImportSessions {
    pub(crate) owner: Principal,
    pub(crate) sessions: Vec<ImportedSession>,
}

pub(crate) struct ImportedSession {
    pub(crate) session: Session,
    /// Messages in their stored form.
    pub(crate) messages: Vec<String>,
    pub(crate) runs: Vec<ImportedRun>,
}

pub(crate) struct ImportedRun {
    pub(crate) record: RunRecord,
    /// The parameters of the run in their stored form.
    pub(crate) parameters: Option<String>,
    pub(crate) events: Vec<String>,
    /// Whether the import cancels the run.
    pub(crate) was_unfinished: bool,
    /// Number of messages of its conversation that the export still has to contain.
    pub(crate) missing_messages: Option<u64>,
}

#[async_trait]
impl Write for ImportSessions {
    type Output = ();
    const OPERATION: &'static str = "import sessions";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        for imported in &self.sessions {
            let messages = &imported.messages;
            let session = create(tx, &self.owner, &imported.session, messages.len()).await?;
            tx.insert_messages(session, 0, messages).await?;
            for run in &imported.runs {
                add_run(tx, session, run).await?;
            }
        }
        Ok(())
    }
}

async fn add_run(tx: &mut Transaction<'_>, session: i64, run: &ImportedRun) -> Result<(), Refusal> {
    const RUN: &str = "INSERT INTO runs (id, session, state, model, created_at, created_us,
            updated_at, events_before, outcome, parameters)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ON CONFLICT (id) DO NOTHING RETURNING key";
    // Without a time: the run keeps the time of its last change.
    const EVENTS: &str = "INSERT INTO run_events (run, first_seq, last_seq, at, events)
        VALUES ($1, $2, $3, '', $4)";
    let record = &run.record;
    let values = values![
        &record.id,
        session,
        state_name(record.state),
        &record.model,
        &record.created_at,
        tx.now.microseconds_of(&record.created_at),
        &record.updated_at,
        record.events_before,
        record.outcome.as_deref(),
        run.parameters.as_deref(),
    ];
    let Some(row) = tx.row(RUN, values).await? else {
        return Err(run_conflict(&record.id, "its id exists already").into());
    };
    let key = row.int(0)?;
    let mut first = 1_u64;
    for events in run.events.chunks(EVENTS_PER_ROW) {
        let last = first + events.len() as u64 - 1;
        let lines = events.join("\n");
        tx.execute(EVENTS, values![key, first, last, &lines])
            .await?;
        first = last + 1;
    }
    Ok(())
}

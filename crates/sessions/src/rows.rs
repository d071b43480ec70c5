//! Conversion of rows to values of the domain.

use std::sync::Arc;

use switchboard_domain::{Message, RunRecord, RunState, Session, SessionId};

use crate::database::{DatabaseError, Row};

/// Selects the columns of a [`StoredRun`] among the runs of a principal.
///
/// The last row of events shows when the run changed last.
macro_rules! select_runs {
    ($condition:literal) => {
        concat!(
            "SELECT r.id, s.id, r.state, r.instance, r.model, r.created_at, r.updated_at,
                r.events_before, r.outcome, COALESCE(e.last_seq, 0), e.at, r.key, r.parameters
            FROM runs r JOIN sessions s ON s.key = r.session
            LEFT JOIN run_events e ON e.run = r.key AND e.last_seq =
                (SELECT MAX(l.last_seq) FROM run_events l WHERE l.run = r.key)
            WHERE s.tenant = $1 AND s.person = $2 AND ",
            $condition
        )
    };
}
pub(crate) use select_runs;

/// Selects one run by its id.
pub(crate) const RUN: &str = select_runs!("r.id = $3");

/// Selects the columns that [`read_session`] reads, and the key.
pub(crate) const SESSION: &str = "SELECT id, title, created_at, messages, key FROM sessions
    WHERE id = $1 AND tenant = $2 AND person = $3";

/// A run with the columns that only the store uses.
#[derive(Debug)]
pub(crate) struct StoredRun {
    pub(crate) record: RunRecord,
    /// The instance that has it, if it is running.
    pub(crate) instance: Option<String>,
    pub(crate) key: i64,
}

impl StoredRun {
    pub(crate) fn new(row: &Row) -> Result<Self, DatabaseError> {
        let mut updated_at = row.text(6)?;
        if let Some(event_at) = row.optional_text(10)?
            && event_at > updated_at
        {
            updated_at = event_at;
        }
        let parameters = row.optional_text(12)?;
        let parameters = parameters.map(|json| serde_json::from_str(&json));
        let record = RunRecord {
            id: row.text(0)?,
            session: SessionId(row.text(1)?),
            state: parse_state(&row.text(2)?)?,
            model: row.text(4)?,
            created_at: row.text(5)?,
            updated_at,
            events_before: row.count(7)?,
            last_event: row.count(9)?,
            outcome: row.optional_text(8)?,
            parameters: parameters.transpose().map_err(DatabaseError::unreadable)?,
        };
        Ok(Self {
            record,
            instance: row.optional_text(3)?,
            key: row.int(11)?,
        })
    }
}

pub(crate) fn state_name(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Waiting => "waiting",
        RunState::Interrupted => "interrupted",
        RunState::Finished => "finished",
    }
}

fn parse_state(name: &str) -> Result<RunState, DatabaseError> {
    let mut states = [
        RunState::Running,
        RunState::Waiting,
        RunState::Interrupted,
        RunState::Finished,
    ]
    .into_iter();
    let state = states.find(|state| state_name(*state) == name);
    state.ok_or_else(|| DatabaseError::unreadable(format!("a run has the unknown state `{name}`")))
}

pub(crate) fn read_session(row: &Row) -> Result<Session, DatabaseError> {
    Ok(Session {
        id: SessionId(row.text(0)?),
        title: row.text(1)?,
        created_at: row.text(2)?,
        messages: row.count(3)?,
    })
}

/// Reads the message of a row of (position, message).
pub(crate) fn read_message(row: &Row) -> Result<Arc<Message>, DatabaseError> {
    let message = serde_json::from_str::<Message>(&row.text(1)?);
    message.map(Arc::new).map_err(DatabaseError::unreadable)
}

/// Reads the numbered events of a row of (last number, first number, lines).
pub(crate) fn read_events(row: &Row) -> Result<Vec<(u64, String)>, DatabaseError> {
    let (last, first) = (row.count(0)?, row.count(1)?);
    let text = row.text(2)?;
    let events: Vec<_> = (first..).zip(text.split('\n').map(str::to_owned)).collect();
    if events.last().is_some_and(|(number, _)| *number == last) {
        Ok(events)
    } else {
        let cause = format!("the row of events {first} to {last} has another number of events");
        Err(DatabaseError::unreadable(cause))
    }
}

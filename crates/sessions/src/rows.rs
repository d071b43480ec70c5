//! Conversion of database rows to domain types.

use std::sync::Arc;

use switchboard_domain::{Message, RunRecord, RunState, Session, SessionId};

use crate::database::{DatabaseError, Row};

/// Builds SQL that selects the columns of a [`StoredRun`] from the runs of one principal.
/// `$condition` is the rest of the `WHERE` clause, and may contain `ORDER BY` and `LIMIT`.
///
/// The SQL joins the last row of `run_events` of each run. The time in this row may be later than
/// `updated_at` in the row of the run.
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

/// SQL that selects one run of a principal by its id.
pub(crate) const RUN: &str = select_runs!("r.id = $3");

/// SQL that selects one session of a principal by its id. Its columns are the ones that
/// [`read_session`] reads, followed by the row key.
pub(crate) const SESSION: &str = "SELECT id, title, created_at, messages, key FROM sessions
    WHERE id = $1 AND tenant = $2 AND person = $3";

/// A run record that was read from the database, with the instance that executes the run.
#[derive(Debug)]
pub(crate) struct StoredRun {
    pub(crate) record: RunRecord,
    /// Id of the instance (open store) that executes the run. `None` if the run is not running.
    pub(crate) instance: Option<String>,
    pub(crate) key: i64,
}

impl StoredRun {
    pub(crate) fn new(row: &Row) -> Result<Self, DatabaseError> {
        let mut updated_at = row.read_text(6)?;
        if let Some(event_at) = row.optional_text(10)?
            && event_at > updated_at
        {
            updated_at = event_at;
        }
        let parameters = row.optional_text(12)?;
        let parameters = parameters.map(|json| serde_json::from_str(&json));
        let record = RunRecord {
            id: row.read_text(0)?,
            session: SessionId(row.read_text(1)?),
            state: parse_run_state(&row.read_text(2)?)?,
            model: row.read_text(4)?,
            created_at: row.read_text(5)?,
            updated_at,
            events_before: row.read_count(7)?,
            last_event: row.read_count(9)?,
            outcome: row.optional_text(8)?,
            parameters: parameters
                .transpose()
                .map_err(DatabaseError::unreadable_data)?,
        };
        Ok(Self {
            record,
            instance: row.optional_text(3)?,
            key: row.read_int(11)?,
        })
    }
}

pub(crate) fn run_state_name(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Waiting => "waiting",
        RunState::Interrupted => "interrupted",
        RunState::Finished => "finished",
    }
}

fn parse_run_state(name: &str) -> Result<RunState, DatabaseError> {
    serde_json::from_value(name.into()).map_err(|_| {
        DatabaseError::unreadable_data(format!("a run has the unknown state `{name}`"))
    })
}

pub(crate) fn read_session(row: &Row) -> Result<Session, DatabaseError> {
    Ok(Session {
        id: SessionId(row.read_text(0)?),
        title: row.read_text(1)?,
        created_at: row.read_text(2)?,
        messages: row.read_count(3)?,
    })
}

/// Parses the message in a row with the columns (position, message).
pub(crate) fn read_message(row: &Row) -> Result<Arc<Message>, DatabaseError> {
    let message = serde_json::from_str::<Message>(&row.read_text(1)?);
    message
        .map(Arc::new)
        .map_err(DatabaseError::unreadable_data)
}

/// Parses the events in a row with three columns: the number of the last event, the number of the
/// first event, and a text with one event per line. Returns each event as JSON text with its
/// number. Fails if the number of lines does not match the event numbers.
pub(crate) fn read_events(row: &Row) -> Result<Vec<(u64, String)>, DatabaseError> {
    let (last, first) = (row.read_count(0)?, row.read_count(1)?);
    let text = row.read_text(2)?;
    let events: Vec<_> = (first..).zip(text.split('\n').map(str::to_owned)).collect();
    if events.last().is_some_and(|(number, _)| *number == last) {
        Ok(events)
    } else {
        let cause =
            format!("the row of events {first} to {last} contains a different number of events");
        Err(DatabaseError::unreadable_data(cause))
    }
}

//! Appends events, of many runs with one statement.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use switchboard_domain::{SessionStoreError, StoredEvent};

use super::{
    queue::{Refusal, Write},
    run::{refusal_of_run, run_conflict},
    transaction::Transaction,
};
use crate::{
    database::{BatchStatement, DatabaseError, Value, values},
    limits::check_nesting,
};

/// The events of one append. They are one row.
pub(crate) struct AppendEvents {
    pub(crate) run: Arc<str>,
    first: u64,
    last: u64,
    /// One event on each line.
    lines: String,
}

impl AppendEvents {
    /// Returns `None` without events. Fails if their numbers have gaps.
    pub(crate) fn new(
        run: &str,
        events: &[StoredEvent],
    ) -> Result<Option<Self>, SessionStoreError> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return Ok(None);
        };
        let (first, last) = (first.seq, last.seq);
        let mut numbered = events.iter().zip(first..);
        if !numbered.all(|(event, seq)| event.seq == seq) {
            return Err(run_conflict(run, "the numbers of the events have gaps"));
        }
        for event in events {
            check_nesting("an event", &event.json)?;
        }
        Ok(Some(Self {
            run: run.into(),
            first,
            last,
            lines: event_lines(events),
        }))
    }
}

/// Returns one event per line. In JSON, line ends occur only where a space is allowed too.
fn event_lines(events: &[StoredEvent]) -> String {
    let size = events.iter().map(|event| event.json.len() + 1).sum();
    let mut lines = String::with_capacity(size);
    for event in events {
        if !lines.is_empty() {
            lines.push('\n');
        }
        if event.json.contains(['\n', '\r']) {
            lines.push_str(&event.json.replace(['\n', '\r'], " "));
        } else {
            lines.push_str(&event.json);
        }
    }
    lines
}

/// Inserts events only if this instance has their run and they follow its last event.
///
/// `CROSS JOIN` makes SQLite look up the run of each row instead of a row for each run. PostgreSQL
/// treats it as any other join.
static APPEND: LazyLock<BatchStatement> = LazyLock::new(|| {
    BatchStatement::new(
        "WITH given (run, first_seq, last_seq, events) AS (VALUES ",
        3,
        4,
        ") INSERT INTO run_events (run, last_seq, first_seq, at, events)
            SELECT r.key, g.last_seq, g.first_seq, $2, g.events
            FROM given g CROSS JOIN runs r
            WHERE r.id = g.run AND r.instance = $1
            AND g.first_seq - 1 =
                COALESCE((SELECT MAX(e.last_seq) FROM run_events e WHERE e.run = r.key), 0)",
    )
});

/// Maximum number of appends in one statement.
pub(crate) const MAX_APPENDS: usize = 256;

/// Appends events of at most [`MAX_APPENDS`] appends and returns how many were written.
pub(crate) async fn append<'a>(
    tx: &mut Transaction<'_>,
    appends: impl ExactSizeIterator<Item = &'a AppendEvents> + Send,
) -> Result<u64, DatabaseError> {
    let statement: &'static BatchStatement = &APPEND;
    let count = appends.len();
    let (size, sql) = statement.at_least(count);
    let mut parameters = values![tx.own_id, &tx.now.text];
    for append in appends {
        parameters.extend(values![
            &*append.run,
            append.first,
            append.last,
            &append.lines
        ]);
    }
    // No run has the id null, so the other rows have no effect.
    for _ in count..size {
        parameters.extend([Value::Null, Value::Int(0), Value::Int(0), Value::Null]);
    }
    tx.connection.execute(sql, parameters).await
}

#[async_trait]
impl Write for AppendEvents {
    type Output = ();
    const OPERATION: &'static str = "append events";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const LAST: &str = "SELECT COALESCE(MAX(e.last_seq), 0) FROM run_events e
            JOIN runs r ON r.key = e.run WHERE r.id = $1";
        if append(tx, std::iter::once(self)).await? == 1 {
            return Ok(());
        }
        let last = tx.row(LAST, values![&*self.run]).await?;
        let last = last.map_or(Ok(0), |row| row.count(0))?;
        let gap = format!(
            "its last event is {last}, so event {} does not follow",
            self.first
        );
        Err(refusal_of_run(tx, &self.run, &gap).await?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64, json: &str) -> StoredEvent {
        StoredEvent {
            seq,
            json: json.into(),
        }
    }

    #[test]
    fn each_event_is_stored_as_one_line() {
        let events = [event(4, "{\"a\":\n 1}"), event(5, "{\"a\":\"\\n\"}")];
        let append = AppendEvents::new("r", &events).unwrap().unwrap();
        assert_eq!(append.lines, "{\"a\":  1}\n{\"a\":\"\\n\"}");
        assert_eq!((append.first, append.last), (4, 5));
    }

    #[test]
    fn event_numbers_with_gaps_are_refused() {
        assert!(AppendEvents::new("r", &[]).unwrap().is_none());
        assert!(AppendEvents::new("r", &[event(1, "{}"), event(3, "{}")]).is_err());
        assert!(AppendEvents::new("r", &[event(2, "{}"), event(1, "{}")]).is_err());
    }
}

//! Appending events, of many runs with one statement.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use switchboard_domain::{SessionStoreError, StoredEvent};

use super::run::{changed, not_mine};
use crate::{
    database::{Rows, Value, values},
    depth,
    error::Refusal,
    transaction::Transaction,
    writer::Write,
};

/// The events of one append: one row.
pub(crate) struct AppendEvents {
    pub(crate) run: Arc<str>,
    first: u64,
    last: u64,
    /// One event on each line.
    lines: String,
}

impl AppendEvents {
    /// `None` if there are none. Fails if they are not numbered without gaps.
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
            return Err(changed(run, "the events have gaps"));
        }
        for event in events {
            depth::check("an event", &event.json)?;
        }
        Ok(Some(Self {
            run: run.into(),
            first,
            last,
            lines: lines(events),
        }))
    }
}

/// JSON may only have ends of lines where a blank would do as well.
fn lines(events: &[StoredEvent]) -> String {
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

/// They are only written where this instance has the run and they follow upon what is there. `CROSS JOIN` makes
/// SQLite look up the run of each row, not a row for each run; to PostgreSQL it is like any other.
static APPEND: LazyLock<Rows> = LazyLock::new(|| {
    Rows::new(
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

/// The most appends that are done at once.
pub(crate) const MOST: usize = 256;

/// How many of them were written, of no more than [`MOST`].
pub(crate) async fn append<'a>(
    tx: &mut Transaction<'_>,
    appends: impl ExactSizeIterator<Item = &'a AppendEvents> + Send,
) -> Result<u64, sqlx::Error> {
    let statements: &'static Rows = &APPEND;
    let count = appends.len();
    let (size, sql) = statements.spacious(count);
    let mut parameters = values![tx.me, &tx.now.text];
    for append in appends {
        parameters.extend(values![
            &*append.run,
            append.first,
            append.last,
            &append.lines
        ]);
    }
    // Nothing has no name, so these are rows of no run.
    for _ in count..size {
        parameters.extend([Value::NoText, Value::Int(0), Value::Int(0), Value::NoText]);
    }
    tx.connection.execute(sql, parameters).await
}

#[async_trait]
impl Write for AppendEvents {
    type Answer = ();
    const WHAT: &'static str = "append events";

    async fn apply(&self, tx: &mut Transaction<'_>) -> Result<(), Refusal> {
        const LAST: &str = "SELECT COALESCE(MAX(e.last_seq), 0) FROM run_events e
            JOIN runs r ON r.key = e.run WHERE r.id = $1";
        if append(tx, std::iter::once(self)).await? == 1 {
            return Ok(());
        }
        let last = tx.row(LAST, values![&*self.run]).await?;
        let last = last.map_or(Ok(0), |row| row.count(0))?;
        let gap = format!(
            "its last event is {last}, so {} does not follow",
            self.first
        );
        Err(not_mine(tx, &self.run, &gap).await?.into())
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
    fn each_event_is_one_line() {
        let events = [event(4, "{\"a\":\n 1}"), event(5, "{\"a\":\"\\n\"}")];
        let append = AppendEvents::new("r", &events).unwrap().unwrap();
        assert_eq!(append.lines, "{\"a\":  1}\n{\"a\":\"\\n\"}");
        assert_eq!((append.first, append.last), (4, 5));
    }

    #[test]
    fn numbers_have_no_gaps() {
        assert!(AppendEvents::new("r", &[]).unwrap().is_none());
        assert!(AppendEvents::new("r", &[event(1, "{}"), event(3, "{}")]).is_err());
        assert!(AppendEvents::new("r", &[event(2, "{}"), event(1, "{}")]).is_err());
    }
}

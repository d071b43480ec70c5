//! Writes sessions as JSON Lines.

use futures_util::{Stream, stream};
use jiff::Timestamp;
use serde_json::value::RawValue;
use switchboard_domain::{Principal, RunState, SessionId, SessionStoreError};
use tokio::{runtime::Handle, sync::mpsc, task::spawn_blocking};

use super::record::{FORMAT, Record, VERSION};
use crate::{
    Store,
    database::{Connection, DatabaseError, Row, has_nul, values},
    rows::{SESSION, StoredRun, read_events, read_session, select_runs},
    write::queue::Refusal,
};

type Line = Result<String, SessionStoreError>;

impl Store {
    /// Writes one session of a principal, or all of them; docs/sessions.md describes the format.
    ///
    /// All lines come from one snapshot of the store. The stream uses one connection until it is
    /// dropped, and ends after an error, such as [`SessionStoreError::NotFound`]. A running run is
    /// exported as interrupted. Must be called within a tokio runtime.
    pub fn export(
        &self,
        owner: &Principal,
        session: Option<&SessionId>,
    ) -> impl Stream<Item = Line> + Unpin + Send + use<> {
        let (sender, mut lines) = mpsc::channel(64);
        let (store, owner, session) = (self.clone(), owner.clone(), session.cloned());
        let runtime = Handle::current();
        // SQLite blocks the thread. The task ends when the stream is dropped.
        spawn_blocking(move || {
            runtime.block_on(async move {
                let error = match write_sessions(&store, &owner, session, &sender).await {
                    Ok(()) => return,
                    Err(Refusal::Refused(error)) => error,
                    Err(Refusal::Failed(error)) => error.of_read("export sessions"),
                };
                let _ = sender.send(Err(error)).await;
            });
        });
        stream::poll_fn(move |context| lines.poll_recv(context))
    }
}

/// Sends a record. Fails if the stream was dropped.
async fn send(output: &mpsc::Sender<Line>, record: &Record) -> Result<(), DatabaseError> {
    let mut line = serde_json::to_string(record).map_err(DatabaseError::other)?;
    line.push('\n');
    let sent = output.send(Ok(line)).await;
    sent.map_err(|_| DatabaseError::other("the export was abandoned"))
}

/// Sends the records of all rows after the number -1, which `sql` selects in pages. The first
/// column of a row is its number.
async fn send_rows(
    output: &mpsc::Sender<Line>,
    connection: &mut dyn Connection,
    sql: &'static str,
    key: i64,
    records: impl Fn(&Row) -> Result<Vec<Record>, DatabaseError>,
) -> Result<(), DatabaseError> {
    let mut after = -1;
    loop {
        let page = connection.rows(sql, values![key, after]).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.int(0)?;
        for row in &page {
            for record in records(row)? {
                send(output, &record).await?;
            }
        }
    }
}

async fn write_sessions(
    store: &Store,
    owner: &Principal,
    only: Option<SessionId>,
    output: &mpsc::Sender<Line>,
) -> Result<(), Refusal> {
    const NEXT: &str = "SELECT id, title, created_at, messages, key FROM sessions
        WHERE tenant = $1 AND person = $2 AND key > $3 ORDER BY key LIMIT 1";
    let mut connection = store.database().snapshot().await?;
    let header = Record::Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        exported_at: Timestamp::now().to_string(),
    };
    send(output, &header).await?;
    let mut sessions = 0;
    let mut after = i64::MIN;
    loop {
        let (sql, values) = match &only {
            Some(id) if has_nul(&id.0) => break,
            Some(id) => (SESSION, values![&id.0, &owner.tenant, &owner.user]),
            None => (NEXT, values![&owner.tenant, &owner.user, after]),
        };
        let Some(row) = connection.row(sql, values).await? else {
            break;
        };
        after = row.int(4)?;
        write_session(&mut *connection, owner, &row, output).await?;
        sessions += 1;
        if only.is_some() {
            break;
        }
    }
    if let Some(id) = only.filter(|_| sessions == 0) {
        return Err(SessionStoreError::NotFound { id }.into());
    }
    send(output, &Record::End { sessions }).await?;
    connection.close().await;
    Ok(())
}

async fn write_session(
    connection: &mut dyn Connection,
    owner: &Principal,
    row: &Row,
    output: &mpsc::Sender<Line>,
) -> Result<(), DatabaseError> {
    const MESSAGES: &str = "SELECT position, message FROM messages
        WHERE session = $1 AND position > $2 ORDER BY position LIMIT 64";
    const RUNS: &str = select_runs!("s.id = $3 ORDER BY r.key");
    let session = read_session(row)?;
    let (id, key) = (session.id.0.clone(), row.int(4)?);
    send(output, &Record::Session(session)).await?;
    let message = |row: &Row| Ok(vec![Record::Message(raw(row.text(1)?)?)]);
    send_rows(output, connection, MESSAGES, key, message).await?;
    let values = values![&owner.tenant, &owner.user, &id];
    for row in connection.rows(RUNS, values).await? {
        write_run(connection, StoredRun::new(&row)?, output).await?;
    }
    Ok(())
}

async fn write_run(
    connection: &mut dyn Connection,
    run: StoredRun,
    output: &mpsc::Sender<Line>,
) -> Result<(), DatabaseError> {
    const EVENTS: &str = "SELECT last_seq, first_seq, events FROM run_events
        WHERE run = $1 AND last_seq > $2 ORDER BY last_seq LIMIT 16";
    const STATE: &str = "SELECT state, messages FROM run_states WHERE run = $1";
    const RUN_MESSAGES: &str = "SELECT position, message FROM run_messages
        WHERE run = $1 AND position > $2 ORDER BY position LIMIT 64";
    let StoredRun {
        mut record, key, ..
    } = run;
    if record.state == RunState::Running {
        record.state = RunState::Interrupted;
    }
    send(output, &Record::Run(record)).await?;
    let events = |row: &Row| {
        let events = read_events(row)?.into_iter();
        events
            .map(|(_, event)| raw(event).map(Record::Event))
            .collect()
    };
    send_rows(output, connection, EVENTS, key, events).await?;
    if let Some(row) = connection.row(STATE, values![key]).await? {
        // In JSON, line ends occur only where a space is allowed too.
        let state = row.text(0)?.replace(['\n', '\r'], " ");
        let state = Record::State {
            messages: row.count(1)?,
            state: raw(state)?,
        };
        send(output, &state).await?;
        let message = |row: &Row| Ok(vec![Record::RunMessage(raw(row.text(1)?)?)]);
        send_rows(output, connection, RUN_MESSAGES, key, message).await?;
    }
    Ok(())
}

fn raw(json: String) -> Result<Box<RawValue>, DatabaseError> {
    RawValue::from_string(json).map_err(DatabaseError::unreadable)
}

//! Writes sessions as JSON Lines.

use futures_util::{Stream, stream};
use jiff::Timestamp;
use serde_json::value::RawValue;
use switchboard_domain::{Principal, RunState, SessionId, SessionStoreError};
use tokio::{runtime::Handle, sync::mpsc, task::spawn_blocking};

use super::export_record::{FORMAT, Record, VERSION};
use crate::{
    Store,
    database::{Connection, DatabaseError, Row, has_nul, values},
    rows::{SESSION, StoredRun, read_events, read_session, select_runs},
    write::queue::WriteError,
};

type Line = Result<String, SessionStoreError>;

impl Store {
    /// Exports one session of a principal, or all of them. docs/sessions.md describes the format.
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
        // A blocking thread is used, because SQLite calls block. Dropping the stream ends the task.
        spawn_blocking(move || {
            runtime.block_on(async move {
                let error = match write_sessions(&store, &owner, session, &sender).await {
                    Ok(()) => return,
                    Err(WriteError::Refused(error)) => error,
                    Err(WriteError::Failed(error)) => error.into_store_error("export sessions"),
                };
                let _ = sender.send(Err(error)).await;
            });
        });
        stream::poll_fn(move |context| lines.poll_recv(context))
    }
}

/// Sends a record as one line of the export. Fails if the stream was dropped.
async fn send_record(output: &mpsc::Sender<Line>, record: &Record) -> Result<(), DatabaseError> {
    let mut line = serde_json::to_string(record).map_err(DatabaseError::other_failure)?;
    line.push('\n');
    let sent = output.send(Ok(line)).await;
    sent.map_err(|_| DatabaseError::other_failure("the export was abandoned"))
}

/// Sends the rows of the query `sql` as export records, page by page, until a page is empty.
/// `records` converts a row. The first column of `sql` is the position of the row. The parameters
/// of `sql` are `key` and the position of the last row of the previous page (-1 for the first
/// page).
async fn send_rows(
    output: &mpsc::Sender<Line>,
    connection: &mut dyn Connection,
    sql: &'static str,
    key: i64,
    records: impl Fn(&Row) -> Result<Vec<Record>, DatabaseError>,
) -> Result<(), DatabaseError> {
    let mut after = -1;
    loop {
        let page = connection.query_rows(sql, values![key, after]).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.read_int(0)?;
        for row in &page {
            for record in records(row)? {
                send_record(output, &record).await?;
            }
        }
    }
}

async fn write_sessions(
    store: &Store,
    owner: &Principal,
    only: Option<SessionId>,
    output: &mpsc::Sender<Line>,
) -> Result<(), WriteError> {
    const NEXT: &str = "SELECT id, title, created_at, messages, key FROM sessions
        WHERE tenant = $1 AND person = $2 AND key > $3 ORDER BY key LIMIT 1";
    let mut connection = store.database().open_snapshot().await?;
    let header = Record::Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        exported_at: Timestamp::now().to_string(),
    };
    send_record(output, &header).await?;
    let mut sessions = 0;
    let mut after = i64::MIN;
    loop {
        let (sql, values) = match &only {
            Some(id) if has_nul(&id.0) => break,
            Some(id) => (SESSION, values![&id.0, &owner.tenant, &owner.user]),
            None => (NEXT, values![&owner.tenant, &owner.user, after]),
        };
        let Some(row) = connection.query_row(sql, values).await? else {
            break;
        };
        after = row.read_int(4)?;
        write_session(&mut *connection, owner, &row, output).await?;
        sessions += 1;
        if only.is_some() {
            break;
        }
    }
    if let Some(id) = only.filter(|_| sessions == 0) {
        return Err(SessionStoreError::NotFound { id }.into());
    }
    send_record(output, &Record::End { sessions }).await?;
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
    let (id, key) = (session.id.0.clone(), row.read_int(4)?);
    send_record(output, &Record::Session(session)).await?;
    let message = |row: &Row| Ok(vec![Record::Message(to_raw_json(row.read_text(1)?)?)]);
    send_rows(output, connection, MESSAGES, key, message).await?;
    let values = values![&owner.tenant, &owner.user, &id];
    for row in connection.query_rows(RUNS, values).await? {
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
    send_record(output, &Record::Run(record)).await?;
    let events = |row: &Row| {
        let events = read_events(row)?.into_iter();
        events
            .map(|(_, event)| to_raw_json(event).map(Record::Event))
            .collect()
    };
    send_rows(output, connection, EVENTS, key, events).await?;
    if let Some(row) = connection.query_row(STATE, values![key]).await? {
        // A record must be one line. Line ends in JSON are white space, so spaces can replace them.
        let state = row.read_text(0)?.replace(['\n', '\r'], " ");
        let state = Record::State {
            messages: row.read_count(1)?,
            state: to_raw_json(state)?,
        };
        send_record(output, &state).await?;
        let message = |row: &Row| Ok(vec![Record::RunMessage(to_raw_json(row.read_text(1)?)?)]);
        send_rows(output, connection, RUN_MESSAGES, key, message).await?;
    }
    Ok(())
}

fn to_raw_json(json: String) -> Result<Box<RawValue>, DatabaseError> {
    RawValue::from_string(json).map_err(DatabaseError::unreadable_data)
}

//! Writes sessions as JSON Lines.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use jiff::Timestamp;
use serde_json::value::RawValue;
use switchboard_domain::{Principal, RunState, SessionId, SessionStoreError};
use tokio::{runtime::Handle, sync::mpsc, task::spawn_blocking};

use super::record::{FORMAT, Record, VERSION};
use crate::{
    Store,
    database::{Connection, DatabaseError, Row, has_nul, values},
    rows::{self, StoredRun, select_runs},
};

const OPERATION: &str = "export sessions";

/// The lines of an export.
///
/// All lines come from one snapshot of the store. Uses one connection until it is dropped.
pub struct Export {
    lines: mpsc::Receiver<Result<String, SessionStoreError>>,
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").finish_non_exhaustive()
    }
}

impl Stream for Export {
    type Item = Result<String, SessionStoreError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.lines.poll_recv(context)
    }
}

impl Store {
    /// Writes one session of a principal, or all of them; docs/sessions.md describes the format.
    ///
    /// The stream ends after an error, such as [`SessionStoreError::NotFound`]. Decisions and audit
    /// entries are not part of sessions. A running run is exported as interrupted. Must be called
    /// within a tokio runtime.
    pub fn export(&self, owner: &Principal, session: Option<&SessionId>) -> Export {
        let (sender, lines) = mpsc::channel(64);
        let (store, owner, session) = (self.clone(), owner.clone(), session.cloned());
        let runtime = Handle::current();
        // SQLite blocks the thread. The task ends when the stream is dropped.
        spawn_blocking(move || {
            runtime.block_on(async move {
                let output = Output(sender);
                if let Err(Stop::Failed(error)) = write(&store, &owner, session, &output).await {
                    let _ = output.0.send(Err(error)).await;
                }
            });
        });
        Export { lines }
    }
}

enum Stop {
    Failed(SessionStoreError),
    /// The stream was dropped.
    Dropped,
}

impl From<DatabaseError> for Stop {
    fn from(error: DatabaseError) -> Self {
        Self::Failed(error.of_read(OPERATION))
    }
}

struct Output(mpsc::Sender<Result<String, SessionStoreError>>);

impl Output {
    async fn line(&self, record: &Record) -> Result<(), Stop> {
        let mut line = serde_json::to_string(record).map_err(DatabaseError::other)?;
        line.push('\n');
        self.0.send(Ok(line)).await.map_err(|_| Stop::Dropped)
    }

    /// Writes the messages of a session or a run, with one record each.
    async fn messages(
        &self,
        connection: &mut dyn Connection,
        sql: &'static str,
        key: i64,
        record: fn(Box<RawValue>) -> Record,
    ) -> Result<(), Stop> {
        let mut after = -1;
        loop {
            let page = connection.rows(sql, values![key, after]).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = last.int(0)?;
            for row in &page {
                self.line(&record(raw(row.text(1)?)?)).await?;
            }
        }
    }
}

async fn write(
    store: &Store,
    owner: &Principal,
    only: Option<SessionId>,
    output: &Output,
) -> Result<(), Stop> {
    const NEXT: &str = "SELECT id, title, created_at, messages, key FROM sessions
        WHERE tenant = $1 AND person = $2 AND key > $3 ORDER BY key LIMIT 1";
    let mut connection = store.snapshot().await?;
    let header = Record::Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        exported_at: Timestamp::now().to_string(),
    };
    output.line(&header).await?;
    let mut sessions = 0;
    if let Some(id) = only {
        let found = if has_nul(&id.0) {
            None
        } else {
            let values = values![&id.0, &owner.tenant, &owner.user];
            connection.row(rows::SESSION, values).await?
        };
        let Some(row) = found else {
            return Err(Stop::Failed(SessionStoreError::NotFound { id }));
        };
        write_session(&mut *connection, owner, &row, output).await?;
        sessions = 1;
    } else {
        let mut after = i64::MIN;
        loop {
            let values = values![&owner.tenant, &owner.user, after];
            let Some(row) = connection.row(NEXT, values).await? else {
                break;
            };
            after = row.int(4)?;
            write_session(&mut *connection, owner, &row, output).await?;
            sessions += 1;
        }
    }
    output.line(&Record::End { sessions }).await?;
    connection.close().await;
    Ok(())
}

async fn write_session(
    connection: &mut dyn Connection,
    owner: &Principal,
    row: &Row,
    output: &Output,
) -> Result<(), Stop> {
    const MESSAGES: &str = "SELECT position, message FROM messages
        WHERE session = $1 AND position > $2 ORDER BY position LIMIT 64";
    const RUNS: &str = select_runs!("s.id = $3 ORDER BY r.key");
    let session = rows::read_session(row)?;
    let id = session.id.0.clone();
    output.line(&Record::Session(session)).await?;
    let key = row.int(4)?;
    output
        .messages(connection, MESSAGES, key, Record::Message)
        .await?;
    let values = values![&owner.tenant, &owner.user, &id];
    for row in connection.rows(RUNS, values).await? {
        write_run(connection, StoredRun::new(&row)?, output).await?;
    }
    Ok(())
}

async fn write_run(
    connection: &mut dyn Connection,
    run: StoredRun,
    output: &Output,
) -> Result<(), Stop> {
    const EVENTS: &str = "SELECT first_seq, last_seq, events FROM run_events
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
    output.line(&Record::Run(record)).await?;
    let mut after = 0;
    loop {
        let page = connection.rows(EVENTS, values![key, after]).await?;
        let Some(last) = page.last() else {
            break;
        };
        after = last.int(1)?;
        for row in &page {
            for (_, event) in rows::read_events(row)? {
                output.line(&Record::Event(raw(event)?)).await?;
            }
        }
    }
    if let Some(row) = connection.row(STATE, values![key]).await? {
        // In JSON, line ends occur only where a space is allowed too.
        let state = row.text(0)?.replace(['\n', '\r'], " ");
        let state = Record::State {
            messages: row.count(1)?,
            state: raw(state)?,
        };
        output.line(&state).await?;
        output
            .messages(connection, RUN_MESSAGES, key, Record::RunMessage)
            .await?;
    }
    Ok(())
}

fn raw(json: String) -> Result<Box<RawValue>, DatabaseError> {
    RawValue::from_string(json).map_err(DatabaseError::unreadable)
}

//! A principal's sessions as JSON, in pieces.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use jiff::Timestamp;
use serde_json::value::RawValue;
use switchboard_domain::{Principal, RunState, SessionId, SessionStoreError};
use tokio::{sync::mpsc, task::AbortHandle};

use crate::{
    Store,
    database::{Row, has_nul, values},
    error::{storage, unread},
    long_read::LongRead,
    read::{self, FoundRun, corrupt, each_event},
    record::{FORMAT, Header, Record, VERSION},
};

const WHAT: &str = "export sessions";

/// How much stands in one record, in bytes; more only if it is a single message or event.
const PAGE_BYTES: usize = 1 << 20;

/// The most messages or events in one record.
const PAGE_MOST: usize = 512;

/// The pieces of one JSON document. It shows the store as it was when the first piece was made, and costs one
/// connection until it is dropped.
pub struct Export {
    pieces: mpsc::Receiver<Result<String, SessionStoreError>>,
    task: AbortHandle,
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export").finish_non_exhaustive()
    }
}

impl Stream for Export {
    type Item = Result<String, SessionStoreError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.pieces.poll_recv(context)
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Store {
    /// Writes one session of a principal, or all of them, as JSON; see docs/sessions.md for its form. The stream
    /// ends after an error, of which [`SessionStoreError::NotFound`] is one. Must be called within a tokio runtime.
    ///
    /// Approvals and the audit are no part of sessions. A run that a process is at work on stands there as
    /// interrupted.
    pub fn export(&self, owner: &Principal, session: Option<&SessionId>) -> Export {
        let (sender, pieces) = mpsc::channel(4);
        let (store, owner, session) = (self.clone(), owner.clone(), session.cloned());
        let task = tokio::spawn(async move {
            let mut output = Output {
                sender,
                is_first: true,
            };
            if let Err(Stop::Failed(error)) = write(&store, &owner, session, &mut output).await {
                // Nobody waits for it if this fails.
                let _ = output.sender.send(Err(error)).await;
            }
        })
        .abort_handle();
        Export { pieces, task }
    }
}

enum Stop {
    Failed(SessionStoreError),
    /// Nobody reads any more.
    Unread,
}

impl From<sqlx::Error> for Stop {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(unread(WHAT, error))
    }
}

impl From<serde_json::Error> for Stop {
    fn from(error: serde_json::Error) -> Self {
        Self::Failed(storage(WHAT, error))
    }
}

struct Output {
    sender: mpsc::Sender<Result<String, SessionStoreError>>,
    is_first: bool,
}

impl Output {
    async fn record(&mut self, record: &Record) -> Result<(), Stop> {
        let before = if self.is_first { "[" } else { "," };
        self.is_first = false;
        let json = serde_json::to_string(record)?;
        self.text(format!("{before}{json}\n")).await
    }

    /// Messages or events in records of their own, each as large as it may be.
    async fn page(&mut self, page: &mut Page, record: Many) -> Result<(), Stop> {
        page.bytes = 0;
        let items = std::mem::take(&mut page.items);
        if items.is_empty() {
            return Ok(());
        }
        self.record(&record(items)).await
    }

    async fn text(&mut self, text: String) -> Result<(), Stop> {
        self.sender.send(Ok(text)).await.map_err(|_| Stop::Unread)
    }
}

type Many = fn(Vec<Box<RawValue>>) -> Record;

/// What goes into the next record.
#[derive(Default)]
struct Page {
    items: Vec<Box<RawValue>>,
    bytes: usize,
}

impl Page {
    /// Whether it must be written before this is added. Only what it is made of counts, not how it is stored: what is
    /// imported is exported in the same records again.
    fn is_full_before(&self, json: &str) -> bool {
        !self.items.is_empty()
            && (self.items.len() >= PAGE_MOST || self.bytes + json.len() > PAGE_BYTES)
    }

    fn add(&mut self, json: String) -> Result<(), sqlx::Error> {
        self.bytes += json.len();
        self.items.push(raw(json)?);
        Ok(())
    }
}

async fn write(
    store: &Store,
    owner: &Principal,
    only: Option<SessionId>,
    output: &mut Output,
) -> Result<(), Stop> {
    let mut connection = store.long_read().await?;
    let header = Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        exported_at: Timestamp::now().to_string(),
    };
    output.record(&Record::Header(header)).await?;
    let mut sessions = 0;
    if let Some(id) = only {
        if has_nul(&id.0) {
            return Err(Stop::Failed(SessionStoreError::NotFound { id }));
        }
        let values = values![&id.0, &owner.tenant, &owner.user];
        let Some(row) = connection.row(read::SESSION, values).await? else {
            return Err(Stop::Failed(SessionStoreError::NotFound { id }));
        };
        write_session(&mut connection, owner, &row, output).await?;
        sessions = 1;
    } else {
        const NEXT: &str = "SELECT id, title, created_at, messages, key FROM sessions
            WHERE tenant = $1 AND person = $2 AND key > $3 ORDER BY key LIMIT 1";
        let mut after = i64::MIN;
        loop {
            let values = values![&owner.tenant, &owner.user, after];
            let Some(row) = connection.row(NEXT, values).await? else {
                break;
            };
            after = row.int(4)?;
            write_session(&mut connection, owner, &row, output).await?;
            sessions += 1;
        }
    }
    output.record(&Record::End { sessions }).await?;
    output.text("]\n".to_owned()).await?;
    connection.close().await;
    Ok(())
}

async fn write_session(
    connection: &mut LongRead,
    owner: &Principal,
    row: &Row,
    output: &mut Output,
) -> Result<(), Stop> {
    const MESSAGES: &str = "SELECT position, message FROM messages
        WHERE session = $1 ORDER BY position";
    let session = read::session(row)?;
    let id = session.id.0.clone();
    output.record(&Record::Session(session)).await?;
    messages(connection, MESSAGES, row.int(4)?, output, Record::Messages).await?;
    let values = values![&owner.tenant, &owner.user, &id];
    // Of a session, runs are few; their events are many.
    for row in connection.rows(read::RUNS_OF_SESSION, values).await? {
        write_run(connection, FoundRun::new(&row)?, output).await?;
    }
    Ok(())
}

async fn write_run(
    connection: &mut LongRead,
    found: FoundRun,
    output: &mut Output,
) -> Result<(), Stop> {
    const EVENTS: &str = "SELECT first_seq, last_seq, events FROM run_events
        WHERE run = $1 ORDER BY last_seq";
    const STATE: &str = "SELECT state, messages FROM run_states WHERE run = $1";
    const CONVERSATION: &str = "SELECT position, message FROM run_messages
        WHERE run = $1 ORDER BY position";
    let FoundRun {
        mut record, key, ..
    } = found;
    if record.state == RunState::Running {
        record.state = RunState::Interrupted;
    }
    output.record(&Record::Run(record)).await?;
    let mut page = Page::default();
    let mut rows = connection.stream(EVENTS, values![key])?;
    while let Some(row) = rows.next().await? {
        let mut events = Vec::new();
        each_event(&row, |_, json| events.push(json.to_owned()))?;
        for event in events {
            if page.is_full_before(&event) {
                output.page(&mut page, Record::Events).await?;
            }
            page.add(event)?;
        }
    }
    drop(rows);
    output.page(&mut page, Record::Events).await?;
    if let Some(row) = connection.row(STATE, values![key]).await? {
        let state = Record::State {
            messages: row.count(1)?,
            state: raw(row.text(0)?)?,
        };
        output.record(&state).await?;
        let many = Record::Conversation;
        messages(connection, CONVERSATION, key, output, many).await?;
    }
    Ok(())
}

/// Rows of (position, message).
async fn messages(
    connection: &mut LongRead,
    sql: &'static str,
    key: i64,
    output: &mut Output,
    many: Many,
) -> Result<(), Stop> {
    let mut page = Page::default();
    let mut rows = connection.stream(sql, values![key])?;
    while let Some(row) = rows.next().await? {
        let message = row.text(1)?;
        if page.is_full_before(&message) {
            output.page(&mut page, many).await?;
        }
        page.add(message)?;
    }
    output.page(&mut page, many).await
}

fn raw(json: String) -> Result<Box<RawValue>, sqlx::Error> {
    // Before the text is shown as JSON it must be JSON.
    RawValue::from_string(json).map_err(|error| corrupt(error.to_string()))
}

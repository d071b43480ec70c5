//! Sessions from JSON, all of them or none.
//!
//! They are written in several transactions as sessions that are nobody's, and become the principal's in the last
//! one. Until then nobody sees them; what an import leaves behind that was given up or killed is removed.

use serde_json::value::RawValue;
use switchboard_domain::{
    Message, Principal, RunRecord, RunState, Session, SessionId, SessionStoreError,
    check_document_depth,
};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use uuid::Uuid;

use crate::{
    ImportError, Store,
    elements::Elements,
    record::{FORMAT, Record, VERSION},
    wish,
    write::import::{AddStaged, GiveUp, Hand, Staging},
    writer::Queue,
};

/// Under which ids sessions and runs are imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImportIds {
    /// Under their own. If one of them is taken, nothing is imported.
    Keep,
    /// Under new ones.
    New,
}

/// What was imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The ids of the sessions, in the order in which they stood there.
    pub sessions: Vec<SessionId>,
    /// The ids of the runs that were not over. They are now, as `cancelled`.
    pub cancelled: Vec<String>,
}

/// How much is written at once.
const SLICE_BYTES: usize = 1 << 20;

impl Store {
    /// Reads what [`export`](Self::export) wrote and gives it to a principal. It does not matter whose it was.
    /// All of it is there when this returns, or nothing is; also if the future is dropped, or the process ends.
    ///
    /// A run that is not over is ended, as `cancelled`: what it was about to do, and that somebody had allowed it, is
    /// for nobody to say but the program that ran it. Its events stay.
    pub async fn import<R: AsyncRead + Unpin + Send>(
        &self,
        owner: &Principal,
        mut from: R,
        ids: ImportIds,
    ) -> Result<Imported, ImportError> {
        let mut import = Import {
            staged: Staged {
                queue: self.queue().clone(),
                import: Uuid::now_v7().to_string(),
                is_over: false,
            },
            ids,
            at: Cursor::default(),
            sessions: Vec::new(),
            cancelled: Vec::new(),
            stage: Stage::Header,
            rows: Vec::new(),
            bytes: 0,
        };
        let mut elements = Elements::new();
        let mut found = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = from.read(&mut buffer).await;
            let read = read.map_err(|source| ImportError::Read { source })?;
            if read == 0 {
                break;
            }
            elements.feed(&buffer[..read], &mut found)?;
            for element in found.drain(..) {
                import.take(&element)?;
                if import.bytes >= SLICE_BYTES {
                    import.write().await?;
                }
            }
        }
        if !elements.is_complete() {
            return Err(ImportError::malformed("it was cut off"));
        }
        import.finish(owner).await
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Sessions,
    Over,
}

struct Import {
    staged: Staged,
    ids: ImportIds,
    at: Cursor,
    sessions: Vec<SessionId>,
    cancelled: Vec<String>,
    stage: Stage,
    rows: Vec<Staging>,
    bytes: usize,
}

/// What belongs to what, and what is still to come.
#[derive(Debug, Default)]
struct Cursor {
    session: Option<Session>,
    messages: u64,
    run: Option<RunRecord>,
    last_event: u64,
    events_before: u64,
    conversation: Option<u64>,
    conversation_ends: u64,
    has_unfinished: bool,
}

impl Import {
    fn take(&mut self, element: &str) -> Result<(), ImportError> {
        if self.stage == Stage::Header {
            check_version(element)?;
        }
        let record: Record = serde_json::from_str(element)
            .map_err(|error| ImportError::malformed(format!("a record cannot be read: {error}")))?;
        self.bytes += element.len();
        match (self.stage, record) {
            (Stage::Header, Record::Header(_)) => self.stage = Stage::Sessions,
            (Stage::Sessions, Record::Session(session)) => self.session(session)?,
            (Stage::Sessions, Record::Messages(messages)) => self.messages(&messages)?,
            (Stage::Sessions, Record::Run(run)) => self.run(run)?,
            (Stage::Sessions, Record::Events(events)) => self.events(&events)?,
            (Stage::Sessions, Record::State { messages, .. }) => self.state(messages)?,
            (Stage::Sessions, Record::Conversation(messages)) => self.conversation(&messages)?,
            (Stage::Sessions, Record::End { sessions }) => {
                self.end_session()?;
                if sessions != self.sessions.len() as u64 {
                    return Err(ImportError::malformed("sessions are missing"));
                }
                self.stage = Stage::Over;
            }
            _ => return Err(ImportError::malformed("its records are out of order")),
        }
        Ok(())
    }

    fn session(&mut self, mut session: Session) -> Result<(), ImportError> {
        self.end_session()?;
        self.at = Cursor::default();
        if self.ids == ImportIds::New {
            session.id = SessionId(Uuid::now_v7().to_string());
        }
        self.sessions.push(session.id.clone());
        self.at.session = Some(session.clone());
        self.rows.push(Staging::Session(session));
        Ok(())
    }

    fn messages(&mut self, messages: &[Box<RawValue>]) -> Result<(), ImportError> {
        let session = self.in_session()?;
        if self.at.run.is_some() {
            return Err(ImportError::malformed("messages stand behind runs"));
        }
        for text in checked(messages)? {
            let position = self.at.messages;
            let session = session.clone();
            self.rows.push(Staging::Message {
                session,
                position,
                text,
            });
            self.at.messages += 1;
        }
        Ok(())
    }

    fn run(&mut self, mut run: RunRecord) -> Result<(), ImportError> {
        let session = self.in_session()?;
        self.end_run()?;
        if self.at.has_unfinished {
            return Err(ImportError::malformed(
                "a run stands behind one that is not over",
            ));
        }
        if self.ids == ImportIds::New {
            run.id = Uuid::now_v7().to_string();
        }
        if run.state != RunState::Finished {
            run.state = RunState::Finished;
            run.outcome = Some("cancelled".to_owned());
            self.at.has_unfinished = true;
            self.cancelled.push(run.id.clone());
        }
        let wish = wish::text(run.wish.as_ref());
        let wish = wish.map_err(|error| ImportError::malformed(error.to_string()))?;
        run.session = session;
        run.events_before = self.at.events_before;
        self.at.events_before += run.last_event;
        self.at.last_event = 0;
        self.at.conversation = None;
        self.at.run = Some(run.clone());
        self.rows.push(Staging::Run(run, wish));
        Ok(())
    }

    fn events(&mut self, events: &[Box<RawValue>]) -> Result<(), ImportError> {
        let run = self.in_run()?;
        if events.is_empty() {
            return Ok(());
        }
        for event in events {
            check_depth("an event", event)?;
        }
        let first = self.at.last_event + 1;
        self.at.last_event += events.len() as u64;
        let lines: Vec<String> = events
            .iter()
            .map(|event| event.get().replace(['\n', '\r'], " "))
            .collect();
        self.rows.push(Staging::Events {
            run: run.id,
            first,
            last: self.at.last_event,
            lines: lines.join("\n"),
        });
        Ok(())
    }

    /// Looked at only to find out whether something is missing.
    fn state(&mut self, messages: u64) -> Result<(), ImportError> {
        self.in_run()?;
        let is_second = self.at.conversation.replace(0).is_some();
        if is_second || !self.at.has_unfinished {
            return Err(ImportError::malformed(
                "a state belongs to no run that is not over",
            ));
        }
        self.at.conversation_ends = messages;
        Ok(())
    }

    fn conversation(&mut self, messages: &[Box<RawValue>]) -> Result<(), ImportError> {
        self.in_run()?;
        let Some(before) = self.at.conversation else {
            return Err(ImportError::malformed("a conversation has no state"));
        };
        let more = checked(messages)?.len() as u64;
        self.at.conversation = Some(before + more);
        Ok(())
    }

    fn in_session(&self) -> Result<SessionId, ImportError> {
        let session = self.at.session.as_ref().map(|session| session.id.clone());
        session.ok_or_else(|| ImportError::malformed("a record belongs to no session"))
    }

    fn in_run(&self) -> Result<RunRecord, ImportError> {
        let run = self.at.run.clone();
        run.ok_or_else(|| ImportError::malformed("a record belongs to no run"))
    }

    fn end_run(&self) -> Result<(), ImportError> {
        let Some(run) = &self.at.run else {
            return Ok(());
        };
        let has_events = run.last_event == self.at.last_event;
        let has_conversation = match self.at.conversation {
            None => true,
            Some(messages) => messages == self.at.conversation_ends,
        };
        if has_events && has_conversation {
            return Ok(());
        }
        let reason = format!("events or messages of run `{}` are missing", run.id);
        Err(ImportError::malformed(reason))
    }

    fn end_session(&self) -> Result<(), ImportError> {
        self.end_run()?;
        match &self.at.session {
            Some(session) if session.messages != self.at.messages => Err(ImportError::malformed(
                format!("messages of session `{}` are missing", session.id),
            )),
            _ => Ok(()),
        }
    }

    async fn write(&mut self) -> Result<(), ImportError> {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        let write = AddStaged {
            import: self.staged.import.clone(),
            rows,
        };
        match self.staged.queue.perform(write).await {
            Ok(()) => Ok(()),
            Err(SessionStoreError::Exists { id }) => Err(ImportError::Exists { id }),
            Err(SessionStoreError::RunConflict { run, .. }) => Err(ImportError::RunExists { run }),
            Err(error) => Err(error.into()),
        }
    }

    async fn finish(mut self, owner: &Principal) -> Result<Imported, ImportError> {
        if self.stage != Stage::Over {
            return Err(ImportError::malformed("it was cut off"));
        }
        self.write().await?;
        let write = Hand {
            import: self.staged.import.clone(),
            owner: owner.clone(),
            sessions: self.sessions.len() as u64,
        };
        self.staged.queue.perform(write).await?;
        self.staged.is_over = true;
        Ok(Imported {
            sessions: self.sessions,
            cancelled: self.cancelled,
        })
    }
}

/// Checked apart from the rest: a newer form may have records that this program cannot read.
fn check_version(element: &str) -> Result<(), ImportError> {
    let element: serde_json::Value = serde_json::from_str(element)
        .map_err(|error| ImportError::malformed(format!("a record cannot be read: {error}")))?;
    let header = &element["header"];
    if header["format"] != FORMAT {
        return Err(ImportError::malformed("it does not begin as one"));
    }
    let found = header["version"].as_u64().unwrap_or(0);
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    match found {
        0 => Err(ImportError::malformed("its version is missing")),
        1..=VERSION => Ok(()),
        _ => Err(ImportError::Newer {
            found,
            known: VERSION,
        }),
    }
}

/// The texts of messages that are messages.
fn checked(messages: &[Box<RawValue>]) -> Result<Vec<String>, ImportError> {
    let check = |message: &RawValue| {
        check_depth("a message", message)?;
        match serde_json::from_str::<Message>(message.get()) {
            Ok(_) => Ok(message.get().to_owned()),
            Err(error) => Err(ImportError::malformed(format!(
                "a message cannot be read: {error}"
            ))),
        }
    };
    messages.iter().map(|message| check(message)).collect()
}

/// Refuses a document that could not be read from the store.
fn check_depth(what: &str, document: &RawValue) -> Result<(), ImportError> {
    check_document_depth(document.get().as_bytes())
        .map_err(|too_deep| ImportError::malformed(format!("{what} is {too_deep}")))
}

/// What was written of an import that is not over. Removed with this.
struct Staged {
    queue: Queue,
    import: String,
    is_over: bool,
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.is_over {
            self.queue.send(GiveUp {
                import: self.import.clone(),
            });
        }
    }
}

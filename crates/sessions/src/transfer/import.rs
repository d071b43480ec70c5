//! Reads sessions from JSON Lines and stores them in one transaction.

use serde_json::{Value, value::RawValue};
use switchboard_domain::{
    Message, Principal, RunRecord, RunState, SessionId, SessionStoreError, check_document_depth,
};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use uuid::Uuid;

use super::record::{FORMAT, Record, VERSION};
use crate::{
    ImportError, Store,
    limits::parameters_text,
    write::import::{ImportSessions, ImportedRun, ImportedSession},
};

/// Maximum bytes of an import. It is in memory until it is complete.
const MAX_BYTES: u64 = 1 << 30;

/// The ids of imported sessions and runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImportIds {
    /// The ids of the export. If one of them exists, nothing is imported.
    Keep,
    /// New ids.
    New,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The ids of the sessions in the order of the export.
    pub sessions: Vec<SessionId>,
    /// The ids of the runs that were unfinished and are now cancelled.
    pub cancelled: Vec<String>,
}

impl Store {
    /// Imports what [`export`](Self::export) wrote, for any principal.
    ///
    /// Stores all sessions or none. Cancels unfinished runs and keeps their events: the state of a
    /// run contains approvals, and everybody who had the file could have changed them.
    pub async fn import<R: AsyncRead + Unpin + Send>(
        &self,
        owner: &Principal,
        from: R,
        ids: ImportIds,
    ) -> Result<Imported, ImportError> {
        let mut input = BufReader::new(from.take(MAX_BYTES));
        let mut import = Import::new(ids);
        let mut line = String::new();
        loop {
            line.clear();
            let read = input.read_line(&mut line).await;
            if read.map_err(|source| ImportError::Read { source })? == 0 {
                break;
            }
            import.line += 1;
            let line = line.trim();
            if !line.is_empty() {
                import.read_record(line)?;
            }
        }
        if !import.is_complete {
            return Err(import.malformed_line("the end is missing"));
        }
        let imported = Imported {
            sessions: import
                .sessions
                .iter()
                .map(|it| it.session.id.clone())
                .collect(),
            cancelled: import.cancelled,
        };
        let write = ImportSessions {
            owner: owner.clone(),
            sessions: import.sessions,
        };
        match self.queue().perform(write).await {
            Ok(()) => Ok(imported),
            Err(SessionStoreError::Exists { id }) => Err(ImportError::Exists { id }),
            Err(SessionStoreError::RunConflict { run, .. }) => Err(ImportError::RunExists { run }),
            Err(error) => Err(error.into()),
        }
    }
}

struct Import {
    ids: ImportIds,
    /// Number of the current line, from 1.
    line: u64,
    has_header: bool,
    is_complete: bool,
    sessions: Vec<ImportedSession>,
    cancelled: Vec<String>,
}

impl Import {
    fn new(ids: ImportIds) -> Self {
        Self {
            ids,
            line: 0,
            has_header: false,
            is_complete: false,
            sessions: Vec::new(),
            cancelled: Vec::new(),
        }
    }

    fn malformed_line(&self, reason: impl Into<String>) -> ImportError {
        ImportError::Malformed {
            line: self.line,
            reason: reason.into(),
        }
    }

    fn read_record(&mut self, line: &str) -> Result<(), ImportError> {
        if !self.has_header {
            self.check_header(line)?;
        }
        let record = serde_json::from_str(line);
        let record = record.map_err(|error| self.malformed_line(error.to_string()))?;
        if self.is_complete || self.has_header == matches!(record, Record::Header { .. }) {
            return Err(self.malformed_line("the records are out of order"));
        }
        match record {
            Record::Header { .. } => self.has_header = true,
            Record::Session(mut session) => {
                self.check_session_end()?;
                if self.ids == ImportIds::New {
                    session.id = SessionId(Uuid::now_v7().to_string());
                }
                self.sessions.push(ImportedSession {
                    session,
                    messages: Vec::new(),
                    runs: Vec::new(),
                });
            }
            Record::Message(message) => self.read_message(&message)?,
            Record::Run(run) => self.read_run(run)?,
            Record::Event(event) => {
                let event = self.check_size("an event", &event)?;
                let Some(run) = self.current_run() else {
                    return Err(self.malformed_line("an event without a run"));
                };
                run.events.push(event);
            }
            Record::State { messages, .. } => self.read_state(messages)?,
            Record::RunMessage(_) => self.read_run_message()?,
            Record::End { sessions } => {
                self.check_session_end()?;
                if sessions != self.sessions.len() as u64 {
                    return Err(self.malformed_line("sessions are missing"));
                }
                self.is_complete = true;
            }
        }
        Ok(())
    }

    /// Checks the format and version before the rest: records of other versions may be unknown.
    fn check_header(&self, line: &str) -> Result<(), ImportError> {
        if line.starts_with('[') {
            return Err(ImportError::EarlierForm);
        }
        let header: Value = serde_json::from_str(line).unwrap_or_default();
        let header = &header["header"];
        if header["format"] != FORMAT {
            return Err(self.malformed_line("the header of an export is missing"));
        }
        match header["version"].as_u64() {
            Some(VERSION) => Ok(()),
            Some(found) => Err(ImportError::UnknownVersion {
                found,
                known: VERSION,
            }),
            None => Err(self.malformed_line("the version is missing")),
        }
    }

    fn read_message(&mut self, message: &RawValue) -> Result<(), ImportError> {
        let text = self.check_size("a message", message)?;
        if let Err(error) = serde_json::from_str::<Message>(&text) {
            return Err(self.malformed_line(format!("a message cannot be read: {error}")));
        }
        match self.sessions.last_mut() {
            Some(session) if session.runs.is_empty() => session.messages.push(text),
            _ => return Err(self.malformed_line("a message outside of a session")),
        }
        Ok(())
    }

    fn read_run(&mut self, mut record: RunRecord) -> Result<(), ImportError> {
        self.check_run_end()?;
        let parameters = parameters_text(record.parameters.as_ref());
        let parameters = parameters.map_err(|error| self.malformed_line(error.to_string()))?;
        if self.ids == ImportIds::New {
            record.id = Uuid::now_v7().to_string();
        }
        let was_unfinished = record.state != RunState::Finished;
        if was_unfinished {
            record.state = RunState::Finished;
            record.outcome = Some("cancelled".to_owned());
        }
        let id = record.id.clone();
        let Some(session) = self.sessions.last_mut() else {
            return Err(self.malformed_line("a run without a session"));
        };
        if session.runs.last().is_some_and(|run| run.was_unfinished) {
            return Err(self.malformed_line("a run after an unfinished one"));
        }
        let before = session.runs.iter().map(|run| run.events.len() as u64);
        record.events_before = before.sum();
        session.runs.push(ImportedRun {
            record,
            parameters,
            events: Vec::new(),
            was_unfinished,
            missing_messages: None,
        });
        if was_unfinished {
            self.cancelled.push(id);
        }
        Ok(())
    }

    /// Drops the state of an unfinished run, because the import cancels the run.
    fn read_state(&mut self, messages: u64) -> Result<(), ImportError> {
        match self.current_run() {
            Some(run) if run.was_unfinished && run.missing_messages.is_none() => {
                run.missing_messages = Some(messages);
                Ok(())
            }
            _ => Err(self.malformed_line("a state without an unfinished run")),
        }
    }

    fn read_run_message(&mut self) -> Result<(), ImportError> {
        let missing = self
            .current_run()
            .and_then(|run| run.missing_messages.as_mut());
        match missing {
            Some(missing) if *missing > 0 => {
                *missing -= 1;
                Ok(())
            }
            _ => Err(self.malformed_line("a message that belongs to no state")),
        }
    }

    fn current_run(&mut self) -> Option<&mut ImportedRun> {
        self.sessions.last_mut()?.runs.last_mut()
    }

    fn check_run_end(&mut self) -> Result<(), ImportError> {
        if let Some(run) = self.current_run()
            && (run.events.len() as u64 != run.record.last_event
                || run.missing_messages.is_some_and(|missing| missing > 0))
        {
            let reason = format!("events or messages of run `{}` are missing", run.record.id);
            return Err(self.malformed_line(reason));
        }
        Ok(())
    }

    fn check_session_end(&mut self) -> Result<(), ImportError> {
        self.check_run_end()?;
        if let Some(ImportedSession {
            session, messages, ..
        }) = self.sessions.last()
            && messages.len() as u64 != session.messages
        {
            let reason = format!("messages of session `{}` are missing", session.id);
            return Err(self.malformed_line(reason));
        }
        Ok(())
    }

    /// Returns the text of a document that can be read from the store again.
    fn check_size(&self, what: &str, document: &RawValue) -> Result<String, ImportError> {
        check_document_depth(document.get().as_bytes())
            .map_err(|too_deep| self.malformed_line(format!("{what} is {too_deep}")))?;
        Ok(document.get().to_owned())
    }
}

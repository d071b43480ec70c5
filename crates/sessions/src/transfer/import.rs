//! Reads sessions from JSON Lines and stores them in one transaction.

use serde_json::{Value, value::RawValue};
use switchboard_domain::{
    Message, Principal, RunRecord, RunState, Session, SessionId, SessionStoreError,
    check_document_depth,
};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use uuid::Uuid;

use super::export_record::{FORMAT, Record, VERSION};
use crate::{
    ImportError, Store,
    database::values,
    json_limits::serialize_parameters,
    write::{
        queue::WriteError,
        transaction::{SESSION_MESSAGES, Transaction},
    },
};

/// Maximum size of an import in bytes: 1 GiB. Only this many bytes are read, so a longer input has
/// no end record and its import fails. The limit exists because the whole import is kept in memory
/// before it is stored.
const MAX_BYTES: u64 = 1 << 30;

/// Maximum number of imported events in one database row.
const EVENTS_PER_ROW: usize = 64;

/// Whether imported sessions and runs keep their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImportIdPolicy {
    /// The import keeps the ids of the export. If the store already has one of these ids, nothing
    /// is imported.
    Keep,
    /// The import assigns new ids to all sessions and runs.
    New,
}

/// The result of an import: the stored sessions and the cancelled runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSummary {
    /// The ids of the imported sessions, in the order of the export.
    pub sessions: Vec<SessionId>,
    /// The ids under which the import stored runs that were unfinished in the export. They are
    /// stored as finished with the outcome `cancelled`.
    pub cancelled: Vec<String>,
}

impl Store {
    /// Imports the output of [`export`](Self::export) for `owner`, who may be another principal.
    ///
    /// Stores all sessions or none. Cancels unfinished runs and keeps their events. Does not store
    /// the states of unfinished runs, because somebody could have changed tool approvals in the
    /// file.
    pub async fn import<R: AsyncRead + Unpin + Send>(
        &self,
        owner: &Principal,
        from: R,
        ids: ImportIdPolicy,
    ) -> Result<ImportSummary, ImportError> {
        let mut lines = BufReader::new(from.take(MAX_BYTES)).lines();
        let mut import = ImportReader {
            ids,
            line: 0,
            has_header: false,
            is_complete: false,
            sessions: Vec::new(),
            cancelled: Vec::new(),
        };
        let failed = |source| ImportError::Read { source };
        while let Some(line) = lines.next_line().await.map_err(failed)? {
            import.line += 1;
            if !line.trim().is_empty() {
                import.read_record(line.trim())?;
            }
        }
        if !import.is_complete {
            return Err(import.malformed_line("the end record is missing"));
        }
        let (sessions, cancelled) = (import.sessions, import.cancelled);
        let imported = ImportSummary {
            sessions: sessions.iter().map(|it| it.session.id.clone()).collect(),
            cancelled,
        };
        let owner = owner.clone();
        let stored = self.perform_write("import sessions", async move |tx| {
            for session in &sessions {
                store_session(tx, &owner, session).await?;
            }
            Ok(())
        });
        match stored.await {
            Ok(()) => Ok(imported),
            Err(SessionStoreError::Exists { id }) => Err(ImportError::Exists { id }),
            Err(SessionStoreError::RunConflict { run, .. }) => Err(ImportError::RunExists { run }),
            Err(error) => Err(error.into()),
        }
    }
}

async fn store_session(
    tx: &mut Transaction<'_>,
    owner: &Principal,
    imported: &ImportedSession,
) -> Result<(), WriteError> {
    // The time of the events (column `at`) stays empty. Otherwise, it would be later than
    // `updated_at` of the run, and reads would return it as the time of the run's last change.
    const EVENTS: &str = "INSERT INTO run_events (run, first_seq, last_seq, at, events)
        VALUES ($1, $2, $3, '', $4)";
    let messages = &imported.messages;
    let created = tx.create_session(owner, &imported.session, messages.len());
    let session = created.await?;
    tx.insert_messages(&SESSION_MESSAGES, session, 0, messages)
        .await?;
    for run in &imported.runs {
        let key = tx.insert_run(&run.record, session, None).await?;
        let mut first = 1;
        for events in run.events.chunks(EVENTS_PER_ROW) {
            let next = first + events.len() as u64;
            let lines = events.join("\n");
            let values = values![key, first, next - 1, &lines];
            tx.connection.execute(EVENTS, values).await?;
            first = next;
        }
    }
    Ok(())
}

struct ImportedSession {
    session: Session,
    /// Messages of the session, each as JSON text.
    messages: Vec<String>,
    runs: Vec<ImportedRun>,
}

struct ImportedRun {
    record: RunRecord,
    events: Vec<String>,
    /// Whether the run is unfinished in the export, so that the import cancels it.
    was_unfinished: bool,
    /// Number of `RunMessage` records of the run that must still follow, as its `State` record
    /// declares. They are counted to check that the export is complete, but are not stored.
    missing_messages: i64,
}

struct ImportReader {
    ids: ImportIdPolicy,
    /// Number of the current line of the input, counted from 1.
    line: u64,
    has_header: bool,
    is_complete: bool,
    sessions: Vec<ImportedSession>,
    cancelled: Vec<String>,
}

impl ImportReader {
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
                self.check_record_counts()?;
                if self.ids == ImportIdPolicy::New {
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
                let event = self.check_json_depth("an event", &event)?;
                self.current_run()?.events.push(event);
            }
            Record::State { messages, .. } => {
                let malformed = self.malformed_line("a state record without an unfinished run");
                let run = self.current_run()?;
                if !run.was_unfinished {
                    return Err(malformed);
                }
                let messages = i64::try_from(messages).unwrap_or(i64::MAX);
                run.missing_messages = run.missing_messages.saturating_add(messages);
            }
            Record::RunMessage(_) => self.current_run()?.missing_messages -= 1,
            Record::End { sessions } => {
                self.check_record_counts()?;
                if sessions != self.sessions.len() as u64 {
                    return Err(self.malformed_line("sessions are missing"));
                }
                self.is_complete = true;
            }
        }
        Ok(())
    }

    /// Checks the header's format and version, because other versions may have unknown records.
    fn check_header(&self, line: &str) -> Result<(), ImportError> {
        if line.starts_with('[') {
            return Err(ImportError::EarlierForm);
        }
        let header: Value = serde_json::from_str(line).unwrap_or_default();
        let header = &header["header"];
        if header["format"] != FORMAT {
            return Err(self.malformed_line("the header record is missing"));
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
        let text = self.check_json_depth("a message", message)?;
        if let Err(error) = serde_json::from_str::<Message>(&text) {
            return Err(self.malformed_line(format!("a message cannot be read: {error}")));
        }
        match self.sessions.last_mut() {
            Some(session) if session.runs.is_empty() => session.messages.push(text),
            _ => return Err(self.malformed_line("a message record outside of a session")),
        }
        Ok(())
    }

    fn read_run(&mut self, mut record: RunRecord) -> Result<(), ImportError> {
        self.check_record_counts()?;
        let parameters = serialize_parameters(record.parameters.as_ref());
        parameters.map_err(|error| self.malformed_line(error.to_string()))?;
        if self.ids == ImportIdPolicy::New {
            record.id = Uuid::now_v7().to_string();
        }
        let was_unfinished = record.state != RunState::Finished;
        if was_unfinished {
            record.state = RunState::Finished;
            record.outcome = Some("cancelled".to_owned());
            self.cancelled.push(record.id.clone());
        }
        let Some(session) = self.sessions.last_mut() else {
            return Err(self.malformed_line("a run record without a session"));
        };
        if session.runs.last().is_some_and(|run| run.was_unfinished) {
            return Err(self.malformed_line("a run record after an unfinished run"));
        }
        let before = session.runs.iter().map(|run| run.events.len() as u64);
        record.events_before = before.sum();
        session.runs.push(ImportedRun {
            record,
            events: Vec::new(),
            was_unfinished,
            missing_messages: 0,
        });
        Ok(())
    }

    fn current_run(&mut self) -> Result<&mut ImportedRun, ImportError> {
        let missing = self.malformed_line("a record outside of a run");
        let session = self.sessions.last_mut();
        session
            .and_then(|session| session.runs.last_mut())
            .ok_or(missing)
    }

    /// Checks that the session and the run that were read last have as many messages and events as
    /// their records declare.
    fn check_record_counts(&self) -> Result<(), ImportError> {
        let Some(last) = self.sessions.last() else {
            return Ok(());
        };
        let run_is_complete = last.runs.last().is_none_or(|run| {
            run.events.len() as u64 == run.record.last_event && run.missing_messages == 0
        });
        if run_is_complete && last.messages.len() as u64 == last.session.messages {
            return Ok(());
        }
        let id = &last.session.id;
        let reason = format!("messages or events of session `{id}` are missing, or occur twice");
        Err(self.malformed_line(reason))
    }

    /// Returns the text of a JSON document. Fails if the document is nested too deeply to be read
    /// again. `what` names the document in the error.
    fn check_json_depth(&self, what: &str, document: &RawValue) -> Result<String, ImportError> {
        check_document_depth(document.get().as_bytes())
            .map_err(|too_deep| self.malformed_line(format!("{what} is {too_deep}")))?;
        Ok(document.get().to_owned())
    }
}

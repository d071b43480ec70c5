//! Runs that are kept: everything that is told of them is in a store before anybody sees it, and whatever ends
//! their process, they go on in another.
//!
//! A [`Journal`] joins an [`Agent`] and the two stores. [`Journal::begin`] answers a message in a session;
//! what it gives, a [`KeptRun`], is a stream of events that are stored. [`Journal::take`] and
//! [`Journal::go_on`] take up a run that waits for somebody or whose process ended, and [`Journal::abandon`]
//! ends one.
//!
//! What holds, whenever the process ends:
//! - Nobody saw an event that is not stored, and their numbers have no gap.
//! - A call that was seen to finish does not run again; an answer that was seen to end is not asked for again.
//! - Whoever saw `run_finished` finds the run's messages in its session.
//! - The messages of a session have exactly one result for each tool use. A run adds its own at its end, all
//!   at once; until then they are part of its state.
//! - At most what was on its way to the store is lost, and nobody was shown that.

mod desk;
mod hold;
mod kept;

use std::{collections::HashMap, mem, sync::Arc};

use serde::Deserialize;
use switchboard_domain::{
    Message, ModelId, Principal, RunRecord, RunState, RunStore, SessionId, SessionStore,
    SessionStoreError, StoredEvent,
};
use uuid::Uuid;

use self::hold::Hold;
pub use self::kept::{Kept, KeptEnd, KeptRun};
use crate::{
    Agent, Outcome, RestoreError, Run, RunEvent, RunEventKind, RunOptions, RunReport, SnapshotMark,
};

/// Stored events that are read at once.
const PAGE: u32 = 1_000;

/// The sessions and runs of somebody. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    sessions: Arc<dyn SessionStore>,
    runs: Arc<dyn RunStore>,
    owner: Principal,
}

/// A run cannot be kept, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The store says no, or failed.
    #[error(transparent)]
    Store(#[from] SessionStoreError),
    /// What is stored of a run is not what this version can go on with. It can be ended: [`Journal::abandon`].
    #[error("run `{run}` cannot be taken up by this version; it can be abandoned")]
    Unreadable {
        /// The run.
        run: String,
        /// Why.
        #[source]
        source: RestoreError,
    },
    /// Something of a run has no form in which it could be stored: a fault of this program.
    #[error("run `{run}` cannot be written down")]
    Unwritable {
        /// The run.
        run: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// A run that was taken up, to go on with it: [`Journal::go_on`]. It belongs to this process until it is dropped,
/// which lets go of it again.
pub struct TakenRun {
    record: RunRecord,
    run: Box<Run>,
    /// What the store has of its conversation.
    mark: SnapshotMark,
    /// Its state was never stored: it begins anew, with the agent that goes on with it.
    is_new: bool,
    /// Its last event is stored, and what comes behind that is not.
    finished: Option<Box<RunReport>>,
    hold: Hold,
}

/// What the store has of a run.
struct Restored {
    run: Box<Run>,
    mark: SnapshotMark,
    is_new: bool,
    finished: Option<Box<RunReport>>,
}

impl Restored {
    fn taken(self, record: RunRecord, hold: Hold) -> TakenRun {
        TakenRun {
            record,
            run: self.run,
            mark: self.mark,
            is_new: self.is_new,
            finished: self.finished,
            hold,
        }
    }
}

impl TakenRun {
    /// What the store says of it.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// The run: its model, recipe and options, and the questions that are open. Where its process ended before
    /// anything but its beginning was stored, nothing is known but its model and conversation.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The same, to change what holds for it from now on.
    pub fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }

    /// Whether nothing is known of it but its model and its conversation: what it was to be like, its approvals and limits
    /// among that, was lost with its process.
    pub fn is_bare(&self) -> bool {
        self.is_new
    }

    /// Whether only its end is missing in the store: no model is asked and no tool called.
    pub fn is_over(&self) -> bool {
        self.finished.is_some() || self.run.outcome().is_some()
    }
}

impl Journal {
    /// The sessions and runs of `owner`, who has no others.
    pub fn new(sessions: Arc<dyn SessionStore>, runs: Arc<dyn RunStore>, owner: Principal) -> Self {
        Self {
            sessions,
            runs,
            owner,
        }
    }

    /// On whose behalf it works.
    pub fn owner(&self) -> &Principal {
        &self.owner
    }

    /// Answers `messages` in a session, behind what was said there before: mostly one message of the person.
    /// They are in the session when this returns.
    ///
    /// The agent brings models, tools, options and instructions; its own checkpoints, principal and session do
    /// not count. Instructions and examples belong to it and not to the session. Fails with
    /// [`SessionStoreError::Busy`] while the session has a run that is not over.
    pub async fn begin(
        &self,
        agent: &Agent,
        session: &SessionId,
        messages: Vec<Arc<Message>>,
    ) -> Result<KeptRun, JournalError> {
        let before = self.sessions.messages(&self.owner, session, 0).await?;
        let (before_count, new) = (count(before.len()), messages.clone());
        let conversation = before.into_iter().chain(messages).collect();
        let id = Uuid::now_v7().to_string();
        let (owner, of_session) = (self.owner.clone(), Some(session.0.clone()));
        let run = Box::new(agent.prepare(id.clone(), conversation, owner, of_session));
        let now = agent.now().to_string();
        let record = RunRecord {
            id,
            session: session.clone(),
            state: RunState::Running,
            model: run.model().to_string(),
            created_at: now.clone(),
            updated_at: now,
            events_before: 0,
            last_event: 0,
            outcome: None,
        };
        // Also if the future is dropped in the middle of it: then it may have begun.
        let hold = self.hold(&record, before_count + count(new.len()));
        let begun = self.runs.begin(&self.owner, &record, before_count, &new);
        let record = match begun.await {
            Ok(record) => record,
            Err(error @ SessionStoreError::Storage { .. }) => {
                // It may have begun all the same, and nobody would drive it.
                hold.let_go().await;
                return Err(error.into());
            }
            Err(error) => {
                hold.forget();
                return Err(error.into());
            }
        };
        let mark = SnapshotMark::default();
        Ok(KeptRun::begin(agent, record, *run, mark, false, hold))
    }

    /// Takes up a run that waits for somebody or whose process ended, so that nobody else does. Whoever goes on
    /// with it can make an agent that fits: [`TakenRun::run`] says with what it began.
    pub async fn take(&self, run: &str) -> Result<TakenRun, JournalError> {
        let (record, hold) = self.take_up(run).await?;
        match self.restored(&record).await {
            Ok(stored) => Ok(stored.taken(record, hold)),
            Err(error) => {
                hold.let_go().await;
                Err(error)
            }
        }
    }

    /// What the store has of a run that was taken up.
    async fn restored(&self, record: &RunRecord) -> Result<Restored, JournalError> {
        let snapshot = self.runs.snapshot(&self.owner, &record.id).await?;
        let is_new = snapshot.is_none();
        let (mut run, mark) = match snapshot {
            Some(snapshot) => {
                let restored = Run::restore(snapshot);
                let run = restored.map_err(|source| unreadable(&record.id, source))?;
                let mark = run.mark();
                // Whose it is says the store, not what was stored: it may have been imported.
                let session = Some(record.session.0.clone());
                let run = run.on_behalf_of(self.owner.clone(), session);
                (Box::new(run), mark)
            }
            None => (self.run_of(record).await?, SnapshotMark::default()),
        };
        let from = run.next_event().min(record.last_event + 1);
        let stored = self.read_events(record, from - 1).await?;
        let finished = stored.iter().find_map(|event| match &event.kind {
            RunEventKind::RunFinished { report } => Some(report.clone()),
            _ => None,
        });
        let stored = stored.iter().map(|event| &event.kind);
        run.continue_events_after(record.last_event, stored);
        Ok(Restored {
            run,
            mark,
            is_new,
            finished,
        })
    }

    /// Goes on with a run that was taken up.
    pub fn go_on(&self, agent: &Agent, taken: TakenRun) -> KeptRun {
        let TakenRun {
            record,
            mut run,
            mark,
            is_new,
            finished,
            hold,
        } = taken;
        if let Some(report) = finished {
            return KeptRun::end_of(record, &run, report, hold);
        }
        if is_new {
            let (owner, session) = (self.owner.clone(), Some(record.session.0.clone()));
            let next_event = run.next_event;
            let messages = run.messages().to_vec();
            *run = agent.prepare(record.id.clone(), messages, owner, session);
            run.next_event = next_event;
        }
        let resumed = !is_new || record.last_event > 0;
        KeptRun::begin(agent, record, *run, mark, resumed, hold)
    }

    /// Ends a run that waits or was interrupted, without going on with it: calls that have no result get one
    /// that says so, what was said goes into the session, and its last events are stored, which this gives.
    /// Also of a run that this version cannot read; of such a one nothing but its end is left.
    pub async fn abandon(&self, run: &str) -> Result<Vec<Kept>, JournalError> {
        let (record, hold) = self.take_up(run).await?;
        let restored = match self.restored(&record).await {
            Err(JournalError::Unreadable { source, .. }) => {
                tracing::warn!(run, %source, "an unreadable run is abandoned");
                let run = self.run_of(&record).await;
                run.map(|mut run| {
                    run.continue_events_after(record.last_event, []);
                    Restored {
                        mark: SnapshotMark::default(),
                        run,
                        is_new: true,
                        finished: None,
                    }
                })
            }
            restored => restored,
        };
        let Restored {
            run,
            mark,
            finished,
            ..
        } = match restored {
            Ok(restored) => restored,
            Err(error) => {
                hold.let_go().await;
                return Err(error);
            }
        };
        if let Some(report) = finished {
            return KeptRun::end_of(record, &run, report, hold)
                .collect_all()
                .await;
        }
        self.end_now(record, run, mark, hold).await
    }

    /// The stored events of a run with numbers above `after`, at most `limit` of them. The end of a run that is
    /// not over is left out: its process ended in the middle of its last words, and who goes on with it says
    /// them again, or what it says instead.
    pub async fn events(
        &self,
        run: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        #[derive(Deserialize)]
        struct Kind {
            r#type: String,
        }
        let record = self.runs.run(&self.owner, run).await?;
        let record = record.ok_or_else(|| no_such_run(run))?;
        let stored = self.runs.events(&self.owner, run, after, limit);
        let mut stored = stored.await?;
        let is_end = |event: &StoredEvent| {
            let kind = serde_json::from_str(&event.json);
            kind.is_ok_and(|Kind { r#type }| r#type == "run_finished")
        };
        if record.state != RunState::Finished && stored.last().is_some_and(is_end) {
            stored.pop();
        }
        Ok(stored)
    }

    async fn take_up(&self, run: &str) -> Result<(RunRecord, Hold), JournalError> {
        let before = self.runs.run(&self.owner, run).await?;
        let before = before.ok_or_else(|| no_such_run(run))?;
        // It cannot grow before the run is over.
        let session = self.sessions.get(&self.owner, &before.session).await?;
        let session = session.ok_or_else(|| SessionStoreError::NotFound {
            id: before.session.clone(),
        })?;
        let (journal, run) = (self.clone(), run.to_owned());
        let waited = before.state == RunState::Waiting;
        let taking = async move {
            let record = journal.runs.take(&journal.owner, &run).await?;
            let mut hold = journal.hold(&record, session.messages);
            if waited {
                hold.falls_back_to(RunState::Waiting);
            }
            Ok((record, hold))
        };
        // To its end, whether or not somebody waits for it: a run that is taken and that nobody holds would be this
        // process's for as long as it lives.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return taking.await;
        };
        match runtime.spawn(taking).await {
            Ok(taken) => taken,
            Err(error) => Err(SessionStoreError::Storage {
                operation: "take up a run",
                source: Box::new(error),
            }
            .into()),
        }
    }

    fn hold(&self, record: &RunRecord, after: u64) -> Hold {
        Hold::new(Arc::clone(&self.runs), record.id.clone(), after)
    }

    /// A run of which nothing is stored but that it began.
    async fn run_of(&self, record: &RunRecord) -> Result<Box<Run>, JournalError> {
        let messages = self
            .sessions
            .messages(&self.owner, &record.session, 0)
            .await?;
        let model = record.model.parse();
        let model = model.unwrap_or_else(|_| ModelId::new("unknown", record.model.clone()));
        let run = Run::new(record.id.clone(), model, messages, RunOptions::default());
        let session = Some(record.session.0.clone());
        Ok(Box::new(run.on_behalf_of(self.owner.clone(), session)))
    }

    /// The stored events of a run with numbers above `after`.
    async fn read_events(
        &self,
        record: &RunRecord,
        mut after: u64,
    ) -> Result<Vec<RunEvent>, JournalError> {
        let mut events = Vec::new();
        while after < record.last_event {
            let page = self.runs.events(&self.owner, &record.id, after, PAGE);
            let page = page.await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for stored in page {
                let event = serde_json::from_str(&stored.json);
                events.push(event.map_err(|error| unreadable(&record.id, error.into()))?);
            }
        }
        Ok(events)
    }

    /// Ends a run here and now.
    async fn end_now(
        &self,
        record: RunRecord,
        mut run: Box<Run>,
        mark: SnapshotMark,
        hold: Hold,
    ) -> Result<Vec<Kept>, JournalError> {
        let time = jiff::Timestamp::now();
        let mut kinds = mem::take(&mut run.told_late);
        kinds.extend(run.cancel(None, &HashMap::new()));
        // As with any other result: it is in the run before it is told.
        run.untold.clone_from(&kinds);
        let (snapshot, _) = run.snapshot(mark).map_err(|source| {
            let run = record.id.clone();
            JournalError::Unwritable { run, source }
        })?;
        self.runs.save(&record.id, &snapshot).await?;
        let report = run.report().map(Box::new);
        kinds.extend(report.map(|report| RunEventKind::RunFinished { report }));
        let run_id: Arc<str> = record.id.as_str().into();
        let events = (run.next_event..).zip(kinds).map(|(seq, kind)| RunEvent {
            run_id: Arc::clone(&run_id),
            seq,
            time,
            kind,
        });
        let kept: Result<Vec<Kept>, _> = events.map(Kept::new).collect();
        let kept = kept?;
        let stored: Vec<StoredEvent> = kept.iter().map(Kept::stored).collect();
        if !stored.is_empty() {
            self.runs.append_events(&record.id, &stored).await?;
        }
        let outcome = run.outcome().map(outcome_word);
        hold.finish(outcome, &run.session_messages()).await?;
        Ok(kept)
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for TakenRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TakenRun")
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

fn no_such_run(run: &str) -> SessionStoreError {
    SessionStoreError::NoSuchRun {
        run: run.to_owned(),
    }
}

fn unreadable(run: &str, source: RestoreError) -> JournalError {
    JournalError::Unreadable {
        run: run.to_owned(),
        source,
    }
}

/// How a run ended, in the words of its report.
fn outcome_word(outcome: Outcome) -> String {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Limited => "limited",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
    }
    .to_owned()
}

fn count(messages: usize) -> u64 {
    u64::try_from(messages).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;

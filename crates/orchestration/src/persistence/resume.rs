//! Runs that there are already: taken up, gone on with, and ended.

use std::{collections::HashMap, fmt, sync::Arc};

use switchboard_domain::{ModelId, RunRecord, RunState, SessionStoreError, StoredEvent};

use super::{
    Journal, JournalError,
    lease::{Hold, Turn},
    no_such_run, outcome_word,
    persisted_run::{Kept, KeptRun},
};
use crate::{
    Agent, RestoreError, Run, RunEvent, RunEventKind, RunOptions, RunReport, SnapshotMark,
};

/// Stored events that are read at once.
const PAGE: u32 = 1_000;

/// A run that was taken up, to go on with it: [`Journal::go_on`]. It belongs to this process until it is dropped,
/// which lets go of it again.
pub struct TakenRun {
    record: RunRecord,
    stored: Restored,
    hold: Hold,
}

/// What the store has of a run.
struct Restored {
    run: Box<Run>,
    /// What the store has of its conversation.
    mark: SnapshotMark,
    /// Its state was never stored: it begins anew, with the agent that goes on with it.
    is_new: bool,
    /// Its last event is stored, and what comes behind that is not.
    finished: Option<Box<RunReport>>,
    /// What was shown of an answer of which nothing else is known.
    words: String,
}

impl Restored {
    /// Nothing but that there was such a run: what is stored of it is not what this version reads.
    fn unreadable(journal: &Journal, record: &RunRecord) -> Self {
        let mut run = journal.run_with(record, Vec::new());
        run.continue_events_after(record.last_event, []);
        Self {
            run,
            mark: SnapshotMark::default(),
            is_new: true,
            finished: None,
            words: String::new(),
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
        &self.stored.run
    }

    /// The same, to change what holds for it from now on. What is set here holds also where nothing is known of it,
    /// and it is otherwise as the agent says that goes on with it.
    pub fn run_mut(&mut self) -> &mut Run {
        &mut self.stored.run
    }

    /// Nobody goes on with it after all. When this returns it is what it was, as far as the store can be reached.
    pub async fn leave(self) {
        self.hold.let_go().await;
    }

    /// Whether nothing is known of it but its model and its conversation: what it was to be like, its approvals and limits
    /// among that, was lost with its process.
    pub fn is_bare(&self) -> bool {
        self.stored.is_new
    }

    /// Whether only its end is missing in the store: no model is asked and no tool called.
    pub fn is_over(&self) -> bool {
        self.stored.finished.is_some() || self.stored.run.outcome().is_some()
    }
}

impl Journal {
    /// Takes up a run that waits for somebody or whose process ended, so that nobody else does. Whoever goes on
    /// with it can make an agent that fits: [`TakenRun::run`] says with what it began.
    pub async fn take(&self, run: &str) -> Result<TakenRun, JournalError> {
        let (record, hold) = self.take_up(run).await?;
        match self.restored(&record).await {
            Ok(stored) => Ok(TakenRun {
                record,
                stored,
                hold,
            }),
            Err(error) => {
                hold.let_go().await;
                Err(error)
            }
        }
    }

    /// Goes on with a run that was taken up.
    pub fn go_on(&self, agent: &Agent, taken: TakenRun) -> KeptRun {
        let TakenRun {
            record,
            stored,
            hold,
        } = taken;
        let Restored {
            mut run,
            mark,
            is_new,
            finished,
            words: _,
        } = stored;
        if let Some(report) = finished {
            return KeptRun::end_of(record, &run, report, hold);
        }
        if is_new {
            let (owner, session) = (self.owner.clone(), Some(record.session.0.clone()));
            let (next_event, changes) = (run.next_event(), run.take_overrides());
            let messages = run.messages().to_vec();
            *run = agent.prepare(record.id.clone(), messages, owner, session);
            run.set_next_event(next_event);
            run.apply_overrides(changes);
        }
        let resumed = !is_new || record.last_event > 0;
        KeptRun::begin(agent, record, *run, mark, resumed, hold)
    }

    /// Ends a run that waits or was interrupted, without going on with it: calls that have no result get one
    /// that says so, what was said goes into the session, and its last events are stored, which this gives.
    /// Also of a run that this version cannot read; of such a one nothing but its end is left.
    pub async fn abandon(&self, run: &str) -> Result<Vec<Kept>, JournalError> {
        let (record, hold) = self.take_up(run).await?;
        let stored = match self.restored(&record).await {
            Ok(stored) => stored,
            Err(JournalError::Unreadable { source, .. }) => {
                let error = &source as &dyn std::error::Error;
                tracing::warn!(run, error, "an unreadable run is abandoned");
                Restored::unreadable(self, &record)
            }
            Err(error) => {
                hold.let_go().await;
                return Err(error);
            }
        };
        if let Some(report) = stored.finished {
            return KeptRun::end_of(record, &stored.run, report, hold)
                .collect_all()
                .await;
        }
        self.end_now(record, stored, hold).await
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
        let falls_back_to = match before.state {
            RunState::Waiting => RunState::Waiting,
            _ => RunState::Interrupted,
        };
        let taking = async move {
            let turn = Turn::of(&journal.runs, &run);
            let _turn = turn.begin().await;
            let taken = journal.runs.take(&journal.owner, &run).await;
            // Somebody of this process may have it, and then it was not taken.
            let may_be_ours = !turn.is_held();
            match taken {
                Err(error @ SessionStoreError::Storage { .. }) if may_be_ours => {
                    // It may be taken all the same, and nobody would drive it: it is let go of, if it is ours.
                    let mut hold = journal.hold(&run, session.messages);
                    hold.falls_back_to(falls_back_to);
                    Err(error.into())
                }
                Err(error) => Err(error.into()),
                Ok(record) => {
                    let mut hold = journal.hold(&run, session.messages);
                    hold.falls_back_to(falls_back_to);
                    Ok((record, hold))
                }
            }
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

    /// What the store has of a run that was taken up.
    async fn restored(&self, record: &RunRecord) -> Result<Restored, JournalError> {
        let restored = self.restored_as_stored(record).await;
        restored.map_err(|error| match error {
            // It is no use to try it again.
            JournalError::Store(error @ SessionStoreError::Unreadable { .. }) => {
                unreadable(&record.id, RestoreError::Stored(error))
            }
            error => error,
        })
    }

    async fn restored_as_stored(&self, record: &RunRecord) -> Result<Restored, JournalError> {
        let snapshot = self.runs.snapshot(&self.owner, &record.id).await?;
        let is_new = snapshot.is_none();
        let (mut run, mark) = if let Some(snapshot) = snapshot {
            let run = Run::restore(snapshot).and_then(|run| run.with_id(&record.id));
            let run = run.map_err(|source| unreadable(&record.id, source))?;
            let mark = run.mark();
            // Whose it is says the store, not what was stored.
            let session = Some(record.session.0.clone());
            let run = run.with_principal(self.owner.clone(), session);
            (Box::new(run), mark)
        } else {
            let messages = self.sessions.messages(&self.owner, &record.session, 0);
            let messages = messages.await?;
            (self.run_with(record, messages), SnapshotMark::default())
        };
        let from = run.next_event().min(record.last_event + 1);
        let stored = self.read_events(record, from - 1).await?;
        let finished = stored.iter().find_map(|event| match &event.kind {
            RunEventKind::RunFinished { report } => Some(report.clone()),
            _ => None,
        });
        let words = last_words(&stored);
        let stored = stored.iter().map(|event| &event.kind);
        run.continue_events_after(record.last_event, stored);
        Ok(Restored {
            run,
            mark,
            is_new,
            finished,
            words,
        })
    }

    /// A run of which nothing is stored but that it began behind these messages.
    fn run_with(
        &self,
        record: &RunRecord,
        messages: Vec<Arc<switchboard_domain::Message>>,
    ) -> Box<Run> {
        let model = record.model.parse();
        let model = model.unwrap_or_else(|_| ModelId::new("unknown", record.model.clone()));
        let run = Run::new(record.id.clone(), model, messages, RunOptions::default());
        let session = Some(record.session.0.clone());
        Box::new(run.with_principal(self.owner.clone(), session))
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
                events.push(event.map_err(|error| {
                    let error: serde_json::Error = error;
                    unreadable(&record.id, error.into())
                })?);
            }
        }
        Ok(events)
    }

    /// Ends a run here and now.
    async fn end_now(
        &self,
        record: RunRecord,
        stored: Restored,
        hold: Hold,
    ) -> Result<Vec<Kept>, JournalError> {
        let Restored { mut run, words, .. } = stored;
        let time = jiff::Timestamp::now();
        let mut kinds = run.take_replayed_events();
        // Somebody has read them.
        run.set_partial_answer(words);
        kinds.extend(run.cancel(None, &HashMap::new()));
        let report = run.report().map(Box::new);
        kinds.extend(report.map(|report| RunEventKind::RunFinished { report }));
        let run_id: Arc<str> = record.id.as_str().into();
        let events = (run.next_event()..).zip(kinds).map(|(seq, kind)| RunEvent {
            run_id: Arc::clone(&run_id),
            seq,
            time,
            kind,
        });
        let kept: Result<Vec<Kept>, _> = events.map(Kept::new).collect();
        let kept = kept?;
        let stored: Vec<StoredEvent> = kept.iter().map(Kept::stored).collect();
        let outcome = run.outcome().map(outcome_word);
        hold.finish(&stored, outcome, &run.session_messages())
            .await?;
        Ok(kept)
    }
}

fn unreadable(run: &str, source: RestoreError) -> JournalError {
    JournalError::Unreadable {
        run: run.to_owned(),
        source,
    }
}

/// The words of the model call that was under way at the end of these events.
fn last_words(events: &[RunEvent]) -> String {
    let mut words = String::new();
    for event in events {
        match &event.kind {
            RunEventKind::RunStarted { .. }
            | RunEventKind::ModelCallStarted { .. }
            | RunEventKind::ModelCallFinished { .. } => words.clear(),
            RunEventKind::TextDelta { text } => words.push_str(text),
            _ => {}
        }
    }
    words
}

impl fmt::Debug for TakenRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakenRun")
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

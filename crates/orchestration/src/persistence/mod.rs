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

pub mod checkpoint;
mod checkpoint_channel;
mod lease;
mod parameters;
mod persisted_run;
mod resume;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use switchboard_domain::{
    Message, Principal, RunRecord, RunState, RunStore, Session, SessionId, SessionStore,
    SessionStoreError, StoredEvent,
};
use uuid::Uuid;

use self::lease::Hold;
pub use self::{
    parameters::BegunWith,
    persisted_run::{Kept, KeptEnd, KeptRun},
    resume::TakenRun,
};
use crate::{Agent, Outcome, RestoreError, Run, SnapshotMark};

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
        self.begin_with(agent, session, messages, None).await
    }

    /// The same, and `wish` is stored with the run ([`RunRecord::wish`]): what it is begun with, for whoever makes
    /// the agent that goes on with it in another process. It is the caller's matter, and at most
    /// [`MOST_WISH_BYTES`](switchboard_domain::MOST_WISH_BYTES) of JSON; beyond that nothing begins, with
    /// [`SessionStoreError::TooLarge`].
    pub async fn begin_with(
        &self,
        agent: &Agent,
        session: &SessionId,
        messages: Vec<Arc<Message>>,
        wish: Option<Value>,
    ) -> Result<KeptRun, JournalError> {
        self.begin_behind(agent, session, None, messages, wish)
            .await
    }

    /// The same in a session that is made for it, in one with the beginning of the run: there are both or neither.
    /// Fails with [`SessionStoreError::Exists`] if there is one of this id, whosever it is.
    pub async fn begin_session(
        &self,
        agent: &Agent,
        session: &Session,
        messages: Vec<Arc<Message>>,
        wish: Option<Value>,
    ) -> Result<KeptRun, JournalError> {
        let new = messages.clone();
        let (run, record) = self.prepared(agent, &session.id, messages, wish);
        let hold = self.hold(&record.id, count(new.len()));
        let begun = self
            .runs
            .begin_session(&self.owner, session, &record, &new)
            .await;
        begun_with(agent, run, begun, hold).await
    }

    /// The same, behind the first `keep` messages of the session: what was said after them is set aside, as if it had not
    /// been said. The runs that said it stay, with their events. Fails with [`SessionStoreError::Conflict`] if there are
    /// fewer.
    pub async fn begin_again(
        &self,
        agent: &Agent,
        session: &SessionId,
        keep: u64,
        messages: Vec<Arc<Message>>,
        wish: Option<Value>,
    ) -> Result<KeptRun, JournalError> {
        self.begin_behind(agent, session, Some(keep), messages, wish)
            .await
    }

    async fn begin_behind(
        &self,
        agent: &Agent,
        session: &SessionId,
        keep: Option<u64>,
        messages: Vec<Arc<Message>>,
        wish: Option<Value>,
    ) -> Result<KeptRun, JournalError> {
        let before = self.sessions.messages(&self.owner, session, 0).await?;
        let (before_count, new) = (count(before.len()), messages.clone());
        let keep = keep.unwrap_or(before_count);
        let kept = before
            .into_iter()
            .take(usize::try_from(keep).unwrap_or(usize::MAX));
        let conversation = kept.chain(messages).collect();
        let (run, record) = self.prepared(agent, session, conversation, wish);
        // Also if the future is dropped in the middle of it: then it may have begun.
        let hold = self.hold(&record.id, keep.saturating_add(count(new.len())));
        let (runs, owner) = (&self.runs, &self.owner);
        let begun = if keep == before_count {
            runs.begin(owner, &record, before_count, &new).await
        } else {
            runs.begin_again(owner, &record, keep, before_count, &new)
                .await
        };
        begun_with(agent, run, begun, hold).await
    }

    /// A run with a new id, and what the store is told of it.
    fn prepared(
        &self,
        agent: &Agent,
        session: &SessionId,
        conversation: Vec<Arc<Message>>,
        wish: Option<Value>,
    ) -> (Box<Run>, RunRecord) {
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
            wish,
        };
        (run, record)
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

    fn hold(&self, run: &str, after: u64) -> Hold {
        Hold::new(Arc::clone(&self.runs), run.to_owned(), after)
    }
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// Drives a run if the store says that it has begun.
async fn begun_with(
    agent: &Agent,
    run: Box<Run>,
    begun: Result<RunRecord, SessionStoreError>,
    hold: Hold,
) -> Result<KeptRun, JournalError> {
    let record = match begun {
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

fn no_such_run(run: &str) -> SessionStoreError {
    SessionStoreError::NoSuchRun {
        run: run.to_owned(),
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
#[path = "persistence_tests.rs"]
mod tests;

//! Reads the events of a session: of all its runs, one after the other, and of those to come.

use std::collections::VecDeque;

use futures_util::StreamExt as _;
use switchboard_domain::{Principal, RunRecord, RunState, SessionId};

use super::{Hub, Logged, Reader};
use crate::Problem;

/// Runs of a session that are looked at.
pub(crate) const MOST_RUNS: u32 = 100_000;
/// Runs that are looked at where a session is read on.
const NEWEST: u32 = 32;

/// The events of a session behind a position. Ends when the server stops or the session is gone.
pub(crate) struct SessionReader {
    hub: Hub,
    owner: Principal,
    session: SessionId,
    /// The number of the last event that was given.
    after: u64,
    /// Runs with events to come, oldest first.
    runs: VecDeque<RunRecord>,
    /// The run that is being read.
    reading: Option<(u64, Reader)>,
    /// The last run that was read to its end.
    done: Option<String>,
}

impl Hub {
    /// The events of a session with numbers above `after`.
    pub(crate) async fn session_reader(
        &self,
        owner: &Principal,
        session: &SessionId,
        after: u64,
    ) -> Result<SessionReader, Problem> {
        if self.sessions().get(owner, session).await?.is_none() {
            return Err(Problem::no_session(&session.0));
        }
        let mut reader = SessionReader {
            hub: self.clone(),
            owner: owner.clone(),
            session: session.clone(),
            after,
            runs: VecDeque::new(),
            reading: None,
            done: None,
        };
        reader.look(MOST_RUNS).await?;
        Ok(reader)
    }
}

impl SessionReader {
    /// The next event, with its number within the session.
    pub(crate) async fn next(&mut self) -> Option<(u64, Logged)> {
        loop {
            if let Some((before, reader)) = &mut self.reading {
                if let Some(event) = reader.next().await {
                    self.after = *before + event.seq;
                    return Some((self.after, event));
                }
                self.reading = None;
            }
            let stopped = self.hub.is_stopping();
            if stopped.is_cancelled() {
                return None;
            }
            if let Some(run) = self.runs.pop_front() {
                let after = self.after.saturating_sub(run.events_before);
                let reader = self.hub.reader_of(&self.owner, &run, after);
                self.reading = Some((run.events_before, reader));
                self.done = Some(run.id);
                continue;
            }
            // Before the store is read: what begins after that tells of itself.
            let mut door = self.hub.door(&self.session);
            match self.look(NEWEST).await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(problem) => {
                    tracing::warn!(%problem, "a session cannot be read");
                    return None;
                }
            }
            if !self.runs.is_empty() {
                continue;
            }
            let every = self.hub.options().keep_alive;
            tokio::select! {
                _ = door.changed() => {}
                // Another process may have begun one.
                () = tokio::time::sleep(every) => {}
                () = stopped.cancelled() => return None,
            }
        }
    }

    /// Looks for runs that have events to come; whether the session is still there.
    async fn look(&mut self, limit: u32) -> Result<bool, Problem> {
        let mut runs = self.hub.runs_of(&self.owner, &self.session, limit).await?;
        // One that was read to its end is not read again, though events of it may be gone from the store.
        if let Some(done) = &self.done
            && let Some(at) = runs.iter().position(|run| run.id == *done)
        {
            runs.truncate(at);
        } else if runs.len() == limit as usize && limit < MOST_RUNS {
            runs = self
                .hub
                .runs_of(&self.owner, &self.session, MOST_RUNS)
                .await?;
        }
        let has_more = |run: &RunRecord| {
            run.state != RunState::Finished || run.events_before + run.last_event > self.after
        };
        self.runs = runs.into_iter().rev().filter(has_more).collect();
        if self.runs.is_empty() {
            let session = self.hub.sessions().get(&self.owner, &self.session).await?;
            return Ok(session.is_some());
        }
        Ok(true)
    }
}

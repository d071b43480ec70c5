//! Reads the events of all current and future runs of a session, in order.

use std::collections::VecDeque;

use switchboard_domain::{Principal, RunRecord, RunState, SessionId};

use super::{EventReader, LoggedEvent, RunHub, await_session_change};
use crate::Problem;

/// Maximum number of runs of a session that a reader reads. Older runs are skipped.
const MAX_RUNS: u32 = 100_000;
/// Number of newest runs that a reader requests first when it looks for new runs of a session.
const NEWEST_RUNS: u32 = 32;

/// A reader of the events of all runs in a session. It ends when the server stops or the session is
/// deleted.
pub(crate) struct SessionReader {
    hub: RunHub,
    owner: Principal,
    session: SessionId,
    /// The number, within the session, of the event that was returned last.
    after: u64,
    /// Runs with unread events, oldest first.
    runs: VecDeque<RunRecord>,
    /// The number of session events before the current run, and the reader of that run.
    current: Option<(u64, EventReader)>,
    /// The id of the last run whose events were read.
    last_run: Option<String>,
}

impl RunHub {
    /// Creates a reader of the session's events whose numbers are larger than `after`.
    pub(crate) async fn session_reader(
        &self,
        owner: &Principal,
        session: &SessionId,
        after: u64,
    ) -> Result<SessionReader, Problem> {
        let mut reader = SessionReader {
            hub: self.clone(),
            owner: owner.clone(),
            session: session.clone(),
            after,
            runs: VecDeque::new(),
            current: None,
            last_run: None,
        };
        if !self.has_session(owner, session).await? {
            return Err(Problem::session_not_found(&session.0));
        }
        reader.find_unread_runs(MAX_RUNS).await?;
        Ok(reader)
    }
}

impl SessionReader {
    /// Returns the next event with its number within the session, or `None` at the end of the
    /// stream.
    pub(crate) async fn next(&mut self) -> Option<(u64, LoggedEvent)> {
        loop {
            if let Some((before, reader)) = &mut self.current {
                if let Some(event) = reader.next().await {
                    self.after = *before + event.seq;
                    return Some((self.after, event));
                }
                self.current = None;
            }
            let stopping = self.hub.shutdown_token();
            if stopping.is_cancelled() {
                return None;
            }
            if let Some(run) = self.runs.pop_front() {
                let after = self.after.saturating_sub(run.events_before);
                let reader = self.hub.new_event_reader(&self.owner, &run, after);
                self.current = Some((run.events_before, reader));
                self.last_run = Some(run.id);
                continue;
            }
            // The subscription precedes the reads, so that no change between the reads and the wait
            // below is missed.
            let mut changes = self.hub.subscribe_session_changes();
            match self.find_unread_runs(NEWEST_RUNS).await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(problem) => {
                    tracing::warn!(%problem, "failed to read the session");
                    return None;
                }
            }
            if !self.runs.is_empty() {
                continue;
            }
            let interval = self.hub.options().keep_alive;
            tokio::select! {
                () = await_session_change(&mut changes, &self.session) => {}
                // Another process may have started a run, so the store is read again.
                () = tokio::time::sleep(interval) => {}
                () = stopping.cancelled() => return None,
            }
        }
    }

    /// Sets `self.runs` to the runs with unread events. Lists the `limit` newest runs of the
    /// session, and then all runs if older ones may have unread events too. Returns `false` if the
    /// session was deleted.
    async fn find_unread_runs(&mut self, limit: u32) -> Result<bool, Problem> {
        let (hub, owner, session) = (&self.hub, &self.owner, &self.session);
        let mut runs = hub.list_session_runs(owner, session, limit).await?;
        // Omits the last read run and all older ones, even if some of their events were deleted.
        if let Some(last) = &self.last_run
            && let Some(position) = runs.iter().position(|run| run.id == *last)
        {
            runs.truncate(position);
        } else if runs.len() == limit as usize && limit < MAX_RUNS {
            runs = hub.list_session_runs(owner, session, MAX_RUNS).await?;
        }
        let has_unread = |run: &RunRecord| {
            run.state != RunState::Finished || run.events_before + run.last_event > self.after
        };
        self.runs = runs.into_iter().rev().filter(has_unread).collect();
        Ok(!self.runs.is_empty() || self.hub.has_session(&self.owner, &self.session).await?)
    }
}

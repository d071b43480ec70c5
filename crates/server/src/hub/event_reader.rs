//! Reads the events of a run from memory or from the store. Another process may execute the run.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use switchboard_domain::{Principal, RunState, SessionId};
use tokio::sync::watch;

use super::{
    RunHub, await_session_change,
    run_log::{LogReadResult, LoggedEvent, RunLog, RunStatus},
};

/// Maximum number of events in one read from the store.
const PAGE_SIZE: u32 = 256;
/// Interval of reads from the store while another process executes the run.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A reader of the events of a run after a position. It ends when the run ends or the server stops.
pub(crate) struct EventReader {
    pub(super) hub: RunHub,
    pub(super) owner: Principal,
    pub(super) run: Arc<str>,
    /// The id of the run's session, or `None` for an ephemeral run.
    pub(super) session: Option<SessionId>,
    /// The log of the run and its change receiver. `None` unless this process executes the run.
    pub(super) log: Option<(Arc<RunLog>, watch::Receiver<()>)>,
    /// The sequence number of the last event that was read.
    pub(super) after: u64,
    /// Whether the run is finished and has no event after the start position of the reader.
    pub(crate) is_over: bool,
    /// Whether the reader must also end when all events are read and the run waits for a decision
    /// or an answer of a person.
    pub(crate) ends_when_waiting: bool,
    /// Whether the reader has ended because the run waits for a decision or an answer of a person.
    pub(crate) is_waiting: bool,
    pub(super) ready: VecDeque<LoggedEvent>,
    /// Whether the store was read again after it first reported that the run is finished.
    pub(super) has_reread: bool,
}

impl EventReader {
    /// Returns the next event, or `None` at the end of the stream. The future must not be dropped
    /// before it is ready, because the reader would then lose the log that it reads.
    pub(crate) async fn next(&mut self) -> Option<LoggedEvent> {
        loop {
            if let Some(event) = self.next_ready_event() {
                return Some(event);
            }
            let may_have_more = match self.log.take() {
                Some((log, changes)) => self.read_log(log, changes).await,
                None => self.read_store().await,
            };
            if !may_have_more {
                return None;
            }
        }
    }

    /// Returns the next event without waiting. `None` means that no further event was read yet.
    pub(crate) fn next_ready_event(&mut self) -> Option<LoggedEvent> {
        self.ready.pop_front()
    }

    fn add_events(&mut self, events: Vec<LoggedEvent>) {
        if let Some(last) = events.last() {
            self.after = last.seq;
        }
        self.ready.extend(events);
    }

    /// Reads events from the log, or waits for a change of the log. Returns `false` at the end of
    /// the stream.
    async fn read_log(&mut self, log: Arc<RunLog>, mut changes: watch::Receiver<()>) -> bool {
        // Earlier changes are marked as seen, so that only a change after this read ends the
        // waiting.
        changes.borrow_and_update();
        match log.read_events_after(self.after) {
            LogReadResult::Events(events) => {
                self.add_events(events);
                self.log = Some((log, changes));
                true
            }
            LogReadResult::Older => {
                let may_have_more = self.read_stored_page().await;
                self.log = Some((log, changes));
                may_have_more
            }
            LogReadResult::Nothing(RunStatus::Finished(_)) => false,
            LogReadResult::Nothing(RunStatus::AwaitingInput(_) | RunStatus::Suspended(_))
                if self.ends_when_waiting =>
            {
                self.is_waiting = true;
                false
            }
            // A resumed durable run has a new log, which `read_store` finds. An ephemeral run
            // cannot be resumed, so its reader ends.
            LogReadResult::Nothing(RunStatus::Suspended(_) | RunStatus::Interrupted) => {
                self.session.is_some()
            }
            LogReadResult::Nothing(RunStatus::Running | RunStatus::AwaitingInput(_)) => {
                let aborted = self.hub.shared.abort.clone();
                tokio::select! {
                    _ = changes.changed() => {}
                    () = aborted.cancelled() => return false,
                }
                self.log = Some((log, changes));
                true
            }
        }
    }

    /// Reads the next events from the store. Returns `false` if there are none or the read fails.
    async fn read_stored_page(&mut self) -> bool {
        if self.session.is_none() {
            // An ephemeral run has no stored events, so events that the log dropped are lost.
            return false;
        }
        let durable_runs = self.hub.durable_runs(&self.owner);
        let page = durable_runs.read_event_page(&self.run, self.after, PAGE_SIZE);
        match page.await {
            Ok(events) => {
                let has_events = !events.is_empty();
                self.add_events(events.into_iter().map(LoggedEvent::from).collect());
                has_events
            }
            Err(error) => {
                let run = &*self.run;
                tracing::warn!(run, %error, "failed to read the events of the run");
                false
            }
        }
    }

    /// Finds the log of the run, reads events from the store, or waits for a change. Returns
    /// `false` at the end of the stream.
    async fn read_store(&mut self) -> bool {
        let Some(session) = self.session.clone() else {
            return false;
        };
        // The subscription precedes the reads, so that no change between the reads and the wait
        // below is missed.
        let mut changes = self.hub.subscribe_session_changes();
        if let Some(active) = self.hub.find_active_run(&self.owner, &self.run) {
            self.log = Some((Arc::clone(&active.log), active.log.subscribe_changes()));
            return true;
        }
        if self.read_stored_page().await {
            return true;
        }
        let Ok(Some(record)) = self.hub.find_run_record(&self.owner, &self.run).await else {
            return false;
        };
        let interval = match record.state {
            // Events may have been stored after the last read, so the store is read once more.
            // Events that are still missing were deleted.
            RunState::Finished if record.last_event > self.after && !self.has_reread => {
                self.has_reread = true;
                return true;
            }
            RunState::Finished => return false,
            RunState::Running => POLL_INTERVAL,
            RunState::Waiting | RunState::Interrupted if self.ends_when_waiting => {
                self.is_waiting = record.state == RunState::Waiting;
                return false;
            }
            // Another process may resume the run unnoticed, so the store is read at this interval.
            RunState::Waiting | RunState::Interrupted => self.hub.options().keep_alive,
        };
        let stopping = self.hub.shutdown_token();
        tokio::select! {
            () = await_session_change(&mut changes, &session) => true,
            () = tokio::time::sleep(interval) => true,
            () = stopping.cancelled() => false,
        }
    }
}

//! The events of one run for any number of readers.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use switchboard_domain::{ApprovalRequest, StoredEvent};
use switchboard_orchestration::{RunEvent, RunEventKind, RunReport, persistence::PersistedEvent};
use tokio::sync::watch;

/// An event for readers. Clones are cheap.
#[derive(Debug, Clone)]
pub(crate) struct LoggedEvent {
    /// The number within the run.
    pub(crate) seq: u64,
    /// `None` for events from the store, which are parsed on demand.
    event: Option<Arc<RunEvent>>,
    /// The event as one line of JSON.
    pub(crate) json: Arc<str>,
}

impl LoggedEvent {
    /// Returns the event, or `None` if this version cannot read it.
    pub(crate) fn event(&self) -> Option<Arc<RunEvent>> {
        let stored = || serde_json::from_str(&self.json).ok().map(Arc::new);
        self.event.clone().or_else(stored)
    }

    /// Returns the approximate memory of the event in bytes: its text and its value.
    fn size(&self) -> usize {
        2 * self.json.len() + 256
    }
}

/// Returns the value of `type` in an event's JSON. This program writes it among the first fields
/// and without escapes.
pub(crate) fn type_of(json: &str) -> &str {
    const FIELD: &str = "\"type\":\"";
    let value = json.find(FIELD).map(|at| &json[at + FIELD.len()..]);
    let value = value.and_then(|rest| rest.split('"').next());
    value.unwrap_or("event")
}

impl From<PersistedEvent> for LoggedEvent {
    fn from(persisted: PersistedEvent) -> Self {
        Self {
            seq: persisted.event.seq,
            event: Some(persisted.event),
            json: persisted.json,
        }
    }
}

impl From<StoredEvent> for LoggedEvent {
    fn from(stored: StoredEvent) -> Self {
        Self {
            seq: stored.seq,
            event: None,
            json: stored.json,
        }
    }
}

impl From<RunEvent> for LoggedEvent {
    /// Returns an event of an ephemeral run.
    fn from(event: RunEvent) -> Self {
        // Events consist of texts and numbers, which are always serializable.
        let json = serde_json::to_string(&event).unwrap_or_default();
        Self {
            seq: event.seq,
            event: Some(Arc::new(event)),
            json: json.into(),
        }
    }
}

/// The state of a run, as far as its events were emitted.
#[derive(Debug, Clone)]
pub(crate) enum RunStatus {
    /// Active.
    Running,
    /// In memory, waiting for decisions about these calls or for an answer to a question.
    AwaitingInput(Vec<ApprovalRequest>),
    /// Stored, waiting for decisions about these calls. It continues in another log.
    Suspended(Vec<ApprovalRequest>),
    /// Finished.
    Finished(Box<RunReport>),
    /// Interrupted by the shutdown or a store failure. It can be resumed.
    Interrupted,
}

impl RunStatus {
    /// Returns whether the log is complete.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Running | Self::AwaitingInput(_))
    }
}

/// The newest events of a run in memory, up to a number of bytes. Readers have positions and read
/// from there, so nothing is stored per reader.
pub(crate) struct RunLog {
    state: Mutex<State>,
    /// Notifies readers of every change.
    changes: watch::Sender<()>,
    max_bytes: usize,
}

struct State {
    events: VecDeque<LoggedEvent>,
    /// The minimum number of the next event.
    next: u64,
    bytes: usize,
    status: RunStatus,
}

/// The result of reading after a position.
pub(super) enum ReadResult {
    /// Events.
    Events(Vec<LoggedEvent>),
    /// The next event is no longer in memory.
    Older,
    /// No event yet.
    Nothing(RunStatus),
}

/// Maximum number of events of one read.
const MAX_EVENTS_PER_READ: usize = 64;

impl RunLog {
    /// Returns a log whose first event follows the one numbered `after`.
    pub(super) fn new(after: u64, max_bytes: usize) -> Self {
        let state = State {
            events: VecDeque::new(),
            next: after + 1,
            bytes: 0,
            status: RunStatus::Running,
        };
        Self {
            state: Mutex::new(state),
            changes: watch::Sender::new(()),
            max_bytes,
        }
    }

    pub(super) fn push(&self, event: LoggedEvent) {
        let mut state = self.state();
        state.next = event.seq + 1;
        state.bytes += event.size();
        state.events.push_back(event);
        while state.bytes > self.max_bytes && state.events.len() > 1 {
            if let Some(oldest) = state.events.pop_front() {
                state.bytes -= oldest.size();
            }
        }
        // An event shows that the run no longer waits.
        if !state.status.is_final() {
            state.status = RunStatus::Running;
        }
        drop(state);
        self.changes.send_replace(());
    }

    pub(super) fn set_status(&self, status: RunStatus) {
        self.state().status = status;
        self.changes.send_replace(());
    }

    pub(crate) fn status(&self) -> RunStatus {
        self.state().status.clone()
    }

    /// Returns the number of the last event, or 0.
    pub(crate) fn last(&self) -> u64 {
        self.state().next - 1
    }

    /// Returns a receiver of later changes.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(super) fn read_after(&self, seq: u64) -> ReadResult {
        let state = self.state();
        // The position is arbitrary input.
        let wanted = seq.saturating_add(1);
        if wanted >= state.next {
            return ReadResult::Nothing(state.status.clone());
        }
        let first = state.events.front().map(|event| event.seq);
        let Some(skip) = first.and_then(|first| wanted.checked_sub(first)) else {
            return ReadResult::Older;
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let events = state.events.iter().skip(skip).take(MAX_EVENTS_PER_READ);
        ReadResult::Events(events.cloned().collect())
    }

    /// Returns whether a call got a decision or a result after the event numbered `seq`.
    pub(super) fn is_settled_after(&self, seq: u64, call: &str) -> bool {
        let state = self.state();
        let newer = state.events.iter().rev().take_while(|it| it.seq > seq);
        let mut newer = newer.filter_map(|it| it.event.as_deref());
        newer.any(|event| match &event.kind {
            RunEventKind::ToolApproved { id, .. }
            | RunEventKind::ToolDenied { id, .. }
            | RunEventKind::ToolFinished { id, .. } => id == call,
            _ => false,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

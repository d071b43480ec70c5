//! Keeps the newest events of one run in memory, for any number of readers.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use switchboard_domain::{ApprovalRequest, StoredEvent};
use switchboard_orchestration::{RunEvent, RunEventKind, RunReport, persistence::PersistedEvent};
use tokio::sync::watch;

use super::lock_mutex;

/// A run event for readers, with its JSON text. Clones are cheap.
#[derive(Debug, Clone)]
pub(crate) struct LoggedEvent {
    /// The sequence number of the event within the run.
    pub(crate) seq: u64,
    /// The parsed event. `None` for events from the store, which are parsed on demand.
    event: Option<Arc<RunEvent>>,
    /// The event as one line of JSON text.
    pub(crate) json: Arc<str>,
}

impl LoggedEvent {
    /// Returns the parsed event. Returns `None` if the JSON text of a stored event cannot be
    /// parsed, for example because another version of the program wrote it.
    pub(crate) fn parsed_event(&self) -> Option<Arc<RunEvent>> {
        let stored = || serde_json::from_str(&self.json).ok().map(Arc::new);
        self.event.clone().or_else(stored)
    }

    /// Returns the approximate memory size of the event in bytes: JSON text and parsed value.
    fn memory_size(&self) -> usize {
        2 * self.json.len() + 256
    }
}

/// Returns the value of the field `type` in an event's JSON text, or `event` if the field is
/// missing. The text is searched, not parsed: run events are written with this field before any
/// nested object and without escapes in its value.
pub(crate) fn event_type(json: &str) -> &str {
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
    /// Converts an event of an ephemeral run.
    fn from(event: RunEvent) -> Self {
        // Every value in a run event has a JSON form, so the serialization does not fail.
        let json = serde_json::to_string(&event).unwrap_or_default();
        Self {
            seq: event.seq,
            event: Some(Arc::new(event)),
            json: json.into(),
        }
    }
}

/// The status of a run after the last event in its log.
#[derive(Debug, Clone)]
pub(crate) enum RunStatus {
    /// The run is active and does not wait for a decision or an answer of a person.
    Running,
    /// The run is in memory and waits for decisions about these tool calls, or for an answer to an
    /// elicitation request.
    AwaitingInput(Vec<ApprovalRequest>),
    /// The run is stored and waits for decisions about these tool calls. The resumed run gets
    /// another log.
    Suspended(Vec<ApprovalRequest>),
    /// The run is finished. The value is its report.
    Finished(Box<RunReport>),
    /// A shutdown or a store failure interrupted the run. A durable run can be resumed.
    Interrupted,
}

impl RunStatus {
    /// Returns whether no more events will be added to the log.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Running | Self::AwaitingInput(_))
    }
}

/// The newest events of a run, up to a maximum size in bytes. Readers store their own positions.
pub(crate) struct RunLog {
    state: Mutex<RunLogState>,
    /// A channel that notifies readers of every new event and every status change.
    changes: watch::Sender<()>,
    max_bytes: usize,
}

struct RunLogState {
    events: VecDeque<LoggedEvent>,
    /// One more than the sequence number of the last event.
    next: u64,
    bytes: usize,
    status: RunStatus,
}

/// The result of reading the events after a position from the log.
pub(super) enum LogReadResult {
    /// The next events after the position.
    Events(Vec<LoggedEvent>),
    /// The next event is no longer in memory and must be read from the store.
    Older,
    /// The log has no event after the position. The value is the status of the run.
    Nothing(RunStatus),
}

/// Maximum number of events that one read from the log returns.
const MAX_EVENTS_PER_READ: usize = 64;

impl RunLog {
    /// Creates a log whose first event follows the event numbered `after`.
    pub(super) fn new(after: u64, max_bytes: usize) -> Self {
        let state = RunLogState {
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
        let mut state = lock_mutex(&self.state);
        state.next = event.seq + 1;
        state.bytes += event.memory_size();
        state.events.push_back(event);
        while state.bytes > self.max_bytes && state.events.len() > 1 {
            if let Some(oldest) = state.events.pop_front() {
                state.bytes -= oldest.memory_size();
            }
        }
        // A new event shows that the run no longer waits for a decision.
        if !state.status.is_final() {
            state.status = RunStatus::Running;
        }
        drop(state);
        self.changes.send_replace(());
    }

    pub(super) fn set_status(&self, status: RunStatus) {
        lock_mutex(&self.state).status = status;
        self.changes.send_replace(());
    }

    pub(crate) fn run_status(&self) -> RunStatus {
        lock_mutex(&self.state).status.clone()
    }

    /// Returns the sequence number of the last event, or 0 if the run has no event.
    pub(crate) fn last_seq(&self) -> u64 {
        lock_mutex(&self.state).next - 1
    }

    /// Returns a receiver that is notified of new events and status changes.
    pub(super) fn subscribe_changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(super) fn read_events_after(&self, seq: u64) -> LogReadResult {
        let state = lock_mutex(&self.state);
        // A client may send the largest `u64` as `seq`, so that `seq + 1` could overflow.
        let wanted = seq.saturating_add(1);
        if wanted >= state.next {
            return LogReadResult::Nothing(state.status.clone());
        }
        let first = state.events.front().map(|event| event.seq);
        let Some(skip) = first.and_then(|first| wanted.checked_sub(first)) else {
            return LogReadResult::Older;
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let events = state.events.iter().skip(skip).take(MAX_EVENTS_PER_READ);
        LogReadResult::Events(events.cloned().collect())
    }

    /// Returns whether a tool call got a decision or a result after the event numbered `seq`.
    pub(super) fn has_decision_or_result_after(&self, seq: u64, call: &str) -> bool {
        let state = lock_mutex(&self.state);
        let newer = state.events.iter().rev().take_while(|it| it.seq > seq);
        let mut newer = newer.filter_map(|it| it.event.as_deref());
        newer.any(|event| match &event.kind {
            RunEventKind::ToolApproved { id, .. }
            | RunEventKind::ToolDenied { id, .. }
            | RunEventKind::ToolFinished { id, .. } => id == call,
            _ => false,
        })
    }
}

#[cfg(test)]
#[path = "run_log_tests.rs"]
mod tests;

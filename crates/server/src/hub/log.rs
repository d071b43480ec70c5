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
pub(crate) struct Logged {
    /// The number within the run.
    pub(crate) seq: u64,
    text: Text,
}

/// The forms of an event.
#[derive(Debug, Clone)]
enum Text {
    /// The stored JSON and the value.
    Both(Arc<str>, Arc<RunEvent>),
    /// From the store. Parsed on demand.
    Json(Arc<str>),
    /// Of an ephemeral run. Serialized on demand, because dialects have their own forms.
    Event(Arc<RunEvent>),
}

impl Logged {
    /// Returns an event of an ephemeral run.
    pub(super) fn loose(event: Arc<RunEvent>) -> Self {
        Self {
            seq: event.seq,
            text: Text::Event(event),
        }
    }

    /// Returns the event, or `None` if this version cannot read it.
    pub(crate) fn event(&self) -> Option<Arc<RunEvent>> {
        match &self.text {
            Text::Both(_, event) | Text::Event(event) => Some(Arc::clone(event)),
            Text::Json(json) => serde_json::from_str(json).ok().map(Arc::new),
        }
    }

    /// Returns the event as one line of JSON.
    pub(crate) fn json(&self) -> Arc<str> {
        match &self.text {
            Text::Both(json, _) | Text::Json(json) => Arc::clone(json),
            // Events consist of texts and numbers, which are always serializable.
            Text::Event(event) => serde_json::to_string(&**event).unwrap_or_default().into(),
        }
    }

    fn as_it_came(&self) -> Option<&RunEvent> {
        match &self.text {
            Text::Both(_, event) | Text::Event(event) => Some(event),
            Text::Json(_) => None,
        }
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

impl From<PersistedEvent> for Logged {
    fn from(kept: PersistedEvent) -> Self {
        Self {
            seq: kept.event.seq,
            text: Text::Both(kept.json, kept.event),
        }
    }
}

impl From<StoredEvent> for Logged {
    fn from(stored: StoredEvent) -> Self {
        Self {
            seq: stored.seq,
            text: Text::Json(stored.json),
        }
    }
}

/// The state of a run, as far as its events were emitted.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// Active.
    Running,
    /// In memory, waiting for decisions about these calls or for an answer to a question.
    Asking(Vec<ApprovalRequest>),
    /// Stored, waiting for decisions about these calls. It continues in another log.
    Parked(Vec<ApprovalRequest>),
    /// Finished.
    Over(Box<RunReport>),
    /// Interrupted by the shutdown or a store failure. It can be resumed.
    Left,
}

impl Standing {
    /// Returns whether the log is complete.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Running | Self::Asking(_))
    }
}

/// The newest events of a run in memory, up to a number of bytes. Readers have positions and read
/// from there, so nothing is stored per reader.
pub(crate) struct RunLog {
    state: Mutex<State>,
    /// Notifies readers of every change.
    news: watch::Sender<()>,
    most_bytes: usize,
}

struct State {
    events: VecDeque<Logged>,
    /// The minimum number of the next event.
    next: u64,
    bytes: usize,
    standing: Standing,
}

/// The result of reading after a position.
pub(super) enum Found {
    /// Events.
    Events(Vec<Logged>),
    /// The next event is no longer in memory.
    Older,
    /// No event yet.
    Nothing(Standing),
}

/// Maximum number of events of one read.
const AT_ONCE: usize = 64;

impl RunLog {
    /// Returns a log whose first event follows the one numbered `after`.
    pub(super) fn new(after: u64, most_bytes: usize) -> Self {
        let state = State {
            events: VecDeque::new(),
            next: after + 1,
            bytes: 0,
            standing: Standing::Running,
        };
        Self {
            state: Mutex::new(state),
            news: watch::Sender::new(()),
            most_bytes,
        }
    }

    pub(super) fn push(&self, event: Logged) {
        let mut state = self.state();
        state.next = event.seq + 1;
        state.bytes += weight(&event);
        state.events.push_back(event);
        while state.bytes > self.most_bytes && state.events.len() > 1 {
            if let Some(oldest) = state.events.pop_front() {
                state.bytes -= weight(&oldest);
            }
        }
        // The decision was made.
        if !state.standing.is_final() {
            state.standing = Standing::Running;
        }
        drop(state);
        self.news.send_replace(());
    }

    pub(super) fn stands(&self, standing: Standing) {
        self.state().standing = standing;
        self.news.send_replace(());
    }

    pub(crate) fn standing(&self) -> Standing {
        self.state().standing.clone()
    }

    /// Returns the number of the last event, or 0.
    pub(crate) fn last(&self) -> u64 {
        self.state().next - 1
    }

    /// Returns a receiver of later changes.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    pub(super) fn after(&self, seq: u64) -> Found {
        let state = self.state();
        // The position is arbitrary input.
        let wanted = seq.saturating_add(1);
        if wanted >= state.next {
            return Found::Nothing(state.standing.clone());
        }
        let Some(first) = state.events.front().map(|event| event.seq) else {
            return Found::Older;
        };
        let Some(skip) = wanted.checked_sub(first) else {
            return Found::Older;
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let events = state.events.iter().skip(skip).take(AT_ONCE).cloned();
        Found::Events(events.collect())
    }

    /// Returns whether a call got a decision or a result after the event numbered `seq`.
    pub(super) fn settled_after(&self, seq: u64, call: &str) -> bool {
        let state = self.state();
        let newer = state.events.iter().rev().take_while(|it| it.seq > seq);
        let mut newer = newer.filter_map(Logged::as_it_came);
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

/// Returns the approximate memory of an event: its text and its value.
fn weight(event: &Logged) -> usize {
    let text = match &event.text {
        Text::Both(json, _) | Text::Json(json) => json.len(),
        Text::Event(told) => match &told.kind {
            RunEventKind::TextDelta { text } | RunEventKind::ReasoningDelta { text } => text.len(),
            RunEventKind::ToolInputDelta { json, .. } => json.len(),
            // These events are rare and may be large.
            _ => event.json().len(),
        },
    };
    2 * text + 256
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

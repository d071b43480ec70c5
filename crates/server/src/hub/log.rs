//! The events of one run as any number of readers see them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use switchboard_domain::{ApprovalRequest, StoredEvent};
use switchboard_orchestration::{RunEvent, RunEventKind, RunReport, persistence::PersistedEvent};
use tokio::sync::watch;

/// An event as readers get it. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    /// Its number within its run.
    pub(crate) seq: u64,
    text: Text,
}

/// What there is of an event.
#[derive(Debug, Clone)]
enum Text {
    /// As it is stored, and as it came.
    Both(Arc<str>, Arc<RunEvent>),
    /// From the store; it is read when somebody wants it.
    Json(Arc<str>),
    /// Of a run that is not stored: mostly it is told in the words of others, and nobody wants JSON of it.
    Event(Arc<RunEvent>),
}

impl Logged {
    /// An event of a run that is not stored.
    pub(super) fn loose(event: Arc<RunEvent>) -> Self {
        Self {
            seq: event.seq,
            text: Text::Event(event),
        }
    }

    /// The event; `None` if another version stored it and this one cannot read it.
    pub(crate) fn event(&self) -> Option<Arc<RunEvent>> {
        match &self.text {
            Text::Both(_, event) | Text::Event(event) => Some(Arc::clone(event)),
            Text::Json(json) => serde_json::from_str(json).ok().map(Arc::new),
        }
    }

    /// The event as one JSON object on one line.
    pub(crate) fn json(&self) -> Arc<str> {
        match &self.text {
            Text::Both(json, _) | Text::Json(json) => Arc::clone(json),
            // Events are made of texts and numbers: there is always JSON of them.
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

/// The value of `type` in an event's JSON. What is written by this program has it among the first fields, and no
/// escapes in it.
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

/// How it stands with a run, as far as its events were told.
#[derive(Debug, Clone)]
pub(crate) enum Standing {
    /// It goes on.
    Running,
    /// It is in memory and waits for a person's word about these, or for an answer to a question.
    Asking(Vec<ApprovalRequest>),
    /// It was let go and waits for a word about these. It goes on in another log.
    Parked(Vec<ApprovalRequest>),
    /// It is over.
    Over(Box<RunReport>),
    /// It was left as it is, to be continued: the server stops, or the store failed.
    Left,
}

impl Standing {
    /// Nothing will be added to this log.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Running | Self::Asking(_))
    }
}

/// A run's events in memory: the newest ones, up to a number of bytes. Readers hold a position and come for what is
/// behind it; nothing is kept for each of them.
pub(crate) struct RunLog {
    state: Mutex<State>,
    /// Changes with everything that readers could have missed.
    news: watch::Sender<()>,
    most_bytes: usize,
}

struct State {
    events: VecDeque<Logged>,
    /// The number that the next event will have at least.
    next: u64,
    bytes: usize,
    standing: Standing,
}

/// What a reader finds behind its position.
pub(super) enum Found {
    /// These.
    Events(Vec<Logged>),
    /// What comes next is no longer in memory.
    Older,
    /// Nothing yet.
    Nothing(Standing),
}

/// Events that a reader takes at once.
const AT_ONCE: usize = 64;

impl RunLog {
    /// A log whose first event comes after the one numbered `after`.
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
        // Whoever waited has decided.
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

    /// The number of the last event, 0 if there is none.
    pub(crate) fn last(&self) -> u64 {
        self.state().next - 1
    }

    /// Tells of everything that happens from now on.
    pub(super) fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    pub(super) fn after(&self, seq: u64) -> Found {
        let state = self.state();
        // Any number may be asked for.
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

    /// Whether a call has got a word or a result after the event numbered `seq`.
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

/// What an event costs in memory, about: its text, and the same as a value.
fn weight(event: &Logged) -> usize {
    let text = match &event.text {
        Text::Both(json, _) | Text::Json(json) => json.len(),
        Text::Event(told) => match &told.kind {
            RunEventKind::TextDelta { text } | RunEventKind::ReasoningDelta { text } => text.len(),
            RunEventKind::ToolInputDelta { json, .. } => json.len(),
            // There are few of these, and they may be large.
            _ => event.json().len(),
        },
    };
    2 * text + 256
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

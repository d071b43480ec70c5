//! A monotonic clock, which changes of the system clock do not affect.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::policy::duration_serde::to_milliseconds;

/// A monotonic clock of one process. The times of a clock and of its clones are comparable.
///
/// Approval requests expire by this clock, so changes of the system clock do not affect them. The
/// agents of a process share one clock
/// ([`Agent::with_monotonic_clock`](crate::Agent::with_monotonic_clock)), so a run that one agent
/// stores and another agent resumes keeps its expiry. Another process uses the time stamp of the
/// approval request instead.
#[derive(Debug, Clone)]
pub struct MonotonicClock {
    id: u64,
    started: Instant,
}

/// A point in time that a [`MonotonicClock`] measured. Only times of one clock are comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonotonicTime {
    clock: u64,
    /// Milliseconds since the creation of the clock.
    ms: u64,
}

impl MonotonicClock {
    /// Creates a clock. Its times are not comparable with the times of another clock.
    pub fn new() -> Self {
        Self {
            id: RandomState::new().hash_one(0),
            started: Instant::now(),
        }
    }

    /// Returns the current time of this clock.
    pub fn now(&self) -> MonotonicTime {
        MonotonicTime {
            clock: self.id,
            ms: to_milliseconds(self.started.elapsed()),
        }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl MonotonicTime {
    /// Returns the time that is `span` after this time, with a precision of milliseconds.
    pub(crate) fn add_duration(self, span: Duration) -> Self {
        Self {
            ms: self.ms.saturating_add(to_milliseconds(span)),
            ..self
        }
    }

    /// Returns the duration from this time until `end`, or zero if `end` has passed. Returns `None`
    /// if `end` belongs to another clock.
    pub(crate) fn duration_until(self, end: Self) -> Option<Duration> {
        let left = Duration::from_millis(end.ms.saturating_sub(self.ms));
        (self.clock == end.clock).then_some(left)
    }
}

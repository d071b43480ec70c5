//! A clock that is independent of changes of the system clock.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// A monotonic clock of one process. Clones are the same clock.
///
/// Approval requests expire by it, so that a change of the system clock has no effect on them. The
/// agents of a process share one clock
/// ([`Agent::with_steady_clock`](crate::Agent::with_steady_clock)), so that a run that one agent
/// stores and another one resumes keeps its expiry. In another process the time stamp of the
/// request decides.
#[derive(Debug, Clone)]
pub struct SteadyClock {
    id: u64,
    started: Instant,
}

/// A moment of a [`SteadyClock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteadyTime {
    clock: u64,
    /// Milliseconds since the creation of the clock.
    ms: u64,
}

impl SteadyClock {
    /// Returns a new clock. Its times are not comparable with times of another clock.
    pub fn new() -> Self {
        Self {
            id: RandomState::new().hash_one(0),
            started: Instant::now(),
        }
    }

    /// Returns the current moment.
    pub fn now(&self) -> SteadyTime {
        SteadyTime {
            clock: self.id,
            ms: milliseconds(self.started.elapsed()),
        }
    }
}

impl Default for SteadyClock {
    fn default() -> Self {
        Self::new()
    }
}

impl SteadyTime {
    /// Returns the moment after a duration.
    pub(crate) fn after(self, span: Duration) -> Self {
        Self {
            ms: self.ms.saturating_add(milliseconds(span)),
            ..self
        }
    }

    /// Returns the time until `end`, or zero after it. `None` if `end` belongs to another clock.
    pub(crate) fn until(self, end: Self) -> Option<Duration> {
        let left = Duration::from_millis(end.ms.saturating_sub(self.ms));
        (self.clock == end.clock).then_some(left)
    }
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

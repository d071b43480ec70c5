//! A circuit breaker: it stops calls to a target that did not answer several times in a row.
//!
//! It is pure: it reads no clock and holds no lock. The caller passes the time, so that its laws
//! can be tested with any history (`circuit_breaker_tests.rs`).
//!
//! A closed breaker admits every call and counts consecutive calls without an answer. An open
//! breaker rejects calls until a pause is over. Then it is half-open and admits one call as a
//! probe. An answer closes the breaker; without an answer the pause doubles. A probe that was
//! cancelled has no outcome, and the next call is the probe. An answer to a call from before the
//! opening also closes the breaker.

use std::time::Duration;

/// The time since a fixed moment.
pub(crate) type Moment = Duration;

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Number of consecutive calls without an answer that open the breaker. 0 disables it.
    pub(crate) failures: u32,
    /// The first pause.
    pub(crate) pause: Duration,
    /// The longest pause.
    pub(crate) max_pause: Duration,
}

#[derive(Debug)]
pub(crate) struct Breaker {
    policy: Policy,
    state: State,
    /// The number of openings. Outcomes of calls from before an opening are recognized by it.
    generation: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed {
        failures: u32,
    },
    Open {
        until: Moment,
        pause: Duration,
    },
    /// One call was admitted as a probe.
    HalfOpen {
        pause: Duration,
    },
}

/// An admitted call. Its outcome is passed to [`Breaker::record`]. The default is a call from
/// before the first opening.
#[derive(Debug, Default)]
#[must_use = "the breaker needs the outcome of the call"]
pub(crate) struct Admission {
    generation: u64,
    is_probe: bool,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The target answered, possibly with an error.
    Answered,
    /// The call timed out, or the connection broke.
    NoAnswer,
    /// The call was cancelled, or was not sent.
    Unknown,
}

/// The rejection of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rejected {
    /// The rest of the pause. Zero while a probe runs.
    pub(crate) retry_after: Duration,
}

impl Breaker {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            state: State::Closed { failures: 0 },
            generation: 0,
        }
    }

    /// Returns whether a call would be admitted.
    pub(crate) fn check(&self, now: Moment) -> Result<(), Rejected> {
        match self.state {
            State::Closed { .. } => Ok(()),
            State::Open { until, .. } if now >= until => Ok(()),
            State::Open { until, .. } => Err(Rejected {
                retry_after: until.saturating_sub(now),
            }),
            State::HalfOpen { .. } => Err(Rejected {
                retry_after: Duration::ZERO,
            }),
        }
    }

    /// Admits or rejects a call.
    pub(crate) fn admit(&mut self, now: Moment) -> Result<Admission, Rejected> {
        self.check(now)?;
        let is_probe = match self.state {
            State::Open { pause, .. } => {
                self.state = State::HalfOpen { pause };
                true
            }
            State::Closed { .. } | State::HalfOpen { .. } => false,
        };
        Ok(Admission {
            generation: self.generation,
            is_probe,
        })
    }

    /// Records the outcome of an admitted call.
    pub(crate) fn record(&mut self, admission: &Admission, outcome: Outcome, now: Moment) {
        match (outcome, self.state) {
            (Outcome::Answered, _) => self.state = State::Closed { failures: 0 },
            (Outcome::NoAnswer, State::Closed { failures })
                if admission.generation == self.generation =>
            {
                let failures = failures.saturating_add(1);
                if self.policy.failures > 0 && failures >= self.policy.failures {
                    self.open(self.policy.pause, now);
                } else {
                    self.state = State::Closed { failures };
                }
            }
            (Outcome::NoAnswer, State::HalfOpen { pause }) if self.is_current_probe(admission) => {
                self.open(pause.saturating_mul(2), now);
            }
            (Outcome::Unknown, State::HalfOpen { pause }) if self.is_current_probe(admission) => {
                self.state = State::Open { until: now, pause };
            }
            // A call from before the last opening, or a call without an outcome.
            (Outcome::NoAnswer | Outcome::Unknown, _) => {}
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    fn is_current_probe(&self, admission: &Admission) -> bool {
        admission.is_probe && admission.generation == self.generation
    }

    fn open(&mut self, pause: Duration, now: Moment) {
        let pause = pause.min(self.policy.max_pause);
        self.generation += 1;
        self.state = State::Open {
            until: now.saturating_add(pause),
            pause,
        };
    }
}

#[cfg(test)]
#[path = "circuit_breaker_tests.rs"]
mod tests;

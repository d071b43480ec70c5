//! A circuit breaker: whether what gave no answer several times in a row is called again yet.
//!
//! It is pure. It reads no clock and holds no lock: every moment comes from outside, as the time since
//! one that stays the same, so that its laws can be tested with any history (`circuit_breaker_tests.rs`).
//!
//! Closed, it lets everything through and counts what got no answer. Open, it lets nothing through until
//! a pause is over; then one call, whichever comes first, is let through to try. Its answer closes the
//! circuit; if it gets none either, the pause is twice as long. A try that its caller gave up says
//! nothing, and the next call is the try. An answer to a call that was let through before the circuit
//! opened closes it too: whatever is heard counts.

use std::time::Duration;

/// Time since a moment that stays the same.
pub(crate) type Moment = Duration;

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Calls without an answer, in a row, that open it; 0 is never.
    pub(crate) failures: u32,
    /// For how long at first.
    pub(crate) pause: Duration,
    /// For how long at most.
    pub(crate) longest: Duration,
}

#[derive(Debug)]
pub(crate) struct Breaker {
    policy: Policy,
    state: State,
    /// Counts its openings, so that what comes late of the time before one is known.
    age: u64,
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
    /// One call was let through.
    Trying {
        pause: Duration,
    },
}

/// A call that was let through. What becomes of it is told to [`Breaker::settle`]. The default is of the
/// time before a breaker first opened.
#[derive(Debug, Default)]
#[must_use = "the breaker waits for what becomes of the call"]
pub(crate) struct Ticket {
    age: u64,
    is_try: bool,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Something was heard, though it may have been a refusal.
    Answered,
    /// Nothing was heard in time, or the connection broke.
    NoAnswer,
    /// The caller gave it up, or it never left.
    Unknown,
}

/// How long the circuit stays open at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Zero while a call tries it out.
    pub(crate) for_another: Duration,
}

impl Breaker {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            state: State::Closed { failures: 0 },
            age: 0,
        }
    }

    /// Whether a call would be let through; nothing changes.
    pub(crate) fn check(&self, now: Moment) -> Result<(), Refused> {
        match self.state {
            State::Closed { .. } => Ok(()),
            State::Open { until, .. } if now >= until => Ok(()),
            State::Open { until, .. } => Err(Refused {
                for_another: until.saturating_sub(now),
            }),
            State::Trying { .. } => Err(Refused {
                for_another: Duration::ZERO,
            }),
        }
    }

    /// Lets a call through, or not.
    pub(crate) fn admit(&mut self, now: Moment) -> Result<Ticket, Refused> {
        self.check(now)?;
        let is_try = match self.state {
            State::Open { pause, .. } => {
                self.state = State::Trying { pause };
                true
            }
            State::Closed { .. } | State::Trying { .. } => false,
        };
        Ok(Ticket {
            age: self.age,
            is_try,
        })
    }

    /// Takes what became of a call.
    pub(crate) fn settle(&mut self, ticket: &Ticket, outcome: Outcome, now: Moment) {
        match (outcome, self.state) {
            (Outcome::Answered, _) => self.state = State::Closed { failures: 0 },
            (Outcome::NoAnswer, State::Closed { failures }) if ticket.age == self.age => {
                let failures = failures.saturating_add(1);
                if self.policy.failures > 0 && failures >= self.policy.failures {
                    self.open(self.policy.pause, now);
                } else {
                    self.state = State::Closed { failures };
                }
            }
            (Outcome::NoAnswer, State::Trying { pause }) if self.is_the_try(ticket) => {
                self.open(pause.saturating_mul(2), now);
            }
            (Outcome::Unknown, State::Trying { pause }) if self.is_the_try(ticket) => {
                self.state = State::Open { until: now, pause };
            }
            // What the time before the last opening says late, or what says nothing.
            (Outcome::NoAnswer | Outcome::Unknown, _) => {}
        }
    }

    /// Calls are let through as they come.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    fn is_the_try(&self, ticket: &Ticket) -> bool {
        ticket.is_try && ticket.age == self.age
    }

    fn open(&mut self, pause: Duration, now: Moment) {
        let pause = pause.min(self.policy.longest);
        self.age += 1;
        self.state = State::Open {
            until: now.saturating_add(pause),
            pause,
        };
    }
}

#[cfg(test)]
#[path = "circuit_breaker_tests.rs"]
mod tests;

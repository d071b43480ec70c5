//! The circuit breakers of one server: one for the server and one for each of its tools.
//!
//! A breaker stops calls to a tool or server that did not answer several times in a row. The
//! breaker of a tool counts the unanswered calls of that tool, and the breaker of the server counts
//! the unanswered calls of all its tools. Only calls that were sent count. The exit of the server
//! process does not count for the server, because the supervisor restarts it, but it counts once
//! for each tool that was being called.
//!
//! An open breaker rejects calls until a pause is over, and then admits one call as a probe. An
//! answer to any call closes the breaker. If the probe has no answer, the pause doubles. If the
//! probe was cancelled, the next call is the probe.

use std::{collections::HashMap, sync::Mutex, time::Duration};

use tokio::time::Instant;

use crate::{options::CircuitOptions, primitives::sync::lock_mutex, server::status::ServerState};

/// Outcome of a call, which determines how a circuit breaker counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server or tool answered, possibly with an error.
    Answered,
    /// The call timed out, or the connection broke.
    NoAnswer,
    /// The call was cancelled or was not sent, so it does not count.
    Unknown,
}

pub(crate) struct CircuitBreakers {
    options: CircuitOptions,
    breakers: Mutex<BreakerStates>,
}

#[derive(Default)]
struct BreakerStates {
    server: Breaker,
    /// Circuit breakers of the tools that were called, by the name of the tool on its server.
    tools: HashMap<String, Breaker>,
}

#[derive(Default)]
struct Breaker {
    /// Number of consecutive unanswered calls. The breaker opens when this number reaches the
    /// configured limit.
    failures: u32,
    /// Error message of the last unanswered call. The errors of rejected calls contain this
    /// message.
    last_failure: String,
    /// Pause and probe of an open breaker. `None` while the breaker is closed and admits all calls.
    open: Option<OpenBreaker>,
}

struct OpenBreaker {
    until: Instant,
    pause: Duration,
    /// Whether a probe call is running. Other calls are rejected until the probe has ended.
    is_probed: bool,
}

/// Permission of the circuit breakers for one call. Dropping it reports the outcomes of the call to
/// the breakers. They are [`Outcome::Unknown`] unless [`Self::record_outcomes`] has set them.
pub(crate) struct CallAdmission<'a> {
    circuits: &'a CircuitBreakers,
    tool: &'a str,
    /// Whether the call is the probe that tests an open breaker: first for the server's breaker,
    /// then for the tool's breaker.
    probes: (bool, bool),
    /// Outcomes of the call: first for the server's breaker, then for the tool's breaker.
    outcomes: (Outcome, Outcome),
    reason: String,
}

impl CircuitBreakers {
    pub(crate) fn new(options: CircuitOptions) -> Self {
        Self {
            options,
            breakers: Mutex::default(),
        }
    }

    /// Returns an error with the reason if an open circuit breaker would reject a call of the tool.
    pub(crate) fn check_call_allowed(&self, tool: &str) -> Result<(), String> {
        lock_mutex(&self.breakers).check_call_allowed(tool)
    }

    /// Admits a call of the tool. Returns an error with the reason if an open breaker rejects it.
    pub(crate) fn admit_call<'a>(&'a self, tool: &'a str) -> Result<CallAdmission<'a>, String> {
        let mut breakers = lock_mutex(&self.breakers);
        breakers.check_call_allowed(tool)?;
        let breaker_of_tool = breakers.tools.entry(tool.to_owned()).or_default();
        let of_tool = breaker_of_tool.start_probe_if_open();
        Ok(CallAdmission {
            circuits: self,
            tool,
            probes: (breakers.server.start_probe_if_open(), of_tool),
            outcomes: (Outcome::Unknown, Outcome::Unknown),
            reason: String::new(),
        })
    }

    /// Closes the circuit breakers of the server and all tools, after a person requested a restart.
    pub(crate) fn reset_all_breakers(&self) {
        *lock_mutex(&self.breakers) = BreakerStates::default();
    }

    /// Closes the server's circuit breaker after a restart, but not the breakers of its tools.
    pub(crate) fn reset_server_breaker(&self) {
        lock_mutex(&self.breakers).server = Breaker::default();
    }

    /// Returns the server state that open circuit breakers cause, with the reason. Returns `None`
    /// if all breakers are closed.
    pub(crate) fn derive_server_state(&self) -> Option<(ServerState, String)> {
        let breakers = lock_mutex(&self.breakers);
        if breakers.server.open.is_some() {
            let reason = format!(
                "calls are paused, because the last ones got no response ({})",
                breakers.server.last_failure
            );
            return Some((ServerState::Blocked, reason));
        }
        let open = breakers.tools.iter().filter(|(_, it)| it.open.is_some());
        let mut open: Vec<String> = open
            .map(|(tool, breaker)| format!("`{tool}` ({})", breaker.last_failure))
            .collect();
        open.sort_unstable();
        let reason = format!(
            "calls of these tools are paused, because the last ones got no response: {}",
            open.join(", ")
        );
        (!open.is_empty()).then_some((ServerState::Degraded, reason))
    }
}

impl BreakerStates {
    fn check_call_allowed(&self, tool: &str) -> Result<(), String> {
        self.server.check_call_allowed("the last calls")?;
        self.tools.get(tool).map_or(Ok(()), |breaker| {
            breaker.check_call_allowed(&format!("the last calls of `{tool}`"))
        })
    }
}

impl Breaker {
    /// Returns an error with the reason if the breaker currently rejects calls. `calls` is the
    /// subject of the error message, such as `its last calls`.
    fn check_call_allowed(&self, calls: &str) -> Result<(), String> {
        let Some(open) = &self.open else {
            return Ok(());
        };
        let rest = open.until.saturating_duration_since(Instant::now());
        let retry = if open.is_probed {
            "a test call is in progress".to_owned()
        } else if rest.is_zero() {
            return Ok(());
        } else {
            // The remaining seconds are rounded up, so that a caller does not retry too early.
            format!("retry in {} s", rest.as_millis().div_ceil(1000))
        };
        let reason = &self.last_failure;
        Err(format!("{calls} failed ({reason}); {retry}"))
    }

    /// Marks an admitted call as the probe if the breaker is open. Returns whether the breaker is
    /// open.
    fn start_probe_if_open(&mut self) -> bool {
        if let Some(open) = &mut self.open {
            open.is_probed = true;
        }
        self.open.is_some()
    }

    fn record_outcome(
        &mut self,
        outcome: Outcome,
        is_probe: bool,
        max_failures: u32,
        call: &CallAdmission<'_>,
    ) {
        if outcome == Outcome::NoAnswer {
            self.last_failure.clone_from(&call.reason);
        }
        let options = call.circuits.options;
        let pause = match (outcome, &mut self.open) {
            (Outcome::Answered, _) => {
                (self.failures, self.open) = (0, None);
                return;
            }
            (Outcome::NoAnswer, None) => {
                self.failures = self.failures.saturating_add(1);
                if max_failures == 0 || self.failures < max_failures {
                    return;
                }
                options.pause
            }
            (Outcome::NoAnswer, Some(open)) if is_probe => open.pause.saturating_mul(2),
            (Outcome::Unknown, Some(open)) if is_probe => {
                open.is_probed = false;
                return;
            }
            // The outcome does not count, because the call started before the breaker opened or
            // because the outcome is unknown.
            (Outcome::NoAnswer | Outcome::Unknown, _) => return,
        };
        let pause = pause.min(options.max_pause);
        self.open = Some(OpenBreaker {
            until: Instant::now() + pause,
            pause,
            is_probed: false,
        });
    }
}

impl CallAdmission<'_> {
    /// Reports the outcomes of the call to the breakers of the server and of the tool. `reason` is
    /// the error message of a failed call.
    pub(crate) fn record_outcomes(mut self, of_server: Outcome, of_tool: Outcome, reason: &str) {
        self.outcomes = (of_server, of_tool);
        reason.clone_into(&mut self.reason);
    }
}

impl Drop for CallAdmission<'_> {
    fn drop(&mut self) {
        let options = &self.circuits.options;
        let mut breakers = lock_mutex(&self.circuits.breakers);
        let (of_server, of_tool) = self.outcomes;
        let max = options.server_failures;
        breakers
            .server
            .record_outcome(of_server, self.probes.0, max, self);
        // The breaker of the tool does not exist if the breakers were reset during the call.
        if let Some(tool) = breakers.tools.get_mut(self.tool) {
            tool.record_outcome(of_tool, self.probes.1, options.tool_failures, self);
        }
    }
}

#[cfg(test)]
mod tests {
    use Outcome::{Answered, NoAnswer, Unknown};
    use tokio::time::advance;

    use super::*;

    fn circuits() -> CircuitBreakers {
        CircuitBreakers::new(CircuitOptions {
            tool_failures: 2,
            server_failures: 3,
            pause: Duration::from_secs(10),
            max_pause: Duration::from_secs(30),
        })
    }

    fn call(circuits: &CircuitBreakers, tool: &str, outcome: Outcome) {
        let admission = circuits.admit_call(tool).unwrap();
        admission.record_outcomes(outcome, outcome, "silence");
    }

    #[tokio::test(start_paused = true)]
    async fn a_tool_that_does_not_answer_is_blocked_and_others_are_not() {
        let circuits = circuits();
        call(&circuits, "a", NoAnswer);
        call(&circuits, "b", Answered);
        assert_eq!(circuits.derive_server_state(), None);
        call(&circuits, "a", NoAnswer);
        let rejection = "the last calls of `a` failed (silence); retry in 10 s";
        assert_eq!(circuits.check_call_allowed("a").unwrap_err(), rejection);
        assert_eq!(circuits.admit_call("a").err().as_deref(), Some(rejection));
        call(&circuits, "b", Answered);
        let (state, reason) = circuits.derive_server_state().unwrap();
        assert_eq!(state, ServerState::Degraded);
        assert!(reason.ends_with("`a` (silence)"), "{reason}");

        advance(Duration::from_secs(10)).await;
        let probe = circuits.admit_call("a").ok();
        let rejection = circuits.check_call_allowed("a").unwrap_err();
        assert!(rejection.ends_with("a test call is in progress"));
        // The probe is cancelled, so the next call is the probe.
        drop(probe);
        call(&circuits, "a", Answered);
        assert_eq!(circuits.derive_server_state(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn each_failed_probe_doubles_the_pause_up_to_the_maximum() {
        let circuits = circuits();
        call(&circuits, "a", NoAnswer);
        let late = circuits.admit_call("a").ok();
        call(&circuits, "a", NoAnswer);
        // A failure of a call from before the opening does not count.
        late.unwrap().record_outcomes(Unknown, NoAnswer, "late");
        for pause in [10, 20, 30, 30] {
            let rejection = circuits.check_call_allowed("a").unwrap_err();
            assert!(rejection.ends_with(&format!("retry in {pause} s")));
            advance(Duration::from_secs(pause)).await;
            let probe = circuits.admit_call("a").ok().unwrap();
            probe.record_outcomes(Unknown, NoAnswer, "silence");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_outcomes_change_nothing_and_a_reset_closes_all() {
        let circuits = circuits();
        for _ in 0..10 {
            call(&circuits, "a", Unknown);
        }
        assert_eq!(circuits.derive_server_state(), None);
        call(&circuits, "a", NoAnswer);
        call(&circuits, "a", NoAnswer);
        assert!(circuits.check_call_allowed("a").is_err());
        circuits.reset_all_breakers();
        assert!(circuits.check_call_allowed("a").is_ok());
        assert_eq!(circuits.derive_server_state(), None);
    }
}
